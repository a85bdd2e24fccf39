//! Applying the objects of an ApplicationConfiguration, and deleting those that it no longer has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{ApplicationConfiguration, AppliedWorkload};
use bellwether_application::configuration::apply_once::{Decision, decide};
use bellwether_application::configuration::data_passing::pass_values;
use bellwether_application::configuration::ownership::ConfigurationOwner;
use bellwether_application::configuration::record::{
    self, Fate, Removal, Target as StatusTarget, Unwanted, recorded, removal, unwanted,
};
use bellwether_application::configuration::render::{Rendered, RenderedObject};
use bellwether_apply::pass::{
    Blocked, Effect, Memory, Object, Outcome, Pass, Problem, Pruning, Settled, Slot,
};
use bellwether_apply::record::{Entry, Record};
use bellwether_apply::three_way::ThreeWay;
use bellwether_apply::{
    Drift, LiveState, Manifest, ObjectId, Ownership, ResourceType, Strategy, Target,
};
use bellwether_runtime::{Keeper, Next, ObjectKey, Retry};
use jiff::Timestamp;
use serde_json::Value;

use super::observe::{Located, Observed};
use super::report::{Failure, Report};
use super::{Error, Reconciler};

/// How objects are written: by what changed since they were last applied.
const STRATEGY: Strategy<'static> = Strategy::ThreeWay(ThreeWay {
    annotation: Some(annotation::APP_LAST_APPLIED),
    recorded: None,
    fallback: Some(annotation::KUBECTL_LAST_APPLIED),
    recreate: &[],
    replace: false,
});

/// An object as it is delivered.
struct Wanted {
    located: Located,
    /// What is written; nothing if the object waits, or its kind is not served.
    manifest: Option<Manifest>,
    decision: Decision,
    /// Why it is not written, if somebody else controls it.
    refusal: Option<String>,
}

/// What is done to what is no longer wanted.
#[derive(Default)]
struct Leftovers {
    /// On record, and to be deleted.
    deleted: Vec<(Unwanted, Located)>,
    /// Kept as workloads of earlier revisions.
    kept: Vec<Unwanted>,
    /// On record, and not to be deleted, each with the reason.
    refused: Vec<(Unwanted, Located, String)>,
}

impl Leftovers {
    fn refused_places(&self) -> impl Iterator<Item = &(Arc<ResourceType>, ObjectId)> {
        let located = self.refused.iter().map(|(_, located, _)| located);
        located.filter_map(|located| located.place.as_ref())
    }
}

impl Reconciler {
    /// Renders an ApplicationConfiguration, applies what is wanted, and deletes what is not.
    pub(super) async fn apply(&self, key: &ObjectKey, mut report: Report) -> Result<Next, Error> {
        let configuration = Arc::clone(&report.configuration);
        let mut rendered = match self.observe(key, &configuration).await? {
            Observed::Rendered(rendered) => rendered,
            Observed::Waits => return Ok(None),
            Observed::Refused(reason) => {
                report.fail(Failure::Render, reason);
                self.publish(key, report).await?;
                return Ok(None);
            }
        };
        let owner = owner_of(key, &configuration);
        let wanted = self.wanted(key, &mut rendered, &mut report, &owner).await?;
        let mut manifests = wanted.iter().filter_map(|it| it.manifest.as_ref());
        if manifests.any(|manifest| !owner.can_own(&manifest.object)) {
            self.add_finalizer(key, &mut report).await?;
        }
        let leftovers = self.leftovers(key, &rendered, &report).await?;
        self.deliver(key, &rendered, &wanted, leftovers, report)
            .await
    }

