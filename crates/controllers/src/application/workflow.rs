//! The workflow of an application: its steps are carried out by the engine that WorkflowRuns share.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_api::oam::names::{annotation, label, phase, policy};
use bellwether_api::oam::{Application, ComponentService, ResourceTracker, TraitStage};
use bellwether_api::workflow::{StepPhase, WorkflowExecuteMode, WorkflowRunPhase};
use bellwether_application::appfile::Appfile;
use bellwether_application::blue_green;
use bellwether_application::context::Target;
use bellwether_application::definition::DefinitionKind;
use bellwether_application::deliver::{Delivered, everything, render_policies};
use bellwether_application::distribution::works;
use bellwether_application::label::{Manifest, stamp};
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::steps;
use bellwether_application::tracker::{self, CREATOR_POLICY};
use bellwether_application::{Class, RenderError, Stage};
use bellwether_runtime::{Next, ObjectKey, compute};
use bellwether_workflow::edit::{self, Seen};
use bellwether_workflow::{Spec, State, Woken, builtin, spec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource as _;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::actions::{ComponentActions, DEPLOY_VALUES, deploy_values};
use super::deliver::{Live, Pass, is_local};
use super::restart::Restart;
use super::status::Report;
use super::tracking::Tracking;
use super::{Failure, Reconciler};
use crate::workflow::{Owner, OwnerKind, context};

impl Reconciler {
    /// Applies policies, then carries out the workflow as far as that is possible now.
    pub(super) async fn deliver(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        policies: &ResourcePolicies,
        restart: &Restart,
        report: &mut Report,
    ) -> Result<Next, Failure> {
        let before = self.own_trackers(application);
        let revision = &appfile.context.revision;
        let client = &self.hub.client;
        let tracking = Tracking::new(client, application, revision, policies, &before);
        let pass = |occasion: Occasion| Pass {
            applications: self,
            appfile,
            policies,
            tracking: &tracking,
            before: &before,
            occasion,
            live: Live::new(),
            repaired: Vec::new(),
            left_deleted: BTreeMap::new(),
            next: None,
        };
        let occasion = if report.was_delivered() {
            Occasion::StateKeep
        } else {
            Occasion::Update
        };
        let mut objects = compute(|| render_policies(appfile)).await?;
        for manifest in &mut objects {
            stamp(&mut manifest.object);
        }
        let all: Vec<&Manifest> = objects.iter().collect();
        tracking.record(&all, CREATOR_POLICY).await?;
        let mut of_policies = pass(occasion);
        of_policies.apply(&all).await.map_err(of_policy)?;
        report.left_deleted(of_policies.left_deleted.values());
        report.policies();
        let workflow = self.workflow(application, appfile)?;
        report.rendered();
        let is_new = !report.was_delivered();
        // Controllers of steps read what is rendered; others ask for it, and find it when the revision is delivered.
        let is_read = needs_resources(&workflow);
        if is_new && is_read {
            self.store_rendered(application, appfile).await?;
        }
        let actions = ComponentActions {
            application,
            applications: self,
            appfile,
            policies,
            tracking: &tracking,
            before: &before,
            services: Mutex::default(),
        };
        let (state, mut next) = self
            .advance(application, &workflow, restart, &actions, report)
            .await?;
        let services = std::mem::take(&mut *actions.services.lock());
        report.services(services, tracking.applied().await);
        report.applied(&tracking.known().await);
        let delegated = self.delegated(application);
        report.delegated(delegated.clone());
        if state.finished == Some(WorkflowRunPhase::Succeeded) {
            if is_new && !is_read && self.stores_rendered {
                self.store_rendered(application, appfile).await?;
            }
            let went_back_to = &state.rolled_back_to;
            let again = if went_back_to.is_empty() {
                let mut kept = pass(Occasion::StateKeep);
                let result = self
                    .keep(appfile, &workflow, &state, &mut kept, report)
                    .await;
                report.repaired(&kept.repaired);
                result?;
                kept.next
            } else {
                self.keep_rolled_back(application, went_back_to, &tracking, &before, report)
                    .await?
            };
            next = [next, again].into_iter().flatten().min();
            self.clean_up(application, policies, &before, &tracking)
                .await?;
            report.collected(&tracking.known().await, appfile);
            report.delegated(delegated);
            report.delivered();
        }
        Ok(next)
    }

    /// Stores what a revision is rendered to.
    async fn store_rendered(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
    ) -> Result<(), kube::Error> {
        let delivery = compute(|| everything(appfile)).await;
        self.store_resources(application, appfile, &delivery).await
    }

    /// Where components stand that steps hand to rollouts and distributions.
    fn delegated(&self, application: &Application) -> Vec<ComponentService> {
        let key = ObjectKey::of(application);
        let rollouts = self.rollouts.of(&key);
        let distributions = self.distributions.of(&key);
        let of_rollouts = rollouts.iter().flat_map(|it| blue_green::services(it));
        let of_distributions = distributions.iter().flat_map(|it| works::services(it));
        of_rollouts.chain(of_distributions).collect()
    }

    /// Makes a pass over the workflow.
    async fn advance(
        &self,
        application: &Application,
        workflow: &Spec,
        restart: &Restart,
        actions: &ComponentActions<'_>,
        report: &mut Report,
    ) -> Result<(State, Next), Failure> {
        let key = ObjectKey::of(application);
        let owner = owner(application);
        let seen = seen(application, restart);
        let (_, last_pass) = self.memory.take(&key);
        let now = self.hub.clock.now();
        // Whatever changed may be what a step waits for.
        let woken = Woken::All;
        let outcome = self
            .engine
            .pass(&owner, workflow, &seen, woken, last_pass, actions)
            .await?;
        self.memory.passed(&key, now);
        self.watches
            .wait_for(&key, &outcome.looked, |step| outcome.is_open(step));
        let known = application.status.as_ref();
        let known = known.and_then(|status| status.workflow.as_ref());
        let known = known.and_then(|workflow| workflow.context_backend.as_ref());
        let is_settled = outcome.state.finished.is_some() && !outcome.is_changed && known.is_some();
        let backend = if is_settled {
            known.cloned()
        } else {
            let client = &self.hub.client;
            Some(context::write(client, &owner, &outcome.state, known).await?)
        };
        for (id, text) in &outcome.debug {
            context::write_debug(&self.hub.client, &owner, id, text).await?;
        }
        report.workflow(&outcome.state, workflow, backend);
        Ok((outcome.state, outcome.wake_at))
    }

    /// The workflow of an application as the engine carries it out.
    fn workflow(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
    ) -> Result<Spec, RenderError> {
        let steps = steps::steps(appfile)?;
        let mode = WorkflowExecuteMode {
            steps: Some(appfile.mode.0.clone()),
            sub_steps: Some(appfile.mode.1.clone()),
            ..WorkflowExecuteMode::default()
        };
        spec::check(&steps, &mode).map_err(|problem| {
            let message = format!("workflow: {problem}");
            RenderError::new(Stage::Deploy, Class::InvalidInput, message)
        })?;
        let mut workflow = Spec {
            name: appfile.context.name.clone(),
            namespace: appfile.context.namespace.clone(),
            uid: application.metadata.uid.clone().unwrap_or_default(),
            revision: revision_text(appfile),
            mode,
            steps,
            context: step_context(appfile),
            definitions: BTreeMap::new(),
            approval: self.approval.clone(),
            compensations: Vec::new(),
        }
        .with_compensations();
        let mut definitions = BTreeMap::new();
        for (step, _) in workflow.all() {
            let name = &step.step_type;
            if let Some(source) = template(appfile, name) {
                definitions.insert(name.clone(), self.definitions_of_steps.compile(&source));
            }
        }
        workflow.definitions = definitions;
        Ok(workflow)
    }

    /// Keeps what a workflow applied as it is, and tells how it fares.
    async fn keep(
        &self,
        appfile: &Appfile<'_>,
        workflow: &Spec,
        state: &State,
        pass: &mut Pass<'_>,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let is_done = |name: &str| {
            let step = state.step(name);
            step.is_some_and(|step| step.phase == StepPhase::Succeeded)
        };
        let done: Vec<_> = workflow
            .all()
            .map(|(step, _)| step)
            .filter(|step| is_done(&step.name))
            .collect();
        let within = |step: &bellwether_api::workflow::WorkflowStepBase, target: &Target| {
            let id = state.step(&step.name).map(|step| step.id.as_str());
            let key = format!("{}.{DEPLOY_VALUES}", id.unwrap_or_default());
            deploy_values(state.context.get(&key), target, &appfile.context.namespace)
        };
        let delivered = compute(|| steps::applied(appfile, &done, &state.vars, &within)).await?;
        let recorded = pass.tracking.known().await;
        let delivered = as_recorded(delivered, &recorded);
        let all: Vec<&Delivered> = delivered.iter().collect();
        let services = pass.take(&all).await?;
        report.fare(&services);
        let known: BTreeSet<tracker::Identity> = delivered
            .iter()
            .flat_map(|component| &component.manifests)
            .map(tracker::identity_of)
            .collect();
        let others = others(&recorded, &known);
        let on_hub = others.iter().filter(|it| is_local(&it.cluster));
        let on_hub: Vec<&Manifest> = on_hub.collect();
        pass.apply(&on_hub).await?;
        report.left_deleted(pass.left_deleted.values());
        Ok(())
    }
}

