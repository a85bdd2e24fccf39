//! Configurations: Secrets with values that others refer to by name, shaped by a template if they name one.
//!
//! A template is CUE with `template.parameter`, `template.output` (the Secret) and `template.outputs` (further objects), and
//! says in `metadata` what people are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::workflow::names::{annotation, label};
use serde_json::{Map, Value, json};

use crate::definition::{Definition, StepData, describe};

/// The key of a configuration that holds its values.
pub const PROPERTIES: &str = "input-properties";
/// The key of a configuration that names the further objects that belong to it.
pub const REFERENCES: &str = "objects-reference";

/// What a configuration is made from.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The name of its template; empty if it has none.
    pub template: &'a str,
    /// Its values.
    pub values: &'a Value,
}

/// The objects that a configuration consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The Secret.
    pub secret: Value,
    /// Further objects.
    pub further: Vec<Value>,
}

/// The objects of a configuration; `source` is the text of its template.
pub fn render(wanted: &Wanted<'_>, source: Option<&str>) -> Result<Configuration, String> {
    let rendered = match source {
        None => Rendered::default(),
        Some(source) => evaluate(wanted, source)?,
    };
    let mut secret = rendered.output.unwrap_or_else(|| json!({}));
    if secret["kind"].as_str().is_some_and(|kind| kind != "Secret") {
        return Err(format!(
            "config template {:?}: output has to be a Secret, not a {}",
            wanted.template, secret["kind"]
        ));
    }
    secret["apiVersion"] = json!("v1");
    secret["kind"] = json!("Secret");
    secret["metadata"]["name"] = json!(wanted.name);
    secret["metadata"]["namespace"] = json!(wanted.namespace);
    secret["metadata"]["labels"][label::CONFIG_CATALOG] = json!(label::CONFIG_CATALOG_VALUE);
    let template = wanted.template.rsplit('/').next().unwrap_or_default();
    secret["metadata"]["labels"][label::CONFIG_TYPE] = json!(template);
    let annotations = &mut secret["metadata"]["annotations"];
    annotations[annotation::CONFIG_ALIAS] = json!(rendered.alias);
    annotations[annotation::CONFIG_DESCRIPTION] = json!(rendered.description);
    if rendered.is_sensitive {
        annotations[annotation::CONFIG_SENSITIVE] = json!("true");
    }
    secret["data"] = data(&secret, wanted.values, &rendered.outputs);
    if let Some(fields) = secret.as_object_mut() {
        fields.remove("stringData");
    }
    Ok(Configuration {
        secret,
        further: rendered.outputs,
    })
}

/// The content of the Secret, as it is stored.
fn data(secret: &Value, values: &Value, further: &[Value]) -> Value {
    let encode = |text: &str| json!(STANDARD.encode(text));
    let mut data = secret["data"].as_object().cloned().unwrap_or_default();
    for (key, value) in secret["stringData"].as_object().into_iter().flatten() {
        data.insert(key.clone(), encode(value.as_str().unwrap_or_default()));
    }
    data.insert(PROPERTIES.to_owned(), encode(&values.to_string()));
    if !further.is_empty() {
        let references: Vec<Value> = further.iter().map(reference).collect();
        data.insert(
            REFERENCES.to_owned(),
            encode(&Value::Array(references).to_string()),
        );
    }
    Value::Object(data)
}

fn reference(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "name": object["metadata"]["name"],
        "namespace": object["metadata"]["namespace"],
    })
}

/// What a template says with values.
#[derive(Debug, Default)]
struct Rendered {
    output: Option<Value>,
    outputs: Vec<Value>,
    alias: String,
    description: String,
    is_sensitive: bool,
}

