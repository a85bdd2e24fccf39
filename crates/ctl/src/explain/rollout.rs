//! How far a replica set of works is: clusters in their groups, what stops it, what to do next.

mod why;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_json::time::format_time;
use bellwether_kinds::human;
use bellwether_placement::rollout::{Hold, Kind, Reason, Scope, Wait};
use bellwether_work::Programs;
use bellwether_work::cause::Cause;
use bellwether_work::replica_set::report::{
    ClusterReport, Counts, GroupReport, PlacementReport, Report, Stage, Step,
};
use bellwether_work::replica_set::{Chosen, Observed, report};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::tree::{Layout, Node, Span, Tone, Tree};

/// Up to how many clusters of one state are shown one by one.
const ONE_BY_ONE: usize = 4;
/// How many failing clusters of a group are shown.
const MOST_FAILING: usize = 10;

/// Everything that an explanation looks at, read at one moment.
#[derive(Debug, Clone, Default)]
pub struct RolloutSnapshot {
    /// The replica set.
    pub set: ManifestWorkReplicaSet,
    /// What its placements have chosen; those that do not exist are missing.
    pub placements: BTreeMap<String, Chosen>,
    /// Its works.
    pub works: Vec<Arc<ManifestWork>>,
    /// All clusters by name.
    pub clusters: BTreeMap<String, Arc<ManagedCluster>>,
    /// What members say themselves about their failing objects, by cluster.
    pub troubles: BTreeMap<String, Vec<Trouble>>,
    /// The present.
    pub now: Timestamp,
}

/// What a member says about an object that its work reports as failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What the work reports.
    pub cause: Cause,
    /// What the member says.
    pub text: String,
}

/// A rollout with what is known about it.
#[derive(Debug)]
pub struct Rollout<'a> {
    snapshot: &'a RolloutSnapshot,
    /// How far it is.
    pub report: Report,
}

impl<'a> Rollout<'a> {
    /// Works out how far a rollout is.
    pub fn new(snapshot: &'a RolloutSnapshot) -> Self {
        let observed = Observed {
            set: &snapshot.set,
            placements: &snapshot.placements,
            works: &snapshot.works,
            cluster: &|name| snapshot.clusters.get(name).cloned(),
            now: snapshot.now,
        };
        let report = report(&observed, &Programs::default());
        Self { snapshot, report }
    }

    fn name(&self) -> &str {
        self.snapshot
            .set
            .metadata
            .name
            .as_deref()
            .unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        let namespace = self.snapshot.set.metadata.namespace.as_deref();
        namespace.unwrap_or_default()
    }

    /// The arguments that name it on a command line.
    fn object(&self) -> String {
        match self.namespace() {
            "default" => format!("mwrs/{}", self.name()),
            namespace => format!("mwrs/{} -n {namespace}", self.name()),
        }
    }

    fn is_deleted(&self) -> bool {
        self.snapshot.set.metadata.deletion_timestamp.is_some()
    }

    /// How far it is, in a word or two.
    pub fn stage(&self) -> (Tone, &'static str) {
        if self.is_deleted() {
            return (Tone::Active, "being deleted");
        }
        match self.report.stage() {
            Stage::Complete => (Tone::Good, "complete"),
            Stage::RollingOut | Stage::Held(Hold::Unsettled) => (Tone::Active, "rolling out"),
            Stage::Stopped => (Tone::Bad, "stopped"),
            Stage::Held(Hold::Paused) => (Tone::Active, "paused"),
            Stage::Held(Hold::Aborted) => (Tone::Bad, "aborted"),
            Stage::Empty => (Tone::Quiet, "selects no cluster"),
        }
    }

    /// True if all clusters are done.
    pub fn is_complete(&self) -> bool {
        self.report.stage() == Stage::Complete
    }

    /// The page of `status`.
    pub fn status(&self) -> Tree {
        let (tone, stage) = self.stage();
        let title = format!("replica set {}/{}", self.namespace(), self.name());
        let mut title = vec![Span::new(Tone::Title, title), Span::new(tone, stage)];
        if let [only] = &*self.report.placements {
            title.push(Span::plain(strategy(only.strategy.kind)));
        }
        title.push(Span::plain(self.progress()));
        let mut nodes = Vec::new();
        for placement in &self.report.placements {
            if self.report.placements.len() > 1 {
                nodes.push(Node::leaf(vec![
                    Span::new(Tone::Title, format!("placement {}", placement.name)),
                    Span::plain(strategy(placement.strategy.kind)),
                    Span::plain(counted(&placement.counts())),
                ]));
            }
            let groups = placement.groups.iter();
            let groups = groups.filter(|it| !it.clusters.is_empty());
            nodes.extend(groups.map(|it| self.group(placement, it)));
        }
        Tree {
            title,
            nodes,
            notes: self.notes(),
            layout: Layout::Columns,
        }
    }