    /// Decides about each object, given what is there.
    async fn wanted(
        &self,
        key: &ObjectKey,
        rendered: &mut Rendered,
        report: &mut Report,
        owner: &ConfigurationOwner,
    ) -> Result<Vec<Wanted>, Error> {
        let mut located = Vec::with_capacity(rendered.objects.len());
        for object in &rendered.objects {
            located.push(self.locate(key, &object.reference(&key.namespace)).await?);
        }
        let live: Vec<_> = located.iter().map(|it| it.live.clone()).collect();
        let configuration = serde_json::to_value(&*report.configuration).unwrap_or_default();
        let (unsatisfied, waits) = pass_values(rendered, &live, &configuration);
        report.unsatisfied = unsatisfied;
        let before = report.workloads();
        let parts = rendered.objects.iter().zip(located).zip(waits).enumerate();
        let wanted = parts.map(|(index, ((object, located), waits))| {
            let reference = object.reference(&key.namespace);
            let recorded = recorded(before, &reference, object.role);
            let live = located.live.as_ref();
            Wanted {
                decision: decide(self.mode, &object.object, live, recorded),
                refusal: live.and_then(|live| owner.refusal(live)),
                manifest: manifest(index, object, &located, owner).filter(|_| !waits),
                located,
            }
        });
        Ok(wanted.collect())
    }

    async fn leftovers(
        &self,
        key: &ObjectKey,
        rendered: &Rendered,
        report: &Report,
    ) -> Result<Leftovers, Error> {
        let mut leftovers = Leftovers::default();
        for unwanted in unwanted(&report.old_status(), rendered, &key.namespace) {
            let located = self.locate(key, &unwanted.reference).await?;
            match removal(self.mode, &unwanted, rendered, located.live.as_ref()) {
                Removal::Delete => leftovers.deleted.push((unwanted, located)),
                Removal::Keep if located.live.is_some() => leftovers.kept.push(unwanted),
                Removal::Keep => {}
                Removal::Refuse(reason) => {
                    leftovers.refused.push((unwanted, located, reason));
                }
            }
        }
        Ok(leftovers)
    }

    async fn deliver(
        &self,
        key: &ObjectKey,
        rendered: &Rendered,
        wanted: &[Wanted],
        leftovers: Leftovers,
        report: Report,
    ) -> Result<Next, Error> {
        let labels = labels_of(key);
        let mut memories = self.take_memories(key);
        let slots = rendered.objects.iter().zip(wanted);
        let slots = slots
            .map(|(object, it)| slot(object, it, &mut memories))
            .collect();
        let pruning = Pruning {
            ownership: Ownership::Labels {
                labels: &labels,
                adopt: false,
            },
            rivals: &[],
            is_left: None,
            is_allowed: true,
        };
        let record = record_of(rendered, wanted, &leftovers, report.workloads(), key);
        let live: HashMap<&ObjectId, &Located> = wanted
            .iter()
            .filter_map(|it| Some((&it.located.place.as_ref()?.1, &it.located)))
            .collect();
        let known = |id: &ObjectId| match live.get(id) {
            Some(located) => LiveState::of(located.live.clone()),
            None => LiveState::Unknown,
        };
        let pass = Pass::new(slots, record, pruning, known);
        let mut keeper = StatusKeeper {
            reconciler: self,
            key,
            rendered,
            wanted,
            leftovers: &leftovers,
            report,
        };
        let settled = self.delivery.carry_out(key, pass, &mut keeper).await;
        let mut report = keeper.report;
        let settled = settled?;
        let now = self.hub.clock.now();
        let next = take_outcomes(
            &settled,
            rendered,
            wanted,
            &leftovers,
            &mut report,
            key,
            now,
        );
        self.keep_memories(key, &memories, &leftovers, settled);
        let problem = report.problem();
        self.publish(key, report).await?;
        match problem {
            Some(problem) if next.retry.is_due() => Err(Error::Reported(problem, next.retry)),
            _ => Ok(next.at),
        }
    }

    fn take_memories(&self, key: &ObjectKey) -> HashMap<ObjectId, Memory> {
        let mut kept = self.kept.lock();
        let kept = kept.entry(key.clone()).or_default();
        std::mem::take(&mut kept.memories)
    }

