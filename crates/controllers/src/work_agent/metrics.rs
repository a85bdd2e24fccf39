//! What the agents of this process did, in numbers.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A number that goes up, or up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub(super) fn add(&self, amount: i64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of latencies, in milliseconds.
const BOUNDS: [u64; 10] = [5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30_000];

/// How long something took, in classes.
#[derive(Debug, Default)]
pub struct Histogram {
    classes: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum_ms: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        for (class, bound) in self.classes.iter().zip(BOUNDS) {
            if ms <= bound {
                class.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

/// What the agents of this process did.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Objects that were written because a work changed.
    pub applies: Gauge,
    /// Objects that were written because somebody else changed them.
    pub repairs: Gauge,
    /// Writes that failed.
    pub failures: Gauge,
    /// Watches that are open on members.
    pub watches: Gauge,
    /// From the creation of a work on the hub until it was reported as applied.
    pub latency: Histogram,
}

impl Metrics {
    /// All numbers, as Prometheus reads them.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (name, help, kind, value) in [
            (
                "bellwether_work_applies_total",
                "Objects that were written because a work changed.",
                "counter",
                self.applies.get(),
            ),
            (
                "bellwether_work_drift_repairs_total",
                "Objects that were written because somebody else changed them.",
                "counter",
                self.repairs.get(),
            ),
            (
                "bellwether_work_failures_total",
                "Writes to members that failed.",
                "counter",
                self.failures.get(),
            ),
            (
                "bellwether_work_watches",
                "Watches that are open on members.",
                "gauge",
                self.watches.get(),
            ),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        }
        let name = "bellwether_work_applied_latency_milliseconds";
        let _ = writeln!(
            text,
            "# HELP {name} From the creation of a work on the hub until it was reported as applied.\n# TYPE {name} histogram"
        );
        for (class, bound) in self.latency.classes.iter().zip(BOUNDS) {
            let count = class.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let count = self.latency.count.load(Ordering::Relaxed);
        let sum = self.latency.sum_ms.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
        );
        text
    }
}
