//! Fetches what applications need from outside of the hub: charts, manifests, answers of servers, values in ConfigMaps and Secrets.
//!
//! What was fetched is kept while the version of the application stays the same, so that it is rendered to the same objects.
//! Commands that show what an application becomes fetch with the same code; they write nothing to the hub.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::oam::{Application, ApplicationRevision};
use bellwether_api::workflow::TemplateSource;
use bellwether_application::appfile::{self, Appfile};
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::outside::{ChartReference, Content, FetchedChart, Outside, Wanted};
use bellwether_application::world::World;
use bellwether_application::{Class, RenderError};
use bellwether_git::Credentials;
use bellwether_helm::Chart;
use bellwether_json::yaml::from_yaml;
use bellwether_runtime::{ObjectKey, compute};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::to_json;
use crate::egress::Egress;
use crate::hub_key::{hub_key, known_hub_key};
use crate::template::cache::Cache;
use crate::template::fetch::{Part, Sources};
use crate::template::source::Source;
use crate::workflow::providers::git::from_secret;
use crate::workflow::providers::http::{Extras, HttpClient};
use crate::workflow::{Unsent, WorkflowOptions};

/// The Secret with the key that random values of charts are made of.
const SEED_KEY: &str = "bellwether-chart-key";
/// How many things are fetched at once.
const AT_ONCE: usize = 4;
/// For how many applications things are kept.
const CAPACITY: usize = 10_000;

/// How often something may be fetched that what was fetched before asks for.
const FETCH_ROUNDS: usize = 8;

/// What values, credentials and keys come from.
enum Origin {
    /// A hub, whose controller asks.
    Hub(Client),
    /// Files of a command, then the hub that it is connected to, if it is.
    Command {
        objects: Vec<Value>,
        hub: Option<Client>,
        tell: fn(&Wanted),
    },
}

/// An application that is parsed.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The application.
    pub application: &'a Application,
    /// The revision that recorded what it was made of.
    pub pinned: Option<&'a ApplicationRevision>,
    /// The number of the revision that it becomes.
    pub number: i64,
}

/// Fetches what applications need.
pub struct Fetcher {
    origin: Origin,
    http: HttpClient,
    /// Set in a rehearsal.
    unsent: Option<Unsent>,
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
    /// Fetches for the controller of a hub.
    pub(super) fn new(client: &Client, options: &WorkflowOptions) -> Self {
        Self::with_origin(Origin::Hub(client.clone()), options)
    }

    /// Fetches for a command: ConfigMaps and Secrets are taken from its objects, then from the hub, if it is connected to one.
    /// `tell` is called before something is fetched.
    pub fn for_command(
        objects: Vec<Value>,
        hub: Option<Client>,
        tell: fn(&Wanted),
        options: &WorkflowOptions,
    ) -> Self {
        Self::with_origin(Origin::Command { objects, hub, tell }, options)
    }

    fn with_origin(origin: Origin, options: &WorkflowOptions) -> Self {
        let cache = Cache::new(options.source_cache.as_deref());
        Self {
            origin,
            http: HttpClient::new(&options.http),
            unsent: options.unsent.clone(),
            sources: Sources::new(Arc::new(Egress::new(options)), cache),
            known: Mutex::default(),
        }
    }

