//! The fleet while it changes. Decisions that take long look at a snapshot, so that no change waits for
//! them, and no other decision.

use std::sync::Arc;

use parking_lot::RwLock;

use super::fleet::Fleet;

/// The fleet, shared by watches and decisions.
#[derive(Debug, Default)]
pub(super) struct SharedFleet(RwLock<Arc<Fleet>>);

impl SharedFleet {
    /// Looks at the fleet. Changes wait meanwhile.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Fleet) -> T) -> T {
        look(&self.0.read())
    }

    /// Changes the fleet. It is copied if a snapshot is in use: once, however many changes follow.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Fleet) -> T) -> T {
        change(Arc::make_mut(&mut self.0.write()))
    }

    /// The fleet as it is now.
    pub(super) fn snapshot(&self) -> Arc<Fleet> {
        Arc::clone(&self.0.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_do_not_wait_for_snapshots_and_copy_the_fleet_once() {
        let fleet = SharedFleet::default();
        let place = |fleet: &mut Fleet| std::ptr::from_mut(fleet).addr();
        let first = fleet.change(place);
        assert_eq!(fleet.change(place), first);
        let snapshot = fleet.snapshot();
        let second = fleet.change(place);
        assert_ne!(second, first);
        assert_eq!(fleet.change(place), second);
        assert_eq!(std::ptr::from_ref(&*snapshot).addr(), first);
    }
}
