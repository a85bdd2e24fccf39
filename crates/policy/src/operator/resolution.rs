//! Subscriptions whose operator the Operator Lifecycle Manager cannot find, and the one case in which it can be helped.
//!
//! An operator may be there whose Subscription was deleted and created again. The manager then refuses to install it a
//! second time, and does not connect the two. After a while a policy that enforces does, by the status of the
//! Subscription.

use bellwether_api::meta::{TRUE, Time};
use bellwether_api::policy::OperatorPolicy;
use jiff::{SignedDuration, Timestamp};
use regex::Regex;
use serde_json::{Value, json};

use super::finding::{Finding, Part, related};
use super::look::{Look, SERVICE_VERSION, SUBSCRIPTION, Stop, Written, text};
use crate::config_policy::{Verb, reason};

/// How long the manager has to resolve it by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(30);
/// For how long an intervention that is due may still happen; then the manager gets another while.
const DUE: SignedDuration = SignedDuration::from_secs(10);

/// How the manager fares with a Subscription.
pub(super) struct Resolution {
    /// The Subscription as it is now.
    pub(super) object: Value,
    /// What is wrong; nothing if nothing is.
    pub(super) finding: Option<Finding>,
    /// When it is helped, if it is still so.
    pub(super) intervention: Option<Timestamp>,
}

/// Looks at how the manager fares with a Subscription that is as the policy wants it.
pub(super) fn resolution(
    policy: &OperatorPolicy,
    live: &Value,
    look: &Look<'_>,
) -> Result<Resolution, Stop> {
    let planned = policy.status.as_ref();
    let planned = planned.and_then(|it| it.subscription_intervention_time.as_ref());
    let is_current = |it: &Timestamp| look.now.duration_since(*it) <= DUE;
    let planned = planned.map(|it| it.0).filter(is_current);
    let mut resolution = Resolution {
        object: live.clone(),
        finding: None,
        intervention: planned,
    };
    let Some((why, message)) = failure(live) else {
        return Ok(resolution);
    };
    let is_unsatisfiable = why.eq_ignore_ascii_case("ConstraintsNotSatisfiable");
    if is_unsatisfiable && !speaks_of(live, message) {
        // All Subscriptions of a namespace have the condition if one of them has a problem.
        return Ok(resolution);
    }
    // The text of unsatisfiable constraints changes from one attempt to the next.
    let said = if is_unsatisfiable {
        "there were failures resolving the Subscription: its constraints cannot be satisfied"
    } else {
        message
    };
    let objects = vec![related(SUBSCRIPTION, live, Some(false), why)];
    let finding = Finding::new(Part::Subscription, false, why, said.to_owned()).with(objects);
    resolution.finding = Some(finding);
    let orphan = is_unsatisfiable.then(|| unreferenced(message)).flatten();
    let Some(orphan) = orphan.filter(|_| policy.spec.remediation_action.is_enforce()) else {
        return Ok(resolution);
    };
    match planned {
        None => resolution.intervention = look.now.checked_add(GRACE).ok(),
        Some(time) if time > look.now => {}
        Some(_) => connect(&mut resolution, orphan, look)?,
    }
    Ok(resolution)
}

/// Why the manager cannot resolve a Subscription, and what it says about it.
fn failure(live: &Value) -> Option<(&str, &str)> {
    let conditions = live["status"]["conditions"].as_array()?;
    let failed = conditions
        .iter()
        .find(|it| it["type"] == "ResolutionFailed" && it["status"] == TRUE)?;
    let of_failed = |field: &str| failed[field].as_str().unwrap_or_default();
    Some((of_failed("reason"), of_failed("message")))
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

/// The version that is installed without a Subscription, if that is the problem.
fn unreferenced(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" exists and is not referenced")?;
    let (_, name) = before.rsplit_once("clusterserviceversion ")?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then_some(name)
}

/// Points a Subscription that points nowhere to the version that is installed.
fn connect(resolution: &mut Resolution, orphan: &str, look: &Look<'_>) -> Result<(), Stop> {
    let of_status = |field: &str| {
        let value = resolution.object["status"][field].as_str();
        value.unwrap_or_default().to_owned()
    };
    if !of_status("installedCSV").is_empty() || !of_status("currentCSV").is_empty() {
        return Ok(());
    }
    let namespace = text(&resolution.object, "namespace");
    let Some(version) = look.object(SERVICE_VERSION, namespace, orphan)? else {
        return Ok(());
    };
    let is_copied = version["status"]["reason"] == "Copied"
        || version["metadata"]["labels"]
            .get("olm.copiedFrom")
            .is_some();
    if is_copied {
        return Ok(());
    }
    let mut object = resolution.object.clone();
    object["status"]["currentCSV"] = json!(orphan);
    if of_status("lastUpdated").is_empty() {
        object["status"]["lastUpdated"] = json!(Time(look.now));
    }
    match look.write(Verb::UpdateStatus, SUBSCRIPTION, &object)? {
        Written::NotYet => {}
        Written::Done(written) => {
            let objects = vec![related(SUBSCRIPTION, written, Some(true), reason::UPDATED)];
            resolution.finding = Some(Finding::updated(Part::Subscription).with(objects));
            resolution.object = written.clone();
        }
        Written::Failed(error) => {
            let objects = vec![related(
                SUBSCRIPTION,
                &object,
                Some(false),
                reason::NO_MATCH,
            )];
            let finding = Finding::refused(Part::Subscription, "updated", &error.message);
            resolution.finding = Some(finding.with(objects));
        }
    }
    Ok(())
}
