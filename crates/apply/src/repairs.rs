//! How often an object is repaired that somebody else keeps changing: at once at first, then less and
//! less often.

use jiff::{SignedDuration, Timestamp};

/// So many repairs of an object are made at once, however close together; a contest is slowed down.
const PROMPT: u32 = 10;
/// The longest time between two repairs, in seconds.
const LONGEST_WAIT: i64 = 300;
/// After twice the wait and so many seconds without a repair, the contest is over.
const MEMORY: i64 = 30;

/// The repairs of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repairs {
    /// How many came close together.
    count: u32,
    last: Option<Timestamp>,
}

impl Repairs {
    /// When the object may be repaired again; nothing if now.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.last.filter(|_| !self.is_over(now))?;
        let next = last
            .checked_add(SignedDuration::from_secs(self.wait()))
            .unwrap_or(Timestamp::MAX);
        (next > now).then_some(next)
    }

    /// Takes note of a repair.
    pub fn made(&mut self, now: Timestamp) {
        if self.is_over(now) {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = Some(now);
    }

    /// Whether the object has been left alone for so long that it starts over.
    fn is_over(&self, now: Timestamp) -> bool {
        let forgotten = SignedDuration::from_secs(2 * self.wait() + MEMORY);
        self.last
            .is_some_and(|last| now.duration_since(last) > forgotten)
    }

    /// How many seconds have to be between the last repair and the next.
    fn wait(&self) -> i64 {
        self.count
            .checked_sub(PROMPT)
            .map_or(0, |more| (1 << more.min(16)).min(LONGEST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_changing_an_object_is_answered_less_and_less_often() {
        let mut repairs = Repairs::default();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut waits = Vec::new();
        for _ in 0..24 {
            let time = repairs.next(now).unwrap_or(now);
            waits.push(time.duration_since(now).as_secs());
            now = time;
            repairs.made(now);
        }
        assert_eq!(waits[..10], [0; 10]);
        assert_eq!(
            waits[10..],
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300, 300]
        );
        now += SignedDuration::from_secs(2 * 300 + 30);
        assert_eq!(repairs.next(now), None);
        let mut early = repairs;
        early.made(now);
        assert_eq!(early.count, 25, "the contest goes on");
        now += SignedDuration::from_secs(1);
        assert_eq!(repairs.next(now), None);
        repairs.made(now);
        assert_eq!(repairs.count, 1, "the contest is over");
    }
}
