//! PlacementDecisions for every Placement.
//!
//! `Fleet` holds what is known of clusters, sets, bindings, scores, placements and decisions, and
//! tells which placements a change can affect; `decide` makes a plan for one of them, and `execute`
//! carries it out. Entry point: [`run`].

mod decide;
mod decision_events;
mod execute;
mod fleet;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{
    AddOnPlacementScore, GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    Placement, PlacementDecision,
};
use bellwether_runtime::{
    Change, Controller, Next, ObjectKey, Queue, Reconcile, Recorder, compute,
};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use fleet::{Fleet, IndexedPlacement};
use shared::SharedFleet;

/// How many placements are written at a time: enough that their writes share commits.
const WORKERS: usize = 8;

/// How many placements with expressions are decided or written at a time.
const PROGRAM_WORKERS: usize = 4;

/// How long changes are gathered at most after the decisions of a placement were written.
const LONGEST_REST: Duration = Duration::from_millis(50);

/// How long the verdict stands that the expressions of a placement cost too much, unless it changes.
const BUDGET_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// The controller of placements.
pub const ENTRY: Entry = Entry {
    name: "placement",
    about: "chooses clusters for placements",
    watches: &[
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ManagedClusterSet>(),
        Watched::kind::<ManagedClusterSetBinding>(),
        Watched::kind::<AddOnPlacementScore>(),
        Watched::kind::<PlacementDecision>(),
        Watched::kind::<Placement>(),
    ],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["placementdecisions"],
            verbs: &["create", "patch", "delete"],
        },
        Rule {
            group: GROUP,
            resources: &["placementdecisions/status", "placements/status"],
            verbs: &["patch"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps the decisions of all placements up to date, until it is dropped.
pub async fn run(hub: Hub) {
    let fleet: Arc<SharedFleet> = Arc::default();
    let first = Arc::clone(&fleet);
    // Placements with expressions wait for each other, and no other placement waits for them.
    let programs = Controller::new("placement-programs", &hub.clock, &hub.metrics);
    let scheduler = Arc::new(Scheduler::new(&hub, &fleet, programs.queue()));
    let programs = programs
        .workers(PROGRAM_WORKERS)
        .debounce(LONGEST_REST)
        .run(Arc::new(Programs(Arc::clone(&scheduler))));
    Controller::new("placement", &hub.clock, &hub.metrics)
        .on(&hub.cache(), learn(&fleet, Fleet::cluster))
        .on(&hub.cache(), learn(&fleet, Fleet::set))
        .on(&hub.cache(), learn(&fleet, Fleet::binding))
        .on(&hub.cache(), learn(&fleet, Fleet::score))
        .on(&hub.cache(), learn(&fleet, Fleet::decision))
        .on(&hub.cache(), learn(&fleet, Fleet::placement))
        // Nothing is decided before everything is known: half a fleet would be taken for all of it.
        .begin_with(move || first.change(Fleet::begin))
        .beside(programs)
        .workers(WORKERS)
        .debounce(LONGEST_REST)
        .run(scheduler)
        .await;
}

/// Updates the fleet by a change, and returns the placements that it can affect.
fn learn<K>(
    fleet: &Arc<SharedFleet>,
    learn: fn(&mut Fleet, &Change<'_, K>) -> Vec<ObjectKey>,
) -> impl Fn(&Change<'_, K>) -> Vec<ObjectKey> + Send + 'static
where
    K: 'static,
{
    let fleet = Arc::clone(fleet);
    move |change| fleet.change(|fleet| learn(fleet, change))
}

struct Scheduler {
    hub: Hub,
    fleet: Arc<SharedFleet>,
    events: Recorder,
    /// Placements whose expressions cost too much, and until when that stands.
    over_budget: Mutex<HashMap<ObjectKey, (Content, Timestamp)>>,
    /// Where placements with expressions are decided.
    programs: Queue<ObjectKey>,
}

/// Decides about placements with expressions, which may take a while.
struct Programs(Arc<Scheduler>);

impl Reconcile for Programs {
    type Key = ObjectKey;
    type Error = execute::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, execute::Error> {
        self.0.decide(key).await
    }
}

/// What is asked for by a placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Content {
    uid: Option<String>,
    generation: Option<i64>,
    has_expressions: bool,
}

impl Reconcile for Scheduler {
    type Key = ObjectKey;
    type Error = execute::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, execute::Error> {
        if self.content(key).has_expressions {
            self.programs.add(key.clone());
            return Ok(None);
        }
        self.decide(key).await
    }
}

impl Scheduler {
    fn new(hub: &Hub, fleet: &Arc<SharedFleet>, programs: Queue<ObjectKey>) -> Self {
        Self {
            events: hub.recorder("placement"),
            hub: hub.clone(),
            fleet: Arc::clone(fleet),
            over_budget: Mutex::default(),
            programs,
        }
    }

    /// Decides about a placement, and writes what is decided.
    async fn decide(&self, key: &ObjectKey) -> Result<Next, execute::Error> {
        let now = self.hub.clock.now();
        let content = self.content(key);
        if let Some(until) = self.over_budget_until(key, &content, now) {
            return Ok(Some(until));
        }
        let decide = |fleet: &Fleet| decide::decide(fleet, key, now);
        let plan = if content.has_expressions {
            compute(|| decide(&self.fleet.snapshot())).await
        } else {
            self.fleet.read(decide)
        };
        let Some(mut plan) = plan else {
            return Ok(None);
        };
        if plan.is_over_budget {
            let until = now.checked_add(BUDGET_PAUSE).unwrap_or(Timestamp::MAX);
            plan.wake_at = Some(until);
            self.over_budget
                .lock()
                .insert(key.clone(), (content, until));
        }
        if plan.is_empty() {
            return Ok(plan.wake_at);
        }
        execute::execute(&self.hub.client, &self.fleet, key, &plan).await?;
        for happening in decision_events::of(&plan) {
            self.events.record(&*plan.placement, happening);
        }
        Ok(plan.wake_at)
    }

    /// What a placement asks for, as far as it is known.
    fn content(&self, key: &ObjectKey) -> Content {
        let read = |known: &IndexedPlacement| {
            let metadata = &known.object.metadata;
            Content {
                uid: metadata.uid.clone(),
                generation: metadata.generation,
                has_expressions: known.rules.has_expressions(),
            }
        };
        let content = |fleet: &Fleet| fleet.known(key).map(read);
        self.fleet.read(content).unwrap_or_default()
    }

    /// Until when the verdict stands that expressions cost too much, if it does.
    fn over_budget_until(
        &self,
        key: &ObjectKey,
        content: &Content,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut over_budget = self.over_budget.lock();
        let (known, until) = over_budget.get(key)?;
        if known == content && now < *until {
            return Some(*until);
        }
        over_budget.remove(key);
        None
    }
}
