//! `get`: show objects.

use std::cmp::Ordering;
use std::io::Write;

use bellwether_jsonpath::JsonPath;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use http::header::ACCEPT;
use serde_json::Value;

use crate::connection::Connection;
use crate::error::Error;
use crate::output::{self, Found, Output};
use crate::request::{self, JSON, escape, with_query};
use crate::selection::{Scope, Target, targets};
use crate::table::{self, View};
use crate::types::Types;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/// How many objects are read at a time.
const CHUNK: &str = "500";

/// What to show, and how.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of a command"
)]
pub struct Get {
    /// `TYPE`, `TYPE NAME…` or `TYPE/NAME…`.
    pub words: Vec<String>,
    /// Where to look.
    pub scope: Scope,
    /// In which form.
    pub output: Output,
    /// A column for labels.
    pub show_labels: bool,
    /// A column for each of these labels.
    pub label_columns: Vec<String>,
    /// No line of headers.
    pub no_headers: bool,
    /// The order of rows.
    pub sort_by: Option<String>,
    /// Go on with what changes.
    pub watch: bool,
    /// Only what changes.
    pub watch_only: bool,
    /// Succeed if the object does not exist.
    pub ignore_not_found: bool,
}

/// Shows objects; `notes` is for what is not data.
pub async fn run(
    connection: &Connection,
    get: &Get,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let types = Types::discover(&connection.client).await?;
    let wanted = targets(&types, &get.words)?;
    match get.output {
        _ if get.watch || get.watch_only => watch(connection, get, &wanted, out).await,
        Output::Table { wide } => tables(connection, get, &wanted, wide, out, notes).await,
        _ => objects(connection, get, wanted, out).await,
    }
}

/// Reads what the targets stand for, in a form that the server is asked for.
async fn read(
    connection: &Connection,
    get: &Get,
    target: &Target,
    accept: &str,
) -> Result<Option<Value>, Error> {
    let scope = &get.scope;
    let include = if get.sort_by.is_some() { "Object" } else { "" };
    let Some(name) = &target.name else {
        return read_all(connection, scope, target, accept, include)
            .await
            .map(Some);
    };
    if scope.all_namespaces {
        return Err(Error::Usage(
            "a resource cannot be retrieved by name across all namespaces".to_owned(),
        ));
    }
    let path = target.kind.path(scope.namespace(), Some(&escape(name)));
    let path = with_query(&path, &[("includeObject", include)]);
    match request::get(&connection.client, &path, accept).await {
        Err(error) if error.is_not_found() && get.ignore_not_found => Ok(None),
        answer => answer.map(Some),
    }
}

/// Reads a list page by page, and joins the pages.
async fn read_all(
    connection: &Connection,
    scope: &Scope,
    target: &Target,
    accept: &str,
    include: &str,
) -> Result<Value, Error> {
    let path = target.kind.path(scope.namespace(), None);
    let mut whole: Option<Value> = None;
    let mut token = String::new();
    loop {
        let parameters = [
            ("limit", CHUNK),
            ("continue", &token),
            ("labelSelector", &scope.labels),
            ("fieldSelector", &scope.fields),
            ("includeObject", include),
        ];
        let page = request::get(&connection.client, &with_query(&path, &parameters), accept).await;
        let mut page = page.map_err(|error| explained(error, scope, target))?;
        token = text(&page["metadata"]["continue"]);
        whole = Some(match whole {
            None => page,
            Some(mut whole) => {
                for key in ["items", "rows"] {
                    if let (Some(all), Some(more)) =
                        (whole[key].as_array_mut(), page[key].as_array_mut())
                    {
                        all.append(more);
                    }
                }
                whole
            }
        });
        if token.is_empty() {
            return Ok(whole.unwrap_or_default());
        }
    }
}

/// Says what was looked for when the server cannot look for it.
fn explained(error: Error, scope: &Scope, target: &Target) -> Error {
    match error {
        Error::Server {
            code: code @ (400 | 404),
            reason,
            message,
            causes,
        } => {
            let resource = target.kind.resource();
            let (labels, fields) = (&scope.labels, &scope.fields);
            Error::Server {
                code,
                reason,
                message: format!(
                    "Unable to find {resource:?} that match label selector {labels:?}, field selector {fields:?}: {message}"
                ),
                causes,
            }
        }
        other => other,
    }
}

