//! What a process costs, as Linux counts it.

use std::fs;
use std::time::Duration;

/// How often a second the kernel counts the time of processes.
const TICKS_PER_SECOND: u64 = 100;
const KIB: u64 = 1024;

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on processors, of all threads.
    pub cpu: Duration,
    /// Memory that is resident, in bytes.
    pub resident: u64,
}

impl Usage {
    /// Of one process; nothing if there is no such, or no way to know.
    pub fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program, in parentheses, may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let total = ticks(11)? + ticks(12)?;
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())?;
        Some(Self {
            cpu: Duration::from_millis(total * 1000 / TICKS_PER_SECOND),
            resident: resident * KIB,
        })
    }

    /// Of this process; nothing where there is no way to know.
    pub fn own() -> Self {
        Self::of(std::process::id()).unwrap_or_default()
    }

    /// Time on processors since an earlier look.
    pub fn cpu_since(self, earlier: Self) -> Duration {
        self.cpu.saturating_sub(earlier.cpu)
    }

    /// Of several processes together; what is gone counts nothing.
    pub fn of_all(processes: &[u32]) -> Self {
        let mut sum = Self::default();
        for usage in processes.iter().filter_map(|process| Self::of(*process)) {
            sum.cpu += usage.cpu;
            sum.resident += usage.resident;
        }
        sum
    }
}
