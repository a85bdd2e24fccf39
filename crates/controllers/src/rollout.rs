//! Moves replicas and requests between two revisions of an application.
//!
//! What should be there is decided by `bellwether_application::blue_green`. A step of a workflow says how far a Rollout
//! goes and waits for its conditions. If the workflow ends before the new revision took over, the old one comes back. Entry point:
//! [`run`].
//!
//! | module | does |
//! |---|---|
//! | `observe` | reads what both revisions were rendered to, and what is there |
//! | `deliver` | writes objects, removes those that are no longer wanted, keeps the record |

mod deliver;
mod observe;

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::delivery::names::reason;
use bellwether_api::delivery::{ROLLOUT_GROUP, Rollout, RolloutPhase, RolloutStatus};
use bellwether_api::oam::names::label;
use bellwether_api::oam::{Application, GROUP};
use bellwether_application::blue_green::{self, Plan};
use bellwether_apply::ObjectId;
use bellwether_apply::pass::Memory;
use bellwether_patch::three_way::merge_patch;
use bellwether_runtime::{
    Cache, Change, Controller, Delivery, EventDraft, FIELD_MANAGER, Next, ObjectKey, Objects,
    Reconcile, Recorder, SharedKinds, patch_seen, write_status,
};
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::{Api, Resource as _};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use crate::reported::Error;
use observe::Rendered;

