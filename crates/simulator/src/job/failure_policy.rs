//! The pod failure policy: what the failure of a pod means, by how it ended.

use bellwether_api::workload::status::TRUE;
use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

/// What the failure of a pod means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    /// It counts, as every failure does that no rule speaks of.
    Count,
    /// It never happened.
    Ignore,
    /// Its index has failed, whatever the limit.
    FailIndex,
    /// The job has failed, for this reason.
    FailJob(String),
}

/// What a policy says about a pod that has failed: the first rule that applies decides.
pub(super) fn respond(policy: &PodFailurePolicy, pod: &Pod) -> Response {
    let rules = policy.rules.iter().enumerate();
    let mut found = rules.filter_map(|(number, rule)| {
        let cause = cause(rule, pod)?;
        Some(match rule.action.as_str() {
            "Ignore" => Response::Ignore,
            "FailIndex" => Response::FailIndex,
            "FailJob" => {
                let action = &rule.action;
                Response::FailJob(format!("{cause} matching {action} rule at index {number}"))
            }
            _ => Response::Count,
        })
    });
    found.next().unwrap_or(Response::Count)
}

/// Why a rule applies to a pod, if it does.
fn cause(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if let Some(required) = &rule.on_exit_codes {
        let (container, code) = with_exit_code(pod, required)?;
        let container = &container.name;
        return Some(format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code}"
        ));
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let condition = with_condition(pod, patterns)?;
    let kind = &condition.type_;
    Some(format!("Pod {namespace}/{name} has condition {kind}"))
}

/// A container that ended with one of the codes.
fn with_exit_code<'a>(
    pod: &'a Pod,
    required: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a ContainerStatus, i32)> {
    let status = pod.status.as_ref()?;
    let main = status.container_statuses.iter().flatten();
    let init = status.init_container_statuses.iter().flatten();
    let ended = main.chain(init).filter_map(|container| {
        let end = container.state.as_ref()?.terminated.as_ref()?;
        Some((container, end.exit_code))
    });
    let mut meant = ended.filter(|(container, code)| {
        let wanted = required.container_name.as_deref();
        *code != 0 && wanted.is_none_or(|name| name == container.name)
    });
    meant.find(|(_, code)| match required.operator.as_str() {
        "In" => required.values.contains(code),
        "NotIn" => !required.values.contains(code),
        _ => false,
    })
}

/// A condition that is among the patterns.
fn with_condition<'a>(
    pod: &'a Pod,
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
) -> Option<&'a PodCondition> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| {
        patterns.iter().any(|pattern| {
            let status = pattern.status.as_deref().unwrap_or(TRUE);
            pattern.type_ == condition.type_ && status == condition.status
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(rules: Value, expected: Response) {
        let policy: PodFailurePolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
        let ended = |name: &str, code: i32| {
            json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                   "state": {"terminated": {"exitCode": code}}})
        };
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a"},
            "status": {"phase": "Failed", "containerStatuses": [ended("good", 0), ended("main", 42)],
                       "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
        }))
        .unwrap();
        assert_eq!(respond(&policy, &pod), expected);
    }

    fn codes(action: &str, operator: &str, values: &[i32], container: Option<&str>) -> Value {
        json!({"action": action, "onExitCodes": {
            "operator": operator, "values": values, "containerName": container}})
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        check(json!([]), Response::Count);
        check(
            json!([
                codes("Ignore", "In", &[1], None),
                codes("FailIndex", "In", &[42], None)
            ]),
            Response::FailIndex,
        );
        check(
            json!([codes("Ignore", "NotIn", &[1, 2], None)]),
            Response::Ignore,
        );
        check(
            json!([codes("Ignore", "NotIn", &[42], None)]),
            Response::Count,
        );
        check(
            json!([codes("Ignore", "In", &[42], Some("good"))]),
            Response::Count,
        );
        check(
            json!([
                codes("Count", "In", &[42], Some("main")),
                codes("Ignore", "In", &[42], None)
            ]),
            Response::Count,
        );
    }

    #[test]
    fn a_job_that_fails_says_by_which_rule() {
        check(
            json!([codes("Ignore", "In", &[1], None), codes("FailJob", "In", &[42], None)]),
            Response::FailJob(
                "Container main for pod a/p failed with exit code 42 matching FailJob rule at index 1"
                    .to_owned(),
            ),
        );
        check(
            json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]),
            Response::FailJob(
                "Pod a/p has condition DisruptionTarget matching FailJob rule at index 0"
                    .to_owned(),
            ),
        );
        check(
            json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}]),
            Response::Count,
        );
    }
}
