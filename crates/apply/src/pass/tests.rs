//! Passes over sets of ConfigMaps and the like on a cluster in memory.

mod laws;
mod objects;
mod records;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::manifest::{Manifest, ResourceType};
use crate::ownership::Owner;
use crate::retry::Retry;
use crate::target::{Drift, Strategy, Target};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

fn owner() -> Owner {
    Owner {
        api_version: "work.example/v1".into(),
        kind: "Record".into(),
        name: "mine".into(),
        uid: "mine".into(),
    }
}

fn id(name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        resource: "configmaps".into(),
        namespace: "n".into(),
        name: name.into(),
    }
}

fn resource() -> Arc<ResourceType> {
    Arc::new(ResourceType {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    })
}

fn entry(name: &str, uid: Option<&str>) -> Entry {
    Entry {
        id: id(name),
        version: "v1".into(),
        uid: uid.map(str::to_owned),
    }
}

fn manifest(kind: &str, name: &str, value: &str) -> Manifest {
    let object = json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "n"}, "data": {"k": value}});
    Manifest::read(0, &object).unwrap()
}

/// A cluster in memory, and what was done to it.
#[derive(Default)]
struct Cluster {
    objects: BTreeMap<ObjectId, Value>,
    version: u64,
    log: Vec<String>,
    /// Answers to the next requests about an object, instead of what would be done.
    refusals: BTreeMap<String, VecDeque<RefusalKind>>,
    /// Answers to those who ask whether they may.
    permission: Option<Permission>,
}

impl Cluster {
    /// Puts an object there, as ours.
    fn with(mut self, name: &str, value: &str) -> Self {
        let mut object = manifest("ConfigMap", name, value).object;
        object["metadata"]["ownerReferences"] = json!([owner().reference()]);
        self.store(&id(name), object);
        self
    }

    fn changed(mut self, name: &str, change: impl FnOnce(&mut Value)) -> Self {
        change(self.objects.get_mut(&id(name)).unwrap());
        self
    }

    fn refusing(mut self, name: &str, kinds: &[RefusalKind]) -> Self {
        self.refusals
            .insert(name.to_owned(), kinds.iter().copied().collect());
        self
    }

    fn store(&mut self, id: &ObjectId, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if object["metadata"].get("uid").is_none() {
            object["metadata"]["uid"] = format!("uid-{}", id.name).into();
        }
        self.objects.insert(id.clone(), object.clone());
        object
    }

    fn refusal(&mut self, name: &str) -> Option<Refusal> {
        let kind = self.refusals.get_mut(name)?.pop_front()?;
        Some(Refusal {
            kind,
            message: format!("{kind:?}"),
            retry: Retry::Backoff,
        })
    }

    fn answer(&mut self, id: &ObjectId, what: &str) -> Result<(), Refusal> {
        self.log.push(format!("{what} {}", id.name));
        self.refusal(&id.name).map_or(Ok(()), Err)
    }

    fn write(&mut self, id: &ObjectId, step: &Step) -> Result<Option<Value>, Refusal> {
        if let Step::Delete { .. } = step {
            self.answer(id, "delete")?;
            self.objects.remove(id);
            return Ok(None);
        }
        let (what, object) = match step {
            Step::Create(object) => ("create", object.clone()),
            Step::Replace(object) => ("replace", object.clone()),
            Step::Recreate { object, .. } => ("recreate", object.clone()),
            Step::Apply {
                configuration,
                manager,
                force,
            } => {
                let mut object = self.objects.get(id).cloned().unwrap_or_default();
                merge(&mut object, configuration);
                let entry = json!([{"manager": manager, "operation": "Apply"}]);
                object["metadata"]["managedFields"] = entry;
                (if *force { "force" } else { "apply" }, object)
            }
            Step::Own(patch) => ("own", self.patched(id, patch)),
            Step::Patch(patch) => ("patch", self.patched(id, &patch.content)),
            Step::Read | Step::Leave | Step::Delete { .. } => panic!("{step:?} is no write"),
        };
        self.answer(id, what)?;
        Ok(Some(self.store(id, object)))
    }

    fn patched(&self, id: &ObjectId, patch: &Value) -> Value {
        let mut object = self.objects[id].clone();
        merge(&mut object, patch);
        object
    }

    fn delete(&mut self, id: &ObjectId) -> Result<Option<Value>, Refusal> {
        self.answer(id, "delete")?;
        let object = self.objects.get_mut(id).unwrap();
        if object["metadata"].get("finalizers").is_some() {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            return Ok(Some(object.clone()));
        }
        self.objects.remove(id);
        Ok(None)
    }

