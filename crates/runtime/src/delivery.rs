//! Delivering sets of objects to a cluster: carries out what a [`Pass`] decides.
//!
//! Works and applications say what they want as a [`Pass`]; [`Delivery`] reads, writes and
//! removes objects, and has a key enqueued when one of its objects changes. What differs between them,
//! where the record is and who has to be asked, is a [`Keeper`].

use std::fmt::Debug;
use std::sync::Arc;

use bellwether_apply::pass::{
    Object, Pass, Permission, Refusal, RefusalKind, Round, Settled, Slot, Task,
};
use bellwether_apply::record::{Entry, Record};
use bellwether_apply::{ObjectId, Removal, ResourceType, Step};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;

use crate::clock::Clock;
use crate::compute::compute;
use crate::discovery::{Discovery, SharedKinds};
use crate::objects::{Deleted, Objects};
use crate::queue::Queue;
use crate::request_error::RequestError;
use crate::retry::ReconcileError as _;
use crate::watches::Watches;

/// What differs between those who deliver objects.
pub trait Keeper: Send {
    /// Why a record cannot be kept.
    type Error;

    /// Puts objects on record as about to be written, before they are. Returns the record as it is
    /// then.
    fn intend(
        &mut self,
        intent: Vec<Entry>,
    ) -> impl Future<Output = Result<Record, Self::Error>> + Send;

    /// Asks whether an object may be written. Only called for objects whose permission is not known.
    fn ask(
        &mut self,
        index: usize,
        object: &Object<'_>,
    ) -> impl Future<Output = Permission> + Send {
        let _ = (index, object);
        async { Permission::Granted }
    }
}

/// Objects of one cluster that are delivered for keys, such as works.
#[derive(Debug)]
pub struct Delivery<K> {
    /// Requests about objects.
    pub objects: Objects,
    /// What the cluster calls its kinds.
    pub discovery: Arc<Discovery>,
    /// What is known of objects that were delivered.
    pub watches: Watches<K>,
    clock: Clock,
}

