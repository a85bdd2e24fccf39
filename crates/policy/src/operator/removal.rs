//! What a policy removes that does not want an operator.

use bellwether_api::policy::{OperatorPolicy, RelatedObject};
use serde_json::Value;

use super::finding::{Finding, Part, related, unseen};
use super::install::{is_same_group, too_many};
use super::look::{GROUP, Look, OlmKind, SERVICE_VERSION, SUBSCRIPTION, Stop, Written, text};
use crate::config_policy::{Verb, WriteErrorKind, reason};

/// Why something that is being deleted is not gone.
const DELETING: &str = "The object is being deleted but has not been removed yet";

/// True if the policy names in one word what happens to a kind.
fn says(policy: &OperatorPolicy, field: &str, default: &str, word: &str) -> bool {
    let behavior = policy.spec.removal_behavior.as_ref();
    let said = behavior.and_then(|behavior| behavior[field].as_str());
    said.unwrap_or(default).eq_ignore_ascii_case(word)
}

fn kept(part: Part, kind: OlmKind, objects: &[&Value]) -> Finding {
    let text = format!(
        "The {} is attached to a mustnothave policy, but does not need to be removed",
        kind.name
    );
    let objects = objects.iter().map(|it| related(kind, it, None, &text));
    Finding::kept(part).with(objects.collect())
}

/// The OperatorGroup goes if nobody else uses it.
pub(super) fn group(
    policy: &OperatorPolicy,
    wanted: &Value,
    found: &[Value],
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let namespace = text(wanted, "namespace");
    let absent = || {
        let name = text(wanted, "name");
        let name = if name.is_empty() { "-" } else { name };
        let object = unseen(GROUP, namespace, name, Some(true), reason::ABSENT);
        Finding::not_present(Part::Group).with(vec![object])
    };
    let live = match found {
        [] => return Ok(absent()),
        [live] => live,
        several => return Ok(too_many(several)),
    };
    let field = "operatorGroups";
    let mut is_kept = says(policy, field, "DeleteIfUnused", "Keep");
    if says(policy, field, "DeleteIfUnused", "DeleteIfUnused") {
        // The Subscription of this operator goes first.
        let own = policy.spec.subscription["name"].as_str();
        let all = look.list(SUBSCRIPTION, namespace, "")?;
        is_kept |= all.iter().any(|it| Some(text(it, "name")) != own);
    }
    let has_owner = live["metadata"]["ownerReferences"]
        .as_array()
        .is_some_and(|owners| !owners.is_empty());
    if !is_kept && !is_same_group(wanted, live) {
        return Ok(absent());
    }
    if is_kept || has_owner {
        return Ok(kept(Part::Group, GROUP, &[live]));
    }
    delete(policy, Part::Group, GROUP, &[live], look)
}

/// The Subscription goes, so that nothing is installed again.
pub(super) fn subscription(
    policy: &OperatorPolicy,
    wanted: &Value,
    live: Option<&Value>,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let part = Part::Subscription;
    let Some(live) = live else {
        let object = related(SUBSCRIPTION, wanted, Some(true), reason::ABSENT);
        return Ok(Finding::not_present(part).with(vec![object]));
    };
    if says(policy, "subscriptions", "Delete", "Keep") {
        return Ok(kept(part, SUBSCRIPTION, &[live]));
    }
    delete(policy, part, SUBSCRIPTION, &[live], look)
}

/// The versions of the operator go, and their deployments with them.
pub(super) fn service_versions(
    policy: &OperatorPolicy,
    found: &[Value],
    namespace: &str,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let part = Part::ServiceVersion;
    if found.is_empty() {
        let object = unseen(SERVICE_VERSION, namespace, "-", Some(true), reason::ABSENT);
        return Ok(Finding::not_present(part).with(vec![object]));
    }
    let found: Vec<&Value> = found.iter().collect();
    if says(policy, "clusterServiceVersions", "Delete", "Keep") {
        return Ok(kept(part, SERVICE_VERSION, &found));
    }
    delete(policy, part, SERVICE_VERSION, &found, look)
}

/// The kinds that the operator has defined go only if the policy says so: their objects go with them.
pub(super) fn definitions(
    policy: &OperatorPolicy,
    found: &[Value],
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let (part, kind) = (Part::Definitions, super::look::DEFINITION);
    let found: Vec<&Value> = found.iter().collect();
    if says(policy, "customResourceDefinitions", "Keep", "Keep") {
        return Ok(kept(part, kind, &found));
    }
    delete(policy, part, kind, &found, look)
}

/// Deletes objects if the policy is enforced.
fn delete(
    policy: &OperatorPolicy,
    part: Part,
    kind: OlmKind,
    objects: &[&Value],
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let all_names: Vec<&str> = objects.iter().map(|it| text(it, "name")).collect();
    // Only versions are named: an operator may have several.
    let names = if part == Part::ServiceVersion {
        &all_names[..]
    } else {
        &[]
    };
    let present = || {
        let listed = objects.iter();
        let listed = listed.map(|it| related(kind, it, Some(false), reason::FORBIDDEN));
        Finding::present(part, names).with(listed.collect())
    };
    if !policy.spec.remediation_action.is_enforce() {
        return Ok(present());
    }
    let mut listed: Vec<RelatedObject> = Vec::new();
    let mut is_left = false;
    for object in objects {
        let was_deleting = object["metadata"]["deletionTimestamp"].is_string();
        let is_gone = if was_deleting {
            false
        } else {
            match look.write(Verb::Delete, kind, object)? {
                Written::NotYet => return Ok(present()),
                Written::Done(rest) => rest.is_null(),
                Written::Failed(error) if error.kind == WriteErrorKind::NotFound => true,
                Written::Failed(error) => {
                    let finding = Finding::refused(part, "deleted", &error.message);
                    return Ok(finding.with(present().objects.unwrap_or_default()));
                }
            }
        };
        is_left |= !is_gone;
        let mut entry = if is_gone {
            related(kind, object, Some(true), reason::DELETED)
        } else {
            related(kind, object, Some(false), DELETING)
        };
        entry.properties = None;
        listed.push(entry);
    }
    let finding = if is_left {
        Finding::deleting(part, names)
    } else {
        Finding::deleted(part, names)
    };
    Ok(finding.with(listed))
}
