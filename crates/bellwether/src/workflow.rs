//! `bellwether workflow`: show and control workflows.

mod history;
mod options;
mod show;

pub(crate) use options::WorkflowArgs;

use anyhow::Context as _;
use bellwether_api::workflow::{Workflow, WorkflowMode, WorkflowRun, WorkflowRunStatus};
use bellwether_workflow::operation::{self, Controls, OperationError};
use bellwether_workflow::spec;
use clap::{Args, Subcommand};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Writes that meet another writer are tried again this often.
const ATTEMPTS: u32 = 10;

/// Arguments of `bellwether workflow`.
#[derive(Debug, Args)]
pub(crate) struct WorkflowCommandArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List workflow runs with where they stand.
    #[command(after_help = "Example:\n  bellwether workflow list -n shop")]
    List(ListArgs),
    /// Show the steps of a run: times, what is waited for, what is next.
    #[command(after_help = "Example:\n  bellwether workflow status release-1 -n shop")]
    Status(Target),
    /// Carry out no further step until the run is resumed.
    #[command(after_help = "Example:\n  bellwether workflow suspend release-1 -n shop")]
    Suspend(StepTarget),
    /// Go on with a suspended run.
    #[command(
        after_help = "Example:\n  bellwether workflow resume release-1 -n shop --step approve"
    )]
    Resume(StepTarget),
    /// End a run: steps that are open fail.
    #[command(after_help = "Example:\n  bellwether workflow terminate release-1 -n shop")]
    Terminate(Target),
    /// Carry a run out again, from the beginning or from a step that failed.
    #[command(
        after_help = "Example:\n  bellwether workflow restart release-1 -n shop --step deploy"
    )]
    Restart(StepTarget),
    /// Go back to the version before; for Applications.
    #[command(after_help = "Example:\n  bellwether workflow rollback shop -n shop")]
    Rollback(Target),
    /// Show the logs of a step.
    #[command(after_help = "Example:\n  bellwether workflow logs release-1 -n shop --step build")]
    Logs(StepTarget),
    /// Show what happened in a run, in order.
    #[command(after_help = "Example:\n  bellwether workflow history release-1 -n shop")]
    History(Target),
    /// Show how a run came to be where it is: its steps after each entry of its history.
    #[command(after_help = "Example:\n  bellwether workflow replay release-1 -n shop --until 12")]
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Runs of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Which run.
#[derive(Debug, Args)]
struct Target {
    /// The run.
    #[arg(value_name = "NAME")]
    name: String,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Debug, Args)]
struct StepTarget {
    #[command(flatten)]
    target: Target,
    /// Only this step.
    #[arg(short, long, value_name = "NAME")]
    step: Option<String>,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    #[command(flatten)]
    target: Target,
    /// The last entry that is shown.
    #[arg(long, value_name = "SEQ")]
    until: Option<u64>,
}

pub(crate) async fn run(arguments: WorkflowCommandArgs) -> anyhow::Result<()> {
    match arguments.action {
        Action::List(arguments) => {
            let connection = arguments
                .connect
                .open(arguments.namespace.as_deref())
                .await?;
            let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
            show::list(&connection.client, namespace).await
        }
        Action::Status(target) => {
            let (client, namespace) = target.open().await?;
            let run = get(&client, &namespace, &target.name).await?;
            show::status(&run);
            Ok(())
        }
        Action::Suspend(target) => {
            let step = target.step.clone();
            change(&target.target, |run| {
                operation::suspend(&mut controls(status_of(run)), step.as_deref())
            })
            .await?;
            say(&done("suspend", &target));
            Ok(())
        }
        Action::Resume(target) => {
            let step = target.step.clone();
            change(&target.target, |run| {
                operation::resume(&mut controls(status_of(run)), step.as_deref())
            })
            .await?;
            say(&done("resume", &target));
            Ok(())
        }
        Action::Terminate(target) => {
            change(&target, |run| {
                operation::terminate(controls(status_of(run)));
                Ok(())
            })
            .await?;
            say(&format!("Successfully terminate workflow: {}", target.name));
            Ok(())
        }
        Action::Restart(target) => restart(&target).await,
        Action::Rollback(_) => Err(OperationError::RollbackRun.into()),
        Action::Logs(target) => {
            let (client, namespace) = target.target.open().await?;
            let run = get(&client, &namespace, &target.target.name).await?;
            show::logs(&client, &run, target.step.as_deref()).await
        }
        Action::History(target) => {
            let (client, namespace) = target.open().await?;
            history::list(&client, &namespace, &target.name).await
        }
        Action::Replay(arguments) => {
            let (client, namespace) = arguments.target.open().await?;
            history::replay(&client, &namespace, &arguments.target.name, arguments.until).await
        }
    }
}

