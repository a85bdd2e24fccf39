//! The strategy Comply: what an object must have, must have and nothing else, or must not be.
//!
//! A definition is merged into the live object ([`compare`]). Where the result means the same, the object complies;
//! otherwise the result is what is written. Lists are compared without regard to order, quantities by value, and
//! where zero values are involved only the server can tell whether a write changes anything: [`judge`] says so, and
//! the caller may ask for a dry run.
//!
//! The rules, and the texts of errors, are those of config-policy-controller.
//!
//! ```
//! use bellwether_apply::compliance::{Duty, Rule, Verdict, judge};
//! use serde_json::json;
//!
//! let definition = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}});
//! let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v", "l": "w"}});
//! assert_eq!(judge(Rule::of(Duty::MustHave), &definition, Some(&live))?, Verdict::Complies);
//! assert_eq!(judge(Rule::of(Duty::MustHave), &definition, None)?, Verdict::Missing);
//! assert_eq!(judge(Rule::of(Duty::MustNotHave), &definition, Some(&live))?, Verdict::Forbidden);
//! # Ok::<(), String>(())
//! ```

mod compare;
mod equivalent;
mod merge;

use serde_json::Value;

pub use compare::{Comparison, compare, matches, strip};

use crate::plan::{ApplyError, Step};
use crate::target::{Live, Target};

/// What an object has to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duty {
    /// It has to exist, and to have what is defined.
    MustHave,
    /// It has to exist, and to have what is defined and nothing else.
    MustOnlyHave,
    /// It must not exist.
    MustNotHave,
}

/// By what an object is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What the object has to be like.
    pub duty: Duty,
    /// What its labels and annotations have to be like, if that is something else.
    pub metadata: Option<Duty>,
}

impl Rule {
    /// One duty for the whole object.
    pub const fn of(duty: Duty) -> Self {
        Self {
            duty,
            metadata: None,
        }
    }
}

/// Whether an object complies, and what is to be done if it does not.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it has to be.
    Complies,
    /// It has to be created.
    Missing,
    /// It has to be deleted.
    Forbidden,
    /// It is not as defined, or only the server can tell.
    Differs(Comparison),
}

/// Judges an object; `live` is nothing if it does not exist. The error is a text for people.
pub fn judge(rule: Rule, desired: &Value, live: Option<&Value>) -> Result<Verdict, String> {
    match (rule.duty, live) {
        (Duty::MustNotHave, None) => Ok(Verdict::Complies),
        (Duty::MustNotHave, Some(_)) => Ok(Verdict::Forbidden),
        (_, None) => Ok(Verdict::Missing),
        (_, Some(live)) => {
            let comparison = compare(desired, live, rule)?;
            Ok(if comparison.complies() {
                Verdict::Complies
            } else {
                Verdict::Differs(comparison)
            })
        }
    }
}

/// Decides what to write so that an object complies.
pub(crate) fn plan(target: &Target<'_>, rule: Rule, live: Live<'_>) -> Result<Step, ApplyError> {
    let present = match live {
        Live::Unknown => return Ok(Step::Read),
        Live::Absent => None,
        Live::Present(live) => Some(live),
    };
    let desired = &target.manifest.object;
    let verdict = judge(rule, desired, present).map_err(ApplyError::Compare)?;
    Ok(match (verdict, present) {
        (Verdict::Complies, Some(live)) if rule.duty != Duty::MustNotHave => {
            target.ownership.patch(live).map_or(Step::Leave, Step::Own)
        }
        (Verdict::Complies, _) => Step::Leave,
        (Verdict::Missing, _) => {
            let mut object = desired.clone();
            target.ownership.claim(&mut object);
            Step::Create(object)
        }
        (Verdict::Forbidden, live) => Step::Delete {
            uid: live
                .and_then(|live| live["metadata"]["uid"].as_str())
                .unwrap_or_default()
                .to_owned(),
        },
        (Verdict::Differs(found), live) => {
            // What the server made of this very definition is all that it can be.
            let settings = target.strategy.settings();
            let is_settled = live.is_some_and(|live| {
                let known = target.baseline;
                known.is_some_and(|known| known.holds(desired, &settings, live))
            });
            // A status is for others to write.
            if found.needs_update || found.is_missing && !is_settled {
                let mut object = found.merged;
                target.ownership.claim(&mut object);
                Step::Replace(object)
            } else {
                Step::Leave
            }
        }
    })
}

#[cfg(test)]
mod tests;
