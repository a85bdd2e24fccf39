//! What the hub does about a cluster, from what is known of it at one moment.

use bellwether_api::cluster::names::{
    annotation, condition, finalizer, label, object, reason, taint,
};
use bellwether_api::cluster::{ManagedCluster, Taint, TaintEffect};
use bellwether_api::meta::{self, Condition, FALSE, TRUE, Time, UNKNOWN, is_true, set_condition};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::heartbeats::{Contact, MISSED_RENEWALS};
use super::rights::ClusterAccess;

/// How long to wait at most for the removal of what a cluster runs before looking again.
const CLEANUP_INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// And at least. Agents mostly need less than a second, and a person may be waiting.
const FIRST_CLEANUP_INTERVAL: SignedDuration = SignedDuration::from_millis(100);

/// What is known of a cluster.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) cluster: &'a ManagedCluster,
    pub(super) has_lease: bool,
    /// What this process knows of its heartbeats.
    pub(super) contact: Contact,
    /// By how much its clock was off when it renewed the lease while the hub looked on.
    pub(super) skew: Option<SignedDuration>,
    /// What is left of it; known only if it matters ([`needs_remains`]).
    pub(super) remains: Option<Remains>,
    pub(super) now: Timestamp,
}

/// What has to be gone before a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remains {
    /// How many works there are.
    pub(super) works: usize,
    /// What goes next, if anything is left.
    pub(super) turn: Option<Turn>,
}

/// What goes next when a cluster leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    /// What it is called.
    pub(super) resource: &'static str,
    /// How many of it are left.
    pub(super) count: usize,
    /// How many of these only wait for finalizers.
    pub(super) pending: usize,
}

/// What is to be done, in the order of the fields.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// What to do around the cluster, in this order.
    pub(super) actions: Vec<Action>,
    /// Write these conditions.
    pub(super) conditions: Option<Vec<Condition>>,
    /// Merge this into the cluster: labels, finalizers, taints.
    pub(super) patch: Option<Value>,
    /// When to reconcile again if nothing changes before.
    pub(super) wake_at: Option<Timestamp>,
}

/// Something to do around a cluster. All of them may be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Delete that of what it runs whose turn it is.
    CleanUp,
    /// Give rights, and the namespace if it is missing.
    Grant(ClusterAccess),
    /// Take away the bindings in the namespace.
    Revoke,
    /// Create the lease.
    CreateLease,
    /// Take away all rights, and the lease.
    Remove,
}

/// Whether it matters what is left in the namespace of a cluster.
pub(super) fn needs_remains(cluster: &ManagedCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_some() || is_denied(cluster)
}

fn is_denied(cluster: &ManagedCluster) -> bool {
    let conditions = conditions(cluster);
    !cluster.spec.hub_accepts_client
        && meta::condition(conditions, condition::HUB_ACCEPTED).is_some()
}

fn conditions(cluster: &ManagedCluster) -> &[Condition] {
    let status = cluster.status.as_ref();
    status.map_or(&[], |status| status.conditions.as_slice())
}

/// By how much the clock of a cluster may be off.
pub(super) fn tolerated_skew(cluster: &ManagedCluster) -> SignedDuration {
    let grace = cluster.lease_duration() * MISSED_RENEWALS;
    SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX)
}

/// True if a loss of heartbeats is noticed by this cluster: the hub accepts it and has not given it up.
pub(super) fn counts_for_loss(cluster: &ManagedCluster) -> bool {
    cluster.spec.hub_accepts_client
        && cluster.metadata.deletion_timestamp.is_none()
        && meta::condition(conditions(cluster), condition::AVAILABLE).is_some()
        && !is_tainted(&cluster.spec.taints, taint::UNREACHABLE)
}

