//! The events of a cluster when it joins, becomes unreachable, comes back, or leaves.

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::{condition, event, reason};
use bellwether_api::meta::{Condition, FALSE, TRUE, UNKNOWN, condition as find};
use bellwether_runtime::{Change, EventDraft, EventType, Recorder};

/// Records every change of a cluster that a person would want to know of.
pub(super) fn record(events: &Recorder, change: &Change<'_, ManagedCluster>) {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return;
    };
    for happening in between(old, new) {
        events.record(&**new, happening);
    }
}

/// What happened between two states of a cluster.
fn between(old: &ManagedCluster, new: &ManagedCluster) -> Vec<EventDraft> {
    let name = new.metadata.name.as_deref().unwrap_or_default();
    let mut happenings = Vec::new();
    let conditions = [
        condition::HUB_ACCEPTED,
        condition::JOINED,
        condition::AVAILABLE,
        condition::CLOCK_SYNCED,
        condition::CERTIFICATE_ROTATED,
    ];
    for kind in conditions {
        let before = find_condition(old, kind);
        let Some(now) = find_condition(new, kind) else {
            continue;
        };
        // Certificates are rotated again and again, and only the message tells.
        let is_same = before.is_some_and(|before| {
            before.status == now.status
                && (kind != condition::CERTIFICATE_ROTATED || before.message == now.message)
        });
        if !is_same {
            happenings.extend(words(name, kind, before.is_none(), now));
        }
    }
    let is_leaving = |cluster: &ManagedCluster| cluster.metadata.deletion_timestamp.is_some();
    if is_leaving(new) && !is_leaving(old) {
        let message = format!("The cluster {name} leaves: what it runs is removed first");
        happenings.push(EventDraft::normal(event::DETACHING, message));
    }
    happenings
}

fn find_condition<'a>(cluster: &'a ManagedCluster, kind: &str) -> Option<&'a Condition> {
    find(&cluster.status.as_ref()?.conditions, kind)
}

fn words(name: &str, kind: &str, is_first: bool, now: &Condition) -> Option<EventDraft> {
    let (tone, what, message) = match (kind, now.status.as_str()) {
        (condition::HUB_ACCEPTED, TRUE) => (
            EventType::Normal,
            event::ACCEPTED,
            format!("The cluster {name} is accepted, and has its rights"),
        ),
        (condition::HUB_ACCEPTED, FALSE) if now.reason == reason::ERROR => (
            EventType::Warning,
            event::ACCEPT_FAILED,
            format!(
                "The cluster {name} cannot be given its rights: {}",
                now.message
            ),
        ),
        (condition::HUB_ACCEPTED, FALSE) => (
            EventType::Warning,
            event::DENIED,
            format!("The cluster {name} is denied: {}", now.message),
        ),
        (condition::JOINED, TRUE) => {
            let message = format!("The agent of the cluster {name} has joined");
            (EventType::Normal, event::JOINED, message)
        }
        (condition::AVAILABLE, TRUE) => {
            let again = if is_first { "" } else { " again" };
            let message = format!("The cluster {name} is available{again}");
            (EventType::Normal, event::AVAILABLE, message)
        }
        (condition::AVAILABLE, FALSE) => (
            EventType::Warning,
            event::UNAVAILABLE,
            format!("The cluster {name} is not available: {}", now.message),
        ),
        (condition::AVAILABLE, UNKNOWN) => (
            EventType::Warning,
            event::AVAILABLE_UNKNOWN,
            format!("The cluster {name} is unreachable: {}", now.message),
        ),
        (condition::CLOCK_SYNCED, FALSE) => (
            EventType::Warning,
            event::CLOCK_OUT_OF_SYNC,
            now.message.clone(),
        ),
        (condition::CERTIFICATE_ROTATED, TRUE) if !is_first => (
            EventType::Normal,
            event::CERTIFICATE_ROTATED,
            now.message.clone(),
        ),
        (condition::CERTIFICATE_ROTATED, FALSE) => (
            EventType::Warning,
            event::CERTIFICATE_ROTATION_FAILED,
            now.message.clone(),
        ),
        _ => return None,
    };
    Some(EventDraft::new(tone, what, message))
}

#[cfg(test)]
mod unit {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(conditions: &[(&str, &str, &str)]) -> ManagedCluster {
        let condition = |(kind, status, message): &(&str, &str, &str)| {
            json!({"type": kind, "status": status, "reason": "R", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({
            "metadata": {"name": "c1"}, "spec": {}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(old: &[(&str, &str, &str)], new: &[(&str, &str, &str)], expected: &[(&str, &str)]) {
        let happenings = between(&cluster(old), &cluster(new));
        let told: Vec<(&str, &str)> = happenings
            .iter()
            .map(|it| (&*it.reason, it.message.as_str()))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_changes_is_told_once() {
        let available = ("ManagedClusterConditionAvailable", "True", "it is");
        let unknown = (
            "ManagedClusterConditionAvailable",
            "Unknown",
            "it is silent",
        );
        let is_here = ("Available", "The cluster c1 is available");
        check(&[], &[available], &[is_here]);
        check(&[available], &[available], &[]);
        let silent = (
            "AvailableUnknown",
            "The cluster c1 is unreachable: it is silent",
        );
        check(&[available], &[unknown], &[silent]);
        check(
            &[unknown],
            &[available],
            &[("Available", "The cluster c1 is available again")],
        );
        let accepted = ("HubAcceptedManagedCluster", "True", "");
        let rights = ("Accepted", "The cluster c1 is accepted, and has its rights");
        check(&[], &[accepted], &[rights]);
        let first = ("ClusterCertificateRotated", "True", "from 1 to 2");
        let second = ("ClusterCertificateRotated", "True", "from 2 to 3");
        check(&[], &[first], &[]);
        check(
            &[first],
            &[second],
            &[("CertificateRotated", "from 2 to 3")],
        );
    }
}
