//! `vars`: `$(NAME)` in some fields is replaced by a value from an object.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::Config;
use crate::error::{Problem, Result};
use crate::field_spec::{Missing, visit};
use crate::id::{Gvk, Id};
use crate::kustomization::Variable;
use crate::path;
use crate::resource::scalar_text;
use crate::resource_list::ResourceList;
use crate::value_path;

/// Adds variables to those known so far, and marks the objects that they take their values from.
pub(crate) fn declare(
    known: &mut Vec<Variable>,
    variables: &[Variable],
    list: &mut ResourceList,
) -> Result<()> {
    for variable in variables {
        let id = object_id(variable);
        let matching: Vec<usize> = (0..list.resources.len())
            .filter(|index| {
                list.resources[*index].ids().any(|own| {
                    own.name == id.name
                        && own.gvk == id.gvk
                        && (id.namespace.is_empty() || own.is(&id))
                })
            })
            .collect();
        match matching.as_slice() {
            [] => {}
            [index] => list.resources[*index].variables.push(variable.name.clone()),
            several => {
                let message = format!(
                    "found {} objects for the variable {}: say which by its namespace",
                    several.len(),
                    variable.name
                );
                return Err(Problem::new(message));
            }
        }
    }
    variables
        .iter()
        .try_for_each(|variable| add(known, variable.clone()))
}

/// Adds a variable whose name is not taken.
pub(crate) fn add(known: &mut Vec<Variable>, variable: Variable) -> Result<()> {
    if known.iter().any(|other| other.name == variable.name) {
        let message = format!("the variable {:?} is declared twice", variable.name);
        return Err(Problem::new(message));
    }
    known.push(variable);
    Ok(())
}

fn object_id(variable: &Variable) -> Id {
    let reference = &variable.objref;
    let mut gvk = Gvk {
        group: reference.group.clone(),
        version: reference.version.clone(),
        kind: reference.kind.clone(),
    };
    match reference.api_version.split_once('/') {
        Some((group, version)) => {
            group.clone_into(&mut gvk.group);
            version.clone_into(&mut gvk.version);
        }
        None if !reference.api_version.is_empty() => gvk.version.clone_from(&reference.api_version),
        None => {}
    }
    Id {
        gvk,
        name: reference.name.clone(),
        namespace: reference.namespace.clone(),
    }
}

/// Replaces all variables.
pub(crate) fn resolve(
    variables: &[Variable],
    list: &mut ResourceList,
    extra: &Config,
) -> Result<()> {
    if variables.is_empty() {
        return Ok(());
    }
    let mut values = BTreeMap::new();
    for variable in variables {
        values.insert(variable.name.as_str(), value_of(variable, list)?);
    }
    let fields = || {
        let defaults = &Config::defaults().var_reference;
        defaults.iter().chain(&extra.var_reference)
    };
    for resource in &mut list.resources {
        for field in fields() {
            visit(&mut resource.value, field, Missing::Leave, &mut |value| {
                replace_in(value, &values)
            })?;
        }
    }
    Ok(())
}

fn value_of(variable: &Variable, list: &ResourceList) -> Result<Value> {
    let mut resources = list.resources.iter();
    let Some(resource) = resources.find(|resource| resource.variables.contains(&variable.name))
    else {
        let message = format!(
            "the variable {:?} takes its value from {}, which is not there",
            variable.name,
            object_id(variable)
        );
        return Err(Problem::new(message));
    };
    let field_path = match variable.fieldref.field_path.as_str() {
        "" => "metadata.name",
        path => path,
    };
    // An index may stand in brackets behind a name: `ports[0].port`.
    let names: Vec<String> = path::split_with_brackets(field_path)
        .into_iter()
        .flat_map(
            |name| match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
                Some((field, index)) if !field.is_empty() => {
                    vec![field.to_owned(), index.to_owned()]
                }
                _ => vec![name],
            },
        )
        .collect();
    if let Ok(Some(value)) = value_path::lookup(&resource.value, &names) {
        return Ok(value.clone());
    }
    let message = format!(
        "the field {field_path:?} of the variable {:?} is not in {}",
        variable.name,
        resource.id()
    );
    Err(Problem::new(message))
}

fn replace_in(value: &mut Value, values: &BTreeMap<&str, Value>) -> Result<()> {
    match value {
        Value::String(text) => {
            let replaced = replace(text, values);
            *value = replaced;
            Ok(())
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                if let Value::String(text) = member {
                    *member = replace(text, values);
                }
            }
            Ok(())
        }
        Value::Array(items) => {
            for item in items {
                let Value::String(text) = item else {
                    return Err(Problem::new(
                        "an item of a list with variables is not a text",
                    ));
                };
                *item = replace(text, values);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Replaces `$(NAME)`; `$$` is a dollar sign. A text that is only a reference gets the type of the
/// value.
fn replace(text: &str, values: &BTreeMap<&str, Value>) -> Value {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        replaced.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            replaced.push('$');
            rest = escaped;
            continue;
        }
        let reference = after
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'));
        let Some((name, behind)) = reference else {
            replaced.push('$');
            rest = after;
            continue;
        };
        let is_scalar =
            |value: &&Value| !value.is_object() && !value.is_array() && !value.is_null();
        match values.get(name).filter(is_scalar) {
            Some(value) if name.len() + 3 == text.len() => return value.clone(),
            Some(value) => replaced.push_str(&scalar_text(value)),
            None => replaced.extend(["$(", name, ")"]),
        }
        rest = behind;
    }
    replaced.push_str(rest);
    Value::String(replaced)
}
