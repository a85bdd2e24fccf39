//! How far a policy is on a cluster, and why it is not further.

use bellwether_apiserver::Clock;
use bellwether_ctl::Connection;
use bellwether_ctl::explain::{NoMembers, Source, read_policy};

use super::placement::Question;
use super::replica_set::show;
use crate::print::{PrintArgs, line};

/// Prints how far a cluster is and why, or all of them.
pub(super) async fn explain(
    connection: &Connection,
    name: &str,
    cluster: Option<&str>,
    print: PrintArgs,
) -> anyhow::Result<()> {
    let source = Source {
        client: &connection.client,
        namespace: &connection.namespace,
        members: &NoMembers,
        now: Clock::system().now(),
    };
    let snapshot = read_policy(source, name).await?;
    let Some(cluster) = cluster else {
        return show(&snapshot.why_all(), &snapshot.document(), print);
    };
    if let Some((tree, document)) = snapshot.why(cluster) {
        return show(&tree, &document, print);
    }
    let mut reasons = Vec::new();
    for placement in snapshot.placements() {
        let question = Question::read(connection, &placement).await?;
        let verdict = question.verdict(cluster)?;
        reasons.push(format!(
            "placement {placement}: {cluster} is not chosen. {verdict}"
        ));
    }
    if reasons.is_empty() {
        reasons = snapshot.without_clusters();
    }
    if reasons.is_empty() {
        reasons.push(format!("no binding of policy/{name} selects {cluster}"));
    }
    let mut lines = vec![line([&format!("{cluster} and policy/{name}:")])];
    lines.extend(reasons.iter().map(|reason| line([reason])));
    let document = serde_json::json!({
        "cluster": cluster, "policy": name, "namespace": connection.namespace, "reasons": reasons,
    });
    print.print(&document, &lines)
}
