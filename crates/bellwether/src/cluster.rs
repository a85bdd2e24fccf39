//! `bellwether cluster …`: members of a fleet, one by one.

mod accept;
mod detach;
mod join;
mod list;

use clap::{Args, Subcommand};

/// Let clusters join a fleet, show them, and let them go.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Ask a hub to let a cluster join.
    Join(join::JoinArgs),
    /// Accept clusters that ask to join.
    Accept(accept::AcceptArgs),
    /// Show the clusters of a hub.
    List(list::ListArgs),
    /// Let clusters go, after what they run for the hub has been removed.
    Detach(detach::DetachArgs),
}

pub(crate) async fn run(arguments: ClusterArgs) -> anyhow::Result<()> {
    match arguments.command {
        ClusterCommand::Join(arguments) => join::run(arguments).await,
        ClusterCommand::Accept(arguments) => accept::run(arguments).await,
        ClusterCommand::List(arguments) => list::run(arguments).await,
        ClusterCommand::Detach(arguments) => detach::run(arguments).await,
    }
}
