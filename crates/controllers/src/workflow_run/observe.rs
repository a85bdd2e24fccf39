//! What a run says: its steps, who it is, what others did to its status.

use std::collections::BTreeMap;

use bellwether_api::workflow::names::{annotation, label};
use bellwether_api::workflow::{
    Workflow, WorkflowExecuteMode, WorkflowMode, WorkflowRun, WorkflowRunStatus,
};
use bellwether_runtime::{CacheEntry, ObjectKey};
use bellwether_workflow::edit::Seen;
use bellwether_workflow::{Spec, spec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, Resource as _};
use serde_json::{Map, json};

use crate::workflow::{Owner, OwnerKind};

/// What is kept of a run: thousands of them may be done.
pub(super) struct RunEntry {
    key: ObjectKey,
    pub(super) version: String,
    pub(super) is_done: bool,
}

impl CacheEntry for RunEntry {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let run: WorkflowRun = serde_json::from_str(text)?;
        Ok(Self {
            key: ObjectKey::of(&run),
            is_done: run.status.as_ref().is_some_and(|status| status.finished),
            version: run.metadata.resource_version.unwrap_or_default(),
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

/// The steps of a run.
pub(super) enum Steps {
    /// They were found.
    Found(Box<Spec>),
    /// There are none, and why.
    Missing(String),
}

/// Whether this version of the controller carries a run out.
pub(super) fn is_ours(run: &WorkflowRun) -> bool {
    let annotations = run.metadata.annotations.as_ref();
    let required = annotations.and_then(|all| all.get(annotation::CONTROLLER_VERSION));
    let is_required = required.is_none_or(|version| version == env!("CARGO_PKG_VERSION"));
    is_required && run.metadata.deletion_timestamp.is_none()
}

/// Whether the status of a finished run is as it was written: nobody asks for anything.
pub(super) fn is_settled(status: &WorkflowRunStatus) -> bool {
    status.end_time.is_some() && status.phase.is_some()
}

/// Finds the steps of a run.
pub(super) async fn steps(client: &Client, run: &WorkflowRun) -> Result<Steps, kube::Error> {
    let (mut steps, template_mode) = match &run.spec.workflow_spec {
        Some(own) => (own.steps.clone(), None),
        None if run.spec.workflow_ref.is_empty() => {
            return Ok(Steps::Missing(
                "failed to generate workflow instance".to_owned(),
            ));
        }
        None => {
            let namespace = run.metadata.namespace.as_deref().unwrap_or_default();
            let api: Api<Workflow> = Api::namespaced(client.clone(), namespace);
            let name = &run.spec.workflow_ref;
            match api.get_opt(name).await? {
                Some(workflow) => (workflow.steps, workflow.mode),
                None => {
                    return Ok(Steps::Missing(format!(
                        "Workflow.core.oam.dev {name:?} not found"
                    )));
                }
            }
        }
    };
    spec::name_steps(&mut steps);
    let key = ObjectKey::of(run);
    let workflow = Spec {
        name: key.name.to_string(),
        namespace: key.namespace.to_string(),
        uid: run.metadata.uid.clone().unwrap_or_default(),
        revision: String::new(),
        mode: mode(run, template_mode),
        steps,
        context: context(run),
        definitions: BTreeMap::new(),
        approval: None,
        compensations: Vec::new(),
    };
    Ok(Steps::Found(Box::new(workflow.with_compensations())))
}

/// How steps are ordered: as the run says, or its template; as it began if it did.
fn mode(run: &WorkflowRun, template: Option<WorkflowExecuteMode>) -> WorkflowExecuteMode {
    let own = run.spec.mode.clone().or(template).unwrap_or_default();
    WorkflowExecuteMode {
        steps: Some(own.steps.unwrap_or(WorkflowMode::StepByStep)),
        sub_steps: Some(own.sub_steps.unwrap_or(WorkflowMode::Dag)),
        ..WorkflowExecuteMode::default()
    }
}

/// What templates see of the run.
fn context(run: &WorkflowRun) -> Map<String, serde_json::Value> {
    let mut context = Map::new();
    context.insert("name".to_owned(), json!(run.metadata.name));
    context.insert("namespace".to_owned(), json!(run.metadata.namespace));
    context.insert("workflowName".to_owned(), json!(run.metadata.name));
    for (name, value) in run.spec.context.iter().flatten() {
        context.insert(name.clone(), value.clone());
    }
    context
}

/// The run as the owner of a workflow.
pub(super) fn owner(run: &WorkflowRun) -> Owner {
    let key = ObjectKey::of(run);
    let annotations = run.metadata.annotations.as_ref();
    let debug = annotations.and_then(|all| all.get(annotation::DEBUG));
    Owner {
        kind: OwnerKind::Run,
        reference: OwnerReference {
            api_version: WorkflowRun::api_version(&()).into_owned(),
            kind: WorkflowRun::kind(&()).into_owned(),
            name: key.name.to_string(),
            uid: run.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        },
        labels: BTreeMap::from([
            (label::RUN_NAME.to_owned(), key.name.to_string()),
            (label::RUN_NAMESPACE.to_owned(), key.namespace.to_string()),
        ]),
        debug: debug.is_some_and(|value| value == "true"),
        key,
    }
}

/// What the status says, by which others control the run.
pub(super) fn seen(run: &WorkflowRun) -> Seen {
    let Some(status) = &run.status else {
        return Seen::default();
    };
    Seen {
        seq: status.history_seq,
        is_written: status.phase.is_some(),
        // The fields that are required stay when somebody clears a status.
        is_cleared: status.phase.is_none() && status.steps.is_empty(),
        suspend: status.suspend,
        terminated: status.terminated,
        rolling_back: false,
        steps: status.steps.clone(),
        version: run.metadata.resource_version.clone().unwrap_or_default(),
        restart: String::new(),
        delivered: None,
    }
}
