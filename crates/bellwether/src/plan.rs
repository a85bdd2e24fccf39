//! `bellwether plan`: a rollout run forward in simulated time, before anything is touched.

mod application;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bellwether_api::policy::Policy;
use bellwether_apiserver::Clock;
use bellwether_ctl::near::did_you_mean;
use bellwether_json::duration::GoDuration;
use bellwether_placement::rollout::rehearsal::{Assumptions, Rehearsal, rehearse};
use bellwether_placement::rollout::{
    Group, Input, Reason, Status, Strategy, UnsetConcurrency, Wait,
};
use bellwether_placement::schedule::DecisionGroup;
use bellwether_policy::rollout::Mode;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cli::say;
use crate::connect::ConnectArgs;
use crate::print::{PrintArgs, line};
use crate::scene::FleetSnapshot;

/// How many names a line of waves shows.
const MOST_NAMES: usize = 8;

/// Show what an application would change, or rehearse a rollout in simulated time.
///
/// Of an Application: which objects would be created, changed and deleted on each cluster, with the
/// fields. Of a rollout: who starts when, and where it would stop.
///
/// The file has a ManifestWorkReplicaSet or a Policy, whose placements say which clusters and in which
/// groups, or a Placement, for which --strategy says how. Bindings, placements and clusters that the
/// file does not have are read from the hub; with --offline it has to have them all. Nothing is
/// changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether plan -f app.yaml\n  bellwether plan -f rollout.yaml --duration 2m\n  bellwether plan -f rollout.yaml --duration 90s --fail cluster4 --stuck cluster7\n  bellwether plan -f policy.yaml -n policies\n  bellwether plan -f placement.yaml --strategy '{type: Progressive, progressive: {maxConcurrency: 25%}}' -o json"
)]
pub(crate) struct PlanArgs {
    /// Files, directories, or - for standard input.
    #[arg(short, long, value_name = "PATH", required = true)]
    filename: Vec<PathBuf>,
    /// How long a cluster is assumed to take; for one cluster: NAME=DURATION.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    duration: Vec<String>,
    /// Clusters that are assumed to fail.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    fail: Vec<String>,
    /// Clusters that are assumed never to finish.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    stuck: Vec<String>,
    /// How to roll out to the clusters of a Placement: a rolloutStrategy in YAML or JSON.
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<String>,
    /// Read nothing from a hub, and fetch nothing: everything is in the files.
    #[arg(long)]
    offline: bool,
    /// The namespace of objects that name none.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// A rollout to rehearse.
struct Subject {
    name: String,
    placement: String,
    namespace: String,
    strategy: Strategy,
    /// The policy, if it is one.
    policy: Option<Box<Policy>>,
}

/// What a rehearsal is made from.
struct World<'a> {
    known: &'a FleetSnapshot,
    objects: &'a [Value],
    hub: Option<&'a kube::Client>,
    now: Timestamp,
}

