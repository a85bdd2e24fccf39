//! What rendering needs from outside of the hub: charts, manifests at an address, answers of servers.
//!
//! Nothing is fetched here. Rendering asks [`Outside`]; what is not known is noted, and rendering ends with an error of the class
//! [`Class::Outside`]. The caller fetches what is noted ([`Outside::wanted`]), adds it, and renders again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_helm::Chart;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::{Class, RenderError, Stage};

/// How many things one application may ask for.
const LIMIT: usize = 64;

/// Which chart a component is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChartReference {
    /// Address of the repository; empty if `source` is an address itself.
    pub repository: String,
    /// Name of the chart in the repository, or its address.
    pub source: String,
    /// Version, or a range of versions; empty for the latest.
    pub version: String,
    /// Secret of the application's namespace with credentials; empty if none are needed.
    pub secret: String,
}

impl std::fmt::Display for ChartReference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = if self.version.is_empty() {
            "latest"
        } else {
            &self.version
        };
        match self.repository.as_str() {
            "" => write!(formatter, "chart {} ({version})", self.source),
            repository => write!(
                formatter,
                "chart {} ({version}) of {repository}",
                self.source
            ),
        }
    }
}

/// A chart that was fetched.
#[derive(Clone)]
pub struct FetchedChart {
    /// The chart.
    pub chart: Chart,
    /// What identifies its content: a commit, or `sha256:…`.
    pub digest: String,
    /// What random values of the chart are made of: secret, and the same as long as the application lives, so that
    /// passwords stay as they are.
    pub seed: [u8; 32],
}

impl FetchedChart {
    /// Random bytes for a purpose: the same ones each time.
    pub(crate) fn random(&self, purpose: &str) -> impl Fn(&mut [u8]) + Sync + use<> {
        let mut key = Sha256::new();
        key.update(self.seed);
        key.update(purpose);
        let key = key.finalize();
        let counter = AtomicU64::new(0);
        move |bytes: &mut [u8]| {
            for block in bytes.chunks_mut(32) {
                let count = counter.fetch_add(1, Ordering::Relaxed);
                let mut hash = Sha256::new();
                hash.update(key);
                hash.update(count.to_be_bytes());
                let random = hash.finalize();
                block.copy_from_slice(&random[..block.len()]);
            }
        }
    }
}

// The seed is secret.
impl std::fmt::Debug for FetchedChart {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("FetchedChart");
        shown.field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Something that is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A chart, with the digest that it has to have; empty if any will do.
    Chart(ChartReference, String),
    /// The manifests at an address.
    Manifests(String),
    /// The texts of a ConfigMap or Secret: kind, namespace and name.
    Values(String, String, String),
    /// The answer to a request: its description as JSON, with `method`, `url` and `request`.
    Answer(String),
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chart(reference, _) => reference.fmt(formatter),
            Self::Manifests(url) => write!(formatter, "manifests at {url}"),
            Self::Values(kind, namespace, name) => write!(formatter, "{kind} {namespace}/{name}"),
            Self::Answer(request) => {
                let request: Value = serde_json::from_str(request).unwrap_or_default();
                let text = |field: &str| request[field].as_str().unwrap_or_default();
                write!(formatter, "{} {}", text("method"), text("url"))
            }
        }
    }
}

/// What was fetched, or why it could not be.
type Fetched<T> = BTreeMap<T, Result<Content, String>>;

/// What something is.
#[derive(Debug, Clone)]
pub enum Content {
    /// A chart.
    Chart(Arc<FetchedChart>),
    /// Objects of manifests, or the answer of a server.
    Value(Value),
}

/// What is known from outside for one version of an application.
pub struct Outside {
    /// The time that charts see.
    now: Timestamp,
    /// Digests of charts that a revision recorded.
    pins: BTreeMap<ChartReference, String>,
    known: Mutex<FetchState>,
}

#[derive(Debug, Default)]
struct FetchState {
    fetched: Fetched<Wanted>,
    wanted: BTreeSet<Wanted>,
}

