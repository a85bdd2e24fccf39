//! `bellwether token …`: what a new member shows when it asks to join.

mod create;
mod delete;
mod list;

use clap::{Args, Subcommand};

/// Tokens with which clusters join.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Delete(delete::DeleteArgs),
}

pub(crate) async fn run(arguments: TokenArgs) -> anyhow::Result<()> {
    match arguments.command {
        TokenCommand::Create(arguments) => create::run(arguments).await,
        TokenCommand::List(arguments) => list::run(arguments).await,
        TokenCommand::Delete(arguments) => delete::run(arguments).await,
    }
}
