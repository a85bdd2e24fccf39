//! Rolling updates: how much of the new and how much of the old.

use super::sets::{Limits, Set};

fn total(sets: &[Set]) -> i32 {
    sets.iter().map(|set| set.size).sum()
}

/// The size that a set for a new template begins with.
pub(super) fn first_size(limits: &Limits, old: &[Set]) -> i32 {
    if limits.recreate {
        return limits.replicas;
    }
    (limits.most() - total(old)).clamp(0, limits.replicas)
}

/// Lets the new set grow as far as the surge allows, or shrink to what is wanted. Returns whether
/// anything changed.
pub(super) fn scale_up(limits: &Limits, new: &mut Set, old: &[Set]) -> bool {
    if new.size == limits.replicas {
        return false;
    }
    let size = if new.size > limits.replicas {
        limits.replicas
    } else {
        let free = limits.most() - total(old) - new.size;
        new.size + free.max(0).min(limits.replicas - new.size)
    };
    let changed = new.size != size;
    new.size = size;
    changed
}

/// Lets old sets shrink as far as availability allows, unhealthy pods first. Returns whether
/// anything changed.
pub(super) fn scale_down(limits: &Limits, new: &Set, old: &mut [Set]) -> bool {
    if total(old) == 0 {
        return false;
    }
    let all = total(old) + new.size;
    let unavailable = new.size - new.available;
    let may_go = all - limits.fewest() - unavailable;
    if may_go <= 0 {
        return false;
    }
    let mut changed = false;
    let mut cleaned = 0;
    for set in old.iter_mut() {
        let unhealthy = set.size - set.available;
        let part = unhealthy.min(may_go - cleaned).clamp(0, set.size);
        set.size -= part;
        cleaned += part;
        changed |= part > 0;
    }
    let available: i32 = old.iter().map(|set| set.available).sum::<i32>() + new.available;
    let mut left = available - limits.fewest();
    for set in old.iter_mut() {
        let part = left.min(set.size).max(0);
        set.size -= part;
        left -= part;
        changed |= part > 0;
    }
    changed
}
