//! The functions that Helm adds to those of sprig.

use bellwether_go::json as go_json;
use bellwether_go::quote::quote;
use bellwether_go::value::{Type, Value};
use bellwether_json::yaml::{first_from_yaml, to_yaml};
use bellwether_template::{Call, Entry, Failure, Phase, Query, function};
use serde_json::Value as Json;

/// How often `include` may be inside of itself, by one name.
const MAX_INCLUDES: usize = 1_000;

/// What a message of `fail` and `required` stands between, so that it is found in the error.
pub(crate) const MARK_START: &str = "HELM_ERR_START";
pub(crate) const MARK_END: &str = "HELM_ERR_END";

/// The name under which the text of `tpl` is executed.
const TPL: &str = "gotpl";

/// The functions.
pub(crate) const TABLE: &[Entry] = &[
    function("include", &[Type::String, Type::Interface], include),
    function("tpl", &[Type::String, Type::Interface], tpl),
    function("required", &[Type::String, Type::Interface], required),
    function("fail", &[Type::String], |_, arguments| {
        Err(marked(&text(arguments.first())))
    }),
    function(
        "lookup",
        &[Type::String, Type::String, Type::String, Type::String],
        |call, arguments| Ok(looked_up(call, arguments)),
    ),
    function("toYaml", &[Type::Interface], |call, arguments| {
        match yaml(arguments.first()) {
            Ok(text) => call.text(text),
            Err(_) => call.text(""),
        }
    }),
    function("toYamlPretty", &[Type::Interface], |call, arguments| {
        let value = arguments.first().cloned().unwrap_or_default();
        let json = value
            .to_json_with_floats()
            .map_err(|error| Failure::Message(error.to_string()))?;
        let style = bellwether_json::yaml::YamlStyle {
            indent_lists: true,
            is_direct: true,
            ..bellwether_json::yaml::YamlStyle::default()
        };
        let text = bellwether_json::yaml::to_yaml_with(&json, style);
        call.text(text.trim_end_matches('\n').to_owned())
    }),
    function("fromYaml", &[Type::String], |call, arguments| {
        let read = read(call, arguments, value_from_yaml_text)?;
        Ok(match read {
            Ok(Json::Object(members)) => Value::from_json(&Json::Object(members)),
            Ok(Json::Null) => Value::map::<&str>([]),
            Ok(other) => failed(&wrong_type(&other, "map[string]interface {}")),
            Err(message) => failed(&message),
        })
    }),
    function("fromYamlArray", &[Type::String], |call, arguments| {
        let read = read(call, arguments, value_from_yaml_text)?;
        Ok(match read {
            Ok(items @ Json::Array(_)) => Value::from_json(&items),
            Ok(Json::Null) => Value::list(Vec::new()),
            Ok(other) => Value::list(vec![Value::from(wrong_type(&other, "[]interface {}"))]),
            Err(message) => Value::list(vec![Value::from(message)]),
        })
    }),
    function(
        "toJson",
        &[Type::Interface],
        |call, arguments| match compact(call, arguments) {
            Err(Failure::Message(_)) => call.text(""),
            written => written,
        },
    ),
    function("mustToJson", &[Type::Interface], compact),
    function("fromJson", &[Type::String], |call, arguments| {
        let read = read(call, arguments, |text| go_json::parse_json(text.as_bytes()))?;
        Ok(match read {
            Ok(members @ Json::Object(_)) => Value::from_json(&members),
            Ok(Json::Null) => Value::map::<&str>([]),
            Ok(other) => failed(&wrong_json(&other, "map[string]interface {}")),
            Err(message) => failed(&message),
        })
    }),
    function("fromJsonArray", &[Type::String], |call, arguments| {
        let read = read(call, arguments, |text| go_json::parse_json(text.as_bytes()))?;
        Ok(match read {
            Ok(items @ Json::Array(_)) => Value::from_json(&items),
            Ok(Json::Null) => Value::list(Vec::new()),
            Ok(other) => Value::list(vec![Value::from(wrong_json(&other, "[]interface {}"))]),
            Err(message) => Value::list(vec![Value::from(message)]),
        })
    }),
    function("getHostByName", &[Type::String], |_, _| Ok(Value::from(""))),
];

