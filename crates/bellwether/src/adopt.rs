//! `bellwether adopt`: a hub of Open Cluster Management or KubeVela becomes ours, and theirs again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::oam::ResourceTracker;
use bellwether_controllers::Hub;
use bellwether_controllers::adopt::{Change, Found, Origin, Plan, Step, obstacle_of, plan, undo};
use bellwether_controllers::registry::HubOptions;
use bellwether_controllers::workflow::{Unsent, WorkflowOptions};
use bellwether_runtime::{Clock, Effect, FIELD_MANAGER, Rehearsal};
use bellwether_webhook::configuration::NAME as OUR_WEBHOOKS;
use clap::{Args, ValueEnum};
use http::Request;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::hub::start;
use crate::objects::duration;
use crate::stop::until_without_pods;

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
    /// How long our controllers may take to show what they would write, and controllers that are stopped to end.
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
        let undo = undo(origin, &found, OUR_WEBHOOKS);
        return carry_out(&client, &undo, &arguments).await;
    }
    let plan = plan(origin, &found);
    let rehearsed = rehearse(&client, origin, arguments.timeout).await?;
    show(&client, &rehearsed).await?;
    let mut obstacles = plan.obstacles.clone();
    let effects = rehearsed.effects.iter();
    obstacles.extend(effects.filter_map(|(path, effect)| obstacle_of(&found, path, effect)));
    let unsent = rehearsed.unsent.iter();
    obstacles.extend(unsent.map(|what| format!("a workflow that is not finished would {what}")));
    for obstacle in &obstacles {
        say(&format!("in the way: {obstacle}"));
    }
    anyhow::ensure!(
        obstacles.is_empty() || arguments.force || arguments.dry_run,
        "{} things are in the way; --force takes over nevertheless",
        obstacles.len()
    );
    carry_out(&client, &plan, &arguments).await?;
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

/// What our controllers would do.
struct Rehearsed {
    /// What they would write, by path.
    effects: BTreeMap<String, Effect>,
    /// What steps of workflows would send outside of the hub.
    unsent: BTreeSet<String>,
}

/// Runs our controllers without keeping what they write, and without sending anything else.
async fn rehearse(client: &Client, origin: Origin, timeout: Duration) -> anyhow::Result<Rehearsed> {
    let rehearsal = Rehearsal::default();
    let hub = Hub::new(rehearsal.guard(client.clone()), Clock::system());
    let controllers = origin.controllers();
    for entry in &controllers {
        entry.start_caches(&hub);
    }
    tokio::time::timeout(timeout, hub.ready())
        .await
        .context("the objects of the hub cannot be read: may this user list them?")?;
    let unsent = Unsent::default();
    let options = HubOptions {
        workflows: WorkflowOptions {
            unsent: Some(unsent.clone()),
            ..WorkflowOptions::default()
        },
        ..HubOptions::default()
    };
    let running = start(&hub, &controllers, &options);
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
    Ok(Rehearsed {
        effects: rehearsal.effects(),
        unsent: unsent.recorded(),
    })
}

async fn show(client: &Client, rehearsed: &Rehearsed) -> anyhow::Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let known = list(client, path, "", "").await?;
    for definition in bellwether_api::definitions() {
        let name = &definition["metadata"]["name"];
        if !known.iter().any(|it| it["metadata"]["name"] == *name) {
            let name = name.as_str().unwrap_or_default();
            say(&format!("would create definition {name}"));
        }
    }
    let Rehearsed { effects, unsent } = rehearsed;
    if effects.is_empty() {
        say("our controllers would change nothing");
    }
    for what in unsent {
        say(&format!("would {what}"));
    }
    for (path, effect) in effects {
        say(&match effect {
            Effect::Create => format!("would create {path}"),
            Effect::Delete => format!("would delete {path}"),
            Effect::Change(fields) => format!("would change {path}: {}", fields.join(", ")),
            Effect::Refused(message) => format!("would fail to write {path}: {message}"),
        });
    }
    Ok(())
}

async fn carry_out(client: &Client, plan: &Plan, arguments: &AdoptArgs) -> anyhow::Result<()> {
    if plan.steps.is_empty() {
        say("there are no controllers to stop or to start");
    }
    for step in &plan.steps {
        if arguments.dry_run {
            say(&format!("would {}", step.what));
            continue;
        }
        let done = carry_out_step(client, step, arguments.timeout).await;
        done.with_context(|| format!("cannot {}", step.what))?;
        say(&step.what);
    }
    Ok(())
}

async fn carry_out_step(client: &Client, step: &Step, timeout: Duration) -> anyhow::Result<()> {
    let path = &step.path;
    match &step.change {
        Change::Patch(fields) | Change::Stop(fields) => {
            let request = Request::patch(format!("{path}?fieldManager={FIELD_MANAGER}"))
                .header("content-type", "application/merge-patch+json")
                .body(serde_json::to_vec(fields)?)?;
            client.request::<Value>(request).await?;
        }
        Change::Delete => {
            let request = Request::delete(path).body(Vec::new())?;
            match client.request::<Value>(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => drop(other?),
            }
        }
    }
    if matches!(step.change, Change::Stop(_)) {
        until_without_pods(client, path, timeout).await?;
    }
    Ok(())
}
