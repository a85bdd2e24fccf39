//! What is described: an object, its events, what belongs to it, and the time at which that is done.

use bellwether_kinds::human as human_duration;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::read::text;
use crate::types::Type;

/// The zero of Go's clock, which stands for a time that is not known.
const NEVER: &str = "Mon, 01 Jan 0001 00:00:00 +0000";

/// When and where something is described.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
}

impl Moment {
    /// How long ago a time was.
    pub(super) fn since(&self, time: &Value) -> String {
        let time = text(time).parse::<Timestamp>();
        time.map_or_else(
            |_| "<unknown>".to_owned(),
            |time| human_duration(self.now.as_second() - time.as_second()),
        )
    }

    /// A time as Go prints it by itself.
    pub(super) fn stamp(&self, time: &Value) -> String {
        let time = text(time).parse::<Timestamp>();
        time.map_or_else(
            |_| "0001-01-01 00:00:00 +0000 UTC".to_owned(),
            |time| {
                let time = time.to_zoned(self.zone.clone());
                time.strftime("%Y-%m-%d %H:%M:%S %z %Z").to_string()
            },
        )
    }

    /// A time as people write it.
    pub(super) fn date(&self, time: &Value) -> String {
        let time = text(time).parse::<Timestamp>();
        time.map_or_else(
            |_| NEVER.to_owned(),
            |time| {
                let time = time.to_zoned(self.zone.clone());
                time.strftime("%a, %d %b %Y %H:%M:%S %z").to_string()
            },
        )
    }
}

/// Objects that belong to the one that is described.
#[derive(Debug, Default)]
pub(super) struct Related {
    pub(super) pods: Vec<Value>,
    pub(super) replica_sets: Vec<Value>,
    pub(super) slices: Vec<Value>,
    pub(super) services: Vec<Value>,
    pub(super) quotas: Vec<Value>,
    pub(super) limits: Vec<Value>,
    pub(super) secrets: Vec<Value>,
    /// The lease of a node, or why there is none.
    pub(super) lease: Option<Result<Value, String>>,
    /// Why pods could not be read.
    pub(super) no_pods: bool,
}

/// What is described.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) kind: &'a Type,
    pub(super) object: &'a Value,
    pub(super) related: &'a Related,
    pub(super) moment: &'a Moment,
}

impl Subject<'_> {
    pub(super) fn metadata(&self) -> &Value {
        &self.object["metadata"]
    }

    pub(super) fn spec(&self) -> &Value {
        &self.object["spec"]
    }

    pub(super) fn status(&self) -> &Value {
        &self.object["status"]
    }
}
