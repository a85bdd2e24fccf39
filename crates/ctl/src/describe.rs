//! `describe`: an object at length, with its events.
//!
//! All kinds are shown in one way: the one in which kubectl shows kinds that it does not know.

use std::io::Write;

use bellwether_kinds::human as human_duration;
use jiff::Timestamp;
use serde_json::Value;

use crate::apply::LAST_APPLIED;
use crate::connection::Connection;
use crate::error::Error;
use crate::output::name;
use crate::request::{self, JSON, escape, with_query};
use crate::selection::{Scope, targets};
use crate::types::{Type, Types};

/// Between the columns of a block.
const PADDING: usize = 2;
/// How deep objects are shown.
const DEEPEST: usize = 64;

/// Words that are written in capitals.
const ACRONYMS: [&str; 7] = ["api", "guid", "id", "ip", "osb", "uid", "url"];

/// Shows objects at length, as of `now`.
pub async fn run(
    connection: &Connection,
    words: &[String],
    scope: &Scope,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let types = Types::discover(&connection.client).await?;
    let mut first = true;
    for target in targets(&types, words)? {
        for object in read(connection, scope, &target.kind, target.name.as_deref()).await? {
            let events = events(connection, &object).await?;
            if !std::mem::take(&mut first) {
                write!(out, "\n\n")?;
            }
            out.write_all(describe(&target.kind, &object, &events, now).as_bytes())?;
        }
    }
    Ok(())
}

async fn read(
    connection: &Connection,
    scope: &Scope,
    kind: &Type,
    name: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let name = name.map(escape);
    let query = [
        ("labelSelector", scope.labels.as_str()),
        ("fieldSelector", &scope.fields),
    ];
    let path = kind.path(scope.namespace(), name.as_deref());
    if name.is_some() {
        return Ok(vec![request::get(&connection.client, &path, JSON).await?]);
    }
    let path = with_query(&path, &query);
    let mut list = request::get(&connection.client, &path, JSON).await?;
    let Value::Array(mut items) = list["items"].take() else {
        return Ok(Vec::new());
    };
    for item in &mut items {
        item["apiVersion"] = kind.api_version().into();
        item["kind"] = kind.kind.as_str().into();
    }
    Ok(items)
}

/// The events about an object; events of the whole cluster are in the default namespace.
async fn events(connection: &Connection, object: &Value) -> Result<Vec<Value>, Error> {
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let selector = format!("involvedObject.uid={uid}");
    let path = with_query(&path, &[("fieldSelector", &selector)]);
    let mut list = request::get(&connection.client, &path, JSON).await?;
    let Value::Array(mut events) = list["items"].take() else {
        return Ok(Vec::new());
    };
    events.sort_by_key(last_seen);
    Ok(events)
}

fn last_seen(event: &Value) -> Option<Timestamp> {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let mut known = times.iter().filter_map(|time| time.as_str());
    known.find_map(|time| time.parse().ok())
}

/// An object and its events as text.
fn describe(kind: &Type, object: &Value, events: &[Value], now: Timestamp) -> String {
    let metadata = &object["metadata"];
    let mut page = Page::default();
    page.pair(0, "Name", name(object));
    page.pair(
        0,
        "Namespace",
        metadata["namespace"].as_str().unwrap_or_default(),
    );
    page.map(0, "Labels", &metadata["labels"], "=");
    page.map(0, "Annotations", &metadata["annotations"], ": ");
    page.pair(0, "API Version", &kind.api_version());
    page.pair(0, "Kind", &kind.kind);
    let mut rest = object.clone();
    if let Some(members) = rest.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    if let Some(members) = rest["metadata"].as_object_mut() {
        for shown in [
            "name",
            "namespace",
            "labels",
            "annotations",
            "managedFields",
        ] {
            members.remove(shown);
        }
    }
    page.members(0, &rest);
    page.events(events, now);
    page.text
}

/// Text whose lines are put under each other as long as they have the same form.
#[derive(Debug, Default)]
struct Page {
    text: String,
    block: Vec<Vec<String>>,
}

impl Page {
    /// A line of several cells.
    fn cells(&mut self, cells: Vec<String>) {
        self.block.push(cells);
    }

    fn pair(&mut self, level: usize, label: &str, value: &str) {
        let label = format!("{}{label}:", "  ".repeat(level));
        self.cells(vec![label, value.to_owned()]);
    }

    /// A line of one cell, which ends a block.
    fn line(&mut self, level: usize, text: &str) {
        self.end_block();
        self.text.push_str(&"  ".repeat(level));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Writes the block that has been collected, its columns aligned.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        let columns = block.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = block.iter().filter(|line| line.len() > column + 1);
            cells
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
                + PADDING
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for line in &block {
            for (index, cell) in line.iter().enumerate() {
                self.text += cell;
                if index + 1 < line.len() {
                    let padding = widths[index] - cell.chars().count();
                    self.text.extend(std::iter::repeat_n(' ', padding));
                }
            }
            self.text.push('\n');
        }
    }

