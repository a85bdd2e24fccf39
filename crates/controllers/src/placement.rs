//! PlacementDecisions for every Placement.
//!
//! [`Fleet`] holds what is known of clusters, sets, bindings, scores, placements and decisions, and
//! tells which placements a change can affect; [`decide`](mod@decide) makes a plan for one of them,
//! and [`execute`] carries it out. Entry point: [`run`].

mod decide;
mod execute;
mod fleet;
mod news;

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::AddOnPlacementScore;
use bellwether_runtime::{Cache, Change, Controller, Next, ObjectKey, Queue, Reconcile};
use parking_lot::RwLock;

use crate::events::Recorder;
use crate::hub::{Hub, follow};
use fleet::Fleet;

/// How many placements are written at a time: enough that their writes share commits.
const WORKERS: usize = 8;

/// How long changes are gathered at most after the decisions of a placement were written.
const LONGEST_REST: Duration = Duration::from_millis(50);

/// Keeps the decisions of all placements true, for ever.
pub async fn run(hub: Hub) {
    let queue = Queue::new(hub.clock.clone());
    let fleet: Arc<RwLock<Fleet>> = Arc::default();
    let scores = follow::<AddOnPlacementScore>(&hub.client);
    listen(&hub.clusters, &fleet, &queue, Fleet::cluster);
    listen(&hub.cluster_sets, &fleet, &queue, Fleet::set);
    listen(&hub.bindings, &fleet, &queue, Fleet::binding);
    listen(&scores, &fleet, &queue, Fleet::score);
    listen(&hub.decisions, &fleet, &queue, Fleet::decision);
    listen(&hub.placements, &fleet, &queue, Fleet::placement);
    hub.ready().await;
    scores.ready().await;
    // Nothing is decided before everything is known: half a fleet would be taken for all of it.
    for key in fleet.write().begin() {
        queue.add(key);
    }
    let scheduler = Scheduler {
        events: Recorder::new(&hub.client, &hub.clock, "placement"),
        hub,
        fleet,
    };
    Controller::with_queue("placement", queue, &scheduler.hub.metrics)
        .workers(WORKERS)
        .debounce(LONGEST_REST)
        .run(Arc::new(scheduler))
        .await;
}

/// Has a change told to the fleet, and the placements that it can affect looked at.
fn listen<K: Send + Sync + 'static>(
    cache: &Cache<K>,
    fleet: &Arc<RwLock<Fleet>>,
    queue: &Queue<ObjectKey>,
    learn: fn(&mut Fleet, &Change<'_, K>) -> Vec<ObjectKey>,
) {
    let (fleet, queue) = (Arc::clone(fleet), queue.clone());
    cache.subscribe(move |change| {
        let affected = learn(&mut fleet.write(), &change);
        for key in affected {
            queue.add(key);
        }
    });
}

struct Scheduler {
    hub: Hub,
    fleet: Arc<RwLock<Fleet>>,
    events: Recorder,
}

impl Reconcile for Scheduler {
    type Key = ObjectKey;
    type Error = execute::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, execute::Error> {
        let now = self.hub.clock.now();
        let plan = decide::decide(&self.fleet.read(), key, now);
        let Some(plan) = plan else {
            return Ok(None);
        };
        if plan.is_empty() {
            return Ok(plan.wake_at);
        }
        execute::execute(&self.hub.client, &self.fleet, key, &plan).await?;
        for happening in news::of(&plan) {
            self.events.tell(&*plan.placement, happening);
        }
        Ok(plan.wake_at)
    }
}
