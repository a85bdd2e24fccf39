//! Objects of applications on the hub: written, kept and removed by the shared engine (`bellwether_apply`).
//!
//! What is about to be written is in a ResourceTracker before [`HubObjects::apply`] is called; it leaves the tracker when
//! [`HubObjects::remove`] says that it is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::oam::ManagedResource;
use bellwether_application::dispatch::{self, AppOwner, Treatment, describe};
use bellwether_application::label::Manifest;
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::tracker::{self, Identity};
use bellwether_apply::executor::Account;
use bellwether_apply::pass::{
    Effect, Memory, Object, Outcome, Pass, Permission, Problem, Pruning, Slot,
};
use bellwether_apply::record::{Entry, Record};
use bellwether_apply::{LiveState, ObjectId, ResourceType, Strategy};
use bellwether_runtime::executor::{self, Refusal};
use bellwether_runtime::{
    Delivery, FIELD_MANAGER, Keeper, ObjectKey, Objects, Queue, RequestError,
};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;

use crate::hub::Hub;

/// After which time it is asked again whether an account may write.
const RIGHTS_WAIT: SignedDuration = SignedDuration::from_secs(60);

/// What is remembered of objects between two passes.
type Memories = HashMap<ObjectId, Memory>;

/// Objects of applications on the hub.
pub(super) struct HubObjects {
    delivery: Delivery<ObjectKey>,
    memories: Mutex<HashMap<ObjectKey, Memories>>,
    /// Shared objects that came from applications that are gone, and since when.
    handed_over: Mutex<HashMap<ObjectId, Timestamp>>,
    clock: bellwether_runtime::Clock,
}

/// What is to be applied, and how.
pub(super) struct Request<'a> {
    /// The objects, in the order in which the application has them.
    pub(super) manifests: &'a [&'a Manifest],
    /// The policies of the application.
    pub(super) policies: &'a ResourcePolicies,
    /// Why they are applied.
    pub(super) occasion: Occasion,
    /// The objects as they were applied last.
    pub(super) recorded: &'a BTreeMap<Identity, Value>,
    /// The account whose rights are asked for; nobody's besides the hub's if there is none.
    pub(super) account: Option<&'a Account>,
    /// How long shared objects keep the content that another application left.
    pub(super) hand_over: SignedDuration,
}

/// What became of objects.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The objects as they are now.
    pub(super) live: HashMap<Identity, Arc<Value>>,
    /// Why objects are not as they should be.
    pub(super) problems: Vec<String>,
    /// Objects that others had changed.
    pub(super) repaired: Vec<String>,
    /// Objects that others deleted and a policy leaves so, in words.
    pub(super) left_deleted: BTreeMap<Identity, String>,
    /// When to look again, if at a certain time.
    pub(super) next: Option<Timestamp>,
}

/// What is to be removed, and how.
pub(super) struct Removal<'a> {
    /// The objects as trackers have them.
    pub(super) entries: &'a [&'a ManagedResource],
    /// Those that stay, and belong to nobody then.
    pub(super) left: &'a BTreeSet<Identity>,
}

/// An object and where it is.
struct Located {
    /// Its place among those asked for.
    index: usize,
    resource: Arc<ResourceType>,
    id: ObjectId,
    manifest: bellwether_apply::Manifest,
}

impl HubObjects {
    /// Delivers objects to a hub; applications are enqueued when one of theirs changes.
    pub(super) fn new(hub: &Hub, queue: Queue<ObjectKey>) -> Self {
        let objects = Objects::new((&hub.client).into(), FIELD_MANAGER);
        let gauge = prometheus_client::metrics::gauge::Gauge::default();
        Self {
            delivery: Delivery::new(objects, Arc::default(), queue, gauge, hub.clock.clone()),
            memories: Mutex::default(),
            handed_over: Mutex::default(),
            clock: hub.clock.clone(),
        }
    }

