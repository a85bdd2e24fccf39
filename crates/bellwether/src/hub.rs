//! `bellwether hub`: the controllers of a hub, on any cluster.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_apiserver::Clock;
use bellwether_controllers::registration::clusters::{self, LossThreshold};
use bellwether_controllers::{Hub, cluster_set, placement, registration, replica_set, work_config};
use clap::Args;
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::apiserver::stop_signal;
use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::metrics;

/// Run the controllers of a hub, in the foreground.
///
/// The hub may be any cluster, embedded or real. Definitions that it lacks are created first.
/// Several of the controllers may be switched on or off by name: `--controllers placement` runs only
/// that one, `--controllers -placement` all others.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether hub --kubeconfig hub.yaml\n  bellwether hub --kubeconfig hub.yaml --controllers -placement\n  bellwether hub --kubeconfig hub.yaml --auto-approve-users system:serviceaccount:fleet:joiner"
)]
pub(crate) struct HubArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Controllers to run, or with a minus not to run: placement, replica-set, work-config,
    /// cluster-set, registration, certificate-approval.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    controllers: Vec<String>,
    /// Users whose clusters are let in without a person.
    #[arg(long, value_name = "USER,…", value_delimiter = ',')]
    auto_approve_users: Vec<String>,
    /// Do not create definitions that the hub lacks.
    #[arg(long)]
    skip_definitions: bool,
    #[command(flatten)]
    heartbeats: HeartbeatArgs,
    /// Serve metrics at this address, under /metrics, such as 127.0.0.1:9090.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

/// What the hub makes of clusters that stop renewing their leases.
#[derive(Debug, Clone, Args)]
pub(crate) struct HeartbeatArgs {
    /// If more than this percentage of the clusters stops renewing at once, and at least three of them,
    /// suspect the hub and taint none of them as unreachable; 100 switches this off.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = LossThreshold::default().percent,
        value_parser = clap::value_parser!(u8).range(0..=100)
    )]
    heartbeat_loss_threshold: u8,
}

impl HeartbeatArgs {
    /// The options of the controller of clusters.
    pub(crate) fn options(&self) -> clusters::Options {
        clusters::Options {
            loss_threshold: LossThreshold {
                percent: self.heartbeat_loss_threshold,
                ..LossThreshold::default()
            },
            ..clusters::Options::default()
        }
    }
}

/// The controllers by name.
const CONTROLLERS: [&str; 6] = [
    "placement",
    "replica-set",
    "work-config",
    "cluster-set",
    "registration",
    "certificate-approval",
];

pub(crate) async fn run(arguments: HubArgs) -> anyhow::Result<()> {
    let chosen = chosen(&arguments.controllers)?;
    let connection = arguments.connect.open(None).await?;
    let serve = async {
        if !arguments.skip_definitions {
            let definitions = bellwether_api::definitions();
            ensure_definitions(&connection.client, definitions).await?;
        }
        let hub = Hub::start(connection.client.clone(), Clock::system());
        let promised = arguments.auto_approve_users.iter().cloned().collect();
        let options = arguments.heartbeats.options();
        if let Some(address) = arguments.metrics {
            let numbers = Arc::clone(&options.metrics);
            let bound = metrics::serve(address, Arc::new(move || numbers.render())).await?;
            say(&format!("metrics are at http://{bound}/metrics"));
        }
        let mut controllers = start(&hub, &chosen, &promised, &options);
        hub.ready().await;
        let names: Vec<&str> = chosen.iter().copied().collect();
        say(&format!(
            "the hub is ready; controllers: {}",
            names.join(", ")
        ));
        // They never end by themselves.
        while controllers.join_next().await.is_some() {}
        anyhow::Ok(())
    };
    tokio::select! {
        ended = serve => ended,
        stopped = stop_signal() => stopped,
    }
}

/// The controllers that a list of names chooses.
fn chosen(names: &[String]) -> anyhow::Result<BTreeSet<&'static str>> {
    let find = |name: &str| {
        CONTROLLERS
            .into_iter()
            .find(|known| *known == name)
            .with_context(|| {
                format!(
                    "--controllers: {name} is not known; there are {}",
                    CONTROLLERS.join(", ")
                )
            })
    };
    let is_off = |name: &&String| name.starts_with('-');
    let is_everything = names.iter().all(|name| is_off(&name) || name == "*");
    let mut chosen: BTreeSet<&'static str> = BTreeSet::new();
    if is_everything {
        chosen.extend(CONTROLLERS);
    }
    for name in names.iter().filter(|name| *name != "*") {
        match name.strip_prefix('-') {
            Some(off) => chosen.remove(find(off)?),
            None => chosen.insert(find(name)?),
        };
    }
    Ok(chosen)
}

/// All controllers.
pub(crate) fn all() -> BTreeSet<&'static str> {
    CONTROLLERS.into_iter().collect()
}

/// Starts controllers; they end when they are dropped. `promised` are users whose clusters are let
/// in without a person.
pub(crate) fn start(
    hub: &Hub,
    chosen: &BTreeSet<&'static str>,
    promised: &BTreeSet<String>,
    options: &clusters::Options,
) -> JoinSet<()> {
    let mut controllers = JoinSet::new();
    for name in chosen {
        let hub = hub.clone();
        match *name {
            "placement" => controllers.spawn(placement::run(hub)),
            "replica-set" => controllers.spawn(replica_set::run(hub)),
            "work-config" => controllers.spawn(work_config::run(hub)),
            "cluster-set" => controllers.spawn(cluster_set::run(hub)),
            "registration" => controllers.spawn(clusters::run(hub, options.clone())),
            "certificate-approval" => {
                controllers.spawn(registration::requests::run(hub, promised.clone()))
            }
            other => unreachable!("{other} is not among the controllers"),
        };
    }
    controllers
}

/// Creates the definitions that a cluster lacks, and waits until they are served.
pub(crate) async fn ensure_definitions(
    client: &Client,
    definitions: Vec<Value>,
) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: kube::Api<DynamicObject> =
        kube::Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    for definition in definitions {
        let name = definition["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if api.get_opt(&name).await?.is_none() {
            let definition: DynamicObject = serde_json::from_value(definition)?;
            match api.create(&PostParams::default(), &definition).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => return Err(error).context(format!("cannot create {name}")),
            }
        }
        let is_served = |definition: Option<&DynamicObject>| {
            let conditions = definition.and_then(|it| it.data["status"]["conditions"].as_array());
            conditions.into_iter().flatten().any(|condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            })
        };
        let served = kube::runtime::wait::await_condition(api.clone(), &name, is_served);
        tokio::time::timeout(Duration::from_secs(30), served)
            .await
            .with_context(|| format!("{name} is not served after 30 seconds"))??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: Result<&[&str], &str>) {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        match (chosen(&names), expected) {
            (Ok(found), Ok(wanted)) => {
                assert_eq!(found.into_iter().collect::<Vec<_>>(), wanted, "{names:?}");
            }
            (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (found, wanted) => panic!("{names:?}: {found:?}, not {wanted:?}"),
        }
    }

    #[test]
    fn controllers_are_chosen_by_name() {
        let all = [
            "certificate-approval",
            "cluster-set",
            "placement",
            "registration",
            "replica-set",
            "work-config",
        ];
        let others = [all[0], all[1], all[3], all[4], all[5]];
        check(&[], Ok(&all));
        check(&["placement"], Ok(&["placement"]));
        check(&["-placement"], Ok(&others));
        check(&["*", "-placement"], Ok(&others));
        check(&["replacement"], Err("replacement is not known"));
    }
}
