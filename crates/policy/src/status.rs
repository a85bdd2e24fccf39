//! What root policies and sets of policies report.

mod found;
mod policy_set;

use bellwether_api::policy::ComplianceState;

pub(crate) use found::Found;
pub use policy_set::{Member, MemberState, SetObserved, SetTally};

/// Returns what is true of all: one that does not comply decides, then one that waits, then one that has not
/// reported. Nothing if there is nothing to report, or not everything is known.
pub fn compliance_of_all<'a>(
    states: impl Iterator<Item = Option<&'a ComplianceState>>,
) -> Option<ComplianceState> {
    let mut is_any = false;
    let mut is_pending = false;
    let mut is_unknown = false;
    for state in states {
        is_any = true;
        match state {
            Some(ComplianceState::NonCompliant) => return Some(ComplianceState::NonCompliant),
            Some(ComplianceState::Pending) => is_pending = true,
            Some(ComplianceState::Compliant) => {}
            _ => is_unknown = true,
        }
    }
    match (is_any, is_pending, is_unknown) {
        (true, true, _) => Some(ComplianceState::Pending),
        (true, false, false) => Some(ComplianceState::Compliant),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_comply_decides_before_one_that_waits_and_one_that_is_silent() {
        use ComplianceState::{Compliant, NonCompliant, Pending};
        #[track_caller]
        fn check(states: &[Option<ComplianceState>], expected: Option<&ComplianceState>) {
            let actual = compliance_of_all(states.iter().map(Option::as_ref));
            assert_eq!(actual.as_ref(), expected);
        }
        check(&[], None);
        check(&[Some(Compliant), None, None], None);
        check(&[Some(Compliant), Some(Compliant), None], None);
        check(&[Some(Compliant), Some(Pending), None], Some(&Pending));
        check(&[Some(Compliant), Some(Compliant)], Some(&Compliant));
        check(
            &[Some(Compliant), Some(NonCompliant), None],
            Some(&NonCompliant),
        );
        check(&[Some(Pending), Some(NonCompliant)], Some(&NonCompliant));
        check(&[Some(Compliant), Some(ComplianceState::Unknown)], None);
    }
}
