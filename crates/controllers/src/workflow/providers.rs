//! Actions of steps on the world outside.

pub mod config;
pub mod http;
pub mod kube;
pub mod metrics;

use ::kube::Client;
use bellwether_runtime::Clock;
use bellwether_workflow::{Done, Request};
use serde_json::{Value, json};

use self::http::{HttpClient, HttpPolicy};
use self::kube::Objects;
use super::Owner;
use super::watches::Looked;

/// What carries actions out.
pub struct Providers {
    clock: Clock,
    objects: Objects,
    http: HttpClient,
}

impl std::fmt::Debug for Providers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Providers").finish_non_exhaustive()
    }
}

impl Providers {
    /// For the workflows of a hub.
    pub fn new(client: &Client, clock: &Clock, policy: &HttpPolicy) -> Self {
        Self {
            objects: Objects::new(client, clock),
            http: HttpClient::new(policy),
            clock: clock.clone(),
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
        let value = match request.call.name.as_str() {
            "kube.apply" => self.objects.apply(owner, &request.call, looked).await?,
            "kube.apply-in-parallel" => self.objects.apply_all(owner, params).await?,
            "kube.patch" => self.objects.patch(owner, &request.call, looked).await?,
            "kube.read" => self.objects.read(params, looked).await,
            "kube.list" => self.objects.list(params, looked).await,
            "kube.delete" => self.objects.delete(params).await,
            "http.do" => {
                let namespace = &owner.key.namespace;
                let mut headers = self.secret_headers(namespace, params).await?;
                headers.push((
                    "Idempotency-Key".to_owned(),
                    format!("{}/{}", request.id, request.call.path),
                ));
                self.http.send(params, &headers).await?
            }
            "config.create" => config::create(&self.objects, owner, params).await?,
            "config.read" => config::read(&self.objects, owner, params).await?,
            "config.list" => config::list(&self.objects, owner, params).await?,
            "config.delete" => config::delete(&self.objects, owner, params).await?,
            "metrics.promCheck" => {
                return metrics::check(&self.http, self.clock.now(), request).await;
            }
            "multicluster.list-clusters" => self.clusters().await?,
            other => return Err(format!("{other} is not available in this workflow")),
        };
        Ok(Done {
            value,
            ..Done::default()
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