    /// Labels or annotations: the first beside the label, the others under it.
    fn map(&mut self, level: usize, label: &str, map: &Value, sign: &str) {
        let mut entries: Vec<String> = map
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != LAST_APPLIED)
            .map(|(key, value)| format!("{key}{sign}{}", value.as_str().unwrap_or_default()))
            .collect();
        entries.sort();
        if entries.is_empty() {
            entries.push("<none>".to_owned());
        }
        for (index, entry) in entries.iter().enumerate() {
            let label = if index == 0 {
                format!("{label}:")
            } else {
                String::new()
            };
            self.cells(vec![
                format!("{}{label}", "  ".repeat(level)),
                entry.clone(),
            ]);
        }
    }

    /// The members of an object, in order of their keys.
    fn members(&mut self, level: usize, object: &Value) {
        let mut members: Vec<_> = object.as_object().into_iter().flatten().collect();
        members.sort_by_key(|(key, _)| *key);
        for (key, value) in members {
            let label = label(key);
            match value {
                Value::Object(_) | Value::Array(_) if level < DEEPEST => {
                    self.line(level, &format!("{label}:"));
                    self.nested(level + 1, value);
                }
                scalar => self.pair(level, &label, &plain(scalar)),
            }
        }
    }

    fn nested(&mut self, level: usize, value: &Value) {
        let Value::Array(items) = value else {
            self.members(level, value);
            return;
        };
        for item in items {
            match item {
                Value::Object(_) => self.members(level, item),
                Value::Array(_) if level < DEEPEST => self.nested(level + 1, item),
                scalar => self.line(level, &plain(scalar)),
            }
        }
    }

    fn events(&mut self, events: &[Value], now: Timestamp) {
        if events.is_empty() {
            self.pair(0, "Events", "<none>");
            self.end_block();
            return;
        }
        self.line(0, "Events:");
        for row in [
            ["  Type", "Reason", "Age", "From", "Message"],
            ["  ----", "------", "----", "----", "-------"],
        ] {
            self.cells(row.map(str::to_owned).to_vec());
        }
        for event in events {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let source = match text(&event["source"]["component"]) {
                empty if empty.is_empty() => text(&event["reportingComponent"]),
                component => component,
            };
            self.cells(vec![
                format!("  {}", text(&event["type"])),
                text(&event["reason"]),
                event_age(event, now),
                source,
                text(&event["message"]).trim().to_owned(),
            ]);
        }
        self.end_block();
    }
}

/// How long ago an event was, and how often it happened.
fn event_age(event: &Value, now: Timestamp) -> String {
    let since = |time: Option<Timestamp>| {
        time.map_or_else(
            || "<unknown>".to_owned(),
            |time| human_duration((now.as_second() - time.as_second()).max(0)),
        )
    };
    let last = since(last_seen(event));
    let count = event["series"]["count"]
        .as_i64()
        .or_else(|| event["count"].as_i64())
        .unwrap_or(1);
    if count <= 1 {
        return last;
    }
    let first = event["firstTimestamp"]
        .as_str()
        .or_else(|| event["eventTime"].as_str());
    let first = since(first.and_then(|time| time.parse().ok()));
    format!("{last} (x{count} over {first})")
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A key as people write it: `creationTimestamp` is `Creation Timestamp`.
fn label(key: &str) -> String {
    // What is no name in our spelling, such as the key of a label, is left as it is.
    if !key.chars().all(char::is_alphanumeric) {
        return key.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let mut previous_lower = false;
    for character in key.chars() {
        if words.is_empty() || (character.is_uppercase() && previous_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
        previous_lower = character.is_lowercase();
    }
    let in_capitals = |word: &String| {
        if ACRONYMS.contains(&word.to_lowercase().as_str()) {
            return word.to_uppercase();
        }
        let mut characters = word.chars();
        characters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(characters).collect()
        })
    };
    words.iter().map(in_capitals).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_written_as_labels() {
        for (key, expected) in [
            ("creationTimestamp", "Creation Timestamp"),
            ("apiVersion", "API Version"),
            ("uid", "UID"),
            ("podIP", "Pod IP"),
            ("app.kubernetes.io/name", "app.kubernetes.io/name"),
        ] {
            assert_eq!(label(key), expected);
        }
    }

    #[test]
    fn an_object_is_shown_at_length() {
        let kind = Type {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            singular: "widget".to_owned(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Vec::new(),
        };
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default", "uid": "1", "labels": {"b": "2", "a": "1"}},
            "spec": {"size": 3, "parts": [{"name": "x"}, {"name": "y"}], "words": ["one"]},
        });
        let event = json!({
            "type": "Normal", "reason": "Made", "message": "made it\n", "count": 3,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z",
            "source": {"component": "maker"},
        });
        let now: Timestamp = "2026-01-01T00:01:30Z".parse().unwrap();
        let expected = "\
Name:         w
Namespace:    default
Labels:       a=1
              b=2
Annotations:  <none>
API Version:  example.com/v1
Kind:         Widget
Metadata:
  UID:  1
Spec:
  Parts:
    Name:  x
    Name:  y
  Size:    3
  Words:
    one
Events:
  Type    Reason  Age                From   Message
  ----    ------  ----               ----   -------
  Normal  Made    30s (x3 over 90s)  maker  made it
";
        assert_eq!(describe(&kind, &object, &[event], now), expected);
        let text = describe(&kind, &object, &[], now);
        assert!(text.ends_with("    one\nEvents:  <none>\n"), "{text}");
    }
}
