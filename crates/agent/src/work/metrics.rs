//! Numbers about the agents of this process, for Prometheus.

use bellwether_runtime::{MetricsRegistry, SECONDS};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// The cluster that requests are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Recipient {
    to: &'static str,
}

/// Numbers about agents. Agents of one process count together.
#[derive(Debug)]
pub struct Metrics {
    /// Objects that were written because a work changed.
    pub applies: Counter,
    /// Objects that were written because another client changed them.
    pub repairs: Counter,
    /// Writes that failed.
    pub failures: Counter,
    /// Watches that are open on members.
    pub watches: Gauge,
    requests: Family<Recipient, Counter>,
    /// Requests to the hub about works; watches and events are not counted.
    pub hub_requests: Counter,
    /// Requests to members; watches are not counted.
    pub member_requests: Counter,
    /// Seconds from a change of a work on the hub until it was reported as applied.
    pub latency: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests: Family<Recipient, Counter> = Family::default();
        let to = |to| requests.get_or_create_owned(&Recipient { to });
        Self {
            applies: Counter::default(),
            repairs: Counter::default(),
            failures: Counter::default(),
            watches: Gauge::default(),
            hub_requests: to("hub"),
            member_requests: to("member"),
            requests,
            latency: Histogram::new(SECONDS),
        }
    }
}

impl Metrics {
    /// Adds them to the metrics of a process.
    pub fn register(&self, registry: &MetricsRegistry) {
        registry.register(|registry| {
            registry.register(
                "bellwether_work_applies",
                "Objects that were written because a work changed",
                self.applies.clone(),
            );
            registry.register(
                "bellwether_work_drift_repairs",
                "Objects that were written because another client changed them",
                self.repairs.clone(),
            );
            registry.register(
                "bellwether_work_failures",
                "Writes to members that failed",
                self.failures.clone(),
            );
            registry.register(
                "bellwether_work_watches",
                "Watches that are open on members",
                self.watches.clone(),
            );
            registry.register(
                "bellwether_work_requests",
                "Requests of agents, without watches and events",
                self.requests.clone(),
            );
            registry.register(
                "bellwether_work_applied_seconds",
                "Time from a change of a work on the hub until it was reported as applied",
                self.latency.clone(),
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_find_every_number() {
        let (metrics, registry) = (Metrics::default(), MetricsRegistry::default());
        metrics.register(&registry);
        metrics.applies.inc_by(2);
        metrics.watches.inc();
        metrics.member_requests.inc();
        metrics.latency.observe(0.03);
        let text = registry.render();
        for line in [
            "bellwether_work_applies_total 2",
            "bellwether_work_drift_repairs_total 0",
            "bellwether_work_failures_total 0",
            "bellwether_work_watches 1",
            "bellwether_work_requests_total{to=\"hub\"} 0",
            "bellwether_work_requests_total{to=\"member\"} 1",
            "bellwether_work_applied_seconds_bucket{le=\"0.025\"} 0",
            "bellwether_work_applied_seconds_bucket{le=\"0.05\"} 1",
            "bellwether_work_applied_seconds_count 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