    /// The kind of an object on the hub; nothing if it does not serve it.
    pub(super) async fn resource(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (discovery, objects) = (&self.delivery.discovery, &self.delivery.objects);
        discovery.find(objects, group, version, kind).await
    }

    /// An object as it is now.
    pub(super) async fn get(&self, object: &Value) -> Result<Option<Value>, RequestError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = self
            .resource(&text(&object["apiVersion"]), &text(&object["kind"]))
            .await?;
        let Some(resource) = resource else {
            return Ok(None);
        };
        let id = ObjectId {
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            namespace: if resource.namespaced {
                text(&object["metadata"]["namespace"])
            } else {
                String::new()
            },
            name: text(&object["metadata"]["name"]),
        };
        self.delivery.objects.get(&resource, &id).await
    }

    /// Applies objects, and tells what they are then.
    pub(super) async fn apply(
        &self,
        key: &ObjectKey,
        request: &Request<'_>,
    ) -> Result<Applied, RequestError> {
        let mut applied = Applied::default();
        let mut located = self.locate(request, &mut applied).await?;
        self.watch(key, &located).await;
        located.retain(|it| !self.is_left_for_now(request, it, &mut applied));
        let owner = AppOwner::new(&key.namespace, &key.name);
        let treatments = treatments(request, &located);
        let mut memories = self.memories.lock().remove(key).unwrap_or_default();
        let slots = located.iter().zip(&treatments).map(|(it, treatment)| {
            let target = treatment.target(&it.manifest, &owner);
            Slot::Open(Object {
                memory: memories.remove(&it.id).unwrap_or_default(),
                permission: match request.account {
                    Some(_) => Permission::GrantedBefore,
                    None => Permission::NotNeeded,
                },
                ..Object::new(it.id.clone(), Arc::clone(&it.resource), target)
            })
        });
        let slots: Vec<Slot<'_>> = slots.collect();
        let pruning = Pruning {
            ownership: owner.ownership(),
            rivals: &[],
            is_left: None,
            is_allowed: false,
        };
        let record = Record {
            applied: located.iter().map(entry).collect(),
            intended: Vec::new(),
        };
        let known = |id: &ObjectId| self.delivery.watches.known(id);
        let pass = Pass::new(slots, record, pruning, known);
        let mut keeper = self.keeper(request.account);
        let settled = self.delivery.carry_out(key, pass, &mut keeper).await?;
        let outcomes = located.iter().zip(&treatments).zip(settled.outcomes);
        for ((it, treatment), outcome) in outcomes {
            if let Some(outcome) = outcome {
                applied.take(request.manifests[it.index], it, treatment, outcome);
            }
        }
        for slot in settled.slots {
            if let Slot::Open(object) = slot {
                memories.insert(object.id, object.memory);
            }
        }
        let mut all = self.memories.lock();
        all.entry(key.clone()).or_default().extend(memories);
        Ok(applied)
    }

    /// Returns true if an object keeps, for now, the content that another application left which shared it. The owner changes at
    /// once, the content when the application is due again, as in KubeVela.
    fn is_left_for_now(
        &self,
        request: &Request<'_>,
        located: &Located,
        applied: &mut Applied,
    ) -> bool {
        let object = &located.manifest.object;
        let known = self.delivery.watches.known(&located.id);
        let live = known.object().filter(|live| {
            request.occasion == Occasion::StateKeep
                && request.policies.shared.selects(object)
                && dispatch::is_handed_over(object, live)
        });
        let mut handed_over = self.handed_over.lock();
        let Some(live) = live else {
            handed_over.remove(&located.id);
            return false;
        };
        let now = self.clock.now();
        let since = *handed_over.entry(located.id.clone()).or_insert(now);
        let due = since.checked_add(request.hand_over).unwrap_or(now);
        if due <= now {
            handed_over.remove(&located.id);
            return false;
        }
        let identity = tracker::identity_of(request.manifests[located.index]);
        applied.live.insert(identity, Arc::new(live.clone()));
        applied.next = [applied.next, Some(due)].into_iter().flatten().min();
        true
    }

    /// Has an application enqueued when one of these objects changes, and waits until they are known.
    async fn watch(&self, key: &ObjectKey, located: &[Located]) {
        for it in located {
            self.delivery.watches.track(&it.id, key);
            self.delivery.watches.ensure(&it.resource);
        }
        for it in located {
            self.delivery.watches.settled(&it.id).await;
        }
    }

    fn keeper<'a>(&'a self, account: Option<&'a Account>) -> TrackerKeeper<'a> {
        TrackerKeeper {
            objects: &self.delivery.objects,
            account,
            now: self.clock.now(),
        }
    }

    /// Finds out where objects are. Of objects that several outputs make, the last is the one that is applied.
    async fn locate(
        &self,
        request: &Request<'_>,
        applied: &mut Applied,
    ) -> Result<Vec<Located>, RequestError> {
        let mut located: Vec<Located> = Vec::with_capacity(request.manifests.len());
        for (index, manifest) in request.manifests.iter().enumerate() {
            let object = &manifest.object;
            let read = match dispatch::read(object) {
                Ok(read) => read,
                Err(error) => {
                    applied.problems.push(said_of(manifest, &error.to_string()));
                    continue;
                }
            };
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            let Some(resource) = self.resource(api_version, &read.kind).await? else {
                let message = unserved(object);
                applied.problems.push(said_of(manifest, &message));
                continue;
            };
            let placed = read.placed(resource.namespaced);
            let id = ObjectId {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: placed.namespace.clone(),
                name: placed.name.clone(),
            };
            located.retain(|it| it.id != id);
            located.push(Located {
                index,
                resource,
                id,
                manifest: placed,
            });
        }
        Ok(located)
    }

    /// Removes objects that an application no longer has. Returns those that are not gone yet, with the reason.
    pub(super) async fn remove(
        &self,
        key: &ObjectKey,
        removal: &Removal<'_>,
    ) -> Result<Vec<(Identity, String)>, RequestError> {
        let mut ids: HashMap<ObjectId, Identity> = HashMap::new();
        let mut recorded = Vec::new();
        for entry in removal.entries {
            // A kind that the hub no longer has, has no objects.
            let Some(resource) = self.resource(&entry.api_version, &entry.kind).await? else {
                continue;
            };
            let id = ObjectId {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: if resource.namespaced {
                    entry.namespace.clone()
                } else {
                    String::new()
                },
                name: entry.name.clone(),
            };
            ids.insert(id.clone(), tracker::identity(entry));
            recorded.push(Entry {
                id,
                version: resource.version.clone(),
                uid: None,
            });
        }
        let owner = AppOwner::new(&key.namespace, &key.name);
        let is_left = |id: &ObjectId| {
            let identity = ids.get(id);
            identity.is_some_and(|identity| removal.left.contains(identity))
        };
        let pruning = Pruning {
            ownership: owner.ownership(),
            rivals: &[],
            is_left: Some(&is_left),
            is_allowed: true,
        };
        let record = Record {
            applied: recorded,
            intended: Vec::new(),
        };
        let known = |id: &ObjectId| self.delivery.watches.known(id);
        let pass = Pass::new(Vec::new(), record, pruning, known);
        let mut keeper = self.keeper(None);
        let settled = self.delivery.carry_out(key, pass, &mut keeper).await?;
        let pending = settled.pending.into_iter().filter_map(|pending| {
            let identity = ids.get(&pending.entry.id)?.clone();
            Some((identity, pending.waits_for))
        });
        let pending = pending.collect();
        if let Some(memories) = self.memories.lock().get_mut(key) {
            for id in &settled.removed {
                memories.remove(id);
            }
        }
        Ok(pending)
    }

    /// Forgets an application that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let memories = self.memories.lock().remove(key).unwrap_or_default();
        for id in memories.keys() {
            self.delivery.watches.untrack(id, key);
            self.handed_over.lock().remove(id);
        }
    }
}

