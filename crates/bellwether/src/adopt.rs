//! `bellwether adopt`: a hub of Open Cluster Management or KubeVela becomes ours, and theirs again.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::oam::ResourceTracker;
use bellwether_controllers::Hub;
use bellwether_controllers::adopt::{Found, Origin, Plan, plan, undo};
use bellwether_controllers::registry::HubOptions;
use bellwether_runtime::{Clock, Effect, FIELD_MANAGER, Rehearsal};
use clap::{Args, ValueEnum};
use http::Request;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::hub::start;
use crate::objects::duration;

/// Take over a hub on which controllers of Open Cluster Management or KubeVela run, or give it back.
///
/// Runs our controllers without saving anything, and shows what they would write. Then stops the controllers of the other project
/// and records their settings, so that --undo can start them again. Existing records are kept, and no object on a member is changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether adopt --from ocm --dry-run\n  bellwether adopt --from kubevela && bellwether install hub --apply\n  bellwether adopt --from ocm --undo"
)]
pub(crate) struct AdoptArgs {
    /// The project whose controllers run there.
    #[arg(long, value_enum, value_name = "PROJECT")]
    from: From,
    /// Only show what would happen.
    #[arg(long)]
    dry_run: bool,
    /// Give the hub back: stop our hub, and start the controllers that were stopped.
    #[arg(long)]
    undo: bool,
    /// Take over even if the checks found a reason not to.
    #[arg(long, conflicts_with = "undo")]
    force: bool,
    /// How long our controllers may take to show what they would write.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum From {
    /// Open Cluster Management.
    Ocm,
    /// KubeVela.
    Kubevela,
}

/// Controllers that have written nothing for so long are done.
const SETTLED: Duration = Duration::from_secs(3);

/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn run(arguments: AdoptArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    let origin = match arguments.from {
        From::Ocm => Origin::Ocm,
        From::Kubevela => Origin::Kubevela,
    };
    let found = find(&client, origin).await?;
    if arguments.undo {
        return carry_out(&client, &undo(origin, &found), arguments.dry_run).await;
    }
    let plan = plan(origin, &found);
    let effects = rehearse(&client, origin, arguments.timeout).await?;
    show(&effects);
    let mut obstacles = plan.obstacles.clone();
    obstacles.extend(
        effects
            .iter()
            .filter_map(|(path, effect)| on_members(path, effect)),
    );
    for obstacle in &obstacles {
        say(&format!("in the way: {obstacle}"));
    }
    anyhow::ensure!(
        obstacles.is_empty() || arguments.force || arguments.dry_run,
        "{} things are in the way; --force takes over nevertheless",
        obstacles.len()
    );
    carry_out(&client, &plan, arguments.dry_run).await?;
    if !arguments.dry_run {
        say("this hub is ours; run its controllers with `bellwether install hub --apply`");
    }
    Ok(())
}

/// Reads what is there.
async fn find(client: &Client, origin: Origin) -> anyhow::Result<Found> {
    let hooks = "/apis/admissionregistration.k8s.io/v1";
    let mut webhooks = Vec::new();
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        let path = format!("{hooks}/{}s", kind.to_lowercase());
        webhooks.extend(list(client, &path, "admissionregistration.k8s.io/v1", kind).await?);
    }
    let trackers = match origin {
        Origin::Ocm => Vec::new(),
        Origin::Kubevela => {
            let api: Api<ResourceTracker> = Api::all(client.clone());
            let all = api.list(&ListParams::default()).await;
            all.context("cannot read the ResourceTrackers")?.items
        }
    };
    Ok(Found {
        deployments: list(client, "/apis/apps/v1/deployments", "apps/v1", "Deployment").await?,
        webhooks,
        trackers,
    })
}

