//! When something that failed is tried again.

use std::time::Duration;

/// When something that failed is tried again, the soonest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retry {
    /// Soon, with a wait that doubles: a conflict, a server that is busy or away.
    Backoff,
    /// When the server asked for it, or later if attempts keep failing.
    After(Duration),
    /// Not so soon, with a longer wait that doubles: a refusal that lasts until somebody changes
    /// rights or the object, which a watch usually reports first.
    Slowly,
    /// Not before something changes: the same input gives the same error.
    #[default]
    Never,
}

impl Retry {
    /// Returns true if it is tried again although nothing changes.
    pub fn is_due(self) -> bool {
        self != Self::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_tried_again_when_its_soonest_part_is() {
        let soonest = |parts: &[Retry]| parts.iter().copied().min().unwrap_or_default();
        let after = |seconds| Retry::After(Duration::from_secs(seconds));
        for (parts, expected) in [
            (&[][..], Retry::Never),
            (&[Retry::Never, Retry::Slowly], Retry::Slowly),
            (&[Retry::Slowly, after(9), after(7)], after(7)),
            (&[Retry::Slowly, Retry::Backoff, after(7)], Retry::Backoff),
        ] {
            assert_eq!(soonest(parts), expected, "{parts:?}");
        }
        assert!(Retry::Slowly.is_due() && !Retry::Never.is_due());
    }
}
