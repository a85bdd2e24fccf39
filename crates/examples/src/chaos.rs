//! Kills at random moments, as `kill -9` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::fleet::Fleet;
use crate::observe::Tell;

/// How long after the beginning of a step a process is killed, at most.
const LATEST: u64 = 1500;

/// Kills at random moments.
#[derive(Debug, Clone, Copy)]
pub struct Chaos {
    /// How many.
    pub kills: usize,
    /// What the moments depend on.
    pub seed: u64,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kill {
    /// The step that it belongs to, from 0.
    step: usize,
    /// How long after the step has begun, or after the kill before.
    delay: Duration,
    /// Which process, whatever their number is.
    choice: u64,
}

impl Chaos {
    /// What is killed when, spread over all steps. The same seed makes the same plan.
    fn plan(self, steps: usize) -> Vec<Kill> {
        let mut state = self.seed.wrapping_mul(2).wrapping_add(1);
        let steps = steps.max(1) as u64;
        let mut plan: Vec<Kill> = (0..self.kills)
            .map(|_| Kill {
                step: usize::try_from(next_random(&mut state) % steps).unwrap_or_default(),
                delay: Duration::from_millis(next_random(&mut state) % LATEST),
                choice: next_random(&mut state),
            })
            .collect();
        plan.sort_by_key(|kill| kill.step);
        plan
    }
}

/// Kills processes of a fleet as planned, until it is dropped.
pub(crate) struct Killer {
    plan: Vec<Kill>,
    due: mpsc::UnboundedSender<Kill>,
    done: Arc<AtomicUsize>,
}

impl Killer {
    /// Plans kills, and begins a task that carries them out.
    pub(crate) fn start(
        chaos: Chaos,
        steps: usize,
        fleet: Arc<Fleet>,
        tell: Tell,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (due, mut kills) = mpsc::unbounded_channel::<Kill>();
        let done = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&done);
        tasks.spawn(async move {
            while let Some(kill) = kills.recv().await {
                tokio::time::sleep(kill.delay).await;
                match fleet.kill_one(kill.choice).await {
                    Ok(killed) => tell(&format!("    kill -9 of {killed}; started again")),
                    Err(problem) => {
                        tell(&format!("    {problem}"));
                        return;
                    }
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let plan = chaos.plan(steps);
        Self { plan, due, done }
    }

    /// Says that a step begins.
    pub(crate) fn begin(&self, step: usize) {
        for kill in self.plan.iter().filter(|kill| kill.step == step) {
            // A task that has ended has said why.
            let _ = self.due.send(*kill);
        }
    }

    /// How many processes were killed.
    pub(crate) fn count(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

/// The next number of a sequence that a seed determines (xorshift).
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_kills_over_all_steps() {
        let plan = |seed| Chaos { kills: 100, seed }.plan(5);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
        for step in 0..5 {
            assert!(plan(7).iter().any(|kill| kill.step == step));
        }
        assert!(plan(7).iter().all(|kill| kill.step < 5));
        assert_eq!(Chaos { kills: 1, seed: 0 }.plan(0).len(), 1);
    }
}
