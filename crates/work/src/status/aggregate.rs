//! What is said of a whole work, by what is said of its manifests.

use std::collections::BTreeMap;

use bellwether_api::meta::{Condition, FALSE, TRUE, UNKNOWN};
use bellwether_api::work::ManifestCondition;
use bellwether_api::work::names::{condition, message, reason};

use super::{BUILT_IN, Report};
use crate::admission::NO_MANIFESTS;
use crate::conditions::ConditionUpdate;
use crate::lifecycle::{find, is_true};
use crate::rules::well_known::OF_ROLLOUTS;

/// Something said of a whole work.
#[derive(Debug, Clone)]
pub(super) struct OfWork {
    pub(super) name: String,
    status: &'static str,
    reason: String,
    message: String,
    /// Whether rules of the work itself are about it.
    is_ruled: bool,
}

impl OfWork {
    pub(super) fn with(&self, generation: i64) -> ConditionUpdate<'_> {
        ConditionUpdate {
            name: &self.name,
            status: self.status,
            reason: &self.reason,
            message: &self.message,
            generation: Some(generation),
        }
    }
}

/// Whether a work as a whole is applied, and available.
pub(super) fn of_work(manifests: &[ManifestCondition]) -> Vec<OfWork> {
    let applied = manifests
        .iter()
        .all(|manifest| is_true(&manifest.conditions, condition::APPLIED))
        && !manifests.is_empty();
    let (status, why, text) = if applied {
        (
            TRUE,
            reason::APPLIED_MANIFEST_WORK_COMPLETE,
            message::APPLY_MANIFEST_WORK_COMPLETE,
        )
    } else {
        (
            FALSE,
            reason::APPLIED_MANIFEST_WORK_FAILED,
            // Without manifests there is none that could say why.
            if manifests.is_empty() {
                NO_MANIFESTS
            } else {
                message::APPLY_MANIFEST_WORK_FAILED
            },
        )
    };
    let applied = OfWork {
        name: condition::APPLIED.to_owned(),
        status,
        reason: why.to_owned(),
        message: text.to_owned(),
        is_ruled: false,
    };
    vec![applied, availability(manifests)]
}

fn availability(manifests: &[ManifestCondition]) -> OfWork {
    let total = manifests.len();
    let count = |wanted: &str| {
        let has = |manifest: &&ManifestCondition| {
            find(&manifest.conditions, condition::AVAILABLE)
                .is_some_and(|found| found.status == wanted)
        };
        manifests.iter().filter(has).count()
    };
    let (missing, unknown, available) = (count(FALSE), count(UNKNOWN), count(TRUE));
    let (status, why, text) = if missing > 0 {
        (
            FALSE,
            reason::RESOURCES_NOT_AVAILABLE,
            format!("{missing} of {total} resources are not available"),
        )
    } else if unknown > 0 {
        (
            UNKNOWN,
            reason::RESOURCES_STATUS_UNKNOWN,
            format!("{unknown} of {total} resources have unknown status"),
        )
    } else if available == 0 {
        (
            UNKNOWN,
            reason::RESOURCES_STATUS_UNKNOWN,
            // The trailing space is the peer's.
            "cannot get any available resource ".to_owned(),
        )
    } else {
        (
            TRUE,
            reason::RESOURCES_AVAILABLE,
            message::ALL_RESOURCES_AVAILABLE.to_owned(),
        )
    };
    OfWork {
        name: condition::AVAILABLE.to_owned(),
        status,
        reason: why.to_owned(),
        message: text,
        is_ruled: false,
    }
}