/// True if silence of this cluster is not recorded yet in its status and its taints.
pub(super) fn is_silence_unrecorded(cluster: &ManagedCluster) -> bool {
    let available = meta::condition(conditions(cluster), condition::AVAILABLE);
    available.is_none_or(|it| it.status != UNKNOWN)
        || !is_tainted(&cluster.spec.taints, taint::UNREACHABLE)
}

fn is_tainted(taints: &[Taint], key: &str) -> bool {
    taints.iter().any(|taint| taint.key == key)
}

/// Decides about a cluster.
pub(super) fn decide(observed: &Observed<'_>) -> Plan {
    if observed.cluster.metadata.deletion_timestamp.is_some() {
        return leave(observed);
    }
    let cluster = observed.cluster;
    let mut plan = Plan::default();
    let mut conditions = conditions(cluster).to_vec();
    let before = conditions.clone();
    if cluster.spec.hub_accepts_client {
        plan.actions.push(Action::Grant(ClusterAccess::Accepted));
        let accepted = [
            reason::HUB_CLUSTER_ADMIN_ACCEPTED,
            "Accepted by hub cluster admin",
        ];
        update_condition(
            &mut conditions,
            condition::HUB_ACCEPTED,
            TRUE,
            accepted,
            observed.now,
        );
        if !observed.has_lease {
            plan.actions.push(Action::CreateLease);
        }
    } else if is_denied(cluster) {
        deny(observed, &mut plan, &mut conditions);
    }
    set_availability(observed, &mut conditions);
    plan.patch = patch(cluster, &conditions, observed.contact, observed.now);
    if conditions != before {
        plan.conditions = Some(conditions);
    }
    plan
}

/// A cluster that was accepted is not any more. What it runs is removed by its agent, which needs
/// its rights on works until then.
fn deny(observed: &Observed<'_>, plan: &mut Plan, conditions: &mut Vec<Condition>) {
    let works = observed.remains.as_ref().map_or(0, |remains| remains.works);
    if works > 0 {
        let denied = meta::condition(conditions, condition::HUB_ACCEPTED)
            .filter(|it| it.status == FALSE)
            .map_or(observed.now, |it| it.last_transition_time.0);
        plan.wake_at = next_check(denied, observed.now);
    } else {
        plan.actions = vec![Action::Grant(ClusterAccess::Denied), Action::Revoke];
    }
    let denied = [
        reason::HUB_CLUSTER_ADMIN_DENIED,
        "Denied by hub cluster admin",
    ];
    update_condition(
        conditions,
        condition::HUB_ACCEPTED,
        FALSE,
        denied,
        observed.now,
    );
}

/// Sets the conditions that follow from heartbeats of a cluster.
fn set_availability(observed: &Observed<'_>, conditions: &mut Vec<Condition>) {
    let now = observed.now;
    let tolerated = tolerated_skew(observed.cluster);
    if let Some(skew) = observed.skew {
        let is_skipped = observed
            .cluster
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|it| {
                it.get(annotation::SKIP_CLOCK_SYNC_CHECK)
                    .is_some_and(|value| value == "true")
            });
        let (status, words) = if is_skipped || skew.abs() < tolerated {
            (
                TRUE,
                [
                    reason::CLOCK_SYNCED,
                    "The clock of the managed cluster is synced with the hub.",
                ],
            )
        } else {
            (
                FALSE,
                [
                    reason::CLOCK_OUT_OF_SYNC,
                    "The clock of hub and agent is out of sync. This may cause the Unknown status and \
                 affect agent functionalities.",
                ],
            )
        };
        update_condition(conditions, condition::CLOCK_SYNCED, status, words, now);
    }
    let was_accepted = meta::condition(conditions, condition::HUB_ACCEPTED).is_some();
    if was_accepted && observed.has_lease && observed.contact.is_silent {
        fall_silent(conditions, now);
    }
}

fn fall_silent(conditions: &mut Vec<Condition>, now: Timestamp) {
    let stopped = [
        reason::LEASE_UPDATE_STOPPED,
        "Registration agent stopped updating its lease.",
    ];
    update_condition(conditions, condition::AVAILABLE, UNKNOWN, stopped, now);
}

