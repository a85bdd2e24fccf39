//! Rehearsals: a rollout run forward in simulated time, before anything is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{ClusterStatus, Decision, Input, Reason, RolloutError, Status, decide};

/// What to assume of clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assumptions {
    /// How long a cluster takes.
    pub duration: SignedDuration,
    /// How long particular clusters take instead.
    pub durations: BTreeMap<Arc<str>, SignedDuration>,
    /// The clusters that fail instead of succeeding.
    pub failing: BTreeSet<Arc<str>>,
    /// The clusters that never get anywhere.
    pub stuck: BTreeSet<Arc<str>>,
}

/// Clusters that start at the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub clusters: Vec<Arc<str>>,
}

/// How it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    /// Who starts when, in order.
    pub waves: Vec<Wave>,
    /// When the last thing happened.
    pub end: Timestamp,
    /// How things stand then: reasons say what became of each cluster.
    pub last: Decision,
    /// True if every cluster came to an end, and no more failed than are tolerated.
    pub complete: bool,
}

/// Runs a rollout forward from `input` until nothing happens any more.
pub fn rehearse(input: &Input<'_>, assumptions: &Assumptions) -> Result<Rehearsal, RolloutError> {
    let mut run = Run::new(input, assumptions);
    let mut waves = Vec::new();
    loop {
        let decision = decide(&Input {
            existing: &run.statuses,
            now: run.now,
            ..*input
        })?;
        let clusters: Vec<Arc<str>> = decision.starting().map(Into::into).collect();
        run.record(&decision);
        if !clusters.is_empty() {
            let at = run.now;
            waves.push(Wave { at, clusters });
            // What starts may be done at once.
            if run.finish_due() {
                continue;
            }
        }
        let recheck = decision.recheck_after.map(|after| run.now + after);
        // Deadlines of what has just started are in no answer yet; asking again finds them.
        let next = [run.next_finish(), recheck].into_iter().flatten().min();
        match next {
            Some(next) => {
                run.now = next;
                run.finish_due();
            }
            None if !decision.timed_out.is_empty() || decision.starting().next().is_some() => {}
            None => {
                // Nothing happens any more: who still waits or is in flight will do so without end.
                let has_ended = |(_, reason): &(Arc<str>, Reason)| {
                    matches!(
                        reason,
                        Reason::Done
                            | Reason::Skipped
                            | Reason::Failed { .. }
                            | Reason::TimedOut { .. }
                    )
                };
                return Ok(Rehearsal {
                    waves,
                    end: run.now,
                    complete: !decision.breached && decision.reasons.iter().all(has_ended),
                    last: decision,
                });
            }
        }
    }
}

/// The simulated fleet.
struct Run<'a> {
    assumptions: &'a Assumptions,
    statuses: Vec<ClusterStatus>,
    /// Where each cluster is in `statuses`.
    places: BTreeMap<Arc<str>, usize>,
    /// When clusters that are on their way will be done.
    finishes: BTreeSet<(Timestamp, usize)>,
    now: Timestamp,
}

impl<'a> Run<'a> {
    fn new(input: &Input<'_>, assumptions: &'a Assumptions) -> Self {
        let mut run = Self {
            assumptions,
            statuses: Vec::new(),
            places: BTreeMap::new(),
            finishes: BTreeSet::new(),
            now: input.now,
        };
        for status in input.existing {
            if !run.places.contains_key(&status.cluster) {
                run.set(status.clone());
            }
        }
        run
    }

    /// Takes note of how far a cluster is, and of when it will be done.
    fn set(&mut self, status: ClusterStatus) {
        let place = match self.places.get(&status.cluster) {
            Some(place) => *place,
            None => self.statuses.len(),
        };
        if status.status == Status::Progressing && !self.assumptions.stuck.contains(&status.cluster)
        {
            let duration = self.assumptions.durations.get(&status.cluster);
            let duration = duration.unwrap_or(&self.assumptions.duration);
            let since = status.last_transition.unwrap_or(self.now);
            let finish = since.checked_add(*duration).unwrap_or(Timestamp::MAX);
            self.finishes.insert((finish.max(self.now), place));
        }
        if place == self.statuses.len() {
            self.places.insert(status.cluster.clone(), place);
            self.statuses.push(status);
        } else {
            self.statuses[place] = status;
        }
    }

    /// Does as decided: what may start is on its way, what is late has timed out.
    fn record(&mut self, decision: &Decision) {
        for entry in &decision.rollout {
            if entry.status == Status::ToApply {
                self.set(ClusterStatus {
                    status: Status::Progressing,
                    last_transition: Some(self.now),
                    ..entry.clone()
                });
            }
        }
        for entry in &decision.timed_out {
            self.set(entry.clone());
        }
    }

    fn next_finish(&self) -> Option<Timestamp> {
        self.finishes.first().map(|(time, _)| *time)
    }