/// The failure to apply objects of policies, as one of policies: the workflow has not begun.
fn of_policy(failure: Failure) -> Failure {
    match failure {
        Failure::Render(error) => Failure::Render(error.at(Stage::Policy)),
        other => other,
    }
}

/// Whether a step consists of an object, or writes one for this revision, whose controller finds everything that is rendered in a
/// ConfigMap.
fn needs_resources(workflow: &Spec) -> bool {
    let mut definitions = workflow.definitions.values();
    definitions.any(|definition| {
        let source = definition.source();
        let is_object =
            !source.contains("\"vela/") && !source.contains("#do") && source.contains("output");
        // A controller that is handed the revision, in a field of this name.
        is_object || source.contains("appRevision:")
    })
}

/// Components with their objects as they were applied: what they are rendered to now may be something else.
pub(super) fn as_recorded(
    delivered: Vec<Delivered>,
    trackers: &[ResourceTracker],
) -> Vec<Delivered> {
    let entries = trackers
        .iter()
        .flat_map(|tracker| &tracker.spec.managed_resources);
    let raw: HashMap<tracker::Identity, Value> = entries
        .filter_map(|entry| Some((tracker::identity(entry), entry.raw.as_ref()?.value())))
        .collect();
    let mut delivered = delivered;
    for component in &mut delivered {
        for manifest in &mut component.manifests {
            match raw.get(&tracker::identity_of(manifest)) {
                Some(raw) if is_same_but_marks(raw, &manifest.object) => {
                    manifest.object = raw.clone();
                }
                // Labels and annotations of the application reach its objects without a new version.
                Some(raw) if is_same_but_labels(raw, &manifest.object) => {
                    stamp(&mut manifest.object);
                }
                Some(raw) => manifest.object = raw.clone(),
                None => stamp(&mut manifest.object),
            }
        }
    }
    delivered
}