    /// Keeps what is remembered of objects; those that are neither wanted nor on their way out are no longer watched.
    fn keep_memories(
        &self,
        key: &ObjectKey,
        before: &HashMap<ObjectId, Memory>,
        leftovers: &Leftovers,
        settled: Settled<'_>,
    ) {
        let pending = settled
            .pending
            .into_iter()
            .map(|it| (it.entry.id, Memory::default()));
        let mut memories: HashMap<ObjectId, Memory> = pending.collect();
        for (resource, id) in leftovers.refused_places() {
            // It may be deleted once it has no replicas.
            self.delivery.watches.track(id, key);
            self.delivery.watches.ensure(resource);
            memories.insert(id.clone(), Memory::default());
        }
        for slot in settled.slots {
            match slot {
                Slot::Open(object) => drop(memories.insert(object.id, object.memory)),
                Slot::Finished(id) => drop(memories.insert(id, Memory::default())),
                Slot::Unmapped { .. } => {}
            }
        }
        for id in before.keys().filter(|id| !memories.contains_key(*id)) {
            self.delivery.watches.untrack(id, key);
        }
        self.kept.lock().entry(key.clone()).or_default().memories = memories;
    }

    /// Deletes everything that is on record. Returns false if something is not gone yet.
    pub(super) async fn remove_all(
        &self,
        key: &ObjectKey,
        report: &mut Report,
    ) -> Result<bool, Error> {
        let nothing = Rendered::default();
        let mut leftovers = Leftovers::default();
        for unwanted in unwanted(&report.old_status(), &nothing, &key.namespace) {
            let located = self.locate(key, &unwanted.reference).await?;
            leftovers.deleted.push((unwanted, located));
        }
        let labels = labels_of(key);
        let pruning = Pruning {
            ownership: Ownership::Labels {
                labels: &labels,
                adopt: false,
            },
            rivals: &[],
            is_left: None,
            is_allowed: true,
        };
        let record = record_of(&nothing, &[], &leftovers, &[], key);
        let pass = Pass::new(Vec::new(), record, pruning, |_| LiveState::Unknown);
        let mut keeper = NothingIntended;
        let settled = self.delivery.carry_out(key, pass, &mut keeper).await?;
        for pending in &settled.pending {
            report.fail(
                Failure::GarbageCollect,
                format!("waits for {}", pending.waits_for),
            );
        }
        let is_gone = settled.pending.is_empty();
        let memories = self.take_memories(key);
        self.keep_memories(key, &memories, &Leftovers::default(), settled);
        Ok(is_gone)
    }
}

fn owner_of(key: &ObjectKey, configuration: &ApplicationConfiguration) -> ConfigurationOwner {
    ConfigurationOwner {
        name: key.name.to_string(),
        namespace: key.namespace.to_string(),
        uid: configuration.metadata.uid.clone().unwrap_or_default(),
    }
}

/// By what objects on record are known to be of an ApplicationConfiguration.
fn labels_of(key: &ObjectKey) -> BTreeMap<String, String> {
    BTreeMap::from([(label::APP_NAME.to_owned(), key.name.to_string())])
}

/// An object as it is written: in its place, and owned if it can be.
fn manifest(
    index: usize,
    object: &RenderedObject,
    located: &Located,
    owner: &ConfigurationOwner,
) -> Option<Manifest> {
    let (resource, _) = located.place.as_ref()?;
    // Rendering has given it kind and name.
    let manifest = Manifest::read(index, &object.object).ok()?;
    let mut manifest = manifest.placed(resource.namespaced);
    owner.claim(&mut manifest.object);
    Some(manifest)
}