/// Shows the server's tables, one a type.
async fn tables(
    connection: &Connection,
    get: &Get,
    wanted: &[Target],
    wide: bool,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let several = wanted.iter().any(|target| target.kind != wanted[0].kind);
    let mut shown = false;
    for group in wanted.chunk_by(|one, other| one.kind == other.kind) {
        let kind = &group[0].kind;
        let view = View {
            wide,
            namespaces: get.scope.all_namespaces && kind.namespaced,
            labels: get.show_labels,
            label_columns: get.label_columns.clone(),
            prefix: if several {
                kind.named("")
            } else {
                String::new()
            },
        };
        let mut lines = Vec::new();
        for target in group {
            let Some(mut answer) = read(connection, get, target, TABLE).await? else {
                continue;
            };
            if let Some(path) = &get.sort_by
                && let Some(rows) = answer["rows"].as_array_mut()
            {
                sort(rows, path, |row| &row["object"])?;
            }
            let rows = answer["rows"].as_array().map_or(&[][..], Vec::as_slice);
            if lines.is_empty() && !get.no_headers && !rows.is_empty() {
                lines.push(view.headers(&answer));
            }
            lines.extend(
                rows.iter()
                    .map(|row| view.row(&answer["columnDefinitions"], row)),
            );
        }
        if lines.is_empty() {
            continue;
        }
        if shown {
            writeln!(out)?;
        }
        table::write(out, &lines)?;
        shown = true;
    }
    if !shown && !get.ignore_not_found {
        let namespaced = wanted.iter().any(|target| target.kind.namespaced);
        match get.scope.namespace().filter(|_| namespaced) {
            Some(namespace) => writeln!(notes, "No resources found in {namespace} namespace.")?,
            None => writeln!(notes, "No resources found")?,
        }
    }
    Ok(())
}

/// Shows objects as they are.
async fn objects(
    connection: &Connection,
    get: &Get,
    wanted: Vec<Target>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let single = matches!(&*wanted, [Target { name: Some(_), .. }]);
    let mut found = Vec::new();
    for target in wanted {
        let Some(mut answer) = read(connection, get, &target, JSON).await? else {
            continue;
        };
        if target.name.is_some() {
            found.push((target.kind, answer));
            continue;
        }
        let (api_version, kind) = (target.kind.api_version(), target.kind.kind.clone());
        let items = answer["items"].take();
        for mut item in items.as_array().cloned().unwrap_or_default() {
            // Lists say only once what their items are.
            item["apiVersion"] = api_version.as_str().into();
            item["kind"] = kind.as_str().into();
            found.push((target.kind.clone(), item));
        }
    }
    for (_, object) in &mut found {
        output::hide_managed_fields(object);
    }
    if let Some(path) = &get.sort_by {
        sort(&mut found, path, |(_, object)| object)?;
    }
    if single && found.is_empty() {
        return Ok(());
    }
    let found = Found {
        objects: found,
        single,
        headers: !get.no_headers,
    };
    output::print(out, &get.output, &found)
}

/// Shows rows or objects as they change, until interrupted.
async fn watch(
    connection: &Connection,
    get: &Get,
    wanted: &[Target],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let [target] = wanted else {
        return Err(Error::Usage(
            "watch is only supported on individual resources and resource collections".to_owned(),
        ));
    };
    let in_table = match get.output {
        Output::Table { wide } => Some(View {
            wide,
            namespaces: get.scope.all_namespaces,
            labels: get.show_labels,
            label_columns: get.label_columns.clone(),
            prefix: String::new(),
        }),
        _ => None,
    };
    let accept = if in_table.is_some() { TABLE } else { JSON };
    let fields = match &target.name {
        Some(name) => format!("metadata.name={name}"),
        None => get.scope.fields.clone(),
    };
    let scope = Scope {
        fields,
        ..get.scope.clone()
    };
    let everything = Target {
        name: None,
        ..target.clone()
    };
    let current = read_all(connection, &scope, &everything, accept, "").await?;
    let mut screen = Screen {
        view: in_table,
        widths: Vec::new(),
        headers: !get.no_headers,
        first: true,
        definitions: Value::Null,
        output: &get.output,
        target,
    };
    if !get.watch_only {
        screen.show(out, &current)?;
    }
    let path = target.kind.path(scope.namespace(), None);
    let mut revision = text(&current["metadata"]["resourceVersion"]);
    // A server ends watches from time to time: each is taken up where the last one ended.
    loop {
        let query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", &revision),
            ("labelSelector", &scope.labels),
            ("fieldSelector", &scope.fields),
        ];
        revision = follow(
            connection,
            &with_query(&path, &query),
            accept,
            &mut screen,
            out,
        )
        .await?
        .unwrap_or(revision);
    }
}

