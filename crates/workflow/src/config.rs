//! Configurations: Secrets with values that others refer to by name, shaped by a template if they name one.
//!
//! A template is CUE with `template.parameter`, `template.output` (the Secret) and `template.outputs` (further objects), and
//! says in `metadata` what people are shown. `template.validation.$returns` says whether the values will do; for that, a template
//! may have actions that read something. [`Draft`] says which is next.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::workflow::names::{annotation, label};
use serde_json::{Map, Value, json};

use crate::action::{self, Effect};
use crate::definition::{Definition, StepData};
use crate::session::{Call, Found, Session};

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

/// A configuration that is being made.
#[derive(Debug)]
pub struct Draft<'a> {
    wanted: Wanted<'a>,
    session: Option<Session>,
}

/// What comes next while a configuration is made.
#[derive(Debug)]
pub enum Next {
    /// An action of the template, which only reads something.
    Call(Box<Call>),
    /// Nothing: these are its objects.
    Made(Box<Configuration>),
}

impl<'a> Draft<'a> {
    /// Begins to make a configuration; `source` is the text of its template.
    pub fn new(wanted: Wanted<'a>, source: Option<&str>) -> Result<Self, String> {
        let data = StepData {
            context: json!({"name": wanted.name, "namespace": wanted.namespace}),
            parameter: json!({}),
        };
        let begin = |source: &str| -> Result<Session, String> {
            let definition = Arc::new(Definition::new(source));
            let mut session = Session::new(definition, data)?;
            session.fill(&["template", "parameter"], wanted.values);
            Ok(session)
        };
        let session = source.map(begin).transpose();
        let session = session.map_err(|problem| in_template(&wanted, &problem))?;
        Ok(Self { wanted, session })
    }

    /// Finds the next action, or the objects of the configuration if there is none.
    pub fn advance(&mut self) -> Result<Next, String> {
        let wanted = &self.wanted;
        let Some(session) = &mut self.session else {
            let made = objects(wanted, Rendered::default())?;
            return Ok(Next::Made(Box::new(made)));
        };
        loop {
            let call = match session.run() {
                Found::Call(call) => call,
                Found::Failed(problem) => return Err(in_template(wanted, &problem)),
                Found::Wait { .. } => return Err(in_template(wanted, "it cannot wait")),
                Found::Done => {
                    let rendered = rendered(wanted, session)?;
                    return Ok(Next::Made(Box::new(objects(wanted, rendered)?)));
                }
            };
            match action::effect(&call.name, &call.params) {
                Effect::Observe if !call.name.starts_with("builtin.") => {
                    return Ok(Next::Call(call));
                }
                Effect::Pure => {}
                _ => {
                    let problem = format!("{}: {} does more than read", call.path, call.name);
                    return Err(in_template(wanted, &problem));
                }
            }
            let result = action::pure(&call.name, &call.params);
            let result = result.unwrap_or_else(|| Err("not available here".to_owned()));
            let filled = result.and_then(|result| session.complete(&call, &result));
            filled.map_err(|problem| in_template(wanted, &format!("{}: {problem}", call.path)))?;
        }
    }

    /// Takes in what came of an action.
    pub fn complete(&mut self, call: &Call, result: &Result<Value, String>) -> Result<(), String> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let filled = match result {
            Ok(value) => session.complete(call, value),
            Err(problem) => Err(problem.clone()),
        };
        filled.map_err(|problem| in_template(&self.wanted, &format!("{}: {problem}", call.path)))
    }
}

/// A problem with a template, named.
fn in_template(wanted: &Wanted<'_>, problem: &str) -> String {
    format!("config template {:?}: {problem}", wanted.template)
}

/// The objects of a configuration.
fn objects(wanted: &Wanted<'_>, rendered: Rendered) -> Result<Configuration, String> {
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

/// What a template says when its actions are carried out; values that it does not take are an error.
fn rendered(wanted: &Wanted<'_>, session: &mut Session) -> Result<Rendered, String> {
    let mut at = |path: &[&str]| {
        let value = session.get(path)?;
        Some(value.map_err(|problem| in_template(wanted, &problem)))
    };
    if let Some(validation) = at(&["template", "validation"]).transpose()? {
        check(&validation).map_err(|problem| in_template(wanted, &problem))?;
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

/// What the validation of a template found.
fn check(validation: &Value) -> Result<(), String> {
    let found = &validation["$returns"];
    match found["result"].as_bool() {
        Some(true) => Ok(()),
        Some(false) => match found["message"].as_str().unwrap_or_default() {
            "" => Err("the values are not valid".to_owned()),
            message => Err(format!("the values are not valid: {message}")),
        },
        None => Err("validation.$returns.result has to be true or false".to_owned()),
    }
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

    /// Makes a configuration whose template has no actions.
    fn render(wanted: &Wanted<'_>, source: Option<&str>) -> Result<Configuration, String> {
        match Draft::new(*wanted, source)?.advance()? {
            Next::Made(made) => Ok(*made),
            Next::Call(call) => panic!("{} is not expected", call.name),
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

    #[track_caller]
    fn check_validation(validation: &str, expected: Result<(), &str>) {
        let source = format!("{TEMPLATE}\ntemplate: {{parameter: _, validation: {validation}}}");
        let values = json!({"host": "example.org"});
        let made = render(&wanted("registry", &values), Some(&source)).map(drop);
        let expected = expected.map_err(|text| format!("config template \"registry\": {text}"));
        assert_eq!(made, expected);
    }

    #[test]
    fn a_template_says_which_values_will_do() {
        let of = |result: &str| format!("$returns: {{result: {result}, message: \"too short\"}}");
        check_validation(&of("len(parameter.host) > 3"), Ok(()));
        check_validation(
            &of("len(parameter.host) > 30"),
            Err("the values are not valid: too short"),
        );
        check_validation("$returns: result: false", Err("the values are not valid"));
        check_validation(
            "{}",
            Err("validation.$returns.result has to be true or false"),
        );
    }

    #[test]
    fn a_template_may_read_but_not_write() {
        let of = |action: &str| {
            format!(
                "import \"vela/http\"\n{TEMPLATE}\ntemplate: {{\nparameter: _\nask: http.#{action} & {{$params: url: \"https://\\(parameter.host)\"}}\nvalidation: $returns: result: ask.$returns.statusCode == 200\n}}"
            )
        };
        let values = json!({"host": "example.org"});
        let wanted = wanted("registry", &values);
        for (code, is_valid) in [(200, true), (503, false)] {
            let mut draft = Draft::new(wanted, Some(&of("HTTPGet"))).unwrap();
            let Ok(Next::Call(call)) = draft.advance() else {
                panic!("the address is asked first");
            };
            assert_eq!(call.params["url"], "https://example.org");
            let answer = Ok(json!({"statusCode": code, "body": ""}));
            draft.complete(&call, &answer).unwrap();
            assert_eq!(draft.advance().is_ok(), is_valid);
        }
        let mut draft = Draft::new(wanted, Some(&of("HTTPPost"))).unwrap();
        let problem = draft.advance().unwrap_err();
        assert!(problem.contains("does more than read"), "{problem}");
    }
}
