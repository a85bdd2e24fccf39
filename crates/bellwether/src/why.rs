//! `bellwether why`: why a cluster is chosen or has something, or what kept it out.

mod placement;
mod policy;
mod replica_set;

use bellwether_ctl::explain::{POLICY, REPLICA_SET, kind_and_name, unknown_kind};
use clap::Args;

use crate::connect::ConnectArgs;
use crate::print::PrintArgs;

/// What people call a placement.
const PLACEMENT: [&str; 2] = ["placement", "placements"];

/// Explain why a cluster is selected or not, or what a rollout waits for.
///
/// Of a placement: the first predicate that does not match, the taint that is not tolerated, or the
/// score that is too low. Of a ManifestWorkReplicaSet (mwrs): what the cluster waits for, or why it
/// fails, down to its pods where the kubeconfig has a context of the cluster's name. Of a policy: what
/// the cluster waits for before it enforces, and what it reports. Without a cluster: all of them.
#[derive(Debug, Args)]
#[command(
    override_usage = "bellwether why [OPTIONS] [CLUSTER] <KIND/NAME>",
    after_help = "Examples:\n  bellwether why cluster3 placement/canary\n  bellwether why placement/canary -n apps -o json\n  bellwether why cluster3 mwrs/shop\n  bellwether why mwrs/shop\n  bellwether why cluster3 policy/limits -n policies"
)]
pub(crate) struct WhyArgs {
    /// The cluster, if it is about one; then placement/NAME, mwrs/NAME or policy/NAME.
    #[arg(value_name = "[CLUSTER] KIND/NAME", num_args = 1..=2, required = true)]
    subject: Vec<String>,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: WhyArgs) -> anyhow::Result<()> {
    let (cluster, object) = match &*arguments.subject {
        [cluster, object] => (Some(cluster.as_str()), object),
        [object] => (None, object),
        _ => anyhow::bail!("name one cluster at most, and one object: why [CLUSTER] KIND/NAME"),
    };
    let (kind, name) = kind_and_name(object)?;
    let connection = arguments
        .connect
        .open(arguments.namespace.as_deref())
        .await?;
    if PLACEMENT.contains(&&*kind) {
        return placement::explain(&connection, cluster, name, arguments.print).await;
    }
    if REPLICA_SET.contains(&&*kind) {
        let subject = replica_set::Subject {
            connection: &connection,
            members: &arguments.connect,
            name,
        };
        return subject.explain(cluster, arguments.print).await;
    }
    if POLICY.contains(&&*kind) {
        return policy::explain(&connection, name, cluster, arguments.print).await;
    }
    Err(unknown_kind(&kind, &[PLACEMENT[0], REPLICA_SET[0], POLICY[0]]).into())
}
