//! Embedded resources (`x-kubernetes-embedded-resource`): objects inside objects, whose type and
//! metadata are checked like those of any other.

use bellwether_json::name::dns_1035_label_problems;
use serde_json::{Map, Value};

use crate::field::{FieldError, FieldPath};
use crate::field_errors::FieldErrors;
use crate::meta::{Malformed, coerce_metadata};
use crate::model::Schema;

/// How the metadata of an embedded resource is validated; the rules for names, labels and the like
/// are those of all objects, and live with the kinds.
pub type MetadataCheck = fn(&Map<String, Value>, &FieldPath<'_>) -> Vec<FieldError>;

/// Reduces the metadata of embedded resources to what metadata knows, and returns the paths of what
/// was dropped, sorted.
pub fn coerce_embedded(
    value: &mut Value,
    schema: &Schema,
    malformed: Malformed,
) -> Result<Vec<String>, FieldError> {
    coerce_embedded_at(value, schema, malformed, &FieldPath::NIL)
}

/// As [`coerce_embedded`], for a value that is at `path`.
pub(crate) fn coerce_embedded_at(
    value: &mut Value,
    schema: &Schema,
    malformed: Malformed,
    path: &FieldPath<'_>,
) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    coerce(value, schema, malformed, path, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn coerce(
    value: &mut Value,
    schema: &Schema,
    malformed: Malformed,
    path: &FieldPath<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                coerce_resource(fields, malformed, path, unknown)?;
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    coerce(field, property, malformed, &path.child(name), unknown)?;
                } else if let Some(additional) = &schema.additional_properties {
                    coerce(field, additional, malformed, &path.key(name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else {
                return Ok(());
            };
            for (index, item) in items.iter_mut().enumerate() {
                coerce(item, schema, malformed, &path.index(index), unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    fields: &mut Map<String, Value>,
    malformed: Malformed,
    path: &FieldPath<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for name in ["apiVersion", "kind"] {
        let Some(value) = fields.get(name).filter(|value| !value.is_string()) else {
            continue;
        };
        if malformed == Malformed::Refuse {
            return Err(FieldError::invalid(
                &path.child(name),
                value.clone(),
                "must be a string",
            ));
        }
        fields.remove(name);
    }
    let Some(metadata) = fields.get_mut("metadata") else {
        return Ok(());
    };
    let path = path.child("metadata");
    match coerce_metadata(metadata, malformed) {
        Ok(found) => unknown.extend(found.into_iter().map(|name| format!("{path}.{name}"))),
        Err(error) if malformed == Malformed::Refuse => {
            return Err(FieldError::invalid(
                &path,
                metadata.clone(),
                error.to_string(),
            ));
        }
        // What cannot be repaired stays; validation will complain when it is written again.
        Err(_) => {}
    }
    Ok(())
}

/// What is wrong with the types and metadata of embedded resources.
pub fn check_embedded(
    value: &Value,
    schema: &Schema,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    check(value, schema, check_metadata, path, &mut errors);
    errors.into_vec()
}

fn check(
    value: &Value,
    schema: &Schema,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check_resource(fields, check_metadata, path, errors);
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(field, property, check_metadata, &path.child(name), errors);
                } else if let Some(additional) = &schema.additional_properties {
                    check(field, additional, check_metadata, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, schema, check_metadata, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

fn check_resource(
    fields: &Map<String, Value>,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, problem) in [
        ("apiVersion", api_version_problem as fn(&str) -> _),
        ("kind", kind_problem),
    ] {
        let Some(value) = fields.get(name) else {
            continue;
        };
        let problem = match value {
            Value::String(text) if text.is_empty() => Some("must not be empty".to_owned()),
            Value::String(text) => problem(text),
            _ => Some("must be a string".to_owned()),
        };
        if let Some(problem) = problem {
            errors.push(FieldError::invalid(
                &path.child(name),
                value.clone(),
                problem,
            ));
        }
    }
    let metadata_path = path.child("metadata");
    match fields.get("metadata") {
        None => {}
        Some(Value::Object(metadata)) => errors.extend(check_metadata(metadata, &metadata_path)),
        Some(other) => {
            let mut attempt = other.clone();
            if let Err(error) = coerce_metadata(&mut attempt, Malformed::Refuse) {
                errors.push(FieldError::invalid(
                    &metadata_path,
                    other.clone(),
                    error.to_string(),
                ));
            }
        }
    }
}

fn api_version_problem(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn kind_problem(text: &str) -> Option<String> {
    let problems = dns_1035_label_problems(&text.to_lowercase());
    let joined = problems.join(",");
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {joined}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    fn schema() -> Schema {
        let resource = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        parse(&json!({"type": "object", "properties": {
            "raw": resource,
            "list": {"type": "array", "items": resource},
            "map": {"type": "object", "additionalProperties": resource},
        }}))
        .unwrap()
    }

    fn no_check(_: &Map<String, Value>, path: &FieldPath<'_>) -> Vec<FieldError> {
        vec![FieldError::forbidden(path, "was looked at")]
    }

    #[track_caller]
    fn wrong(object: Value, expected: &[&str]) {
        let errors = check_embedded(&object, &schema(), no_check, &FieldPath::NIL);
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "{object}");
    }

    #[test]
    fn type_and_metadata_are_checked_everywhere() {
        wrong(json!({"raw": {"apiVersion": "v1", "kind": "Pod"}}), &[]);
        wrong(
            json!({"raw": {}, "list": [{"apiVersion": "", "kind": 3}]}),
            &[
                "list[0].apiVersion: Invalid value: \"\": must not be empty",
                "list[0].kind: Invalid value: 3: must be a string",
                "raw.apiVersion: Required value",
                "raw.kind: Required value",
            ],
        );
        wrong(
            json!({"map": {"k": {"apiVersion": "a/b/c", "kind": "A_b", "metadata": {}}}}),
            &[
                "map[k].apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "map[k].kind: Invalid value: \"A_b\": may have mixed case, but should otherwise match: \
                 a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
                 with an alphabetic character, and end with an alphanumeric character (e.g. \
                 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                "map[k].metadata: Forbidden: was looked at",
            ],
        );
        wrong(
            json!({"raw": {"apiVersion": "v1", "kind": "K", "metadata": 3}}),
            &[
                "raw.metadata: Invalid value: 3: json: cannot unmarshal number into Go value of type v1.ObjectMeta",
            ],
        );
    }

    #[test]
    fn metadata_is_coerced() {
        let mut object =
            json!({"raw": {"kind": "K", "metadata": {"name": "n", "odd": 1, "labels": null}}});
        let unknown = coerce_embedded(&mut object, &schema(), Malformed::Refuse).unwrap();
        assert_eq!(unknown, ["raw.metadata.odd"]);
        assert_eq!(
            object,
            json!({"raw": {"kind": "K", "metadata": {"name": "n"}}})
        );
    }

    #[test]
    fn malformed_types_are_refused_or_dropped() {
        let object = json!({"raw": {"kind": 3, "metadata": {"name": 4}}});
        let error = coerce_embedded(&mut object.clone(), &schema(), Malformed::Refuse).unwrap_err();
        assert_eq!(
            error.to_string(),
            "raw.kind: Invalid value: 3: must be a string"
        );
        let mut dropped = object;
        coerce_embedded(&mut dropped, &schema(), Malformed::Drop).unwrap();
        assert_eq!(dropped, json!({"raw": {"metadata": {}}}));
    }
}
