//! `replacements`: a value from one place is written to others.

use bellwether_json::yaml::{Dialect, YamlOptions, plain_scalar, to_yaml, value_from_yaml_with};
use bellwether_json::{marshal, path::type_name};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Problem, Result};
use crate::id::{Gvk, Id};
use crate::path;
use crate::resource::{Resource, scalar_text};
use crate::resource_list::ResourceList;
use crate::selector::{CompiledSelector, Selector};
use crate::value_path::{self, Kind};

const DEFAULT_PATH: &str = "metadata.name";

/// A source and where it goes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Replacement {
    pub(crate) source: Option<Source>,
    pub(crate) source_value: Option<String>,
    pub(crate) targets: Option<Vec<Target>>,
}

/// A field of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Source {
    group: String,
    version: String,
    kind: String,
    name: String,
    namespace: String,
    field_path: String,
    options: FieldOptions,
}

/// Fields of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Target {
    select: Option<Selector>,
    reject: Vec<Selector>,
    field_paths: Vec<String>,
    options: FieldOptions,
}

/// Which part of a text is meant, and whether a missing field is added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FieldOptions {
    delimiter: String,
    index: i64,
    /// Accepted, and without effect, as in kustomize.
    encoding: String,
    create: bool,
}

/// Carries out replacements in their order.
pub(crate) fn apply(replacements: &[Replacement], list: &mut ResourceList) -> Result<()> {
    for replacement in replacements {
        let Some(targets) = &replacement.targets else {
            return Err(incomplete());
        };
        let value = match (&replacement.source_value, &replacement.source) {
            (Some(text), None) => plain_scalar(text),
            (None, Some(source)) => source_value(source, list)?,
            (None, None) => return Err(incomplete()),
            (Some(_), Some(_)) => {
                let message = "a replacement has both `source` and `sourceValue`: remove one";
                return Err(Problem::new(message));
            }
        };
        for target in targets {
            write(target, &value, list)?;
        }
    }
    Ok(())
}

fn incomplete() -> Problem {
    Problem::new("a replacement must have a `source` and at least one of `targets`")
}

fn source_value(source: &Source, list: &ResourceList) -> Result<Value> {
    let wanted = Id {
        gvk: Gvk {
            group: source.group.clone(),
            version: source.version.clone(),
            kind: source.kind.clone(),
        },
        name: source.name.clone(),
        namespace: source.namespace.clone(),
    };
    let mut matching = list
        .resources
        .iter()
        .filter(|resource| resource.ids().any(|id| id.is_selected_by(&wanted)));
    let Some(found) = matching.next() else {
        let message = format!("nothing selected by the source {wanted} of a replacement");
        return Err(Problem::new(message));
    };
    if matching.next().is_some() {
        let message = format!("multiple matches for the source {wanted} of a replacement");
        return Err(Problem::new(message));
    }
    let field_path = match source.field_path.as_str() {
        "" => DEFAULT_PATH,
        path => path,
    };
    let names = path::split_with_brackets(field_path);
    let value = value_path::lookup(&found.value, &names)?;
    let is_missing = |value: &&Value| match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let Some(value) = value.filter(|value| !is_missing(value)) else {
        let message =
            format!("the field `{field_path}` is missing in {wanted}, the source of a replacement");
        return Err(Problem::new(message));
    };
    if source.options.delimiter.is_empty() {
        return Ok(value.clone());
    }
    let text = delimited(value)?;
    let part = usize::try_from(source.options.index)
        .ok()
        .and_then(|index| text.split(&source.options.delimiter).nth(index));
    match part {
        Some(part) if value.is_string() => Ok(Value::from(part)),
        Some(part) => Ok(plain_scalar(part)),
        None => {
            let index = source.options.index;
            let message = format!("the index {index} is out of bounds for {text:?}");
            Err(Problem::new(message))
        }
    }
}

fn delimited(value: &Value) -> Result<String> {
    match value {
        Value::Object(_) | Value::Array(_) => {
            let message = format!("`delimiter` needs a scalar, not a {}", type_name(value));
            Err(Problem::new(message))
        }
        scalar => Ok(scalar_text(scalar)),
    }
}