/// Shows the events of one watch, and returns the revision of the last one.
async fn follow(
    connection: &Connection,
    path: &str,
    accept: &str,
    screen: &mut Screen<'_>,
    out: &mut dyn Write,
) -> Result<Option<String>, Error> {
    let request = Request::get(path)
        .header(ACCEPT, accept)
        .body(Vec::new())
        .map_err(|error| Error::Usage(error.to_string()))?;
    let stream = connection.client.request_stream(request).await?;
    let mut lines = stream.lines();
    let mut revision = None;
    while let Some(line) = lines.try_next().await? {
        let Ok(event) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let object = &event["object"];
        if event["type"] == "ERROR" {
            return Err(Error::Server {
                code: object["code"]
                    .as_u64()
                    .and_then(|code| u16::try_from(code).ok())
                    .unwrap_or(500),
                reason: text(&object["reason"]),
                message: text(&object["message"]),
                causes: Vec::new(),
            });
        }
        let seen = text(&object["metadata"]["resourceVersion"]);
        if !seen.is_empty() {
            revision = Some(seen);
        }
        if event["type"] != "BOOKMARK" {
            screen.show(out, object)?;
            out.flush()?;
        }
    }
    Ok(revision)
}

/// What a watch prints to: columns stay as wide as they were.
struct Screen<'a> {
    view: Option<View>,
    widths: Vec<usize>,
    headers: bool,
    /// Nothing has been shown yet.
    first: bool,
    definitions: Value,
    output: &'a Output,
    target: &'a Target,
}

impl Screen<'_> {
    /// Shows a table with its rows, or objects.
    fn show(&mut self, out: &mut dyn Write, answer: &Value) -> Result<(), Error> {
        let Some(view) = &self.view else {
            let list = answer["items"].as_array().cloned();
            for mut object in list.unwrap_or_else(|| vec![answer.clone()]) {
                output::hide_managed_fields(&mut object);
                // Lists say only once what their items are.
                object["apiVersion"] = self.target.kind.api_version().into();
                object["kind"] = self.target.kind.kind.as_str().into();
                if matches!(self.output, Output::Yaml) && !std::mem::take(&mut self.first) {
                    writeln!(out, "---")?;
                }
                let found = Found {
                    objects: vec![(self.target.kind.clone(), object)],
                    single: true,
                    headers: std::mem::take(&mut self.headers),
                };
                output::print(out, self.output, &found)?;
            }
            return Ok(());
        };
        // Only the first event has the definitions.
        if answer["columnDefinitions"]
            .as_array()
            .is_some_and(|columns| !columns.is_empty())
        {
            self.definitions = answer["columnDefinitions"].clone();
        }
        let rows = answer["rows"].as_array().map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<_> = rows
            .iter()
            .map(|row| view.row(&self.definitions, row))
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.headers) {
            lines.insert(0, view.headers(answer));
        }
        let needed = table::widths(&lines);
        if self.widths.len() < needed.len() {
            self.widths.resize(needed.len(), 0);
        }
        for (width, needed) in self.widths.iter_mut().zip(needed) {
            *width = (*width).max(needed);
        }
        for line in &lines {
            table::write_line(out, line, &self.widths)?;
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Sorts by the value that a path finds; what has none comes first.
fn sort<T>(items: &mut [T], path: &str, object: impl Fn(&T) -> &Value) -> Result<(), Error> {
    let parsed = JsonPath::parse_relaxed(path)
        .map_err(|error| Error::Usage(format!("--sort-by: {error}")))?
        .allow_missing_keys(true);
    let key = |item: &T| -> Value {
        let found = parsed.find(object(item)).ok();
        let first =
            found.and_then(|results| results.first()?.first().map(|value| (*value).clone()));
        first.unwrap_or_default()
    };
    items.sort_by_cached_key(|item| Key(key(item)));
    Ok(())
}

/// A value with an order: numbers by size, texts by their bytes, as kubectl does.
struct Key(Value);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Less,
            (_, Value::Null) => Ordering::Greater,
            (Value::Number(one), Value::Number(other)) => {
                let (one, other) = (one.as_f64(), other.as_f64());
                one.partial_cmp(&other).unwrap_or(Ordering::Equal)
            }
            (Value::String(one), Value::String(other)) => one.cmp(other),
            (one, other) => one.to_string().cmp(&other.to_string()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_sorted_by_numbers_and_bytes() {
        let objects = |values: Value| values.as_array().unwrap().clone();
        let mut names = objects(json!([
            {"a": "pod10"}, {"a": "pod9"}, {}, {"a": "pod9b"}, {"a": "pod09"}
        ]));
        sort(&mut names, ".a", |object| object).unwrap();
        let order: Vec<_> = names.iter().map(|object| object["a"].clone()).collect();
        assert_eq!(
            json!(order),
            json!([null, "pod09", "pod10", "pod9", "pod9b"])
        );
        let mut sizes = objects(json!([{"a": 10}, {"a": 9.5}, {"a": -1}]));
        sort(&mut sizes, "{.a}", |object| object).unwrap();
        assert_eq!(json!(sizes), json!([{"a": -1}, {"a": 9.5}, {"a": 10}]));
        assert!(sort(&mut sizes, "{.a", |object| object).is_err());
    }
}
