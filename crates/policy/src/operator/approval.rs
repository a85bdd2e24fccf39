//! Which InstallPlan counts, and whether it may go ahead.

use std::collections::BTreeSet;

use bellwether_api::policy::OperatorPolicy;
use bellwether_api::policy::names::operator as names;
use serde_json::{Value, json};

use super::configured::{Allows as _, Configured};
use super::finding::{Finding, Part, related, unseen};
use super::look::{INSTALL_PLAN, Look, POLICY, SUBSCRIPTION, Stop, Written, text};
use crate::config_policy::{Verb, reason};

/// How deep dependencies of bundles are followed.
const MAX_DEPTH: usize = 32;

const NEEDS_APPROVAL: &str = "RequiresApproval";
const INSTALLING: &str = "Installing";
const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";

/// What is found of the InstallPlan of an operator.
pub(super) fn install_plan(
    policy: &OperatorPolicy,
    versions: &[String],
    subscription: Option<&Value>,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let Some(subscription) = subscription else {
        return Ok(Finding::invalid(Part::InstallPlan));
    };
    let namespace = text(subscription, "namespace");
    let has_any = !current(subscription).is_empty() || !installed(subscription).is_empty();
    let plans = if has_any {
        look.list(INSTALL_PLAN, namespace, "")?
    } else {
        &[]
    };
    let Some(plan) = latest(plans, subscription) else {
        let text = "There are no relevant InstallPlans in this namespace";
        let object = unseen(INSTALL_PLAN, namespace, "-", Some(true), text);
        let message = "there are no relevant InstallPlans in the namespace".to_owned();
        let finding = Finding::new(Part::InstallPlan, true, "NoInstallPlansFound", message);
        return Ok(finding.with(vec![object]));
    };
    if policy.spec.compliance_type.is_must_not_have() {
        let text = reason::NOT_APPLICABLE;
        let object = related(INSTALL_PLAN, plan, Some(true), text);
        return Ok(Finding::not_applicable(Part::InstallPlan).with(vec![object]));
    }
    progress(policy, versions, subscription, plan, look)
}

/// The version that the Subscription asks for.
fn current(subscription: &Value) -> &str {
    let name = subscription["status"]["currentCSV"].as_str();
    name.unwrap_or_default()
}

/// The version that is installed.
pub(super) fn installed(subscription: &Value) -> &str {
    let name = subscription["status"]["installedCSV"].as_str();
    name.unwrap_or_default()
}

fn phase(plan: &Value) -> &str {
    plan["status"]["phase"].as_str().unwrap_or_default()
}

/// The versions that an InstallPlan installs.
fn versions_of(plan: &Value) -> Vec<&str> {
    let names = plan["spec"]["clusterServiceVersionNames"].as_array();
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The newest InstallPlan that is about the operator. One that installs the current version wins.
fn latest<'p>(plans: &'p [Value], subscription: &Value) -> Option<&'p Value> {
    let (current, installed) = (current(subscription), installed(subscription));
    let mut newest: Option<(i64, &Value)> = None;
    for plan in plans {
        let versions = versions_of(plan);
        let is_current = !current.is_empty() && versions.contains(&current);
        if is_current && matches!(phase(plan), INSTALLING | COMPLETE) {
            return Some(plan);
        }
        let is_installed = !installed.is_empty() && versions.contains(&installed);
        let generation = plan["spec"]["generation"].as_i64().unwrap_or_default();
        if (is_current || is_installed) && newest.is_none_or(|(known, _)| generation > known) {
            newest = Some((generation, plan));
        }
    }
    newest.map(|(_, plan)| plan)
}

/// An InstallPlan that is about an operator, and what decides about it.
struct Waiting<'p> {
    policy: &'p OperatorPolicy,
    subscription: &'p Value,
    plan: &'p Value,
}

fn progress(
    policy: &OperatorPolicy,
    versions: &[String],
    subscription: &Value,
    plan: &Value,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let it = Waiting {
        policy,
        subscription,
        plan,
    };
    let current = current(subscription);
    match phase(plan) {
        NEEDS_APPROVAL if installed(subscription) != current => it.approve(versions, look),
        INSTALLING => {
            let message = "a relevant InstallPlan is actively installing";
            Ok(it.found(false, "InstallPlansInstalling", message.to_owned()))
        }
        FAILED if has_failed(plan, current) => {
            let message = "the current InstallPlan has failed".to_owned();
            Ok(it.found(false, "InstallPlanFailed", message))
        }
        _ => {
            let message = "no InstallPlans requiring approval were found".to_owned();
            Ok(it.found(true, "NoInstallPlansRequiringApproval", message))
        }
    }
}

