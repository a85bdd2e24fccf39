//! The numbers and times of a strategy, checked.

use bellwether_json::duration::{DurationError, GoDuration};
use jiff::{SignedDuration, Timestamp};

use super::status::{ClusterStatus, Status};
use super::strategy::{Kind, MandatoryGroup, Strategy, Threshold};
use super::{Compat, Input, UnsetConcurrency};

/// Why a strategy gives no answer. The caller can only report it: the user must change the
/// strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    /// There is no such strategy.
    #[error("incorrect rollout strategy type {0}")]
    UnknownType(String),
    /// A field is unknown or has the wrong type.
    #[error("invalid rollout strategy: {0}")]
    Strategy(String),
    /// `progressDeadline` is neither `None` nor a duration in hours, minutes or seconds.
    #[error("invalid timeout format")]
    DeadlineFormat,
    /// `progressDeadline` begins like a duration and is none.
    #[error(transparent)]
    Deadline(#[from] DurationError),
    /// `maxFailures` or `maxConcurrency` is neither a number nor a percentage.
    #[error(
        "failed to parse the provided {field}: '{text}' is an invalid maximum threshold value: string is not a percentage"
    )]
    Threshold {
        /// Which of the two.
        field: &'static str,
        /// What it says.
        text: String,
    },
}

/// What becomes of a cluster that something is known of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// It may go, is in flight, or soaks.
    Rollout(ClusterStatus),
    /// Its deadline has passed.
    TimedOut(ClusterStatus),
    /// There is nothing to do.
    Settled,
}

/// A strategy, checked, at one moment.
#[derive(Debug)]
pub(super) struct Limits<'a> {
    strategy: &'a Strategy,
    compat: Compat,
    unset_concurrency: UnsetConcurrency,
    pub(super) now: Timestamp,
    pub(super) soak: SignedDuration,
    deadline: Option<SignedDuration>,
}

impl<'a> Limits<'a> {
    pub(super) fn read(input: &Input<'a>) -> Result<Self, RolloutError> {
        let strategy = input.strategy;
        let soak = match strategy.kind {
            Kind::All => SignedDuration::ZERO,
            Kind::Progressive | Kind::ProgressivePerGroup => strategy.min_success_time.to_signed(),
        };
        let limits = Self {
            strategy,
            compat: input.compat,
            unset_concurrency: input.unset_concurrency,
            now: input.now,
            soak,
            deadline: deadline(&strategy.progress_deadline)?,
        };
        if strategy.kind != Kind::All {
            limits.failures(0)?;
        }
        Ok(limits)
    }

    /// Which strategy it is.
    pub(super) fn kind(&self) -> Kind {
        self.strategy.kind
    }

    /// The groups that go first.
    pub(super) fn mandatory(&self) -> &[MandatoryGroup] {
        &self.strategy.mandatory_decision_groups
    }

    /// How many of `total` clusters may fail.
    pub(super) fn failures(&self, total: usize) -> Result<usize, RolloutError> {
        self.resolve("maxFailures", self.strategy.max_failures.as_ref(), total, 0)
    }

    /// How many of `total` clusters may be in flight.
    pub(super) fn concurrency(&self, total: usize) -> Result<usize, RolloutError> {
        let unset = match self.unset_concurrency {
            UnsetConcurrency::All => total,
            UnsetConcurrency::One => total.min(1),
        };
        let max_concurrency = self.strategy.max_concurrency.as_ref();
        self.resolve("maxConcurrency", max_concurrency, total, unset)
    }

    fn resolve(
        &self,
        field: &'static str,
        threshold: Option<&Threshold>,
        total: usize,
        unset: usize,
    ) -> Result<usize, RolloutError> {
        let Some(threshold) = threshold else {
            return Ok(unset);
        };
        let count = threshold
            .count(total, self.compat)
            .ok_or_else(|| RolloutError::Threshold {
                field,
                text: match threshold {
                    Threshold::Text(text) => text.clone(),
                    Threshold::Number(number) => number.to_string(),
                },
            })?;
        Ok(match self.compat {
            _ if count == 0 => unset,
            Compat::Bellwether => count.min(total),
            Compat::Upstream if count > total => unset,
            Compat::Upstream => count,
        })
    }

    /// What becomes of a cluster that something is known of.
    pub(super) fn step(&self, known: &ClusterStatus) -> Step {
        let since = known.last_transition.unwrap_or(self.now);
        match known.status {
            Status::ToApply => Step::Rollout(known.clone()),
            Status::TimeOut | Status::Skip => Step::Settled,
            Status::Succeeded => {
                let over = after(since, self.soak);
                if self.now < over {
                    Step::Rollout(ClusterStatus {
                        recheck: Some(over),
                        ..known.clone()
                    })
                } else {
                    Step::Settled
                }
            }
            Status::Progressing | Status::Failed => {
                let deadline = self.deadline.map(|deadline| after(since, deadline));
                let known = ClusterStatus {
                    recheck: deadline,
                    ..known.clone()
                };
                match deadline {
                    Some(deadline) if deadline <= self.now => Step::TimedOut(ClusterStatus {
                        status: Status::TimeOut,
                        ..known
                    }),
                    _ => Step::Rollout(known),
                }
            }
        }
    }

    /// The status of a cluster after its step.
    pub(super) fn settled_status(&self, known: &ClusterStatus) -> Status {
        match self.step(known) {
            Step::TimedOut(entry) => entry.status,
            Step::Rollout(_) | Step::Settled => known.status,
        }
    }
}

