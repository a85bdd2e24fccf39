//! The command line.

use std::io::Write as _;

use bellwether_process::agent::AgentArgs;
use bellwether_process::complete;
pub(crate) use bellwether_process::output::{is_pipe_broken, note_broken_pipe, say};
use clap::{ArgAction, Parser, Subcommand};

use crate::logging::LogFormat;
use crate::{
    adopt, apiserver, app, backup, cluster, completion, crds, cue, definitions, examples, helm,
    hub, install, kustomize, objects, plan, policy, probe, render, rollout, status, token, up,
    version, why, workflow,
};

/// The exit code of a program whose reader has gone, as shells know it: 128 and SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 128 + 13;

/// Delivers applications to fleets of Kubernetes clusters.
///
/// One binary is the hub, the agents, the command line and, where no cluster is at hand, the
/// clusters themselves.
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    after_help = "Try it:\n  bellwether up\n  export KUBECONFIG=.bellwether/kubeconfig\n  kubectl get namespaces"
)]
pub(crate) struct Arguments<C: Subcommand = Command> {
    #[command(subcommand)]
    pub(crate) command: C,
    /// More output (-v info, -vv debug).
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// How log lines are written.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    pub(crate) log_format: LogFormat,
}

// What each command is for stands at its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(up::UpArgs),
    Agent(AgentArgs),
    Hub(hub::HubArgs),
    /// Print or apply the manifests of a hub or an agent, for a cluster with an API server of its own.
    #[command(after_help = "Example:\n  bellwether install hub --apply")]
    Install(install::InstallArgs),
    /// Remove a hub or an agent; what they delivered stays.
    #[command(after_help = "Example:\n  bellwether uninstall hub")]
    Uninstall(install::UninstallArgs),
    /// Join, list, label and detach clusters.
    #[command(after_help = "Example:\n  bellwether cluster list")]
    Cluster(cluster::ClusterArgs),
    /// Create, list and delete join tokens.
    #[command(after_help = "Example:\n  bellwether token create --cluster-name edge1")]
    Token(token::TokenArgs),
    Adopt(adopt::AdoptArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Why(why::WhyArgs),
    #[command(visible_alias = "live-diff")]
    Plan(plan::PlanArgs),
    Apiserver(apiserver::ApiserverArgs),
    Apply(objects::ApplyArgs),
    Get(objects::GetArgs),
    Delete(objects::DeleteArgs),
    Wait(objects::WaitArgs),
    Describe(objects::DescribeArgs),
    Status(status::StatusArgs),
    Rollout(rollout::RolloutArgs),
    /// List, show, roll back and delete applications, and read their logs.
    #[command(after_help = "Example:\n  bellwether app list -A")]
    App(app::AppArgs),
    /// List applications with their components: `app list`.
    #[command(after_help = "Example:\n  bellwether ls -A")]
    Ls(app::ListArgs),
    /// Print the logs of the pods of an application: `app logs`.
    #[command(after_help = "Example:\n  bellwether logs shop --component web")]
    Logs(app::LogsArgs),
    /// Show what a type is for, and its parameters: `def show`.
    #[command(after_help = "Example:\n  bellwether show webservice")]
    Show(definitions::ShowArgs),
    /// Show and control workflows.
    #[command(after_help = "Example:\n  bellwether workflow status release-1 -n shop")]
    Workflow(workflow::WorkflowCommandArgs),
    /// List examples, and play them on a fleet that is thrown away.
    #[command(after_help = "Example:\n  bellwether examples run canary")]
    Examples(examples::ExamplesArgs),
    Completion(completion::CompletionArgs),
    Version(version::VersionArgs),
    Crds(crds::CrdsArgs),
    Definitions(definitions::DefinitionsArgs),
    /// Show, check and write definitions of components, traits, policies and steps.
    Def(definitions::DefArgs),
    #[command(visible_alias = "dry-run")]
    Render(render::RenderArgs),
    /// Evaluate, check and format CUE.
    Cue(cue::CueArgs),
    /// Render, check and show Helm charts.
    Helm(helm::HelmArgs),
    /// Build manifests from bases, overlays and patches.
    Kustomize(kustomize::KustomizeArgs),
    /// Evaluate policies without a cluster.
    #[command(
        after_help = "Example:\n  bellwether policy dryrun --policy examples/policy/dryrun/policy.yaml examples/policy/dryrun/cluster.yaml"
    )]
    Policy(policy::PolicyArgs),
    /// Answer JSON lines on standard input with JSON lines on standard output.
    #[command(after_help = "Example:\n  bellwether probe cue < cases.jsonl")]
    Probe {
        /// Which engine answers.
        #[arg(value_enum)]
        engine: probe::Engine,
    },
}

