//! Making a loss of heartbeats known: a condition and events on the set of all clusters.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::ManagedClusterSet;
use bellwether_api::cluster::names::{condition, event, object, reason};
use bellwether_api::meta::{Condition, FALSE, TRUE, Time, is_true, set_condition};
use bellwether_runtime::{EventDraft, EventType, ObjectKey, Recorder, write_status};
use jiff::Timestamp;
use kube::Api;
use serde_json::json;

use super::heartbeats::Loss;
use super::leases::Leases;
use crate::hub::Hub;

/// How often the condition is written at most: in a large fleet many members vanish one after the other.
const INTERVAL: Duration = Duration::from_secs(10);
/// How many clusters the condition names.
const NAMED: usize = 5;

/// Makes losses known, until cancelled.
pub(super) async fn publish(hub: &Hub, leases: &Leases, events: &Recorder) {
    hub.cache::<ManagedClusterSet>().ready().await;
    let mut losses = leases.loss();
    loop {
        let loss = *losses.borrow_and_update();
        let is_written = match write(hub, leases, events, loss).await {
            Ok(is_written) => is_written,
            Err(error) => {
                tracing::warn!(%error, "cannot report the loss of heartbeats; will retry");
                false
            }
        };
        hub.clock.sleep(INTERVAL).await;
        if is_written && losses.changed().await.is_err() {
            return;
        }
    }
}

/// Writes the condition if it has changed. False if it is too early: a loss that an earlier process reported
/// is over only when this one knows who renews.
async fn write(
    hub: &Hub,
    leases: &Leases,
    events: &Recorder,
    loss: Option<Loss>,
) -> Result<bool, kube::Error> {
    let name = object::GLOBAL_CLUSTER_SET;
    if let Some(Loss { late, of }) = loss {
        tracing::warn!(
            late,
            of,
            "clusters stopped renewing their leases; none is tainted for it"
        );
    }
    let sets = hub.cache::<ManagedClusterSet>();
    let Some(set) = sets.get(&ObjectKey::cluster_scoped(name)) else {
        return Ok(loss.is_none());
    };
    let mut conditions = set.status.clone().unwrap_or_default().conditions;
    let was_lost = is_true(&conditions, condition::HEARTBEAT_LOSS);
    if loss.is_none() && !was_lost {
        return Ok(true);
    }
    if loss.is_none() && leases.is_learning() {
        return Ok(false);
    }
    let said = describe(loss, &leases.late(), hub.clock.now());
    let message = said.message.clone();
    if set_condition(&mut conditions, said) {
        let api: Api<ManagedClusterSet> = Api::all(hub.client.clone());
        write_status(&api, &set, &json!({ "conditions": conditions })).await?;
    }
    if loss.is_some() != was_lost {
        let (tone, reason) = match loss {
            Some(_) => (EventType::Warning, event::HEARTBEAT_LOSS),
            None => (EventType::Normal, event::HEARTBEATS_BACK),
        };
        events.record(&*set, EventDraft::new(tone, reason, message));
    }
    Ok(true)
}

fn describe(loss: Option<Loss>, late: &[Arc<str>], now: Timestamp) -> Condition {
    let (status, reason, message) = match loss {
        None => (
            FALSE,
            reason::CLUSTERS_RENEW,
            "Clusters renew their leases.".to_owned(),
        ),
        Some(loss) => {
            let named: Vec<&str> = late.iter().take(NAMED).map(|name| &**name).collect();
            let more = match late.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let message = format!(
                "{} of {} clusters stopped renewing their leases at once. The hub may be cut off from them, so \
                 it taints none of them as unreachable until renewals come back. Missing: {}{more}.",
                loss.late,
                loss.of,
                named.join(", "),
            );
            (TRUE, reason::TOO_MANY_CLUSTERS_SILENT, message)
        }
    };
    Condition {
        type_: condition::HEARTBEAT_LOSS.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_some_of_the_clusters_that_are_missing() {
        let late: Vec<Arc<str>> = (1..=7).map(|number| format!("c{number}").into()).collect();
        let loss = Some(Loss { late: 7, of: 9 });
        let said = describe(loss, &late, Timestamp::UNIX_EPOCH);
        assert_eq!(
            (said.status.as_str(), said.reason.as_str()),
            ("True", "TooManyClustersSilent")
        );
        assert_eq!(
            said.message,
            "7 of 9 clusters stopped renewing their leases at once. The hub may be cut off from them, so it \
             taints none of them as unreachable until renewals come back. Missing: c1, c2, c3, c4, c5 and 2 \
             more."
        );
        let said = describe(None, &[], Timestamp::UNIX_EPOCH);
        assert_eq!(
            (said.status.as_str(), said.reason.as_str()),
            ("False", "ClustersRenew")
        );
    }
}
