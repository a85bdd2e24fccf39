//! What the works of a cluster report, as flags that can be counted.

use bellwether_api::work::names::condition;
use bellwether_api::work::{ManifestWork, WorkSummary};

use crate::lifecycle::is_true;
use crate::status::rollout_view;

/// What the works of a cluster say of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each condition")]
pub(super) struct Flags {
    applied: bool,
    available: bool,
    progressing: bool,
    degraded: bool,
}

impl Flags {
    pub(super) fn of<'a>(works: &(impl Iterator<Item = &'a ManifestWork> + Clone)) -> Self {
        let all = |name: &str| works.clone().all(|work| says(work, name));
        let any = |name: &str| {
            let mut works = works.clone();
            works.any(|work| rollout_view::is_any(work, name))
        };
        Self {
            applied: all(condition::APPLIED),
            available: all(condition::AVAILABLE),
            progressing: any(condition::PROGRESSING),
            degraded: any(condition::DEGRADED),
        }
    }

    /// Adds a cluster to a summary, or with -1 takes it out.
    pub(super) fn add_to(self, summary: &mut WorkSummary, sign: i64) {
        summary.total += sign;
        summary.updated += sign;
        summary.applied += sign * i64::from(self.applied);
        summary.available += sign * i64::from(self.available);
        summary.progressing += sign * i64::from(self.progressing);
        summary.degraded += sign * i64::from(self.degraded);
    }
}

fn says(work: &ManifestWork, name: &str) -> bool {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    is_true(conditions, name)
}
