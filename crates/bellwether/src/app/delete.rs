//! `bellwether app delete`: an application and its objects, with what is waited for.

use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::meta;
use bellwether_api::oam::names::{condition, finalizer, label};
use bellwether_api::oam::{Application, ResourceTracker};
use bellwether_json::duration::GoDuration;
use clap::Args;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::Target;
use crate::cli::say;

/// How often it is looked whether the application is gone.
const PERIOD: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of a command"
)]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    target: Target,
    /// Keep the objects; they have no owner afterwards.
    #[arg(long)]
    orphan: bool,
    /// Delete the application even if objects remain, for example on a cluster that cannot be reached. Objects that may
    /// remain are printed.
    #[arg(long)]
    force: bool,
    /// Do not wait for the deletion to finish.
    #[arg(long)]
    no_wait: bool,
    /// Accepted for scripts that are used to `vela delete -y`; there is no question to answer.
    #[arg(short = 'y', long = "yes")]
    _yes: bool,
    /// Maximum time to wait.
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: GoDuration,
}

pub(super) async fn run(arguments: &DeleteArgs) -> anyhow::Result<()> {
    let connection = arguments.target.open().await?;
    let name = &arguments.target.name;
    let api: Api<Application> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let Some(application) = api.get_opt(name).await? else {
        anyhow::bail!(
            "there is no application {name} in namespace {}; see bellwether app list -A",
            connection.namespace
        );
    };
    if arguments.orphan {
        let mut finalizers = application.metadata.finalizers.unwrap_or_default();
        if !finalizers.iter().any(|it| it == finalizer::ORPHAN_RESOURCE) {
            finalizers.push(finalizer::ORPHAN_RESOURCE.to_owned());
            let version = application.metadata.resource_version;
            let metadata = json!({"finalizers": finalizers, "resourceVersion": version});
            merge(&api, name, &json!({"metadata": metadata})).await?;
        }
    }
    api.delete(name, &DeleteParams::background()).await?;
    if arguments.force {
        return force(&connection.client, &api, &connection.namespace, name).await;
    }
    if arguments.no_wait {
        say(&format!("application {name} is being deleted"));
        return Ok(());
    }
    wait(&api, name, arguments.timeout).await
}

async fn merge(
    api: &Api<Application>,
    name: &str,
    patch: &serde_json::Value,
) -> Result<(), kube::Error> {
    let written = api
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    match written {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        written => written.map(drop),
    }
}

/// Waits until the application is gone, and prints what keeps it.
async fn wait(api: &Api<Application>, name: &str, timeout: GoDuration) -> anyhow::Result<()> {
    let timeout = Duration::try_from(timeout.to_signed()).unwrap_or_default();
    let mut told = String::new();
    let gone = async {
        while let Some(application) = api.get_opt(name).await? {
            let status = application.status.unwrap_or_default();
            let ready = meta::condition(&status.conditions, condition::READY);
            let waiting = ready.filter(|ready| ready.reason == condition::DELETING);
            if let Some(waiting) = waiting.filter(|it| it.message != told) {
                told.clone_from(&waiting.message);
                say(&told);
            }
            tokio::time::sleep(PERIOD).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(timeout, gone).await.with_context(|| {
        format!(
            "application {name} is still there; --force lets it go and leaves what cannot be deleted"
        )
    })??;
    say(&format!("application {name} is deleted"));
    Ok(())
}

/// Lets an application and its trackers go.
async fn force(
    client: &Client,
    api: &Api<Application>,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let trackers: Api<ResourceTracker> = Api::all(client.clone());
    let own = format!(
        "{}={name},{}={namespace}",
        label::APP_NAME,
        label::APP_NAMESPACE
    );
    for tracker in trackers.list(&ListParams::default().labels(&own)).await? {
        for entry in &tracker.spec.managed_resources {
            let cluster = match entry.cluster.as_str() {
                "" => "local",
                cluster => cluster,
            };
            say(&format!(
                "may be left: {} {}/{} on {cluster}",
                entry.kind, entry.namespace, entry.name
            ));
        }
        let tracker = tracker.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let released = trackers
            .patch(&tracker, &PatchParams::default(), &patch)
            .await;
        let deleted = trackers.delete(&tracker, &DeleteParams::default()).await;
        for failed in [released.err(), deleted.err()].into_iter().flatten() {
            let is_gone = matches!(&failed, kube::Error::Api(status) if status.code == 404);
            anyhow::ensure!(is_gone, failed);
        }
    }
    merge(api, name, &json!({"metadata": {"finalizers": null}})).await?;
    say(&format!("application {name} is deleted"));
    Ok(())
}
