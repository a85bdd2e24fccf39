//! What steps log: it goes to the log of the hub, and is kept for `bellwether workflow logs`.

use std::collections::BTreeMap;

use bellwether_api::workflow::names::context;
use bellwether_workflow::{Done, Request};
use serde_json::json;

use super::super::Owner;

/// So many bytes are kept of what a step logs, the last ones.
const KEPT: usize = 16 * 1024;
/// Levels up to this one are shown by default, as with the flag `-v` of other controllers.
const SHOWN: i64 = 3;

/// Logs what an action says.
pub fn write(owner: &Owner, request: &Request) -> Done {
    let params = &request.call.params;
    let data = params["data"].as_str().unwrap_or_default();
    let key = &owner.key;
    let (step, session) = (&request.step, &request.id);
    if params["level"].as_i64().unwrap_or(SHOWN) <= SHOWN {
        tracing::info!(name = %key.name, namespace = %key.namespace, step, stepSessionID = session, "{data}");
    } else {
        tracing::debug!(name = %key.name, namespace = %key.namespace, step, stepSessionID = session, "{data}");
    }
    let known = request.memory.get(context::LOG).map_or("", String::as_str);
    Done {
        value: json!({}),
        memory: BTreeMap::from([(context::LOG.to_owned(), with_line(known, data))]),
        ..Done::default()
    }
}

/// A log with a further text. A step that waits is carried out again and again: what it logged already is not added.
fn with_line(log: &str, text: &str) -> String {
    let text = text.trim_end();
    let is_known =
        log == text || log.ends_with(&format!("\n{text}")) || log.contains(&format!("{text}\n"));
    if is_known {
        return log.to_owned();
    }
    let all = if log.is_empty() {
        text.to_owned()
    } else {
        format!("{log}\n{text}")
    };
    let excess = all.len().saturating_sub(KEPT);
    let start = (excess..all.len()).find(|start| all.is_char_boundary(*start));
    all[start.unwrap_or(all.len())..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_each_text_once_and_is_bounded() {
        let log = ["one", "two", "one", "two", "three\n"]
            .iter()
            .fold(String::new(), |log, text| with_line(&log, text));
        assert_eq!(log, "one\ntwo\nthree");
        let bounded = with_line(&log, &"é".repeat(KEPT));
        assert!(bounded.len() <= KEPT && bounded.ends_with('é'));
    }
}