fn slot<'a>(
    object: &RenderedObject,
    wanted: &'a Wanted,
    memories: &mut HashMap<ObjectId, Memory>,
) -> Slot<'a> {
    let Some((resource, id)) = &wanted.located.place else {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (object, metadata) = (&object.object, &object.object["metadata"]);
        let group = text(&object["apiVersion"]);
        return Slot::Unmapped {
            group: group
                .split_once('/')
                .map_or("", |(group, _)| group)
                .to_owned(),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        };
    };
    let Some(manifest) = &wanted.manifest else {
        return Slot::Finished(id.clone());
    };
    let is_left = wanted.decision == Decision::Leave;
    let target = Target {
        manifest,
        strategy: &STRATEGY,
        drift: if is_left {
            Drift::KeepDeleted
        } else {
            Drift::Undo
        },
        ownership: Ownership::None,
        baseline: None,
        applied_before: is_left,
    };
    let mut object = Object::new(id.clone(), Arc::clone(resource), target);
    object.memory = memories.remove(id).unwrap_or_default();
    object.blocked = wanted.refusal.clone().map(|message| Blocked {
        message,
        until: None,
        retry: Retry::Never,
    });
    Slot::Open(object)
}

/// What the status has on record, as the engine sees it.
fn record_of(
    rendered: &Rendered,
    wanted: &[Wanted],
    leftovers: &Leftovers,
    before: &[AppliedWorkload],
    key: &ObjectKey,
) -> Record {
    let entry = |located: &Located, uid: Option<String>| {
        let (resource, id) = located.place.as_ref()?;
        Some(Entry {
            id: id.clone(),
            version: resource.version.clone(),
            uid,
        })
    };
    let is_recorded = |object: &RenderedObject| {
        let reference = object.reference(&key.namespace);
        let mut all = before.iter().flat_map(|workload| {
            let traits = workload.traits.iter().map(|it| &it.trait_ref);
            std::iter::once(&workload.workload_ref).chain(traits)
        });
        all.any(|known| record::is_same(known, &reference))
    };
    let known = rendered.objects.iter().zip(wanted);
    let known = known
        .filter(|(object, _)| is_recorded(object))
        .filter_map(|(_, it)| entry(&it.located, it.located.uid()));
    let deleted = leftovers.deleted.iter();
    let deleted =
        deleted.filter_map(|(unwanted, located)| entry(located, unwanted.reference.uid.clone()));
    Record {
        applied: known.chain(deleted).collect(),
        intended: Vec::new(),
    }
}

/// When to reconcile again.
struct Again {
    /// At a certain time.
    at: Next,
    /// Besides that, although nothing changes.
    retry: Retry,
}

/// Reports what became of each object.
fn take_outcomes(
    settled: &Settled<'_>,
    rendered: &Rendered,
    wanted: &[Wanted],
    leftovers: &Leftovers,
    report: &mut Report,
    key: &ObjectKey,
    now: Timestamp,
) -> Again {
    let mut again = Again {
        at: None,
        retry: settled
            .failed
            .iter()
            .map(|it| it.retry)
            .min()
            .unwrap_or_default(),
    };
    let mut fates = Vec::with_capacity(wanted.len());
    let parts = rendered.objects.iter().zip(wanted).zip(&settled.outcomes);
    for ((object, wanted), outcome) in parts {
        let problem = problem(wanted, outcome.as_ref());
        if let Some(outcome) = outcome {
            again.at = again.at.into_iter().chain(outcome.again).min();
            again.retry = again.retry.min(outcome.retry());
            report.has_written |= matches!(outcome.result, Ok(Effect::Wrote));
            // What was written may have the values that others wait for.
            if !report.unsatisfied.is_empty() && outcome.result != Ok(Effect::Left) {
                again.at = Some(now);
            }
        }
        // A kind that is not served may be defined any time.
        if wanted.located.place.is_none() {
            again.retry = Retry::Backoff;
        }
        fates.push(fate(wanted, outcome.as_ref()));
        if let Some(problem) = problem {
            let name = object.object["metadata"]["name"]
                .as_str()
                .unwrap_or_default();
            let kind = object.object["kind"].as_str().unwrap_or_default();
            report.fail(Failure::Apply, format!("{kind} {name}: {problem}"));
        }
    }
    for pending in &settled.pending {
        report.fail(
            Failure::GarbageCollect,
            format!("waits for {}", pending.waits_for),
        );
    }
    for (unwanted, _, reason) in &leftovers.refused {
        let reference = &unwanted.reference;
        let text = format!("{} {}: {reason}", reference.kind, reference.name);
        report.fail(Failure::GarbageCollect, text);
    }
    let refused = leftovers.refused.iter();
    let mut left: Vec<Unwanted> = refused.map(|(it, _, _)| it.clone()).collect();
    for (unwanted, located) in &leftovers.deleted {
        let id = located.place.as_ref().map(|(_, id)| id);
        if settled.pending.iter().any(|it| Some(&it.entry.id) == id) {
            left.push(unwanted.clone());
        } else if located.live.is_some() {
            report.collected.push(unwanted.reference.clone());
        }
    }
    report.settle(rendered, &fates, &left, &leftovers.kept, key);
    again
}