    /// How many clusters are how far, and since when.
    fn progress(&self) -> String {
        let mut text = counted(&self.report.counts());
        if let Some(started) = self.report.started
            && self.report.stage() != Stage::Complete
        {
            text = format!("{text}, since {}", self.since(started));
        }
        text
    }

    fn since(&self, time: Timestamp) -> String {
        human(self.snapshot.now.duration_since(time).as_secs().max(0))
    }

    fn left(&self, time: Timestamp) -> String {
        let left = time.duration_since(self.snapshot.now);
        let seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
        human(seconds.max(0))
    }

    fn group(&self, placement: &PlacementReport, group: &GroupReport) -> Node {
        let is_only = placement.groups.len() == 1 && group.key.name.is_empty();
        let label = match &*group.key.name {
            _ if is_only => placement.name.clone(),
            "" => group.key.to_string(),
            name => name.to_owned(),
        };
        let steps = [
            Step::Done,
            Step::Soaking,
            Step::InProgress,
            Step::Failing,
            Step::Waiting,
        ];
        let children = steps.map(|step| {
            let clusters = group.clusters.iter().filter(|it| it.step() == step);
            self.step(&clusters.collect::<Vec<_>>())
        });
        let is_running = |cluster: &ClusterReport| {
            matches!(
                cluster.step(),
                Step::Soaking | Step::InProgress | Step::Failing
            )
        };
        Node {
            cells: vec![Span::plain(label)],
            is_current: group.clusters.iter().any(is_running),
            children: children.into_iter().flatten().collect(),
        }
    }

    /// Clusters that are equally far: one by one if they are few, otherwise those of one state
    /// together.
    fn step(&self, clusters: &[&ClusterReport]) -> Vec<Node> {
        let line = |names: String, (tone, state): (Tone, String)| {
            Node::leaf(vec![Span::plain(names), Span::new(tone, state)])
        };
        let is_failing = clusters
            .first()
            .is_some_and(|it| it.step() == Step::Failing);
        if clusters.len() <= ONE_BY_ONE || is_failing {
            let shown = clusters.iter().take(MOST_FAILING);
            let mut lines: Vec<Node> = shown
                .map(|cluster| line(cluster.name.to_string(), self.state(cluster)))
                .collect();
            if let Some(more) = clusters.len().checked_sub(MOST_FAILING + 1) {
                let more = format!("{} more", more + 1);
                lines.push(line(more, (Tone::Bad, "failing".to_owned())));
            }
            return lines;
        }
        let mut states: Vec<((Tone, String), Vec<&str>)> = Vec::new();
        for cluster in clusters {
            let state = self.state(cluster);
            match states.iter_mut().find(|(known, _)| *known == state) {
                Some((_, names)) => names.push(&cluster.name),
                None => states.push((state, vec![&cluster.name])),
            }
        }
        states
            .into_iter()
            .map(|(state, names)| match &*names {
                [first, .., last] => line(
                    format!("{first} … {last}"),
                    (state.0, format!("{} ({} clusters)", state.1, names.len())),
                ),
                names => line(names.join(" "), state),
            })
            .collect()
    }

    /// How far a cluster is.
    fn state(&self, cluster: &ClusterReport) -> (Tone, String) {
        let since = cluster.since.map(|time| self.since(time));
        let since = since.map_or_else(String::new, |since| format!(" (since {since})"));
        match &cluster.reason {
            Reason::Done => (Tone::Good, "done".to_owned()),
            Reason::Skipped => (Tone::Quiet, "skipped".to_owned()),
            Reason::Soaks { until } => {
                let left = self.left(*until);
                (Tone::Active, format!("soaking, {left} left"))
            }
            Reason::Progresses { deadline } => {
                let end = deadline.map(|time| format!(", times out in {}", self.left(time)));
                let end = end.unwrap_or_default();
                let cause = self.cause(cluster);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                (Tone::Active, format!("in progress{cause}{since}{end}"))
            }
            Reason::Failed { deadline, .. } => {
                let end = deadline.map(|time| format!(", times out in {}", self.left(time)));
                let end = end.unwrap_or_default();
                let cause = self.cause(cluster).unwrap_or_else(no_cause);
                (Tone::Bad, format!("failing: {cause}{since}{end}"))
            }
            Reason::TimedOut { .. } => {
                let cause = self.cause(cluster).unwrap_or_else(no_cause);
                (Tone::Bad, format!("timed out: {cause}{since}"))
            }
            Reason::Starts => (Tone::Active, "starts now".to_owned()),
            Reason::Queued => (Tone::Quiet, "is next".to_owned()),
            Reason::Waits(wait) => (Tone::Quiet, waits(wait)),
        }
    }

