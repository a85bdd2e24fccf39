//! What people ask of a running rollout: pause, resume, retry, abort.
//!
//! Requests are annotations of the replica set, so that they survive restarts of the hub and can be
//! read by everybody.

use bellwether_api::work::ManifestWorkReplicaSet;
use bellwether_api::work::names::annotation;
use bellwether_placement::rollout::Hold;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// Aborts the rollout of every template, not only of the present one.
const ANY_TEMPLATE: &str = "true";
/// Switches an annotation off without removing it.
const OFF: &str = "false";

/// What to do with a running rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Start no further cluster until it is resumed.
    Pause,
    /// Go on after a pause or an abort.
    Resume,
    /// Try clusters again that failed or timed out.
    Retry,
    /// Start no further cluster with the present template.
    Abort,
}

impl Request {
    /// The annotations of a replica set that a request sets, or removes.
    pub fn annotations(
        self,
        set: &ManifestWorkReplicaSet,
        now: Timestamp,
    ) -> Vec<(&'static str, Option<String>)> {
        match self {
            Self::Pause => vec![(annotation::ROLLOUT_PAUSED, Some(now.to_string()))],
            Self::Resume => vec![
                (annotation::ROLLOUT_PAUSED, None),
                (annotation::ROLLOUT_ABORTED, None),
            ],
            Self::Retry => vec![(annotation::ROLLOUT_RETRIED_AT, Some(now.to_string()))],
            Self::Abort => vec![(annotation::ROLLOUT_ABORTED, Some(template_digest(set)))],
        }
    }
}

/// What has been asked of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Why nothing new may start.
    pub hold: Option<Hold>,
    /// Clusters that failed before this time are tried again.
    pub retried_at: Option<Timestamp>,
    /// Why an annotation cannot be read.
    pub problem: Option<String>,
}

impl Control {
    /// Reads the annotations of a replica set.
    pub fn of(set: &ManifestWorkReplicaSet) -> Self {
        let annotations = set.metadata.annotations.as_ref();
        let read = |key: &str| {
            let value = annotations.and_then(|map| map.get(key));
            value.map(String::as_str).filter(|value| *value != OFF)
        };
        let aborted = read(annotation::ROLLOUT_ABORTED);
        let is_aborted =
            aborted.is_some_and(|value| value == ANY_TEMPLATE || value == template_digest(set));
        let hold = if is_aborted {
            Some(Hold::Aborted)
        } else {
            read(annotation::ROLLOUT_PAUSED).map(|_| Hold::Paused)
        };
        let retried = read(annotation::ROLLOUT_RETRIED_AT);
        let retried_at = retried.and_then(|text| text.parse().ok());
        let problem = retried.filter(|_| retried_at.is_none()).map(|text| {
            format!(
                "the annotation {} is {text:?}, not a time such as 2026-01-31T12:00:00Z",
                annotation::ROLLOUT_RETRIED_AT
            )
        });
        Self {
            hold,
            retried_at,
            problem,
        }
    }
}

/// A digest of the template of a replica set.
fn template_digest(set: &ManifestWorkReplicaSet) -> String {
    // Everybody reads the template from the same stored text, so that the order of keys is the same.
    let template = serde_json::to_value(&set.spec.manifest_work_template).unwrap_or_default();
    let digest = Sha256::digest(template.to_string().as_bytes());
    let start = digest.iter().take(8);
    let number = start.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(image: &str) -> ManifestWorkReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "apps"},
            "spec": {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": {"workload": {
                "manifests": [{"kind": "Pod", "spec": {"image": image}}]}}},
        }))
        .unwrap()
    }

    fn ask(set: &mut ManifestWorkReplicaSet, request: Request) {
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        for (key, value) in request.annotations(set, now) {
            let map = set.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => map.insert(key.to_owned(), value),
                None => map.remove(key),
            };
        }
    }

    #[test]
    fn a_rollout_is_paused_until_it_is_resumed() {
        let mut set = set("a");
        assert_eq!(Control::of(&set), Control::default());
        ask(&mut set, Request::Pause);
        assert_eq!(Control::of(&set).hold, Some(Hold::Paused));
        ask(&mut set, Request::Resume);
        assert_eq!(Control::of(&set).hold, None);
        let map = set.metadata.annotations.get_or_insert_default();
        map.insert(annotation::ROLLOUT_PAUSED.to_owned(), "false".to_owned());
        assert_eq!(Control::of(&set).hold, None);
    }

    #[test]
    fn an_abort_ends_with_the_template() {
        let mut old = set("a");
        ask(&mut old, Request::Abort);
        assert_eq!(Control::of(&old).hold, Some(Hold::Aborted));
        let mut new = set("b");
        new.metadata.clone_from(&old.metadata);
        assert_eq!(Control::of(&new).hold, None);
        ask(&mut old, Request::Resume);
        assert_eq!(Control::of(&old).hold, None);
        let map = new.metadata.annotations.get_or_insert_default();
        map.insert(annotation::ROLLOUT_ABORTED.to_owned(), "true".to_owned());
        assert_eq!(Control::of(&new).hold, Some(Hold::Aborted));
    }

    #[test]
    fn a_retry_has_a_time() {
        let mut set = set("a");
        ask(&mut set, Request::Retry);
        let control = Control::of(&set);
        let at = "2026-01-01T12:00:00Z".parse().unwrap();
        assert_eq!((control.retried_at, control.problem), (Some(at), None));
        let map = set.metadata.annotations.get_or_insert_default();
        map.insert(annotation::ROLLOUT_RETRIED_AT.to_owned(), "now".to_owned());
        let problem = Control::of(&set).problem.unwrap();
        assert!(problem.contains("is \"now\", not a time"), "{problem}");
    }
}
