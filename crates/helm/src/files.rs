//! `.Files`: the files of a chart that are not templates, a map of bytes with methods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use bellwether_go::value::{List, Map, Meter, Method, Named, Text, Type, UintKind, Value};
use serde_json::Value as Json;

use crate::chart::File;
use crate::glob;

static BYTES: Type = Type::List(&Type::Uint(UintKind::Uint8));

static FILES: Named = Named {
    name: "engine.files",
    methods: &[
        Method {
            name: "Get",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, meter| {
                let content = content(receiver, arguments);
                let bytes = bytes_of(&content);
                meter.charge(bytes.len())?;
                Ok(Value::String(Text::from(&*bytes)))
            },
        },
        Method {
            name: "GetBytes",
            parameters: &[Type::String],
            is_variadic: false,
            body: |receiver, arguments, _| Ok(content(receiver, arguments)),
        },
        Method {
            name: "Glob",
            parameters: &[Type::String],
            is_variadic: false,
            body: matching,
        },
        Method {
            name: "AsConfig",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, meter| {
                let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
                as_yaml(receiver, text, meter)
            },
        },
        Method {
            name: "AsSecrets",
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, meter| {
                let engine = base64::engine::general_purpose::STANDARD;
                as_yaml(receiver, |content| engine.encode(content), meter)
            },
        },
        Method {
            name: "Lines",
            parameters: &[Type::String],
            is_variadic: false,
            body: lines,
        },
    ],
};

/// The files as a value for templates.
pub(crate) fn value(files: &[File]) -> Value {
    let entry = |file: &File| {
        let content = List::bytes(Arc::clone(&file.data));
        (Text::from(&*file.name), Value::List(content))
    };
    named(files.iter().map(entry).collect())
}

fn named(files: BTreeMap<Text, Value>) -> Value {
    Value::Map(Map::new(&BYTES, files).with_name(&FILES))
}

/// The file that the first argument names; without it, no bytes.
fn content(receiver: &Value, arguments: &[Value]) -> Value {
    let name = text_of(arguments.first());
    let found = receiver
        .as_map()
        .and_then(|files| files.get(name.as_bytes()));
    found.unwrap_or_else(|| Value::List(List::bytes(Arc::from([]))))
}

fn bytes_of(content: &Value) -> Cow<'_, [u8]> {
    let bytes = content.as_list().and_then(List::as_bytes);
    bytes.unwrap_or_default()
}

/// The files whose paths match a pattern; all of them for what is not a pattern, as in Helm.
fn matching(receiver: &Value, arguments: &[Value], meter: &mut dyn Meter) -> Result<Value, String> {
    let pattern = text_of(arguments.first());
    let mut found = BTreeMap::new();
    let files = receiver.as_map().map(Map::entries).unwrap_or_default();
    for (name, content) in files.iter() {
        meter.charge(name.len() * (pattern.len() + 1))?;
        if glob::matches(&pattern, &name.to_str()).unwrap_or(true) {
            found.insert(name.clone(), content.clone());
        }
    }
    Ok(named(found))
}

/// Base names and contents as YAML.
fn as_yaml(
    receiver: &Value,
    text: impl Fn(&[u8]) -> String,
    meter: &mut dyn Meter,
) -> Result<Value, String> {
    let files = receiver.as_map().map(Map::entries).unwrap_or_default();
    let mut members = serde_json::Map::new();
    for (name, content) in files.iter() {
        let content = bytes_of(content);
        meter.charge(content.len())?;
        let name = name.to_str();
        let base = name.rsplit('/').next().unwrap_or(&name);
        members.insert(base.to_owned(), Json::String(text(&content)));
    }
    let yaml = bellwether_json::yaml::to_yaml(&Json::Object(members));
    Ok(Value::from(yaml.trim_end_matches('\n')))
}

fn lines(receiver: &Value, arguments: &[Value], meter: &mut dyn Meter) -> Result<Value, String> {
    let content = content(receiver, arguments);
    let bytes = bytes_of(&content);
    meter.charge(bytes.len())?;
    if bytes.is_empty() {
        return Ok(Value::strings(Vec::<String>::new()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    meter.charge(text.split('\n').count().saturating_mul(size_of::<Value>()))?;
    Ok(Value::strings(text.split('\n')))
}

/// An argument that is a string.
pub(crate) fn text_of(argument: Option<&Value>) -> String {
    match argument {
        Some(Value::String(text)) => text.to_str().into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_go::print;
    use bellwether_go::value::Unmetered;

    use super::*;

    fn files() -> Value {
        let file = |name: &str, data: &str| File {
            name: name.into(),
            data: data.as_bytes().into(),
        };
        value(&[file("a.txt", "x\ny\n"), file("sub/b.txt", "z")])
    }

    fn call(name: &str, argument: &str) -> String {
        let files = files();
        let method = FILES.method(name.as_bytes()).unwrap();
        let arguments = [Value::from(argument)];
        print::text(&(method.body)(&files, &arguments, &mut Unmetered).unwrap())
    }

    #[test]
    fn files_are_a_map_of_bytes() {
        assert_eq!(
            print::text(&files()),
            "map[a.txt:[120 10 121 10] sub/b.txt:[122]]"
        );
        assert_eq!(call("Get", "sub/b.txt"), "z");
        assert_eq!(call("GetBytes", "none"), "[]");
        assert_eq!(call("Lines", "a.txt"), "[x y]");
        assert_eq!(call("AsConfig", ""), "a.txt: |\n  x\n  y\nb.txt: z");
    }

    #[test]
    fn what_is_not_a_pattern_matches_every_file() {
        assert_eq!(call("Glob", "sub/*"), "map[sub/b.txt:[122]]");
        assert_eq!(call("Glob", "["), print::text(&files()));
        let none = value(&[]);
        let method = FILES.method(b"AsConfig").unwrap();
        let yaml = (method.body)(&none, &[], &mut Unmetered).unwrap();
        assert_eq!(print::text(&yaml), "{}");
    }
}
