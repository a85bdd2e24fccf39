//! The kubeconfig that lets people and programs in: one context per cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_apiserver::{Authority, Credentials, HUB, Identity};
use serde_json::{Value, json};

/// Who the written kubeconfig is for.
const ADMINISTRATOR: &str = "bellwether-admin";

/// A kubeconfig with a context for each cluster, named after it; the hub's is current.
pub(crate) fn kubeconfig(
    server: &str,
    authority: &Authority,
    clusters: &[String],
    now: jiff::Timestamp,
) -> anyhow::Result<String> {
    let certificate = STANDARD.encode(&authority.credentials().certificate);
    let mut config = json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": HUB,
        "clusters": [], "contexts": [], "users": [],
    });
    for name in clusters {
        let address = if name == HUB {
            server.to_owned()
        } else {
            format!("{server}/clusters/{name}")
        };
        let identity = Identity::administrator(ADMINISTRATOR);
        let user = authority.issue_client(&identity, name, now)?;
        push(
            &mut config["clusters"],
            json!({
                "name": name, "cluster": {"server": address, "certificate-authority-data": certificate},
            }),
        );
        push(
            &mut config["users"],
            json!({"name": name, "user": user_entry(&user)}),
        );
        push(
            &mut config["contexts"],
            json!({
                "name": name, "context": {"cluster": name, "user": name},
            }),
        );
    }
    Ok(bellwether_json::yaml::to_yaml(&config))
}

fn user_entry(user: &Credentials) -> Value {
    json!({
        "client-certificate-data": STANDARD.encode(&user.certificate),
        "client-key-data": STANDARD.encode(&user.key),
    })
}

fn push(list: &mut Value, entry: Value) {
    if let Value::Array(entries) = list {
        entries.push(entry);
    }
}
