//! `bellwether workflow`: show and control workflows.

mod history;
mod logs;
mod options;
mod rollback;
mod show;
mod subject;

pub(crate) use options::WorkflowArgs;

use bellwether_workflow::operation;
use clap::{Args, Subcommand, ValueEnum};
use kube::Client;

use crate::cli::say;
use crate::connect::ConnectArgs;
use subject::Subject;

/// Arguments of `bellwether workflow`.
#[derive(Debug, Args)]
pub(crate) struct WorkflowCommandArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List workflows of applications and workflow runs with where they stand.
    #[command(after_help = "Example:\n  bellwether workflow list -n shop")]
    List(ListArgs),
    /// Show the steps of a workflow: times, what is waited for, what is next.
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
    Logs(LogsArgs),
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

/// What a workflow belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SubjectKind {
    /// An Application.
    App,
    /// A WorkflowRun.
    Workflow,
}

/// Which workflow.
#[derive(Debug, Args)]
struct Target {
    /// The Application, or the WorkflowRun if there is no such Application.
    #[arg(value_name = "NAME")]
    name: String,
    /// Kind of the object, if there are both.
    #[arg(short = 't', long = "type", value_name = "KIND")]
    kind: Option<SubjectKind>,
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
struct LogsArgs {
    #[command(flatten)]
    step: StepTarget,
    /// How logs are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "default")]
    output: logs::LogFormat,
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
            let subject = subject::find(&client, &namespace, &target).await?;
            let state = history::state(&client, &namespace, &subject).await;
            show::status(&subject, &state);
            Ok(())
        }
        Action::Suspend(target) => {
            let step = target.step.as_deref();
            let (client, namespace) = target.target.open().await?;
            subject::change(&client, &namespace, &target.target, |subject| {
                subject.check_open("suspend")?;
                Ok(operation::suspend(&mut subject.controls()?, step)?)
            })
            .await?;
            say(&done("suspend", &target));
            Ok(())
        }
        Action::Resume(target) => resume(&target).await,
        Action::Terminate(target) => {
            let (client, namespace) = target.open().await?;
            subject::change(&client, &namespace, &target, |subject| {
                subject.check_open("terminate")?;
                operation::terminate(subject.controls()?);
                Ok(())
            })
            .await?;
            say(&format!("Successfully terminate workflow: {}", target.name));
            Ok(())
        }
        Action::Restart(target) => restart(&target).await,
        Action::Rollback(target) => {
            let (client, namespace) = target.open().await?;
            rollback::run(&client, &namespace, &target).await
        }
        Action::Logs(arguments) => {
            let StepTarget { target, step } = &arguments.step;
            let (client, namespace) = target.open().await?;
            let subject = subject::find(&client, &namespace, target).await?;
            let format = arguments.output;
            logs::print(&client, &namespace, &subject, step.as_deref(), format).await
        }
        Action::History(target) => {
            let (client, namespace) = target.open().await?;
            let subject = subject::find(&client, &namespace, &target).await?;
            history::list(&client, &namespace, &subject).await
        }
        Action::Replay(arguments) => {
            let (client, namespace) = arguments.target.open().await?;
            let subject = subject::find(&client, &namespace, &arguments.target).await?;
            history::replay(&client, &namespace, &subject, arguments.until).await
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

async fn resume(target: &StepTarget) -> anyhow::Result<()> {
    let step = target.step.as_deref();
    let (client, namespace) = target.target.open().await?;
    let found = subject::find(&client, &namespace, &target.target).await?;
    if found.goes_on(step) {
        let name = &target.target.name;
        say(&format!("workflow {name} is not suspended."));
        return Ok(());
    }
    subject::change(&client, &namespace, &target.target, |subject| {
        subject.check_open("resume")?;
        Ok(operation::resume(&mut subject.controls()?, step)?)
    })
    .await?;
    say(&done("resume", target));
    Ok(())
}

async fn restart(target: &StepTarget) -> anyhow::Result<()> {
    let name = &target.target.name;
    let (client, namespace) = target.target.open().await?;
    let Some(step) = &target.step else {
        subject::change(&client, &namespace, &target.target, Subject::clear).await?;
        say(&format!("Successfully restart workflow: {name}"));
        return Ok(());
    };
    let subject = subject::find(&client, &namespace, &target.target).await?;
    let steps = subject.steps(&client, &namespace).await?;
    subject::change(&client, &namespace, &target.target, |subject| {
        let mode = subject.mode();
        operation::restart_from(subject.controls()?, &steps, &mode, step)?;
        subject.reopen();
        Ok(())
    })
    .await?;
    say(&format!(
        "Successfully restart workflow {name} from step {step}"
    ));
    Ok(())
}