/// Functions of sprig that charts do not have: they would read the environment.
pub(crate) const WITHOUT: &[&str] = &["env", "expandenv"];

fn text(argument: Option<&Value>) -> String {
    match argument {
        Some(Value::String(text)) => text.to_str().into_owned(),
        _ => String::new(),
    }
}

fn marked(message: &str) -> Failure {
    Failure::Message(format!("{MARK_START}{message}{MARK_END}"))
}

fn include(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let name = text(arguments.first());
    let dot = arguments.get(1).cloned().unwrap_or_default();
    if call.enter(&name) > MAX_INCLUDES {
        call.leave(&name);
        return Err(Failure::Message(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    let result = call.execute(&name, &dot);
    call.leave(&name);
    match result {
        Some(output) => call.text(output?),
        None => Err(Failure::Message(format!(
            "template: no template {} associated with template {}",
            quote(&name),
            quote(TPL)
        ))),
    }
}

fn tpl(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let source = text(arguments.first());
    let dot = arguments.get(1).cloned().unwrap_or_default();
    match call.execute_text(TPL, &source, &dot) {
        Ok(output) => {
            let output = String::from_utf8_lossy(&output).replace("<no value>", "");
            call.text(output)
        }
        Err(error) => {
            let what = match error.phase() {
                Phase::Budget => return Err(error.into()),
                Phase::Parse => "cannot parse template",
                Phase::Execute => "error during tpl function execution for",
            };
            Err(Failure::Message(format!(
                "{what} {}: {error}",
                quote(&source)
            )))
        }
    }
}

fn required(_: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let value = arguments.get(1).cloned().unwrap_or_default();
    let is_missing = match &value {
        Value::Nil | Value::Invalid => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if is_missing {
        return Err(marked(&text(arguments.first())));
    }
    Ok(value)
}

/// Objects of the cluster are asked for; without an answer there is nothing.
fn looked_up(call: &mut Call<'_>, arguments: &[Value]) -> Value {
    let query = Query {
        function: "lookup",
        arguments: arguments
            .iter()
            .map(|argument| text(Some(argument)).into())
            .collect(),
    };
    call.ask(query).unwrap_or_else(|| Value::map::<&str>([]))
}

fn json(argument: Option<&Value>) -> Result<Json, Failure> {
    let value = argument.cloned().unwrap_or_default();
    value
        .to_json()
        .map_err(|error| Failure::Message(error.to_string()))
}

fn compact(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let mut out = Vec::new();
    let value = arguments.first().cloned().unwrap_or_default();
    match go_json::append(&mut out, &value, go_json::Style::COMPACT, call) {
        Ok(()) => Ok(Value::string(out)),
        Err(go_json::WriteError::Exhausted(message)) => Err(Failure::Exhausted(message)),
        Err(error) => Err(Failure::Message(error.to_string())),
    }
}

fn yaml(argument: Option<&Value>) -> Result<String, Failure> {
    let text = to_yaml(&json(argument)?);
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

type Reader = fn(&str) -> Result<Json, String>;

/// Reads a text; the outer error is that of the budget.
fn read(
    call: &mut Call<'_>,
    arguments: &[Value],
    reader: Reader,
) -> Result<Result<Json, String>, Failure> {
    let text = text(arguments.first());
    call.bytes(text.len())?;
    Ok(reader(&text))
}

fn value_from_yaml_text(text: &str) -> Result<Json, String> {
    first_from_yaml(text).map_err(|error| crate::error::yaml_text(&error))
}

/// What Go says of YAML that is of another type.
fn wrong_type(value: &Json, wanted: &str) -> String {
    let problem = wrong_json(value, wanted);
    format!("error unmarshaling JSON: while decoding JSON: {problem}")
}

/// What Go says of JSON that is of another type.
fn wrong_json(value: &Json, wanted: &str) -> String {
    let kind = match value {
        Json::Array(_) => "array",
        Json::Object(_) => "object",
        Json::String(_) => "string",
        Json::Bool(_) => "bool",
        _ => "number",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}

/// How `fromYaml` and `fromJson` report what is wrong.
fn failed(message: &str) -> Value {
    Value::map([("Error", Value::from(message))])
}