/// Why an object is not as it should be.
fn problem(wanted: &Wanted, outcome: Option<&Outcome>) -> Option<String> {
    if wanted.located.place.is_none() {
        return Some("its kind is not served here".to_owned());
    }
    let problem = outcome?.result.as_ref().err()?;
    Some(match problem {
        Problem::Plan(error) => error.to_string(),
        Problem::Denied(message) | Problem::Failed { message, .. } => message.clone(),
        Problem::Blocked(blocked) => blocked.message.clone(),
    })
}

fn fate(wanted: &Wanted, outcome: Option<&Outcome>) -> Fate {
    let is_applied = outcome.is_some_and(|outcome| outcome.result.is_ok());
    let live = outcome.and_then(|outcome| outcome.live.object());
    let uid = live.and_then(|live| live["metadata"]["uid"].as_str());
    Fate {
        is_applied,
        waits: wanted.located.place.is_some() && wanted.manifest.is_none(),
        uid: uid.filter(|_| is_applied).map(str::to_owned),
    }
}

/// The status of an ApplicationConfiguration is the record of its objects.
struct StatusKeeper<'a> {
    reconciler: &'a Reconciler,
    key: &'a ObjectKey,
    rendered: &'a Rendered,
    wanted: &'a [Wanted],
    leftovers: &'a Leftovers,
    report: Report,
}

impl Keeper for StatusKeeper<'_> {
    type Error = Error;

    async fn intend(&mut self, intended: Vec<Entry>) -> Result<Record, Error> {
        let old = self.report.workloads();
        let fates: Vec<Fate> = self
            .wanted
            .iter()
            .map(|wanted| Fate {
                is_applied: false,
                waits: wanted.manifest.is_none(),
                uid: wanted.located.uid().filter(|_| wanted.refusal.is_none()),
            })
            .collect();
        let deleted = self.leftovers.deleted.iter().map(|(unwanted, _)| unwanted);
        let refused = self
            .leftovers
            .refused
            .iter()
            .map(|(unwanted, _, _)| unwanted);
        let left: Vec<Unwanted> = deleted.chain(refused).cloned().collect();
        let target = StatusTarget {
            namespace: &self.key.namespace,
            generation: self.report.generation(),
        };
        let workloads = record::workloads(old, self.rendered, &fates, &left, target);
        self.reconciler
            .write_intent(self.key, &mut self.report, &workloads)
            .await?;
        let record = record_of(
            self.rendered,
            self.wanted,
            self.leftovers,
            self.report.workloads(),
            self.key,
        );
        Ok(Record {
            applied: record.applied,
            intended,
        })
    }
}

/// A record to which nothing is added.
struct NothingIntended;

impl Keeper for NothingIntended {
    type Error = Error;

    async fn intend(&mut self, intended: Vec<Entry>) -> Result<Record, Error> {
        Ok(Record {
            applied: Vec::new(),
            intended,
        })
    }
}
