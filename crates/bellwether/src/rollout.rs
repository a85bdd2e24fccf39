//! `bellwether rollout`: pause, resume, retry and abort a running rollout.

use bellwether_api::policy::Policy;
use bellwether_api::policy::names::annotation;
use bellwether_api::work::ManifestWorkReplicaSet;
use bellwether_apiserver::Clock;
use bellwether_ctl::explain::{
    NoMembers, POLICY, REPLICA_SET, Rollout, Source, kind_and_name, read_policy, read_rollout,
    unknown_kind,
};
use bellwether_work::replica_set::control::Request;
use bellwether_work::replica_set::report::Stage;
use clap::{Args, Subcommand};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use crate::cli::say;
use crate::connect::ConnectArgs;

/// Who writes, as `managedFields` has it.
const MANAGER: &str = "bellwether";

/// Pause, resume, retry or abort a rollout.
///
/// Requests are written as annotations of the replica set or policy: they survive restarts of the hub, and
/// `bellwether status` shows them. Policies can be paused and resumed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether rollout pause mwrs/shop\n  bellwether rollout resume mwrs/shop\n  bellwether rollout retry mwrs/shop -n apps\n  bellwether rollout abort mwrs/shop\n  bellwether rollout pause policy/banner"
)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start no further cluster until the rollout is resumed.
    #[command(after_help = "Example:\n  bellwether rollout pause mwrs/shop")]
    Pause(Target),
    /// Go on after a pause or an abort.
    #[command(after_help = "Example:\n  bellwether rollout resume mwrs/shop")]
    Resume(Target),
    /// Try clusters again that failed or timed out: their clocks restart.
    #[command(after_help = "Example:\n  bellwether rollout retry mwrs/shop")]
    Retry(Target),
    /// Start no further cluster with the present template.
    #[command(after_help = "Example:\n  bellwether rollout abort mwrs/shop")]
    Abort(Target),
}

/// Which rollout.
#[derive(Debug, Args)]
struct Target {
    /// The replica set or policy: mwrs/NAME or policy/NAME.
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// The namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(arguments: RolloutArgs) -> anyhow::Result<()> {
    let (request, target) = match arguments.action {
        Action::Pause(target) => (Request::Pause, target),
        Action::Resume(target) => (Request::Resume, target),
        Action::Retry(target) => (Request::Retry, target),
        Action::Abort(target) => (Request::Abort, target),
    };
    let (kind, name) = kind_and_name(&target.object)?;
    if !REPLICA_SET.contains(&&*kind) && !POLICY.contains(&&*kind) {
        return Err(unknown_kind(&kind, &[REPLICA_SET[0], POLICY[0]]).into());
    }
    let connection = target.connect.open(target.namespace.as_deref()).await?;
    let now = Clock::system().now();
    let source = Source {
        client: &connection.client,
        namespace: &connection.namespace,
        members: &NoMembers,
        now,
    };
    if POLICY.contains(&&*kind) {
        return ask_policy(request, source, name).await;
    }
    let snapshot = read_rollout(source, name, None).await?;
    let rollout = Rollout::new(&snapshot);
    let object = format!("mwrs/{name}");
    if let Some(why) = objection(request, &rollout) {
        anyhow::bail!("{object} {why}");
    }
    let annotations: Map<String, Value> = request
        .annotations(&snapshot.set, now)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let api: Api<ManifestWorkReplicaSet> =
        Api::namespaced(connection.client.clone(), &connection.namespace);
    let patch = json!({"metadata": {
        // What is written is about this template.
        "resourceVersion": snapshot.set.metadata.resource_version,
        "annotations": annotations,
    }});
    api.patch(name, &written_by(), &Patch::Merge(&patch))
        .await?;
    say(&format!("{object} {}", outcome(request, &object)));
    Ok(())
}

fn written_by() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Pauses or resumes the rollout of a policy. A cluster that fails is evaluated again without being asked to, and
/// the version before is what ends a rollout.
async fn ask_policy(request: Request, source: Source<'_>, name: &str) -> anyhow::Result<()> {
    let snapshot = read_policy(source, name).await?;
    let object = format!("policy/{name}");
    let value = match request {
        Request::Pause => json!(source.now.to_string()),
        Request::Resume if !snapshot.is_paused() => anyhow::bail!("{object} is not paused"),
        Request::Resume => Value::Null,
        Request::Retry => anyhow::bail!(
            "{object} cannot be retried: clusters that fail are evaluated whenever something changes there"
        ),
        Request::Abort => anyhow::bail!(
            "{object} cannot be aborted: pause it, or apply the version before, which is rolled out in its place"
        ),
    };
    let api: Api<Policy> = Api::namespaced(source.client.clone(), source.namespace);
    let patch = json!({"metadata": {
        "resourceVersion": snapshot.resource_version(),
        "annotations": {(annotation::ROLLOUT_PAUSED): value},
    }});
    api.patch(name, &written_by(), &Patch::Merge(&patch))
        .await?;
    say(&format!("{object} {}", outcome(request, &object)));
    Ok(())
}

/// Why a request makes no sense now.
fn objection(request: Request, rollout: &Rollout<'_>) -> Option<&'static str> {
    let stage = rollout.report.stage();
    let has_failed = rollout.report.counts().failing > 0;
    match request {
        Request::Resume if rollout.report.control.hold.is_none() => {
            Some("is neither paused nor aborted")
        }
        Request::Retry if !has_failed => Some("has no cluster that failed or timed out"),
        Request::Abort if stage == Stage::Complete => Some("is complete: nothing to abort"),
        _ => None,
    }
}

/// What a request brings about, and what to do next.
fn outcome(request: Request, object: &str) -> String {
    match request {
        Request::Pause => {
            format!("paused: no further cluster starts until `bellwether rollout resume {object}`")
        }
        Request::Resume => "resumed".to_owned(),
        Request::Retry => format!(
            "retried: failed clusters have another minute, then count again; see `bellwether status {object} -w`"
        ),
        Request::Abort => {
            "aborted: no further cluster starts until the template changes".to_owned()
        }
    }
}
