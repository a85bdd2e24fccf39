//! How far a policy is: clusters in their groups, who enforces, who complies, what stops a rollout.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::cluster::names::condition;
use bellwether_api::cluster::names::label::PLACEMENT;
use bellwether_api::cluster::{Placement, PlacementDecision};
use bellwether_api::meta::{Condition, TRUE};
use bellwether_api::policy::names::{label, replica_name};
use bellwether_api::policy::{
    ComplianceState, PlacementBinding, PlacementRule, PlacementSubject, Policy, PolicyPlacement,
    PolicySet, RolloutStatus,
};
use bellwether_json::time::format_time;
use bellwether_kinds::human;
use bellwether_placement::rollout::{Chosen, Hold, Reason, Wait};
use bellwether_policy::binding::{Bindings, Bound, chosen_by_rule, is_rule, resolve};
use bellwether_policy::report::{ClusterReport, GroupReport, Report};
use bellwether_runtime::{Cache, Selection};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::read::{find, guess};
use super::rollout::{held, next_line, strategy, waits};
use super::tree::{Layout, Node, Span, Tone, Tree};
use super::{Snapshot, Source};
use crate::error::Error;

/// Up to how many clusters in one state are shown one by one.
const ONE_BY_ONE: usize = 4;

/// Everything that an explanation of a policy looks at, read at one moment.
#[derive(Debug, Clone)]
pub struct PolicySnapshot {
    root: Policy,
    bound: Bound,
    report: Report,
    /// Why placements have chosen too few clusters, in their own words.
    messages: HashMap<String, String>,
    now: Timestamp,
}

pub(super) async fn read(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let snapshot = read_policy(source, name).await?;
    Ok(Snapshot::Policy(Box::new(snapshot)))
}

/// Reads a root policy with its bindings, placements and replicas.
pub async fn read_policy(source: Source<'_>, name: &str) -> Result<PolicySnapshot, Error> {
    let Source {
        client, namespace, ..
    } = source;
    let roots: Api<Policy> = Api::namespaced(client.clone(), namespace);
    let Some(root) = find(&roots, name).await? else {
        let guess = guess(&roots, name, "; see bellwether get plc -A").await;
        return Err(Error::Usage(format!(
            "there is no policy {name} in namespace {namespace}{guess}"
        )));
    };
    let bindings: Api<PlacementBinding> = Api::namespaced(client.clone(), namespace);
    let sets: Api<PolicySet> = Api::namespaced(client.clone(), namespace);
    let replicas: Api<Policy> = Api::all(client.clone());
    let everything = ListParams::default();
    let root_label = format!("{}={}", label::ROOT_POLICY, replica_name(namespace, name));
    let own = ListParams::default().labels(&root_label);
    let (bindings, sets, replicas) = futures::try_join!(
        bindings.list(&everything),
        sets.list(&everything),
        replicas.list(&own)
    )?;
    let bindings: Vec<Arc<PlacementBinding>> = bindings.into_iter().map(Arc::new).collect();
    let sets: Vec<Arc<PolicySet>> = sets.into_iter().map(Arc::new).collect();
    let mut selected: HashMap<(String, String), Chosen> = HashMap::new();
    let mut messages = HashMap::new();
    for binding in &bindings {
        let reference = &binding.placement_ref;
        let key = (reference.kind.clone(), reference.name.clone());
        if !selected.contains_key(&key)
            && let Some((chosen, message)) = chosen(client, namespace, reference).await?
        {
            messages.extend(message.map(|message| (reference.name.clone(), message)));
            selected.insert(key, chosen);
        }
    }
    let bound = resolve(&Bindings {
        policy: name,
        bindings: &bindings,
        set: &|name| {
            let mut sets = sets.iter();
            sets.find(|it| it.metadata.name.as_deref() == Some(name))
                .cloned()
        },
        selected: &|reference| {
            let key = (reference.kind.clone(), reference.name.clone());
            selected.get(&key).cloned()
        },
    });
    let by_cluster = replicas.into_iter();
    let by_cluster = by_cluster.filter_map(|it| Some((it.metadata.namespace.clone()?, it)));
    let report = Report::new(&root, &bound, &by_cluster.collect(), source.now);
    Ok(PolicySnapshot {
        root,
        bound,
        report,
        messages,
        now: source.now,
    })
}