impl Waiting<'_> {
    /// Something that is true of the InstallPlan, which is listed with its phase.
    fn found(&self, is_good: bool, reason: &str, message: String) -> Finding {
        let phase = phase(self.plan);
        let is_compliant = match phase {
            COMPLETE => true,
            INSTALLING | NEEDS_APPROVAL => self.allows_upgrades(),
            _ => false,
        };
        let shown = if phase.is_empty() { "Unknown" } else { phase };
        let text = format!("The InstallPlan is {shown}");
        let object = related(INSTALL_PLAN, self.plan, Some(is_compliant), &text);
        Finding::new(Part::InstallPlan, is_good, reason, message).with(vec![object])
    }

    fn allows_upgrades(&self) -> bool {
        self.policy.allows(Configured::UpgradesAvailable)
    }

    fn approved(&self) -> Finding {
        let name = current(self.subscription);
        let message = format!("the InstallPlan for {name} was approved");
        self.found(true, "InstallPlanApproved", message)
    }

    /// It waits for somebody to approve it; these versions for somebody else.
    fn available(&self, waiting: &[&str]) -> Finding {
        let all = versions_of(self.plan);
        let what = match all.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("[{}]", several.join(", ")),
        };
        let but = match waiting {
            [] => String::new(),
            waiting => format!(" but approval for [{}] is required", waiting.join(", ")),
        };
        let message = format!("an InstallPlan to update to {what} is available for approval{but}");
        let is_good = self.allows_upgrades();
        self.found(is_good, "InstallPlanRequiresApproval", message)
    }

    /// Approves it if the policy is enforced and everything that it installs may be installed.
    fn approve(&self, versions: &[String], look: &Look<'_>) -> Result<Finding, Stop> {
        if self.plan["spec"]["approved"] == true {
            return Ok(self.approved());
        }
        let is_enforced = self.policy.spec.remediation_action.is_enforce();
        if !is_enforced || !may_approve(self.policy, self.subscription) {
            return Ok(self.available(&[]));
        }
        let mut allowed = approvable(self.policy, versions, self.subscription, self.plan);
        let all = versions_of(self.plan);
        if !all.iter().all(|name| allowed.contains(*name)) {
            allowed.extend(approvable_by_others(self.subscription, self.plan, look)?);
        }
        let mut waiting = all;
        waiting.retain(|name| !allowed.contains(*name));
        if !waiting.is_empty() {
            return Ok(self.available(&waiting));
        }
        let mut update = self.plan.clone();
        update["spec"]["approved"] = json!(true);
        Ok(match look.write(Verb::Update, INSTALL_PLAN, &update)? {
            Written::NotYet => self.available(&[]),
            Written::Done(_) => self.approved(),
            Written::Failed(error) => {
                let listed = self.available(&[]).objects.unwrap_or_default();
                Finding::refused(Part::InstallPlan, "approved", &error.message).with(listed)
            }
        })
    }
}

/// Whether an InstallPlan failed at a version. It may be about several.
fn has_failed(plan: &Value, version: &str) -> bool {
    if versions_of(plan).len() == 1 {
        return true;
    }
    let steps = plan["status"]["plan"].as_array();
    steps.into_iter().flatten().any(|step| {
        let status = step["status"].as_str().unwrap_or_default();
        step["resolving"] == *version && !matches!(status, "Created" | "Present")
    })
}

/// The first installation is always approved, upgrades if the policy says so.
fn may_approve(policy: &OperatorPolicy, subscription: &Value) -> bool {
    installed(subscription).is_empty()
        || policy.spec.upgrade_approval.as_deref() == Some("Automatic")
}

/// The versions that a policy may be about, with the one that the Subscription starts with.
pub(super) fn is_allowed(versions: &[String], subscription: &Value, name: &str) -> bool {
    let start = subscription["spec"]["startingCSV"].as_str();
    versions.is_empty() || versions.iter().any(|it| it == name) || start == Some(name)
}

/// What a policy approves of an InstallPlan: its own version, and what that depends on.
fn approvable(
    policy: &OperatorPolicy,
    versions: &[String],
    subscription: &Value,
    plan: &Value,
) -> BTreeSet<String> {
    let name = current(subscription);
    let mut approved = BTreeSet::new();
    let may = policy.spec.remediation_action.is_enforce() && may_approve(policy, subscription);
    if !may || name.is_empty() || !is_allowed(versions, subscription, name) {
        return approved;
    }
    approved.insert(name.to_owned());
    let mut packages = BTreeSet::new();
    follow(plan, &|bundle| bundle == name, &mut packages, 0);
    for package in packages {
        let prefix = format!("{package}.v");
        let of_package = versions_of(plan).into_iter();
        let of_package = of_package.filter(|name| name.starts_with(&prefix));
        approved.extend(of_package.map(str::to_owned));
    }
    approved
}

/// Adds the packages that bundles depend on.
fn follow(
    plan: &Value,
    is_asked: &dyn Fn(&str) -> bool,
    packages: &mut BTreeSet<String>,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let bundles = plan["status"]["bundleLookups"].as_array();
    for bundle in bundles.into_iter().flatten() {
        let identifier = bundle["identifier"].as_str().unwrap_or_default();
        if !is_asked(identifier) {
            continue;
        }
        let properties = bundle["properties"].as_str().unwrap_or_default();
        let properties: Value = serde_json::from_str(properties).unwrap_or_default();
        let properties = properties["properties"].as_array();
        for property in properties.into_iter().flatten() {
            let package = property["value"]["packageName"].as_str();
            let is_required = property["type"] == "olm.package.required";
            let Some(package) = package.filter(|it| is_required && !it.is_empty()) else {
                continue;
            };
            if packages.insert(package.to_owned()) {
                let prefix = format!("{package}.v");
                follow(plan, &|it| it.starts_with(&prefix), packages, depth + 1);
            }
        }
    }
}

/// What other policies approve, whose operators are part of the same InstallPlan.
fn approvable_by_others(
    subscription: &Value,
    plan: &Value,
    look: &Look<'_>,
) -> Result<BTreeSet<String>, Stop> {
    let mut approved = BTreeSet::new();
    let namespace = text(subscription, "namespace");
    for other in look.list(SUBSCRIPTION, namespace, names::MANAGED)? {
        let owner = other["metadata"]["annotations"][names::MANAGED].as_str();
        let owner = owner.unwrap_or_default().split_once('.');
        let is_self = text(other, "name") == text(subscription, "name");
        let Some((namespace, name)) = owner.filter(|_| !is_self) else {
            continue;
        };
        let Some(policy) = look.object(POLICY, namespace, name)? else {
            continue;
        };
        if let Ok(policy) = serde_json::from_value::<OperatorPolicy>(policy.clone()) {
            let versions = policy.spec.versions.clone();
            approved.extend(approvable(&policy, &versions, other, plan));
        }
    }
    Ok(approved)
}
