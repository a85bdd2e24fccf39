//! How a simulated pod behaves: what its annotations, and those of its owners, say.

use std::time::Duration;

use bellwether_api::simulator::{FAIL, FAIL_CRASH, FAIL_IMAGE, FAIL_JOB, READY_AFTER, RUN_FOR};
use bellwether_json::duration::GoDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::kind::annotation;

/// How long a pod that is meant to end runs if nobody says.
const RUN_FOR_DEFAULT: Duration = Duration::from_millis(300);

/// How a pod behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Behaviour {
    /// How long after its start a container becomes ready.
    pub(crate) ready_after: Duration,
    /// How long a container runs; for ever if not said.
    pub(crate) run_for: Option<Duration>,
    /// What goes wrong.
    pub(crate) failure: Option<Failure>,
    /// What could not be understood, for people.
    pub(crate) problems: Vec<String>,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Images cannot be pulled.
    Image,
    /// Containers end with an error as soon as they have started.
    Crash,
    /// Containers that are meant to end do so with an error.
    Job,
}

impl Behaviour {
    /// What the annotations of a pod and its owners say, the nearest first.
    pub(crate) fn of(chain: &[&ObjectMeta], restart_policy: &str) -> Self {
        let mut behaviour = Self::default();
        let find = |name| chain.iter().find_map(|metadata| annotation(metadata, name));
        if let Some(text) = find(READY_AFTER) {
            let read = behaviour.duration(READY_AFTER, text);
            behaviour.ready_after = read.unwrap_or_default();
        }
        if let Some(text) = find(RUN_FOR) {
            behaviour.run_for = behaviour.duration(RUN_FOR, text);
        }
        if behaviour.run_for.is_none() && restart_policy != "Always" {
            behaviour.run_for = Some(RUN_FOR_DEFAULT);
        }
        behaviour.failure = match find(FAIL) {
            None => None,
            Some(FAIL_IMAGE) => Some(Failure::Image),
            Some(FAIL_CRASH) => Some(Failure::Crash),
            // What runs for ever has no end that could be a bad one.
            Some(FAIL_JOB) => (restart_policy != "Always").then_some(Failure::Job),
            Some(other) => {
                behaviour.problems.push(format!(
                    "{FAIL}: {other:?} is none of {FAIL_IMAGE}, {FAIL_CRASH}, {FAIL_JOB}; ignored"
                ));
                None
            }
        };
        behaviour
    }

    fn duration(&mut self, name: &str, text: &str) -> Option<Duration> {
        let problem = match text.parse::<GoDuration>() {
            Ok(duration) => match Duration::try_from(duration.to_signed()) {
                Ok(duration) => return Some(duration),
                Err(_) => format!("{name}: {text:?} is negative; ignored"),
            },
            Err(error) => format!("{name}: {error}; write it as 500ms, 10s or 1m30s; ignored"),
        };
        self.problems.push(problem);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(annotations: serde_json::Value) -> ObjectMeta {
        serde_json::from_value(json!({"annotations": annotations})).unwrap()
    }

    #[test]
    fn what_is_nearest_to_the_pod_counts() {
        let pod = metadata(json!({READY_AFTER: "2s"}));
        let owner = metadata(json!({READY_AFTER: "9s", RUN_FOR: "1m", FAIL: "crash"}));
        let behaviour = Behaviour::of(&[&pod, &owner], "Always");
        assert_eq!(behaviour.ready_after, Duration::from_secs(2));
        assert_eq!(behaviour.run_for, Some(Duration::from_mins(1)));
        assert_eq!(behaviour.failure, Some(Failure::Crash));
        assert!(behaviour.problems.is_empty());
    }

    #[test]
    fn what_is_meant_to_end_ends_by_itself() {
        assert_eq!(Behaviour::of(&[], "Always").run_for, None);
        assert_eq!(Behaviour::of(&[], "Never").run_for, Some(RUN_FOR_DEFAULT));
    }

    #[test]
    fn what_cannot_be_understood_is_said_and_ignored() {
        let pod = metadata(json!({READY_AFTER: "soon", RUN_FOR: "-1s", FAIL: "badly"}));
        let behaviour = Behaviour::of(&[&pod], "Always");
        assert_eq!(behaviour.ready_after, Duration::ZERO);
        assert_eq!((behaviour.run_for, behaviour.failure), (None, None));
        assert_eq!(
            behaviour.problems,
            [
                "simulator.bellwether.dev/ready-after: time: invalid duration \"soon\"; write it as 500ms, 10s or 1m30s; ignored",
                "simulator.bellwether.dev/run-for: \"-1s\" is negative; ignored",
                "simulator.bellwether.dev/fail: \"badly\" is none of image, crash, job; ignored",
            ]
        );
    }

    #[test]
    fn a_server_has_no_end_that_could_be_a_bad_one() {
        let pod = metadata(json!({FAIL: "job"}));
        assert_eq!(Behaviour::of(&[&pod], "Always").failure, None);
        assert_eq!(Behaviour::of(&[&pod], "Never").failure, Some(Failure::Job));
    }
}
