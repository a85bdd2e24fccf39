//! Revisions of Components: a change of the spec is a new one, and old ones go that nobody uses.

use std::collections::BTreeSet;

use bellwether_api::oam::{Component, RevisionReference};
use serde_json::{Value, json};

use crate::revision::hash;

/// How many revisions of a Component are kept besides those that are in use.
pub const REVISION_LIMIT: usize = 50;

/// A stored revision of a Component.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRevision {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// The Component as it was.
    pub data: Value,
}

/// What has to become of the revisions of a Component.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionPlan {
    /// The latest revision, as the status has it.
    pub latest: RevisionReference,
    /// Whether it has yet to be stored.
    pub is_new: bool,
}

/// Returns the name of a revision.
pub fn name(component: &str, number: i64) -> String {
    format!("{component}-v{number}")
}

/// Returns the Component that a revision is named after: `web` for `web-v3`.
pub fn component_of(revision: &str) -> Option<&str> {
    let (component, number) = revision.rsplit_once("-v")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(component)
}

/// Returns what is stored of a Component.
pub fn data(component: &Component) -> Value {
    json!({
        "apiVersion": "core.oam.dev/v1alpha2",
        "kind": "Component",
        "metadata": {
            "name": component.metadata.name,
            "namespace": component.metadata.namespace,
            "labels": component.metadata.labels.clone().unwrap_or_default(),
        },
        "spec": component.spec,
    })
}

/// Decides which revision is the latest one, given those that are stored.
pub fn plan(component: &Component, stored: &[StoredRevision]) -> RevisionPlan {
    let spec = serde_json::to_value(&component.spec).unwrap_or_default();
    let latest = stored.iter().max_by_key(|revision| revision.number);
    let reference = |name: String, revision: i64| RevisionReference {
        name,
        revision,
        revision_hash: hash(&spec),
        ..RevisionReference::default()
    };
    if let Some(latest) = latest.filter(|latest| latest.data["spec"] == spec) {
        return RevisionPlan {
            latest: reference(latest.name.clone(), latest.number),
            is_new: false,
        };
    }
    let number = latest.map_or(1, |latest| latest.number.saturating_add(1));
    let component = component.metadata.name.as_deref().unwrap_or_default();
    RevisionPlan {
        latest: reference(name(component, number), number),
        is_new: true,
    }
}

/// Returns the names of revisions that go: the oldest beyond the limit that nobody uses.
pub fn surplus<'a>(
    stored: &'a [StoredRevision],
    in_use: &BTreeSet<String>,
    limit: usize,
) -> Vec<&'a str> {
    let mut unused: Vec<&StoredRevision> = stored
        .iter()
        .filter(|revision| !in_use.contains(&revision.name))
        .collect();
    unused.sort_by_key(|revision| revision.number);
    let count = unused.len().saturating_sub(limit);
    let oldest = unused.into_iter().take(count);
    oldest.map(|revision| revision.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(image: &str) -> Component {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"workload": {"apiVersion": "v1", "kind": "Pod", "spec": {"image": image}}},
        }))
        .unwrap()
    }

    fn stored(number: i64, image: &str) -> StoredRevision {
        StoredRevision {
            name: name("web", number),
            number,
            data: data(&component(image)),
        }
    }

    #[track_caller]
    fn check(image: &str, revisions: &[StoredRevision], expected: (&str, bool)) {
        let plan = plan(&component(image), revisions);
        assert_eq!((plan.latest.name.as_str(), plan.is_new), expected);
        assert_eq!(
            Some(plan.latest.revision),
            plan.latest.name[5..].parse().ok()
        );
    }

    #[test]
    fn a_spec_that_differs_from_the_latest_revision_is_a_new_one() {
        check("a", &[], ("web-v1", true));
        check("a", &[stored(1, "a")], ("web-v1", false));
        check("b", &[stored(1, "a")], ("web-v2", true));
        // Going back is a revision too.
        check("a", &[stored(1, "a"), stored(2, "b")], ("web-v3", true));
        // The order in which they are listed does not matter.
        check("b", &[stored(10, "b"), stored(9, "a")], ("web-v10", false));
    }

    #[test]
    fn the_oldest_revisions_go_that_nobody_uses() {
        let revisions: Vec<StoredRevision> = (1..=5).map(|number| stored(number, "a")).collect();
        let in_use = BTreeSet::from(["web-v1".to_owned()]);
        assert_eq!(surplus(&revisions, &in_use, 2), ["web-v2", "web-v3"]);
        assert!(surplus(&revisions, &in_use, 4).is_empty());
    }

    #[test]
    fn revisions_are_named_after_their_component() {
        assert_eq!(component_of("web-v3"), Some("web"));
        assert_eq!(component_of("web-v2-v10"), Some("web-v2"));
        for other in ["web", "web-v", "web-vx", "web-v1x", ""] {
            assert_eq!(component_of(other), None, "{other}");
        }
    }
}
