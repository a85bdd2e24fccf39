//! Where an agent keeps its certificate: in a Secret of its own cluster.

use bellwether_api::cluster::names::registration::{
    AGENT_NAMESPACE, BOOTSTRAP_SECRET, HUB_KUBECONFIG_SECRET,
};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::json;

use super::AgentError;
use super::certificate::Certificate;
use crate::objects::{delete_if_present, ensure};

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

/// The Secret with the credentials of an agent.
pub(super) struct Keyring<'a> {
    pub(super) member: &'a Client,
    pub(super) cluster: &'a str,
    /// How the hub is reached, beside the certificate; credentials for another hub are no good.
    pub(super) kubeconfig: Option<String>,
}

impl Keyring<'_> {
    /// The credentials, if there are good ones.
    pub(super) async fn load(&self, now: Timestamp) -> Result<Option<Credentials>, AgentError> {
        let secrets: Api<Secret> = Api::namespaced(self.member.clone(), AGENT_NAMESPACE);
        let secret = secrets.get_opt(HUB_KUBECONFIG_SECRET).await;
        let secret = secret.map_err(AgentError::kube("read the credentials"))?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let text = |key: &str| {
            let ByteString(bytes) = data.get(key)?;
            String::from_utf8(bytes.clone()).ok()
        };
        let (Some(certificate), Some(key)) = (text("tls.crt"), text("tls.key")) else {
            return Ok(None);
        };
        let is_for_this_hub = self.kubeconfig.is_none() || text("kubeconfig") == self.kubeconfig;
        let is_good = Certificate::read(&certificate)
            .is_ok_and(|certificate| certificate.is_good_for(self.cluster, now));
        Ok((is_for_this_hub && is_good).then_some(Credentials { certificate, key }))
    }

    /// Keeps credentials, in place of any that were there.
    pub(super) async fn store(&self, credentials: &Credentials) -> Result<(), AgentError> {
        let user = Certificate::read(&credentials.certificate)?.user;
        let agent = user.rsplit(':').next().unwrap_or_default();
        let encode = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
        let mut data = json!({
            "cluster-name": encode(self.cluster),
            "agent-name": encode(agent),
            "tls.crt": encode(&credentials.certificate),
            "tls.key": encode(&credentials.key),
        });
        if let Some(kubeconfig) = &self.kubeconfig {
            data["kubeconfig"] = encode(kubeconfig);
        }
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE},
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": HUB_KUBECONFIG_SECRET, "namespace": AGENT_NAMESPACE},
            "data": data,
        });
        for object in [namespace, secret] {
            let kept = ensure(self.member, &object).await;
            kept.map_err(AgentError::kube("keep the credentials"))?;
        }
        Ok(())
    }

    /// Forgets the credentials: the hub does not believe them.
    pub(super) async fn discard(&self) -> Result<(), AgentError> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": HUB_KUBECONFIG_SECRET, "namespace": AGENT_NAMESPACE},
        });
        let done = delete_if_present(self.member, &secret).await;
        done.map_err(AgentError::kube("remove the credentials"))
    }
}

/// Keeps the kubeconfig with which an agent asks to join, on the member.
pub async fn keep_bootstrap(member: &Client, kubeconfig: &str) -> Result<(), kube::Error> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE},
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": BOOTSTRAP_SECRET, "namespace": AGENT_NAMESPACE},
        "data": {"kubeconfig": ByteString(kubeconfig.as_bytes().to_vec())},
    });
    for object in [namespace, secret] {
        ensure(member, &object).await?;
    }
    Ok(())
}

/// The kubeconfig with which an agent asks to join, as it was kept on the member.
pub async fn kept_bootstrap(member: &Client) -> Result<Option<String>, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(member.clone(), AGENT_NAMESPACE);
    let secret = secrets.get_opt(BOOTSTRAP_SECRET).await?;
    let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
    let kubeconfig = data.remove("kubeconfig");
    Ok(kubeconfig.and_then(|ByteString(bytes)| String::from_utf8(bytes).ok()))
}
