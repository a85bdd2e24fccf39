//! What an operator's catalog has to say about its future: deprecations, and channels of newer minor versions.
//!
//! Neither keeps an operator from running. Whether a policy counts them as violations is up to its
//! `complianceConfig`; a condition says what was found in any case. Where there has been nothing to say, there is no
//! condition.

use bellwether_api::policy::OperatorPolicy;
use serde_json::Value;

use super::configured::{Allows as _, Configured};
use super::finding::{Finding, Part};
use super::look::{Look, PACKAGE, Stop};

/// Conditions of a Subscription that say that something is deprecated.
const DEPRECATIONS: [&str; 3] = ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"];

/// What the Operator Lifecycle Manager says is deprecated of an operator; nothing if there is nothing to say.
pub(super) fn deprecations(
    policy: &OperatorPolicy,
    subscription: Option<&Value>,
) -> Option<Finding> {
    let part = Part::Deprecations;
    let is_wanted = !policy.spec.compliance_type.is_must_not_have();
    let subscription = subscription.filter(|_| is_wanted);
    let conditions = subscription.and_then(|it| it["status"]["conditions"].as_array());
    let found: Vec<&str> = conditions
        .into_iter()
        .flatten()
        .filter(|it| it["status"] == "True" && DEPRECATIONS.iter().any(|kind| it["type"] == *kind))
        .map(|it| it["message"].as_str().unwrap_or_default())
        .collect();
    if found.is_empty() {
        let message = "nothing of the operator is deprecated".to_owned();
        let finding = Finding::new(part, true, "NoDeprecationsFound", message);
        return has_condition(policy, part).then(|| finding.unsaid());
    }
    let message = format!("the operator has deprecations: {}", found.join(", "));
    let finding = Finding::new(part, false, "DeprecationsFound", message);
    Some(finding.tolerated_if(policy.allows(Configured::DeprecationsPresent)))
}

/// Whether the package has a channel of a newer minor version than the one that an operator is subscribed to. Asked
/// only where the policy says what it means, and upgrades are automatic: no server lets anybody watch packages.
pub(super) fn channels(
    policy: &OperatorPolicy,
    subscription: Option<&Value>,
    look: &Look<'_>,
) -> Result<Option<Finding>, Stop> {
    let part = Part::Channels;
    let is_asked = policy.mentions(Configured::MinorChannelUpgrade)
        && policy.spec.upgrade_approval.as_deref() == Some("Automatic")
        && !policy.spec.compliance_type.is_must_not_have();
    let Some(subscription) = subscription.filter(|_| is_asked) else {
        let message = "channels of other versions are not looked for".to_owned();
        let finding = Finding::new(part, true, "NotApplicable", message).unsaid();
        return Ok(has_condition(policy, part).then_some(finding));
    };
    let of_spec = |field: &str| subscription["spec"][field].as_str().unwrap_or_default();
    let package = look.object(PACKAGE, "default", of_spec("name"))?;
    let all = package.and_then(|it| it["status"]["channels"].as_array());
    let names = all
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str());
    let current = of_spec("channel");
    Ok(Some(match newer(current, names) {
        None => {
            let message = format!("there is no channel of a newer minor version than {current}");
            Finding::new(part, true, "NoMinorChannelUpgrade", message).unsaid()
        }
        Some(newest) => {
            let message = format!("the channel {newest} has a newer minor version than {current}");
            let finding = Finding::new(part, false, "MinorChannelUpgradeFound", message);
            finding.tolerated_if(policy.allows(Configured::MinorChannelUpgrade))
        }
    }))
}

/// The channel of the newest minor version, of those that differ from the current one in nothing else.
fn newer<'a>(current: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (prefix, major, minor) = version_of(current)?;
    let others = names.filter_map(|name| Some((name, version_of(name)?)));
    let newer = others.filter(|(_, it)| (it.0, it.1) == (prefix, major) && it.2 > minor);
    newer.max_by_key(|(_, it)| it.2).map(|(name, _)| name)
}

/// What stands before the version in the name of a channel, and its numbers: `stable-4.16`.
fn version_of(channel: &str) -> Option<(&str, u64, u64)> {
    let (before, minor) = channel.rsplit_once('.')?;
    let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, major) = before.split_at_checked(before.len() - digits)?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = !prefix.ends_with('.') && is_number(minor);
    is_whole.then_some((prefix, major.parse().ok()?, minor.parse().ok()?))
}

fn has_condition(policy: &OperatorPolicy, part: Part) -> bool {
    let conditions = policy.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|it| it.type_ == part.condition())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(current: &str, names: &[&str], expected: Option<&str>) {
        assert_eq!(newer(current, names.iter().copied()), expected, "{current}");
    }

    #[test]
    fn channels_of_newer_minor_versions_are_found() {
        let names = [
            "stable-4.9",
            "stable-4.10",
            "stable-5.1",
            "fast-4.11",
            "4.12",
            "stable",
        ];
        check("stable-4.9", &names, Some("stable-4.10"));
        check("stable-4.10", &names, None);
        check("4.3", &names, Some("4.12"));
        check("stable", &names, None);
        check("stable-1.2.3", &["stable-1.2.4"], None);
        check("v1.2", &["v1.10", "v1.x"], Some("v1.10"));
    }
}
