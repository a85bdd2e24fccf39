//! Writes the objects of a rollout, removes those that are no longer wanted, and keeps the record.

use std::collections::HashMap;

use bellwether_api::delivery::{Rollout, RolloutResource, RolloutStatus};
use bellwether_api::oam::names::annotation;
use bellwether_apply::pass::{Memory, Object, Outcome, Pass, Problem, Pruning, Settled, Slot};
use bellwether_apply::record::{Entry, Record};
use bellwether_apply::three_way::ThreeWay;
use bellwether_apply::{Drift, LiveState, Manifest, ObjectId, Owner, Ownership, Strategy, Target};
use bellwether_runtime::{Keeper, Next, ObjectKey, Retry};
use kube::Resource as _;
use serde_json::Value;

use super::observe::Located;
use super::{Error, Reconciler};

/// How objects are written: by what changed since they were last applied.
const STRATEGY: Strategy<'static> = Strategy::ThreeWay(ThreeWay {
    annotation: Some(annotation::APP_LAST_APPLIED),
    recorded: None,
    fallback: Some(annotation::KUBECTL_LAST_APPLIED),
    recreate: &[],
    replace: false,
});

/// What became of the objects of a rollout.
pub(super) struct Delivered {
    /// The rollout as it was last written.
    pub(super) rollout: Rollout,
    /// What is on record now.
    pub(super) resources: Vec<RolloutResource>,
    /// Why something is not as it should be.
    pub(super) problem: Option<String>,
    /// When it is tried again although nothing changes.
    pub(super) retry: Retry,
    /// When to look again.
    pub(super) again: Next,
}

impl Delivered {
    /// Nothing was done.
    pub(super) fn unchanged(rollout: Rollout) -> Self {
        let resources = rollout
            .status
            .as_ref()
            .map(|status| status.resources.clone());
        Self {
            resources: resources.unwrap_or_default(),
            rollout,
            problem: None,
            retry: Retry::Never,
            again: None,
        }
    }
}

impl Reconciler {
    /// Writes objects, and removes others that are on record if that is allowed.
    pub(super) async fn deliver(
        &self,
        key: &ObjectKey,
        rollout: Rollout,
        objects: &[Value],
        may_prune: bool,
    ) -> Result<Delivered, Error> {
        let owner = Owner {
            api_version: Rollout::api_version(&()).into_owned(),
            kind: Rollout::kind(&()).into_owned(),
            name: key.name.to_string(),
            uid: rollout.metadata.uid.clone().unwrap_or_default(),
        };
        let ownership = Ownership::Reference {
            owner: &owner,
            belongs: true,
        };
        let mut problem = None;
        let mut wanted = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            let located = self.locate(key, object).await?;
            match prepare(index, object, located, key) {
                Ok(ready) => wanted.push(ready),
                Err(text) => drop(problem.get_or_insert(text)),
            }
        }
        // What cannot be mapped may be on record: nothing is removed before that is clear.
        let may_prune = may_prune && problem.is_none();
        let mut memories = self.memories.lock().remove(key).unwrap_or_default();
        let tracked: Vec<ObjectId> = memories.keys().cloned().collect();
        let slots = wanted
            .iter()
            .map(|(manifest, located)| slot(manifest, located, ownership, &mut memories))
            .collect();
        let pruning = Pruning {
            ownership,
            rivals: &[],
            is_left: None,
            is_allowed: may_prune,
        };
        let live: HashMap<&ObjectId, &Located> = wanted
            .iter()
            .map(|(_, located)| (&located.id, located))
            .collect();
        let known = |id: &ObjectId| match live.get(id) {
            Some(located) => LiveState::of(located.live.clone()),
            None => LiveState::Unknown,
        };
        let before = record_of(&rollout);
        let pass = Pass::new(slots, before.clone(), pruning, known);
        let mut keeper = StatusKeeper {
            reconciler: self,
            key,
            rollout,
        };
        let settled = self.delivery.carry_out(key, pass, &mut keeper).await?;
        let rollout = keeper.rollout;
        let mut delivered = Delivered::unchanged(rollout);
        delivered.problem = problem;
        if delivered.problem.is_some() {
            delivered.retry = Retry::Backoff;
        }
        for refusal in &settled.failed {
            delivered.retry = delivered.retry.min(refusal.retry);
        }
        take_outcomes(&settled, &mut delivered);
        let record = record_of(&delivered.rollout);
        let applied = settled.change.applied.clone().unwrap_or(record.applied);
        let intended = settled.change.intended.clone().unwrap_or(record.intended);
        delivered.resources = resources(applied.into_iter().chain(intended).collect());
        self.remember(key, &tracked, settled);
        Ok(delivered)
    }

    fn remember(&self, key: &ObjectKey, tracked: &[ObjectId], settled: Settled<'_>) {
        let pending = settled
            .pending
            .into_iter()
            .map(|it| (it.entry.id, Memory::default()));
        let mut memories: HashMap<ObjectId, Memory> = pending.collect();
        for slot in settled.slots {
            if let Slot::Open(object) = slot {
                memories.insert(object.id, object.memory);
            }
        }
        for id in tracked.iter().filter(|id| !memories.contains_key(*id)) {
            self.delivery.watches.untrack(id, key);
        }
        self.memories.lock().insert(key.clone(), memories);
    }
}

