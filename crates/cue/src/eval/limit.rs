//! The limits of an evaluation: what counts against them, and what happens when one is exceeded.
//!
//! Whatever takes time calls [`step`](Evaluator::step) or [`charge_small`](Evaluator::charge_small), whatever recurses goes
//! through [`nested`](Evaluator::nested). The first limit exceeded ends the evaluation.

use super::{ErrId, Evaluator, NodeId};
use crate::diagnostic::Code;
use crate::host::Deadline;
use crate::token::Pos;

/// Levels of nesting between two looks at the stack.
const STACK_CHECK_EVERY: u32 = 8;
/// Bytes of stack that serve for so many levels, in builds without optimisation too.
const STACK_LEFT: usize = 512 * 1024;
/// Bytes of stack added when less is left.
const STACK_MORE: usize = 16 * 1024 * 1024;
/// What making more stack costs, in steps.
const STACK_COST: usize = 200;
/// Bytes of stack that one level of reading a finished value needs at most.
pub(super) const STACK_FOR_READING: usize = 128 * 1024;

/// Small operations that cost as much as a step.
const EFFORT_PER_STEP: u64 = 128;

/// Steps between two looks at the clock: often enough to stop within a millisecond or so.
const CLOCK_EVERY: u64 = 512;

impl Evaluator {
    /// Counts memory taken for good; false once the budget is used up.
    pub(crate) fn use_memory(&mut self, bytes: usize) -> bool {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.budget.memory {
            self.exhaust("memory");
        }
        self.exhausted.is_none()
    }

    /// Counts a unit of work; false once the budget is used up.
    pub(crate) fn step(&mut self) -> bool {
        self.counters.steps += 1;
        if self.counters.steps >= self.checkpoint {
            self.check_budget();
        }
        self.exhausted.is_none()
    }

    /// Counts small operations of which many make a step.
    pub(crate) fn charge_small(&self, operations: usize) {
        self.effort.set(self.effort.get() + operations as u64);
    }

    /// Whether the budget of steps is used up, small operations included.
    pub(crate) fn is_spent(&self) -> bool {
        self.counters.steps + self.effort.get() / EFFORT_PER_STEP > self.budget.steps
    }

    /// Looks at the limits of steps and time; called now and then.
    fn check_budget(&mut self) {
        self.checkpoint = (self.counters.steps + CLOCK_EVERY).min(self.budget.steps);
        if self.is_spent() {
            self.exhaust("steps");
        }
        if self.deadline.as_ref().is_some_and(Deadline::is_past) {
            self.exhaust("time");
        }
    }

    /// Ends the evaluation once the deadline is past.
    pub(crate) fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = Some(deadline);
        self.checkpoint = 0;
    }

    /// Counts several units of work at once.
    pub(crate) fn spend(&mut self, units: usize) -> bool {
        self.counters.steps += units as u64;
        self.step()
    }

    pub(crate) fn exhaust(&mut self, which: &str) -> ErrId {
        if let Some(error) = self.exhausted {
            return error;
        }
        let message = format!("evaluation limit exceeded: {which}");
        let error = self.error_at(Code::Eval, Pos::NONE, message);
        self.exhausted = Some(error);
        error
    }

    /// The error of a value that is nested too deeply.
    pub(crate) fn too_deep(&mut self, node: NodeId) -> ErrId {
        let saved = std::mem::replace(&mut self.current, node);
        let error = self.error_at(Code::Eval, Pos::NONE, "evaluation limit exceeded: depth");
        self.current = saved;
        error
    }

    /// Runs `body` one native level deeper, or fails when the limit is reached.
    pub(crate) fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> Result<T, ErrId> {
        if let Some(error) = self.exhausted {
            return Err(error);
        }
        if self.depth >= self.budget.depth {
            // Only what is nested so deeply fails: the steps still bound the whole.
            return Err(self.too_deep(self.current));
        }
        self.depth += 1;
        // Asking how much stack is left costs as much as a small expression: once in a while is
        // enough, as long as what is left then serves for all levels up to the next time.
        let result = if self.depth % STACK_CHECK_EVERY == 1 {
            self.with_stack(STACK_LEFT, body)
        } else {
            body(self)
        };
        self.depth -= 1;
        Ok(result)
    }

    /// Runs `body` with at least so much stack. Making more costs far more than a step does, and
    /// is paid for as such: a loop that goes back and forth across the edge must end too.
    pub(crate) fn with_stack<T>(&mut self, bytes: usize, body: impl FnOnce(&mut Self) -> T) -> T {
        if stacker::remaining_stack().is_some_and(|left| left >= bytes) {
            return body(self);
        }
        self.spend(STACK_COST);
        stacker::grow(STACK_MORE, || body(self))
    }
}
