//! Fetches what applications need from outside of the hub: charts, manifests, answers of servers, values in ConfigMaps and Secrets.
//!
//! What was fetched is kept while the version of the application stays the same, so that it is rendered to the same objects.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::oam::{Application, ApplicationRevision};
use bellwether_api::workflow::TemplateSource;
use bellwether_application::outside::{ChartReference, Content, FetchedChart, Outside, Wanted};
use bellwether_git::Credentials;
use bellwether_helm::Chart;
use bellwether_json::yaml::from_yaml;
use bellwether_runtime::{ObjectKey, compute};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::egress::Egress;
use crate::hub_key::hub_key;
use crate::template::cache::Cache;
use crate::template::fetch::{Part, Sources};
use crate::template::source::Source;
use crate::workflow::WorkflowOptions;
use crate::workflow::providers::http::HttpClient;

/// The Secret with the key that random values of charts are made of.
const SEED_KEY: &str = "bellwether-chart-key";
/// How many things are fetched at once.
const AT_ONCE: usize = 4;
/// For how many applications things are kept.
const CAPACITY: usize = 10_000;

/// Fetches what applications need.
pub(super) struct Fetcher {
    client: Client,
    http: HttpClient,
    sources: Sources,
    /// What was fetched, by application, with the version that it is for.
    known: Mutex<HashMap<ObjectKey, (String, Arc<Outside>)>>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

impl Fetcher {
    pub(super) fn new(client: &Client, options: &WorkflowOptions) -> Self {
        let cache = Cache::new(options.source_cache.as_deref());
        Self {
            client: client.clone(),
            http: HttpClient::new(&options.http),
            sources: Sources::new(Arc::new(Egress::new(options)), cache),
            known: Mutex::default(),
        }
    }

    /// What is known for a version of an application. A revision recorded what it was made of.
    pub(super) fn of(
        &self,
        application: &Application,
        pinned: Option<&ApplicationRevision>,
        now: Timestamp,
    ) -> Arc<Outside> {
        let version = version(application, pinned);
        let known = self.known.lock();
        if let Some((of, outside)) = known.get(&ObjectKey::of(application))
            && *of == version
        {
            return Arc::clone(outside);
        }
        // What charts are rendered to does not change with the time at which a hub starts.
        let created = application.metadata.creation_timestamp.as_ref();
        let outside = Outside::new(created.map_or(now, |created| created.0));
        let referred = pinned.map_or(&[][..], |revision| &revision.spec.referred_objects);
        Arc::new(outside.recorded_in(referred))
    }

    /// Fetches everything that was asked for; false if there is nothing to fetch.
    pub(super) async fn fetch(
        &self,
        application: &Application,
        pinned: Option<&ApplicationRevision>,
        outside: &Arc<Outside>,
    ) -> bool {
        let wanted = outside.wanted();
        if wanted.is_empty() {
            return false;
        }
        let fetched = stream::iter(wanted).map(|wanted| async {
            let content = self.get(application, &wanted).await;
            outside.add(wanted, content);
        });
        fetched.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        let mut known = self.known.lock();
        if known.len() >= CAPACITY {
            known.clear();
        }
        let entry = (version(application, pinned), Arc::clone(outside));
        known.insert(ObjectKey::of(application), entry);
        true
    }

    /// Forgets an application.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.known.lock().remove(key);
    }

    async fn get(&self, application: &Application, wanted: &Wanted) -> Result<Content, String> {
        match wanted {
            Wanted::Chart(reference, digest) => self.chart(application, reference, digest).await,
            Wanted::Manifests(url) => self.manifests(url).await,
            Wanted::Values(kind, namespace, name) => self.values(kind, namespace, name).await,
            Wanted::Answer(request) => self.answer(request).await,
        }
    }

