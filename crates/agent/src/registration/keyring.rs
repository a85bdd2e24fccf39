//! Where an agent keeps its certificate: in a Secret of its own cluster.

use std::collections::BTreeMap;

use bellwether_api::cluster::names::registration::{
    AGENT_NAMESPACE, BOOTSTRAP_SECRET, HUB_KUBECONFIG_SECRET, JOIN_REQUEST_SECRET,
};
use bellwether_runtime::{ClusterHandle, delete_if_present, ensure};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};

use super::AgentError;
use super::certificate::Certificate;

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credentials(…)")
    }
}

/// A request for a certificate that has not been answered, and its private key.
pub(super) struct Pending {
    /// The name of the request on the hub.
    pub(super) request: String,
    /// Which request of that name.
    pub(super) uid: String,
    /// The private key.
    pub(super) key: String,
}

/// What an agent has kept of its credentials.
pub(super) enum StoredKeys {
    /// None, or none for this cluster and this hub.
    Nothing,
    /// A certificate that was good until then.
    Expired(Timestamp),
    /// Good ones.
    Good(Credentials),
}

/// The Secret with the credentials of an agent.
pub(super) struct Keyring<'a> {
    pub(super) member: &'a ClusterHandle,
    pub(super) cluster: &'a str,
    /// How the hub is reached, beside the certificate; credentials for another hub are no good.
    pub(super) kubeconfig: Option<String>,
}

impl Keyring<'_> {
    /// The credentials that are kept for this cluster and this hub.
    pub(super) async fn load(&self, now: Timestamp) -> Result<StoredKeys, AgentError> {
        let data = self.data(HUB_KUBECONFIG_SECRET).await?;
        let text = |key: &str| text_of(&data, key);
        let (Some(certificate), Some(key)) = (text("tls.crt"), text("tls.key")) else {
            return Ok(StoredKeys::Nothing);
        };
        let is_for_this_hub = self.kubeconfig.is_none() || text("kubeconfig") == self.kubeconfig;
        let read = Certificate::read(&certificate).ok();
        let read = read.filter(|it| is_for_this_hub && it.is_of(self.cluster));
        Ok(match read {
            None => StoredKeys::Nothing,
            Some(read) if now >= read.not_after => StoredKeys::Expired(read.not_after),
            Some(_) => StoredKeys::Good(Credentials { certificate, key }),
        })
    }

    /// Keeps credentials, in place of any that were there.
    pub(super) async fn store(&self, credentials: &Credentials) -> Result<(), AgentError> {
        let user = Certificate::read(&credentials.certificate)?.user;
        let agent = user.rsplit(':').next().unwrap_or_default();
        let mut data = json!({
            "cluster-name": encode(self.cluster),
            "agent-name": encode(agent),
            "tls.crt": encode(&credentials.certificate),
            "tls.key": encode(&credentials.key),
        });
        if let Some(kubeconfig) = &self.kubeconfig {
            data["kubeconfig"] = encode(kubeconfig);
        }
        let kept = self.keep(HUB_KUBECONFIG_SECRET, &data).await;
        kept.map_err(AgentError::kube("keep the credentials"))?;
        self.forget_pending().await
    }

    /// The request that has not been answered, if there is one.
    pub(super) async fn pending(&self) -> Result<Option<Pending>, AgentError> {
        let data = self.data(JOIN_REQUEST_SECRET).await?;
        let text = |key: &str| text_of(&data, key);
        let pending = || {
            Some(Pending {
                request: text("request")?,
                uid: text("uid")?,
                key: text("tls.key")?,
            })
        };
        Ok(pending())
    }

    /// Keeps a request that may be answered after this process has ended.
    pub(super) async fn keep_pending(&self, pending: &Pending) -> Result<(), AgentError> {
        let data = json!({
            "request": encode(&pending.request),
            "uid": encode(&pending.uid),
            "tls.key": encode(&pending.key),
        });
        let kept = self.keep(JOIN_REQUEST_SECRET, &data).await;
        kept.map_err(AgentError::kube("keep the request"))
    }

    /// Forgets a request: it has been answered, or never will be.
    pub(super) async fn forget_pending(&self) -> Result<(), AgentError> {
        self.remove(JOIN_REQUEST_SECRET).await
    }

    async fn data(&self, secret: &str) -> Result<BTreeMap<String, ByteString>, AgentError> {
        let secrets: Api<Secret> = Api::namespaced(self.member.client(), AGENT_NAMESPACE);
        let secret = secrets.get_opt(secret).await;
        let secret = secret.map_err(AgentError::kube("read the credentials"))?;
        Ok(secret.and_then(|secret| secret.data).unwrap_or_default())
    }

    async fn keep(&self, name: &str, data: &Value) -> Result<(), kube::Error> {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE},
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": AGENT_NAMESPACE},
            "data": data,
        });
        let member = self.member.client();
        for object in [namespace, secret] {
            ensure(&member, &object).await?;
        }
        Ok(())
    }

    /// Forgets the credentials: the hub does not believe them.
    pub(super) async fn discard(&self) -> Result<(), AgentError> {
        self.remove(HUB_KUBECONFIG_SECRET).await
    }

    /// Forgets the hub: the credentials, and what they were asked for with.
    pub(super) async fn forget_hub(&self) -> Result<(), AgentError> {
        self.discard().await?;
        self.remove(BOOTSTRAP_SECRET).await
    }

    async fn remove(&self, name: &str) -> Result<(), AgentError> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": AGENT_NAMESPACE},
        });
        let done = delete_if_present(&self.member.client(), &secret).await;
        done.map_err(AgentError::kube("remove the credentials"))
    }
}

fn encode(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

fn text_of(data: &BTreeMap<String, ByteString>, key: &str) -> Option<String> {
    let ByteString(bytes) = data.get(key)?;
    String::from_utf8(bytes.clone()).ok()
}
