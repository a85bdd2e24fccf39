//! Numbers about controllers, for Prometheus.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

/// Upper bounds of durations, in seconds.
pub const SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The content type of rendered metrics.
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a process. Components register theirs once, and share what they registered.
///
/// Cheap to clone; all clones are the same registry.
#[derive(Clone, Default)]
pub struct MetricsRegistry(Arc<Mutex<Registry>>);

impl MetricsRegistry {
    /// Adds the metrics of a component.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.0.lock());
    }

    /// Returns all metrics in the text format that scrapers read.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.0.lock()) {
            // Writing to a String does not fail; an encoder that does is a defect of a component.
            tracing::error!(%error, "cannot render metrics");
        }
        text
    }
}

impl fmt::Debug for MetricsRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MetricsRegistry")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    controller: &'static str,
    result: &'static str,
}

/// Numbers about reconciles, for all controllers of a process. Cheap to clone; all clones count
/// together.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    reconciles: Family<ByResult, Counter>,
    panics: Family<ByController, Counter>,
    seconds: Family<ByController, Histogram>,
    queued: Family<ByController, Gauge>,
    is_ready: Family<ByController, Gauge>,
    ready: watch::Sender<BTreeSet<&'static str>>,
}

impl Default for ControllerMetrics {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            queued: Family::default(),
            is_ready: Family::default(),
            ready: watch::Sender::default(),
        }
    }
}

impl ControllerMetrics {
    /// Adds them to the metrics of a process.
    pub fn register(&self, registry: &MetricsRegistry) {
        registry.register(|registry| {
            registry.register(
                "bellwether_controller_reconciles",
                "Reconciles by controller and result: success, or one word for the error",
                self.reconciles.clone(),
            );
            registry.register(
                "bellwether_controller_panics",
                "Reconciles that ended with a panic",
                self.panics.clone(),
            );
            registry.register(
                "bellwether_controller_reconcile_seconds",
                "Time that a reconcile took",
                self.seconds.clone(),
            );
            registry.register(
                "bellwether_controller_queued_keys",
                "Keys that wait to be reconciled now; those that wait for a later time not counted",
                self.queued.clone(),
            );
            registry.register(
                "bellwether_controller_ready",
                "1 if the caches of a controller are complete, so that it reconciles",
                self.is_ready.clone(),
            );
        });
    }

    pub(crate) fn of(&self, controller: &'static str) -> OfController {
        let by = ByController { controller };
        OfController {
            all: self.clone(),
            controller,
            panics: self.panics.get_or_create_owned(&by),
            seconds: self.seconds.get_or_create_owned(&by),
            queued: self.queued.get_or_create_owned(&by),
        }
    }

    /// Sets whether the caches of a controller are complete.
    pub(crate) fn set_ready(&self, controller: &'static str, is_ready: bool) {
        let gauge = self
            .is_ready
            .get_or_create_owned(&ByController { controller });
        gauge.set(i64::from(is_ready));
        self.ready.send_if_modified(|ready| {
            if is_ready {
                ready.insert(controller)
            } else {
                ready.remove(controller)
            }
        });
    }

    /// Waits until all these controllers reconcile. `waiting` is called with those that do not yet,
    /// whenever that changes.
    pub async fn until_ready(
        &self,
        controllers: &[&'static str],
        mut waiting: impl FnMut(&[&'static str]),
    ) {
        let mut ready = self.ready.subscribe();
        loop {
            let missing: Vec<&'static str> = {
                let ready = ready.borrow_and_update();
                let missing = controllers.iter().filter(|name| !ready.contains(*name));
                missing.copied().collect()
            };
            if missing.is_empty() {
                return;
            }
            waiting(&missing);
            if ready.changed().await.is_err() {
                // The sender is part of this value, which is borrowed; this cannot happen.
                return;
            }
        }
    }

    /// How many reconciles of a controller ended with a panic.
    pub fn panics(&self, controller: &'static str) -> u64 {
        self.panics
            .get_or_create(&ByController { controller })
            .get()
    }
}

/// The numbers of one controller.
pub(crate) struct OfController {
    all: ControllerMetrics,
    controller: &'static str,
    pub(crate) panics: Counter,
    pub(crate) seconds: Histogram,
    pub(crate) queued: Gauge,
}

impl OfController {
    pub(crate) fn count(&self, result: &'static str) {
        let by = ByResult {
            controller: self.controller,
            result,
        };
        self.all.reconciles.get_or_create(&by).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_find_every_number() {
        let (registry, metrics) = (MetricsRegistry::default(), ControllerMetrics::default());
        metrics.register(&registry);
        let of = metrics.of("placement");
        of.count("success");
        of.count("conflict");
        of.panics.inc();
        of.queued.set(3);
        of.seconds.observe(0.03);
        let text = registry.render();
        for line in [
            "bellwether_controller_reconciles_total{controller=\"placement\",result=\"success\"} 1",
            "bellwether_controller_reconciles_total{controller=\"placement\",result=\"conflict\"} 1",
            "bellwether_controller_panics_total{controller=\"placement\"} 1",
            "bellwether_controller_queued_keys{controller=\"placement\"} 3",
            "bellwether_controller_reconcile_seconds_bucket{le=\"0.05\",controller=\"placement\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
