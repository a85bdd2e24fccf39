//! What can happen in a workflow: the entries of its log.

use bellwether_api::meta::MicroTime;
use bellwether_api::workflow::{
    HistoryEntry, StepPhase, StepReason, StepResource, WorkflowExecuteMode, WorkflowRunPhase,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::State;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run began.
    RunStarted {
        /// How steps are ordered.
        mode: WorkflowExecuteMode,
        /// What is carried out: the revision of an Application. Another one begins from the start.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        revision: String,
    },
    /// The status of a step changed.
    StepChanged(Box<StepChange>),
    /// An effect that must not be repeated is about to be carried out.
    ActionIntent {
        /// Identity of the step.
        id: String,
        /// Where in the template the action is.
        path: String,
        /// Which action.
        action: String,
        /// A hash of its parameters.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        params_hash: String,
    },
    /// An effect was carried out.
    ActionDone {
        /// Identity of the step.
        id: String,
        /// Where in the template the action is.
        path: String,
        /// What came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it failed; it may be carried out again then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An effect may have been carried out: the process ended before its result was recorded.
    ActionAmbiguous {
        /// Identity of the step.
        id: String,
        /// Where in the template the action is.
        path: String,
    },
    /// A value that steps hand on was set.
    VarSet {
        /// Its name.
        name: String,
        /// The value.
        value: Value,
    },
    /// A key of the context was set.
    ContextSet {
        /// The key.
        key: String,
        /// Its text.
        value: String,
    },
    /// The output of a step, for conditions of other steps.
    OutputRecorded {
        /// Name of the step.
        step: String,
        /// The output.
        value: Value,
    },
    /// The object that a step consists of was applied.
    ResourceRecorded {
        /// Name of the step.
        step: String,
        /// The object.
        resource: StepResource,
    },
    /// The run was suspended.
    Suspended {
        /// Who did it.
        by: Actor,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The run was resumed.
    Resumed {
        /// Who did it.
        by: Actor,
        /// Which step only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    /// The run was ended before its steps were done.
    Terminated {
        /// Who did it.
        by: Actor,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// A step ended the workflow: what comes later is skipped.
    Broken {
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The run begins again, with some of its steps or with all.
    Restarted {
        /// Who did it.
        by: Actor,
        /// Steps that are carried out again; empty for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<String>,
        /// Values that those steps handed on, by name: they do so again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        vars: Vec<String>,
        /// The version of the object whose status asked for it, so that it is asked for once.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        version: String,
    },
    /// A step brought back what was delivered before.
    RolledBack {
        /// The revision.
        to: String,
    },
    /// Somebody goes back to an earlier version: what steps declare for that is carried out.
    RollbackRequested {
        /// Who did it.
        by: Actor,
    },
    /// The message of the run was set.
    MessageSet {
        /// The message.
        message: String,
    },
    /// The run is done.
    RunFinished {
        /// How it ended.
        phase: WorkflowRunPhase,
    },
    /// Everything that happened before, in short.
    Snapshot {
        /// What was true then.
        state: Box<State>,
    },
}

/// A step as it is after a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepChange {
    /// Name of the step.
    pub step: String,
    /// Its identity.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub step_type: String,
    /// The group that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// In which phase it is now.
    pub phase: StepPhase,
    /// Why.
    #[serde(default, skip_serializing_if = "StepReason::is_none")]
    pub reason: StepReason,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often it failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Its place among the steps: when it was met first.
    #[serde(default)]
    pub order: u64,
    /// Whether it was carried out; a step that is pending was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executed: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Who caused something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The engine itself, because of what steps did.
    #[default]
    Engine,
    /// Somebody who changed the status.
    Status,
    /// Somebody who had the token of a step.
    Token,
    /// Somebody who changed what is carried out, or asked for a restart by an annotation.
    Owner,
}

/// An event with its number and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number; later entries have higher ones.
    pub seq: u64,
    /// When it happened.
    pub time: Timestamp,
    /// What happened.
    pub event: Event,
}

/// An entry that this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("entry {seq} of the history cannot be read: {cause}")]
pub struct UnreadableEntry {
    seq: u64,
    cause: serde_json::Error,
}

impl Entry {
    /// Reads an entry of a stored history.
    pub fn read(stored: &HistoryEntry) -> Result<Self, UnreadableEntry> {
        let mut details = stored.details.clone();
        details.insert("event".to_owned(), Value::String(stored.event.clone()));
        let event = serde_json::from_value(Value::Object(details));
        Ok(Self {
            seq: stored.seq,
            time: stored.time.0,
            event: event.map_err(|cause| UnreadableEntry {
                seq: stored.seq,
                cause,
            })?,
        })
    }

    /// The entry as it is stored.
    pub fn write(&self) -> Result<HistoryEntry, serde_json::Error> {
        let Value::Object(mut details) = serde_json::to_value(&self.event)? else {
            return Err(serde::ser::Error::custom("an event is an object"));
        };
        let event = match details.remove("event") {
            Some(Value::String(event)) => event,
            _ => String::new(),
        };
        Ok(HistoryEntry {
            seq: self.seq,
            time: MicroTime(self.time),
            event,
            details,
        })
    }
}
