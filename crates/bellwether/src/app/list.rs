//! `bellwether app list`: a line for each component of each application.

use bellwether_api::oam::Application;
use bellwether_apiserver::Clock;
use bellwether_kinds::human;
use clap::Args;
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::print::{PrintArgs, line};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Applications of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Label selector, such as team=shop.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(super) async fn run(arguments: &ListArgs) -> anyhow::Result<()> {
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    let api: Api<Application> = if arguments.all_namespaces {
        Api::all(connection.client.clone())
    } else {
        Api::namespaced(connection.client.clone(), &connection.namespace)
    };
    let mut parameters = ListParams::default();
    parameters.label_selector.clone_from(&arguments.selector);
    let applications = api.list(&parameters).await?.items;
    if arguments.print.is_table() && applications.is_empty() {
        say("There are no applications here; `bellwether app list -A` looks in all namespaces.");
        return Ok(());
    }
    let now = Clock::system().now();
    let mut lines = vec![heading(arguments.all_namespaces)];
    for application in &applications {
        lines.extend(rows(application, arguments.all_namespaces, now));
    }
    let documents: Vec<Value> = applications.iter().map(document).collect();
    arguments
        .print
        .print(&json!({"applications": documents}), &lines)
}

fn heading(all_namespaces: bool) -> Vec<String> {
    let columns = [
        "APP",
        "COMPONENT",
        "TYPE",
        "TRAITS",
        "PHASE",
        "HEALTHY",
        "STATUS",
        "AGE",
    ];
    let mut heading = line(columns);
    if all_namespaces {
        heading.insert(0, "NAMESPACE".to_owned());
    }
    heading
}

fn rows(application: &Application, all_namespaces: bool, now: Timestamp) -> Vec<Vec<String>> {
    let status = application.status.clone().unwrap_or_default();
    let name = application.metadata.name.clone().unwrap_or_default();
    let created = application.metadata.creation_timestamp.as_ref();
    let age = created.map_or_else(String::new, |time| {
        human(now.duration_since(time.0).as_secs().max(0))
    });
    let components = application.spec.components.iter().enumerate();
    components
        .map(|(index, component)| {
            let services = status
                .services
                .iter()
                .filter(|service| service.name == component.name);
            let services: Vec<_> = services.collect();
            let healthy = match services.iter().filter(|service| service.healthy).count() {
                _ if services.is_empty() => "-".to_owned(),
                count if count == services.len() => "healthy".to_owned(),
                count if services.len() > 1 => format!("{count}/{}", services.len()),
                _ => "unhealthy".to_owned(),
            };
            let worst = services.iter().find(|service| !service.healthy);
            let message = worst.or(services.first()).map(|service| &service.message);
            let traits: Vec<&str> = component
                .traits
                .iter()
                .map(|applied| applied.trait_type.as_str())
                .collect();
            let branch = if index == 0 {
                name.clone()
            } else {
                format!("└─ {name}")
            };
            let mut cells = vec![
                branch,
                component.name.clone(),
                component.component_type.clone(),
                traits.join(","),
                status.phase.clone(),
                healthy,
                message.map_or_else(String::new, |text| text.trim().replace('\n', " ")),
                age.clone(),
            ];
            if all_namespaces {
                let namespace = application.metadata.namespace.clone();
                cells.insert(0, namespace.unwrap_or_default());
            }
            cells
        })
        .collect()
}

fn document(application: &Application) -> Value {
    let status = application.status.clone().unwrap_or_default();
    json!({
        "name": application.metadata.name, "namespace": application.metadata.namespace,
        "phase": status.phase, "revision": status.latest_revision.map(|revision| revision.name),
        "components": status.services,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_component_has_a_line_with_the_worst_of_its_clusters() {
        let application: Application = serde_json::from_value(json!({
            "metadata": {"name": "shop", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"components": [
                {"name": "web", "type": "webservice", "traits": [{"type": "scaler"}]},
                {"name": "db", "type": "statefulset"}]},
            "status": {"status": "runningWorkflow", "services": [
                {"name": "web", "cluster": "east", "healthy": true, "message": "Ready:1/1"},
                {"name": "web", "cluster": "west", "healthy": false, "message": "Ready:0/1"}]},
        }))
        .unwrap();
        let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
        let rows: Vec<String> = rows(&application, false, now)
            .iter()
            .map(|cells| cells.join("|"))
            .collect();
        assert_eq!(
            rows,
            [
                "shop|web|webservice|scaler|runningWorkflow|1/2|Ready:0/1|5m",
                "└─ shop|db|statefulset||runningWorkflow|-||5m",
            ]
        );
    }
}
