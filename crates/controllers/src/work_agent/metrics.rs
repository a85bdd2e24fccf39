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

/// Upper bounds of latencies: in milliseconds, and in seconds as scrapers read them.
const BOUNDS: [(u64, &str); 10] = [
    (5, "0.005"),
    (10, "0.01"),
    (25, "0.025"),
    (50, "0.05"),
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1000, "1"),
    (5000, "5"),
    (30_000, "30"),
];

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
        for (class, (bound, _)) in self.classes.iter().zip(BOUNDS) {
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
    /// Requests to the hub about works; watches and events are not counted.
    pub hub_requests: Gauge,
    /// Requests to members; watches are not counted.
    pub member_requests: Gauge,
    /// From a change of a work on the hub until it was reported as applied.
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
        let name = "bellwether_work_requests_total";
        let (hub, member) = (self.hub_requests.get(), self.member_requests.get());
        let _ = writeln!(
            text,
            "# HELP {name} Requests of agents, without watches and events.\n# TYPE {name} counter\n{name}{{to=\"hub\"}} {hub}\n{name}{{to=\"member\"}} {member}"
        );
        let name = "bellwether_work_applied_seconds";
        let _ = writeln!(
            text,
            "# HELP {name} From a change of a work on the hub until it was reported as applied.\n# TYPE {name} histogram"
        );
        for (class, (_, bound)) in self.latency.classes.iter().zip(BOUNDS) {
            let count = class.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let count = self.latency.count.load(Ordering::Relaxed);
        let sum = Duration::from_millis(self.latency.sum_ms.load(Ordering::Relaxed));
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {}\n{name}_count {count}",
            sum.as_secs_f64()
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_find_every_number() {
        let metrics = Metrics::default();
        metrics.applies.add(2);
        metrics.watches.add(1);
        metrics.latency.observe(Duration::from_millis(30));
        let text = metrics.render();
        for line in [
            "bellwether_work_applies_total 2",
            "bellwether_work_drift_repairs_total 0",
            "bellwether_work_failures_total 0",
            "bellwether_work_watches 1",
            "bellwether_work_requests_total{to=\"hub\"} 0",
            "bellwether_work_applied_seconds_bucket{le=\"0.025\"} 0",
            "bellwether_work_applied_seconds_bucket{le=\"0.05\"} 1",
            "bellwether_work_applied_seconds_bucket{le=\"+Inf\"} 1",
            "bellwether_work_applied_seconds_sum 0.03",
            "bellwether_work_applied_seconds_count 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
