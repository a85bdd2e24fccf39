//! Rollouts on a small fleet in memory, with a clock that is moved by hand.

mod any_history;
mod beyond;
mod counting;
mod decisions;
mod times;
mod traces;
mod transitions;
mod world;
