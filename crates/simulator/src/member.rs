//! One simulated cluster: what is known of it, and a client to change it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bellwether_api::workload::certificate::NAME;
use bellwether_apiserver::{ApiServer, Change, ChangedObject, Identity};
use bellwether_runtime::{Clock, Correlator, ObjectKey, Queue};
use jiff::Timestamp;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::act::ActError;
use crate::kind::{Kind, Reference};
use crate::route::{self, Target};
use crate::world::{Difference, World};

/// An object of a cluster that has to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) cluster: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) object: ObjectKey,
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} {}", self.kind, self.object)
    }
}

/// The user that the simulator is.
const USER: &str = "system:bellwether-simulator";

/// A simulated cluster.
pub(crate) struct Member {
    name: Arc<str>,
    server: ApiServer,
    /// There while somebody writes: a client has a task and buffers, and most clusters are idle.
    client: Mutex<Option<Client>>,
    /// How many are writing.
    writers: AtomicUsize,
    clock: Clock,
    queue: Queue<Key>,
    /// What is known; nothing while the cluster is at rest.
    world: Mutex<Option<Arc<RwLock<World>>>>,
    correlator: Mutex<Correlator>,
    /// Whether everything that there was has been seen. Before that nothing is decided, since what
    /// has not been seen yet would seem to be missing.
    ready: AtomicBool,
    /// Whether something has happened since somebody last asked.
    active: AtomicBool,
    /// Whether nothing is known, since nothing has to be done.
    resting: AtomicBool,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Member")
            .field("name", &self.name)
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}

impl Member {
    pub(crate) fn new(name: &str, server: ApiServer, clock: Clock, queue: Queue<Key>) -> Self {
        Self {
            name: name.into(),
            server,
            client: Mutex::default(),
            writers: AtomicUsize::new(0),
            clock,
            queue,
            world: Mutex::default(),
            correlator: Mutex::default(),
            ready: AtomicBool::new(false),
            active: AtomicBool::new(true),
            resting: AtomicBool::new(true),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The certificate of the API server.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.server.certificate()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn world(&self) -> Arc<RwLock<World>> {
        Arc::clone(self.world.lock().get_or_insert_default())
    }

    /// Whether nothing is known, since nothing has to be done.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.resting.load(Ordering::Acquire)
    }

    /// Forgets what is known if it can be read again when something happens: most clusters are idle,
    /// and have neither workloads nor anything else that changes with time. Not if something has
    /// happened since this was last asked. Returns whether the cluster is at rest.
    pub(crate) fn try_to_rest(&self) -> bool {
        if self.active.swap(false, Ordering::AcqRel) {
            return false;
        }
        let mut world = self.world.lock();
        if world.as_ref().is_some_and(|world| world.read().is_alive()) {
            return false;
        }
        self.ready.store(false, Ordering::Release);
        self.resting.store(true, Ordering::Release);
        *world = None;
        *self.correlator.lock() = Correlator::default();
        true
    }

    pub(crate) fn correlator(&self) -> &Mutex<Correlator> {
        &self.correlator
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn client(&self) -> Client {
        let make = || {
            self.server
                .client(&self.name, Identity::administrator(USER))
        };
        self.client.lock().get_or_insert_with(make).clone()
    }

    /// Keeps the client for as long as the answer is kept.
    pub(crate) fn writing(&self) -> Writing<'_> {
        self.active.store(true, Ordering::Release);
        self.writers.fetch_add(1, Ordering::AcqRel);
        Writing(self)
    }

    /// Takes in what has happened to the cluster.
    pub(crate) fn take_in_change(&self, change: Change) {
        match change {
            Change::Relisted => {
                self.resting.store(false, Ordering::Release);
                self.ready.store(false, Ordering::Release);
                self.world().write().clear();
            }
            Change::Complete => {
                self.ready.store(true, Ordering::Release);
                let targets = route::everything(&self.world().read());
                self.enqueue(targets);
            }
            Change::Put(subject, object) => {
                let kind = kind_of(&subject);
                if let Some(kind) = kind {
                    let json = &object.untyped_json();
                    let difference = self.world().write().put(kind, subject.revision, json);
                    self.note(kind, difference);
                }
                self.world().write().has_seen(kind, subject.revision);
            }
            Change::Gone(subject) => {
                let kind = kind_of(&subject);
                if let Some(kind) = kind {
                    let (.., namespace, name) = subject.parts();
                    let key = ObjectKey::new(namespace, name);
                    self.remove(kind, &key, subject.revision);
                }
                self.world().write().has_seen(kind, subject.revision);
            }
        }
    }

    fn note(&self, kind: Kind, difference: Result<Option<Difference>, serde_json::Error>) {
        match difference {
            Ok(Some(difference)) => self.spread(kind, &difference),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(cluster = self.name(), kind = kind.names().kind, %error, "cannot read an object");
            }
        }
    }

    fn remove(&self, kind: Kind, key: &ObjectKey, revision: u64) {
        let difference = self.world().write().remove(kind, key, revision);
        if let Some(difference) = difference {
            if let Some(old) = &difference.old {
                let uid = old.metadata().uid.as_deref().unwrap_or_default();
                self.correlator.lock().forget_object(uid);
            }
            self.spread(kind, &difference);
        }
    }

    /// Has everybody looked at whom a change concerns.
    fn spread(&self, kind: Kind, difference: &Difference) {
        if self.is_ready() {
            let targets: BTreeSet<Target> = route::affected(&self.world().read(), kind, difference);
            self.enqueue(targets);
        }
    }

    fn enqueue(&self, targets: impl IntoIterator<Item = Target>) {
        self.active.store(true, Ordering::Release);
        for (kind, object) in targets {
            self.queue.add(Key {
                cluster: Arc::clone(&self.name),
                kind,
                object,
            });
        }
    }

    /// Takes in the answer to a write, so that nothing is decided without knowing of it.
    pub(crate) fn take_in(&self, kind: Kind, object: &Value) -> Result<(), ActError> {
        if self.is_at_rest() {
            return Ok(());
        }
        let revision = revision(object);
        let json = serde_json::to_vec(object)?;
        let difference = self.world().write().put_written(kind, revision, &json);
        self.note(kind, difference);
        Ok(())
    }

    /// Takes in that an object is gone.
    pub(crate) fn take_out(&self, subject: &Reference, last: &Value) {
        self.remove(subject.kind, &subject.key, revision(last));
    }

    /// Remembers why something could not be created, or that it could.
    pub(crate) fn set_trouble(&self, owner: &str, trouble: Option<&str>) {
        let world = self.world();
        let mut world = world.write();
        match trouble {
            Some(trouble) => {
                world.troubles.insert(owner.to_owned(), trouble.to_owned());
            }
            None => {
                world.troubles.remove(owner);
            }
        }
    }
}

/// The kind of the object that a change is about; nothing for one that is not simulated.
pub(crate) fn kind_of(subject: &ChangedObject) -> Option<Kind> {
    let (group, resource, _, name) = subject.parts();
    let kind = Kind::of_resource(group, resource)?;
    (kind != Kind::ConfigMap || name == NAME).then_some(kind)
}

/// Somebody writes; the last one to end lets the client go.
#[derive(Debug)]
pub(crate) struct Writing<'a>(&'a Member);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.0.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.0.client.lock() = None;
        }
    }
}

/// The revision of a cluster at which an object was written.
fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
