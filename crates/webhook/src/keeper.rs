//! Keeps the Secret with the authority and the webhook configurations in order.
//!
//! The order matters: an authority is in the Secret before configurations trust it, and configurations
//! trust it before a certificate of it is shown.

use std::time::Duration;

use bellwether_runtime::{Clock, Outage};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::certificate::Authorities;
use crate::configuration::{Kind, NAME, configuration};
use crate::server::WebhookServer;

/// How often everything is looked at, besides when a configuration changes.
const INTERVAL: Duration = Duration::from_mins(10);

/// The wait after a failure, and for a Secret that another process is to make.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps what a webhook server needs on a hub.
#[derive(Debug, Clone)]
pub struct Keeper {
    server: WebhookServer,
    clock: Clock,
}

impl Keeper {
    /// A keeper for a server.
    pub fn new(server: &WebhookServer, clock: Clock) -> Self {
        Self {
            server: server.clone(),
            clock,
        }
    }

    /// Takes over the authority that the leader keeps, whenever there is another: for every process,
    /// until it is dropped.
    pub async fn follow(&self, client: &Client) {
        let mut outage = Outage::default();
        loop {
            let read = self.secrets(client).get_opt(&self.secret_name()).await;
            let wait = match read {
                Ok(secret) => {
                    outage.ends();
                    match secret.as_ref().and_then(Authorities::read) {
                        Some(authorities) => {
                            self.renew(&authorities);
                            INTERVAL
                        }
                        None => RETRY,
                    }
                }
                Err(error) => {
                    if outage.begins() {
                        tracing::warn!(%error, "cannot read the Secret of the webhook server; will retry");
                    }
                    RETRY
                }
            };
            self.clock.sleep(wait).await;
        }
    }

    /// Waits until the server can be called.
    pub async fn ready(&self) {
        while !self.server.serving.is_ready() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Keeps everything in order while this process leads, until it is dropped. `client` may write only
    /// while it does.
    pub async fn keep(&self, client: &Client) {
        let mutating = changes::<MutatingWebhookConfiguration>(client).boxed();
        let validating = changes::<ValidatingWebhookConfiguration>(client).boxed();
        let mut changes = futures::stream::select(mutating, validating);
        let mut outage = Outage::default();
        loop {
            match self.tidy(client).await {
                Ok(()) => {
                    if outage.ends() {
                        tracing::info!("the webhook configurations are in order again");
                    }
                    tokio::select! {
                        () = self.clock.sleep(INTERVAL) => {}
                        _ = changes.next() => {}
                    }
                }
                Err(error) => {
                    if outage.begins() {
                        tracing::warn!(%error, "cannot keep the webhook configurations in order; will retry");
                    }
                    // Whatever changes meanwhile is seen by the next attempt.
                    self.clock.sleep(RETRY).await;
                }
            }
        }
    }

    /// Makes sure that the Secret and both configurations are as they should be.
    pub async fn tidy(&self, client: &Client) -> Result<(), kube::Error> {
        let authorities = self.authorities(client).await?;
        let bundle = authorities.bundle();
        let options = &self.server.options;
        let wanted =
            |kind: Kind| configuration(kind, &options.admissions, &options.location, &bundle);
        // A server that nobody can call yet is not to be called: it has a certificate first. One of an
        // authority that replaces another is shown last.
        if !self.server.serving.is_ready() {
            self.renew(&authorities);
        }
        ensure::<MutatingWebhookConfiguration>(client, wanted(Kind::Mutating)).await?;
        ensure::<ValidatingWebhookConfiguration>(client, wanted(Kind::Validating)).await?;
        self.renew(&authorities);
        Ok(())
    }

    fn renew(&self, authorities: &Authorities) {
        let (names, addresses) = self.server.options.location.names();
        let serving = &self.server.serving;
        if let Err(error) = serving.renew(authorities, &names, &addresses, self.clock.now()) {
            tracing::error!(error, "cannot make a certificate for the webhook server");
        }
    }

    fn secrets(&self, client: &Client) -> Api<Secret> {
        Api::namespaced(client.clone(), &self.server.options.secret.0)
    }

    fn secret_name(&self) -> String {
        self.server.options.secret.1.clone()
    }

    /// The authorities in the Secret; made or replaced if need be.
    async fn authorities(&self, client: &Client) -> Result<Authorities, kube::Error> {
        let (api, name) = (self.secrets(client), self.secret_name());
        let found = api.get_opt(&name).await?;
        let known = found.as_ref().and_then(Authorities::read);
        let now = self.clock.now();
        if let Some(known) = known.as_ref().filter(|known| !known.is_due(now)) {
            return Ok(known.clone());
        }
        let made = Authorities::generate(known.as_ref(), now)
            .map_err(|error| kube::Error::Service(Box::new(error)))?;
        let mut secret = found.unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        });
        made.write(&mut secret);
        // A conflict means that another process was faster: this is tried again.
        if secret.resource_version().is_some() {
            api.replace(&name, &PostParams::default(), &secret).await?;
        } else {
            api.create(&PostParams::default(), &secret).await?;
        }
        tracing::info!(
            secret = name,
            "made a certificate authority for the webhook server"
        );
        Ok(made)
    }
}

/// Reports when our configuration of a kind has changed, or may have. A watch that fails is begun again after a wait that grows.
fn changes<K>(client: &Client) -> impl Stream<Item = ()> + Send + use<K>
where
    K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let events = watcher(Api::<K>::all(client.clone()), only).default_backoff();
    events.filter_map(|event| {
        let is_change = matches!(
            event,
            Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone)
        );
        std::future::ready(is_change.then_some(()))
    })
}

/// Creates a configuration, or repairs it. One without webhooks is not needed.
async fn ensure<K>(client: &Client, wanted: Value) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let typed = |value: Value| serde_json::from_value::<K>(value).map_err(kube::Error::SerdeError);
    let Some(found) = api.get_opt(NAME).await? else {
        api.create(&PostParams::default(), &typed(wanted)?).await?;
        tracing::info!(kind = %K::kind(&()), name = NAME, "created a webhook configuration");
        return Ok(());
    };
    let mut current = serde_json::to_value(&found).map_err(kube::Error::SerdeError)?;
    // Types drop what is empty, on both sides alike.
    let wanted = serde_json::to_value(typed(wanted)?).map_err(kube::Error::SerdeError)?;
    if current["webhooks"] == wanted["webhooks"] {
        return Ok(());
    }
    current["webhooks"] = wanted["webhooks"].clone();
    api.replace(NAME, &PostParams::default(), &typed(current)?)
        .await?;
    tracing::info!(kind = %K::kind(&()), name = NAME, "repaired a webhook configuration");
    Ok(())
}
