//! How far one cluster is with its version.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::meta::MicroTime;
use bellwether_api::policy::{ClusterCompliance, Policy, RolloutStatus};
use bellwether_placement::rollout::VersionState;
use jiff::Timestamp;

use super::{Mark, Mode, Observed, Write, engine_status};
use crate::propagation::{Evaluation, Form, Replica, Version, is_released};

/// What the root policy says so far.
pub(super) struct Past<'a> {
    clusters: HashMap<&'a str, (&'a RolloutStatus, Timestamp)>,
    pub(super) stage: Option<&'a RolloutStatus>,
    pub(super) stage_since: Option<Timestamp>,
    pub(super) start: Option<Timestamp>,
}

impl<'a> Past<'a> {
    pub(super) fn of(root: &'a Policy) -> Self {
        let status = root.status.as_ref();
        let entries = status.map_or(&[][..], |status| &status.status);
        let known = |entry: &'a ClusterCompliance| {
            let since = entry.rollout_status_last_transition_time.as_ref();
            let since = since.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
            let status = entry.rollout_status.as_ref()?;
            Some((entry.cluster_name.as_str(), (status, since)))
        };
        let time = |time: &'a Option<MicroTime>| time.as_ref().map(|time| time.0);
        Self {
            clusters: entries.iter().filter_map(known).collect(),
            stage: status.and_then(|it| it.rollout_status.as_ref()),
            stage_since: status.and_then(|it| time(&it.rollout_status_last_transition_time)),
            start: status.and_then(|it| time(&it.rollout_start_time)),
        }
    }

    pub(super) fn of_cluster(&self, cluster: &str) -> Option<(&'a RolloutStatus, Timestamp)> {
        self.clusters.get(cluster).copied()
    }

    /// True if a cluster was done before the present rollout began.
    fn is_frozen(&self, (status, since): (&RolloutStatus, Timestamp)) -> bool {
        let was_before = self.start.is_some_and(|start| since < start);
        let is_over = self.stage == Some(&RolloutStatus::Succeeded);
        *status == RolloutStatus::Succeeded && (is_over || was_before)
    }
}

/// By what the reports of clusters are judged.
pub(super) struct Rules {
    /// The policy only informs: any report is a success.
    pub(super) is_inform: bool,
    /// A cluster that does not comply yet may still do so until its deadline.
    pub(super) holds_failures: bool,
    pub(super) now: Timestamp,
}

/// Where a cluster stands with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// It has the version as inform, or is about to.
    Waiting,
    /// It waits, and everything is as it should be before a release.
    Eligible,
    /// It is about to get another version than the root policy speaks of.
    Restarted,
    /// It has the version as it is meant.
    Released,
}

/// How far one cluster is.
pub(super) struct Track<'a> {
    pub(super) cluster: &'a Arc<str>,
    pub(super) replica: Option<&'a Arc<Replica>>,
    version: Arc<Version>,
    is_progressive: bool,
    /// The form that its replica has to be written in.
    pub(super) write: Option<Form>,
    pub(super) position: Position,
    pub(super) status: RolloutStatus,
    pub(super) since: Timestamp,
    pub(super) evaluation: Evaluation,
    /// Why its replica cannot be written.
    refused: Option<String>,
}

impl<'a> Track<'a> {
    pub(super) fn of(
        observed: &Observed<'a>,
        cluster: &'a Arc<str>,
        mode: &Mode,
        past: &Past<'_>,
        rules: &Rules,
    ) -> Self {
        let replica = observed.replicas.get(cluster);
        let mut track = Self {
            cluster,
            // One that is being deleted is made again once it is gone.
            replica: replica.filter(|it| !it.is_deleting),
            version: (observed.version)(cluster),
            is_progressive: mode.is_progressive,
            write: None,
            position: Position::Released,
            status: RolloutStatus::Progressing,
            since: rules.now,
            evaluation: Evaluation::Unknown,
            refused: observed.refused.get(cluster).cloned(),
        };
        if mode.is_progressive {
            track.step_by_step(observed, past, rules);
        } else {
            track.at_once(observed, past, rules);
        }
        if replica.is_some_and(|it| it.is_deleting) {
            track.write = None;
        }
        track
    }

    /// The cluster gets every version as it is meant.
    fn at_once(&mut self, observed: &Observed<'_>, past: &Past<'_>, rules: &Rules) {
        self.write_unless_same(observed, Form::Released);
        let has_version = |it: &Arc<Replica>| it.version == self.version.id;
        let known = past.of_cluster(self.cluster);
        match known.filter(|(status, _)| is_released(status)) {
            Some(known) if self.replica.is_some_and(has_version) => self.judge(known, past, rules),
            _ => self.position = Position::Restarted,
        }
    }

    /// The cluster gets a version as inform until it is released.
    fn step_by_step(&mut self, observed: &Observed<'_>, past: &Past<'_>, rules: &Rules) {
        let known = past.of_cluster(self.cluster);
        if self.is_released(known.map(|(status, _)| status)) {
            self.write_unless_same(observed, Form::Released);
            let released = known.filter(|(status, _)| is_released(status));
            // The hub was stopped between a release and what it says about it.
            self.judge(
                released.unwrap_or((&RolloutStatus::Progressing, rules.now)),
                past,
                rules,
            );
            return;
        }
        self.position = Position::Waiting;
        self.write_unless_same(observed, Form::Informed);
        self.status = RolloutStatus::ToApply;
        if let Some((RolloutStatus::ToApply, since)) = known {
            self.since = since;
            if self.write.is_none() && self.replica.is_some() {
                self.position = Position::Eligible;
            }
        }
    }

