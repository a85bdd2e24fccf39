//! Removes works that are complete once their time to live is over.
//!
//! Agents of this project do that themselves. Those of Open Cluster Management leave it to the hub, and
//! so does an agent that may not delete works. What is kept in memory of a work is when it goes.
//! Entry point: [`run`].

use std::sync::Arc;

use bellwether_api::work::{GROUP, ManifestWork};
use bellwether_runtime::{Cache, CacheEntry, Controller, Next, ObjectKey, Reconcile, Selection};
use bellwether_work::lifecycle::{self, AfterCompletion};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource as _};

use crate::hub::Hub;
use crate::registry::{Entry, Rule};

/// How much later than the agent the hub acts. Times of other agents are cut to seconds: what is
/// counted from them must not end early either.
const DELAY: SignedDuration = SignedDuration::from_secs(2);

/// The controller that ends works.
pub const ENTRY: Entry = Entry {
    name: "work-ttl",
    about: "deletes complete works after their time to live, where agents do not",
    watches: &[],
    rights: &[Rule {
        group: GROUP,
        resources: &["manifestworks"],
        verbs: &["get", "list", "watch", "delete"],
    }],
    run: |hub, _| run(hub).boxed(),
};

/// Removes works whose time to live is over, until it is dropped.
pub async fn run(hub: Hub) {
    let path = ManifestWork::url_path(&(), None);
    let works: Cache<Expiry> =
        Cache::follow(hub.client.clone(), path, Selection::default(), |_| {});
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&works, |change| {
            let expires = change.new.is_some_and(|work| work.removed_at.is_some());
            expires.then(|| change.key.clone())
        })
        .run(Arc::new(Removal {
            hub,
            works: works.clone(),
        }))
        .await;
}

/// When a work goes.
struct Expiry {
    key: ObjectKey,
    uid: Option<String>,
    version: Option<String>,
    removed_at: Option<Timestamp>,
}

impl CacheEntry for Expiry {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let work: ManifestWork = serde_json::from_str(text)?;
        let removed_at = match lifecycle::afterlife(&work) {
            AfterCompletion::DeleteAt(time) if work.metadata.deletion_timestamp.is_none() => {
                Some(time)
            }
            _ => None,
        };
        Ok(Self {
            key: ObjectKey::of(&work),
            removed_at: removed_at.map(|time| last_moment(&work, time)),
            uid: work.metadata.uid,
            version: work.metadata.resource_version,
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version.is_some() && self.version == other.version
    }
}

/// When the hub removes a work: a little later than its agent would.
fn last_moment(work: &ManifestWork, time: Timestamp) -> Timestamp {
    let status = work.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let complete = lifecycle::find(conditions, bellwether_api::work::names::condition::COMPLETE);
    let since = complete.map_or(time, |complete| complete.last_transition_time.0);
    let time = time.max(since);
    time.checked_add(DELAY).unwrap_or(Timestamp::MAX)
}

struct Removal {
    hub: Hub,
    works: Cache<Expiry>,
}

impl Reconcile for Removal {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(work) = self.works.get(key) else {
            return Ok(None);
        };
        let Some(time) = work.removed_at else {
            return Ok(None);
        };
        if time > self.hub.clock.now() {
            return Ok(Some(time));
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: work.uid.clone(),
                resource_version: work.version.clone(),
            }),
            ..DeleteParams::default()
        };
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        match api.delete(&key.name, &params).await {
            // Gone, or changed: the watch says what is true now.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(None),
            other => other.map(|_| None),
        }
    }
}
