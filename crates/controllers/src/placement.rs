//! PlacementDecisions for every Placement.
//!
//! [`Fleet`] holds what is known of clusters, sets, bindings, scores, placements and decisions, and
//! tells which placements a change can affect; `decide` makes a plan for one of them, and `execute`
//! carries it out. Entry point: [`run`].

mod decide;
mod execute;
mod fleet;
mod news;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{
    AddOnPlacementScore, GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    Placement, PlacementDecision,
};
use bellwether_runtime::{Change, Controller, Next, ObjectKey, Reconcile, Recorder, compute};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, RwLock};

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};
use fleet::Fleet;

/// How many placements are written at a time: enough that their writes share commits.
const WORKERS: usize = 8;

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
    let fleet: Arc<RwLock<Fleet>> = Arc::default();
    let (first, scheduler) = (Arc::clone(&fleet), Scheduler::new(&hub, &fleet));
    Controller::new("placement", &hub.clock, &hub.metrics)
        .on(&hub.cache(), learn(&fleet, Fleet::cluster))
        .on(&hub.cache(), learn(&fleet, Fleet::set))
        .on(&hub.cache(), learn(&fleet, Fleet::binding))
        .on(&hub.cache(), learn(&fleet, Fleet::score))
        .on(&hub.cache(), learn(&fleet, Fleet::decision))
        .on(&hub.cache(), learn(&fleet, Fleet::placement))
        // Nothing is decided before everything is known: half a fleet would be taken for all of it.
        .begin_with(move || first.write().begin())
        .workers(WORKERS)
        .debounce(LONGEST_REST)
        .run(Arc::new(scheduler))
        .await;
}

/// Updates the fleet by a change, and returns the placements that it can affect.
fn learn<K>(
    fleet: &Arc<RwLock<Fleet>>,
    learn: fn(&mut Fleet, &Change<'_, K>) -> Vec<ObjectKey>,
) -> impl Fn(&Change<'_, K>) -> Vec<ObjectKey> + Send + 'static
where
    K: 'static,
{
    let fleet = Arc::clone(fleet);
    move |change| learn(&mut fleet.write(), change)
}

struct Scheduler {
    hub: Hub,
    fleet: Arc<RwLock<Fleet>>,
    events: Recorder,
    /// Placements whose expressions cost too much, and until when that stands.
    over_budget: Mutex<HashMap<ObjectKey, (Content, Timestamp)>>,
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
        let now = self.hub.clock.now();
        let content = self.content(key);
        if let Some(until) = self.over_budget_until(key, &content, now) {
            return Ok(Some(until));
        }
        let decide = || decide::decide(&self.fleet.read(), key, now);
        let plan = if content.has_expressions {
            compute(decide).await
        } else {
            decide()
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
        for happening in news::of(&plan) {
            self.events.record(&*plan.placement, happening);
        }
        Ok(plan.wake_at)
    }
}

impl Scheduler {
    fn new(hub: &Hub, fleet: &Arc<RwLock<Fleet>>) -> Self {
        Self {
            events: hub.recorder("placement"),
            hub: hub.clone(),
            fleet: Arc::clone(fleet),
            over_budget: Mutex::default(),
        }
    }

    /// What a placement asks for, as far as it is known.
    fn content(&self, key: &ObjectKey) -> Content {
        let fleet = self.fleet.read();
        let Some(known) = fleet.known(key) else {
            return Content::default();
        };
        let metadata = &known.object.metadata;
        Content {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            has_expressions: known.rules.has_expressions(),
        }
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