/// The only command of a process that runs for months in every cluster.
#[derive(Debug, Subcommand)]
enum AgentCommand {
    Agent(AgentArgs),
}

/// Reads the arguments of this process. An agent describes its own flags to the parser, and not those of all other
/// commands: it would keep the memory that they take.
pub(crate) fn parse() -> Result<Arguments, clap::Error> {
    let is_agent = std::env::args_os()
        .nth(1)
        .is_some_and(|name| name == "agent");
    if is_agent && let Ok(arguments) = Arguments::<AgentCommand>::try_parse() {
        let AgentCommand::Agent(agent) = arguments.command;
        return Ok(Arguments {
            command: Command::Agent(agent),
            verbose: arguments.verbose,
            log_format: arguments.log_format,
        });
    }
    // Also for help and for errors, which name other commands. What is not text is no word of anybody.
    let typed = std::env::args_os().map(std::ffi::OsString::into_string);
    match typed.collect::<Result<Vec<String>, _>>() {
        Ok(typed) => Arguments::try_parse_from(crate::vela::translated(typed)),
        Err(_) => Arguments::try_parse(),
    }
}

/// Does what the arguments say.
pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Up(arguments) => complete(runtime()?, up::run(arguments)),
        Command::Agent(arguments) => bellwether_process::agent::run(arguments),
        Command::Hub(arguments) => complete(runtime()?, hub::run(arguments)),
        Command::Install(arguments) => complete(runtime()?, install::run(arguments)),
        Command::Uninstall(arguments) => complete(runtime()?, install::uninstall(arguments)),
        Command::Cluster(arguments) => complete(runtime()?, cluster::run(arguments)),
        Command::Token(arguments) => complete(runtime()?, token::run(arguments)),
        Command::Adopt(arguments) => complete(runtime()?, adopt::run(arguments)),
        Command::Backup(arguments) => complete(runtime()?, backup::backup(arguments)),
        Command::Restore(arguments) => complete(runtime()?, backup::restore(arguments)),
        Command::Why(arguments) => complete(runtime()?, why::run(arguments)),
        Command::Plan(arguments) => complete(runtime()?, plan::run(arguments)),
        Command::Apiserver(arguments) => complete(runtime()?, apiserver::run(arguments)),
        Command::Apply(arguments) => complete(runtime()?, objects::apply(arguments)),
        Command::Get(arguments) => complete(runtime()?, objects::get(arguments)),
        Command::Delete(arguments) => complete(runtime()?, objects::delete(arguments)),
        Command::Wait(arguments) => complete(runtime()?, objects::wait(arguments)),
        Command::Describe(arguments) => complete(runtime()?, objects::describe(arguments)),
        Command::Status(arguments) => complete(runtime()?, status::run(arguments)),
        Command::Rollout(arguments) => complete(runtime()?, rollout::run(arguments)),
        Command::App(arguments) => complete(runtime()?, app::run(arguments)),
        Command::Ls(arguments) => complete(runtime()?, app::list(arguments)),
        Command::Logs(arguments) => complete(runtime()?, app::logs(arguments)),
        Command::Show(arguments) => complete(runtime()?, definitions::run_show(arguments)),
        Command::Workflow(arguments) => complete(runtime()?, workflow::run(arguments)),
        Command::Examples(arguments) => complete(runtime()?, examples::run(arguments)),
        Command::Completion(arguments) => completion::run(&arguments),
        Command::Version(arguments) => version::run(&arguments),
        Command::Crds(arguments) => {
            crds::run(&arguments);
            Ok(())
        }
        Command::Definitions(arguments) => {
            definitions::run_all(&arguments);
            Ok(())
        }
        Command::Def(arguments) => complete(runtime()?, definitions::run(arguments)),
        Command::Render(arguments) => complete(runtime()?, render::run(arguments)),
        Command::Cue(arguments) => cue::run(arguments),
        Command::Helm(arguments) => helm::run(&arguments),
        Command::Kustomize(arguments) => kustomize::run(&arguments),
        Command::Policy(arguments) => policy::run(&arguments),
        Command::Probe { engine } => probe::run(engine),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

