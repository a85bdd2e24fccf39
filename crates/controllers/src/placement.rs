//! PlacementDecisions for every Placement.
//!
//! [`Fleet`] holds what is known of clusters, sets, bindings, scores, placements and decisions, and
//! tells which placements a change can affect; [`decide`](mod@decide) makes a plan for one of them,
//! and [`execute`] carries it out. Entry point: [`run`].

mod decide;
mod execute;
mod fleet;
mod news;

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::cluster::AddOnPlacementScore;
use bellwether_runtime::{Cache, Change, Next, ObjectKey, Queue, Reconcile};
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, RwLock};

use crate::events::Recorder;
use crate::hub::{Hub, follow};
use fleet::Fleet;

/// How many placements are written at a time: enough that their writes share commits.
const WORKERS: usize = 8;

/// However long it took to write the decisions of a placement, it is decided anew after this time.
const LONGEST_REST: SignedDuration = SignedDuration::from_millis(50);

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
        resting: Mutex::default(),
    };
    bellwether_runtime::run(queue, Arc::new(scheduler), WORKERS).await;
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
    /// Until when placements rest whose decisions have just been written.
    resting: Mutex<HashMap<ObjectKey, Timestamp>>,
}

impl Reconcile for Scheduler {
    type Key = ObjectKey;
    type Error = execute::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, execute::Error> {
        let began = self.hub.clock.now();
        if let Some(until) = self.rest(key, began) {
            return Ok(Some(until));
        }
        let plan = decide::decide(&self.fleet.read(), key, began);
        let Some(plan) = plan else {
            return Ok(None);
        };
        if plan.is_empty() {
            return Ok(plan.wake_at);
        }
        let done = execute::execute(&self.hub.client, &self.fleet, key, &plan).await;
        self.begin_rest(key, began);
        done?;
        for happening in news::of(&plan) {
            self.events.tell(&*plan.placement, happening);
        }
        Ok(plan.wake_at)
    }
}

impl Scheduler {
    /// Until when a placement rests, if it does.
    fn rest(&self, key: &ObjectKey, now: Timestamp) -> Option<Timestamp> {
        let mut resting = self.resting.lock();
        let until = *resting.get(key)?;
        if now < until {
            return Some(until);
        }
        resting.remove(key);
        None
    }

    /// Lets a placement rest for as long as its writes took. A single change is decided at once;
    /// many in a row are gathered meanwhile and decided together, so that at most half of the time
    /// is spent on writing what will soon be overtaken.
    fn begin_rest(&self, key: &ObjectKey, began: Timestamp) {
        let now = self.hub.clock.now();
        let rest = now.duration_since(began).min(LONGEST_REST);
        if rest.is_positive()
            && let Ok(until) = now.checked_add(rest)
        {
            self.resting.lock().insert(key.clone(), until);
        }
    }
}
