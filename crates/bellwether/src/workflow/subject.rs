//! What a workflow belongs to: an Application or a WorkflowRun.

use anyhow::Context as _;
use bellwether_api::oam::{Application, ApplicationStatus};
use bellwether_api::workflow::{
    ContextBackend, StepPhase, Workflow, WorkflowExecuteMode, WorkflowRun, WorkflowRunPhase,
    WorkflowRunStatus, WorkflowStep, WorkflowStepBase, WorkflowStepStatus,
};
use bellwether_workflow::operation::Controls;
use bellwether_workflow::spec;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use super::{SubjectKind, Target};

/// Writes that meet another writer are tried again this often.
const ATTEMPTS: u32 = 10;

/// What a workflow belongs to.
pub(super) enum Subject {
    Application(Box<Application>),
    Run(Box<WorkflowRun>),
}

/// Finds what a workflow belongs to: an Application, or a WorkflowRun.
pub(super) async fn find(
    client: &Client,
    namespace: &str,
    target: &Target,
) -> anyhow::Result<Subject> {
    let name = &target.name;
    if target.kind != Some(SubjectKind::Workflow) {
        let api: Api<Application> = Api::namespaced(client.clone(), namespace);
        if let Some(application) = api.get_opt(name).await? {
            return Ok(Subject::Application(Box::new(application)));
        }
    }
    if target.kind != Some(SubjectKind::App) {
        let api: Api<WorkflowRun> = Api::namespaced(client.clone(), namespace);
        if let Some(run) = api.get_opt(name).await? {
            return Ok(Subject::Run(Box::new(run)));
        }
    }
    let what = match target.kind {
        Some(SubjectKind::App) => "application",
        Some(SubjectKind::Workflow) => "workflow run",
        None => "application or workflow run",
    };
    anyhow::bail!("there is no {what} {name:?} in namespace {namespace:?}")
}

/// Changes the status; a write that meets another one is made again on what is true then.
pub(super) async fn change(
    client: &Client,
    namespace: &str,
    target: &Target,
    operation: impl Fn(&mut Subject) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut subject = find(client, namespace, target).await?;
        operation(&mut subject)?;
        match subject.write(client, namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
            other => return Ok(other?),
        }
    }
}

