//! How far the rollout of a replica set of works is, and why it is not further.

use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_ctl::explain::tree::Tree;
use bellwether_ctl::explain::{Members, Rollout, Source, read_rollout};
use bellwether_ctl::near::did_you_mean_or;
use serde_json::{Value, json};

use super::placement::Question;
use crate::cli::say;
use crate::print::{PrintArgs, line};
use crate::screen;

/// The replica set that is asked about.
pub(super) struct Subject<'a> {
    pub(super) connection: &'a Connection,
    pub(super) members: &'a dyn Members,
    pub(super) name: &'a str,
}

impl Subject<'_> {
    /// Prints how far a cluster is and why, or all of them.
    pub(super) async fn explain(
        &self,
        cluster: Option<&str>,
        print: PrintArgs,
    ) -> anyhow::Result<()> {
        let source = Source {
            client: &self.connection.client,
            namespace: &self.connection.namespace,
            members: self.members,
            now: Clock::system().now(),
        };
        let snapshot = read_rollout(source, self.name, cluster).await?;
        let rollout = Rollout::new(&snapshot);
        let Some(cluster) = cluster else {
            return show(&rollout.why_all(), &rollout.why_all_document(), print);
        };
        if !snapshot.clusters.contains_key(cluster) {
            let known = snapshot.clusters.keys().map(String::as_str);
            let guess = did_you_mean_or(cluster, known, "; see bellwether cluster list");
            anyhow::bail!("there is no cluster {cluster}{guess}");
        }
        if let (Some(tree), Some(document)) = (rollout.why(cluster), rollout.why_document(cluster))
        {
            return show(&tree, &document, print);
        }
        self.explain_absence(&rollout, cluster, print).await
    }

    /// Says why no placement has chosen a cluster.
    async fn explain_absence(
        &self,
        rollout: &Rollout<'_>,
        cluster: &str,
        print: PrintArgs,
    ) -> anyhow::Result<()> {
        let name = self.name;
        let mut reasons = Vec::new();
        for placement in &rollout.report.placements {
            let question = Question::read(self.connection, &placement.name).await?;
            let verdict = question.verdict(cluster)?;
            let reason = format!("{cluster} is not chosen. {verdict}");
            reasons.push((placement.name.clone(), reason));
        }
        anyhow::ensure!(
            !reasons.is_empty(),
            "{name} has nothing to roll out; see bellwether status mwrs/{name}"
        );
        let document = json!({
            "cluster": cluster, "manifestWorkReplicaSet": name,
            "namespace": self.connection.namespace,
            "placements": reasons
                .iter()
                .map(|(placement, reason)| json!({"placement": placement, "reason": reason}))
                .collect::<Vec<_>>(),
        });
        let mut lines = vec![line([&format!("{cluster} and mwrs/{name}:")])];
        lines.extend(
            reasons
                .iter()
                .map(|(placement, reason)| line([&format!("placement {placement}: {reason}")])),
        );
        print.print(&document, &lines)
    }
}

pub(super) fn show(tree: &Tree, document: &Value, print: PrintArgs) -> anyhow::Result<()> {
    if print.is_table() {
        say(tree.render(screen::has_colours()).trim_end());
        return Ok(());
    }
    print.print(document, &[])
}