impl Target {
    async fn open(&self) -> anyhow::Result<(Client, String)> {
        let connection = self.connect.open(self.namespace.as_deref()).await?;
        Ok((connection.client.clone(), connection.namespace.clone()))
    }
}

fn done(verb: &str, target: &StepTarget) -> String {
    let name = &target.target.name;
    match &target.step {
        None => format!("Successfully {verb} workflow: {name}"),
        Some(step) => format!("Successfully {verb} workflow {name} from step {step}"),
    }
}

fn status_of(run: &mut WorkflowRun) -> &mut WorkflowRunStatus {
    run.status.get_or_insert_default()
}

fn controls(status: &mut WorkflowRunStatus) -> Controls<'_> {
    Controls {
        suspend: &mut status.suspend,
        terminated: &mut status.terminated,
        finished: &mut status.finished,
        steps: &mut status.steps,
    }
}

async fn get(client: &Client, namespace: &str, name: &str) -> anyhow::Result<WorkflowRun> {
    let api: Api<WorkflowRun> = Api::namespaced(client.clone(), namespace);
    let run = api.get_opt(name).await?;
    run.with_context(|| format!("there is no workflow run {name:?} in namespace {namespace:?}"))
}

/// Changes the status of a run; a write that meets another one is made again on what is true then.
async fn change(
    target: &Target,
    operation: impl Fn(&mut WorkflowRun) -> Result<(), OperationError>,
) -> anyhow::Result<()> {
    let (client, namespace) = target.open().await?;
    let api: Api<WorkflowRun> = Api::namespaced(client.clone(), &namespace);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut run = get(&client, &namespace, &target.name).await?;
        operation(&mut run)?;
        run.metadata.managed_fields = None;
        match api
            .replace_status(&target.name, &PostParams::default(), &run)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
            other => return Ok(other.map(|_| ())?),
        }
    }
}

async fn restart(target: &StepTarget) -> anyhow::Result<()> {
    let name = &target.target.name;
    let (client, namespace) = target.target.open().await?;
    let Some(step) = target.step.clone() else {
        change(&target.target, |run| {
            run.status = Some(WorkflowRunStatus::default());
            Ok(())
        })
        .await?;
        say(&format!("Successfully restart workflow: {name}"));
        return Ok(());
    };
    let run = get(&client, &namespace, name).await?;
    let mut steps = match (&run.spec.workflow_spec, run.spec.workflow_ref.as_str()) {
        (Some(own), _) => own.steps.clone(),
        (None, reference) => {
            let api: Api<Workflow> = Api::namespaced(client.clone(), &namespace);
            api.get(reference).await?.steps
        }
    };
    spec::name_steps(&mut steps);
    change(&target.target, |run| {
        let status = status_of(run);
        let mode = status
            .mode
            .steps
            .clone()
            .unwrap_or(WorkflowMode::StepByStep);
        operation::restart_from(controls(status), &steps, &mode, &step)?;
        status.end_time = None;
        Ok(())
    })
    .await?;
    say(&format!(
        "Successfully restart workflow {name} from step {step}"
    ));
    Ok(())
}
