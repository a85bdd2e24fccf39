//! Replica sets of works: one work for every cluster that placements select, brought there as a
//! rollout strategy says.
//!
//! [`plan`] looks at one replica set, its works and its placements at one moment. It remembers
//! nothing: how far each cluster is can be read off its work.
//!
//! A cluster that several placements have chosen belongs to the one that the replica set names first. The
//! others leave it alone and say so in the status. When a cluster comes to belong to another placement, its
//! works stay and change their label.

pub mod control;
mod flags;
mod handover;
mod memo;
mod progress;
pub mod report;
mod retry;
mod summary;
mod tally;
mod template;
pub mod transition;
mod wanted;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::meta::ObjectMeta;
use bellwether_api::work::names::{finalizer, label};
use bellwether_api::work::{
    CascadeDeletionPolicy, ManifestWork, ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus,
    PlacementReference,
};
use bellwether_json::name::label_value_problems;
use bellwether_placement::rollout::{
    ClusterStatus, Decision, Group, GroupKey, Input, Strategy, VersionState, round,
};
use jiff::Timestamp;

use crate::Programs;
pub use bellwether_placement::rollout::Chosen;
use control::Control;
pub use memo::Memo;
use report::Report;
use summary::Findings;
use tally::Tally;
pub use tally::{ChangedWorks, Counted, count_changes};
use wanted::Wanted;

/// Everything that a decision about a replica set looks at.
pub struct Observed<'a> {
    /// The replica set.
    pub set: &'a ManifestWorkReplicaSet,
    /// What its placements have chosen, by name; those that do not exist are missing.
    pub placements: &'a BTreeMap<String, Chosen>,
    /// Its works, by its label.
    pub works: &'a [Arc<ManifestWork>],
    /// Clusters by name, for values in the template.
    pub cluster: &'a dyn Fn(&str) -> Option<Arc<ManagedCluster>>,
    /// The present.
    pub now: Timestamp,
}

impl std::fmt::Debug for Observed<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Observed")
            .field("works", &self.works.len())
            .finish_non_exhaustive()
    }
}

/// What to do for a replica set, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Set the finalizers of the replica set; nothing else is to be done in this round.
    pub finalizers: Option<Vec<String>>,
    /// Create these works, or replace those that have a resource version.
    pub write: Vec<ManifestWork>,
    /// Delete these works: namespace and name.
    pub delete: Vec<(String, String)>,
    /// The status of the replica set; nothing if it stays.
    pub status: Option<ManifestWorkReplicaSetStatus>,
    /// When to reconcile again if nothing changes.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    /// Looks again at this time at the latest.
    fn wake(&mut self, time: Option<Timestamp>) {
        self.wake_at = [self.wake_at, time].into_iter().flatten().min();
    }
}

/// Which works each cluster has. A cluster belongs to one placement, so all of them are for that one: also
/// those that another placement had written before.
type Works<'a> = BTreeMap<&'a str, Vec<&'a Arc<ManifestWork>>>;

/// Decides what to do for a replica set.
pub fn plan(observed: &Observed<'_>, programs: &Programs) -> Plan {
    plan_and_report(observed, programs, &Memo::default()).0
}

/// What to do where nothing is rolled out; otherwise the label of the works.
fn settled_plan(observed: &Observed<'_>) -> Result<Plan, String> {
    let set = observed.set;
    let finalizers = set.metadata.finalizers.clone().unwrap_or_default();
    let has_finalizer = finalizers.iter().any(|name| name == finalizer::REPLICA_SET);
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(if has_finalizer {
            removal(observed, finalizers)
        } else {
            Plan::default()
        });
    }
    if !has_finalizer {
        let mut all = finalizers;
        all.push(finalizer::REPLICA_SET.to_owned());
        return Ok(Plan {
            finalizers: Some(all),
            ..Plan::default()
        });
    }
    let owner = owner_label(set);
    if let Some(problem) = label_value_problems(&owner).into_iter().next() {
        let status = summary::invalid_name(set, &owner, &problem, observed.now);
        return Ok(changed(set, status, Plan::default()));
    }
    Err(owner)
}

/// Reports how far a replica set is: every cluster, what it waits for, and what stops the rollout.
pub fn report(observed: &Observed<'_>, programs: &Programs) -> Report {
    rollout(
        observed,
        programs,
        &Memo::default(),
        &owner_label(observed.set),
    )
    .1
}

/// Decides what to do for a replica set, and reports how far it is if something is rolled out. `memo` is
/// the same for all plans of one replica set: with it, a plan costs little where little has changed.
pub fn plan_and_report(
    observed: &Observed<'_>,
    programs: &Programs,
    memo: &Memo,
) -> (Plan, Option<Report>) {
    match settled_plan(observed) {
        Ok(plan) => (plan, None),
        Err(owner) => {
            let (plan, report) = rollout(observed, programs, memo, &owner);
            (plan, Some(report))
        }
    }
}