/// What is wrong with the arguments, without the usage that `--help` shows.
pub(crate) fn one_line(message: &str) -> String {
    let parts = message
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let text = parts.collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("{text} (see --help)")
}

/// The whole chain of an error in one line: what was attempted, and why it failed. What a server
/// said is printed in its words, without the form that it came in.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref() {
            parts.push(format!("{} ({})", status.message, status.reason));
            break;
        }
        // What was attempted does not matter where nothing can be.
        if let Some(unreachable) = cause.downcast_ref::<bellwether_ctl::Unreachable>() {
            return format!("{unreachable} (`bellwether up` starts one)");
        }
        let text = cause.to_string();
        // Some say what their cause says.
        if parts.last().is_none_or(|last| !last.ends_with(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

/// True if a command failed only because its reader has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(bellwether_ctl::Error::Write(error)) => is_closed(error),
        _ => cause.downcast_ref().is_some_and(is_closed),
    })
}

/// True if a command runs until it is ended: what it prints is not what it is for.
pub(crate) fn is_server(command: &Command) -> bool {
    matches!(
        command,
        Command::Up(_) | Command::Agent(_) | Command::Hub(_) | Command::Apiserver(_)
    )
}

/// Whether a command is one of kubectl's, and says things as kubectl does.
pub(crate) fn speaks_kubectl(command: &Command) -> bool {
    matches!(
        command,
        Command::Apply(_)
            | Command::Get(_)
            | Command::Delete(_)
            | Command::Wait(_)
            | Command::Describe(_)
    )
}

/// Prints why a command of kubectl's failed, unless that has been said already.
pub(crate) fn print_report(error: &bellwether_ctl::Error) {
    if let Some(text) = error.report() {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// The end of a command whose exit code says more than that it failed.
#[derive(Debug)]
pub(crate) struct ExitCode {
    code: u8,
    /// What is printed on standard error, as it is.
    message: String,
}

impl std::fmt::Display for ExitCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ExitCode {}

impl ExitCode {
    pub(crate) const fn new(code: u8, message: String) -> Self {
        Self { code, message }
    }

    /// Prints the message, and returns the code.
    pub(crate) fn print(&self) -> std::process::ExitCode {
        let _ = writeln!(std::io::stderr(), "{}", self.message);
        self.code.into()
    }
}

/// Prints why a command failed.
pub(crate) fn print_error(message: &str) {
    let _ = writeln!(std::io::stderr(), "error: {message}");
}

/// Prints something that people should know beside what a command prints.
pub(crate) fn print_warning(message: &str) {
    // If stderr is closed, there is nobody to read it.
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn what_a_server_says_is_told_once() {
        let status: kube::core::Status = serde_json::from_value(serde_json::json!({
            "code": 404, "reason": "NotFound", "message": "pods \"p\" not found",
        }))
        .unwrap();
        let refused: Result<(), kube::Error> = Err(kube::Error::Api(Box::new(status)));
        let error = refused.context("cannot read the pod").unwrap_err();
        let told = "cannot read the pod: pods \"p\" not found (NotFound)";
        assert_eq!(chain(&error), told);
        let twice = anyhow::anyhow!("no such file").context("cannot read: no such file");
        assert_eq!(chain(&twice), "cannot read: no such file");
    }
}
