//! Carries a plan out, step by step. The first step that fails ends it, except for replicas that the server
//! refuses: those are remembered, and the rollout goes on without them.

use std::sync::Arc;

use bellwether_api::policy::names::{reason, replica_name};
use bellwether_api::policy::{Policy, PolicyStatus};
use bellwether_policy::propagation::Replica;
use bellwether_policy::rollout::{Mark, Notice, Plan, Write};
use bellwether_runtime::{EventDraft, EventType, Next, ObjectKey, created_by, written_by};
use futures::{StreamExt as _, stream};
use jiff::SignedDuration;
use kube::Api;
use kube::api::Patch;
use serde_json::{Value, json};

use super::Propagator;
use super::prepare::Prepared;

/// How many objects of one policy are written at once: enough that their writes share commits.
const WRITES_AT_ONCE: usize = 32;
/// When a replica is tried again that the server refused.
const RETRY_REFUSED: SignedDuration = SignedDuration::from_secs(30);

/// What came of writing a replica.
enum Written {
    Done,
    /// The server refuses it, as it did before or for the first time.
    Refused {
        is_new: bool,
    },
}

impl Propagator {
    /// Returns the root policy as it is then, and when to look at it again.
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        mut root: Arc<Policy>,
        prepared: &Prepared,
        plan: Plan,
    ) -> Result<(Arc<Policy>, Next), kube::Error> {
        self.record_problem(key, &root, plan.problem.as_deref());
        if let Some(status) = &plan.status_first {
            root = self.write_status(key, &root, status).await?;
        }
        let mut next = plan.wake_at;
        let again = |next: &mut Next, wait: SignedDuration| {
            let time = self.hub.clock.now().checked_add(wait).ok();
            *next = [*next, time].into_iter().flatten().min();
        };
        let about = &root;
        let results: Vec<Result<Written, kube::Error>> = stream::iter(plan.write)
            .map(|write| async move { self.write(key, about, prepared, &write).await })
            .buffer_unordered(WRITES_AT_ONCE)
            .collect()
            .await;
        let mut is_refused_anew = false;
        for result in results {
            match result? {
                Written::Done => {}
                Written::Refused { is_new } => {
                    is_refused_anew |= is_new;
                    again(&mut next, RETRY_REFUSED);
                }
            }
        }
        if is_refused_anew {
            // What the plan says of the others was decided without knowing that.
            return Ok((root, Some(self.hub.clock.now())));
        }
        let deleted: Vec<Result<(), kube::Error>> = stream::iter(plan.delete)
            .map(|replica| async move { self.delete(key, &replica).await })
            .buffer_unordered(WRITES_AT_ONCE)
            .collect()
            .await;
        deleted.into_iter().collect::<Result<(), _>>()?;
        let marked: Vec<Result<(), kube::Error>> = stream::iter(plan.mark)
            .map(|mark| async move { self.mark(key, &mark).await })
            .buffer_unordered(WRITES_AT_ONCE)
            .collect()
            .await;
        marked.into_iter().collect::<Result<(), _>>()?;
        if let Some(status) = &plan.status {
            root = self.write_status(key, &root, status).await?;
        }
        self.record(&root, plan.notices);
        Ok((root, next))
    }

    /// Creates a replica, or replaces it if it is still as it was seen.
    async fn write(
        &self,
        key: &ObjectKey,
        root: &Policy,
        prepared: &Prepared,
        write: &Write,
    ) -> Result<Written, kube::Error> {
        let cluster = &*write.cluster;
        let blueprint = &prepared.blueprint;
        let mut policy =
            blueprint.replica(cluster, &write.version, write.form, write.is_progressive);
        let api: Api<Policy> = Api::namespaced(self.hub.client.clone(), cluster);
        let name = replica_name(&key.namespace, &key.name);
        let seen = write.replaces.as_ref();
        let mut seen = seen.map(|it| (it.uid.clone(), it.resource_version.clone()));
        if seen.is_none() {
            match api.create(&created_by(), &policy).await {
                // Somebody took the label off by which replicas are found.
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    let found = api.get(&name).await?.metadata;
                    seen = Some((found.uid, found.resource_version));
                }
                created => return self.written(key, root, write, created),
            }
        }
        (policy.metadata.uid, policy.metadata.resource_version) = seen.unwrap_or_default();
        let replaced = api.replace(&name, &created_by(), &policy).await;
        self.written(key, root, write, replaced)
    }

    /// Takes in what the server answered to a replica.
    fn written(
        &self,
        key: &ObjectKey,
        root: &Policy,
        write: &Write,
        answer: Result<Policy, kube::Error>,
    ) -> Result<Written, kube::Error> {
        let cluster = &write.cluster;
        match answer {
            Ok(policy) => {
                self.replicas.put(key, &Arc::new(Replica::of(&policy)));
                self.set_refused(key, &write.cluster, None);
                self.record(root, write.notices(&key.namespace, &key.name));
                Ok(Written::Done)
            }
            // One that is gone meanwhile is made again.
            Err(kube::Error::Api(status))
                if is_refusal(status.code) && (status.code != 404 || write.replaces.is_none()) =>
            {
                let is_new = self.set_refused(key, &write.cluster, Some(&status.message));
                if is_new {
                    let message = format!(
                        "the replica for {cluster} cannot be written: {}",
                        status.message
                    );
                    self.record(
                        root,
                        vec![Notice {
                            is_warning: true,
                            reason: reason::POLICY_PROPAGATION,
                            message,
                        }],
                    );
                }
                Ok(Written::Refused { is_new })
            }
            Err(error) => Err(error),
        }
    }

    /// Remembers why a replica is refused, and tells whether that is new.
    fn set_refused(&self, key: &ObjectKey, cluster: &Arc<str>, why: Option<&str>) -> bool {
        let mut all = self.refused.lock();
        if let Some(why) = why {
            let of_root = all.entry(key.clone()).or_default();
            let known = of_root.insert(Arc::clone(cluster), why.to_owned());
            return known.as_deref() != Some(why);
        }
        if let Some(of_root) = all.get_mut(key) {
            of_root.remove(cluster);
            if of_root.is_empty() {
                all.remove(key);
            }
        }
        false
    }

    /// Says on a replica how far the rollout is: once for each of its generations. An agent that does not know
    /// these fields removes them, and would do so again.
    async fn mark(&self, key: &ObjectKey, mark: &Mark) -> Result<(), kube::Error> {
        let Some(replica) = self.replicas.of(key).get(&mark.cluster).cloned() else {
            return Ok(());
        };
        let wanted = (replica.uid.clone(), replica.generation, mark.status.clone());
        {
            let mut all = self.marked.lock();
            let of_root = all.entry(key.clone()).or_default();
            if of_root.get(&mark.cluster) == Some(&wanted) {
                return Ok(());
            }
            of_root.insert(Arc::clone(&mark.cluster), wanted);
        }
        let name = replica_name(&key.namespace, &key.name);
        let api: Api<Policy> = Api::namespaced(self.hub.client.clone(), &mark.cluster);
        let patch = Patch::Merge(json!({
            "metadata": {"uid": replica.uid, "resourceVersion": replica.resource_version},
            "status": {
                "rolloutStatus": mark.status,
                "rolloutStatusLastTransitionTime": bellwether_api::meta::MicroTime(mark.since),
            },
        }));
        match api.patch_status(&name, &written_by(), &patch).await {
            Ok(policy) => {
                self.replicas.put(key, &Arc::new(Replica::of(&policy)));
                Ok(())
            }
            // It changed meanwhile, and is looked at again.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
                if let Some(of_root) = self.marked.lock().get_mut(key) {
                    of_root.remove(&mark.cluster);
                }
                self.triggers.queue.add(key.clone());
                Ok(())
            }
            Err(error) => {
                if let Some(of_root) = self.marked.lock().get_mut(key) {
                    of_root.remove(&mark.cluster);
                }
                Err(error)
            }
        }
    }

    /// Writes the status of a root policy if it is still as it was seen, and returns the policy with it.
    async fn write_status(
        &self,
        key: &ObjectKey,
        root: &Policy,
        status: &PolicyStatus,
    ) -> Result<Arc<Policy>, kube::Error> {
        let api: Api<Policy> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let before = root.status.as_ref().map(|it| json!(it));
        let patch = Patch::Merge(json!({
            "metadata": {
                "uid": root.metadata.uid,
                "resourceVersion": root.metadata.resource_version,
            },
            "status": with_removals(json!(status), before.as_ref()),
        }));
        let answer = api.patch_status(&key.name, &written_by(), &patch).await?;
        Ok(self.roots.keep(key, answer))
    }

    fn record_problem(&self, key: &ObjectKey, root: &Policy, problem: Option<&str>) {
        let mut all = self.problems.lock();
        let is_known = all.get(key).map(String::as_str) == problem;
        match problem {
            Some(problem) if !is_known => {
                all.insert(key.clone(), problem.to_owned());
                drop(all);
                self.record(
                    root,
                    vec![Notice {
                        is_warning: true,
                        reason: reason::POLICY_ROLLOUT,
                        message: problem.to_owned(),
                    }],
                );
            }
            Some(_) => {}
            None => drop(all.remove(key)),
        }
    }

    fn record(&self, root: &Policy, notices: Vec<Notice>) {
        for notice in notices {
            let event_type = if notice.is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            };
            let draft = EventDraft::new(event_type, notice.reason, notice.message);
            self.events.record(root, draft);
        }
    }
}

/// A merge patch keeps what it does not name: fields that are to go are named with null.
fn with_removals(mut status: Value, before: Option<&Value>) -> Value {
    if let (Some(new), Some(Value::Object(before))) = (status.as_object_mut(), before) {
        for field in before.keys() {
            new.entry(field.clone()).or_insert(Value::Null);
        }
    }
    status
}

/// True for answers that trying again soon does not change.
fn is_refusal(code: u16) -> bool {
    matches!(code, 400 | 403 | 404 | 413 | 422)
}
