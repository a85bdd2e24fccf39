//! `bellwether app`: list and show applications, read their logs, roll them back, delete them.

mod delete;
mod list;
mod logs;
mod rollback;

use bellwether_ctl::Connection;
use bellwether_ctl::explain::read_application;
use clap::{Args, Subcommand};

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::print::PrintArgs;
use crate::screen;

pub(crate) use list::ListArgs;
pub(crate) use logs::LogsArgs;

/// Arguments of `bellwether app`.
#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List applications with their components.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  bellwether app list\n  bellwether app list -A -o json"
    )]
    List(list::ListArgs),
    /// Show components, traits, objects on each cluster, and what is waited for.
    #[command(after_help = "Example:\n  bellwether app status shop -n apps")]
    Status(StatusArgs),
    /// List the revisions of an application.
    #[command(after_help = "Example:\n  bellwether app revisions shop -n apps")]
    Revisions(StatusArgs),
    /// Print the logs of the pods of an application, on all of its clusters.
    #[command(
        after_help = "Examples:\n  bellwether app logs shop\n  bellwether app logs shop --component web --cluster cluster1 --tail 20"
    )]
    Logs(logs::LogsArgs),
    /// Go back to an earlier revision: its spec, rendered by its definitions.
    #[command(
        after_help = "Examples:\n  bellwether app rollback shop\n  bellwether app rollback shop --to 3 -n apps"
    )]
    Rollback(rollback::RollbackArgs),
    /// Delete an application and its objects, and say what is waited for.
    #[command(
        after_help = "Examples:\n  bellwether app delete shop\n  bellwether app delete shop --orphan\n  bellwether app delete shop --force"
    )]
    Delete(delete::DeleteArgs),
}

/// Which application.
#[derive(Debug, Args)]
struct Target {
    /// The application.
    #[arg(value_name = "NAME")]
    name: String,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl Target {
    async fn open(&self) -> anyhow::Result<Connection> {
        self.connect.open(self.namespace.as_deref()).await
    }
}

#[derive(Debug, Args)]
struct StatusArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    print: PrintArgs,
}

/// Runs an `app` command.
pub(crate) async fn run(arguments: AppArgs) -> anyhow::Result<()> {
    match arguments.action {
        Action::List(arguments) => list::run(&arguments).await,
        Action::Status(arguments) => status(&arguments).await,
        Action::Revisions(arguments) => rollback::list(&arguments.target, arguments.print).await,
        Action::Logs(arguments) => logs::run(&arguments).await,
        Action::Rollback(arguments) => rollback::run(&arguments).await,
        Action::Delete(arguments) => delete::run(&arguments).await,
    }
}

/// Lists applications.
pub(crate) async fn list(arguments: ListArgs) -> anyhow::Result<()> {
    list::run(&arguments).await
}

/// Prints the logs of an application.
pub(crate) async fn logs(arguments: LogsArgs) -> anyhow::Result<()> {
    logs::run(&arguments).await
}

async fn status(arguments: &StatusArgs) -> anyhow::Result<()> {
    let connection = arguments.target.open().await?;
    let Connection { client, namespace } = &connection;
    let snapshot = read_application(client, namespace, &arguments.target.name).await?;
    if arguments.print.is_table() {
        say(snapshot.status().render(screen::has_colours()).trim_end());
        return Ok(());
    }
    arguments.print.print(&snapshot.document(), &[])
}
