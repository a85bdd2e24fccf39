//! The functions that templates of policies have besides those of sprig.
//!
//! What a function needs from outside (objects, keys, the side) it asks the scene of the resolution
//! for, which answers with [`packed`] results.

use std::sync::LazyLock;

use bellwether_go::value::{IntKind, Type, Value};
use bellwether_json::yaml::{first_node, to_yaml_with};
use bellwether_template::{Call, Entry, Failure, Functions, Query, function, sprig, variadic};
use serde_json::json;

use super::{Request, Side, Source, yaml};

pub(super) const LOOKUP: &str = "lookup";
pub(super) const FROM_SECRET: &str = "fromSecret";
pub(super) const FROM_CONFIG_MAP: &str = "fromConfigMap";
pub(super) const COPY_SECRET: &str = "copySecretData";
pub(super) const COPY_CONFIG_MAP: &str = "copyConfigMapData";
pub(super) const FROM_CLAIM: &str = "fromClusterClaim";
pub(super) const LOOKUP_CLAIM: &str = "lookupClusterClaim";
pub(super) const GET_NODES: &str = "getNodesWithExactRoles";
pub(super) const HAS_NODES: &str = "hasNodesWithExactRoles";
pub(super) const PROTECT: &str = "protect";
pub(super) const SKIP: &str = "skipObject";
pub(super) const INDENTATION: &str = "indent";

/// The functions whose answers are packed.
const ASKED: [&str; 12] = [
    LOOKUP,
    FROM_SECRET,
    FROM_CONFIG_MAP,
    COPY_SECRET,
    COPY_CONFIG_MAP,
    FROM_CLAIM,
    LOOKUP_CLAIM,
    GET_NODES,
    HAS_NODES,
    PROTECT,
    SKIP,
    INDENTATION,
];

const STRING: Type = Type::String;
const ANY: Type = Type::Interface;

/// The functions.
const TABLE: &[Entry] = &[
    variadic(
        LOOKUP,
        &[STRING, STRING, STRING, STRING, STRING],
        |call, a| asked(call, LOOKUP, a),
    ),
    function(FROM_SECRET, &[STRING, STRING, STRING], |call, a| {
        asked(call, FROM_SECRET, a)
    }),
    function(FROM_CONFIG_MAP, &[STRING, STRING, STRING], |call, a| {
        asked(call, FROM_CONFIG_MAP, a)
    }),
    function(COPY_SECRET, &[STRING, STRING], |call, a| {
        asked(call, COPY_SECRET, a)
    }),
    function(COPY_CONFIG_MAP, &[STRING, STRING], |call, a| {
        asked(call, COPY_CONFIG_MAP, a)
    }),
    function(FROM_CLAIM, &[STRING], |call, a| asked(call, FROM_CLAIM, a)),
    function(LOOKUP_CLAIM, &[STRING], |call, a| {
        asked(call, LOOKUP_CLAIM, a)
    }),
    variadic(GET_NODES, &[STRING], |call, a| asked(call, GET_NODES, a)),
    variadic(HAS_NODES, &[STRING], |call, a| asked(call, HAS_NODES, a)),
    function(PROTECT, &[STRING], |call, a| asked(call, PROTECT, a)),
    function(INDENTATION, &[Type::Int(IntKind::Int), STRING], indent),
    function("autoindent", &[STRING], |_, _| {
        Err("an unexpected error occurred where autoindent could not be processed".into())
    }),
    function("toBool", &[STRING], |_, a| {
        let text = text(a.first());
        let is_true = matches!(&*text, "1" | "t" | "T" | "true" | "TRUE" | "True");
        Ok(Value::from(is_true))
    }),
    function("toLiteral", &[STRING], |_, a| {
        if text(a.first()).contains('\n') {
            return Err(
                "new lines are not allowed in the string passed to the toLiteral function".into(),
            );
        }
        Ok(a.first().cloned().unwrap_or_default())
    }),
    function("toYaml", &[ANY], to_yaml),
    function("toYAML", &[ANY], to_yaml),
    function("fromYaml", &[STRING], from_yaml),
    function("fromYAML", &[STRING], from_yaml),
];

/// Functions of sprig under other names.
const RENAMED: [(&str, &str); 10] = [
    ("base64enc", "b64enc"),
    ("base64dec", "b64dec"),
    ("toInt", "int"),
    ("toJSON", "toJson"),
    ("fromJSON", "fromJson"),
    ("toRawJSON", "toRawJson"),
    ("toPrettyJSON", "toPrettyJson"),
    ("mustToJSON", "mustToJson"),
    ("mustFromJSON", "mustFromJson"),
    ("mustToRawJSON", "mustToRawJson"),
];

/// Functions that read the environment of the process.
const RISKY: [&str; 2] = ["env", "expandenv"];

/// What a denied function fails with; [`name_denied`] puts its name in.
const DENIED: &str = "use of denylisted template function";