    /// Finds everything that an application refers to, and fetches what rendering asks for until there is nothing more.
    pub async fn parse<'a>(
        &self,
        subject: &Subject<'_>,
        catalog: &'a Catalog,
        world: &'a World,
    ) -> Result<Appfile<'a>, RenderError> {
        let outside = world.outside.as_ref();
        if let Some(outside) = outside {
            outside.forget_failures();
        }
        let mut rounds = 0;
        loop {
            let parsed = appfile::parse(subject.application, catalog, world, subject.number);
            let error = match parsed {
                // Nothing of it is applied before everything that it needs is there.
                Ok(appfile) if appfile.asks_outside() => {
                    match compute(|| deliver(&appfile)).await {
                        Err(error) if error.class == Class::Outside => error,
                        _ => return Ok(appfile),
                    }
                }
                Err(error) if error.class == Class::Outside => error,
                parsed => return parsed,
            };
            rounds += 1;
            let (Some(outside), true) = (outside, rounds <= FETCH_ROUNDS) else {
                return Err(error);
            };
            if !self.fetch(subject, outside).await {
                return Err(error);
            }
        }
    }

    /// What is known for a version of an application. A revision recorded what it was made of.
    pub fn of(
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
    async fn fetch(&self, subject: &Subject<'_>, outside: &Arc<Outside>) -> bool {
        let &Subject {
            application,
            pinned,
            ..
        } = subject;
        let wanted = outside.wanted();
        if wanted.is_empty() {
            return false;
        }
        if let Origin::Command { tell, .. } = &self.origin {
            wanted.iter().for_each(tell);
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
        let credentials = self.credentials(application, &reference.secret).await?;
        let fetched = self
            .sources
            .fetch(&source, Part::Folder(""), digest, &credentials)
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

    /// The credentials in a Secret of the application's namespace; none without a name.
    async fn credentials(
        &self,
        application: &Application,
        name: &str,
    ) -> Result<Credentials, String> {
        if name.is_empty() {
            return Ok(Credentials::default());
        }
        let namespace = application.metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or("default");
        let data = self.data("Secret", namespace, name).await?;
        let data = data.ok_or_else(|| {
            format!("the Secret {namespace}/{name} with its credentials does not exist")
        })?;
        let data = data
            .into_iter()
            .map(|(key, value)| (key, value.into_bytes()));
        from_secret(name, &data.collect())
    }

    /// What random values of charts are made of: the same for an application as long as it lives.
    async fn seed(&self, application: &Application) -> Result<[u8; 32], String> {
        let key = match &self.origin {
            Origin::Hub(client) => hub_key(client, SEED_KEY).await,
            Origin::Command {
                hub: Some(client), ..
            } => known_hub_key(client, SEED_KEY)
                .await
                .map(Option::unwrap_or_default),
            Origin::Command { hub: None, .. } => Ok(Vec::new()),
        };
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
        let data = self.data(kind, namespace, name).await?;
        let data = data.map(|data| data.into_iter().map(|(key, value)| (key, value.into())));
        Ok(Content::Value(
            data.map_or(Value::Null, |data| Value::Object(data.collect())),
        ))
    }

    /// The data of a ConfigMap or Secret as far as it is text; none if it does not exist.
    async fn data(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        if kind != "ConfigMap" && kind != "Secret" {
            return Err(format!(
                "kind {kind:?} has no values: use ConfigMap or Secret"
            ));
        }
        let client = match &self.origin {
            Origin::Hub(client) => client,
            Origin::Command { objects, hub, .. } => {
                let found = objects
                    .iter()
                    .find(|it| is_called(it, kind, namespace, name));
                match (found, hub) {
                    (Some(found), _) => return Ok(Some(texts(found))),
                    (None, Some(hub)) => hub,
                    (None, None) => return Ok(None),
                }
            }
        };
        let found = if kind == "ConfigMap" {
            let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            api.get_opt(name)
                .await
                .map(|found| found.as_ref().map(to_json))
        } else {
            let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
            api.get_opt(name)
                .await
                .map(|found| found.as_ref().map(to_json))
        };
        let found = found.map_err(|error| format!("{kind} {namespace}/{name}: {error}"))?;
        Ok(found.as_ref().map(texts))
    }

    async fn answer(&self, request: &str) -> Result<Content, String> {
        let request: Value = serde_json::from_str(request).map_err(|error| error.to_string())?;
        if let Some(unsent) = &self.unsent {
            unsent.check("http.do", &request)?;
        }
        let answer = self.http.send(&request, &Extras::default()).await?;
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

/// Whether an object of a file is the core object of this name.
fn is_called(object: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    let metadata = &object["metadata"];
    object["kind"] == kind
        && object["apiVersion"] == "v1"
        && metadata["name"] == name
        && metadata["namespace"].as_str().unwrap_or("default") == namespace
}

/// The data of a ConfigMap or Secret as far as it is text.
fn texts(object: &Value) -> BTreeMap<String, String> {
    let entries = |field: &str| object[field].as_object().into_iter().flatten();
    let is_encoded = object["kind"] == "Secret";
    let decoded = |text: &str| {
        if !is_encoded {
            return Some(text.to_owned());
        }
        let bytes = STANDARD.decode(text).ok()?;
        String::from_utf8(bytes).ok()
    };
    let data = entries("data").filter_map(|(key, value)| Some((key, decoded(value.as_str()?)?)));
    let plain =
        entries("stringData").filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())));
    data.chain(plain)
        .map(|(key, value)| (key.clone(), value))
        .collect()
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