impl Strategy {
    /// Returns how many of `total` clusters may be on their way or soak at once, if clusters start one by one
    /// in the order of their names as soon as there is room. `None` if groups decide about that.
    pub fn slots(&self, total: usize) -> Option<usize> {
        let is_one_by_one =
            self.kind == Kind::Progressive && self.mandatory_decision_groups.is_empty();
        let input = Input::new(self, &[], &[], Timestamp::UNIX_EPOCH);
        let limits = is_one_by_one.then(|| Limits::read(&input).ok()).flatten()?;
        limits.concurrency(total).ok()
    }

    /// Returns the same strategy with a number of tolerated failures in place of a percentage of `total`
    /// clusters, so that a decision about those that failed alone is what it would be about all of them.
    ///
    /// Where every group has a budget of its own, that is a decision about the clusters of one group, and
    /// `total` is how many it has. `None` if the threshold cannot be understood.
    pub fn with_counted_failures(&self, total: usize) -> Option<Self> {
        if self.kind == Kind::All {
            return Some(self.clone());
        }
        let max_failures = match &self.max_failures {
            None => None,
            Some(threshold) => {
                let count = threshold.count(total, Compat::Bellwether)?;
                Some(Threshold::Number(i64::try_from(count).unwrap_or(i64::MAX)))
            }
        };
        Some(Self {
            max_failures,
            ..self.clone()
        })
    }
}

/// The end of time at most.
fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

impl Threshold {
    /// The number it stands for, none if it cannot be understood. Negative numbers are zero.
    fn count(&self, total: usize, compat: Compat) -> Option<usize> {
        match self {
            Self::Number(number) => Some(usize::try_from(*number).unwrap_or(0)),
            Self::Text(text) => match text.strip_suffix('%') {
                Some(percentage) => {
                    let percentage = digits(percentage)?;
                    Some(percentage.saturating_mul(total).div_ceil(100))
                }
                None if compat == Compat::Bellwether => digits(text),
                None => None,
            },
        }
    }
}

fn digits(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

/// Reads `progressDeadline`; none is no deadline.
///
/// What must look like a duration is only how the text begins, as the pattern that upstream
/// declares has its anchors in the wrong places.
fn deadline(text: &str) -> Result<Option<SignedDuration>, RolloutError> {
    if text.is_empty() || text == "None" {
        return Ok(None);
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let begins_well = unit.len() < text.len() && unit.starts_with(['h', 'm', 's', '|']);
    if !begins_well && !text.ends_with("None") {
        return Err(RolloutError::DeadlineFormat);
    }
    let duration: GoDuration = text.parse()?;
    Ok(Some(duration.to_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_as_upstream_does() {
        let check = |text: &str, expected: Result<Option<i64>, &str>| {
            let actual = deadline(text).map(|deadline| deadline.map(|it| it.as_secs()));
            let expected = expected.map_err(str::to_owned);
            assert_eq!(
                actual.map_err(|error| error.to_string()),
                expected,
                "{text}"
            );
        };
        check("", Ok(None));
        check("None", Ok(None));
        check("7s", Ok(Some(7)));
        check("1h30m", Ok(Some(5400)));
        check("0s", Ok(Some(0)));
        check("7", Err("invalid timeout format"));
        check("3d", Err("invalid timeout format"));
        check("-7s", Err("invalid timeout format"));
        check("none", Err("invalid timeout format"));
        check("7sx", Err(r#"time: unknown unit "sx" in duration "7sx""#));
        check("no None", Err(r#"time: invalid duration "no None""#));
    }

    #[test]
    fn thresholds_round_up_and_are_at_most_everything() {
        let check = |threshold: Threshold, total: usize, own: Option<usize>, up: Option<usize>| {
            let resolve = |compat| {
                let strategy = Strategy {
                    kind: Kind::Progressive,
                    max_concurrency: Some(threshold.clone()),
                    ..Strategy::default()
                };
                let input = Input {
                    compat,
                    ..Input::new(&strategy, &[], &[], Timestamp::UNIX_EPOCH)
                };
                Limits::read(&input).unwrap().concurrency(total).ok()
            };
            assert_eq!(resolve(Compat::Bellwether), own, "{threshold:?} of {total}");
            assert_eq!(
                resolve(Compat::Upstream),
                up,
                "{threshold:?} of {total}, upstream"
            );
        };
        let text = |text: &str| Threshold::Text(text.to_owned());
        check(Threshold::Number(2), 5, Some(2), Some(2));
        check(Threshold::Number(9), 5, Some(5), Some(5));
        check(Threshold::Number(0), 5, Some(5), Some(5));
        check(Threshold::Number(-1), 5, Some(5), Some(5));
        check(text("1%"), 5, Some(1), Some(1));
        check(text("41%"), 5, Some(3), Some(3));
        check(text("7%"), 100, Some(7), Some(7));
        check(text("300%"), 5, Some(5), Some(5));
        check(text("3"), 5, Some(3), None);
        check(text("%"), 5, None, None);
        check(text("x"), 5, None, None);
        check(text("99999999999999999999999%"), 5, Some(5), Some(5));
    }

    #[test]
    fn a_wrong_threshold_is_named() {
        let strategy = Strategy {
            kind: Kind::Progressive,
            max_failures: Some(Threshold::Text("few".to_owned())),
            ..Strategy::default()
        };
        let input = Input::new(&strategy, &[], &[], Timestamp::UNIX_EPOCH);
        assert_eq!(
            Limits::read(&input).unwrap_err().to_string(),
            "failed to parse the provided maxFailures: 'few' is an invalid maximum threshold \
             value: string is not a percentage"
        );
    }
}
