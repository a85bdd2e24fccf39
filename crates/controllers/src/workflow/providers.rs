//! Actions of steps on the world outside.

pub mod config;
pub mod email;
pub(crate) mod git;
pub mod http;
pub mod kube;
pub mod log;
pub mod metrics;
pub mod query;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::kube::Client;
use bellwether_runtime::{Clock, Fence, Fenced, compute};
use bellwether_workflow::config::{Configuration, Draft, Next};
use bellwether_workflow::session::Call;
use bellwether_workflow::{Done, Request, action};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_rustls::rustls::ClientConfig;

use self::http::{Extras, HttpClient};
use self::kube::Objects;
use super::watches::Looked;
use super::{Owner, Unsent, WorkflowOptions};
use crate::egress::Egress;

/// What carries actions out.
pub struct Providers {
    clock: Clock,
    objects: Objects,
    http: HttpClient,
    git: bellwether_git::Client,
    /// Closed while another process may lead.
    fence: Option<Fence>,
    /// Set in a rehearsal.
    unsent: Option<Unsent>,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Providers").finish_non_exhaustive()
    }
}

impl Providers {
    /// For the workflows of a hub.
    pub fn new(client: &Client, clock: &Clock, options: &WorkflowOptions) -> Self {
        Self {
            objects: Objects::new(client, clock),
            http: HttpClient::new(&options.http),
            git: bellwether_git::Client::new(Arc::new(Egress::new(options))),
            clock: clock.clone(),
            fence: options.fence.clone(),
            unsent: options.unsent.clone(),
        }
    }

    /// Carries an action out, and notes the objects that it looked at.
    pub async fn carry_out(
        &self,
        owner: &Owner,
        request: &Request,
        looked: &mut Vec<Looked>,
    ) -> Result<Done, String> {
        let params = &request.call.params;
        if let Some(unsent) = &self.unsent {
            unsent.check(&request.call.name, params)?;
        }
        let value = match request.call.name.as_str() {
            "kube.apply" => self.objects.apply(owner, &request.call, looked).await?,
            action::OBJECT => self.objects.apply_step(owner, params, looked).await?,
            "kube.apply-in-parallel" => self.objects.apply_all(owner, params).await?,
            "kube.patch" => self.objects.patch(owner, &request.call, looked).await?,
            "kube.read" => self.objects.read_or_reference(params, looked).await,
            "kube.list" => self.objects.list(params, looked).await,
            "kube.delete" => self.objects.delete(params).await,
            "http.do" => {
                let namespace = &owner.key.namespace;
                let key = format!("{}/{}", request.id, request.call.path);
                let extras = Extras {
                    secret_headers: self.secret_headers(namespace, params).await?,
                    headers: vec![("Idempotency-Key".to_owned(), key)],
                    tls: self.tls(namespace, params).await?,
                };
                self.check_lease()?;
                self.http.send(params, &extras).await?
            }
            "git.push" => {
                let namespace = &owner.key.namespace;
                let now = self.clock.now();
                self.check_lease()?;
                // A conversation with a server is a large future.
                Box::pin(git::push(&self.git, &self.objects, namespace, params, now)).await?
            }
            "email.send" => {
                self.check_lease()?;
                email::send(&self.http, params).await?;
                json!({})
            }
            "config.create" => {
                let made = self.configuration(owner, params).await?;
                config::create(&self.objects, owner, made).await?
            }
            "config.read" => config::read(&self.objects, owner, params).await?,
            "config.list" => config::list(&self.objects, owner, params).await?,
            "config.delete" => config::delete(&self.objects, owner, params).await?,
            action::LOG => return Ok(log::write(owner, request)),
            "metrics.promCheck" => {
                return metrics::check(&self.http, self.clock.now(), request).await;
            }
            name if name.starts_with("query.") => {
                let applied = query::applied(&self.objects, &params["app"]).await;
                query::answer(&self.objects, &request.call, &applied).await?
            }
            "multicluster.list-clusters" => self.clusters().await?,
            other => return Err(format!("{other} is not available in this workflow")),
        };
        Ok(Done {
            value,
            ..Done::default()
        })
    }

    /// Refuses what leaves the hub unless this process leads. The hub's own API is behind the same fence; others cannot tell who leads.
    fn check_lease(&self) -> Result<(), String> {
        match &self.fence {
            Some(fence) if !fence.is_open() => Err(Fenced.to_string()),
            _ => Ok(()),
        }
    }

    /// Answers a query about an application that applied these objects.
    pub async fn query(&self, request: &Request, applied: &[Value]) -> Result<Value, String> {
        query::answer(&self.objects, &request.call, applied).await
    }

    /// The objects of a configuration. What its template asks for is read.
    pub async fn configuration(
        &self,
        owner: &Owner,
        params: &Value,
    ) -> Result<Configuration, String> {
        let source = config::source(&self.objects, params).await?;
        let wanted = config::wanted(&owner.key.namespace, params);
        let mut draft = compute(|| Draft::new(wanted, source.as_deref())).await?;
        loop {
            match compute(|| draft.advance()).await? {
                Next::Made(made) => return Ok(*made),
                Next::Call(call) => {
                    let result = self.read_for_template(owner, &call).await;
                    compute(|| draft.complete(&call, &result)).await?;
                }
            }
        }
    }

    /// Carries out an action of a template of configurations. It may read a configuration, so its future is boxed.
    fn read_for_template<'a>(
        &'a self,
        owner: &'a Owner,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let request = Request {
                step: String::new(),
                id: String::new(),
                call: call.clone(),
                is_ambiguous: false,
                memory: BTreeMap::new(),
            };
            let done = self.carry_out(owner, &request, &mut Vec::new()).await?;
            Ok(done.value)
        })
    }

    /// Headers whose values are in Secrets. They are never recorded.
    async fn secret_headers(
        &self,
        namespace: &str,
        params: &Value,
    ) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        let listed = params["request"]["headersFromSecret"].as_array();
        for entry in listed.into_iter().flatten() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let (header, secret, key) = (text("header"), text("secret"), text("key"));
            let data = self
                .objects
                .secret(namespace, secret)
                .await
                .map_err(|problem| {
                    format!("secret {secret:?} not found for header {header:?}: {problem}")
                })?;
            let value = data
                .get(key)
                .ok_or_else(|| format!("key {key:?} not found in secret {secret:?}"))?;
            headers.push((
                header.to_owned(),
                String::from_utf8_lossy(value).into_owned(),
            ));
        }
        Ok(headers)
    }

    /// How connections are encrypted, if an action names a Secret with certificates.
    async fn tls(
        &self,
        namespace: &str,
        params: &Value,
    ) -> Result<Option<Arc<ClientConfig>>, String> {
        let wanted = &params["tls_config"];
        let Some(name) = wanted["secret"].as_str().filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let own = wanted["namespace"].as_str().filter(|it| !it.is_empty());
        let data = self.objects.secret(own.unwrap_or(namespace), name).await;
        let config = data.and_then(|data| http::tls::from_secret(&data));
        let config = config.map_err(|problem| format!("tls_config: secret {name:?}: {problem}"))?;
        Ok(Some(Arc::new(config)))
    }

    async fn clusters(&self) -> Result<Value, String> {
        let list = json!({"resource": {
            "apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster",
        }});
        let listed = self.objects.list(&list, &mut Vec::new()).await;
        let items = listed["values"]["items"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let names: Vec<Value> = items
            .iter()
            .map(|item| item["metadata"]["name"].clone())
            .collect();
        Ok(json!({"outputs": {"clusters": names}}))
    }
}
