//! What a policy installs itself: the OperatorGroup and the Subscription.

use bellwether_api::meta::TRUE;
use bellwether_api::policy::OperatorPolicy;
use bellwether_apply::compliance::{Duty, Rule, compare, strip};
use regex::Regex;
use serde_json::{Value, json};

use super::finding::{Finding, Part, related, unseen};
use super::look::{GROUP, Look, OlmKind, SUBSCRIPTION, Stop, Written, text};
use super::removal;
use crate::config_policy::{Verb, WriteErrorKind, reason};

/// Whether the OperatorGroup is as the policy wants it, so that the Subscription may follow.
pub(super) fn group(
    policy: &OperatorPolicy,
    wanted: Option<&Value>,
    look: &Look<'_>,
) -> Result<(bool, Finding), Stop> {
    let Some(wanted) = wanted else {
        return Ok((false, Finding::invalid(Part::Group)));
    };
    let found = look.list(GROUP, text(wanted, "namespace"), "")?;
    if policy.spec.compliance_type.is_must_not_have() {
        let finding = removal::group(policy, wanted, found, look)?;
        return Ok((false, finding));
    }
    let live = match found {
        [] => return create(policy, Part::Group, wanted, look),
        [live] => live,
        several => return Ok((false, too_many(several))),
    };
    let is_specified = policy.spec.operator_group.is_some();
    if !is_same_group(wanted, live) {
        return Ok(if is_specified {
            // A second one would break all operators of the namespace.
            let missing = related(GROUP, wanted, Some(false), reason::NOT_FOUND);
            let other = related(GROUP, live, Some(false), reason::NO_MATCH);
            let finding = Finding::mismatch(Part::Group).with(vec![missing, other]);
            (false, finding)
        } else {
            (true, preexisting(live))
        });
    }
    let mut named = wanted.clone();
    named["metadata"]["name"] = live["metadata"]["name"].clone();
    let (is_right, finding) = check(policy, Part::Group, &named, live, look)?;
    if !is_right && !is_specified {
        return Ok((true, preexisting(live)));
    }
    Ok((is_right, finding))
}

pub(super) fn too_many(groups: &[Value]) -> Finding {
    let reason = "There is more than one OperatorGroup in this namespace";
    let groups = groups.iter();
    let objects = groups.map(|group| related(GROUP, group, Some(false), reason));
    let message = "there is more than one OperatorGroup in the namespace".to_owned();
    Finding::new(Part::Group, false, "TooManyOperatorGroups", message).with(objects.collect())
}

fn preexisting(live: &Value) -> Finding {
    let message = "the policy does not specify an OperatorGroup but one already exists in the namespace - assuming that OperatorGroup is correct".to_owned();
    let objects = vec![related(GROUP, live, Some(true), reason::FOUND)];
    Finding::new(Part::Group, true, "PreexistingOperatorGroupFound", message).with(objects)
}

/// Whether an OperatorGroup is the one that the policy speaks of.
pub(super) fn is_same_group(wanted: &Value, live: &Value) -> bool {
    let name = text(wanted, "name");
    if name.is_empty() {
        return text(live, "generateName") == text(wanted, "generateName");
    }
    text(live, "name") == name
}

/// The Subscription as it is or will be, and what is found of it.
pub(super) fn subscription(
    policy: &OperatorPolicy,
    wanted: Option<&Value>,
    is_group_right: bool,
    look: &Look<'_>,
) -> Result<(Option<Value>, Finding), Stop> {
    let Some(wanted) = wanted else {
        return Ok((None, Finding::invalid(Part::Subscription)));
    };
    let live = look.object(
        SUBSCRIPTION,
        text(wanted, "namespace"),
        text(wanted, "name"),
    )?;
    if policy.spec.compliance_type.is_must_not_have() {
        let finding = removal::subscription(policy, wanted, live, look)?;
        return Ok((Some(live.unwrap_or(wanted).clone()), finding));
    }
    let Some(live) = live else {
        let finding = if is_group_right {
            create(policy, Part::Subscription, wanted, look)?.1
        } else {
            missing(Part::Subscription, wanted)
        };
        return Ok((Some(wanted.clone()), finding));
    };
    let (is_right, finding) = check(policy, Part::Subscription, wanted, live, look)?;
    let unresolved = unresolved(live).filter(|_| is_right);
    Ok((Some(live.clone()), unresolved.unwrap_or(finding)))
}

