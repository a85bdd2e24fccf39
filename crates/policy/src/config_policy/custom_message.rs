//! The message that a policy is reported with, which it may write itself as a Go template.

use bellwether_api::policy::{ConfigurationPolicy, ConfigurationPolicyStatus, TemplateCompliance};
use bellwether_go::value::{Numbers, Value as GoValue};
use bellwether_template::{
    Budget, Functions, NOWHERE, Options, Phase, Rendered, Set, TemplateError, World,
};
use serde_json::{Value, json};

/// The name of the template in errors.
const NAME: &str = "custom-msg";

/// Functions of sprig that read the environment of the process.
const RISKY: [&str; 2] = ["env", "expandenv"];

/// The message that a status is reported with. `objects` are those that it speaks of, without what nobody may
/// read.
pub(super) fn message(
    policy: &ConfigurationPolicy,
    status: &ConfigurationPolicyStatus,
    objects: &[&Value],
    world: &World<'_>,
) -> String {
    let default = default_message(status);
    let is_compliant = status.compliant == Some(TemplateCompliance::Compliant);
    let custom = policy.spec.custom_message.as_ref();
    let custom = custom.and_then(|custom| {
        if is_compliant {
            custom.compliant.as_deref()
        } else {
            custom.noncompliant.as_deref()
        }
    });
    let Some(template) = custom.filter(|custom| !custom.is_empty()) else {
        return default;
    };
    match rendered(
        template,
        &described(policy, status, objects),
        &default,
        world,
    ) {
        Err(error) => {
            let what = match error.phase() {
                Phase::Parse => "failed to parse custom template",
                Phase::Execute | Phase::Budget => "failed to execute",
            };
            format!("{default} (failure processing the custom message: {what}: {error})")
        }
        Ok(message) => {
            let state = status.compliant.as_ref();
            let prefix = format!("{}; ", state.map_or("", TemplateCompliance::as_str));
            if message.starts_with(&prefix) {
                message
            } else {
                format!("{prefix}{message}")
            }
        }
    }
}

/// The state, and what is true of each object template.
fn default_message(status: &ConfigurationPolicyStatus) -> String {
    let Some(state) = &status.compliant else {
        return "ComplianceState is still unknown".to_owned();
    };
    let mut message = state.as_str().to_owned();
    for detail in &status.compliancy_details {
        message.push_str("; ");
        if let Some(condition) = detail.conditions.first() {
            let text = condition.message.as_deref().unwrap_or_default();
            message.extend([condition.type_.as_str(), " - ", text]);
        }
    }
    message
}

/// The policy with its status, as templates see it: related objects are whole, as far as they are known.
fn described(
    policy: &ConfigurationPolicy,
    status: &ConfigurationPolicyStatus,
    objects: &[&Value],
) -> Value {
    let mut policy = serde_json::to_value(policy).unwrap_or(Value::Null);
    policy["status"] = serde_json::to_value(status).unwrap_or(Value::Null);
    let related = policy["status"]["relatedObjects"].as_array_mut();
    for entry in related.into_iter().flatten() {
        let reference = &entry["object"];
        let metadata = &reference["metadata"];
        let is_it = |object: &&&Value| {
            object["apiVersion"] == reference["apiVersion"]
                && object["kind"] == reference["kind"]
                && object["metadata"]["name"] == metadata["name"]
                && object["metadata"]["namespace"] == metadata["namespace"]
        };
        let found = objects
            .iter()
            .find(is_it)
            .map(|object| Value::clone(object));
        if let Some(object) = found {
            entry["object"] = object;
        }
    }
    policy
}

fn rendered(
    template: &str,
    policy: &Value,
    default: &str,
    world: &World<'_>,
) -> Result<String, TemplateError> {
    let mut set = Set::new(Options::new(Functions::sprig().without(&RISKY)));
    set.add(NAME, template)?;
    let dot = json!({"DefaultMessage": default, "Policy": policy});
    let dot = GoValue::from_json_with(&dot, Numbers::Integers);
    let world = World {
        facts: NOWHERE.facts,
        ..*world
    };
    let text = match set.render(NAME, &dot, &world, &mut Budget::default())? {
        Rendered::Text(text) => text,
        // Sprig asks for nothing but host names, which messages do not get.
        Rendered::Needs(_) => Vec::new(),
    };
    Ok(String::from_utf8_lossy(&text).into_owned())
}