pub(crate) async fn run(arguments: PlanArgs) -> anyhow::Result<()> {
    let assumptions = assumptions(&arguments)?;
    let manifests = bellwether_ctl::read_manifests(&arguments.filename, false, "plan")?;
    let mut objects: Vec<Value> = manifests.into_iter().map(|found| found.object).collect();
    let mut known = FleetSnapshot::default();
    let mut namespace = arguments
        .namespace
        .clone()
        .unwrap_or_else(|| "default".to_owned());
    let mut hub = None;
    if !arguments.offline {
        let connection = arguments
            .connect
            .open(arguments.namespace.as_deref())
            .await?;
        known = FleetSnapshot::of_hub(&connection.client).await?;
        namespace.clone_from(&connection.namespace);
        hub = Some(connection.client);
    }
    for object in &mut objects {
        let is_namespaced =
            object["kind"] != "ManagedCluster" && object["kind"] != "ManagedClusterSet";
        if is_namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    if objects.iter().any(application::is_application) {
        return application::run(&objects, hub.as_ref(), arguments.print).await;
    }
    known.add(&objects);
    if arguments.offline {
        known.bind_everything();
    }
    let subjects = subjects(&objects, arguments.strategy.as_deref())?;
    let now = Clock::system().now();
    let mut documents = Vec::new();
    let mut planned: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut rehearsals = Vec::new();
    let world = World {
        known: &known,
        objects: &objects,
        hub: hub.as_ref(),
        now,
    };
    for mut subject in subjects {
        let mut unset_concurrency = UnsetConcurrency::All;
        let groups = if let Some(policy) = subject.policy.take() {
            let bound = policy::bound(&world, &policy).await?;
            subject.strategy = bound.strategy(&subject.strategy);
            subject.placement = policy::placements(&bound);
            unset_concurrency = UnsetConcurrency::One;
            bound.rollout_groups()
        } else {
            groups(&world, &subject.namespace, &subject.placement).await?
        };
        let count: usize = groups.iter().map(|group| group.clusters.len()).sum();
        planned.extend(
            groups
                .iter()
                .flat_map(|group| group.clusters.iter().cloned()),
        );
        let input = Input {
            unset_concurrency,
            ..Input::new(&subject.strategy, &groups, &[], now)
        };
        let rehearsal = rehearse(&input, &assumptions)
            .with_context(|| format!("{} cannot be rolled out", subject.name))?;
        rehearsals.push((subject, count, rehearsal));
    }
    check_names(&assumptions, &planned)?;
    for (subject, count, rehearsal) in &rehearsals {
        if arguments.print.is_table() {
            show(subject, *count, rehearsal, now, arguments.print)?;
        } else {
            documents.push(document(subject, *count, rehearsal, now));
        }
    }
    if !arguments.print.is_table() {
        arguments
            .print
            .print(&json!({"rehearsals": documents}), &[])?;
    }
    Ok(())
}

/// Refuses assumptions about clusters that no placement selects: they would change nothing.
fn check_names(assumptions: &Assumptions, planned: &BTreeSet<Arc<str>>) -> anyhow::Result<()> {
    let flags = [
        ("--fail", assumptions.failing.iter().collect::<Vec<_>>()),
        ("--stuck", assumptions.stuck.iter().collect()),
        ("--duration", assumptions.durations.keys().collect()),
    ];
    for (flag, names) in flags {
        for name in names {
            let known = || planned.iter().map(|it| &**it);
            anyhow::ensure!(
                planned.contains(name),
                "{flag}: the rollout does not reach a cluster {name}{}",
                did_you_mean(name, known())
            );
        }
    }
    Ok(())
}

fn assumptions(arguments: &PlanArgs) -> anyhow::Result<Assumptions> {
    let read = |text: &str| -> anyhow::Result<SignedDuration> {
        let duration: GoDuration = text
            .parse()
            .with_context(|| format!("--duration: {text:?} is not a duration, such as 90s"))?;
        Ok(duration.to_signed())
    };
    let mut duration = SignedDuration::from_mins(1);
    let mut durations = BTreeMap::new();
    for text in &arguments.duration {
        match text.split_once('=') {
            Some((cluster, text)) => {
                durations.insert(Arc::from(cluster), read(text)?);
            }
            None => duration = read(text)?,
        }
    }
    let names = |names: &[String]| -> BTreeSet<Arc<str>> {
        names.iter().map(|name| Arc::from(name.as_str())).collect()
    };
    Ok(Assumptions {
        duration,
        durations,
        failing: names(&arguments.fail),
        stuck: names(&arguments.stuck),
    })
}

/// The rollouts that the files ask for.
fn subjects(objects: &[Value], strategy: Option<&str>) -> anyhow::Result<Vec<Subject>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let given = strategy
        .map(|text| {
            bellwether_json::yaml::value_from_yaml(text).context("--strategy is not valid YAML")
        })
        .transpose()?;
    let mut subjects = Vec::new();
    for object in objects {
        let name = text(&object["metadata"]["name"]);
        let namespace = text(&object["metadata"]["namespace"]);
        let mut add = |what: &str, placement: String, strategy: &Value| -> anyhow::Result<()> {
            let strategy = given.as_ref().unwrap_or(strategy);
            let strategy = Strategy::from_json(strategy)
                .with_context(|| format!("the rollout strategy of {what}/{name}"))?;
            subjects.push(Subject {
                name: format!("{what}/{name}"),
                placement,
                namespace: namespace.clone(),
                strategy,
                policy: None,
            });
            Ok(())
        };
        if object["kind"] == "Policy" {
            let policy: Policy = serde_json::from_value(object.clone())
                .with_context(|| format!("policy/{name} cannot be read"))?;
            let mode = Mode::of(&policy);
            anyhow::ensure!(
                mode.problem.is_none(),
                "the rollout strategy of policy/{name}: {}",
                mode.problem.unwrap_or_default()
            );
            subjects.push(Subject {
                name: format!("policy/{name}"),
                placement: String::new(),
                namespace: namespace.clone(),
                strategy: mode.strategy,
                policy: Some(Box::new(policy)),
            });
            continue;
        }
        match object["kind"].as_str().unwrap_or_default() {
            "ManifestWorkReplicaSet" => {
                let references = object["spec"]["placementRefs"].as_array();
                for reference in references.into_iter().flatten() {
                    let strategy = &reference["rolloutStrategy"];
                    add("manifestworkreplicaset", text(&reference["name"]), strategy)?;
                }
            }
            "Placement" if given.is_some() => add("placement", name.clone(), &Value::Null)?,
            _ => {}
        }
    }
    anyhow::ensure!(
        !subjects.is_empty(),
        "there is nothing to plan: an Application, a ManifestWorkReplicaSet, a Policy, or a Placement and --strategy"
    );
    Ok(subjects)
}