/// Namespace and name of a replica set, as its works have them.
pub fn owner_label(set: &ManifestWorkReplicaSet) -> String {
    format!(
        "{}.{}",
        set.metadata.namespace.as_deref().unwrap_or_default(),
        set.metadata.name.as_deref().unwrap_or_default()
    )
}

fn changed(set: &ManifestWorkReplicaSet, status: ManifestWorkReplicaSetStatus, plan: Plan) -> Plan {
    Plan {
        status: (set.status.as_ref() != Some(&status)).then_some(status),
        ..plan
    }
}

/// Works go first, and the replica set at once or after them.
fn removal(observed: &Observed<'_>, mut finalizers: Vec<String>) -> Plan {
    let delete: Vec<_> = observed
        .works
        .iter()
        .filter(|work| work.metadata.deletion_timestamp.is_none())
        .map(|work| key_of(&work.metadata))
        .collect();
    let waits = observed.set.spec.cascade_deletion_policy == CascadeDeletionPolicy::Foreground
        && !observed.works.is_empty();
    finalizers.retain(|name| name != finalizer::REPLICA_SET);
    Plan {
        delete,
        finalizers: (!waits).then_some(finalizers),
        ..Plan::default()
    }
}

fn key_of(metadata: &ObjectMeta) -> (String, String) {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

fn label_of<'a>(work: &'a ManifestWork, name: &str) -> Option<&'a str> {
    work.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// How one placement of a replica set stands.
struct Placed<'a> {
    name: &'a str,
    strategy: Strategy,
    /// Its decision groups, without clusters that belong to others.
    groups: Cow<'a, [Group]>,
    /// How many clusters it has chosen, without those that belong to others.
    selected: i64,
    /// The clusters that it has chosen, but that belong to a placement that is named before it.
    ceded: Vec<Ceded<'a>>,
    /// What is known of clusters about the present template.
    statuses: Vec<ClusterStatus>,
    /// Clusters whose works are as they should be, with these works.
    current: BTreeMap<Arc<str>, Vec<&'a Arc<ManifestWork>>>,
    succeeded: usize,
    /// Why clusters cannot have works at all.
    impossible: BTreeMap<Arc<str>, String>,
    decision: Decision,
}

/// A cluster that several placements have chosen.
struct Ceded<'a> {
    cluster: &'a str,
    /// The placement that it belongs to.
    owner: &'a str,
}

/// What is known of all placements of a replica set together.
#[derive(Default)]
struct Outlook<'a> {
    placed: Vec<Placed<'a>>,
    /// Placements that do not exist.
    missing: Vec<&'a str>,
    /// Why a placement could not even be looked at.
    wrong: Option<String>,
}

fn rollout(
    observed: &Observed<'_>,
    programs: &Programs,
    memo: &Memo,
    owner: &str,
) -> (Plan, Report) {
    let set = observed.set;
    let control = Control::of(set);
    let references = &set.spec.placement_refs;
    let owners = owners(observed);
    let works = works_by_cluster(observed);
    let mut result = Plan::default();
    let mut outlook = Outlook::default();
    for (index, reference) in references.iter().enumerate() {
        // Of a placement that is named twice, the first strategy counts.
        if references[..index]
            .iter()
            .any(|it| it.name == reference.name)
        {
            continue;
        }
        let Some(chosen) = observed.placements.get(&reference.name) else {
            // Its works stay as they are: who deletes a placement need not mean them.
            outlook.missing.push(&reference.name);
            continue;
        };
        let one = Rollout {
            observed,
            reference,
            chosen,
            owners: &owners,
            wanted: Wanted::new(observed, programs, owner, &reference.name),
            memo,
            control: &control,
        };
        match one.decide(&works, &mut result) {
            Ok(one) => {
                if let Some(retried_at) = control.retried_at {
                    retry::record(&one, retried_at, &mut result);
                }
                outlook.placed.push(one);
            }
            Err(error) => outlook.wrong = Some(format!("{}: {error}", reference.name)),
        }
    }
    handover::delete_unwanted(observed, &owners, &outlook, &mut result);
    memo.retain(observed.works.iter().map(AsRef::as_ref));
    let report = report::of(&outlook, &control);
    memo.set_tally(Tally::of(set, &outlook, &report, &control, &result));
    let status = summary::of(set, &Findings::of(&outlook, &report), observed.now);
    (changed(set, status, result), report)
}

/// The placement that each cluster belongs to: of those that have chosen it, the one that the replica set
/// names first.
fn owners<'a>(observed: &Observed<'a>) -> BTreeMap<&'a str, &'a str> {
    let mut owners = BTreeMap::new();
    for reference in &observed.set.spec.placement_refs {
        let chosen = observed.placements.get(&reference.name);
        for cluster in chosen.into_iter().flat_map(Chosen::clusters) {
            owners.entry(cluster).or_insert(reference.name.as_str());
        }
    }
    owners
}

fn works_by_cluster<'a>(observed: &Observed<'a>) -> Works<'a> {
    let mut works: Works<'_> = BTreeMap::new();
    for work in observed.works {
        let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
        works.entry(cluster).or_default().push(work);
    }
    works
}

