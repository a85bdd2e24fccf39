//! What the nodes of a cluster would answer about the pods on them: logs, and what they use.

use jiff::Timestamp;
use serde_json::Value;

/// Answers for nodes, where somebody plays them.
pub trait Kubelet: Send + Sync {
    /// What a container has written so far, oldest first; `previous` means the one that ran before it
    /// in its place. Nothing if there is none.
    fn log(
        &self,
        pod: &Value,
        container: &str,
        previous: bool,
        now: Timestamp,
    ) -> Option<Vec<LogLine>>;

    /// What a container uses at present; nothing if it does not run.
    fn usage(&self, pod: &Value, container: &str, now: Timestamp) -> Option<Usage>;
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub time: Timestamp,
    /// What it says, without its end.
    pub text: String,
}

/// What something uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Thousandths of a processor.
    pub millicores: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            millicores: self.millicores.saturating_add(other.millicores),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
