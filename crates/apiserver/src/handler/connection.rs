//! Conversations with containers, which embedded clusters do not have: webhooks and policies see them nevertheless.

use bellwether_kinds::Subresource;
use serde_json::{Map, Value, json};

use crate::admission::dynamic::{self, Operation, Shown};
use crate::context::RequestContext;
use crate::params::Query;
use crate::status::ApiError;

/// Shows a connection to webhooks and policies.
pub(super) async fn admit(cx: &RequestContext, part: &'static Subresource) -> Result<(), ApiError> {
    let shown = Shown::Sent(part);
    if !dynamic::is_configured(cx, shown) {
        return Ok(());
    }
    let (_, version, kind) = part.kind.unwrap_or_default();
    let mut options = Value::Object(options(kind, &cx.query));
    options["kind"] = kind.into();
    options["apiVersion"] = version.into();
    let operation = Operation::connect();
    dynamic::mutate(cx, shown, &operation, Some(&mut options), None).await?;
    dynamic::validate(cx, shown, &operation, Some(&options), None).await
}

/// The options of a connection as the query has them.
fn options(kind: &str, query: &Query) -> Map<String, Value> {
    let mut options = Map::new();
    let (flags, texts, lists): (&[&str], &[&str], &[&str]) = match kind {
        "PodExecOptions" => (
            &["stdin", "stdout", "stderr", "tty"],
            &["container"],
            &["command"],
        ),
        "PodAttachOptions" => (&["stdin", "stdout", "stderr", "tty"], &["container"], &[]),
        "PodPortForwardOptions" => (&[], &[], &["ports"]),
        _ => (&[], &["path"], &[]),
    };
    for field in flags {
        if query.get(field).is_some_and(is_set) {
            options.insert((*field).to_owned(), true.into());
        }
    }
    for field in texts {
        if let Some(text) = query.get(field).filter(|text| !text.is_empty()) {
            options.insert((*field).to_owned(), text.into());
        }
    }
    for field in lists {
        let items: Vec<Value> = query.all(field).map(|item| item_of(field, item)).collect();
        if !items.is_empty() {
            options.insert((*field).to_owned(), json!(items));
        }
    }
    options
}

/// What a query means by a flag: everything but a clear no is a yes.
fn is_set(text: &str) -> bool {
    !matches!(text, "0" | "false" | "False" | "FALSE" | "f" | "F")
}

fn item_of(field: &str, item: &str) -> Value {
    match item.parse::<i32>() {
        Ok(port) if field == "ports" => port.into(),
        _ => item.into(),
    }
}
