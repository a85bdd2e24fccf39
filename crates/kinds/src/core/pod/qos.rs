//! The quality of service that a pod gets for what it asks.

use serde_json::Value;

use crate::value::{at, entries, has, list};

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn class(spec: &Value) -> &'static str {
    // Resources of the pod as a whole say it for all containers.
    if has(spec, &["resources", "requests"]) || has(spec, &["resources", "limits"]) {
        return of([at(spec, &["resources"])].into_iter());
    }
    let containers = list(spec, &["containers"]).iter();
    let all = containers.chain(list(spec, &["initContainers"]));
    of(all.map(|container| at(container, &["resources"])))
}

fn of<'a>(resources: impl Iterator<Item = &'a Value>) -> &'static str {
    let mut asks = false;
    let mut guaranteed = true;
    for resources in resources {
        let amount = |kind: &str, name: &str| {
            let amount = at(resources, &[kind, name]);
            (!amount.is_null() && amount != "0").then_some(amount)
        };
        asks |= ["requests", "limits"].iter().any(|kind| {
            entries(resources, &[kind])
                .any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount != "0")
        });
        guaranteed &= ["cpu", "memory"].iter().all(|name| {
            let limit = amount("limits", name);
            limit.is_some() && amount("requests", name).is_none_or(|asked| Some(asked) == limit)
        });
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let full = json!({"cpu": "1", "memory": "1Gi"});
        let cases = [
            (json!([{}]), "BestEffort"),
            (
                json!([{"resources": {"limits": full, "requests": full}}]),
                "Guaranteed",
            ),
            (json!([{"resources": {"limits": full}}]), "Guaranteed"),
            (json!([{"resources": {"limits": full}}, {}]), "Burstable"),
            (
                json!([{"resources": {"requests": {"cpu": "1"}}}]),
                "Burstable",
            ),
            (
                json!([{"resources": {"requests": {"cpu": "0"}}}]),
                "BestEffort",
            ),
            (
                json!([{"resources": {"requests": {"example.com/gpu": "1"}}}]),
                "BestEffort",
            ),
        ];
        for (containers, expected) in cases {
            assert_eq!(
                class(&json!({"containers": containers})),
                expected,
                "{containers}"
            );
        }
    }
}