/// One placement of a replica set.
struct Rollout<'a> {
    observed: &'a Observed<'a>,
    reference: &'a PlacementReference,
    chosen: &'a Chosen,
    owners: &'a BTreeMap<&'a str, &'a str>,
    wanted: Wanted<'a>,
    memo: &'a Memo,
    control: &'a Control,
}

impl<'a> Rollout<'a> {
    fn decide(&self, works: &Works<'a>, plan: &mut Plan) -> Result<Placed<'a>, String> {
        let strategy = self.strategy()?;
        let now = self.observed.now;
        let ceded = self.ceded();
        let groups = self.own_groups(ceded.is_empty());
        let gone = self.gone(works);
        let input = Input {
            hold: self.control.hold.or(self.chosen.hold(strategy.kind)),
            ..Input::new(&strategy, &groups, &gone, now)
        };
        let mut current = BTreeMap::new();
        let round = round(&input, |cluster, group| {
            let there = works.get(&**cluster).map_or(&[][..], Vec::as_slice);
            match self.wanted.parts(cluster) {
                Ok(parts) if self.wanted.is_current(&parts, there, self.memo) => {
                    handover::adopt(&self.wanted, there, plan);
                    let known = progress::of_cluster(cluster, group, there);
                    let (known, wake_at) = retry::restart(known, there, now);
                    plan.wake(wake_at);
                    current.insert(Arc::clone(cluster), there.to_vec());
                    VersionState::Current(known.status, known.last_transition)
                }
                Ok(parts) => VersionState::Behind(parts),
                // It keeps what it has.
                Err(error) => VersionState::Impossible(error),
            }
        });
        let round = round.map_err(|error| error.to_string())?;
        for (cluster, parts) in &round.start {
            let there = works.get(&**cluster).map_or(&[][..], Vec::as_slice);
            handover::write(&self.wanted.works(cluster, parts), there, plan);
        }
        plan.wake(round.wake_at);
        let is_current = |it: &&ClusterStatus| current.contains_key(&it.cluster);
        let known = round.statuses.iter().filter(is_current);
        Ok(Placed {
            name: &self.reference.name,
            selected: self.chosen.selected - i64::try_from(ceded.len()).unwrap_or(i64::MAX),
            ceded,
            succeeded: known.filter(|it| progress::is_done(it)).count(),
            current,
            impossible: round.impossible.into_iter().collect(),
            decision: round.decision,
            statuses: round.statuses,
            groups,
            strategy,
        })
    }

    /// The clusters that belong to a placement that is named before this one.
    fn ceded(&self) -> Vec<Ceded<'a>> {
        let ceded = |cluster: &'a str| {
            let owner = *self.owners.get(cluster)?;
            (owner != self.reference.name).then_some(Ceded { cluster, owner })
        };
        self.chosen.clusters().filter_map(ceded).collect()
    }

    /// The groups that the placement has chosen, without clusters that belong to others.
    fn own_groups(&self, is_all: bool) -> Cow<'a, [Group]> {
        if is_all {
            return Cow::Borrowed(&self.chosen.groups);
        }
        let is_own = |cluster: &&Arc<str>| {
            self.owners.get(&***cluster) == Some(&self.reference.name.as_str())
        };
        let own = |group: &Group| Group {
            key: group.key.clone(),
            clusters: group.clusters.iter().filter(is_own).cloned().collect(),
        };
        self.chosen.groups.iter().map(own).collect()
    }

    fn strategy(&self) -> Result<Strategy, String> {
        let written = self.reference.rollout_strategy.as_ref();
        let strategy = written.map(Strategy::try_from).transpose();
        let strategy = strategy.map_err(|error| error.to_string())?;
        Ok(strategy.unwrap_or_default())
    }

    /// Clusters that are no longer chosen, but have works: the rollout gets them as well.
    fn gone(&self, works: &Works<'_>) -> Vec<ClusterStatus> {
        let group = GroupKey {
            name: "".into(),
            index: 0,
        };
        let was_here = |work: &&Arc<ManifestWork>| {
            label_of(work, label::PLACEMENT_NAME) == Some(self.reference.name.as_str())
        };
        let gone = works.iter().filter(|(cluster, there)| {
            !self.owners.contains_key(**cluster) && there.iter().any(was_here)
        });
        gone.map(|(cluster, there)| progress::of_cluster(cluster, &group, there))
            .collect()
    }
}

fn part_of(work: &ManifestWork) -> &str {
    label_of(work, label::PART).unwrap_or("0")
}

/// Whether a work has the content that it should have, and the labels: those that the replica set no
/// longer has are not left behind. Which placement it was written for makes no difference.
fn is_same(wanted: &ManifestWork, work: &ManifestWork) -> bool {
    let labels = wanted.metadata.labels.as_ref();
    labels.is_some_and(|labels| handover::has_labels(work, labels))
        && template::is_same_spec(&wanted.spec, &work.spec)
}

#[cfg(test)]
mod tests;