impl Subject {
    async fn write(&mut self, client: &Client, namespace: &str) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        match self {
            Self::Application(application) => {
                let api: Api<Application> = Api::namespaced(client.clone(), namespace);
                application.metadata.managed_fields = None;
                let name = application.metadata.name.clone().unwrap_or_default();
                let written = api.replace_status(&name, &parameters, application).await;
                written.map(drop)
            }
            Self::Run(run) => {
                let api: Api<WorkflowRun> = Api::namespaced(client.clone(), namespace);
                run.metadata.managed_fields = None;
                let name = run.metadata.name.clone().unwrap_or_default();
                let written = api.replace_status(&name, &parameters, run).await;
                written.map(drop)
            }
        }
    }

    /// The name of what it belongs to.
    pub(super) fn name(&self) -> &str {
        let name = match self {
            Self::Application(application) => &application.metadata.name,
            Self::Run(run) => &run.metadata.name,
        };
        name.as_deref().unwrap_or_default()
    }

    /// Its name, times and so on.
    pub(super) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Application(application) => &application.metadata,
            Self::Run(run) => &run.metadata,
        }
    }

    /// How people call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Application(_) => "Application",
            Self::Run(_) => "WorkflowRun",
        }
    }

    /// The name of the object with the history.
    pub(super) fn history(&self) -> String {
        match self {
            Self::Application(_) => format!("application-{}", self.name()),
            Self::Run(_) => format!("workflowrun-{}", self.name()),
        }
    }

    /// Where the workflow stands, in the form of a run.
    pub(super) fn status(&self) -> WorkflowRunStatus {
        match self {
            Self::Run(run) => run.status.clone().unwrap_or_default(),
            Self::Application(application) => {
                let status = application.status.clone().unwrap_or_default();
                let workflow = status.workflow.unwrap_or_default();
                WorkflowRunStatus {
                    conditions: status.conditions,
                    phase: workflow.phase,
                    message: workflow.message,
                    suspend: workflow.suspend,
                    terminated: workflow.terminated,
                    finished: workflow.finished,
                    context_backend: workflow.context_backend,
                    steps: workflow.steps,
                    start_time: workflow.start_time,
                    end_time: workflow.end_time,
                    history_seq: workflow.history_seq,
                    ..WorkflowRunStatus::default()
                }
            }
        }
    }

    /// How many steps it declares itself; those of a Workflow that it refers to are not counted.
    pub(super) fn own_steps(&self) -> usize {
        match self {
            Self::Run(run) => {
                let own = run.spec.workflow_spec.as_ref();
                own.map_or(0, |own| own.steps.len())
            }
            Self::Application(application) => {
                let own = application.spec.workflow.as_ref();
                own.map_or(0, |own| own.steps.len())
            }
        }
    }

    /// Where the values of steps are kept.
    pub(super) fn backend(&self) -> Option<ContextBackend> {
        self.status().context_backend
    }

    /// An operation makes sense only as long as the workflow of an application has not succeeded.
    pub(super) fn check_open(&self, operation: &str) -> anyhow::Result<()> {
        let is_application = matches!(self, Self::Application(_));
        let name = self.name();
        anyhow::ensure!(
            !is_application || self.status().phase != Some(WorkflowRunPhase::Succeeded),
            "{operation} workflow not allowed because application {name} is running"
        );
        Ok(())
    }

    /// True if there is nothing to resume: the workflow is not suspended, nor is the step, which exists.
    pub(super) fn goes_on(&self, step: Option<&str>) -> bool {
        let status = self.status();
        let mut all = status.steps.iter().flat_map(|step| {
            let own = std::iter::once(&step.status);
            own.chain(&step.sub_steps)
        });
        let is_known = step.is_none_or(|step| all.any(|status| status.name == step));
        let is_begun = status.phase.is_some() && !status.terminated && !status.finished;
        is_begun && is_known && !status.suspend && !self.has_suspended_steps()
    }

    fn has_suspended_steps(&self) -> bool {
        let status = self.status();
        let mut steps = status.steps.iter();
        steps.any(|step| {
            let mut own = std::iter::once(&step.status).chain(&step.sub_steps);
            own.any(|status| status.phase() == StepPhase::Suspending)
        })
    }

    /// What operations change.
    pub(super) fn controls(&mut self) -> anyhow::Result<Controls<'_>> {
        match self {
            Self::Application(application) => {
                let status = application.status.as_mut();
                let workflow = status.and_then(|status| status.workflow.as_mut());
                let workflow = workflow.context("the workflow in application is not running")?;
                Ok(Controls {
                    suspend: &mut workflow.suspend,
                    terminated: &mut workflow.terminated,
                    finished: &mut workflow.finished,
                    steps: &mut workflow.steps,
                })
            }
            Self::Run(run) => {
                let status = run.status.get_or_insert_default();
                Ok(Controls {
                    suspend: &mut status.suspend,
                    terminated: &mut status.terminated,
                    finished: &mut status.finished,
                    steps: &mut status.steps,
                })
            }
        }
    }

    /// Clears what is said of the workflow, so that it begins again.
    pub(super) fn clear(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Application(application) => {
                let status: &mut ApplicationStatus = application.status.get_or_insert_default();
                anyhow::ensure!(
                    status.workflow.is_some(),
                    "the workflow in application is not running"
                );
                status.workflow = None;
            }
            Self::Run(run) => run.status = Some(WorkflowRunStatus::default()),
        }
        Ok(())
    }

    /// A workflow that goes on has no end.
    pub(super) fn reopen(&mut self) {
        match self {
            Self::Application(application) => {
                let status = application.status.as_mut();
                if let Some(workflow) = status.and_then(|status| status.workflow.as_mut()) {
                    workflow.end_time = None;
                }
            }
            Self::Run(run) => {
                if let Some(status) = &mut run.status {
                    status.end_time = None;
                }
            }
        }
    }

    /// Order of the steps, as the status has it.
    pub(super) fn mode(&self) -> WorkflowExecuteMode {
        match self {
            Self::Run(run) => run.status.as_ref().map(|status| status.mode.clone()),
            Self::Application(application) => {
                let status = application.status.as_ref();
                let workflow = status.and_then(|status| status.workflow.as_ref());
                workflow.map(|workflow| WorkflowExecuteMode::parse(&workflow.mode))
            }
        }
        .unwrap_or_default()
    }

    /// The steps of the workflow.
    pub(super) async fn steps(
        &self,
        client: &Client,
        namespace: &str,
    ) -> anyhow::Result<Vec<WorkflowStep>> {
        let (own, reference) = match self {
            Self::Run(run) => {
                let own = run.spec.workflow_spec.as_ref().map(|own| own.steps.clone());
                (own, run.spec.workflow_ref.as_str())
            }
            Self::Application(application) => match &application.spec.workflow {
                Some(workflow) if workflow.workflow_ref.is_empty() => {
                    (Some(workflow.steps.clone()), "")
                }
                Some(workflow) => (None, workflow.workflow_ref.as_str()),
                None => (Some(generated(application)), ""),
            },
        };
        let mut steps = if let Some(own) = own {
            own
        } else {
            let api: Api<Workflow> = Api::namespaced(client.clone(), namespace);
            api.get(reference).await?.steps
        };
        spec::name_steps(&mut steps);
        Ok(steps)
    }
}

/// The steps of an application without a workflow: those of its components, and those that it was found to have.
fn generated(application: &Application) -> Vec<WorkflowStep> {
    let workflow = application
        .status
        .as_ref()
        .and_then(|it| it.workflow.as_ref());
    let known = workflow.map_or(&[][..], |workflow| &workflow.steps);
    let step = |status: &WorkflowStepStatus| {
        let components = &application.spec.components;
        let component = components.iter().find(|it| it.name == status.status.name);
        let mut base = WorkflowStepBase {
            name: status.status.name.clone(),
            step_type: status.status.step_type.clone(),
            ..WorkflowStepBase::default()
        };
        if let Some(component) = component {
            base.depends_on.clone_from(&component.depends_on);
            base.inputs.clone_from(&component.inputs);
            base.outputs.clone_from(&component.outputs);
        }
        WorkflowStep {
            base,
            ..WorkflowStep::default()
        }
    };
    known.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(suspend: bool, phase: &str, step: Option<&str>, expected: bool) {
        let run = json!({"metadata": {"name": "r"}, "spec": {}, "status": {"status": "executing", "mode": {},
            "suspend": suspend, "terminated": false, "finished": false,
            "steps": [{"id": "a", "name": "ask", "phase": phase}]}});
        let subject = Subject::Run(serde_json::from_value(run).unwrap());
        assert_eq!(
            subject.goes_on(step),
            expected,
            "{suspend} {phase} {step:?}"
        );
    }

    #[test]
    fn what_is_not_suspended_is_not_resumed() {
        check(false, "running", None, true);
        check(false, "running", Some("ask"), true);
        check(false, "running", Some("nobody"), false);
        check(true, "suspending", Some("ask"), false);
        check(true, "running", None, false);
        check(false, "suspending", None, false);
    }
}
