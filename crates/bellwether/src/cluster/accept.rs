//! `bellwether cluster accept`

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::{condition, label, registration};
use bellwether_api::meta::is_true;
use bellwether_apiserver::Clock;
use bellwether_controllers::registration::requests::{approve, is_pending, read};
use clap::Args;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Accept clusters that ask to join.
///
/// Their certificate requests are approved, if they come from somebody who was given a token, and
/// agree on one user; then the hub gives them their rights.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether cluster accept edge1 edge2\n  bellwether cluster accept edge1 --wait"
)]
pub(crate) struct AcceptArgs {
    /// The clusters.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Wait until they have joined.
    #[arg(long)]
    wait: bool,
    /// How long to wait, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Users that may ask, besides those with a token.
    #[arg(long, value_name = "USER,…", value_delimiter = ',')]
    requesters: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: AcceptArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    for name in &arguments.names {
        accept(&client, name, &arguments.requesters).await?;
    }
    if arguments.wait {
        let timeout = Duration::from_secs(arguments.timeout);
        for name in &arguments.names {
            let clusters: Api<ManagedCluster> = Api::all(client.clone());
            let has_joined = |cluster: Option<&ManagedCluster>| {
                let status = cluster.and_then(|cluster| cluster.status.as_ref());
                status.is_some_and(|status| is_true(&status.conditions, condition::JOINED))
            };
            let joined = await_condition(clusters, name, has_joined);
            tokio::time::timeout(timeout, joined)
                .await
                .with_context(|| {
                    format!("{name} has not joined after {} seconds", arguments.timeout)
                })??;
            say(&format!("{name} has joined"));
        }
    }
    Ok(())
}

async fn accept(client: &Client, name: &str, requesters: &[String]) -> anyhow::Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let cluster = clusters.get_opt(name).await?.with_context(|| {
        format!(
            "the hub knows no cluster {name}: has it asked to join? See bellwether cluster list"
        )
    })?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let own = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
    let pending = requests.list(&own).await?.items;
    let mut users = BTreeSet::new();
    let mut approved = Vec::new();
    for request in pending.iter().filter(|it| is_pending(it)) {
        let wanted = match read(request) {
            Ok(wanted) => wanted,
            Err(problem) => {
                say(&format!(
                    "{} is not accepted: {problem}",
                    request.name_any()
                ));
                continue;
            }
        };
        let sender = request.spec.username.clone().unwrap_or_default();
        let groups = request.spec.groups.clone().unwrap_or_default();
        let has_token = groups
            .iter()
            .any(|group| group == registration::BOOTSTRAP_GROUP);
        if !has_token && !requesters.contains(&sender) {
            say(&format!(
                "{} is not accepted: {sender} was given no token (--requesters {sender} allows it)",
                request.name_any()
            ));
            continue;
        }
        users.insert(wanted.user);
        approved.push(request);
    }
    // An agent that starts over asks again; two agents for one name are another matter.
    let senders: BTreeSet<_> = approved.iter().map(|it| it.spec.username.clone()).collect();
    anyhow::ensure!(
        senders.len() <= 1,
        "several ask for the name {name}: {}; delete the requests of all but one (kubectl get csr -l {}={name})",
        users.into_iter().collect::<Vec<_>>().join(", "),
        label::CLUSTER_NAME,
    );
    let now = Clock::system().now();
    for request in &approved {
        let message = "Accepted with bellwether cluster accept.";
        let done = approve(client, request, message, now).await;
        done.with_context(|| format!("cannot approve {}", request.name_any()))?;
    }
    if !cluster.spec.hub_accepts_client {
        let patch = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
        let accepted = clusters.patch(name, &PatchParams::default(), &patch).await;
        accepted.with_context(|| format!("cannot accept {name}"))?;
    }
    let requests = match approved.len() {
        1 => "1 certificate request".to_owned(),
        count => format!("{count} certificate requests"),
    };
    say(&format!("{name} is accepted; {requests} approved"));
    Ok(())
}
