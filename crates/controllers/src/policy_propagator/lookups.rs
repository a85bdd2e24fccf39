//! What hub templates look up: objects of the hub, watched for as long as a policy asks for them.

mod keys;
mod watched;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_json::label::LabelSelector;
use bellwether_policy::propagation::{
    Blueprint, HubTemplates, Replica, Resolved, needs_keys, resolve, unresolved,
};
use bellwether_policy::template::{Answer, Question};
use bellwether_runtime::{Cache, Clock, ObjectKey, compute};
use bellwether_template::{NOWHERE, World};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::json;

use super::{Sources, Triggers};
use crate::hub::Hub;
use watched::{Kinds, ObjectQuery, Watch};

/// How often a template may ask for something that depends on what it asked for before.
const MOST_ROUNDS: usize = 100;
/// When a refused look-up is tried again: rights are granted without anything that could be watched.
const RETRY_REFUSED: SignedDuration = SignedDuration::from_mins(1);

/// The kind and namespace of watched objects.
type Place = (String, String, String);

/// Looks up what hub templates ask for. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lookups(Arc<Inner>);

struct Inner {
    client: Client,
    clock: Clock,
    clusters: Cache<ManagedCluster>,
    triggers: Triggers,
    kinds: Kinds,
    watches: Mutex<HashMap<Place, Arc<Watch>>>,
    /// The policies that read the ManagedCluster of their clusters.
    readers: Mutex<HashSet<ObjectKey>>,
    /// When policies have to be resolved again because a key is replaced.
    renewals: Mutex<HashMap<ObjectKey, Timestamp>>,
}

/// Why a question has no answer.
enum Unanswered {
    /// Those that ask may not know.
    Refused(String),
    /// The hub cannot be asked at present.
    Failed(kube::Error),
}

impl From<kube::Error> for Unanswered {
    fn from(error: kube::Error) -> Self {
        Self::Failed(error)
    }
}

impl Lookups {
    pub(super) fn new(hub: &Hub, sources: &Sources, triggers: &Triggers) -> Self {
        Self(Arc::new(Inner {
            client: hub.client.clone(),
            clock: hub.clock.clone(),
            clusters: sources.clusters.clone(),
            triggers: triggers.clone(),
            kinds: Kinds::default(),
            watches: Mutex::default(),
            readers: Mutex::default(),
            renewals: Mutex::default(),
        }))
    }

    /// Resolves the hub templates of a policy for a cluster.
    pub(super) async fn resolve(
        &self,
        root: &ObjectKey,
        blueprint: &Blueprint,
        cluster: &str,
        replica: Option<&Arc<Replica>>,
    ) -> Result<HubTemplates, kube::Error> {
        let keys = if needs_keys(blueprint) {
            let vector = replica.and_then(|it| it.vector());
            let found = keys::of_cluster(&self.0.client, &self.0.clock, cluster, vector).await?;
            if let Some(due) = found.due {
                self.renew_at(root, due);
            }
            match found.keys {
                Ok(keys) => Some(keys),
                Err(error) => return Ok(unresolved(blueprint, &error)),
            }
        } else {
            None
        };
        let mut answers: BTreeMap<Question, Answer> = BTreeMap::new();
        for _ in 0..MOST_ROUNDS {
            let resolved = compute(|| {
                let world = World {
                    now: self.0.clock.now(),
                    // Without random bytes nothing is made that would have to be secret.
                    random: &|bytes| SystemRandom::new().fill(bytes).unwrap_or_default(),
                    ..NOWHERE
                };
                resolve(blueprint, cluster, &answers, keys.as_ref(), &world)
            })
            .await;
            let questions = match resolved {
                Resolved::Done(templates) => return Ok(templates),
                Resolved::Needs(questions) => questions,
            };
            for question in questions {
                let account = blueprint.service_account();
                match self.answer(root, account, &question).await {
                    Ok(answer) => drop(answers.insert(question, answer)),
                    Err(Unanswered::Failed(error)) => return Err(error),
                    Err(Unanswered::Refused(why)) => {
                        self.retry_later(root);
                        return Ok(unresolved(blueprint, &why));
                    }
                }
            }
        }
        let why =
            format!("the template looks up more than {MOST_ROUNDS} objects one after the other");
        Ok(unresolved(blueprint, &why))
    }

    /// Resolves a policy again at a time: a key is replaced then.
    fn renew_at(&self, root: &ObjectKey, due: Timestamp) {
        let mut renewals = self.0.renewals.lock();
        if renewals.get(root).is_none_or(|known| due < *known) {
            renewals.insert(root.clone(), due);
            self.0.triggers.queue.add_at(root.clone(), due);
        }
    }

