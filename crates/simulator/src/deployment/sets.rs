//! Replica sets of a deployment and their sizes.

use std::sync::Arc;

use bellwether_api::workload::deployment::{DESIRED_REPLICAS, MAX_REPLICAS};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStatus, ReplicaSet};
use serde_json::{Value, json};

use crate::kind::{annotation, uid_of};
use crate::scale::{Round, resolve};

/// How many pods a deployment may have, and how many it has to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) replicas: i32,
    pub(super) max_surge: i32,
    pub(super) max_unavailable: i32,
    /// Whether all old pods go before the first new one comes.
    pub(super) recreate: bool,
}

impl Limits {
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.as_ref();
        let recreate = strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate");
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let max_surge = resolve(
            rolling.and_then(|rolling| rolling.max_surge.as_ref()),
            replicas,
            Round::Up,
        );
        let max_unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let mut max_unavailable = resolve(max_unavailable, replicas, Round::Down);
        if max_surge == 0 && max_unavailable == 0 {
            // Otherwise nothing could ever move.
            max_unavailable = 1;
        }
        Self {
            replicas,
            max_surge: if recreate { 0 } else { max_surge },
            max_unavailable: if recreate {
                0
            } else {
                max_unavailable.min(replicas)
            },
            recreate,
        }
    }

    /// The most pods that there may be.
    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The fewest pods that have to be available.
    pub(super) fn fewest(&self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable)
    }
}

/// A replica set, and the size that it shall have.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) object: Arc<ReplicaSet>,
    /// What it shall be.
    pub(super) size: i32,
    /// The size in its spec.
    before: i32,
    /// How many pods it has.
    pub(super) actual: i32,
    pub(super) available: i32,
}

impl Set {
    pub(super) fn new(object: &Arc<ReplicaSet>) -> Self {
        let size = object
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        let status = object.status.as_ref();
        Self {
            object: Arc::clone(object),
            size,
            before: size,
            actual: status.map_or(0, |status| status.replicas),
            available: status
                .and_then(|status| status.available_replicas)
                .unwrap_or(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        uid_of(self.object.as_ref())
    }

    /// What sets are sorted by: the oldest first.
    pub(super) fn age(&self) -> (Timestamp, String) {
        let created = self.object.metadata.creation_timestamp.as_ref();
        (
            created.map_or(Timestamp::MAX, |time| time.0),
            self.name().to_owned(),
        )
    }

    /// The number of replicas that the deployment wanted when this set was last scaled.
    pub(super) fn desired(&self) -> Option<i32> {
        annotation(&self.object.metadata, DESIRED_REPLICAS)?
            .parse()
            .ok()
    }

    /// Whether nothing is left of it but history.
    pub(super) fn is_over(&self) -> bool {
        let observed = self
            .object
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        self.actual == 0
            && self.size == 0
            && self.object.metadata.generation.unwrap_or(0) <= observed.unwrap_or(0)
    }

    /// The size that the set was last told to have.
    pub(super) fn specified_size(&self) -> i32 {
        self.before
    }

    /// The patch that gives it its size, and what to tell about it.
    pub(super) fn change(&self, limits: &Limits) -> Option<(Value, Option<String>)> {
        if self.uid().is_empty() {
            // It is about to be created, with the right size.
            return None;
        }
        let desired = limits.replicas.to_string();
        let most = limits.most().to_string();
        let metadata = &self.object.metadata;
        let noted = annotation(metadata, DESIRED_REPLICAS) == Some(&desired)
            && annotation(metadata, MAX_REPLICAS) == Some(&most);
        let scaled = self.size != self.before;
        // Sets without pods are not told about every change of size.
        if !scaled && (noted || self.size == 0) {
            return None;
        }
        let mut patch =
            json!({"metadata": {"annotations": {DESIRED_REPLICAS: desired, MAX_REPLICAS: most}}});
        if !scaled {
            return Some((patch, None));
        }
        patch["spec"] = json!({"replicas": self.size});
        let direction = if self.size > self.before {
            "up"
        } else {
            "down"
        };
        let message = format!(
            "Scaled {direction} replica set {} from {} to {}",
            self.name(),
            self.before,
            self.size
        );
        Some((patch, Some(message)))
    }
}

/// Gives sets their part of a new total, so that scaling neither hastens nor holds up a rollout.
pub(super) fn scale_in_proportion(
    limits: &Limits,
    new: Option<&mut Set>,
    old: &mut [Set],
    status: &DeploymentStatus,
) {
    let saturated = new.as_deref().is_some_and(|new| is_saturated(limits, new));
    let mut sets: Vec<&mut Set> = old.iter_mut().collect();
    let new_name = new.as_deref().map(|set| set.name().to_owned());
    sets.extend(new);
    let active = sets.iter().filter(|set| set.size > 0).count();
    if active <= 1 {
        let only = sets.iter().position(|set| set.size > 0);
        // Without pods anywhere it is the newest that grows: the current one, or else the youngest.
        let last = sets.len().checked_sub(1);
        if let Some(position) = only.or(last) {
            sets[position].size = limits.replicas;
        }
        return;
    }
    if saturated {
        for set in sets
            .iter_mut()
            .filter(|set| Some(set.name()) != new_name.as_deref())
        {
            set.size = 0;
        }
        return;
    }
    if limits.recreate {
        return;
    }
    let mut sets: Vec<&mut Set> = sets.into_iter().filter(|set| set.size > 0).collect();
    let total: i32 = sets.iter().map(|set| set.size).sum();
    let allowed = if limits.replicas > 0 {
        limits.most()
    } else {
        0
    };
    share(limits, &mut sets, allowed - total, status);
}

fn share(limits: &Limits, sets: &mut [&mut Set], to_add: i32, status: &DeploymentStatus) {
    if to_add == 0 {
        return;
    }
    // The largest first; among equals the newer when growing, the older when shrinking.
    sets.sort_by(|one, other| {
        let by_age = one.age().cmp(&other.age());
        let by_age = if to_add > 0 { by_age.reverse() } else { by_age };
        other.size.cmp(&one.size).then(by_age)
    });
    let mut added = 0;
    for set in sets.iter_mut() {
        let left = to_add - added;
        let part = fraction(limits, set, status);
        let part = if to_add > 0 {
            part.min(left)
        } else {
            part.max(left)
        };
        let part = if left == 0 { 0 } else { part };
        set.size += part;
        added += part;
    }
    if let Some(largest) = sets.first_mut() {
        largest.size = (largest.size + to_add - added).max(0);
    }
}

/// By how much a set grows if it keeps its share.
fn fraction(limits: &Limits, set: &Set, status: &DeploymentStatus) -> i32 {
    if limits.replicas == 0 {
        return -set.size;
    }
    let noted =
        annotation(&set.object.metadata, MAX_REPLICAS).and_then(|text| text.parse::<i32>().ok());
    let before = noted
        .filter(|most| *most > 0)
        .or(status.replicas)
        .unwrap_or(0);
    if before == 0 {
        return 0;
    }
    let product = i64::from(set.size) * i64::from(limits.most());
    let before = i64::from(before);
    // Rounded to the nearest, halves up.
    let size = (2 * product + before) / (2 * before);
    i32::try_from(size).unwrap_or(i32::MAX) - set.size
}

/// Whether the new set has all the pods that the deployment wants.
fn is_saturated(limits: &Limits, set: &Set) -> bool {
    set.size == limits.replicas
        && set.desired() == Some(limits.replicas)
        && set.available == limits.replicas
}
