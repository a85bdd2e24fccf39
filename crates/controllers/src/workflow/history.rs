//! The log of a workflow in a WorkflowHistory.
//!
//! A write names the version that it follows: of two processes that think they lead, one is refused, before
//! it carries out anything.

use std::collections::HashMap;

use bellwether_api::workflow::{HistoryEntry, WorkflowHistory};
use bellwether_runtime::created_by;
use bellwether_workflow::{Entry, Event, State};
use kube::api::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;

use super::{Owner, OwnerKind};

/// A log is shortened when it has more entries than this.
const MOST_ENTRIES: usize = 400;
/// A log that is shortened keeps these of its last entries.
const KEPT_ENTRIES: usize = 200;

/// Why the log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The server refuses, or another process wrote it.
    #[error("history: {0}")]
    Kube(#[from] kube::Error),
    /// It holds what this version cannot read.
    #[error("history: {0}")]
    Entry(#[from] bellwether_workflow::event::UnreadableEntry),
    /// It cannot be written as JSON.
    #[error("history: {0}")]
    Json(#[from] serde_json::Error),
}

/// The log of one workflow as it is stored.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What happened.
    pub entries: Vec<Entry>,
    version: Option<String>,
    uid: Option<String>,
}

/// The logs of workflows that are carried out.
#[derive(Debug, Default)]
pub struct Histories {
    loaded: Mutex<HashMap<(OwnerKind, String), History>>,
}

fn key(owner: &Owner) -> (OwnerKind, String) {
    (owner.kind, owner.key.to_string())
}

impl Histories {
    /// The log of a workflow.
    pub async fn load(&self, client: &Client, owner: &Owner) -> Result<History, HistoryError> {
        let loaded = self.loaded.lock().get(&key(owner)).cloned();
        if let Some(history) = loaded
            && history.uid.as_deref() == Some(&*owner.reference.uid)
        {
            return Ok(history);
        }
        let stored = api(client, owner).get_opt(&owner.history_name()).await?;
        let mut history = History {
            uid: Some(owner.reference.uid.clone()),
            ..History::default()
        };
        if let Some(stored) = stored {
            let owners = stored
                .metadata
                .owner_references
                .as_deref()
                .unwrap_or_default();
            history
                .version
                .clone_from(&stored.metadata.resource_version);
            // One of an object of the same name that is gone is written over.
            if owners
                .iter()
                .any(|reference| reference.uid == owner.reference.uid)
            {
                let entries: Result<Vec<Entry>, _> =
                    stored.entries.iter().map(Entry::read).collect();
                history.entries = entries?;
            }
        }
        Ok(history)
    }

    /// Writes entries at the end of the log; another process that wrote meanwhile is an error.
    pub async fn append(
        &self,
        client: &Client,
        owner: &Owner,
        history: &mut History,
        entries: Vec<Entry>,
    ) -> Result<(), HistoryError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.loaded.lock().remove(&key(owner));
        history.entries.extend(entries);
        shorten(&mut history.entries);
        let written: Result<Vec<HistoryEntry>, _> =
            history.entries.iter().map(Entry::write).collect();
        let object = WorkflowHistory {
            metadata: ObjectMeta {
                name: Some(owner.history_name()),
                namespace: Some(owner.key.namespace.to_string()),
                owner_references: Some(vec![owner.reference.clone()]),
                resource_version: history.version.clone(),
                ..ObjectMeta::default()
            },
            entries: written?,
            ..WorkflowHistory::default()
        };
        let api = api(client, owner);
        let stored = if history.version.is_some() {
            api.replace(&owner.history_name(), &created_by(), &object)
                .await?
        } else {
            api.create(&created_by(), &object).await?
        };
        history.version = stored.metadata.resource_version;
        self.loaded.lock().insert(key(owner), history.clone());
        Ok(())
    }

    /// Forgets a log that is not written any more.
    pub fn forget(&self, owner: &Owner) {
        self.loaded.lock().remove(&key(owner));
    }
}

fn api(client: &Client, owner: &Owner) -> Api<WorkflowHistory> {
    Api::namespaced(client.clone(), &owner.key.namespace)
}

/// Replaces the beginning of a long log by what was true then.
fn shorten(entries: &mut Vec<Entry>) {
    if entries.len() <= MOST_ENTRIES {
        return;
    }
    let cut = entries.len() - KEPT_ENTRIES;
    let state = State::of(&entries[..cut]);
    let last = &entries[cut - 1];
    let snapshot = Entry {
        seq: last.seq,
        time: last.time,
        event: Event::Snapshot {
            state: Box::new(state),
        },
    };
    entries.splice(..cut, [snapshot]);
}