    fn remove(&mut self, id: &ObjectId, removal: &Removal) -> Result<Option<Value>, Refusal> {
        match removal {
            Removal::Delete { .. } => self.delete(id),
            Removal::Release(patch) => {
                self.answer(id, "release")?;
                let object = self.patched(id, patch);
                Ok(Some(self.store(id, object)))
            }
            Removal::Forget | Removal::Wait(_) => panic!("{removal:?} is nothing to do"),
        }
    }

    fn read(&mut self, id: &ObjectId) -> Result<Option<Value>, Refusal> {
        self.answer(id, "read")?;
        Ok(self.objects.get(id).cloned())
    }

    /// Carries out a pass, whose objects are not known before they are read.
    fn carry_out<'a>(&mut self, mut pass: Pass<'a>, now: Timestamp) -> Settled<'a> {
        for _ in 0..100 {
            match pass.round(|_| LiveState::Unknown, now) {
                Round::Intend(entries) => {
                    let names: Vec<&str> = entries.iter().map(|it| &*it.id.name).collect();
                    self.log.push(format!("intend {}", names.join(" ")));
                    let record = Record {
                        intended: entries,
                        ..pass.record.clone()
                    };
                    pass.intended(record);
                }
                Round::Do(tasks) => tasks
                    .into_iter()
                    .for_each(|task| self.do_task(&mut pass, task, now)),
                Round::Settled => return pass.settle(),
            }
        }
        panic!("the pass does not end: {:?}", self.log);
    }

    fn do_task(&mut self, pass: &mut Pass<'_>, task: Task, now: Timestamp) {
        let id_at = |pass: &Pass<'_>, index: usize| pass.object(index).unwrap().id.clone();
        match task {
            Task::Read(index) => {
                let answer = self.read(&id_at(pass, index));
                pass.was_read(index, answer);
            }
            Task::Ask(index) => {
                self.log.push(format!("ask {}", id_at(pass, index).name));
                let answer = self.permission.clone().unwrap_or(Permission::Granted);
                pass.was_asked(index, answer);
            }
            Task::Write(index, step) => {
                let answer = self.write(&id_at(pass, index), &step);
                pass.was_written(index, step, answer, now);
            }
            Task::ReadRecorded(entry) => {
                let answer = self.read(&entry.id);
                pass.recorded_was_read(&entry, &answer);
            }
            Task::Remove(entry, removal) => {
                let answer = self.remove(&entry.id, &removal);
                pass.was_removed(&entry, &answer);
            }
        }
    }
}

fn merge(target: &mut Value, patch: &Value) {
    bellwether_patch::merge::apply(target, patch.clone()).unwrap();
}

/// What a test has its sets of: manifests, an owner, a strategy.
struct Scene {
    manifests: Vec<Manifest>,
    owner: Owner,
    strategy: Strategy<'static>,
    applied_before: bool,
    may_prune: bool,
    is_left: Option<IsObject<'static>>,
}

impl Scene {
    fn new(names: &[&str]) -> Self {
        let manifests = names.iter().map(|name| manifest("ConfigMap", name, "v"));
        Self {
            manifests: manifests.collect(),
            owner: owner(),
            strategy: Strategy::Update,
            applied_before: true,
            may_prune: true,
            is_left: None,
        }
    }

    fn ownership(&self) -> Ownership<'_> {
        Ownership::Reference {
            owner: &self.owner,
            belongs: true,
        }
    }

    fn object(&self, index: usize) -> Object<'_> {
        let manifest = &self.manifests[index];
        let target = Target {
            manifest,
            strategy: &self.strategy,
            drift: Drift::Undo,
            ownership: self.ownership(),
            baseline: None,
            applied_before: self.applied_before,
        };
        Object::new(id(&manifest.name), resource(), target)
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        (0..self.manifests.len())
            .map(|index| Slot::Open(self.object(index)))
            .collect()
    }

    fn pass<'a>(&'a self, slots: Vec<Slot<'a>>, record: &Record) -> Pass<'a> {
        const RIVALS: &[OwnerKind<'_>] = &[OwnerKind {
            group: "work.example",
            kind: "Record",
        }];
        let pruning = Pruning {
            ownership: self.ownership(),
            rivals: RIVALS,
            is_left: self.is_left,
            is_allowed: self.may_prune,
        };
        Pass::new(slots, record.clone(), pruning, |_| LiveState::Unknown)
    }
}

fn recorded(applied: &[&str], intended: &[&str]) -> Record {
    let uid = |name: &&str| entry(name, Some(&format!("uid-{name}")));
    Record {
        applied: applied.iter().map(uid).collect(),
        intended: intended.iter().map(|name| entry(name, None)).collect(),
    }
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| &*entry.id.name).collect()
}
