//! The forms in which objects are printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::str::FromStr;

use bellwether_json::yaml::to_yaml;
use bellwether_jsonpath::JsonPath;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use crate::error::Error;
use crate::table;
use crate::types::Type;

/// A form of output, as `-o` names it.
#[derive(Debug, Clone)]
pub enum Output {
    /// Columns as the server has them; `wide` shows more of them.
    Table {
        /// Whether to show all columns.
        wide: bool,
    },
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// `type/name`
    Name,
    /// A JSONPath template.
    JsonPath(JsonPath),
    /// Columns of the user's own: a header and a path each.
    Columns(Vec<(String, JsonPath)>),
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (form, argument) = text.split_once('=').unwrap_or((text, ""));
        let template = |text: &str, relaxed: bool| {
            let parsed = if relaxed {
                JsonPath::parse_relaxed(text)
            } else {
                JsonPath::parse(text)
            };
            parsed
                .map(|path| path.allow_missing_keys(true))
                .map_err(|error| format!("error parsing jsonpath {text}: {error}"))
        };
        match form {
            "wide" => Ok(Self::Table { wide: true }),
            "table" => Ok(Self::Table { wide: false }),
            "yaml" => Ok(Self::Yaml),
            "json" => Ok(Self::Json),
            "name" => Ok(Self::Name),
            "jsonpath" if !argument.is_empty() => Ok(Self::JsonPath(template(argument, false)?)),
            "custom-columns" if !argument.is_empty() => argument
                .split(',')
                .map(|column| match column.split_once(':') {
                    Some((header, path)) => Ok((header.to_owned(), template(path, true)?)),
                    None => Err(format!("{column:?} is not HEADER:PATH")),
                })
                .collect::<Result<_, _>>()
                .map(Self::Columns),
            _ => Err(
                "one of: table, wide, yaml, json, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,…"
                    .to_owned(),
            ),
        }
    }
}

/// Objects that have been read: one that was asked for by its name, or a list.
pub(crate) struct Found {
    pub(crate) objects: Vec<(Type, Value)>,
    /// Whether exactly one was asked for.
    pub(crate) single: bool,
    /// Whether columns have headers.
    pub(crate) headers: bool,
}

impl Found {
    /// As one document.
    fn document(&self) -> Value {
        match &*self.objects {
            [(_, object)] if self.single => object.clone(),
            objects => {
                let items: Vec<&Value> = objects.iter().map(|(_, object)| object).collect();
                json!({
                    "apiVersion": "v1", "kind": "List", "items": items,
                    "metadata": {"resourceVersion": ""},
                })
            }
        }
    }
}

/// Prints objects in any form but a table of the server's.
pub(crate) fn print(out: &mut dyn Write, output: &Output, found: &Found) -> Result<(), Error> {
    match output {
        Output::Table { .. } => {}
        Output::Yaml => out.write_all(to_yaml(&found.document()).as_bytes())?,
        Output::Json => writeln!(out, "{}", pretty(&found.document()))?,
        Output::Name => {
            for (kind, object) in &found.objects {
                writeln!(out, "{}", kind.named(name(object)))?;
            }
        }
        Output::JsonPath(path) => {
            let text = path
                .render(&found.document())
                .map_err(|error| Error::Usage(format!("error executing jsonpath: {error}")))?;
            write!(out, "{text}")?;
        }
        Output::Columns(columns) => {
            let headers = columns.iter().map(|(header, _)| header.clone()).collect();
            let rows = found.objects.iter().map(|(_, object)| {
                let cell = |path: &JsonPath| {
                    let found = path.find(object).unwrap_or_default();
                    let texts: Vec<String> = found.into_iter().flatten().map(go_form).collect();
                    match texts.join(",") {
                        empty if empty.is_empty() => "<none>".to_owned(),
                        text => text,
                    }
                };
                columns.iter().map(|(_, path)| cell(path)).collect()
            });
            let headers = found.headers.then_some(headers);
            let lines = headers.into_iter().chain(rows).collect::<Vec<_>>();
            table::write(out, &lines)?;
        }
    }
    Ok(())
}

/// A value as Go prints it.
fn go_form(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_form).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            let members: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", go_form(value)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What nobody wants to read unless they ask for it.
pub(crate) fn hide_managed_fields(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}

/// JSON as kubectl prints it: four spaces, keys in order.
fn pretty(value: &Value) -> String {
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(b"    ");
    let mut serializer = Serializer::with_formatter(&mut text, formatter);
    // Writing to memory cannot fail, and what has been parsed can be written.
    let _ = serde::Serialize::serialize(&Sorted(value), &mut serializer);
    String::from_utf8_lossy(&text).into_owned()
}

/// JSON without spaces, keys in order.
pub(crate) fn compact(value: &Value) -> String {
    serde_json::to_string(&Sorted(value)).unwrap_or_default()
}

/// A value whose keys are written in order.
struct Sorted<'a>(&'a Value);

impl serde::Serialize for Sorted<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let ordered: BTreeMap<&String, Sorted<'_>> = members
                    .iter()
                    .map(|(key, value)| (key, Sorted(value)))
                    .collect();
                serializer.collect_map(ordered)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_forms_and_bad_templates_are_refused_with_the_known_ones() {
        let error = |text: &str| text.parse::<Output>().unwrap_err();
        assert!(error("xml").starts_with("one of: table"));
        assert!(error("jsonpath=").starts_with("one of: table"));
        assert!(error("jsonpath={.a").starts_with("error parsing jsonpath {.a"));
        assert!(error("custom-columns=A").contains("is not HEADER:PATH"));
    }

    #[test]
    fn json_has_its_keys_in_order() {
        let value = json!({"b": [{"d": 1, "c": 2}], "a": {}});
        assert_eq!(
            pretty(&value),
            "{\n    \"a\": {},\n    \"b\": [\n        {\n            \"c\": 2,\n            \"d\": 1\n        }\n    ]\n}"
        );
    }
}
