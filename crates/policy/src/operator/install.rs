//! What a policy installs itself: the OperatorGroup and the Subscription.

use bellwether_api::policy::OperatorPolicy;
use bellwether_apply::compliance::{Duty, Rule, compare, strip};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::finding::{Finding, Part, related, unseen};
use super::look::{GROUP, Look, OlmKind, SUBSCRIPTION, Stop, Written, text};
use super::{removal, resolution};
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

/// A Subscription.
#[derive(Debug, Default)]
pub(super) struct Subscribed {
    /// As it is or will be; nothing if that is not known.
    pub(super) object: Option<Value>,
    /// When it is helped if it is still stuck.
    pub(super) intervention: Option<Timestamp>,
}

impl Subscribed {
    fn of(object: &Value) -> Self {
        Self {
            object: Some(object.clone()),
            intervention: None,
        }
    }
}

/// The Subscription, and what is found of it.
pub(super) fn subscription(
    policy: &OperatorPolicy,
    wanted: Option<&Value>,
    is_group_right: bool,
    look: &Look<'_>,
) -> Result<(Subscribed, Finding), Stop> {
    let Some(wanted) = wanted else {
        let nothing = Subscribed::default();
        return Ok((nothing, Finding::invalid(Part::Subscription)));
    };
    let live = look.object(
        SUBSCRIPTION,
        text(wanted, "namespace"),
        text(wanted, "name"),
    )?;
    if policy.spec.compliance_type.is_must_not_have() {
        let finding = removal::subscription(policy, wanted, live, look)?;
        return Ok((Subscribed::of(live.unwrap_or(wanted)), finding));
    }
    let Some(live) = live else {
        let finding = if is_group_right {
            create(policy, Part::Subscription, wanted, look)?.1
        } else {
            missing(Part::Subscription, wanted)
        };
        return Ok((Subscribed::of(wanted), finding));
    };
    let (is_right, finding) = check(policy, Part::Subscription, wanted, live, look)?;
    if !is_right {
        return Ok((Subscribed::of(live), finding));
    }
    let stuck = resolution::resolution(policy, live, look)?;
    let subscribed = Subscribed {
        object: Some(stuck.object),
        intervention: stuck.intervention,
    };
    Ok((subscribed, stuck.finding.unwrap_or(finding)))
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
