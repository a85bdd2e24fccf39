//! Which members renew their leases, and which have stopped: a record kept by what this process sees.
//!
//! Silence is the time that passed since this process saw a renewal, never the age of a stored time. A hub
//! that was away, or whose time of day was set, therefore begins with a whole grace period for everybody.
//! Time during which the hub cannot watch leases does not count.
//!
//! If too many members fall silent at once, that is a [`Loss`]: more likely the hub is cut off than they
//! are. [`Heartbeats`] says so, and those who act on silence wait. When the loss is over, members that
//! are still missing get a whole grace period, because they may be about to come back.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A member is silent after this many lease durations without a renewal.
pub(super) const MISSED_RENEWALS: u32 = 5;

/// When a loss of heartbeats is taken for the hub's own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossThreshold {
    /// More than this share of the members has to be missing, in percent; 100 switches the rule off.
    pub percent: u8,
    /// And at least this many members: in a fleet of one or two, a member that is gone is gone.
    pub minimum: usize,
}

impl Default for LossThreshold {
    /// The share is that of Kubernetes' node lifecycle controller for zones, and so is the minimum.
    fn default() -> Self {
        Self {
            percent: 55,
            minimum: 3,
        }
    }
}

impl LossThreshold {
    fn is_exceeded(self, late: usize, of: usize) -> bool {
        late >= self.minimum && late.saturating_mul(100) > of.saturating_mul(self.percent.into())
    }
}

/// A loss of heartbeats that is taken for the hub's own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    /// How many members are missing.
    pub(super) late: usize,
    /// How many were there before.
    pub(super) of: usize,
}

/// What is known of one member's heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Contact {
    /// No renewal was seen for the whole grace period.
    pub(super) is_silent: bool,
    /// The hub does not act on silence, because too many are silent.
    pub(super) is_held: bool,
}

/// How long a member has not renewed its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Stage {
    #[default]
    Renewing,
    /// Half of the grace period has passed. When the first of many that vanished at once is silent, the
    /// others are at least late: their renewals differ by one period at most.
    Late,
    Silent,
}

#[derive(Debug, Default)]
struct Member {
    /// When a renewal was seen, in the time that counts; nothing before its lease was seen.
    seen: Option<Duration>,
    /// This process has seen it renew its lease, or fall silent.
    is_known: bool,
    /// The lease duration that the agent went by at its last renewal.
    adopted: Duration,
    /// The lease duration that the cluster is meant to have.
    wanted: Duration,
    /// It is one of those among whom a loss is noticed: available as far as was known.
    counts: bool,
    stage: Stage,
    /// The time at which it is among the timers.
    timer: Option<Duration>,
}

impl Member {
    /// The agent may still go by the longer duration, until it has renewed under the shorter one.
    fn grace(&self) -> Duration {
        self.adopted.max(self.wanted) * MISSED_RENEWALS
    }

    /// The stage at a time, and when the next one begins.
    fn stage_at(&self, time: Duration) -> (Stage, Option<Duration>) {
        let Some(seen) = self.seen else {
            return (Stage::Renewing, None);
        };
        let grace = self.grace();
        let (late, silent) = (seen + grace / 2, seen + grace);
        if time >= silent {
            (Stage::Silent, None)
        } else if time >= late {
            (Stage::Late, Some(silent))
        } else {
            (Stage::Renewing, Some(late))
        }
    }
}

/// The heartbeats of all members. Times are readings of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    threshold: LossThreshold,
    members: HashMap<Arc<str>, Member>,
    timers: BTreeSet<(Duration, Arc<str>)>,
    /// How many members count, how many of these are late, and how many silent.
    counted: usize,
    late: usize,
    silent: usize,
    is_lost: bool,
    /// How much time did not count so far.
    blind: Duration,
    /// Since when leases cannot be watched.
    blind_since: Option<Duration>,
}

impl Heartbeats {
    pub(super) fn new(threshold: LossThreshold) -> Self {
        Self {
            threshold,
            ..Self::default()
        }
    }

