//! Compliance events: what an evaluation found, on the policy that the template is part of.

use bellwether_api::Kind as _;
use bellwether_api::meta::Time;
use bellwether_api::policy::Policy;
use bellwether_policy::compliance::{Message, event_name};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::member::{Member, Request, core_resource, id_of};

/// The name of the controller that upstream's tools know.
const COMPONENT: &str = "configuration-policy-controller";

/// Records what was found. One that is lost is no harm: statuses hold the same.
pub(super) async fn record(member: &Member, policy: &Policy, template: &Value, message: &Message) {
    let namespace = &*member.cluster;
    let policy_name = policy.metadata.name.as_deref().unwrap_or_default();
    let name = event_name(policy_name, message.at);
    let template_name = template["metadata"]["name"].as_str().unwrap_or_default();
    let is_compliant = message.text.starts_with("Compliant;");
    let second = Timestamp::from_second(message.at.as_second()).unwrap_or(message.at);
    let mut event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": Policy::NAMES.api_version(),
            "kind": Policy::NAMES.kind,
            "name": policy_name,
            "namespace": namespace,
            "uid": policy.metadata.uid,
        },
        "reason": format!("policy: {namespace}/{template_name}"),
        "message": shortened(&message.text),
        "type": if is_compliant { "Normal" } else { "Warning" },
        "action": "ComplianceStateUpdate",
        "count": 1,
        "firstTimestamp": Time(second),
        "lastTimestamp": Time(second),
        "reportingComponent": COMPONENT,
        "reportingInstance": namespace,
        "source": {"component": COMPONENT, "host": namespace},
    });
    if template.get("kind").is_some() {
        event["related"] = json!({
            "apiVersion": template["apiVersion"],
            "kind": template["kind"],
            "name": template_name,
            "namespace": namespace,
            "uid": template["metadata"]["uid"],
        });
    }
    let events = core_resource("Event", "events", true);
    let id = id_of(&events, namespace, &name);
    if let Err(error) = member.write(Request::Create, &events, &id, &event).await {
        tracing::debug!(cluster = namespace, policy = policy_name, %error, "compliance event lost");
    }
}

/// Bytes that servers take as a message of an event.
const MAX_MESSAGE: usize = 1024;

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