impl Outside {
    /// Nothing is known yet.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            pins: BTreeMap::new(),
            known: Mutex::default(),
        }
    }

    /// The same, with what a revision recorded: manifests, and which charts they were.
    #[must_use]
    pub fn recorded_in(mut self, referred: &[Value]) -> Self {
        let mut manifests: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in referred {
            if let Some((reference, digest)) = chart_of_record(object) {
                self.pins.insert(reference, digest);
            } else if let Some(url) = crate::referred::address_of(object) {
                manifests
                    .entry(url.to_owned())
                    .or_default()
                    .push(object.clone());
            }
        }
        for (url, objects) in manifests {
            self.add(Wanted::Manifests(url), Ok(Content::Value(objects.into())));
        }
        self
    }

    fn lock(&self) -> MutexGuard<'_, FetchState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked for and is not known yet.
    pub fn wanted(&self) -> Vec<Wanted> {
        self.lock().wanted.iter().cloned().collect()
    }

    /// Adds what was fetched, or why it could not be.
    pub fn add(&self, wanted: Wanted, content: Result<Content, String>) {
        let mut known = self.lock();
        known.wanted.remove(&wanted);
        known.fetched.insert(wanted, content);
    }

    /// Forgets what could not be fetched, so that it is tried again.
    pub fn forget_failures(&self) {
        self.lock().fetched.retain(|_, content| content.is_ok());
    }

    fn ask(&self, wanted: Wanted, what: &str) -> Result<Content, RenderError> {
        let error = |message: String| RenderError::new(Stage::Render, Class::Outside, message);
        let mut known = self.lock();
        match known.fetched.get(&wanted) {
            Some(Ok(content)) => return Ok(content.clone()),
            Some(Err(problem)) => return Err(error(format!("{what}: {problem}"))),
            None => {}
        }
        if known.fetched.len() + known.wanted.len() >= LIMIT {
            return Err(error(format!(
                "{what}: one application may fetch at most {LIMIT} things"
            )));
        }
        known.wanted.insert(wanted);
        Err(error(format!("{what}: it is being fetched")))
    }

    /// A chart.
    pub fn chart(&self, reference: &ChartReference) -> Result<Arc<FetchedChart>, RenderError> {
        let digest = self.pins.get(reference).cloned().unwrap_or_default();
        let wanted = Wanted::Chart(reference.clone(), digest);
        match self.ask(wanted, &reference.to_string())? {
            Content::Chart(chart) => Ok(chart),
            Content::Value(_) => Err(misplaced()),
        }
    }

    /// The manifests at an address.
    pub fn manifests(&self, url: &str) -> Result<Vec<Value>, RenderError> {
        match self.ask(Wanted::Manifests(url.to_owned()), url)? {
            Content::Value(Value::Array(objects)) => Ok(objects),
            _ => Err(misplaced()),
        }
    }

    /// The texts of a ConfigMap or Secret by key; null if it does not exist.
    pub fn values(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, RenderError> {
        let wanted = Wanted::Values(kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.value(wanted, "it cannot be read")
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Value) -> Result<Value, RenderError> {
        let text = |field: &str| request[field].as_str().unwrap_or_default();
        let what = format!("{} {}", text("method"), text("url"));
        self.value(Wanted::Answer(request.to_string()), &what)
    }

    fn value(&self, wanted: Wanted, what: &str) -> Result<Value, RenderError> {
        match self.ask(wanted, what)? {
            Content::Value(value) => Ok(value),
            Content::Chart(_) => Err(misplaced()),
        }
    }

    /// The time that charts see.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }
}

// What was fetched may be secret.
impl std::fmt::Debug for Outside {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outside").finish_non_exhaustive()
    }
}

fn misplaced() -> RenderError {
    let message = "what was fetched is something else";
    RenderError::new(Stage::Render, Class::Outside, message)
}

/// Kind of the record of a chart in a revision.
const CHART_RECORD: &str = "HelmChart";

/// What a revision records of a chart.
pub(crate) fn chart_record(component: &str, reference: &ChartReference, digest: &str) -> Value {
    serde_json::json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": CHART_RECORD,
        "metadata": {"name": component},
        "spec": {
            "repository": reference.repository,
            "source": reference.source,
            "version": reference.version,
            "secret": reference.secret,
            "digest": digest,
        },
    })
}

fn chart_of_record(object: &Value) -> Option<(ChartReference, String)> {
    if object["kind"] != CHART_RECORD || object["apiVersion"] != "core.oam.dev/v1beta1" {
        return None;
    }
    let text = |field: &str| object["spec"][field].as_str().map(str::to_owned);
    let reference = ChartReference {
        repository: text("repository")?,
        source: text("source")?,
        version: text("version")?,
        secret: text("secret").unwrap_or_default(),
    };
    Some((reference, text("digest")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside() -> Outside {
        Outside::new(Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_is_not_known_is_noted_until_it_is_added() {
        let outside = outside();
        let error = outside.manifests("http://a/b").unwrap_err();
        assert_eq!(error.class, Class::Outside);
        let wanted = Wanted::Manifests("http://a/b".to_owned());
        assert_eq!(outside.wanted(), std::slice::from_ref(&wanted));
        outside.add(wanted.clone(), Err("no way".to_owned()));
        assert!(outside.wanted().is_empty());
        let error = outside.manifests("http://a/b").unwrap_err();
        assert_eq!(error.message, "http://a/b: no way");
        outside.forget_failures();
        assert!(outside.manifests("http://a/b").is_err());
        outside.add(
            wanted,
            Ok(Content::Value(serde_json::json!([{"kind": "X"}]))),
        );
        assert_eq!(outside.manifests("http://a/b").unwrap().len(), 1);
    }

    #[test]
    fn an_application_cannot_ask_without_end() {
        let outside = outside();
        for number in 0..2 * LIMIT {
            assert!(outside.manifests(&number.to_string()).is_err());
        }
        assert_eq!(outside.wanted().len(), LIMIT);
    }

    #[test]
    fn random_values_stay_the_same_for_a_purpose() {
        let files = [("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")];
        let bytes = |seed: u8, purpose: &str| {
            let chart = FetchedChart {
                chart: Chart::from_directory(files).unwrap(),
                digest: String::new(),
                seed: [seed; 32],
            };
            let mut bytes = [0; 48];
            chart.random(purpose)(&mut bytes);
            bytes
        };
        assert_eq!(bytes(7, "a"), bytes(7, "a"));
        assert_ne!(bytes(7, "a"), bytes(7, "b"));
        assert_ne!(bytes(7, "a"), bytes(8, "a"));
    }

    #[test]
    fn a_revision_says_which_chart_it_was_and_what_was_copied() {
        let reference = ChartReference {
            source: "web".to_owned(),
            ..ChartReference::default()
        };
        let copied = serde_json::json!({"kind": "ConfigMap", "metadata": {"annotations": {"app.oam.dev/resource-url": "http://a/b"}}});
        let record = chart_record("c", &reference, "sha256:1");
        let outside = outside().recorded_in(&[record, copied]);
        assert_eq!(outside.manifests("http://a/b").unwrap().len(), 1);
        assert!(outside.chart(&reference).is_err());
        let wanted = Wanted::Chart(reference, "sha256:1".to_owned());
        assert_eq!(outside.wanted(), [wanted]);
    }
}