    /// Why a cluster is not there yet: as its member says itself, else as its work reports.
    fn cause(&self, cluster: &ClusterReport) -> Option<String> {
        let troubles = self.snapshot.troubles.get(&*cluster.name);
        let known = |cause: &Cause| {
            let found = troubles?.iter().find(|trouble| trouble.cause == *cause)?;
            Some(cause.with(&found.text))
        };
        if cluster.problem.is_some() {
            return cluster.cause();
        }
        let causes: Vec<String> = cluster
            .causes()
            .iter()
            .map(|cause| known(cause).unwrap_or_else(|| cause.to_string()))
            .collect();
        (!causes.is_empty()).then(|| causes.join("; "))
    }

    /// What stops it, and what to do.
    fn notes(&self) -> Vec<Vec<Span>> {
        let mut notes = Vec::new();
        for text in &self.report.notes {
            notes.push(vec![Span::new(Tone::Quiet, text)]);
        }
        for text in self.stops() {
            notes.push(vec![Span::new(Tone::Bad, text)]);
        }
        let next = self.next();
        if !next.is_empty() {
            notes.push(vec![Span::plain(format!("next: {}", next.join(" · ")))]);
        }
        notes
    }

    /// Why it does not go on, in sentences.
    fn stops(&self) -> Vec<String> {
        let report = &self.report;
        let mut all: Vec<String> = Vec::new();
        for name in &report.missing {
            let namespace = self.namespace();
            all.push(format!(
                "there is no placement {name} in namespace {namespace}"
            ));
        }
        all.extend(report.problems.iter().cloned());
        if let Stage::Held(hold) = report.stage() {
            all.push(held(hold));
        }
        for placement in report.placements.iter().filter(|it| it.breached) {
            if let Some(spent) = placement.exceeded() {
                let what = match (&spent.scope, spent.tolerated) {
                    (Scope::Group(_), 0)
                        if !placement.strategy.mandatory_decision_groups.is_empty() =>
                    {
                        "mandatory groups tolerate none"
                    }
                    _ => "maxFailures",
                };
                all.push(format!("stops here: {spent} ({what})"));
            }
        }
        all
    }

    /// Commands that go on from here.
    pub fn next(&self) -> Vec<String> {
        let object = self.object();
        let mut commands = Vec::new();
        let failing = self
            .report
            .placements
            .iter()
            .find_map(|it| it.failing().next());
        if let Some(cluster) = failing {
            commands.push(format!("bellwether why {} {object}", cluster.name));
            commands.extend(works(cluster).into_iter().take(1));
        }
        match self.report.stage() {
            Stage::Stopped => commands.push(format!("bellwether rollout retry|abort {object}")),
            Stage::Held(_) => commands.push(format!("bellwether rollout resume {object}")),
            Stage::RollingOut => commands.push(format!("bellwether status {object} -w")),
            Stage::Empty => {
                let placement = self.report.placements.first();
                let namespace = match self.namespace() {
                    "default" => String::new(),
                    namespace => format!(" -n {namespace}"),
                };
                let ask = |it: &PlacementReport| {
                    format!("bellwether why placement/{}{namespace}", it.name)
                };
                commands.extend(placement.map(ask));
            }
            Stage::Complete => {}
        }
        commands
    }

