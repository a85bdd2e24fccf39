//! What a template has to know about the world.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_go::value::{Text, Value};

/// A question that a template asks about something outside, such as an object of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The function that asks.
    pub function: &'static str,
    /// Its arguments as texts.
    pub arguments: Vec<Text>,
}

/// Answers that are already known.
pub trait Facts {
    /// The answer to a query, if it is known.
    fn get(&self, query: &Query) -> Option<Value>;
}

/// Nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFacts;

impl Facts for NoFacts {
    fn get(&self, _query: &Query) -> Option<Value> {
        None
    }
}

impl Facts for BTreeMap<Query, Value> {
    fn get(&self, query: &Query) -> Option<Value> {
        Self::get(self, query).cloned()
    }
}

/// What a template may see of the world: answers, the time and randomness. All of it is handed in.
#[derive(Clone, Copy)]
pub struct World<'w> {
    /// Answers to queries.
    pub facts: &'w (dyn Facts + Sync),
    /// The time that `now` returns.
    pub now: jiff::Timestamp,
    /// Fills a buffer with random bytes that nobody can guess.
    pub random: &'w (dyn Fn(&mut [u8]) + Sync),
}

impl fmt::Debug for World<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("World")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Fills a buffer with bytes that are never the same twice in a process, but that anyone can guess: for tests and
/// conformance cases only.
pub fn guessable_bytes(bytes: &mut [u8]) {
    // The state of SplitMix64, which makes one number of each state.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    static STATE: AtomicU64 = AtomicU64::new(STEP);
    for chunk in bytes.chunks_mut(8) {
        let mut mixed = STATE.fetch_add(STEP, Ordering::Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        chunk.copy_from_slice(&mixed.to_le_bytes()[..chunk.len()]);
    }
}

/// For templates that ask nothing: it is 1970, and all random bytes are zero.
pub static NOWHERE: World<'static> = World {
    facts: &NoFacts,
    now: jiff::Timestamp::UNIX_EPOCH,
    random: &|bytes| bytes.fill(0),
};