fn update_condition(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: &str,
    [reason, message]: [&str; 2],
    now: Timestamp,
) {
    let condition = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(now),
        observed_generation: None,
    };
    set_condition(conditions, condition);
}

/// What is to be merged into a cluster that is about to be accepted, so that this is one write.
pub(super) fn acceptance(cluster: &ManagedCluster, now: Timestamp) -> Value {
    let mut accepted = cluster.clone();
    accepted.spec.hub_accepts_client = true;
    let patch = patch(&accepted, conditions(cluster), Contact::default(), now);
    let mut patch = patch.unwrap_or_else(|| json!({}));
    patch["metadata"]["annotations"] =
        json!({annotation::AUTOMATICALLY_ACCEPTED_ON: now.to_string()});
    patch["spec"]["hubAcceptsClient"] = json!(true);
    patch
}

/// What is to be merged into the cluster itself.
fn patch(
    cluster: &ManagedCluster,
    conditions: &[Condition],
    contact: Contact,
    now: Timestamp,
) -> Option<Value> {
    let mut metadata = json!({});
    let mut patch = json!({});
    let labels = cluster.metadata.labels.as_ref();
    if labels.is_none_or(|it| it.get(label::CLUSTER_SET).is_none_or(String::is_empty)) {
        metadata["labels"] = json!({label::CLUSTER_SET: object::DEFAULT_CLUSTER_SET});
    }
    let mut finalizers = cluster.metadata.finalizers.clone().unwrap_or_default();
    let wanted = [finalizer::API_RESOURCE_CLEANUP, finalizer::RESOURCE_CLEANUP];
    let is_missing = |it: &&str| !finalizers.iter().any(|known| known == it);
    let missing: Vec<String> = wanted
        .iter()
        .copied()
        .filter(is_missing)
        .map(str::to_owned)
        .collect();
    if cluster.spec.hub_accepts_client && !missing.is_empty() {
        finalizers.extend(missing);
        metadata["finalizers"] = json!(finalizers);
    }
    let wanted = wanted_taint(conditions, contact);
    if let Some(taints) = taints(&cluster.spec.taints, wanted, now) {
        patch["spec"] = json!({"taints": taints});
    }
    if metadata != json!({}) {
        patch["metadata"] = metadata;
    }
    (patch != json!({})).then_some(patch)
}

/// What is to become of the taints that the hub sets itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedTaint {
    Nothing,
    Only(&'static str),
    /// Nobody knows, or nothing may be done about it at present.
    AsItIs,
}

/// The taint that a cluster should have by its conditions. Silence taints a cluster only if this process
/// noticed it, and if it is not one of too many.
fn wanted_taint(conditions: &[Condition], contact: Contact) -> WantedTaint {
    let available = meta::condition(conditions, condition::AVAILABLE);
    match available.map(|it| it.status.as_str()) {
        Some(TRUE) => WantedTaint::Nothing,
        Some(FALSE) => WantedTaint::Only(taint::UNAVAILABLE),
        Some(_) if !contact.is_silent || contact.is_held => WantedTaint::AsItIs,
        _ => WantedTaint::Only(taint::UNREACHABLE),
    }
}

