//! What a process remembers of the workflows that it carries out.

use std::collections::{BTreeSet, HashMap};

use bellwether_runtime::ObjectKey;
use bellwether_workflow::Woken;
use jiff::Timestamp;
use parking_lot::Mutex;

/// What a process remembers of workflows; nothing of it has to survive.
#[derive(Debug, Default)]
pub struct Memory {
    runs: Mutex<HashMap<ObjectKey, Remembered>>,
    /// Runs that cannot be carried out because something they refer to is missing.
    blocked: Mutex<BTreeSet<ObjectKey>>,
}

#[derive(Debug, Default)]
struct Remembered {
    /// Why it is looked at next.
    woken: Option<Woken>,
    /// The version that this process wrote last.
    version: String,
    /// When it was looked at last.
    last_pass: Option<Timestamp>,
}

impl Memory {
    /// A step waits for something that changed.
    pub fn wake_step(&self, key: &ObjectKey, step: &str) {
        let mut runs = self.runs.lock();
        let woken = &mut runs.entry(key.clone()).or_default().woken;
        match woken {
            Some(Woken::All) => {}
            Some(Woken::Steps(steps)) => {
                steps.insert(step.to_owned());
            }
            _ => *woken = Some(Woken::Steps(BTreeSet::from([step.to_owned()]))),
        }
    }

    /// Something about the workflow changed: every step is looked at.
    pub fn wake_all(&self, key: &ObjectKey) {
        self.runs.lock().entry(key.clone()).or_default().woken = Some(Woken::All);
    }

    /// Why a workflow is looked at now, and when it was looked at last.
    pub fn take(&self, key: &ObjectKey) -> (Woken, Option<Timestamp>) {
        let mut runs = self.runs.lock();
        let remembered = runs.entry(key.clone()).or_default();
        (
            remembered.woken.take().unwrap_or(Woken::Timer),
            remembered.last_pass,
        )
    }

    /// This process wrote the object, which has this version now.
    pub fn wrote(&self, key: &ObjectKey, version: &str) {
        version.clone_into(&mut self.runs.lock().entry(key.clone()).or_default().version);
    }

    /// It was looked at.
    pub fn passed(&self, key: &ObjectKey, time: Timestamp) {
        self.runs.lock().entry(key.clone()).or_default().last_pass = Some(time);
    }

    /// Whether this process has not looked at it before.
    pub fn is_first(&self, key: &ObjectKey) -> bool {
        let runs = self.runs.lock();
        runs.get(key).is_none_or(|known| known.last_pass.is_none())
    }

    /// Whether this process wrote this version.
    pub fn is_own_write(&self, key: &ObjectKey, version: &str) -> bool {
        self.runs
            .lock()
            .get(key)
            .is_some_and(|known| known.version == version)
    }

    /// Whether a cache with this version has not heard of what this process wrote last.
    pub fn is_behind(&self, key: &ObjectKey, version: &str) -> bool {
        let runs = self.runs.lock();
        let known = runs.get(key).filter(|known| !known.version.is_empty());
        known.is_some_and(|known| known.version != version)
    }

    /// The workflow is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.runs.lock().remove(key);
        self.blocked.lock().remove(key);
    }

    /// Something that it refers to is missing.
    pub fn block(&self, key: &ObjectKey) {
        self.blocked.lock().insert(key.clone());
    }

    /// The workflows that something was missing for.
    pub fn take_blocked(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.blocked.lock())
    }
}
