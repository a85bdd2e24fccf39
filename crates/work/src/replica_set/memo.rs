//! Which works have the content of the template, remembered between two plans.
//!
//! A plan compares the content of every work with the template. Most of the time nothing but the status of one
//! work has changed, and content costs much more to compare than everything else.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet, ManifestWorkSpec};

use super::tally::Tally;
use super::template;

/// Remembers comparisons for one replica set. Nothing is lost with it but time.
#[derive(Debug, Default)]
pub struct Memo {
    verdicts: Mutex<HashMap<String, Verdict>>,
    compared: AtomicUsize,
    /// What the last plan counted.
    tally: Mutex<Option<Tally>>,
}

/// The states of a work and of its replica set, and whether their content was the same.
#[derive(Debug)]
struct Verdict {
    of: States,
    is_same: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct States {
    work_generation: i64,
    set: String,
    set_generation: i64,
    part: usize,
}

/// What a work should have.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedContent<'a> {
    /// The replica set.
    pub(super) set: &'a ManifestWorkReplicaSet,
    /// The content follows from the replica set alone: only then an answer can be remembered.
    pub(super) is_shared: bool,
    /// Which part of the template it is.
    pub(super) part: usize,
    /// The content.
    pub(super) spec: &'a ManifestWorkSpec,
}

impl WantedContent<'_> {
    fn states(&self, work: &ManifestWork) -> Option<States> {
        self.is_shared.then_some(())?;
        Some(States {
            work_generation: work.metadata.generation?,
            set: self.set.metadata.uid.clone()?,
            set_generation: self.set.metadata.generation?,
            part: self.part,
        })
    }
}

impl Memo {
    /// True if a work has the content that it should have.
    pub(super) fn is_same(&self, wanted: WantedContent<'_>, work: &ManifestWork) -> bool {
        let compare = || {
            self.compared.fetch_add(1, Ordering::Relaxed);
            template::is_same_spec(wanted.spec, &work.spec)
        };
        let (Some(uid), Some(of)) = (&work.metadata.uid, wanted.states(work)) else {
            return compare();
        };
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = verdicts.get(uid).filter(|known| known.of == of) {
            return known.is_same;
        }
        let is_same = compare();
        verdicts.insert(uid.clone(), Verdict { of, is_same });
        is_same
    }

    /// Forgets works that are gone.
    pub(super) fn retain<'a>(&self, works: impl ExactSizeIterator<Item = &'a ManifestWork>) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if verdicts.len() > works.len() {
            let there: HashSet<&String> = works.filter_map(|it| it.metadata.uid.as_ref()).collect();
            verdicts.retain(|uid, _| there.contains(uid));
        }
    }

    /// Takes what the last plan counted; it has to be set again.
    pub(super) fn take_tally(&self) -> Option<Tally> {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.take()
    }

    pub(super) fn set_tally(&self, counted: Option<Tally>) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = counted;
    }

    /// How often the content of a work was compared.
    pub fn compared(&self) -> usize {
        self.compared.load(Ordering::Relaxed)
    }
}
