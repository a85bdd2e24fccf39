//! What a template may cost.

/// How much one use of templates may cost. A caller that renders several templates that belong together
/// uses one budget for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Steps that are left: nodes executed, operands evaluated, elements visited by functions.
    pub steps: u64,
    /// Bytes that are left: written to the output or made by functions on the way to it.
    pub bytes: u64,
    /// How deep templates may call each other.
    pub depth: usize,
}

impl Default for Budget {
    /// Enough for the largest charts, and used up within seconds.
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            bytes: 256 * 1024 * 1024,
            depth: 2_000,
        }
    }
}

/// Why a template was stopped.
pub(crate) const STEPS_EXCEEDED: &str = "evaluation limit exceeded: too many steps";
pub(crate) const BYTES_EXCEEDED: &str = "evaluation limit exceeded: too much output";

impl Budget {
    /// Takes one step; false if there is none left.
    pub(crate) fn step(&mut self) -> bool {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                true
            }
            None => false,
        }
    }

    /// Takes bytes, and a step for every 64 of them; false if there are not as many left.
    pub(crate) fn bytes(&mut self, count: usize) -> bool {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let (Some(bytes), Some(steps)) = (
            self.bytes.checked_sub(count),
            self.steps.checked_sub(count / 64),
        ) else {
            self.bytes = 0;
            return false;
        };
        self.bytes = bytes;
        self.steps = steps;
        true
    }
}
