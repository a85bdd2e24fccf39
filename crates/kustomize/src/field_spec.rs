//! Walks to the fields that a [`FieldSpec`] names.

use serde_json::{Map, Value};

use crate::config::FieldSpec;
use crate::error::{Problem, Result};
use crate::id::Gvk;

/// What a missing field is made of, if the spec wants it to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nothing: the spec's wish is ignored.
    Leave,
    /// A mapping.
    Mapping,
    /// A scalar, which is an empty string until it is set.
    Scalar,
}

/// Calls `set` for every field of the object that the spec names.
pub(crate) fn visit(
    object: &mut Value,
    spec: &FieldSpec,
    missing: Missing,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<()> {
    let gvk = Gvk::of(object);
    if !gvk.is_selected_by(&spec.gvk) {
        return Ok(());
    }
    let missing = if spec.create { missing } else { Missing::Leave };
    visit_path(object, &spec.path, missing, set).map_err(|mut problem| {
        problem.message = format!(
            "considering field '{}' of {gvk}: {}",
            spec.path.join("/"),
            problem.message
        );
        problem
    })
}

/// [`visit`] whatever the kind of the object.
pub(crate) fn visit_path(
    value: &mut Value,
    path: &[String],
    missing: Missing,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<()> {
    let Some((name, rest)) = path.split_first() else {
        return set(value);
    };
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| visit_path(item, path, missing, set)),
        Value::Object(members) => match field(members, name, rest, missing)? {
            Some(member) => visit_path(member, rest, missing, set),
            None => Ok(()),
        },
        _ => Err(Problem::new("expected a list or a mapping on the way")),
    }
}

fn field<'v>(
    members: &'v mut Map<String, Value>,
    name: &str,
    rest: &[String],
    missing: Missing,
) -> Result<Option<&'v mut Value>> {
    let list = name.strip_suffix("[]");
    let name = list.unwrap_or(name);
    if name.is_empty() {
        return Err(Problem::new("a path contains an empty field name"));
    }
    let blank = match (missing, list) {
        (_, Some(_)) => Some(Value::Array(Vec::new())),
        (Missing::Leave, None) => None,
        (Missing::Scalar, None) if rest.is_empty() => Some(Value::from("")),
        (Missing::Mapping | Missing::Scalar, None) => Some(Value::Object(Map::new())),
    };
    let is_created = list.is_none() && blank.is_some();
    if is_created && !members.contains_key(name) {
        members.insert(name.to_owned(), Value::Null);
    }
    let member = members.get_mut(name);
    Ok(member.map(|member| {
        if let (Value::Null, Some(blank)) = (&*member, blank) {
            *member = blank;
        }
        member
    }))
}