/// The clusters of a placement in groups: as it would decide now, or has decided.
async fn groups(world: &World<'_>, namespace: &str, name: &str) -> anyhow::Result<Vec<Group>> {
    let is_meant = |object: &&Value| {
        object["kind"] == "Placement"
            && object["metadata"]["name"] == *name
            && object["metadata"]["namespace"] == *namespace
    };
    let mut placement = world.objects.iter().find(is_meant).cloned();
    if let (None, Some(client)) = (&placement, world.hub) {
        let api: kube::Api<bellwether_api::cluster::Placement> =
            kube::Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(name).await?;
        placement = found.map(serde_json::to_value).transpose()?;
    }
    let Some(placement) = placement else {
        anyhow::bail!(
            "there is no placement {namespace}/{name}, neither in the files nor on the hub"
        );
    };
    let outcome = world.known.scene(&placement, world.now).outcome();
    let Some(groups) = outcome.groups else {
        anyhow::bail!("{name}: {}", outcome.misconfigured.message);
    };
    anyhow::ensure!(
        outcome.selected > 0,
        "the placement {name} chooses no cluster: {}",
        outcome.satisfied.message
    );
    let group = |group: &DecisionGroup| {
        let clusters = group
            .decisions
            .iter()
            .map(|decision| decision.cluster.clone());
        Group::new(
            group.name.as_str(),
            i64::try_from(group.index).unwrap_or(0),
            clusters,
        )
    };
    Ok(groups.iter().map(group).collect())
}

fn show(
    subject: &Subject,
    count: usize,
    rehearsal: &Rehearsal,
    start: Timestamp,
    print: PrintArgs,
) -> anyhow::Result<()> {
    say(&format!(
        "{} to the {count} clusters of {}:",
        subject.name, subject.placement
    ));
    let mut lines = vec![line(["WAVE", "AT", "CLUSTERS"])];
    for (number, wave) in rehearsal.waves.iter().enumerate() {
        lines.push(vec![
            (number + 1).to_string(),
            format!("+{}", elapsed(start, wave.at)),
            names(&wave.clusters),
        ]);
    }
    print.print(&Value::Null, &lines)?;
    let end = elapsed(start, rehearsal.end);
    if rehearsal.complete {
        say(&format!("It ends after {end}."));
    } else {
        say(&format!(
            "It stops after {end} and does not reach all clusters: {}",
            why_stopped(rehearsal)
        ));
    }
    for (cluster, reason) in left(rehearsal) {
        say(&format!("  {cluster} {reason}"));
    }
    Ok(())
}

/// What a rollout that does not end waits for.
fn why_stopped(rehearsal: &Rehearsal) -> String {
    let waits = rehearsal.last.reasons.iter();
    let wait = waits.clone().find_map(|(_, reason)| match reason {
        Reason::Waits(wait) => Some(wait),
        _ => None,
    });
    match wait.map(|wait| &**wait) {
        Some(Wait::Budget(spent)) => spent.to_string(),
        Some(Wait::Held(hold)) => hold.to_string(),
        Some(Wait::Slots { blocker, .. } | Wait::Group { blocker, .. }) => {
            let what = match blocker.status {
                Status::Failed => "failed and is not given up",
                _ => "never finishes",
            };
            format!(
                "{} {what}; a progressDeadline would end the wait",
                blocker.cluster
            )
        }
        None => {
            let unfinished = |reason: &Reason| matches!(reason, Reason::Progresses { .. });
            let mut names = waits.filter(|(_, reason)| unfinished(reason));
            match names.next() {
                Some((cluster, _)) => {
                    format!("{cluster} never finishes; a progressDeadline would end the wait")
                }
                None => "more clusters failed than are tolerated".to_owned(),
            }
        }
    }
}

/// Clusters that are not done in the end.
fn left(rehearsal: &Rehearsal) -> impl Iterator<Item = &(Arc<str>, Reason)> {
    let is_left =
        |(_, reason): &&(Arc<str>, Reason)| !matches!(reason, Reason::Done | Reason::Soaks { .. });
    rehearsal.last.reasons.iter().filter(is_left)
}

fn names(clusters: &[Arc<str>]) -> String {
    let shown: Vec<&str> = clusters
        .iter()
        .take(MOST_NAMES)
        .map(|name| &**name)
        .collect();
    let more = clusters.len().saturating_sub(MOST_NAMES);
    if more > 0 {
        format!("{} and {more} more", shown.join(" "))
    } else {
        shown.join(" ")
    }
}

fn elapsed(start: Timestamp, at: Timestamp) -> String {
    let seconds = at.duration_since(start).as_secs();
    GoDuration::from_secs(seconds).to_string()
}

fn document(subject: &Subject, count: usize, rehearsal: &Rehearsal, start: Timestamp) -> Value {
    let seconds = |at: Timestamp| at.duration_since(start).as_secs();
    let waves: Vec<Value> = rehearsal
        .waves
        .iter()
        .map(|wave| {
            let clusters: Vec<&str> = wave.clusters.iter().map(|name| &**name).collect();
            json!({"atSeconds": seconds(wave.at), "clusters": clusters})
        })
        .collect();
    let left: serde_json::Map<String, Value> = left(rehearsal)
        .map(|(cluster, reason)| (cluster.to_string(), json!(reason.to_string())))
        .collect();
    json!({
        "name": subject.name, "placement": subject.placement, "clusters": count,
        "waves": waves, "endSeconds": seconds(rehearsal.end),
        "complete": rehearsal.complete, "left": left,
        "stopped": (!rehearsal.complete).then(|| why_stopped(rehearsal)),
    })
}
