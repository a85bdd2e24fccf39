//! Following all objects of a cluster without a socket and without a watch per kind.
//!
//! For those who look after a whole cluster in this process, such as the simulator: one watch sees
//! every kind, so an idle cluster costs them one sleeping watch, however many kinds they know.

use std::collections::VecDeque;
use std::sync::Arc;

use bellwether_store::{Event, Range, Revision, Watch};
use futures::FutureExt as _;

use crate::cluster::Cluster;
use crate::object::StoredObject;

/// Every object of a cluster, then every change, in order and without a gap.
#[derive(Debug)]
pub struct Changes {
    cluster: Arc<Cluster>,
    /// What existed when the watch began and was not returned yet.
    survey: VecDeque<Change>,
    watch: Option<Watch<StoredObject>>,
}

/// Something to know about a cluster.
#[derive(Debug)]
pub enum Change {
    /// Everything is listed again from here on: what was known before may be gone.
    Relisted,
    /// Everything that existed has been listed; what follows happens now.
    Complete,
    /// An object is there, or has changed.
    Put(Subject, Arc<StoredObject>),
    /// An object is gone.
    Gone(Subject),
}

/// The object that a change is about, and the revision of the cluster that it made.
#[derive(Debug, Clone)]
pub struct Subject {
    key: Arc<str>,
    /// Grows with every change of the cluster.
    pub revision: Revision,
}

impl Subject {
    /// API group (`core` for that without a name), plural name of the resource, namespace (empty for
    /// what is in none), name.
    pub fn parts(&self) -> (&str, &str, &str, &str) {
        let mut parts = self.key.splitn(4, '/');
        let mut next = || parts.next().unwrap_or_default();
        match (next(), next(), next(), next()) {
            (group, resource, name, "") => (group, resource, "", name),
            parts => parts,
        }
    }
}

impl Cluster {
    /// Follows all objects of the cluster.
    pub fn changes(self: &Arc<Self>) -> Changes {
        Changes {
            cluster: Arc::clone(self),
            survey: VecDeque::new(),
            watch: None,
        }
    }
}

impl Changes {
    /// The next thing to know, waiting for it if need be; nothing once the store is closed.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.survey.pop_front() {
                return Some(change);
            }
            // The survey may have been large, and idle clusters are many.
            self.survey = VecDeque::new();
            match &mut self.watch {
                None => self.begin()?,
                Some(watch) => match watch.next().await? {
                    Ok(event) => return Some(change_of(&event)),
                    // We fell behind what the history reaches back to.
                    Err(_) => self.watch = None,
                },
            }
        }
    }

    /// The next thing to know, if it is there already.
    pub fn try_next(&mut self) -> Option<Change> {
        self.next().now_or_never().flatten()
    }

    /// Has everything told again, as of now.
    pub fn begin_anew(&mut self) {
        self.survey.clear();
        self.watch = None;
    }

    fn begin(&mut self) -> Option<()> {
        let keyspace = self.cluster.keyspace();
        let page = keyspace.range(Range::prefix("")).ok()?;
        self.watch = Some(keyspace.watch("", page.revision).ok()?);
        self.survey.push_back(Change::Relisted);
        self.survey.extend(page.entries.into_iter().map(|entry| {
            let subject = Subject {
                key: entry.key,
                revision: entry.modified,
            };
            Change::Put(subject, entry.value)
        }));
        self.survey.push_back(Change::Complete);
        Some(())
    }
}

/// What an event says.
fn change_of(event: &Event<StoredObject>) -> Change {
    let subject = Subject {
        key: Arc::clone(&event.key),
        revision: event.revision,
    };
    if event.is_delete() {
        Change::Gone(subject)
    } else {
        Change::Put(subject, Arc::clone(event.value()))
    }
}
