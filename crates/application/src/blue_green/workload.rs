//! Workloads of two revisions, side by side.

use bellwether_api::meta::IntOrString;
use bellwether_api::oam::names::label;
use bellwether_json::path::i64_at;
use serde_json::{Value, json};

use crate::distribution::works::replicas_of;

/// How many replicas, or requests, are of the new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// So many hundredths.
    Percent(i64),
    /// So many.
    Count(i64),
}

impl Partition {
    /// Reads a number or a percentage.
    pub fn parse(value: &IntOrString) -> Result<Self, String> {
        let text = match value {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(text) => text.trim().to_owned(),
        };
        let wrong = || format!("{text:?} is not a number or a percentage, such as 2 or \"50%\"");
        let (digits, is_percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text.as_str(), false),
        };
        let number: i64 = digits.trim().parse().map_err(|_| wrong())?;
        match number {
            0..=100 if is_percent => Ok(Self::Percent(number)),
            0.. if !is_percent => Ok(Self::Count(number)),
            _ => Err(wrong()),
        }
    }

    /// How many that are of a total, rounded up.
    pub fn of(self, total: i64) -> i64 {
        match self {
            Self::Percent(percent) => (total.saturating_mul(percent) + 99) / 100,
            Self::Count(count) => count.min(total),
        }
    }

    /// The share of requests, in percent.
    pub fn percent(self) -> i64 {
        match self {
            Self::Percent(percent) | Self::Count(percent) => percent.min(100),
        }
    }
}

/// True if an object has replicas made from a template, so that two revisions of it can be side by side.
pub fn is_replicated(object: &Value) -> bool {
    replicas_of(object).is_some()
        && object
            .pointer("/spec/template")
            .is_some_and(Value::is_object)
}

/// What distinguishes the names of a revision: `v2` of `shop-v2`.
pub fn suffix(revision: &str) -> &str {
    match revision.rsplit_once("-v") {
        Some((_, number))
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            &revision[revision.len() - number.len() - 1..]
        }
        _ => revision,
    }
}

/// The name of a component's workload in a revision of the application.
pub fn versioned_name(component: &str, revision: &str) -> String {
    format!("{component}-{}", suffix(revision))
}

/// A workload under the name of its revision, with so many replicas, whose pods are told from those of the other one.
pub fn versioned(object: &Value, name: &str, replicas: i64) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["labels"][label::REVISION] = json!(name);
    object["spec"]["replicas"] = json!(replicas);
    object["spec"]["selector"]["matchLabels"][label::REVISION] = json!(name);
    object["spec"]["template"]["metadata"]["labels"][label::REVISION] = json!(name);
    object
}

/// True if two revisions have the same workload, but for its size.
pub fn is_same(one: &Value, other: &Value) -> bool {
    let comparable = |object: &Value| {
        let mut spec = object["spec"].clone();
        bellwether_json::path::remove(&mut spec, &["replicas"]);
        (object["kind"].clone(), object["apiVersion"].clone(), spec)
    };
    comparable(one) == comparable(other)
}

/// How many replicas of a live workload are ready.
pub fn ready(live: Option<&Value>) -> i64 {
    let Some(live) = live else { return 0 };
    let number = |path: &[&str]| i64_at(live, path).unwrap_or(0);
    let is_seen = number(&["status", "observedGeneration"]) >= number(&["metadata", "generation"]);
    // A workload that was just scaled down still has the ready ones that go.
    let ready = number(&["status", "readyReplicas"]).min(replicas_of(live).unwrap_or(0));
    if is_seen { ready } else { 0 }
}

/// True if a live workload has no more replicas than it should.
pub fn is_scaled_to(live: Option<&Value>, replicas: i64) -> bool {
    let Some(live) = live else {
        return replicas == 0;
    };
    let number = |path: &[&str]| i64_at(live, path).unwrap_or(0);
    replicas_of(live) == Some(replicas)
        && number(&["status", "observedGeneration"]) >= number(&["metadata", "generation"])
        && number(&["status", "replicas"]) <= replicas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_rounded_up() {
        let of = |text: &str, total| {
            Partition::parse(&IntOrString::String(text.to_owned())).map(|it| it.of(total))
        };
        assert_eq!(of("50%", 4), Ok(2));
        assert_eq!(of("50%", 5), Ok(3));
        assert_eq!(of("1%", 5), Ok(1));
        assert_eq!(of("0%", 5), Ok(0));
        assert_eq!(of("7", 5), Ok(5));
        assert!(of("half", 5).is_err() && of("101%", 5).is_err() && of("-1", 5).is_err());
    }

    #[test]
    fn names_have_the_number_of_the_revision() {
        assert_eq!(versioned_name("web", "shop-v12"), "web-v12");
        assert_eq!(versioned_name("web", "shop-vx"), "web-shop-vx");
    }

    #[test]
    fn pods_of_two_revisions_are_told_apart() {
        let object = json!({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}});
        let made = versioned(&object, "web-v2", 3);
        for labels in [
            "/metadata/labels",
            "/spec/selector/matchLabels",
            "/spec/template/metadata/labels",
        ] {
            assert_eq!(
                made.pointer(labels).unwrap()[label::REVISION],
                "web-v2",
                "{labels}"
            );
        }
        assert_eq!(made["spec"]["replicas"], 3);
        assert!(is_same(&object, &{
            let mut other = object.clone();
            other["spec"]["replicas"] = json!(9);
            other
        }));
    }

    #[test]
    fn only_replicas_of_what_was_asked_for_last_count() {
        let live = |generation, observed, ready| json!({"kind": "Deployment", "metadata": {"generation": generation}, "spec": {"replicas": 2}, "status": {"observedGeneration": observed, "readyReplicas": ready, "replicas": ready}});
        assert_eq!(ready(None), 0);
        assert_eq!(ready(Some(&live(2, 1, 2))), 0);
        assert_eq!(ready(Some(&live(2, 2, 4))), 2);
        assert!(
            is_scaled_to(Some(&live(2, 2, 1)), 2)
                && !is_scaled_to(Some(&live(2, 2, 3)), 2)
                && is_scaled_to(None, 0)
        );
    }
}