/// An object as it is written, and where.
fn prepare(
    index: usize,
    object: &Value,
    located: Option<Located>,
    key: &ObjectKey,
) -> Result<(Manifest, Located), String> {
    let manifest = Manifest::read(index, object).map_err(|error| error.to_string())?;
    let title = manifest.described();
    let Some(located) = located else {
        return Err(format!("{title}: its kind is not served here"));
    };
    if located.id.namespace != *key.namespace {
        return Err(format!(
            "{title}: objects outside of namespace {} cannot be rolled out",
            key.namespace
        ));
    }
    Ok((manifest.placed(located.resource.namespaced), located))
}

fn slot<'a>(
    manifest: &'a Manifest,
    located: &Located,
    ownership: Ownership<'a>,
    memories: &mut HashMap<ObjectId, Memory>,
) -> Slot<'a> {
    let target = Target {
        manifest,
        strategy: &STRATEGY,
        drift: Drift::Undo,
        ownership,
        baseline: None,
        applied_before: false,
    };
    let mut object = Object::new(
        located.id.clone(),
        std::sync::Arc::clone(&located.resource),
        target,
    );
    object.memory = memories.remove(&located.id).unwrap_or_default();
    Slot::Open(object)
}

/// Reports what could not be written.
fn take_outcomes(settled: &Settled<'_>, delivered: &mut Delivered) {
    for (slot, outcome) in settled.slots.iter().zip(&settled.outcomes) {
        let (Slot::Open(object), Some(outcome)) = (slot, outcome) else {
            continue;
        };
        delivered.again = delivered.again.into_iter().chain(outcome.again).min();
        delivered.retry = delivered.retry.min(outcome.retry());
        if let Some(text) = problem(outcome) {
            let title = object.target.manifest.described();
            delivered.problem.get_or_insert(format!("{title}: {text}"));
        }
    }
}

fn problem(outcome: &Outcome) -> Option<String> {
    let problem = outcome.result.as_ref().err()?;
    Some(match problem {
        Problem::Plan(error) => error.to_string(),
        Problem::Denied(message) | Problem::Failed { message, .. } => message.clone(),
        Problem::Blocked(blocked) => blocked.message.clone(),
    })
}

fn record_of(rollout: &Rollout) -> Record {
    let resources = rollout
        .status
        .as_ref()
        .map(|status| status.resources.as_slice())
        .unwrap_or_default();
    let entry = |resource: &RolloutResource| Entry {
        id: ObjectId {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            namespace: resource.namespace.clone(),
            name: resource.name.clone(),
        },
        version: resource.version.clone(),
        uid: resource.uid.clone(),
    };
    let (applied, intended) = resources
        .iter()
        .map(entry)
        .partition(|entry| entry.uid.is_some());
    Record { applied, intended }
}

fn resources(entries: Vec<Entry>) -> Vec<RolloutResource> {
    let resource = |entry: Entry| RolloutResource {
        group: entry.id.group,
        version: entry.version,
        resource: entry.id.resource,
        namespace: entry.id.namespace,
        name: entry.id.name,
        uid: entry.uid,
        ..RolloutResource::default()
    };
    bellwether_apply::record::sorted(entries)
        .into_iter()
        .map(resource)
        .collect()
}

/// The status of a rollout is the record of its objects.
struct StatusKeeper<'a> {
    reconciler: &'a Reconciler,
    key: &'a ObjectKey,
    rollout: Rollout,
}

impl Keeper for StatusKeeper<'_> {
    type Error = Error;

    async fn intend(&mut self, intended: Vec<Entry>) -> Result<Record, Error> {
        let applied = record_of(&self.rollout).applied;
        let all: Vec<Entry> = applied.iter().chain(&intended).cloned().collect();
        let status = RolloutStatus {
            resources: resources(all),
            ..self.rollout.status.clone().unwrap_or_default()
        };
        let written = self
            .reconciler
            .publish(self.key, &self.rollout, &status)
            .await?;
        let Some(written) = written else {
            let problem = "the rollout is gone".to_owned();
            return Err(Error::Reported(problem, Retry::Backoff));
        };
        self.rollout = written;
        Ok(Record { applied, intended })
    }
}
