//! How a simulated pod behaves: what its annotations, and those of its owners, say.

use std::ops::RangeInclusive;
use std::time::Duration;

use bellwether_api::simulator::{
    EXIT_CODE, FAIL, FAIL_CRASH, FAIL_IMAGE, FAIL_INDEXES, FAIL_JOB, READY_AFTER, RUN_FOR,
};
use bellwether_api::workload::job::COMPLETION_INDEX;
use bellwether_json::duration::GoDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::kind::annotation;

/// How long a pod that is meant to end runs by default.
const RUN_FOR_DEFAULT: Duration = Duration::from_millis(300);

/// How a pod behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Behaviour {
    /// How long after its start a container becomes ready.
    pub(crate) ready_after: Duration,
    /// How long a container runs; forever if not said.
    pub(crate) run_for: Option<Duration>,
    /// What goes wrong.
    pub(crate) failure: Option<Failure>,
    /// The exit code of containers that end with an error, if somebody says.
    pub(crate) exit_code: Option<i32>,
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
            // What runs forever has no end that could be a bad one.
            Some(FAIL_JOB) => (restart_policy != "Always").then_some(Failure::Job),
            Some(other) => {
                behaviour.problems.push(format!(
                    "{FAIL}: {other:?} is none of {FAIL_IMAGE}, {FAIL_CRASH}, {FAIL_JOB}; ignored"
                ));
                None
            }
        };
        behaviour.exit_code = find(EXIT_CODE).and_then(|text| behaviour.exit_code(text));
        if let Some(text) = find(FAIL_INDEXES)
            && behaviour.spares(text, chain.first().copied())
        {
            behaviour.failure = None;
        }
        behaviour
    }

    /// Whether a pod is not among the indexes that are to fail.
    fn spares(&mut self, text: &str, pod: Option<&ObjectMeta>) -> bool {
        let Some(indexes) = ranges(text) else {
            let problem = format!("{FAIL_INDEXES}: {text:?} is not a list such as 0,3-5; ignored");
            self.problems.push(problem);
            return false;
        };
        let index = pod.and_then(|pod| annotation(pod, COMPLETION_INDEX)?.parse::<u32>().ok());
        index.is_some_and(|index| !indexes.iter().any(|range| range.contains(&index)))
    }

    fn exit_code(&mut self, text: &str) -> Option<i32> {
        let code = text.parse().ok().filter(|code| (1..=255).contains(code));
        if code.is_none() {
            let problem = format!("{EXIT_CODE}: {text:?} is not a number from 1 to 255; ignored");
            self.problems.push(problem);
        }
        code
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

/// The ranges of a list as `0,3-5`; nothing if it is none.
fn ranges(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let parts = text.split(',').map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    });
    parts.collect()
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
        let pod = metadata(json!({READY_AFTER: "soon", RUN_FOR: "-1s", FAIL: "badly",
                                  EXIT_CODE: "0", FAIL_INDEXES: "a"}));
        let behaviour = Behaviour::of(&[&pod], "Always");
        assert_eq!(behaviour.ready_after, Duration::ZERO);
        assert_eq!((behaviour.run_for, behaviour.failure), (None, None));
        assert_eq!(
            behaviour.problems,
            [
                "simulator.bellwether.dev/ready-after: time: invalid duration \"soon\"; write it as 500ms, 10s or 1m30s; ignored",
                "simulator.bellwether.dev/run-for: \"-1s\" is negative; ignored",
                "simulator.bellwether.dev/fail: \"badly\" is none of image, crash, job; ignored",
                "simulator.bellwether.dev/exit-code: \"0\" is not a number from 1 to 255; ignored",
                "simulator.bellwether.dev/fail-indexes: \"a\" is not a list such as 0,3-5; ignored",
            ]
        );
    }

    #[test]
    fn a_server_has_no_end_that_could_be_a_bad_one() {
        let pod = metadata(json!({FAIL: "job"}));
        assert_eq!(Behaviour::of(&[&pod], "Always").failure, None);
        assert_eq!(Behaviour::of(&[&pod], "Never").failure, Some(Failure::Job));
    }

    #[test]
    fn some_indexes_of_a_job_fail() {
        let job = metadata(json!({FAIL: "job", FAIL_INDEXES: "0,3-5", EXIT_CODE: "42"}));
        let failure = |index: &str| {
            let pod = metadata(json!({COMPLETION_INDEX: index}));
            let behaviour = Behaviour::of(&[&pod, &job], "Never");
            assert_eq!(behaviour.exit_code, Some(42));
            behaviour.failure
        };
        assert_eq!(failure("0"), Some(Failure::Job));
        assert_eq!(failure("2"), None);
        assert_eq!(failure("4"), Some(Failure::Job));
    }
}