    /// Whether a policy has to be resolved again because of the time.
    pub(super) fn is_due(&self, root: &ObjectKey) -> bool {
        let mut renewals = self.0.renewals.lock();
        let is_due = renewals
            .get(root)
            .is_some_and(|due| *due <= self.0.clock.now());
        if is_due {
            renewals.remove(root);
        }
        is_due
    }

    fn retry_later(&self, root: &ObjectKey) {
        let triggers = &self.0.triggers;
        triggers.outdated.lock().insert(root.clone());
        if let Ok(time) = self.0.clock.now().checked_add(RETRY_REFUSED) {
            triggers.queue.add_at(root.clone(), time);
        }
    }

    /// Begins to resolve a policy: what it asked for before does not count any more.
    pub(super) fn begin(&self, root: &ObjectKey) {
        self.0.readers.lock().remove(root);
        self.0.renewals.lock().remove(root);
        for watch in self.0.watches.lock().values() {
            watch.forget(root);
        }
    }

    /// Ends watches that nobody asked for.
    pub(super) fn end(&self) {
        self.0.watches.lock().retain(|_, watch| watch.is_used());
    }

    /// Forgets a policy.
    pub(super) fn forget(&self, root: &ObjectKey) {
        self.begin(root);
        self.end();
    }

    /// Resolves policies again that read ManagedClusters.
    pub(super) fn cluster_changed(&self) {
        let readers = self.0.readers.lock().clone();
        for root in readers {
            self.0.triggers.renew(root);
        }
    }

    async fn answer(
        &self,
        root: &ObjectKey,
        account: Option<&str>,
        question: &Question,
    ) -> Result<Answer, Unanswered> {
        let inner = &self.0;
        let (api_version, kind, namespace, asked) = match question {
            Question::Resource { api_version, kind } => {
                let found = inner.kinds.find(&inner.client, api_version, kind).await?;
                return Ok(found.map_or(Answer::Nothing, |it| Answer::Resource(it.resource)));
            }
            Question::Object {
                api_version,
                kind,
                namespace,
                name,
            } => (api_version, kind, namespace, ObjectQuery::One(name)),
            Question::List {
                api_version,
                kind,
                namespace,
                selector,
            } => (api_version, kind, namespace, ObjectQuery::Some(selector)),
        };
        if let (ObjectQuery::One(name), "ManagedCluster", None) = (asked, kind.as_str(), account) {
            inner.readers.lock().insert(root.clone());
            let cluster = inner.clusters.get(&ObjectKey::cluster_scoped(name));
            return Ok(cluster.map_or(Answer::Nothing, |it| Answer::Object(json!(*it))));
        }
        let Some(found) = inner.kinds.find(&inner.client, api_version, kind).await? else {
            return Ok(Answer::Nothing);
        };
        if let Some(account) = account {
            watched::check_rights(
                &inner.client,
                &root.namespace,
                account,
                &found,
                namespace,
                asked,
            )
            .await?;
        }
        let watch = self.watch(
            (api_version.clone(), kind.clone(), namespace.clone()),
            &found,
        );
        watch.asked_by(root, asked);
        watch.objects.answered().await;
        if !watch.objects.is_ready() {
            let why = format!("{} cannot be read at present", found.resource.name);
            return Err(Unanswered::Refused(why));
        }
        Ok(match asked {
            ObjectQuery::One(name) => watch
                .objects
                .get(&ObjectKey::new(namespace, name))
                .map_or(Answer::Nothing, |it| Answer::Object(it.object.clone())),
            ObjectQuery::Some(selector) => {
                let selector = LabelSelector::parse(selector)
                    .map_err(|error| Unanswered::Refused(error.to_string()))?;
                let objects = watch.objects.list();
                let matching = objects
                    .iter()
                    .filter(|it| selector.matches_object(&it.object));
                Answer::Objects(matching.map(|it| it.object.clone()).collect())
            }
        })
    }

    fn watch(&self, place: Place, kind: &watched::Kind) -> Arc<Watch> {
        let mut watches = self.0.watches.lock();
        let namespace = place.2.clone();
        let watch = watches.entry(place).or_insert_with(|| {
            Arc::new(Watch::start(
                &self.0.client,
                kind,
                &namespace,
                &self.0.triggers,
            ))
        });
        Arc::clone(watch)
    }
}
