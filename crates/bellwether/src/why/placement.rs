//! Why a placement selects clusters, or not.

use anyhow::Context as _;
use bellwether_api::cluster::Placement;
use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_ctl::near::did_you_mean_or;
use bellwether_placement::schedule::{Scene, Verdict};
use kube::Api;
use serde_json::{Value, json};

use crate::print::{PrintArgs, line};
use crate::scene::FleetSnapshot;

/// Prints what a placement makes of a cluster, or of all.
pub(super) async fn explain(
    connection: &Connection,
    cluster: Option<&str>,
    name: &str,
    print: PrintArgs,
) -> anyhow::Result<()> {
    let question = Question::read(connection, name).await?;
    let namespace = &connection.namespace;
    if let Some(cluster) = cluster {
        let verdict = question.verdict(cluster)?;
        let words = verdict.to_string();
        let document = json!({
            "cluster": cluster, "placement": name, "namespace": namespace,
            "chosen": is_chosen(&verdict), "reason": words,
        });
        let heading = format!("{cluster} and placement/{name}:");
        return print.print(&document, &[line([&heading]), line([&words])]);
    }
    let mut lines = vec![line(["CLUSTER", "SELECTED", "WHY"])];
    let mut documents: Vec<Value> = Vec::new();
    for cluster in question.clusters() {
        let verdict = question.verdict(cluster)?;
        let (is_chosen, words) = (is_chosen(&verdict), verdict.to_string());
        let mark = if is_chosen { "yes" } else { "no" };
        lines.push(line([cluster, mark, &words]));
        documents.push(json!({"cluster": cluster, "chosen": is_chosen, "reason": words}));
    }
    let document = json!({"placement": name, "namespace": namespace, "clusters": documents});
    print.print(&document, &lines)
}

fn is_chosen(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Chosen { .. })
}

/// Everything that a placement's decision depends on.
pub(super) struct Question {
    known: FleetSnapshot,
    scene: Scene,
}

impl Question {
    /// Reads a placement and what it depends on.
    pub(super) async fn read(connection: &Connection, name: &str) -> anyhow::Result<Self> {
        let namespace = &connection.namespace;
        let placements: Api<Placement> = Api::namespaced(connection.client.clone(), namespace);
        let placement = placements
            .get(name)
            .await
            .with_context(|| format!("cannot read the placement {namespace}/{name}"))?;
        let known = FleetSnapshot::of_hub(&connection.client).await?;
        let scene = known.scene(&serde_json::to_value(&placement)?, Clock::system().now());
        Ok(Self { known, scene })
    }

    /// The names of all clusters.
    fn clusters(&self) -> impl Iterator<Item = &str> {
        let clusters = self.known.clusters.iter();
        clusters.filter_map(|cluster| cluster["metadata"]["name"].as_str())
    }

    /// What the placement makes of a cluster.
    pub(super) fn verdict(&self, cluster: &str) -> anyhow::Result<Verdict> {
        let verdict = self.scene.why(cluster);
        if verdict == Verdict::Unknown {
            let guess = did_you_mean_or(cluster, self.clusters(), "; see bellwether cluster list");
            anyhow::bail!("there is no cluster {cluster}{guess}");
        }
        Ok(verdict)
    }
}
