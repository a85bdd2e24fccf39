//! Which WorkManifestConfig counts for a kind, where there are several.

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::multicluster::names::{condition, reason};
use bellwether_api::multicluster::{ManifestGvk, WorkManifestConfig};
use jiff::Timestamp;

use crate::conditions::{ConditionUpdate, Conditions};

/// The configuration for a kind: the one that is named after it, or else the oldest.
pub fn config_for<'a>(
    configs: impl IntoIterator<Item = &'a WorkManifestConfig>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<&'a WorkManifestConfig> {
    let preferred = [group, version, kind]
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| part.to_lowercase())
        .collect::<Vec<_>>()
        .join("-");
    let is_for =
        |gvk: &ManifestGvk| gvk.group == group && gvk.version == version && gvk.kind == kind;
    configs
        .into_iter()
        .filter(|config| is_for(&config.spec.manifest_gvk))
        .min_by_key(|config| {
            let metadata = &config.metadata;
            (
                metadata.name.as_deref() != Some(&*preferred),
                metadata.creation_timestamp.as_ref().map(|time| time.0),
                metadata.name.clone(),
            )
        })
}

/// The conditions of a configuration among all that there are: whether it is the one that counts.
pub fn standing<'a>(
    config: &WorkManifestConfig,
    all: impl IntoIterator<Item = &'a WorkManifestConfig>,
    now: Timestamp,
) -> Vec<Condition> {
    let gvk = &config.spec.manifest_gvk;
    let used = config_for(all, &gvk.group, &gvk.version, &gvk.kind);
    let name = used.and_then(|used| used.metadata.name.as_deref());
    let other = name.filter(|name| config.metadata.name.as_deref() != Some(name));
    let previous = config.status.as_ref();
    let mut conditions = Conditions::new(previous.map_or(&[], |status| &status.conditions), now);
    let text = other.map(|name| format!("{name} is used for objects of kind {}", gvk.kind));
    conditions.set(ConditionUpdate {
        name: condition::IN_USE,
        status: if other.is_none() { TRUE } else { FALSE },
        reason: if other.is_none() {
            reason::IN_USE
        } else {
            reason::ANOTHER_IN_USE
        },
        message: text.as_deref().unwrap_or_default(),
        generation: config.metadata.generation,
    });
    conditions.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(name: &str, kind: &str, created: &str) -> WorkManifestConfig {
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"manifestGVK": {"group": "apps", "version": "v1", "kind": kind}},
        }))
        .unwrap()
    }

    #[test]
    fn the_one_that_is_named_after_its_kind_counts_and_else_the_oldest() {
        let check = |names: &[(&str, &str)], expected: &str| {
            let all: Vec<_> = names
                .iter()
                .map(|(name, created)| config(name, "Deployment", created))
                .collect();
            let found = config_for(&all, "apps", "v1", "Deployment").unwrap();
            assert_eq!(found.metadata.name.as_deref(), Some(expected), "{names:?}");
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        check(
            &[("b", late), ("apps-v1-deployment", late), ("a", early)],
            "apps-v1-deployment",
        );
        check(&[("b", early), ("a", late)], "b");
        check(&[("b", early), ("a", early)], "a");
        assert_eq!(
            config_for(
                &[config("a", "Deployment", early)],
                "apps",
                "v1",
                "DaemonSet"
            ),
            None
        );
    }

    #[test]
    fn who_loses_says_so() {
        let all = [
            config("mine", "Deployment", "2026-01-01T00:00:00Z"),
            config("apps-v1-deployment", "Deployment", "2026-01-02T00:00:00Z"),
            config("other", "DaemonSet", "2026-01-02T00:00:00Z"),
        ];
        let now = "2026-01-03T00:00:00Z".parse().unwrap();
        let said: Vec<_> = all
            .iter()
            .map(|config| {
                let condition = standing(config, &all, now).remove(0);
                assert_eq!(condition.type_, "InUse");
                (condition.status, condition.reason, condition.message)
            })
            .collect();
        let words = |status: &str, reason: &str, message: &str| {
            (status.to_owned(), reason.to_owned(), message.to_owned())
        };
        assert_eq!(
            said,
            [
                words(
                    "False",
                    "AnotherInUse",
                    "apps-v1-deployment is used for objects of kind Deployment"
                ),
                words("True", "InUse", ""),
                words("True", "InUse", ""),
            ]
        );
    }
}
