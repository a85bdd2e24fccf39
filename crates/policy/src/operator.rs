//! OperatorPolicies, as far as they can be judged without the Operator Lifecycle Manager.
//!
//! Clusters without it have no packages, so that no subscription can be completed: the policy is not
//! compliant, and says so in the words that upstream uses. Where there is one, this agent says that it
//! does not evaluate such policies.

use bellwether_api::meta::{Condition, FALSE, MicroTime, Time, set_condition};
use bellwether_api::policy::{
    ComplianceState, EvaluationHistory, OperatorPolicy, OperatorPolicyStatus,
};
use jiff::Timestamp;

/// Group, version and kind by which clusters with the Operator Lifecycle Manager are known.
pub const PACKAGES: (&str, &str) = ("packages.operators.coreos.com/v1", "PackageManifest");

/// Entries that a history keeps.
const MAX_HISTORY: usize = 10;

/// What is found.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorReport {
    /// The status.
    pub status: OperatorPolicyStatus,
    /// What is reported.
    pub message: String,
    /// Whether it is news.
    pub is_news: bool,
}

/// Evaluates a policy. `has_packages` says whether the cluster has packages of operators.
pub fn evaluate(policy: &OperatorPolicy, has_packages: bool, now: Timestamp) -> OperatorReport {
    let problem = if has_packages {
        "OperatorPolicies are not evaluated by this agent on clusters with the Operator Lifecycle Manager"
    } else {
        "the subscription defaults could not be determined because the PackageManifest was not found"
    };
    let state = ComplianceState::NonCompliant;
    let message = format!("{state}; {problem}");
    let mut status = policy.status.clone().unwrap_or_default();
    let last = status.history.first();
    let is_news = last.and_then(|last| last.message.as_ref()) != Some(&message)
        || status.observed_generation != policy.metadata.generation;
    status.compliant = Some(state.as_str().to_owned());
    status.observed_generation = policy.metadata.generation;
    for (kind, reason) in [
        ("ValidPolicySpec", "InvalidPolicySpec"),
        ("Compliant", "NonCompliant"),
    ] {
        let condition = Condition {
            type_: kind.to_owned(),
            status: FALSE.to_owned(),
            reason: reason.to_owned(),
            message: problem.to_owned(),
            last_transition_time: Time(now),
            observed_generation: None,
        };
        set_condition(&mut status.conditions, condition);
    }
    if is_news {
        let entry = EvaluationHistory {
            last_timestamp: Some(MicroTime(now)),
            message: Some(message.clone()),
            ..EvaluationHistory::default()
        };
        status.history.insert(0, entry);
        status.history.truncate(MAX_HISTORY);
    }
    OperatorReport {
        status,
        message,
        is_news,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_without_packages_is_not_compliant_and_says_it_once() {
        let mut policy = OperatorPolicy::default();
        let found = evaluate(&policy, false, Timestamp::UNIX_EPOCH);
        assert_eq!(
            found.message,
            "NonCompliant; the subscription defaults could not be determined because the PackageManifest was not found"
        );
        policy.status = Some(found.status.clone());
        let again = evaluate(&policy, false, Timestamp::UNIX_EPOCH);
        assert!(found.is_news && !again.is_news);
        assert_eq!(again.status, found.status);
    }
}