fn write(target: &Target, value: &Value, list: &mut ResourceList) -> Result<()> {
    let Some(select) = &target.select else {
        return Err(Problem::new("a target of a replacement must have `select`"));
    };
    let selector = select.compile()?;
    let rejects: Vec<(CompiledSelector, &Selector)> = target
        .reject
        .iter()
        .map(|reject| Ok((reject.compile()?, reject)))
        .collect::<Result<_>>()?;
    let default = [DEFAULT_PATH.to_owned()];
    let paths = if target.field_paths.is_empty() {
        &default[..]
    } else {
        &target.field_paths
    };
    for resource in &mut list.resources {
        let is_rejected = rejects.iter().any(|(reject, form)| {
            let by_metadata = !form.labels.is_empty() || !form.annotations.is_empty();
            (by_metadata && reject.selects_metadata(resource))
                || (!form.names_nothing() && resource.ids().any(|id| reject.selects_id(&id)))
        });
        if is_rejected
            || !selector.selects_metadata(resource)
            || !resource.ids().any(|id| selector.selects_id(&id))
        {
            continue;
        }
        for path in paths {
            write_field(resource, path, value, &target.options)?;
        }
    }
    Ok(())
}

fn write_field(
    resource: &mut Resource,
    field_path: &str,
    value: &Value,
    options: &FieldOptions,
) -> Result<()> {
    let names = path::split_with_brackets(field_path);
    if write_inside_text(&mut resource.value, &names, value, options)? {
        return Ok(());
    }
    let create = options.create.then(|| Kind::of(value));
    let found = value_path::for_each(&mut resource.value, &names, create, &mut |field| {
        set_field(field, value, options)
    });
    let problem = match found {
        Ok(0) => None,
        Ok(_) => return Ok(()),
        Err(problem) => Some(problem.message),
    };
    let or_create = if options.create { " or create" } else { "" };
    let because = problem.map_or_else(String::new, |problem| format!(": {problem}"));
    let message = format!(
        "unable to find{or_create} field {field_path:?} in the replacement target {}{because}",
        resource.id()
    );
    Err(Problem::new(message))
}

/// Writes the source into one field. A scalar keeps its type.
fn set_field(field: &mut Value, value: &Value, options: &FieldOptions) -> Result<()> {
    let mut text = scalar_text(value);
    if !options.delimiter.is_empty() {
        let before = match &*field {
            Value::Null => String::new(),
            field => delimited(field)?,
        };
        let mut parts: Vec<&str> = before.split(&options.delimiter).collect();
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, &text),
            Ok(index) if index >= parts.len() => parts.push(&text),
            Ok(index) => parts[index] = &text,
        }
        text = parts.join(&options.delimiter);
    }
    *field = match &*field {
        Value::Object(_) | Value::Array(_) if options.delimiter.is_empty() => value.clone(),
        Value::Object(_) | Value::Array(_) | Value::String(_) => Value::String(text),
        Value::Null if value.is_object() || value.is_array() => value.clone(),
        Value::Null => plain_scalar(&text),
        typed => {
            let replaced = plain_scalar(&text);
            if type_name(&replaced) != type_name(typed) {
                let message = format!(
                    "{text:?} is written to a field that is a {}",
                    type_name(typed)
                );
                return Err(Problem::new(message));
            }
            replaced
        }
    };
    Ok(())
}

/// Writes into YAML or JSON that is the text of a field, if the path leads into one.
fn write_inside_text(
    value: &mut Value,
    names: &[String],
    source: &Value,
    options: &FieldOptions,
) -> Result<bool> {
    for length in 1..names.len() {
        let (outer, inner) = names.split_at(length);
        let Ok(Some(Value::String(text))) = value_path::lookup(value, outer) else {
            continue;
        };
        let reading = YamlOptions {
            dialect: Dialect::GoYamlV3,
            ..YamlOptions::default()
        };
        let Ok(mut content) = value_from_yaml_with(text, reading) else {
            continue;
        };
        let create = options.create.then(|| Kind::of(source));
        let found = value_path::for_each(&mut content, inner, create, &mut |field| {
            set_field(field, source, options)
        });
        if !matches!(found, Ok(1..)) {
            return Ok(false);
        }
        let written = serialize(&content, text);
        value_path::for_each(value, outer, None, &mut |field| {
            *field = Value::String(written.clone());
            Ok(())
        })?;
        return Ok(true);
    }
    Ok(false)
}

/// Content in the format that its text had before.
fn serialize(content: &Value, before: &str) -> String {
    if !before.trim_start().starts_with(['{', '[']) {
        return to_yaml(content).trim().to_owned();
    }
    if before.contains('\n') && before.contains("  ") {
        return marshal::to_json_indented(content, "  ");
    }
    marshal::to_json(content)
}
