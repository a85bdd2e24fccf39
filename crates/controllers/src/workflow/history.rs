//! The log of a workflow in a WorkflowHistory.
//!
//! A write names the version that it follows: of two processes that think they lead, one is refused, before
//! it carries out anything.
//!
//! Results of actions are kept while their step may ask for them. A log that would be too large to store is refused
//! before it is written, with room left for the few entries by which `overflow` ends the steps that are to blame.

mod overflow;

pub use overflow::{Refused, replacement};

use std::collections::{HashMap, HashSet};

use bellwether_api::workflow::{HistoryEntry, WorkflowHistory};
use bellwether_runtime::created_by;
use bellwether_workflow::{Entry, Event, State};
use kube::api::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

use super::{Owner, OwnerKind};

/// A log is shortened when it has more entries than this.
const MOST_ENTRIES: usize = 400;
/// A log that is shortened keeps these of its last entries.
const KEPT_ENTRIES: usize = 200;
/// The largest log in bytes: API servers store about 1.5 MiB, and the entries that end a step have to fit as well.
const LARGEST_LOG: usize = 1280 * 1024;

/// Why the log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The server refuses, or another process wrote it.
    #[error("history: {0}")]
    Kube(kube::Error),
    /// It is larger than what can be stored. Nothing was written.
    #[error("history: the log is too large")]
    TooLarge,
    /// It holds what this version cannot read.
    #[error("history: {0}")]
    Entry(#[from] bellwether_workflow::event::UnreadableEntry),
    /// It cannot be written as JSON.
    #[error("history: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<kube::Error> for HistoryError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 413 || is_about_size(&status.message) => {
                Self::TooLarge
            }
            _ => Self::Kube(error),
        }
    }
}

/// True for the refusals of etcd and of its client, which have no code of their own.
fn is_about_size(message: &str) -> bool {
    message.contains("request is too large") || message.contains("message larger than max")
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

    /// Writes entries at the end of the log; another process that wrote meanwhile is an error. If they do not fit, nothing
    /// is written, and the log is as it was but for a summary of its beginning.
    pub async fn append(
        &self,
        client: &Client,
        owner: &Owner,
        history: &mut History,
        entries: &[Entry],
    ) -> Result<(), HistoryError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.loaded.lock().remove(&key(owner));
        if history.entries.len() + entries.len() > MOST_ENTRIES {
            shorten(&mut history.entries, KEPT_ENTRIES);
        }
        match write(client, owner, history, entries, LARGEST_LOG).await {
            Err(HistoryError::TooLarge) => {
                shorten(&mut history.entries, 0);
                write(client, owner, history, entries, LARGEST_LOG).await?;
            }
            other => other?,
        }
        self.loaded.lock().insert(key(owner), history.clone());
        Ok(())
    }

    /// Writes the entries that take the place of others that do not fit. They may use the room that is left for them.
    pub async fn append_replacement(
        &self,
        client: &Client,
        owner: &Owner,
        history: &mut History,
        entries: &[Entry],
    ) -> Result<(), HistoryError> {
        self.loaded.lock().remove(&key(owner));
        write(client, owner, history, entries, usize::MAX).await?;
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

/// Writes a log with further entries, if it has at most this many bytes then.
async fn write(
    client: &Client,
    owner: &Owner,
    history: &mut History,
    entries: &[Entry],
    largest: usize,
) -> Result<(), HistoryError> {
    let all: Vec<&Entry> = history.entries.iter().chain(entries).collect();
    let unneeded = unneeded_results(&all);
    let written: Result<Vec<HistoryEntry>, _> = all
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            if unneeded.contains(&index) {
                without_result(entry).write()
            } else {
                entry.write()
            }
        })
        .collect();
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
    if size(&object)? > largest {
        return Err(HistoryError::TooLarge);
    }
    let api = api(client, owner);
    let stored = if history.version.is_some() {
        api.replace(&owner.history_name(), &created_by(), &object)
            .await?
    } else {
        api.create(&created_by(), &object).await?
    };
    history.version = stored.metadata.resource_version;
    history.entries.extend_from_slice(entries);
    for index in unneeded {
        history.entries[index] = without_result(&history.entries[index]);
    }
    Ok(())
}

/// How many bytes an object has as JSON.
fn size(object: &impl serde::Serialize) -> Result<usize, serde_json::Error> {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, object)?;
    Ok(counter.0)
}

/// The entries with results of actions whose step was finished later: nobody asks for them any more.
fn unneeded_results(entries: &[&Entry]) -> HashSet<usize> {
    let mut finished: HashSet<&str> = HashSet::new();
    let mut unneeded = HashSet::new();
    for (index, entry) in entries.iter().enumerate().rev() {
        match &entry.event {
            Event::StepChanged(change) if change.phase.is_finished(&change.reason) => {
                finished.insert(&change.id);
            }
            Event::ActionDone {
                id,
                result: Some(Value::Object(result)),
                ..
            } if !result.is_empty() && finished.contains(id.as_str()) => {
                unneeded.insert(index);
            }
            _ => {}
        }
    }
    unneeded
}

/// An entry that says that an action was carried out, but not what came of it.
fn without_result(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let Event::ActionDone { result, .. } = &mut entry.event {
        // Not none: that would mean that nobody knows what came of it.
        *result = Some(Value::Object(serde_json::Map::new()));
    }
    entry
}

/// Replaces a log but for its last entries by what was true then.
fn shorten(entries: &mut Vec<Entry>, kept: usize) {
    let cut = entries.len().saturating_sub(kept);
    let Some(last) = entries[..cut].last() else {
        return;
    };
    let snapshot = Entry {
        seq: last.seq,
        time: last.time,
        event: Event::Snapshot {
            state: Box::new(State::of(&entries[..cut])),
        },
    };
    entries.splice(..cut, [snapshot]);
}