/// All functions that do not depend on the request.
static ALL: LazyLock<Functions> = LazyLock::new(|| {
    let known = || sprig::TABLES.iter().copied().flatten();
    let renamed = RENAMED.iter().filter_map(|(name, original)| {
        let entry = known().find(|entry| entry.name == *original)?;
        Some(Entry { name, ..*entry })
    });
    let renamed: Vec<Entry> = renamed.collect();
    Functions::sprig()
        .with(TABLE)
        .with(&renamed)
        .with(&RISKY.map(denied))
});

/// The functions that a template can call.
pub(super) fn of(request: &Request) -> Functions {
    let mut functions = ALL.clone();
    let is_definition = matches!(request.source, Source::Definition(_));
    if is_definition && request.context.side() == Side::Managed {
        functions = functions.with(&[variadic(SKIP, &[ANY], skip)]);
    }
    let names = functions.names();
    let names = names.filter(|name| request.denied.iter().any(|denied| denied == name));
    let entries: Vec<Entry> = names.map(denied).collect();
    functions.with(&entries)
}

const fn denied(name: &'static str) -> Entry {
    variadic(name, &[ANY], |_, _| {
        Err(Failure::Message(String::from(DENIED)))
    })
}

/// An error text with the name of the denied function that it is about, if there is one.
pub(super) fn name_denied(error: &str) -> String {
    let Some(before) = error.strip_suffix(DENIED) else {
        return error.to_owned();
    };
    let name = before
        .strip_suffix(": ")
        .and_then(|before| before.rsplit_once("error calling "))
        .map_or("", |(_, name)| name);
    let why = if RISKY.contains(&name) {
        "considered a security risk"
    } else {
        "not allowed"
    };
    format!("{error}: function '{name}' is {why}")
}

/// Whether the scene answers this function with a packed result.
pub(super) fn is_ours(function: &str) -> bool {
    ASKED.contains(&function)
}

/// A result as the answer to a query: a list of the value, or the text of the error.
pub(super) fn packed(result: Result<Value, String>) -> Value {
    match result {
        Ok(value) => Value::list(vec![value]),
        Err(message) => Value::from(message),
    }
}

fn unpacked(answer: &Value) -> Result<Value, Failure> {
    match answer {
        Value::List(items) => Ok(items.items().first().cloned().unwrap_or_default()),
        other => Err(Failure::Message(text(Some(other)))),
    }
}

/// Asks the scene. What is not known yet is nothing for now.
fn asked(
    call: &mut Call<'_>,
    function: &'static str,
    arguments: &[Value],
) -> Result<Value, Failure> {
    let arguments = arguments.iter().filter_map(Value::as_text).cloned();
    let query = Query {
        function,
        arguments: arguments.collect(),
    };
    let Some(answer) = call.ask(query) else {
        return Ok(Value::default());
    };
    let value = unpacked(&answer)?;
    call.steps(weight(&value))?;
    Ok(value)
}

/// The number of parts of a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 16,
        Value::List(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Map(map) => 1 + map.entries().values().map(weight).sum::<usize>(),
        _ => 1,
    }
}

fn text(argument: Option<&Value>) -> String {
    let text = argument.and_then(Value::as_text);
    text.map(|text| text.to_str().into_owned())
        .unwrap_or_default()
}

/// Indents every line but the first, and trims the result.
fn indent(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let more = match asked(call, INDENTATION, &[])? {
        Value::Int(_, more) => more,
        _ => 0,
    };
    let spaces = match arguments.first() {
        Some(Value::Int(_, spaces)) => spaces.saturating_add(more),
        _ => more,
    };
    let spaces = usize::try_from(spaces).map_err(|_| "strings: negative Repeat count")?;
    let text = text(arguments.get(1));
    let breaks = text.matches('\n').count();
    call.bytes(
        text.len()
            .saturating_add(breaks.saturating_add(1).saturating_mul(spaces)),
    )?;
    let line = format!("\n{}", " ".repeat(spaces));
    Ok(Value::from(text.replace('\n', &line).trim()))
}

fn to_yaml(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let value = arguments.first().cloned().unwrap_or_default();
    let json = match &value {
        Value::Map(map) if map.is_nil() => json!({}),
        Value::List(list) if list.is_nil() => json!([]),
        value => value
            .to_json_with_floats()
            .map_err(|error| Failure::Message(error.to_string()))?,
    };
    let text = to_yaml_with(&json, yaml::STYLE);
    call.text(text.strip_suffix('\n').unwrap_or(&text))
}

fn from_yaml(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let text = text(arguments.first());
    call.bytes(text.len())?;
    let node = first_node(&text).map_err(|error| Failure::Message(error.to_string()))?;
    let value = yaml::to_value(node);
    call.steps(weight(&value))?;
    Ok(value)
}

/// Notes that the object is left out, unless the argument is false.
fn skip(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let skips = match arguments {
        [] => true,
        [Value::Bool(skips)] => *skips,
        [other] => {
            let shown = bellwether_go::print::text(other);
            return Err(format!("expected boolean but received '{shown}'").into());
        }
        more => {
            let count = more.len();
            return Err(format!(
                "expected one optional boolean argument but received {count} arguments"
            )
            .into());
        }
    };
    if skips {
        asked(call, SKIP, &[])?;
    }
    Ok(Value::from(""))
}