/// All objects of a kind, each with its kind.
async fn list(
    client: &Client,
    path: &str,
    api_version: &str,
    kind: &str,
) -> anyhow::Result<Vec<Value>> {
    let request = Request::get(path).body(Vec::new())?;
    let answer = client.request::<Value>(request).await;
    let mut answer = answer.with_context(|| format!("cannot list {path}"))?;
    let Value::Array(mut items) = answer["items"].take() else {
        return Ok(Vec::new());
    };
    for item in &mut items {
        item["apiVersion"] = api_version.into();
        item["kind"] = kind.into();
    }
    Ok(items)
}

/// Runs our controllers without keeping what they write.
async fn rehearse(
    client: &Client,
    origin: Origin,
    timeout: Duration,
) -> anyhow::Result<BTreeMap<String, Effect>> {
    let rehearsal = Rehearsal::default();
    let hub = Hub::new(rehearsal.guard(client.clone()), Clock::system());
    let controllers = origin.controllers();
    for entry in &controllers {
        entry.start_caches(&hub);
    }
    tokio::time::timeout(timeout, hub.ready()).await.context(
        "the kinds of a fleet cannot be read: are their definitions there (`bellwether crds`)?",
    )?;
    let running = start(&hub, &controllers, &HubOptions::default());
    let settled = async {
        let mut seen = rehearsal.effects();
        let mut still = Duration::ZERO;
        while still < SETTLED {
            tokio::time::sleep(PAUSE).await;
            let now = rehearsal.effects();
            still = if now == seen {
                still + PAUSE
            } else {
                Duration::ZERO
            };
            seen = now;
        }
    };
    if tokio::time::timeout(timeout, settled).await.is_err() {
        say("our controllers are not done yet; this is what they would have written so far:");
    }
    drop(running);
    Ok(rehearsal.effects())
}

fn show(effects: &BTreeMap<String, Effect>) {
    if effects.is_empty() {
        say("our controllers would change nothing");
    }
    for (path, effect) in effects {
        say(&match effect {
            Effect::Create => format!("would create {path}"),
            Effect::Delete => format!("would delete {path}"),
            Effect::Change(fields) => format!("would change {path}: {}", fields.join(", ")),
            Effect::Refused(message) => format!("would fail to write {path}: {message}"),
        });
    }
}

/// What a write would do to members: works are what their agents apply.
fn on_members(path: &str, effect: &Effect) -> Option<String> {
    let is_work = ["/manifestworks/", "/works/"]
        .iter()
        .any(|kind| path.contains(kind));
    let is_spec = match effect {
        Effect::Create | Effect::Delete => true,
        Effect::Change(fields) => fields.iter().any(|field| field.starts_with(".spec")),
        Effect::Refused(_) => false,
    };
    (is_work && is_spec).then(|| format!("{path} would change, and with it objects on a member"))
}

async fn carry_out(client: &Client, plan: &Plan, dry_run: bool) -> anyhow::Result<()> {
    if plan.steps.is_empty() {
        say("there are no controllers to stop or to start");
    }
    for step in &plan.steps {
        if dry_run {
            say(&format!("would {}", step.what));
            continue;
        }
        let path = format!("{}?fieldManager={FIELD_MANAGER}", step.path);
        let request = Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&step.patch)?)?;
        let patched = client.request::<Value>(request).await;
        patched.with_context(|| format!("cannot {}", step.what))?;
        say(&step.what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_agents_apply_concerns_members() {
        let work = "/apis/work.open-cluster-management.io/v1/namespaces/edge1/manifestworks/shop";
        let status = Effect::Change(vec![".status.conditions".to_owned()]);
        let spec = Effect::Change(vec![
            ".metadata.labels".to_owned(),
            ".spec.workload".to_owned(),
        ]);
        assert!(on_members(work, &status).is_none());
        assert!(on_members(work, &spec).is_some());
        assert!(on_members(work, &Effect::Delete).is_some());
        assert!(on_members("/apis/apps/v1/namespaces/a/deployments/b", &spec).is_none());
    }
}
