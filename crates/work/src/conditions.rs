//! Lists of conditions that change as little as possible.

use bellwether_api::meta::{Condition, Time};
use jiff::{Timestamp, Unit};

/// The longest message that the schema of conditions allows.
const MAX_MESSAGE: usize = 32_768;

/// What a condition is to say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionUpdate<'a> {
    pub(crate) name: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) generation: Option<i64>,
}

/// Conditions in the making: those of before, in their order, with what changed.
#[derive(Debug)]
pub(crate) struct Conditions {
    list: Vec<Condition>,
    now: Timestamp,
}

impl Conditions {
    /// Begins with the conditions of before.
    pub(crate) fn new(previous: &[Condition], now: Timestamp) -> Self {
        Self {
            list: previous.to_vec(),
            now: in_whole_seconds(now),
        }
    }

    /// Sets a condition. Its transition time moves only if its status does.
    pub(crate) fn set(&mut self, update: ConditionUpdate<'_>) {
        let mut new = Condition {
            type_: update.name.to_owned(),
            status: update.status.to_owned(),
            reason: update.reason.to_owned(),
            message: shortened(update.message).to_owned(),
            observed_generation: update.generation,
            last_transition_time: Time(self.now),
        };
        match self
            .list
            .iter_mut()
            .find(|known| known.type_ == update.name)
        {
            Some(known) => {
                if known.status == update.status {
                    new.last_transition_time = known.last_transition_time.clone();
                }
                *known = new;
            }
            None => self.list.push(new),
        }
    }

    /// Forgets conditions that are not to be kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Condition) -> bool) {
        self.list.retain(keep);
    }

    pub(crate) fn finish(self) -> Vec<Condition> {
        self.list
    }
}

/// Rounds a time up to whole seconds, which is all that objects can hold. What is counted from it,
/// such as a time to live or a soak time, never ends early.
pub fn in_whole_seconds(time: Timestamp) -> Timestamp {
    let mode = jiff::TimestampRound::new()
        .smallest(Unit::Second)
        .mode(jiff::RoundMode::Ceil);
    // Only a time at the very end of the calendar cannot be rounded.
    time.round(mode).unwrap_or(time)
}

fn shortened(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}