/// What rules say of the work: a condition holds if it holds for all manifests that have rules for
/// it. What no rule is about was concluded for rollouts, and holds if it does for one manifest.
pub(super) fn aggregate(manifests: &[ManifestCondition], reports: &[Report]) -> Vec<OfWork> {
    let of_rules = |found: &Condition, report: &Report| match &report.conclusions {
        Some(conclusions) => conclusions.iter().any(|new| new.condition == found.type_),
        None => !BUILT_IN.contains(&found.type_.as_str()),
    };
    // What is remembered of a manifest was concluded by rules, though it may have lost them since.
    let is_ruled = |name: &str, report: &Report| {
        let is_remembered = report.conclusions.is_none() && !OF_ROLLOUTS.contains(&name);
        is_remembered || report.ruled.iter().any(|ruled| ruled == name)
    };
    let mut named: BTreeMap<&str, Vec<(&Condition, bool)>> = BTreeMap::new();
    for (manifest, report) in manifests.iter().zip(reports) {
        let conditions = manifest.conditions.iter();
        for found in conditions.filter(|found| of_rules(found, report)) {
            let name = found.type_.as_str();
            let entries = named.entry(name).or_default();
            entries.push((found, is_ruled(name, report)));
        }
    }
    let together = |(name, found): (&str, Vec<(&Condition, bool)>)| {
        let ruled = found.iter().filter(|(_, is_ruled)| *is_ruled);
        let ruled: Vec<&Condition> = ruled.map(|(condition, _)| *condition).collect();
        if ruled.is_empty() {
            let found: Vec<&Condition> = found.iter().map(|(condition, _)| *condition).collect();
            of_any(name, &found)
        } else {
            of_all(name, &ruled)
        }
    };
    named.into_iter().map(together).collect()
}

fn has(found: &[&Condition], status: &str) -> bool {
    found.iter().any(|condition| condition.status == status)
}

/// The conjunction of a condition of several manifests.
fn of_all(name: &str, found: &[&Condition]) -> OfWork {
    let (status, text) = if has(found, FALSE) {
        (FALSE, format!("One or more manifests is not {name}"))
    } else if has(found, UNKNOWN) {
        (
            UNKNOWN,
            format!("Whether one or more manifests is {name} is unknown"),
        )
    } else {
        (TRUE, format!("All manifests are {name}"))
    };
    let mut of_work = rule_saying(name, status, text);
    of_work.is_ruled = true;
    // Why one manifest is unknown is why all are.
    let unknown = found.iter().find(|condition| condition.status == UNKNOWN);
    if let Some(unknown) = unknown.filter(|_| status == UNKNOWN)
        && unknown.reason.starts_with(reason::CONDITION_RULE_PREFIX)
    {
        of_work.reason.clone_from(&unknown.reason);
    }
    of_work
}

/// The disjunction of a condition of several manifests.
fn of_any(name: &str, found: &[&Condition]) -> OfWork {
    if has(found, TRUE) {
        rule_saying(name, TRUE, format!("One or more manifests is {name}"))
    } else {
        rule_saying(name, FALSE, format!("No manifest is {name}"))
    }
}

fn rule_saying(name: &str, status: &'static str, message: String) -> OfWork {
    let reason = match status {
        TRUE => reason::CONDITION_RULES_PASSED,
        FALSE => reason::CONDITION_RULES_FAILED,
        _ => reason::CONDITION_RULE_INVALID,
    };
    OfWork {
        name: name.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        is_ruled: false,
    }
}

/// What a rollout waits for: a work that could not be applied is on its way, and not as it should
/// be. What rules of the work say stays as they say it: rollouts also look at the manifests.
pub(super) fn add_rollout_conditions(
    manifests: &[ManifestCondition],
    aggregated: &mut Vec<OfWork>,
) {
    let all = |name: &str| {
        manifests
            .iter()
            .all(|manifest| is_true(&manifest.conditions, name))
    };
    let is_applied = all(condition::APPLIED);
    let is_there = is_applied && all(condition::AVAILABLE);
    let facts = [
        (
            condition::PROGRESSING,
            !is_there,
            "One or more manifests is not there yet",
        ),
        (
            condition::DEGRADED,
            !is_applied,
            "One or more manifests could not be applied",
        ),
    ];
    for (name, holds, why) in facts {
        match aggregated.iter_mut().find(|known| known.name == name) {
            Some(known) if holds && known.status != TRUE && !known.is_ruled => {
                *known = rule_saying(name, TRUE, why.to_owned());
            }
            Some(_) => {}
            None if holds => aggregated.push(rule_saying(name, TRUE, why.to_owned())),
            None => {
                aggregated.push(rule_saying(name, FALSE, format!("No manifest is {name}")));
            }
        }
    }
}