    async fn chart(
        &self,
        application: &Application,
        reference: &ChartReference,
        digest: &str,
    ) -> Result<Content, String> {
        let seed = self.seed(application).await?;
        let in_registry = reference.repository.starts_with("oci://");
        let (address, chart) = match reference.repository.trim_end_matches('/') {
            "" => (reference.source.clone(), ""),
            repository if in_registry => (format!("{repository}/{}", reference.source), ""),
            repository => (repository.to_owned(), reference.source.as_str()),
        };
        let from = TemplateSource {
            source: address,
            revision: reference.version.clone(),
            digest: digest.to_owned(),
            ..TemplateSource::default()
        };
        let source = Source::read(&from, chart)?;
        let fetched = self
            .sources
            .fetch(&source, Part::Folder(""), digest, &Credentials::default())
            .await
            .map_err(|problem| problem.message)?;
        let chart = compute(|| Chart::from_directory(&fetched.files)).await;
        let chart = chart.map_err(|error| error.to_string())?;
        let digest = fetched.digest;
        let fetched = FetchedChart {
            chart,
            digest,
            seed,
        };
        Ok(Content::Chart(Arc::new(fetched)))
    }

    /// What random values of charts are made of: the same for an application as long as it lives.
    async fn seed(&self, application: &Application) -> Result<[u8; 32], String> {
        let key = hub_key(&self.client, SEED_KEY).await;
        let key = key.map_err(|error| format!("no key for random values: {error}"))?;
        let mut seed = Sha256::new();
        seed.update(key);
        seed.update(application.metadata.uid.as_deref().unwrap_or_default());
        Ok(seed.finalize().into())
    }

    async fn manifests(&self, url: &str) -> Result<Content, String> {
        let body = self.sources.manifests(url).await;
        let body = body.map_err(|problem| problem.message)?;
        let text = std::str::from_utf8(&body).map_err(|_| "it is not text".to_owned())?;
        let objects = compute(|| from_yaml(text)).await;
        let objects = objects.map_err(|error| error.to_string())?;
        let objects: Vec<Value> = objects.into_iter().filter(Value::is_object).collect();
        Ok(Content::Value(objects.into()))
    }

    /// The texts of a ConfigMap or Secret, by key.
    async fn values(&self, kind: &str, namespace: &str, name: &str) -> Result<Content, String> {
        let text = |error: kube::Error| error.to_string();
        let data: Option<Map<String, Value>> = match kind {
            "ConfigMap" => {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                let found = api.get_opt(name).await.map_err(text)?;
                found.map(|found| {
                    let data = found.data.unwrap_or_default().into_iter();
                    data.map(|(key, value)| (key, value.into())).collect()
                })
            }
            "Secret" => {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
                let found = api.get_opt(name).await.map_err(text)?;
                found.map(|found| {
                    let data = found.data.unwrap_or_default().into_iter();
                    data.filter_map(|(key, value)| {
                        Some((key, String::from_utf8(value.0).ok()?.into()))
                    })
                    .collect()
                })
            }
            other => {
                return Err(format!(
                    "kind {other:?} has no values: use ConfigMap or Secret"
                ));
            }
        };
        Ok(Content::Value(data.map_or(Value::Null, Value::Object)))
    }

    async fn answer(&self, request: &str) -> Result<Content, String> {
        let request: Value = serde_json::from_str(request).map_err(|error| error.to_string())?;
        let answer = self.http.send(&request, &[]).await?;
        let status = answer["statusCode"].as_i64().unwrap_or_default();
        if !(200..300).contains(&status) {
            return Err(format!("the server answered {status}"));
        }
        let body = answer["body"].as_str().unwrap_or_default();
        let body = serde_json::from_str(body)
            .map_err(|error| format!("the answer is not JSON: {error}"))?;
        Ok(Content::Value(body))
    }
}

/// What things are fetched for: a version of the spec, and the revision that recorded what it was made of.
fn version(application: &Application, pinned: Option<&ApplicationRevision>) -> String {
    let pinned = pinned.and_then(|revision| revision.metadata.name.as_deref());
    format!(
        "{} {} {}",
        application.metadata.uid.as_deref().unwrap_or_default(),
        application.metadata.generation.unwrap_or_default(),
        pinned.unwrap_or_default(),
    )
}
