//! How many clusters found what.

use bellwether_api::policy::ComplianceState;

/// How many clusters found what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) total: usize,
    compliant: usize,
    pending: usize,
    non_compliant: usize,
}

impl Found {
    /// Where clusters that found this are counted; nowhere if it is not known.
    fn count_of(&mut self, state: Option<&ComplianceState>) -> Option<&mut usize> {
        match state? {
            ComplianceState::Compliant => Some(&mut self.compliant),
            ComplianceState::Pending => Some(&mut self.pending),
            ComplianceState::NonCompliant => Some(&mut self.non_compliant),
            _ => None,
        }
    }

    /// A cluster that found one thing has found another.
    pub(crate) fn replace(
        &mut self,
        before: Option<&ComplianceState>,
        after: Option<&ComplianceState>,
    ) {
        if let Some(count) = self.count_of(before) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.count_of(after) {
            *count += 1;
        }
    }

    /// What is true of all, by the same rules as [`compliance_of_all`](super::compliance_of_all).
    pub(crate) fn of_all(self) -> Option<ComplianceState> {
        if self.non_compliant > 0 {
            Some(ComplianceState::NonCompliant)
        } else if self.pending > 0 {
            Some(ComplianceState::Pending)
        } else if self.total > 0 && self.compliant == self.total {
            Some(ComplianceState::Compliant)
        } else {
            None
        }
    }
}