/// Whether two states of an object differ at most in the mark of what they were rendered to, and in that of the hub as their cluster, which
/// KubeVela writes as an empty label.
fn is_same_but_marks(recorded: &Value, rendered: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        let labels = object.pointer_mut("/metadata/labels");
        if let Some(Value::Object(labels)) = labels {
            labels.remove(label::RENDER_HASH);
            labels.retain(|key, value| key != label::CLUSTER || *value != "");
        }
        object
    };
    bare(recorded) == bare(rendered)
}

/// Whether two states of an object differ at most in labels and annotations.
fn is_same_but_labels(recorded: &Value, rendered: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        for field in ["labels", "annotations"] {
            bellwether_json::path::remove(&mut object, &["metadata", field]);
        }
        object
    };
    bare(recorded) == bare(rendered)
}

/// Objects that steps applied themselves, as they were applied.
pub(super) fn others(
    trackers: &[ResourceTracker],
    known: &BTreeSet<tracker::Identity>,
) -> Vec<Manifest> {
    let entries = trackers
        .iter()
        .filter(|tracker| tracker.spec.application_generation != 0)
        .flat_map(|tracker| &tracker.spec.managed_resources);
    entries
        .filter(|entry| entry.creator != CREATOR_POLICY)
        .filter(|entry| !known.contains(&tracker::identity(entry)))
        .filter_map(|entry| {
            Some(Manifest {
                object: entry.raw.as_ref()?.value(),
                component: entry.component.clone(),
                trait_type: entry.resource_trait.clone(),
                resource: String::new(),
                stage: TraitStage::DefaultDispatch,
                cluster: entry.cluster.clone(),
            })
        })
        .collect()
}

