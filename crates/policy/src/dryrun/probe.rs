//! JSON lines for scripts: a policy and the objects of a cluster in, what a dry run finds out.

use bellwether_api::policy::ConfigurationPolicyStatus;
use bellwether_template::World;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{DryRun, Outcome, run, status_value};

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(default)]
    id: Value,
    policy: String,
    #[serde(default)]
    objects: Vec<String>,
    #[serde(default)]
    args: CaseArguments,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CaseArguments {
    mappings: Option<String>,
    full_diffs: Option<bool>,
    desired_status: Option<String>,
}

/// Answers `{"id", "policy", "objects", "args": {"mappings", "fullDiffs", "desiredStatus"}}` with
/// `{"id", "exit", "compliance", "messages", "diffs", …}`. Where the evaluation fails, `controller` is
/// what an agent would report.
pub fn answer(line: &str, world: &World<'_>) -> String {
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": format!("unreadable case: {error}")}).to_string(),
    };
    let inputs = case.objects.into_iter().enumerate();
    let dry_run = DryRun {
        policy: &case.policy,
        inputs: inputs
            .map(|(index, text)| (format!("file input-{index:02}.yaml"), text))
            .collect(),
        mappings: case.args.mappings.as_deref(),
        desired_status: case.args.desired_status.as_deref(),
        has_full_diffs: case.args.full_diffs.unwrap_or(true),
        has_no_colors: true,
        hides_diffs: false,
    };
    let mut answer = shown(&run(&dry_run, world));
    answer["id"] = case.id;
    answer.to_string()
}

fn shown(outcome: &Outcome) -> Value {
    let messages: Vec<&str> = outcome
        .messages
        .iter()
        .flat_map(|text| text.split('\n'))
        .collect();
    let mut answer = json!({
        "exit": outcome.exit_code(),
        "diffs": outcome.diffs,
    });
    if !outcome.before.is_empty() {
        answer["before"] = json!(outcome.before);
    }
    let mut found = json!({"messages": messages});
    if let Some(status) = &outcome.status {
        report(status, &mut found);
    }
    if let Some(error) = &outcome.error {
        answer["error"] = json!(format!("Error: {error}"));
        answer["compliance"] = Value::Null;
        answer["messages"] = json!([]);
        if outcome.status.is_some() {
            answer["controller"] = found;
        }
        return answer;
    }
    if !outcome.is_compliant() {
        answer["error"] = json!("Error: policy is NonCompliant");
    }
    if let (Some(answer), Some(found)) = (answer.as_object_mut(), found.as_object()) {
        answer.extend(found.clone());
    }
    answer
}

/// Adds what a status says.
fn report(status: &ConfigurationPolicyStatus, answer: &mut Value) {
    let status = status_value(status);
    answer["compliance"] = json!(status["compliant"].as_str().unwrap_or_default());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let details = list(&status["compliancyDetails"])
        .into_iter()
        .map(|detail| {
            let condition = &detail["conditions"][0];
            json!({
                "compliant": detail["Compliant"],
                "reason": condition["reason"],
                "message": condition["message"],
                "type": condition["type"],
            })
        });
    answer["details"] = details.collect();
    let related = list(&status["relatedObjects"]).into_iter().map(|related| {
        let object = &related["object"];
        let mut shown = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default(),
            "compliant": related["compliant"],
            "reason": related["reason"],
        });
        if let Some(properties) = related.get("properties") {
            shown["properties"] = properties.clone();
        }
        shown
    });
    answer["relatedObjects"] = related.collect();
}
