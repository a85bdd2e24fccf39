//! Compliance events: what an evaluation found, on the policy that the template is part of.

use bellwether_api::Kind as _;
use bellwether_api::meta::Time;
use bellwether_api::policy::Policy;
use bellwether_api::policy::names::reason;
use bellwether_policy::compliance::{Message, event_name};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::member::{Member, Request, core_resource, id_of};

/// The name of the controller that upstream's tools know.
const COMPONENT: &str = "configuration-policy-controller";

/// Who records what happens to the objects of templates, as upstream's tools know it.
const SYNC: &str = "policy-template-sync";

/// An event on a policy. One that is lost is no harm: statuses hold what matters.
struct Record<'r> {
    policy: &'r Policy,
    at: Timestamp,
    component: &'static str,
    reason: String,
    is_warning: bool,
    message: &'r str,
}

impl Record<'_> {
    /// The event; nothing for policies that stand alone, which have nobody who reads it.
    fn event(&self, namespace: &str) -> Option<(String, Value)> {
        let policy = self.policy.metadata.name.as_deref()?;
        let name = event_name(policy, self.at);
        let second = Timestamp::from_second(self.at.as_second()).unwrap_or(self.at);
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": Policy::NAMES.api_version(),
                "kind": Policy::NAMES.kind,
                "name": policy,
                "namespace": namespace,
                "uid": self.policy.metadata.uid,
            },
            "reason": self.reason,
            "message": shortened(self.message),
            "type": if self.is_warning { "Warning" } else { "Normal" },
            "count": 1,
            "firstTimestamp": Time(second),
            "lastTimestamp": Time(second),
            "reportingComponent": self.component,
            "reportingInstance": namespace,
            "source": {"component": self.component, "host": namespace},
        });
        Some((name, event))
    }
}

async fn write(member: &Member, name: &str, event: &Value) {
    let namespace = &*member.cluster;
    let events = core_resource("Event", "events", true);
    let id = id_of(&events, namespace, name);
    if let Err(error) = member.write(Request::Create, &events, &id, event).await {
        tracing::debug!(cluster = namespace, event = name, %error, "event lost");
    }
}

/// Records what was found.
pub(super) async fn record(member: &Member, policy: &Policy, template: &Value, message: &Message) {
    let namespace = &*member.cluster;
    let template_name = template["metadata"]["name"].as_str().unwrap_or_default();
    let record = Record {
        policy,
        at: message.at,
        component: COMPONENT,
        reason: format!("policy: {namespace}/{template_name}"),
        is_warning: !message.text.starts_with("Compliant;"),
        message: &message.text,
    };
    let Some((name, mut event)) = record.event(namespace) else {
        return;
    };
    event["action"] = json!("ComplianceStateUpdate");
    if template.get("kind").is_some() {
        event["related"] = json!({
            "apiVersion": template["apiVersion"],
            "kind": template["kind"],
            "name": template_name,
            "namespace": namespace,
            "uid": template["metadata"]["uid"],
        });
    }
    write(member, &name, &event).await;
}

/// Records what happened to the object of a template.
pub(super) async fn record_sync(
    member: &Member,
    policy: &Policy,
    at: Timestamp,
    is_warning: bool,
    message: &str,
) {
    let record = Record {
        policy,
        at,
        component: SYNC,
        reason: reason::POLICY_TEMPLATE_SYNC.to_owned(),
        is_warning,
        message,
    };
    if let Some((name, event)) = record.event(&member.cluster) {
        write(member, &name, &event).await;
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
