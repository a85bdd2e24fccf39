//! `bellwether token delete`

use anyhow::Context as _;
use bellwether_api::cluster::names::registration::{TOKEN_NAMESPACE, TOKEN_SECRET_PREFIX};
use clap::Args;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Delete tokens, so that no cluster can join with them.
///
/// Clusters that have joined stay members.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether token delete abcdef")]
pub(super) struct DeleteArgs {
    /// The ids of the tokens, which `bellwether token list` shows, or whole tokens.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(super) async fn run(arguments: DeleteArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    let secrets: Api<Secret> = Api::namespaced(client, TOKEN_NAMESPACE);
    for token in &arguments.ids {
        let id = token.split('.').next().unwrap_or_default();
        let name = format!("{TOKEN_SECRET_PREFIX}{id}");
        match secrets.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                anyhow::bail!("there is no token {id}: see bellwether token list")
            }
            deleted => deleted.with_context(|| format!("cannot delete the token {id}"))?,
        };
        say(&format!("the token {id} is deleted"));
    }
    Ok(())
}
