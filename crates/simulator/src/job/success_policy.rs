//! The success policy: when an indexed job has done enough.

use k8s_openapi::api::batch::v1::{SuccessPolicy, SuccessPolicyRule};

use super::indexes::Indexes;

/// The message that says which rule holds; nothing if none does.
pub(super) fn is_met(policy: &SuccessPolicy, completed: &Indexes, total: u32) -> Option<String> {
    if completed.is_empty() {
        return None;
    }
    let number = policy
        .rules
        .iter()
        .position(|rule| holds(rule, completed, total))?;
    Some(format!("Matched rules at index {number}"))
}

fn holds(rule: &SuccessPolicyRule, completed: &Indexes, total: u32) -> bool {
    let reaches = |found: usize| {
        let count = rule.succeeded_count;
        count.is_some_and(|count| found >= usize::try_from(count).unwrap_or(0))
    };
    let Some(text) = &rule.succeeded_indexes else {
        return reaches(completed.len());
    };
    let required = Indexes::parse(text, total);
    let found = required.overlap(completed);
    !required.is_empty() && (found == required.len() || reaches(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(rules: Value, completed: &str, expected: Option<&str>) {
        let policy: SuccessPolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
        let found = is_met(&policy, &Indexes::parse(completed, 10), 10);
        assert_eq!(found.as_deref(), expected, "{rules} {completed}");
    }

    #[test]
    fn a_rule_names_indexes_or_how_many_or_both() {
        let first = Some("Matched rules at index 0");
        check(json!([{"succeededCount": 2}]), "1,3", first);
        check(json!([{"succeededCount": 3}]), "1,3", None);
        check(json!([{"succeededIndexes": "0-2"}]), "0-2,5", first);
        check(json!([{"succeededIndexes": "0-2"}]), "0,2,5", None);
        let both = json!([{"succeededIndexes": "0-2", "succeededCount": 2}]);
        check(both.clone(), "0,2,5", first);
        check(both, "2,5", None);
        check(
            json!([{"succeededIndexes": "9"}, {"succeededCount": 1}]),
            "4",
            Some("Matched rules at index 1"),
        );
        check(json!([{"succeededCount": 0}]), "", None);
        check(json!([{"succeededIndexes": "12-14"}]), "4", None);
    }
}