/// What a placement selects, and why it is not more; nothing if it does not exist.
async fn chosen(
    client: &Client,
    namespace: &str,
    reference: &PlacementSubject,
) -> Result<Option<(Chosen, Option<String>)>, Error> {
    if is_rule(reference) {
        let rules: Api<PlacementRule> = Api::namespaced(client.clone(), namespace);
        let rule = find(&rules, &reference.name).await?;
        return Ok(rule.map(|rule| (chosen_by_rule(&rule), None)));
    }
    let placements: Api<Placement> = Api::namespaced(client.clone(), namespace);
    let Some(placement) = find(&placements, &reference.name).await? else {
        return Ok(None);
    };
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), namespace);
    let own = ListParams::default().labels(&format!("{PLACEMENT}={}", reference.name));
    let decisions = decisions.list(&own).await?;
    let conditions = placement.status.iter().flat_map(|it| &it.conditions);
    let is_unsatisfied =
        |it: &&Condition| it.type_ == condition::PLACEMENT_SATISFIED && it.status != TRUE;
    let mut messages = conditions
        .filter(is_unsatisfied)
        .map(|it| it.message.clone());
    let chosen = Chosen::of(&placement, &decisions);
    Ok(Some((chosen, messages.next_back())))
}

impl PolicySnapshot {
    fn name(&self) -> &str {
        self.root.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.root.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The arguments that name it on a command line.
    fn object(&self) -> String {
        match self.namespace() {
            "default" => format!("policy/{}", self.name()),
            namespace => format!("policy/{} -n {namespace}", self.name()),
        }
    }

    /// Returns the placements that select its clusters.
    pub fn placements(&self) -> BTreeSet<String> {
        let entries = self.bound.placements.iter();
        entries.filter_map(|it| it.placement.clone()).collect()
    }

    /// Returns true if the rollout is complete.
    pub fn is_complete(&self) -> bool {
        self.report.stage == Some(RolloutStatus::Succeeded)
    }

    fn stage(&self) -> (Tone, &'static str) {
        if self.root.spec.disabled {
            return (Tone::Quiet, "disabled");
        }
        match &self.report.stage {
            None => (Tone::Quiet, "goes to no cluster"),
            Some(RolloutStatus::Succeeded) => (Tone::Good, "rolled out"),
            Some(RolloutStatus::Failed) if self.report.mode.is_progressive => {
                (Tone::Bad, "stopped")
            }
            Some(RolloutStatus::Failed) => (Tone::Bad, "failed"),
            Some(_) if self.report.is_paused() => (Tone::Active, "paused"),
            Some(_) => (Tone::Active, "rolling out"),
        }
    }

    /// Returns true if somebody paused its rollout, whether or not a cluster waits for that.
    pub fn is_paused(&self) -> bool {
        self.report.mode.hold.is_some()
    }

    /// Returns what the hub knows it by, so that nobody overwrites what has changed since.
    pub fn resource_version(&self) -> Option<&str> {
        self.root.metadata.resource_version.as_deref()
    }

    /// The page of `status`.
    pub fn status(&self) -> Tree {
        let (tone, stage) = self.stage();
        let title = format!("policy {}/{}", self.namespace(), self.name());
        let has_several = self.placements().len() > 1;
        let nodes = self.report.groups.iter().map(|group| {
            let mut label = match &*group.key.name {
                "" if self.report.groups.len() == 1 => group.placement.to_string(),
                "" => group.key.to_string(),
                name => name.to_owned(),
            };
            if has_several && label != *group.placement {
                label = format!("{}: {label}", group.placement);
            }
            self.group(label, group)
        });
        Tree {
            title: vec![
                Span::new(Tone::Title, title),
                Span::new(tone, stage),
                Span::plain(strategy(self.report.mode.strategy.kind)),
                Span::plain(self.counted()),
            ],
            nodes: nodes.collect(),
            notes: self.notes(),
            layout: Layout::Columns,
        }
    }

    fn counted(&self) -> String {
        let counts = self.report.counts();
        let noun = if counts.total == 1 {
            "cluster"
        } else {
            "clusters"
        };
        let mut text = format!("{} of {} {noun} done", counts.done, counts.total);
        if counts.failing > 0 {
            text = format!("{text}, {} failing", counts.failing);
        }
        if let Some(started) = self.report.started.filter(|_| !self.is_complete()) {
            text = format!("{text}, since {}", self.since(started));
        }
        text
    }

    fn since(&self, time: Timestamp) -> String {
        human(self.now.duration_since(time).as_secs().max(0))
    }

    /// Clusters of a group; those that are in one state together if they are many.
    fn group(&self, label: String, group: &GroupReport) -> Node {
        let mut states: Vec<((Tone, String), Vec<&str>)> = Vec::new();
        for cluster in &group.clusters {
            let state = self.state(cluster);
            match states.iter_mut().find(|(known, _)| *known == state) {
                Some((_, names)) => names.push(&cluster.name),
                None => states.push((state, vec![&cluster.name])),
            }
        }
        let line = |name: &str, tone: Tone, state: &str| {
            Node::leaf(vec![Span::plain(name), Span::new(tone, state)])
        };
        let children = states
            .iter()
            .flat_map(|((tone, state), names)| match &**names {
                [first, .., last] if names.len() > ONE_BY_ONE => {
                    let state = format!("{state} ({} clusters)", names.len());
                    vec![line(&format!("{first} … {last}"), *tone, &state)]
                }
                names => names.iter().map(|name| line(name, *tone, state)).collect(),
            });
        let is_running = |it: &ClusterReport| {
            matches!(
                it.reason,
                Reason::Progresses { .. } | Reason::Soaks { .. } | Reason::Failed { .. }
            )
        };
        Node {
            cells: vec![Span::plain(label)],
            is_current: group.clusters.iter().any(is_running),
            children: children.collect(),
        }
    }

    /// How far a cluster is, and what it reports.
    fn state(&self, cluster: &ClusterReport) -> (Tone, String) {
        let left = |time: Timestamp| {
            let left = time.duration_since(self.now).as_secs();
            human(left.max(0))
        };
        let cause = || {
            let cause = cluster.causes.first();
            cause.map(|it| format!(": {it}")).unwrap_or_default()
        };
        let complies = match &cluster.compliant {
            Some(ComplianceState::Compliant) => "complies",
            Some(ComplianceState::NonCompliant) => "does not comply",
            Some(ComplianceState::Pending) => "waits for dependencies",
            _ => "has not reported",
        };
        match &cluster.reason {
            Reason::Done if cluster.compliant == Some(ComplianceState::Compliant) => {
                (Tone::Good, "done, complies".to_owned())
            }
            Reason::Done => (Tone::Active, format!("done, {complies}{}", cause())),
            Reason::Skipped => (Tone::Quiet, "skipped".to_owned()),
            Reason::Soaks { until } => (Tone::Active, format!("soaking, {} left", left(*until))),
            Reason::Progresses { deadline } => {
                let end = deadline.map(|time| format!(", times out in {}", left(time)));
                let what = if self.report.mode.is_enforced {
                    "enforcing"
                } else {
                    "informing"
                };
                (
                    Tone::Active,
                    format!("{what}, {complies}{}", end.unwrap_or_default()),
                )
            }
            Reason::Failed { .. } => (Tone::Bad, format!("{complies}{}", cause())),
            Reason::TimedOut { .. } => (Tone::Bad, format!("timed out, {complies}")),
            Reason::Starts | Reason::Queued => (Tone::Quiet, format!("is next; {complies}")),
            Reason::Waits(wait) => (Tone::Quiet, format!("{}; {complies}", waits(wait))),
        }
    }

    fn stops(&self) -> Vec<String> {
        let exceeded = self.report.exceeded.as_ref();
        let stop = exceeded.map(|spent| format!("stops here: {spent} (maxFailures)"));
        let problem = self.report.problem.as_ref();
        let problem = problem.map(|it| format!("the rollout is stopped: {it}"));
        let hold = self.report.mode.hold.filter(|_| self.report.is_paused());
        let stops = stop.into_iter().chain(problem);
        stops.chain(hold.map(held)).collect()
    }

    /// Returns why the policy goes to no cluster; nothing if it goes to some, or is disabled.
    pub fn without_clusters(&self) -> Vec<String> {
        if self.root.spec.disabled || self.bound.clusters().next().is_some() {
            return Vec::new();
        }
        if self.bound.placements.is_empty() {
            return vec![format!(
                "no PlacementBinding in namespace {} binds it to a placement",
                self.namespace()
            )];
        }
        let reason = |it: &PolicyPlacement| match (&it.placement, &it.placement_rule) {
            (Some(placement), _) => match self.messages.get(placement) {
                Some(message) => format!("placement {placement}: {message}"),
                None => format!("placement {placement} has chosen no cluster"),
            },
            (None, Some(rule)) => format!("PlacementRule {rule} has no decisions"),
            (None, None) => format!(
                "binding {} names a placement that does not exist",
                it.placement_binding.as_deref().unwrap_or_default()
            ),
        };
        self.bound.placements.iter().map(reason).collect()
    }

    fn notes(&self) -> Vec<Vec<Span>> {
        let stops = self.stops().into_iter().chain(self.without_clusters());
        let mut notes: Vec<Vec<Span>> = stops.map(|it| vec![Span::new(Tone::Bad, it)]).collect();
        notes.extend(next_line(&self.next()));
        notes
    }

    fn next(&self) -> Vec<String> {
        let object = self.object();
        let failing = self
            .report
            .clusters()
            .find(|it| matches!(it.reason, Reason::Failed { .. } | Reason::TimedOut { .. }));
        let mut commands = Vec::new();
        if self.report.is_paused() {
            commands.push(format!("bellwether rollout resume {object}"));
        }
        if let Some(cluster) = failing {
            commands.push(format!("bellwether why {} {object}", cluster.name));
        }
        let is_running = matches!(
            self.report.stage,
            Some(RolloutStatus::Progressing | RolloutStatus::Failed)
        );
        if is_running {
            commands.push(format!("bellwether status {object} -w"));
        }
        if !self.without_clusters().is_empty() {
            let placements = self.placements().into_iter();
            let namespace = self.namespace();
            commands.extend(
                placements.map(|it| format!("bellwether describe placement/{it} -n {namespace}")),
            );
        }
        commands
    }

    /// The page and the document of `why` for one cluster; nothing if the policy does not go there.
    pub fn why(&self, cluster: &str) -> Option<(Tree, Value)> {
        let (group, found) = self.report.cluster(cluster)?;
        let mut lines = vec![format!(
            "placement {}: {cluster} {}",
            group.placement, found.reason
        )];
        let mode = &self.report.mode;
        let is_released = found
            .status
            .as_ref()
            .is_some_and(bellwether_policy::propagation::is_released);
        lines.push(
            match (mode.is_enforced, is_released) {
                (true, true) => "the policy is enforced there",
                (true, false) => "until then the policy only informs there",
                (false, _) => "the policy only informs",
            }
            .to_owned(),
        );
        if let Some(since) = found.since.filter(|_| found.compliant.is_none()) {
            lines.push(format!(
                "{cluster} has not reported for {}: no agent there evaluates policies, or it cannot reach the hub",
                self.since(since)
            ));
        }
        lines.extend(found.causes.iter().map(|it| format!("on {cluster}: {it}")));
        let next = self.next_of(found);
        let document = json!({
            "cluster": cluster, "policy": self.name(), "namespace": self.namespace(),
            "placement": group.placement, "reason": format!("{cluster} {}", found.reason),
            "rolloutStatus": found.status, "compliant": found.compliant,
            "causes": found.causes, "next": next,
        });
        let nodes = lines.into_iter();
        let nodes = nodes.map(|it| Node::leaf(vec![Span::plain(it)])).collect();
        let heading = format!("{cluster} and {}:", self.object());
        let tree = Tree {
            title: vec![Span::new(Tone::Title, heading)],
            nodes,
            notes: next_line(&next),
            layout: Layout::Columns,
        };
        Some((tree, document))
    }

    /// Commands that go on from one cluster.
    fn next_of(&self, cluster: &ClusterReport) -> Vec<String> {
        let object = self.object();
        let name = replica_name(self.namespace(), self.name());
        let replica = format!("bellwether get plc/{name} -n {} -o yaml", cluster.name);
        match &cluster.reason {
            Reason::Waits(wait) => match &**wait {
                Wait::Slots { blocker, .. } | Wait::Group { blocker, .. } => {
                    vec![format!("bellwether why {} {object}", blocker.cluster)]
                }
                Wait::Budget(_) => self.next(),
                Wait::Held(Hold::Unsettled) => self.decisions(),
                Wait::Held(Hold::Paused | Hold::Aborted) => {
                    vec![format!("bellwether rollout resume {object}")]
                }
            },
            _ => vec![replica],
        }
    }

    /// Commands that show what placements have decided that have not written all of it.
    fn decisions(&self) -> Vec<String> {
        let unsettled = self.bound.unsettled.iter();
        let namespace = self.namespace();
        unsettled
            .map(|it| {
                format!("bellwether get placementdecisions -n {namespace} -l {PLACEMENT}={it}")
            })
            .collect()
    }

    /// The page of `why` for all clusters.
    pub fn why_all(&self) -> Tree {
        let (tone, stage) = self.stage();
        let mut lines = self.stops();
        lines.extend(self.without_clusters());
        let clusters = self.report.clusters();
        lines.extend(clusters.map(|it| format!("{} {}", it.name, it.reason)));
        Tree {
            title: vec![
                Span::new(Tone::Title, self.object()),
                Span::new(tone, stage),
                Span::plain(self.counted()),
            ],
            nodes: lines
                .into_iter()
                .map(|it| Node::leaf(vec![Span::plain(it)]))
                .collect(),
            notes: next_line(&self.next()),
            layout: Layout::Columns,
        }
    }

    /// The document of `status`.
    pub fn document(&self) -> Value {
        let counts = self.report.counts();
        let cluster = |it: &ClusterReport| {
            json!({
                "name": it.name, "rolloutStatus": it.status, "compliant": it.compliant,
                "reason": it.reason.to_string(), "since": it.since.map(format_time),
                "causes": it.causes,
            })
        };
        let group = |it: &GroupReport| {
            let clusters: Vec<Value> = it.clusters.iter().map(cluster).collect();
            json!({"placement": it.placement, "name": it.key.name, "index": it.key.index,
                "clusters": clusters})
        };
        let groups: Vec<Value> = self.report.groups.iter().map(group).collect();
        json!({
            "policy": self.name(), "namespace": self.namespace(), "stage": self.stage().1,
            "rolloutStatus": self.report.stage, "compliant": self.report.compliant,
            "strategy": strategy(self.report.mode.strategy.kind),
            "started": self.report.started.map(format_time),
            "clusters": {"total": counts.total, "done": counts.done, "failing": counts.failing,
                "waiting": counts.waiting},
            "groups": groups, "stops": self.stops(), "next": self.next(),
        })
    }

    /// How far it is, in lines that can be compared with those of before: no times that run.
    pub fn lines(&self) -> Vec<String> {
        let clusters = self.report.clusters();
        let is_shown = |it: &&ClusterReport| {
            !matches!(
                it.reason,
                Reason::Waits(_) | Reason::Queued | Reason::Starts
            )
        };
        let mut lines: Vec<String> = clusters
            .filter(is_shown)
            .map(|it| {
                let status = it.status.as_ref().map_or("", RolloutStatus::as_str);
                let compliant = it.compliant.as_ref().map_or("", ComplianceState::as_str);
                format!("{} {status} {compliant}", it.name)
                    .trim_end()
                    .to_owned()
            })
            .collect();
        lines.extend(self.stops());
        let counts = self.report.counts();
        let (_, stage) = self.stage();
        lines.push(format!(
            "{stage}: {} of {} clusters done",
            counts.done, counts.total
        ));
        lines
    }
}

/// Watches everything that a policy depends on, and notifies when any of it changes. It ends when the result is
/// dropped.
pub fn policy_triggers(
    client: &Client,
    namespace: &str,
    name: &str,
    changed: &Arc<Notify>,
) -> impl Send + 'static + use<> {
    let notify = || {
        let changed = Arc::clone(changed);
        move || changed.notify_one()
    };
    let roots: Api<Policy> = Api::namespaced(client.clone(), namespace);
    let replicas: Api<Policy> = Api::all(client.clone());
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), namespace);
    let own = format!("{}={}", label::ROOT_POLICY, replica_name(namespace, name));
    let (on_root, on_replica, on_decision) = (notify(), notify(), notify());
    let root = Selection::fields(&format!("metadata.name={name}"));
    (
        Cache::start(roots, root, move |_| on_root()),
        Cache::start(replicas, Selection::labels(&own), move |_| on_replica()),
        Cache::start(decisions, Selection::default(), move |_| on_decision()),
    )
}

#[cfg(test)]
mod tests;
