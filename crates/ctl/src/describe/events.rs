//! The events at the end of a description.

use jiff::Timestamp;
use serde_json::Value;

use super::page::Page;
use super::read::{number, text};
use super::subject::Moment;

/// Writes a table of events.
pub(super) fn write(page: &mut Page, events: &[Value], moment: &Moment) {
    if events.is_empty() {
        page.pair(0, "Events", "<none>");
        return;
    }
    let mut events: Vec<&Value> = events.iter().collect();
    events.sort_by_key(|event| time(&event["lastTimestamp"]));
    page.line(0, "Events:");
    page.line(1, "Type\tReason\tAge\tFrom\tMessage");
    page.line(1, "----\t------\t----\t----\t-------");
    for event in events {
        let [kind, reason] = ["type", "reason"].map(|name| text(&event[name]));
        let source = match text(&event["source"]["component"]) {
            "" => text(&event["reportingComponent"]),
            component => component,
        };
        let age = age(event, moment);
        let message = text(&event["message"]).trim();
        page.line(
            1,
            format_args!("{kind}\t{reason}\t{age}\t{source}\t{message}"),
        );
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    text(value).parse().ok()
}

/// How long ago an event was, and how often it happened.
fn age(event: &Value, moment: &Moment) -> String {
    let first = match &event["eventTime"] {
        Value::Null => moment.since(&event["firstTimestamp"]),
        time => moment.since(time),
    };
    if event["series"].is_object() {
        let last = moment.since(&event["series"]["lastObservedTime"]);
        let count = number(&event["series"]["count"]);
        return format!("{last} (x{count} over {first})");
    }
    match number(&event["count"]) {
        count if count > 1 => {
            let last = moment.since(&event["lastTimestamp"]);
            format!("{last} (x{count} over {first})")
        }
        _ => first,
    }
}