    /// Takes in what a ManagedCluster says: its lease duration, and whether a loss is noticed by it.
    pub(super) fn set_cluster(
        &mut self,
        name: &Arc<str>,
        wanted: Duration,
        counts: bool,
        now: Duration,
    ) {
        self.change(name, now, |member, _| {
            if member.seen.is_none() {
                member.adopted = wanted;
            }
            member.wanted = wanted;
            member.counts = counts;
        });
    }

    /// There is a lease. If this process has not seen it before, the grace period begins.
    /// `adopted` is the duration that it names.
    pub(super) fn see_lease(&mut self, name: &Arc<str>, adopted: Option<Duration>, now: Duration) {
        self.change(name, now, |member, time| {
            if member.seen.is_none() {
                member.seen = Some(time);
                member.adopted = adopted.unwrap_or(member.wanted);
            }
        });
    }

    /// A lease was renewed. `adopted` is the duration that it names; agents that name none go by that of
    /// the cluster from now on.
    pub(super) fn renew(&mut self, name: &Arc<str>, adopted: Option<Duration>, now: Duration) {
        self.change(name, now, |member, time| {
            member.seen = Some(time);
            member.is_known = true;
            member.adopted = adopted.unwrap_or(member.wanted);
        });
    }

    /// A cluster is gone.
    pub(super) fn forget(&mut self, name: &Arc<str>, now: Duration) {
        self.change(name, now, |member, _| {
            *member = Member {
                timer: member.timer,
                ..Member::default()
            };
        });
        self.members.remove(name);
    }

    /// What is known of a member.
    pub(super) fn contact(&self, name: &str) -> Contact {
        let member = self.members.get(name);
        Contact {
            is_silent: member.is_some_and(|member| member.stage == Stage::Silent),
            is_held: self.is_lost,
        }
    }

    /// Lets time come to the present, and returns those who have fallen silent by that.
    pub(super) fn advance(&mut self, now: Duration) -> Vec<Arc<str>> {
        let time = self.time(now);
        let mut silent = Vec::new();
        while let Some((due, name)) = self.timers.first().cloned() {
            if due > time {
                break;
            }
            self.change(&name, now, |_, _| {});
            if self.contact(&name).is_silent {
                silent.push(name);
            }
        }
        silent
    }

    /// When [`advance`](Self::advance) has something to do; nothing while leases cannot be watched.
    pub(super) fn next_change(&self) -> Option<Duration> {
        if self.blind_since.is_some() {
            return None;
        }
        self.timers.first().map(|(due, _)| *due + self.blind)
    }

    /// Says whether leases can be watched.
    pub(super) fn set_blind(&mut self, is_blind: bool, now: Duration) {
        match (is_blind, self.blind_since) {
            (true, None) => self.blind_since = Some(now),
            (false, Some(since)) => {
                self.blind += now.saturating_sub(since);
                self.blind_since = None;
            }
            _ => {}
        }
    }

