//! `bellwether app logs`: what the pods of an application print, on all clusters that can be reached.

use anyhow::Context as _;
use bellwether_api::oam::Application;
use bellwether_api::oam::names::{LOCAL_CLUSTER, label};
use bellwether_ctl::explain::Members as _;
use bellwether_ctl::near::did_you_mean;
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};

use super::Target;
use crate::cli::say;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    target: Target,
    /// Only this component.
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// Only this cluster; local is the hub.
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only this container.
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// How many lines from the end of each log.
    #[arg(long, value_name = "LINES")]
    tail: Option<i64>,
}

pub(super) async fn run(arguments: &LogsArgs) -> anyhow::Result<()> {
    let connection = arguments.target.open().await?;
    let name = &arguments.target.name;
    let api: Api<Application> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let application = api.get_opt(name).await?.with_context(|| {
        format!(
            "there is no application {name} in namespace {}",
            connection.namespace
        )
    })?;
    let places = places(&application, arguments)?;
    let mut printed = 0;
    for place in &places {
        let client = if place.cluster == LOCAL_CLUSTER {
            Some(connection.client.clone())
        } else {
            arguments.target.connect.client(&place.cluster).await
        };
        let Some(client) = client else {
            say(&format!(
                "{}: the kubeconfig has no context of this name, so its logs cannot be read",
                place.cluster
            ));
            continue;
        };
        printed += print(&client, name, place, arguments).await?;
    }
    anyhow::ensure!(
        printed > 0,
        "no pods of {name} were found; see bellwether app status {name}"
    );
    Ok(())
}

/// A component on a cluster.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    component: String,
    cluster: String,
    namespace: String,
}

fn places(application: &Application, arguments: &LogsArgs) -> anyhow::Result<Vec<Place>> {
    let components = &application.spec.components;
    if let Some(wanted) = &arguments.component {
        let names = || components.iter().map(|it| it.name.as_str());
        anyhow::ensure!(
            names().any(|name| name == wanted),
            "there is no component {wanted} in the application{}",
            did_you_mean(wanted, names())
        );
    }
    let status = application.status.clone().unwrap_or_default();
    let places = status.services.into_iter().map(|service| Place {
        component: service.name,
        cluster: match service.cluster.as_str() {
            "" => LOCAL_CLUSTER.to_owned(),
            cluster => cluster.to_owned(),
        },
        namespace: service.namespace,
    });
    let is_wanted = |place: &Place| {
        let component = arguments.component.as_ref();
        let cluster = arguments.cluster.as_ref();
        component.is_none_or(|name| *name == place.component)
            && cluster.is_none_or(|name| *name == place.cluster)
    };
    Ok(places.filter(is_wanted).collect())
}

/// Prints the logs of a component on a cluster; says of how many pods.
async fn print(
    client: &Client,
    application: &str,
    place: &Place,
    arguments: &LogsArgs,
) -> anyhow::Result<usize> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &place.namespace);
    let own = format!(
        "{}={application},{}={}",
        label::APP_NAME,
        label::COMPONENT,
        place.component
    );
    let mut found = pods.list(&ListParams::default().labels(&own)).await?.items;
    if found.is_empty() {
        let own = format!("{}={}", label::COMPONENT, place.component);
        found = pods.list(&ListParams::default().labels(&own)).await?.items;
    }
    let parameters = LogParams {
        container: arguments.container.clone(),
        tail_lines: arguments.tail,
        ..LogParams::default()
    };
    for pod in &found {
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        match pods.logs(pod, &parameters).await {
            Ok(text) => {
                for line in text.lines() {
                    say(&format!("{} {pod} {line}", place.cluster));
                }
            }
            Err(error) => say(&format!("{} {pod}: no log: {error}", place.cluster)),
        }
    }
    Ok(found.len())
}
