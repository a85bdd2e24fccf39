//! What is remembered of an object when conclusions are drawn about it.

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::work::names::condition;

use crate::lifecycle::find;

/// What was concluded about an object before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Past {
    /// Whether it was all there once since it got its present content. What is missing then is lost,
    /// and not merely on its way.
    pub had_arrived: bool,
}

impl Past {
    /// What the conditions of a manifest remember of this generation of its work.
    pub fn of(conditions: &[Condition], generation: i64) -> Self {
        let said = |name: &str, status: &str| {
            find(conditions, name).is_some_and(|found| {
                found.status == status && found.observed_generation == Some(generation)
            })
        };
        Self {
            had_arrived: said(condition::PROGRESSING, FALSE) || said(condition::DEGRADED, TRUE),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_said_of_this_generation_is_remembered() {
        let check = |name: &str, status: &str, generation: i64, expected: bool| {
            let condition = json!([{"type": name, "status": status, "reason": "R", "message": "",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            let conditions: Vec<Condition> = serde_json::from_value(condition).unwrap();
            let past = Past::of(&conditions, 2);
            assert_eq!(past.had_arrived, expected, "{name} {status} {generation}");
        };
        check("Progressing", "False", 2, true);
        check("Progressing", "False", 1, false);
        check("Progressing", "True", 2, false);
        check("Degraded", "True", 2, true);
        check("Degraded", "False", 2, false);
        check("Applied", "True", 2, false);
        assert!(!Past::of(&[], 2).had_arrived);
    }
}