/// The taints that a cluster should have, if it has others: those that are not ours stay.
fn taints(current: &[Taint], wanted: WantedTaint, now: Timestamp) -> Option<Vec<Taint>> {
    let is_ours = |it: &Taint| [taint::UNAVAILABLE, taint::UNREACHABLE].contains(&it.key.as_str());
    let is_right = |it: &Taint| match wanted {
        WantedTaint::Nothing => false,
        WantedTaint::Only(key) => it.key == key,
        WantedTaint::AsItIs => true,
    };
    let mut taints: Vec<Taint> = current
        .iter()
        .filter(|it| !is_ours(it) || is_right(it))
        .cloned()
        .collect();
    if let WantedTaint::Only(key) = wanted
        && !is_tainted(&taints, key)
    {
        taints.push(Taint {
            key: key.to_owned(),
            effect: TaintEffect::NoSelect,
            ..Taint::default()
        });
    }
    // Where the server does not say since when a taint is there, somebody has to: tolerations
    // count from then. One that does say so never leaves it out.
    for taint in &mut taints {
        let is_known = current.iter().any(|it| it == taint);
        if is_known && taint.time_added.is_none() {
            taint.time_added = Some(Time(now));
        }
    }
    (taints != current).then_some(taints)
}

/// What the conditions of a cluster say when something around it could not be done; nothing if they
/// say so already, or have nothing to do with it.
pub(super) fn failed(
    cluster: &ManagedCluster,
    action: Action,
    error: &str,
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let mut conditions = conditions(cluster).to_vec();
    let before = conditions.clone();
    match action {
        Action::CleanUp | Action::Remove => {
            let words = [reason::DELETING_ERROR, error];
            update_condition(&mut conditions, condition::DELETING, FALSE, words, now);
        }
        // One that has its rights keeps them, and is not told otherwise for a moment's trouble.
        Action::Grant(ClusterAccess::Accepted) if !is_true(&before, condition::HUB_ACCEPTED) => {
            let words = [reason::ERROR, error];
            update_condition(&mut conditions, condition::HUB_ACCEPTED, FALSE, words, now);
        }
        Action::Grant(_) | Action::Revoke | Action::CreateLease => {}
    }
    (conditions != before).then_some(conditions)
}

/// When to check again whether a clean-up is done: soon at first, and ever later the longer it takes.
fn next_check(since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let wait = now.duration_since(since) / 4;
    let wait = wait.max(FIRST_CLEANUP_INTERVAL).min(CLEANUP_INTERVAL);
    now.checked_add(wait).ok()
}

/// A cluster is on its way out: first what it runs, then its rights, then itself.
fn leave(observed: &Observed<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut conditions = conditions(observed.cluster).to_vec();
    let before = conditions.clone();
    let now = observed.now;
    if observed.has_lease {
        set_availability(observed, &mut conditions);
    } else if is_true(&conditions, condition::HUB_ACCEPTED) {
        fall_silent(&mut conditions, now);
    }
    let remains = observed.remains.clone().unwrap_or_default();
    if let Some(turn) = remains.turn {
        plan.actions.push(Action::CleanUp);
        let since = observed.cluster.metadata.deletion_timestamp.as_ref();
        plan.wake_at = next_check(since.map_or(now, |it| it.0), now);
        // The word is the peer's, whose tools may look for it.
        let message = format!(
            "The resource {} is remaning, the remaining count is {}, the finalizer pending count \
             is {}",
            turn.resource, turn.count, turn.pending
        );
        let words = [reason::RESOURCE_REMAINING, message.as_str()];
        update_condition(&mut conditions, condition::DELETING, FALSE, words, now);
    } else {
        plan.actions.push(Action::Remove);
        let words = [reason::NO_RESOURCE, "No cleaned resource in cluster ns."];
        update_condition(&mut conditions, condition::DELETING, TRUE, words, now);
        let ours = [finalizer::API_RESOURCE_CLEANUP, finalizer::RESOURCE_CLEANUP];
        let finalizers = observed
            .cluster
            .metadata
            .finalizers
            .clone()
            .unwrap_or_default();
        let others: Vec<&String> = finalizers
            .iter()
            .filter(|it| !ours.contains(&it.as_str()))
            .collect();
        if others.len() < finalizers.len() {
            plan.patch = Some(json!({"metadata": {"finalizers": others}}));
        }
    }
    if conditions != before {
        plan.conditions = Some(conditions);
    }
    plan
}