impl std::fmt::Debug for HubObjects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HubObjects")
            .field("applications", &self.memories.lock().len())
            .finish_non_exhaustive()
    }
}

/// How objects are treated.
fn treatments<'a>(request: &Request<'a>, located: &[Located]) -> Vec<Treatment<'a>> {
    let treatment = |it: &Located| {
        let identity = tracker::identity_of(request.manifests[it.index]);
        Treatment::new(
            &it.manifest.object,
            request.recorded.get(&identity),
            request.policies,
            request.occasion,
        )
    };
    located.iter().map(treatment).collect()
}

fn entry(located: &Located) -> Entry {
    Entry {
        id: located.id.clone(),
        version: located.resource.version.clone(),
        uid: None,
    }
}

/// What is said of an object whose kind the hub does not know.
pub(super) fn unserved(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!(
        "{}: the hub does not serve the kind {} of {}; define it first, for example by a CustomResourceDefinition",
        describe(object),
        text("kind"),
        text("apiVersion"),
    )
}

/// What is said of an object, with what it belongs to.
pub(super) fn said_of(manifest: &Manifest, message: &str) -> String {
    match manifest.origin() {
        Some(origin) => format!("{origin}: {message}"),
        None => message.to_owned(),
    }
}

impl Applied {
    fn take(
        &mut self,
        manifest: &Manifest,
        located: &Located,
        treatment: &Treatment<'_>,
        outcome: Outcome,
    ) {
        let object = &located.manifest.object;
        let is_missing = matches!(outcome.live, LiveState::Absent);
        if treatment.strategy == Strategy::ReadOnly && is_missing {
            let message = dispatch::missing(object).to_string();
            self.problems.push(said_of(manifest, &message));
            return;
        }
        if let LiveState::Present(live) = &outcome.live {
            let identity = tracker::identity_of(manifest);
            self.live.insert(identity, Arc::clone(live));
        }
        self.next = [self.next, outcome.again].into_iter().flatten().min();
        let message = match outcome.result {
            Ok(Effect::Repaired) => {
                self.repaired.push(describe(object));
                return;
            }
            Ok(Effect::Left) if is_missing => {
                let identity = tracker::identity_of(manifest);
                let text = dispatch::left_deleted(object);
                self.left_deleted.insert(identity, text);
                return;
            }
            Ok(Effect::Wrote | Effect::Left) => return,
            Err(Problem::Plan(error)) => {
                dispatch::explain(object, outcome.live.object(), error).to_string()
            }
            Err(Problem::Denied(message)) => format!("{}: {message}", describe(object)),
            Err(Problem::Blocked(blocked)) => blocked.message,
            Err(Problem::Failed { message, .. }) if is_missing => {
                format!("{} cannot be created: {message}", describe(object))
            }
            Err(Problem::Failed { message, .. }) => {
                format!("{} cannot be changed: {message}", describe(object))
            }
        };
        self.problems.push(said_of(manifest, &message));
    }
}

/// The tracker has everything already; rights of an account are asked for before a write.
struct TrackerKeeper<'a> {
    objects: &'a Objects,
    account: Option<&'a Account>,
    now: Timestamp,
}

impl Keeper for TrackerKeeper<'_> {
    type Error = RequestError;

    async fn intend(&mut self, intent: Vec<Entry>) -> Result<Record, RequestError> {
        Ok(Record {
            applied: intent,
            intended: Vec::new(),
        })
    }

    async fn ask(&mut self, _: usize, object: &Object<'_>) -> Permission {
        let Some(account) = self.account else {
            return Permission::NotNeeded;
        };
        if *object.target.strategy == Strategy::ReadOnly {
            return Permission::NotNeeded;
        }
        match executor::check(self.objects, account, object).await {
            Ok(()) => Permission::Granted,
            Err(Refusal::Denied(message)) => Permission::Denied {
                until: self.now.checked_add(RIGHTS_WAIT).unwrap_or(self.now),
                message,
            },
            Err(Refusal::Unknown(message)) => Permission::Failed(message),
        }
    }
}