/// What is carried out: the version that is published, or the revision.
pub(super) fn revision_text(appfile: &Appfile<'_>) -> String {
    let published = appfile.context.annotations.get(annotation::PUBLISH_VERSION);
    published.unwrap_or(&appfile.context.revision).clone()
}

/// The template of a type of steps, as the application uses it.
fn template(appfile: &Appfile<'_>, step_type: &str) -> Option<String> {
    let mut definitions = appfile.definitions.iter();
    let found = definitions
        .find(|((kind, name), _)| *kind == DefinitionKind::WorkflowStep && name == step_type);
    let template = found.and_then(|(_, definition)| {
        let template = &definition.object["spec"]["schematic"]["cue"]["template"];
        template.as_str().map(str::to_owned)
    });
    template.or_else(|| builtin::step(step_type).map(str::to_owned))
}

/// What templates of steps see of the application.
fn step_context(appfile: &Appfile<'_>) -> Map<String, Value> {
    let context = &appfile.context;
    let annotation = |key: &str| context.annotations.get(key).cloned().unwrap_or_default();
    let known = json!({
        "name": context.name,
        "namespace": context.namespace,
        "appName": context.name,
        "appRevision": context.revision,
        "appRevisionNum": context.revision_number,
        "appLabels": context.labels,
        "appAnnotations": context.annotations,
        "workflowName": annotation(annotation::WORKFLOW_NAME),
        "publishVersion": annotation(annotation::PUBLISH_VERSION),
    });
    match known {
        Value::Object(known) => known,
        _ => Map::new(),
    }
}

/// The application as the owner of a workflow.
pub(super) fn owner(application: &Application) -> Owner {
    let key = ObjectKey::of(application);
    let policies = &application.spec.policies;
    Owner {
        kind: OwnerKind::Application,
        reference: OwnerReference {
            api_version: Application::api_version(&()).into_owned(),
            kind: Application::kind(&()).into_owned(),
            name: key.name.to_string(),
            uid: application.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        },
        labels: BTreeMap::from([
            (label::APP_NAME.to_owned(), key.name.to_string()),
            (label::APP_NAMESPACE.to_owned(), key.namespace.to_string()),
        ]),
        debug: policies.iter().any(|it| it.policy_type == policy::DEBUG),
        key,
    }
}

/// Phases in which the workflow of an application has begun.
const BEGUN: [&str; 6] = [
    phase::RUNNING_WORKFLOW,
    phase::WORKFLOW_SUSPENDING,
    phase::WORKFLOW_TERMINATED,
    phase::WORKFLOW_FAILED,
    phase::RUNNING,
    phase::UNHEALTHY,
];

/// What the status says, by which others control the workflow.
fn seen(application: &Application, restart: &Restart) -> Seen {
    let version = application.metadata.resource_version.clone();
    let mut seen = Seen {
        version: version.unwrap_or_default(),
        restart: restart.token.clone(),
        ..Seen::default()
    };
    let Some(status) = &application.status else {
        return seen;
    };
    let has_begun = BEGUN.contains(&status.phase.as_str());
    let Some(workflow) = &status.workflow else {
        seen.is_cleared = has_begun;
        return seen;
    };
    seen.delivered = edit::delivered(workflow).map(Box::new);
    seen.seq = workflow.history_seq;
    seen.is_written = workflow.phase.is_some();
    seen.is_cleared = has_begun && workflow.phase.is_none() && workflow.steps.is_empty();
    seen.suspend = workflow.suspend;
    seen.terminated = workflow.terminated;
    seen.rolling_back = workflow.rolling_back;
    seen.steps.clone_from(&workflow.steps);
    seen
}
