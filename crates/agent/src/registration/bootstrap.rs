//! The kubeconfig with which an agent asks to join: a Secret of its own cluster.

use bellwether_api::cluster::names::registration::{AGENT_NAMESPACE, BOOTSTRAP_SECRET};
use bellwether_runtime::{FeedEvent, Selection, ensure, follow, parse_kubeconfig};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource as _};
use serde_json::json;
use tokio::sync::Notify;

/// Where the text is in the Secret.
const KEY: &str = "kubeconfig";

/// Keeps the kubeconfig with which an agent asks to join, on the member.
pub async fn keep_bootstrap(member: &Client, kubeconfig: &str) -> Result<(), kube::Error> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE},
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": BOOTSTRAP_SECRET, "namespace": AGENT_NAMESPACE},
        "data": {KEY: ByteString(kubeconfig.as_bytes().to_vec())},
    });
    for object in [namespace, secret] {
        ensure(member, &object).await?;
    }
    Ok(())
}

/// The kubeconfig with which an agent asks to join, as it was kept on the member.
pub async fn kept_bootstrap(member: &Client) -> Result<Option<String>, kube::Error> {
    let secret = secrets(member).get_opt(BOOTSTRAP_SECRET).await?;
    Ok(secret.and_then(|secret| text_of(&secret)))
}

/// Waits until another kubeconfig is kept on the member than the known one. One that cannot be
/// understood does not count, and neither does that it is gone: that is how a cluster is detached.
pub async fn replaced_bootstrap(member: &Client, known: &str) {
    let path = Secret::url_path(&(), Some(AGENT_NAMESPACE));
    let selection = Selection::fields(&format!("metadata.name={BOOTSTRAP_SECRET}"));
    let replaced = Notify::new();
    let mut handle = |event: FeedEvent<'_>| {
        if let FeedEvent::Listed(text) | FeedEvent::Applied(text) = event
            && is_other(text, known)
        {
            replaced.notify_one();
        }
    };
    tokio::select! {
        () = follow(member, &path, &selection, &mut handle) => {}
        () = replaced.notified() => {}
    }
}

/// Whether the text of a Secret has a kubeconfig, and not the known one.
fn is_other(secret: &str, known: &str) -> bool {
    let secret: Option<Secret> = serde_json::from_str(secret).ok();
    let Some(text) = secret.as_ref().and_then(text_of).filter(|it| it != known) else {
        return false;
    };
    let kubeconfig = parse_kubeconfig(&text);
    if let Err(error) = &kubeconfig {
        tracing::warn!(%error, "the new kubeconfig in the Secret {BOOTSTRAP_SECRET} cannot be understood");
    }
    kubeconfig.is_ok()
}

fn secrets(member: &Client) -> Api<Secret> {
    Api::namespaced(member.clone(), AGENT_NAMESPACE)
}

fn text_of(secret: &Secret) -> Option<String> {
    let ByteString(bytes) = secret.data.as_ref()?.get(KEY)?;
    String::from_utf8(bytes.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: Option<&str>, expected: bool) {
        let data = text.map(|text| json!({KEY: ByteString(text.as_bytes().to_vec())}));
        let secret = json!({"metadata": {"name": BOOTSTRAP_SECRET}, "data": data});
        assert_eq!(is_other(&secret.to_string(), "known"), expected, "{text:?}");
    }

    #[test]
    fn only_another_kubeconfig_counts() {
        check(None, false);
        check(Some("known"), false);
        check(Some("clusters: 7"), false);
        check(Some("clusters: []"), true);
    }
}