    /// Lets everything be done that is due; whether anything was.
    fn finish_due(&mut self) -> bool {
        let mut any = false;
        while let Some(&(time, place)) = self.finishes.first() {
            if time > self.now {
                break;
            }
            self.finishes.pop_first();
            let status = &mut self.statuses[place];
            if status.status == Status::Progressing {
                any = true;
                status.last_transition = Some(time);
                status.status = if self.assumptions.failing.contains(&status.cluster) {
                    Status::Failed
                } else {
                    Status::Succeeded
                };
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{Group, Strategy};
    use serde_json::{Value, json};

    fn check(strategy: &Value, groups: &[&[&str]], assumptions: &Assumptions, expected: &str) {
        let strategy = Strategy::from_flat_json(strategy).unwrap();
        let groups: Vec<Group> = groups
            .iter()
            .zip(0..)
            .map(|(clusters, index)| Group::new("", index, clusters.iter().copied()))
            .collect();
        let input = Input::new(&strategy, &groups, &[], Timestamp::UNIX_EPOCH);
        let rehearsal = rehearse(&input, assumptions).unwrap();
        let mut actual: Vec<String> = rehearsal
            .waves
            .iter()
            .map(|wave| format!("{}: {}", wave.at.as_second(), wave.clusters.join(" ")))
            .collect();
        let end = if rehearsal.complete {
            "done"
        } else {
            "stopped"
        };
        actual.push(format!("{}: {end}", rehearsal.end.as_second()));
        assert_eq!(actual.join(", "), expected, "{:?}", rehearsal.last.reasons);
    }

    fn a_minute_each() -> Assumptions {
        Assumptions {
            duration: SignedDuration::from_secs(60),
            ..Assumptions::default()
        }
    }

    #[test]
    fn waves_follow_concurrency_and_soak() {
        check(
            &json!({"type": "Progressive", "maxConcurrency": 2, "minSuccessTimeSeconds": 30}),
            &[&["a", "b", "c"]],
            &a_minute_each(),
            "0: a b, 90: c, 180: done",
        );
        check(
            &json!({"type": "ProgressivePerGroup"}),
            &[&["a"], &["b", "c"]],
            &a_minute_each(),
            "0: a, 60: b c, 120: done",
        );
        check(&json!({"type": "All"}), &[], &a_minute_each(), "0: done");
    }

    #[test]
    fn a_failure_beyond_the_budget_stops_the_rollout() {
        let assumptions = Assumptions {
            failing: ["a".into()].into(),
            ..a_minute_each()
        };
        check(
            &json!({"type": "ProgressivePerGroup"}),
            &[&["a"], &["b", "c"]],
            &assumptions,
            "0: a, 60: stopped",
        );
        check(
            &json!({"type": "ProgressivePerGroup", "maxFailures": 1}),
            &[&["a"], &["b", "c"]],
            &assumptions,
            "0: a, 60: b c, 120: done",
        );
    }

    #[test]
    fn a_tolerated_failure_makes_room_at_once() {
        let assumptions = Assumptions {
            failing: ["a".into()].into(),
            ..a_minute_each()
        };
        for deadline in ["None", "10m"] {
            check(
                &json!({"type": "Progressive", "maxConcurrency": 1, "maxFailures": 1,
                    "progressDeadline": deadline}),
                &[&["a", "b", "c"]],
                &assumptions,
                match deadline {
                    "None" => "0: a, 60: b, 120: c, 180: done",
                    _ => "0: a, 60: b, 120: c, 660: done",
                },
            );
        }
    }

    #[test]
    fn a_stuck_cluster_times_out_or_blocks_for_ever() {
        let assumptions = Assumptions {
            stuck: ["a".into()].into(),
            ..a_minute_each()
        };
        check(
            &json!({"type": "Progressive", "maxConcurrency": 1, "maxFailures": 1,
                "progressDeadline": "5m"}),
            &[&["a", "b"]],
            &assumptions,
            "0: a, 300: b, 360: done",
        );
        check(
            &json!({"type": "Progressive", "maxConcurrency": 1, "maxFailures": 1}),
            &[&["a", "b"]],
            &assumptions,
            "0: a, 0: stopped",
        );
    }

    #[test]
    fn a_rollout_that_waits_without_end_is_not_complete() {
        let assumptions = Assumptions {
            stuck: ["b".into()].into(),
            failing: ["a".into()].into(),
            ..a_minute_each()
        };
        check(
            &json!({"type": "ProgressivePerGroup", "maxFailures": 1}),
            &[&["a", "b"], &["c"]],
            &assumptions,
            "0: a b, 60: stopped",
        );
    }

    #[test]
    fn clusters_that_take_no_time_are_done_at_once() {
        check(
            &json!({"type": "Progressive", "maxConcurrency": 1}),
            &[&["a", "b"]],
            &Assumptions::default(),
            "0: a, 0: b, 0: done",
        );
    }
}