fn evaluate(wanted: &Wanted<'_>, source: &str) -> Result<Rendered, String> {
    let said = |problem: String| format!("config template {:?}: {problem}", wanted.template);
    let data = StepData {
        context: json!({"name": wanted.name, "namespace": wanted.namespace}),
        parameter: json!({}),
    };
    let values = format!("template: parameter: {}\n", wanted.values);
    let definition = Definition::new(source);
    let evaluated = definition.evaluate(&data, &[("values", &values)]);
    let mut evaluation = evaluated.map_err(said)?;
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if !problems.is_empty() {
        return Err(said(describe(&problems)));
    }
    let mut at = |path: &[&str]| {
        let mut value = evaluation.root();
        for name in path {
            value = evaluation.lookup(value, name)?;
        }
        Some(
            evaluation
                .export_json(value)
                .map_err(|error| said(error.to_string())),
        )
    };
    if at(&["template", "validation"]).is_some() {
        return Err(said(
            "validation is not supported: leave template.validation out".to_owned(),
        ));
    }
    let metadata = match at(&["metadata"]) {
        Some(Ok(metadata)) => metadata,
        _ => Value::Null,
    };
    let output = at(&["template", "output"]).transpose()?;
    let outputs = at(&["template", "outputs"]).transpose()?;
    let outputs: Map<String, Value> = match outputs {
        Some(Value::Object(outputs)) => outputs,
        _ => Map::new(),
    };
    let outputs = outputs.into_values().map(|mut object| {
        if object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(wanted.namespace);
        }
        object
    });
    let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
    Ok(Rendered {
        output,
        outputs: outputs.collect(),
        alias: text("alias"),
        description: text("description"),
        is_sensitive: metadata["sensitive"] == true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = r#"
metadata: {name: "registry", alias: "Registry", description: "where images are", sensitive: true}
template: {
	parameter: {
		// +usage=Address
		host: string
		user: *"robot" | string
	}
	output: {
		apiVersion: "v1"
		kind:       "Secret"
		type:       "Opaque"
		metadata: {name: context.name, namespace: context.namespace}
		stringData: address: "\(parameter.user)@\(parameter.host)"
	}
	outputs: settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "\(context.name)-settings"
		data: host: parameter.host
	}
}
"#;

    fn wanted<'a>(template: &'a str, values: &'a Value) -> Wanted<'a> {
        Wanted {
            name: "hub",
            namespace: "shop",
            template,
            values,
        }
    }

    fn decoded(value: &Value) -> String {
        let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_template_shapes_the_secret_and_further_objects() {
        let values = json!({"host": "example.org"});
        let made = render(&wanted("system/registry", &values), Some(TEMPLATE)).unwrap();
        let secret = &made.secret;
        assert_eq!(decoded(&secret["data"]["address"]), "robot@example.org");
        assert_eq!(decoded(&secret["data"][PROPERTIES]), values.to_string());
        assert!(secret.get("stringData").is_none());
        assert_eq!(secret["metadata"]["labels"][label::CONFIG_TYPE], "registry");
        let annotations = &secret["metadata"]["annotations"];
        assert_eq!(annotations[annotation::CONFIG_ALIAS], "Registry");
        assert_eq!(annotations[annotation::CONFIG_SENSITIVE], "true");
        assert_eq!(made.further[0]["metadata"]["namespace"], "shop");
        assert!(decoded(&secret["data"][REFERENCES]).contains("hub-settings"));
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let values = json!({"host": 7});
        let problem = render(&wanted("registry", &values), Some(TEMPLATE)).unwrap_err();
        assert!(
            problem.contains("config template \"registry\"") && problem.contains("host"),
            "{problem}"
        );
        let other = TEMPLATE.replace("kind:       \"Secret\"", "kind:       \"Pod\"");
        let values = json!({"host": "h"});
        let problem = render(&wanted("registry", &values), Some(&other)).unwrap_err();
        assert!(problem.contains("has to be a Secret"), "{problem}");
    }

    #[test]
    fn without_a_template_there_are_only_the_values() {
        let values = json!({"volume": "11"});
        let made = render(&wanted("", &values), None).unwrap();
        assert_eq!(made.further, Vec::<Value>::new());
        assert_eq!(made.secret["data"].as_object().unwrap().len(), 1);
    }
}