    /// The document of `status`.
    pub fn document(&self) -> Value {
        let Counts {
            total,
            done,
            soaking,
            in_progress,
            failing,
            waiting,
        } = self.report.counts();
        let time = |time: Option<Timestamp>| time.map(format_time);
        let cluster = |it: &ClusterReport| {
            let until = match &it.reason {
                Reason::Soaks { until } => Some(*until),
                Reason::Progresses { deadline } | Reason::Failed { deadline, .. } => *deadline,
                _ => None,
            };
            let names: Vec<&str> = it
                .works
                .iter()
                .filter_map(|it| it.metadata.name.as_deref())
                .collect();
            json!({
                "name": it.name, "state": step_name(it.step()), "reason": it.reason.to_string(),
                "since": time(it.since), "until": time(until), "cause": self.cause(it), "works": names,
            })
        };
        let group = |it: &GroupReport| {
            let clusters: Vec<Value> = it.clusters.iter().map(cluster).collect();
            json!({"name": it.key.name, "index": it.key.index, "clusters": clusters})
        };
        let placement = |it: &PlacementReport| {
            let groups: Vec<Value> = it.groups.iter().map(group).collect();
            json!({"name": it.name, "strategy": strategy(it.strategy.kind), "groups": groups})
        };
        let placements: Vec<Value> = self.report.placements.iter().map(placement).collect();
        json!({
            "manifestWorkReplicaSet": self.name(), "namespace": self.namespace(),
            "stage": self.stage().1, "started": time(self.report.started),
            "clusters": {"total": total, "done": done, "soaking": soaking,
                "inProgress": in_progress, "failing": failing, "waiting": waiting},
            "placements": placements, "notes": self.report.notes,
            "stops": self.stops(), "next": self.next(),
        })
    }

    /// How far it is, in lines that can be compared with those of before: no times that run.
    pub fn lines(&self) -> Vec<String> {
        let clusters = self
            .report
            .placements
            .iter()
            .flat_map(PlacementReport::clusters);
        let mut lines: Vec<String> = clusters
            .filter(|cluster| cluster.step() != Step::Waiting)
            .map(|cluster| match (cluster.step(), self.cause(cluster)) {
                (Step::Failing, Some(cause)) => {
                    format!("{} {}: {cause}", cluster.name, step_name(Step::Failing))
                }
                (Step::Soaking, _) => format!("{} {}", cluster.name, cluster.reason),
                (step, _) => format!("{} {}", cluster.name, step_name(step)),
            })
            .collect();
        lines.extend(self.stops());
        let (_, stage) = self.stage();
        lines.push(format!("{stage}: {}", counted(&self.report.counts())));
        lines
    }
}

pub(super) fn next_line(commands: &[String]) -> Vec<Vec<Span>> {
    match commands {
        [] => Vec::new(),
        some => vec![vec![Span::plain(format!("next: {}", some.join(" · ")))]],
    }
}

/// Commands that show the works of a cluster.
fn works(cluster: &ClusterReport) -> Vec<String> {
    let names = cluster
        .works
        .iter()
        .filter_map(|work| work.metadata.name.as_deref());
    let command = |name: &str| format!("bellwether status work/{name} -n {}", cluster.name);
    names.map(command).collect()
}

fn no_cause() -> String {
    "its member has not said why".to_owned()
}

/// What is said of a rollout that somebody holds.
pub(super) fn held(hold: Hold) -> String {
    format!("{hold}: no further cluster starts")
}

pub(super) fn waits(wait: &Wait) -> String {
    match wait {
        Wait::Held(Hold::Paused) => "waits: paused".to_owned(),
        Wait::Held(Hold::Aborted) => "stays as it is: aborted".to_owned(),
        Wait::Held(Hold::Unsettled) => "waits for all decisions of its placement".to_owned(),
        Wait::Budget(_) => "does not start".to_owned(),
        Wait::Slots { blocker, .. } => format!("waits for {}", blocker.cluster),
        Wait::Group { group, .. } => format!("waits for {group}"),
    }
}

fn step_name(step: Step) -> &'static str {
    match step {
        Step::Waiting => "waiting",
        Step::InProgress => "in progress",
        Step::Soaking => "soaking",
        Step::Failing => "failing",
        Step::Done => "done",
    }
}

pub(super) fn strategy(kind: Kind) -> &'static str {
    match kind {
        Kind::All => "All",
        Kind::Progressive => "Progressive",
        Kind::ProgressivePerGroup => "ProgressivePerGroup",
    }
}

fn counted(counts: &Counts) -> String {
    let noun = if counts.total == 1 {
        "cluster"
    } else {
        "clusters"
    };
    let mut text = format!("{} of {} {noun} done", counts.done, counts.total);
    if counts.failing > 0 {
        text = format!("{text}, {} failing", counts.failing);
    }
    text
}

#[cfg(test)]
mod tests;