    /// The present loss of heartbeats.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.is_lost.then_some(Loss {
            late: self.late,
            of: self.counted,
        })
    }

    /// How many of the members that count renew their leases, and how many are late.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.counted - self.late, self.late)
    }

    /// True while there are members of which this process cannot say whether they renew their leases.
    pub(super) fn is_learning(&self) -> bool {
        let is_open = |member: &Member| member.counts && !member.is_known;
        self.members.values().any(is_open)
    }

    /// The members that are late and count, in order.
    pub(super) fn late(&self) -> Vec<Arc<str>> {
        let is_late = |member: &Member| member.counts && member.stage >= Stage::Late;
        let late = self.members.iter().filter(|(_, member)| is_late(member));
        let mut names: Vec<Arc<str>> = late.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The time that counts.
    fn time(&self, now: Duration) -> Duration {
        self.blind_since.unwrap_or(now).saturating_sub(self.blind)
    }

    /// Changes a member, and what depends on it.
    fn change(
        &mut self,
        name: &Arc<str>,
        now: Duration,
        change: impl FnOnce(&mut Member, Duration),
    ) {
        let time = self.time(now);
        let member = self.members.entry(name.clone()).or_default();
        let before = (member.counts, member.stage);
        change(member, time);
        let (stage, timer) = member.stage_at(time);
        member.stage = stage;
        member.is_known |= stage == Stage::Silent;
        if timer != member.timer {
            if let Some(old) = std::mem::replace(&mut member.timer, timer) {
                self.timers.remove(&(old, name.clone()));
            }
            self.timers.extend(timer.map(|due| (due, name.clone())));
        }
        let after = (member.counts, stage);
        self.count(before, after);
        self.judge(now);
    }

    fn count(&mut self, before: (bool, Stage), after: (bool, Stage)) {
        let adjust = |number: &mut usize, was: bool, is: bool| match (was, is) {
            (false, true) => *number += 1,
            (true, false) => *number -= 1,
            _ => {}
        };
        adjust(&mut self.counted, before.0, after.0);
        let at_least = |(counts, stage): (bool, Stage), least: Stage| counts && stage >= least;
        let (late, silent) = (Stage::Late, Stage::Silent);
        adjust(
            &mut self.late,
            at_least(before, late),
            at_least(after, late),
        );
        adjust(
            &mut self.silent,
            at_least(before, silent),
            at_least(after, silent),
        );
    }

    /// Notices the beginning and the end of a loss.
    fn judge(&mut self, now: Duration) {
        let is_exceeded = self.threshold.is_exceeded(self.late, self.counted);
        if !self.is_lost {
            self.is_lost = is_exceeded && self.silent > 0;
        } else if !is_exceeded {
            self.is_lost = false;
            // Those that are still missing may be about to come back.
            for name in self.late() {
                self.renew_grace(&name, now);
            }
        }
    }

    fn renew_grace(&mut self, name: &Arc<str>, now: Duration) {
        self.change(name, now, |member, time| member.seen = Some(time));
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::cluster::DEFAULT_LEASE_DURATION;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn name(number: usize) -> Arc<str> {
        format!("c{number}").into()
    }

    /// So many members that were available, whose leases were first seen at the beginning.
    fn fleet(size: usize) -> Heartbeats {
        let mut heartbeats = Heartbeats::new(LossThreshold::default());
        for number in 0..size {
            heartbeats.set_cluster(&name(number), DEFAULT_LEASE_DURATION, true, seconds(0));
            heartbeats.see_lease(&name(number), None, seconds(0));
        }
        heartbeats
    }

    fn renew(heartbeats: &mut Heartbeats, numbers: std::ops::Range<usize>, at: u64) {
        for number in numbers {
            heartbeats.renew(&name(number), None, seconds(at));
        }
    }

    fn contact(is_silent: bool, is_held: bool) -> Contact {
        Contact { is_silent, is_held }
    }

    #[test]
    fn silence_begins_with_the_fifth_missed_renewal() {
        let mut heartbeats = fleet(1);
        assert_eq!(heartbeats.next_change(), Some(seconds(150)));
        assert!(heartbeats.advance(seconds(299)).is_empty());
        assert_eq!(heartbeats.next_change(), Some(seconds(300)));
        assert_eq!(heartbeats.advance(seconds(300)), [name(0)]);
        assert_eq!(heartbeats.contact("c0"), contact(true, false));
        assert_eq!(heartbeats.next_change(), None);
        renew(&mut heartbeats, 0..1, 1000);
        assert_eq!(heartbeats.contact("c0"), contact(false, false));
        // A lease that is seen again is no renewal.
        heartbeats.see_lease(&name(0), None, seconds(1200));
        assert_eq!(heartbeats.advance(seconds(1300)), [name(0)]);
    }

    #[test]
    fn a_shorter_duration_counts_after_the_agent_has_renewed_under_it() {
        let mut heartbeats = fleet(1);
        renew(&mut heartbeats, 0..1, 10);
        heartbeats.set_cluster(&name(0), seconds(1), true, seconds(11));
        assert!(heartbeats.advance(seconds(309)).is_empty());
        renew(&mut heartbeats, 0..1, 309);
        assert!(heartbeats.advance(seconds(313)).is_empty());
        assert_eq!(heartbeats.advance(seconds(314)), [name(0)]);
        // An agent that names the duration that it goes by is believed.
        heartbeats.renew(&name(0), Some(seconds(60)), seconds(320));
        assert!(heartbeats.advance(seconds(619)).is_empty());
        // A longer one counts at once.
        heartbeats.set_cluster(&name(0), seconds(100), true, seconds(619));
        assert!(heartbeats.advance(seconds(819)).is_empty());
        assert_eq!(heartbeats.advance(seconds(820)), [name(0)]);
    }

    #[test]
    fn time_without_a_watch_does_not_count() {
        let mut heartbeats = fleet(1);
        heartbeats.set_blind(true, seconds(100));
        assert_eq!(heartbeats.next_change(), None);
        assert!(heartbeats.advance(seconds(5000)).is_empty());
        heartbeats.set_blind(false, seconds(5000));
        assert_eq!(heartbeats.next_change(), Some(seconds(5050)));
        assert!(heartbeats.advance(seconds(5199)).is_empty());
        assert_eq!(heartbeats.advance(seconds(5200)), [name(0)]);
    }

    #[test]
    fn few_that_fall_silent_are_silent_and_many_are_a_loss() {
        // Members renew at different moments, up to a period apart.
        let check = |size: usize, lost: usize, expected: Option<Loss>| {
            let mut heartbeats = fleet(size);
            for number in 0..lost {
                let at = 60 * u64::try_from(number).unwrap() / u64::try_from(lost).unwrap();
                heartbeats.renew(&name(number), None, seconds(at));
            }
            renew(&mut heartbeats, lost..size, 200);
            // The first of them decides: by then the others are late.
            assert_eq!(heartbeats.advance(seconds(300)).len(), 1.min(lost));
            assert_eq!(heartbeats.loss(), expected, "{lost} of {size}");
        };
        let loss = |late, of| Some(Loss { late, of });
        check(20, 1, None);
        check(20, 11, None);
        check(20, 12, loss(12, 20));
        check(20, 20, loss(20, 20));
        // In a small fleet, what is gone is gone.
        check(1, 1, None);
        check(2, 2, None);
        check(3, 2, None);
        check(3, 3, loss(3, 3));
        check(4, 3, loss(3, 4));
    }

    #[test]
    fn those_that_were_given_up_are_no_part_of_a_loss() {
        let mut heartbeats = fleet(20);
        for number in 0..15 {
            heartbeats.set_cluster(&name(number), DEFAULT_LEASE_DURATION, false, seconds(0));
        }
        renew(&mut heartbeats, 15..20, 200);
        heartbeats.advance(seconds(300));
        assert_eq!((heartbeats.loss(), heartbeats.counts()), (None, (5, 0)));
    }

    #[test]
    fn after_a_loss_those_still_missing_get_a_whole_grace_period() {
        let mut heartbeats = fleet(20);
        assert_eq!(heartbeats.advance(seconds(300)).len(), 20);
        assert_eq!(heartbeats.contact("c19"), contact(true, true));
        renew(&mut heartbeats, 0..8, 400);
        assert!(heartbeats.loss().is_some());
        renew(&mut heartbeats, 8..9, 401);
        assert_eq!((heartbeats.loss(), heartbeats.counts()), (None, (20, 0)));
        assert_eq!(heartbeats.contact("c19"), contact(false, false));
        renew(&mut heartbeats, 0..12, 650);
        assert_eq!(heartbeats.advance(seconds(701)).len(), 8);
        assert_eq!(heartbeats.contact("c19"), contact(true, false));
    }

    #[test]
    fn a_share_of_all_switches_the_rule_off() {
        let threshold = LossThreshold {
            percent: 100,
            ..LossThreshold::default()
        };
        assert!(!threshold.is_exceeded(20, 20));
    }

    #[test]
    fn a_process_learns_who_renews_from_renewals_or_silence() {
        let mut heartbeats = fleet(2);
        assert!(heartbeats.is_learning());
        renew(&mut heartbeats, 0..1, 60);
        assert!(heartbeats.is_learning());
        renew(&mut heartbeats, 0..1, 250);
        heartbeats.advance(seconds(300));
        assert!(!heartbeats.is_learning());
    }

    #[test]
    fn who_is_forgotten_leaves_nothing_behind() {
        let mut heartbeats = fleet(3);
        heartbeats.advance(seconds(300));
        for number in 0..3 {
            heartbeats.forget(&name(number), seconds(400));
        }
        assert_eq!(heartbeats.counts(), (0, 0));
        assert!(heartbeats.timers.is_empty() && heartbeats.members.is_empty());
        assert_eq!(heartbeats.loss(), None);
    }
}
