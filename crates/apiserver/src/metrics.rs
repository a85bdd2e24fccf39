//! Numbers about requests, for Prometheus.

use bellwether_runtime::{MetricsRegistry, SECONDS};
use http::StatusCode;
use jiff::SignedDuration;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    verb: &'static str,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    verb: &'static str,
}

/// How many requests were answered, how, and how long that took; with the metrics of the other
/// components of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<ByResult, Counter>,
    seconds: Family<ByVerb, Histogram>,
    registry: MetricsRegistry,
}

impl Metrics {
    /// Adds the metrics of requests to those of the process.
    pub(crate) fn new(registry: MetricsRegistry) -> Self {
        let requests: Family<ByResult, Counter> = Family::default();
        let seconds: Family<ByVerb, Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register(|registry| {
            registry.register(
                "apiserver_request",
                "Requests by verb and status code",
                requests.clone(),
            );
            registry.register(
                "apiserver_request_duration_seconds",
                "Time until the answer began",
                seconds.clone(),
            );
        });
        Self {
            requests,
            seconds,
            registry,
        }
    }

    /// Counts an answered request; `verb` is empty if it failed before one was known.
    pub(crate) fn count(&self, verb: &'static str, code: StatusCode, took: SignedDuration) {
        let code = code.as_u16();
        self.requests.get_or_create(&ByResult { verb, code }).inc();
        let seconds = self.seconds.get_or_create(&ByVerb { verb });
        seconds.observe(took.as_secs_f64());
    }

    /// Returns all metrics of the process in the text format that scrapers read.
    pub(crate) fn render(&self) -> String {
        self.registry.render()
    }
}