    /// True if the cluster has its version as it is meant.
    fn is_released(&self, known: Option<&RolloutStatus>) -> bool {
        let Some(replica) = self.replica else {
            return false;
        };
        let version = &self.version;
        let is_known = known.is_some_and(is_released);
        let meant = &version.spec(Form::Released).remediation_action;
        if version.is_named_by(replica) {
            // A replica in the form of inform waits, whatever is said about the version before. One that is
            // neither was changed by somebody, or its strategy was.
            let is_exact = version.is_spec_of(replica, Form::Released);
            return replica.remediation_action == *meant && (is_exact || is_known);
        }
        // It came to all clusters at once, and the strategy was changed since.
        replica.version_named.is_none() && replica.version == version.id && is_known
    }

    fn write_unless_same(&mut self, observed: &Observed<'_>, form: Form) {
        let is_same = self.replica.is_some_and(|replica| {
            let blueprint = observed.blueprint;
            blueprint.is_same(replica, &self.version, form, self.is_progressive)
        });
        if !is_same {
            self.write = Some(form);
        }
    }

    /// Follows what the cluster reports about the version that it has.
    fn judge(&mut self, known: (&RolloutStatus, Timestamp), past: &Past<'_>, rules: &Rules) {
        let (before, since) = known;
        self.status = before.clone();
        self.since = since;
        let Some(replica) = self.replica else {
            return;
        };
        self.evaluation = replica.evaluation(since);
        if past.is_frozen(known) {
            return;
        }
        if let Some(status) = followed(before, self.evaluation, rules) {
            self.set(status, rules.now);
        }
    }

    /// Changes how far the cluster is. The time changes with the value only.
    pub(super) fn set(&mut self, status: RolloutStatus, now: Timestamp) {
        if self.status != status {
            self.status = status;
            self.since = now;
        }
    }

    /// True if the cluster has not been released.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.position, Position::Waiting | Position::Eligible)
    }

    /// True if the replica has to be written, and the server has not refused it.
    pub(super) fn is_about_to_be_written(&self) -> bool {
        self.write.is_some() && self.refused.is_none()
    }

    /// How the rollout sees the cluster.
    pub(super) fn standing(&self) -> VersionState<()> {
        match &self.refused {
            Some(refused) if self.write.is_some() => VersionState::Impossible(refused.clone()),
            _ if self.is_waiting() => VersionState::Behind(()),
            _ => VersionState::Current(engine_status(&self.status), Some(self.since)),
        }
    }

    pub(super) fn to_write(&self) -> Option<Write> {
        Some(Write {
            cluster: Arc::clone(self.cluster),
            version: Arc::clone(&self.version),
            form: self.write?,
            is_progressive: self.is_progressive,
            replaces: self.replica.cloned(),
        })
    }

    /// What the replica has to say, if it says something else. The agent says the rest.
    pub(super) fn to_mark(&self) -> Option<Mark> {
        let status = match self.replica {
            Some(it) => to_be_marked(&self.status, it, self.since, self.write.is_none()),
            None => status_to_write(&self.status, None, false),
        }?;
        Some(Mark {
            cluster: Arc::clone(self.cluster),
            status,
            since: self.since,
        })
    }

    /// What the root policy says of the cluster.
    pub(super) fn entry(&self) -> ClusterCompliance {
        ClusterCompliance {
            compliant: self.replica.and_then(|it| it.report.compliant.clone()),
            rollout_status: Some(self.status.clone()),
            rollout_status_last_transition_time: Some(MicroTime(self.since)),
            cluster_name: self.cluster.to_string(),
            cluster_namespace: self.cluster.to_string(),
            ..ClusterCompliance::default()
        }
    }
}

/// How far a cluster is by what it found; nothing if that changes nothing.
pub(super) fn followed(
    before: &RolloutStatus,
    evaluation: Evaluation,
    rules: &Rules,
) -> Option<RolloutStatus> {
    let is_held = rules.holds_failures && *before == RolloutStatus::Progressing;
    match evaluation {
        Evaluation::Unknown | Evaluation::Pending => None,
        Evaluation::Compliant => Some(RolloutStatus::Succeeded),
        Evaluation::NonCompliant if rules.is_inform => Some(RolloutStatus::Succeeded),
        Evaluation::NonCompliant if is_held => None,
        Evaluation::NonCompliant => Some(RolloutStatus::Failed),
    }
}

/// What a replica has to say about a cluster that is this far, if it says something else. `is_kept` is false if the
/// replica is about to be written.
pub(super) fn to_be_marked(
    status: &RolloutStatus,
    replica: &Replica,
    since: Timestamp,
    is_kept: bool,
) -> Option<RolloutStatus> {
    let said = replica.report.rollout_status.as_ref();
    let is_about_this = is_kept && replica.is_rollout_status_current(since);
    status_to_write(status, said, is_about_this)
}

fn status_to_write(
    status: &RolloutStatus,
    said: Option<&RolloutStatus>,
    is_about_this: bool,
) -> Option<RolloutStatus> {
    let is_by_agent = matches!(said, Some(RolloutStatus::Succeeded | RolloutStatus::Failed));
    let wanted = match status {
        RolloutStatus::ToApply => RolloutStatus::ToApply,
        RolloutStatus::TimeOut if !is_by_agent => RolloutStatus::TimeOut,
        RolloutStatus::Progressing if !(is_by_agent && is_about_this) => RolloutStatus::Progressing,
        // The agent replaces it at once: it reported before the hub had said that it may.
        RolloutStatus::Succeeded | RolloutStatus::Failed if !is_by_agent => {
            RolloutStatus::Progressing
        }
        _ => return None,
    };
    (said != Some(&wanted)).then_some(wanted)
}