/// The Operator Lifecycle Manager cannot find what a Subscription asks for.
fn unresolved(live: &Value) -> Option<Finding> {
    let conditions = live["status"]["conditions"].as_array()?;
    let failed = conditions
        .iter()
        .find(|it| it["type"] == "ResolutionFailed" && it["status"] == TRUE)?;
    let of_failed = |field: &str| failed[field].as_str().unwrap_or_default();
    let (reason, message) = (of_failed("reason"), of_failed("message"));
    let is_unsatisfiable = reason.eq_ignore_ascii_case("ConstraintsNotSatisfiable");
    if is_unsatisfiable && !speaks_of(live, message) {
        // All Subscriptions of a namespace have the condition if one of them has a problem.
        return None;
    }
    // The text of unsatisfiable constraints changes from one attempt to the next.
    let message = if is_unsatisfiable {
        "there were failures resolving the Subscription: its constraints cannot be satisfied"
    } else {
        message
    };
    let objects = vec![related(SUBSCRIPTION, live, Some(false), reason)];
    Some(Finding::new(Part::Subscription, false, reason, message.to_owned()).with(objects))
}

fn speaks_of(subscription: &Value, message: &str) -> bool {
    let namespace = regex::escape(text(subscription, "namespace"));
    let name = regex::escape(text(subscription, "name"));
    let package = subscription["spec"]["name"].as_str().unwrap_or_default();
    let package = regex::escape(package);
    let pattern = format!(
        r"(?:subscription (?:{namespace}/)?{name}|package (?:{namespace}/)?{package})(?:$|\s|,|:)"
    );
    Regex::new(&pattern).map_or(true, |pattern| pattern.is_match(message))
}

fn kind_of(part: Part) -> OlmKind {
    part.kind().unwrap_or(SUBSCRIPTION)
}

fn missing(part: Part, wanted: &Value) -> Finding {
    let object = unseen(
        kind_of(part),
        text(wanted, "namespace"),
        text(wanted, "name"),
        Some(false),
        reason::NOT_FOUND,
    );
    Finding::missing(part).with(vec![object])
}

/// Creates an object if the policy is enforced.
fn create(
    policy: &OperatorPolicy,
    part: Part,
    wanted: &Value,
    look: &Look<'_>,
) -> Result<(bool, Finding), Stop> {
    if !policy.spec.remediation_action.is_enforce() {
        return Ok((false, missing(part, wanted)));
    }
    let kind = kind_of(part);
    Ok(match look.write(Verb::Create, kind, wanted)? {
        Written::NotYet => (false, missing(part, wanted)),
        Written::Done(object) => {
            let mut object = related(kind, object, Some(true), reason::CREATED);
            object.properties.get_or_insert_default().created_by_policy = Some(true);
            (true, Finding::created(part).with(vec![object]))
        }
        Written::Failed(error) => {
            let objects = missing(part, wanted).objects.unwrap_or_default();
            let refused = Finding::refused(part, "created", &error.message);
            (false, refused.with(objects))
        }
    })
}

/// Compares an object with what is wanted, and updates it if the policy is enforced.
fn check(
    policy: &OperatorPolicy,
    part: Part,
    wanted: &Value,
    live: &Value,
    look: &Look<'_>,
) -> Result<(bool, Finding), Stop> {
    let kind = kind_of(part);
    let object = |is_compliant, reason| vec![related(kind, live, Some(is_compliant), reason)];
    let right = || {
        (
            true,
            Finding::matches(part).with(object(true, reason::FOUND)),
        )
    };
    let wrong = || {
        (
            false,
            Finding::mismatch(part).with(object(false, reason::NO_MATCH)),
        )
    };
    let comparison = match compare(wanted, live, Rule::of(Duty::MustHave)) {
        Ok(comparison) => comparison,
        Err(error) => {
            let finding = Finding::refused(part, "compared", &error);
            return Ok((false, finding.with(object(false, reason::NO_MATCH))));
        }
    };
    if !comparison.needs_update && !comparison.is_missing {
        return Ok(right());
    }
    match look.write(Verb::DryRun, kind, &comparison.merged)? {
        Written::Done(updated) if is_unchanged(live, updated) => return Ok(right()),
        Written::Failed(error)
            if policy.spec.remediation_action.is_enforce()
                && error.kind == WriteErrorKind::Invalid =>
        {
            let finding = Finding::cannot_be_enforced(part);
            return Ok((false, finding.with(object(false, reason::NO_MATCH))));
        }
        _ => {}
    }
    if !policy.spec.remediation_action.is_enforce() {
        return Ok(wrong());
    }
    Ok(match look.write(Verb::Update, kind, &comparison.merged)? {
        Written::NotYet => wrong(),
        Written::Done(_) => (
            true,
            Finding::updated(part).with(object(true, reason::UPDATED)),
        ),
        Written::Failed(error) => {
            let finding = Finding::refused(part, "updated", &error.message);
            (false, finding.with(object(false, reason::NO_MATCH)))
        }
    })
}

fn is_unchanged(live: &Value, updated: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        strip(&mut object);
        object["metadata"]["resourceVersion"] = json!(null);
        object
    };
    stripped(live) == stripped(updated)
}
