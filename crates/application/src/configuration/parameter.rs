//! Parameters of Components: which values an ApplicationConfiguration gives, and where a workload gets them.

use bellwether_api::meta::IntOrString;
use bellwether_api::oam::{ComponentParameter, ParameterValue};
use serde_json::Value;

use crate::path;

/// Why parameters cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A value for a parameter that the Component does not have.
    #[error("unsupported parameter {0:?}")]
    Unsupported(String),
    /// A parameter that has to be given.
    #[error("required parameter {0:?} not specified")]
    Missing(String),
    /// A field cannot be set.
    #[error("cannot set parameter {name:?}: {reason}")]
    Path {
        /// The parameter.
        name: String,
        /// What is wrong with the path.
        reason: String,
    },
}

/// Sets the values of parameters in a workload. Of two values of a parameter the later one counts.
pub fn set(
    workload: &mut Value,
    parameters: &[ComponentParameter],
    values: &[ParameterValue],
) -> Result<(), ParameterError> {
    let is_known = |value: &&ParameterValue| {
        let mut known = parameters.iter();
        known.any(|parameter| parameter.name == value.name)
    };
    if let Some(unknown) = values.iter().find(|value| !is_known(value)) {
        return Err(ParameterError::Unsupported(unknown.name.clone()));
    }
    for parameter in parameters {
        let given = values.iter().rfind(|value| value.name == parameter.name);
        let Some(given) = given else {
            if parameter.required.unwrap_or_default() {
                return Err(ParameterError::Missing(parameter.name.clone()));
            }
            continue;
        };
        for field in &parameter.field_paths {
            let steps = path::parse(field).map_err(|reason| ParameterError::Path {
                name: parameter.name.clone(),
                reason,
            })?;
            path::set(workload, &steps, value_of(&given.value));
        }
    }
    Ok(())
}

fn value_of(value: &IntOrString) -> Value {
    match value {
        IntOrString::Int(number) => (*number).into(),
        IntOrString::String(text) => text.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(values: Value, expected: Result<Value, &str>) {
        let parameters: Vec<ComponentParameter> = serde_json::from_value(json!([
            {"name": "image", "required": true, "fieldPaths": ["spec.containers[0].image"]},
            {"name": "replicas", "fieldPaths": ["spec.replicas", "metadata.labels[\"example.com/replicas\"]"]},
            {"name": "broken", "fieldPaths": ["spec["]},
        ]))
        .unwrap();
        let values: Vec<ParameterValue> = serde_json::from_value(values).unwrap();
        let mut workload = json!({"spec": {"containers": [{"name": "web", "image": "old"}]}});
        let found = set(&mut workload, &parameters, &values).map(|()| workload);
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn values_get_to_their_fields_as_numbers_and_texts() {
        check(
            json!([{"name": "image", "value": "new"}]),
            Ok(json!({"spec": {"containers": [{"name": "web", "image": "new"}]}})),
        );
        check(
            json!([{"name": "image", "value": "new"}, {"name": "replicas", "value": 3}]),
            Ok(
                json!({"spec": {"containers": [{"name": "web", "image": "new"}], "replicas": 3},
                "metadata": {"labels": {"example.com/replicas": 3}}}),
            ),
        );
    }

    #[test]
    fn values_have_to_be_those_of_the_component() {
        check(
            json!([{"name": "colour", "value": "red"}]),
            Err("unsupported parameter \"colour\""),
        );
        check(json!([]), Err("required parameter \"image\" not specified"));
        check(
            json!([{"name": "image", "value": "a"}, {"name": "broken", "value": "b"}]),
            Err("cannot set parameter \"broken\": \"spec[\": \"[\" without \"]\""),
        );
    }
}