/// How many rollouts are reconciled at once.
const WORKERS: usize = 4;
/// When to look again for what a revision was rendered to, which nobody watches.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// The controller of rollouts.
pub const ENTRY: Entry = Entry {
    name: "rollout",
    about: "moves replicas and requests between two revisions of applications",
    watches: &[Watched::kind::<Rollout>(), Watched::kind::<Application>()],
    // Objects of applications may be of any kind: what they are made of has to be granted besides.
    rights: &[
        EVENTS,
        Rule {
            group: ROLLOUT_GROUP,
            resources: &["rollouts", "rollouts/status"],
            verbs: &["patch"],
        },
        Rule {
            group: GROUP,
            resources: &["applications/status"],
            verbs: &["patch"],
        },
        Rule {
            group: "",
            resources: &["configmaps"],
            verbs: &["get"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps all rollouts going until it is dropped.
pub async fn run(hub: Hub) {
    let controller = Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let objects = Objects::new((&hub.client).into(), FIELD_MANAGER);
    let kinds: Arc<SharedKinds> = Arc::default();
    let gauge = prometheus_client::metrics::gauge::Gauge::default();
    let delivery = Delivery::new(objects, kinds, controller.queue(), gauge, hub.clock.clone());
    let rollouts: Cache<Rollout> = hub.cache();
    let reconciler = Reconciler {
        applications: hub.cache(),
        memories: Mutex::default(),
        events: hub.recorder(ENTRY.name),
        delivery,
        hub,
    };
    let of_applications = rollouts.clone();
    controller
        .on(&rollouts, |change| Some(change.key.clone()))
        .on(&reconciler.applications, move |change| {
            of_application(&of_applications, change)
        })
        .workers(WORKERS)
        .run(Arc::new(reconciler))
        .await;
}

/// The rollouts of an application whose workflow goes on or ends.
fn of_application(rollouts: &Cache<Rollout>, change: &Change<'_, Application>) -> Vec<ObjectKey> {
    let workflow = |application: Option<&Application>| {
        let status = application.and_then(|application| application.status.as_ref());
        status
            .and_then(|status| status.workflow.as_ref())
            .map(|workflow| {
                (
                    workflow.phase.clone(),
                    workflow.suspend,
                    workflow.steps.len(),
                )
            })
    };
    if workflow(change.old.map(|it| &**it)) == workflow(change.new.map(|it| &**it)) {
        return Vec::new();
    }
    let own = rollouts.in_namespace(&change.key.namespace);
    let own = own
        .iter()
        .filter(|rollout| *application_of(rollout) == *change.key.name);
    own.map(|rollout| ObjectKey::of(&**rollout)).collect()
}

/// The application that a rollout is of.
fn application_of(rollout: &Rollout) -> &str {
    let labels = rollout.metadata.labels.as_ref();
    let labelled = labels.and_then(|labels| labels.get(label::APP_NAME));
    labelled
        .or(rollout.metadata.name.as_ref())
        .map_or("", String::as_str)
}

struct Reconciler {
    hub: Hub,
    applications: Cache<Application>,
    delivery: Delivery<ObjectKey>,
    /// What is remembered of objects, which are tracked.
    memories: Mutex<HashMap<ObjectKey, HashMap<ObjectId, Memory>>>,
    events: Recorder,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Error> {
        // Read from the server: a decision by a status that is behind would repeat what was done.
        let Some(rollout) = self.api(key).get_opt(&key.name).await? else {
            self.forget(key);
            return Ok(None);
        };
        if rollout.metadata.deletion_timestamp.is_some() {
            // What it owns goes with it.
            return Ok(None);
        }
        let application = self
            .applications
            .get(&ObjectKey::new(&key.namespace, application_of(&rollout)));
        let Some(rollout) = self.claim(key, rollout, application.as_deref()).await? else {
            return Ok(None);
        };
        let (blue, green) = match self.rendered(key, &rollout).await? {
            Rendered::Found { blue, green } => (blue, green),
            Rendered::Missing(message) => {
                self.report_missing(key, &rollout, message).await?;
                return Ok(self.hub.clock.now().checked_add(LOOK_AGAIN).ok());
            }
        };
        let workflow = application
            .as_ref()
            .and_then(|it| it.status.as_ref())
            .and_then(|it| it.workflow.as_ref());
        let workflow = blue_green::workflow_state(workflow, &rollout.spec.run);
        let plan = self
            .decide(key, &rollout, workflow, (&blue, &green))
            .await?;
        self.carry_out(key, rollout, plan, application.as_deref())
            .await
    }
}

impl Reconciler {
    fn api(&self, key: &ObjectKey) -> Api<Rollout> {
        Api::namespaced(self.hub.client.clone(), &key.namespace)
    }

    /// Makes the rollout go with its application.
    async fn claim(
        &self,
        key: &ObjectKey,
        rollout: Rollout,
        application: Option<&Application>,
    ) -> Result<Option<Rollout>, Error> {
        let references = rollout
            .metadata
            .owner_references
            .as_deref()
            .unwrap_or_default();
        let Some(application) = application.filter(|_| references.is_empty()) else {
            return Ok(Some(rollout));
        };
        let reference = json!({
            "apiVersion": Application::api_version(&()),
            "kind": Application::kind(&()),
            "name": application.metadata.name,
            "uid": application.metadata.uid,
        });
        let patch = json!({"metadata": {"ownerReferences": [reference]}});
        Ok(patch_seen(&self.api(key), &rollout, patch).await?)
    }

    async fn report_missing(
        &self,
        key: &ObjectKey,
        rollout: &Rollout,
        message: String,
    ) -> Result<(), Error> {
        let before = rollout.status.clone().unwrap_or_default();
        let status = RolloutStatus {
            observed_generation: rollout.metadata.generation,
            message,
            ..before
        };
        self.publish(key, rollout, &status).await?;
        Ok(())
    }

    /// Writes a status that differs from the stored one.
    async fn publish(
        &self,
        key: &ObjectKey,
        rollout: &Rollout,
        status: &RolloutStatus,
    ) -> Result<Option<Rollout>, Error> {
        let to_json = |status: &RolloutStatus| serde_json::to_value(status).unwrap_or_default();
        let known = rollout.status.as_ref().map_or_else(|| json!({}), to_json);
        let told = to_json(status);
        if known == told {
            return Ok(Some(rollout.clone()));
        }
        let patch = merge_patch(&known, &told, &known).unwrap_or(told);
        Ok(write_status(&self.api(key), rollout, &patch).await?)
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        rollout: Rollout,
        plan: Plan,
        application: Option<&Application>,
    ) -> Result<Next, Error> {
        let before = rollout.status.as_ref().map(|status| status.phase.clone());
        let delivered = match &plan.objects {
            Some(objects) => self.deliver(key, rollout, objects, plan.may_prune).await?,
            None => deliver::Delivered::unchanged(rollout),
        };
        let mut status = plan.status;
        status.resources = delivered.resources;
        if let Some(problem) = &delivered.problem {
            status.message.clone_from(problem);
        }
        self.publish(key, &delivered.rollout, &status).await?;
        if before.as_ref() != Some(&status.phase)
            && let Some(reason) = event_of(&status.phase)
        {
            self.events.record(
                &delivered.rollout,
                EventDraft::normal(reason, status.message.clone()),
            );
        }
        if let Some(application) = application.filter(|_| plan.resume_workflow) {
            self.resume(application).await?;
        }
        match delivered.problem {
            Some(problem) if delivered.retry.is_due() => {
                Err(Error::Reported(problem, delivered.retry))
            }
            _ => Ok(delivered.again),
        }
    }

    /// Lets the workflow go on that waits for a decision about the rollout.
    async fn resume(&self, application: &Application) -> Result<(), Error> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let api: Api<Application> = Api::namespaced(self.hub.client.clone(), namespace);
        let status: Value = json!({"workflow": {"suspend": false}});
        write_status(&api, application, &status).await?;
        Ok(())
    }

    fn forget(&self, key: &ObjectKey) {
        let memories = self.memories.lock().remove(key).unwrap_or_default();
        for id in memories.keys() {
            self.delivery.watches.untrack(id, key);
        }
    }
}

/// The event of a phase that people wait for.
fn event_of(phase: &RolloutPhase) -> Option<&'static str> {
    match phase {
        RolloutPhase::Paused => Some(reason::PAUSED),
        RolloutPhase::Promoting => Some(reason::APPROVED),
        RolloutPhase::Promoted => Some(reason::PROMOTED),
        RolloutPhase::RollingBack => Some(reason::ROLLING_BACK),
        RolloutPhase::RolledBack => Some(reason::ROLLED_BACK),
        RolloutPhase::Invalid => Some(reason::INVALID),
        _ => None,
    }
}