impl<K: Clone + Ord + Debug + Send + Sync + 'static> Delivery<K> {
    /// Delivers objects to a cluster. Keys are enqueued when their objects change; the gauge has the
    /// number of open watches; kinds that other clusters have too are kept once.
    pub fn new(
        objects: Objects,
        kinds: Arc<SharedKinds>,
        queue: Queue<K>,
        open_watches: Gauge,
        clock: Clock,
    ) -> Self {
        Self {
            discovery: Arc::new(Discovery::new(kinds)),
            watches: Watches::new(objects.clone(), queue, open_watches),
            objects,
            clock,
        }
    }

    /// Carries out a pass until nothing is left to do, and returns what became of everything. Objects
    /// of the pass are tracked for the key; those that are gone no longer are.
    pub async fn carry_out<'a, Q: Keeper>(
        &self,
        key: &K,
        mut pass: Pass<'a>,
        keeper: &mut Q,
    ) -> Result<Settled<'a>, Q::Error> {
        for id in pass.slots().iter().filter_map(Slot::id) {
            self.watches.track(id, key);
        }
        let settled = loop {
            match self.round(&mut pass).await {
                Round::Intend(intent) => pass.intended(keeper.intend(intent).await?),
                Round::Do(tasks) => {
                    for task in tasks {
                        self.carry_out_task(key, &mut pass, task, keeper).await;
                    }
                }
                Round::Settled => break pass.settle(),
            }
        };
        self.follow(key, &settled).await;
        Ok(settled)
    }

    async fn round(&self, pass: &mut Pass<'_>) -> Round {
        let now = self.clock.now();
        let has_programs = pass.has_programs();
        let mut round = || pass.round(|id| self.watches.known(id), now);
        if has_programs {
            compute(round).await
        } else {
            round()
        }
    }

    async fn carry_out_task<Q: Keeper>(
        &self,
        key: &K,
        pass: &mut Pass<'_>,
        task: Task,
        keeper: &mut Q,
    ) {
        match task {
            Task::Read(index) => {
                let Some(object) = pass.object(index) else {
                    return;
                };
                let answer = self.read(&object.resource, &object.id).await;
                pass.was_read(index, answer.map_err(|error| refusal(&error, None)));
            }
            Task::Ask(index) => {
                let Some(object) = pass.object(index) else {
                    return;
                };
                let answer = keeper.ask(index, object).await;
                pass.was_asked(index, answer);
            }
            Task::Write(index, step) => {
                let Some(object) = pass.object(index) else {
                    return;
                };
                let answer = self.write(key, object, &step).await;
                let answer = answer.map_err(|error| refusal(&error, Some(&step)));
                pass.was_written(index, step, answer, self.clock.now());
            }
            Task::ReadRecorded(entry) => {
                let answer = self.read_recorded(&entry).await;
                let answer = answer.map_err(|error| refusal(&error, None));
                pass.recorded_was_read(&entry, &answer);
            }
            Task::Remove(entry, removal) => {
                let answer = self.remove(key, &entry, &removal).await;
                let answer = answer.map_err(|error| refusal(&error, None));
                pass.was_removed(&entry, &answer);
            }
        }
    }

    async fn read(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
    ) -> Result<Option<Value>, RequestError> {
        let found = self.objects.get(resource, id).await?;
        if let Some(object) = &found {
            self.watches.note(id, object);
        }
        Ok(found)
    }

    /// Writes an object; nothing if it is gone then.
    async fn write(
        &self,
        key: &K,
        object: &Object<'_>,
        step: &Step,
    ) -> Result<Option<Value>, RequestError> {
        let (objects, resource, id) = (&self.objects, &object.resource, &object.id);
        let written = match step {
            Step::Read | Step::Leave => return self.read(resource, id).await,
            Step::Create(new) => objects.create(resource, &id.namespace, new).await?,
            Step::Replace(new) => objects.replace(resource, id, new).await?,
            Step::Patch(patch) => objects.patch(resource, id, patch).await?,
            Step::Own(patch) => objects.merge(resource, id, patch).await?,
            Step::Apply {
                configuration,
                manager,
                force,
            } => {
                objects
                    .apply(resource, id, configuration, manager, *force)
                    .await?
            }
            Step::Delete { uid } => return self.delete(key, resource, id, uid).await,
            Step::Recreate { uid, object: new } => {
                // When an old one is gone that waits, its watch tells, and a new one is created.
                if let Some(old) = self.delete(key, resource, id, uid).await? {
                    old
                } else {
                    let new = objects.create(resource, &id.namespace, new).await?;
                    self.watches.enqueue_others(id, key);
                    new
                }
            }
        };
        self.watches.note(id, &written);
        Ok(Some(written))
    }

    /// Deletes the object of a UID; returns it if it waits for finalizers.
    async fn delete(
        &self,
        key: &K,
        resource: &ResourceType,
        id: &ObjectId,
        uid: &str,
    ) -> Result<Option<Value>, RequestError> {
        match self.objects.delete(resource, id, uid).await? {
            Deleted::Gone => {
                self.watches.note_gone(id);
                self.watches.enqueue_others(id, key);
                Ok(None)
            }
            Deleted::Waits(object) => {
                self.watches.note(id, &object);
                Ok(Some(object))
            }
        }
    }

    async fn resource_of(&self, entry: &Entry) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let (id, objects) = (&entry.id, &self.objects);
        self.discovery
            .find_plural(objects, &id.group, &entry.version, &id.resource)
            .await
    }

    /// Reads an object that is on record. A kind that the cluster no longer has, has no objects.
    async fn read_recorded(&self, entry: &Entry) -> Result<Option<Value>, RequestError> {
        match self.resource_of(entry).await? {
            Some(resource) => self.read(&resource, &entry.id).await,
            None => Ok(None),
        }
    }

    async fn remove(
        &self,
        key: &K,
        entry: &Entry,
        removal: &Removal,
    ) -> Result<Option<Value>, RequestError> {
        let Some(resource) = self.resource_of(entry).await? else {
            return Ok(None);
        };
        match removal {
            Removal::Forget | Removal::Wait(_) => Ok(None),
            Removal::Delete { uid } => self.delete(key, &resource, &entry.id, uid).await,
            Removal::Release(patch) => {
                match self.objects.merge(&resource, &entry.id, patch).await {
                    Ok(object) => {
                        self.watches.note(&entry.id, &object);
                        // It may be theirs now.
                        self.watches.enqueue_others(&entry.id, key);
                        Ok(None)
                    }
                    Err(error) if error.is_not_found() => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Watches what was delivered and what is being deleted, and nothing else.
    async fn follow(&self, key: &K, settled: &Settled<'_>) {
        for id in &settled.removed {
            self.watches.untrack(id, key);
        }
        for slot in &settled.slots {
            if let Slot::Open(object) = slot {
                self.watches.ensure(&object.resource);
            }
        }
        for pending in &settled.pending {
            self.watches.track(&pending.entry.id, key);
            if let Ok(Some(resource)) = self.resource_of(&pending.entry).await {
                self.watches.ensure(&resource);
            }
        }
    }
}

/// What follows from an error, for decisions.
fn refusal(error: &RequestError, step: Option<&Step>) -> Refusal {
    let is_own = match step {
        Some(Step::Apply { manager, .. }) => error.is_conflict_with_only(manager),
        _ => false,
    };
    let kind = if is_own {
        RefusalKind::OwnFields
    } else if error.is_already_there() {
        RefusalKind::AlreadyExists
    } else if error.is_conflict() {
        RefusalKind::Conflict
    } else if error.is_namespace_missing() {
        RefusalKind::NamespaceMissing
    } else if error.is_not_found() {
        RefusalKind::NotFound
    } else if error.is_immutable() {
        RefusalKind::Immutable
    } else {
        RefusalKind::Other
    };
    Refusal {
        kind,
        message: error.to_string(),
        retry: error.retry(),
    }
}
