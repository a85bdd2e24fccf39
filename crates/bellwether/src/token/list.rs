//! `bellwether token list`

use std::collections::BTreeMap;

use bellwether_api::cluster::names::registration::{TOKEN_NAMESPACE, TOKEN_SECRET_PREFIX};
use bellwether_api::cluster::names::{annotation, label};
use bellwether_apiserver::Clock;
use bellwether_kinds::human;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::connect::ConnectArgs;
use crate::print::{PrintArgs, line};

/// List the tokens with which clusters can join.
///
/// The tokens themselves are not shown: a hub stores only their hashes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bellwether token list\n  bellwether token list -o json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What is shown of a token.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    id: String,
    cluster: Option<String>,
    set: Option<String>,
    labels: BTreeMap<String, String>,
    expires: Option<Timestamp>,
}

pub(super) async fn run(arguments: ListArgs) -> anyhow::Result<()> {
    let client = arguments.connect.open(None).await?.client;
    let secrets: Api<Secret> = Api::namespaced(client, TOKEN_NAMESPACE);
    let tokens = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
    let secrets = secrets.list(&tokens).await?.items;
    let tokens: Vec<Token> = secrets.iter().filter_map(Token::read).collect();
    let now = Clock::system().now();
    let mut lines = vec![line(["ID", "CLUSTER", "SET", "LABELS", "EXPIRES"])];
    lines.extend(tokens.iter().map(|token| token.row(now)));
    let items: Vec<Value> = tokens.iter().map(Token::document).collect();
    arguments.print.print(&json!({"items": items}), &lines)
}

impl Token {
    fn read(secret: &Secret) -> Option<Self> {
        let name = secret.name_any();
        let id = name.strip_prefix(TOKEN_SECRET_PREFIX)?;
        let annotations = secret.annotations();
        let labels = annotations.get(annotation::TOKEN_LABELS);
        let expiration = secret.data.as_ref().and_then(|data| data.get("expiration"));
        let expiration = expiration.and_then(|text| std::str::from_utf8(&text.0).ok());
        Some(Self {
            id: id.to_owned(),
            cluster: secret.labels().get(label::CLUSTER_NAME).cloned(),
            set: annotations.get(annotation::TOKEN_CLUSTER_SET).cloned(),
            labels: labels
                .and_then(|labels| serde_json::from_str(labels).ok())
                .unwrap_or_default(),
            expires: expiration.and_then(|text| text.parse().ok()),
        })
    }

    fn row(&self, now: Timestamp) -> Vec<String> {
        let or = |text: &Option<String>, otherwise: &str| {
            text.clone().unwrap_or_else(|| otherwise.to_owned())
        };
        let labels: Vec<String> = self
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let expires = match self.expires {
            None => "never".to_owned(),
            Some(at) if at <= now => "expired".to_owned(),
            Some(at) => format!("in {}", human(at.duration_since(now).as_secs())),
        };
        vec![
            self.id.clone(),
            or(&self.cluster, "any"),
            or(&self.set, "-"),
            if labels.is_empty() {
                "-".to_owned()
            } else {
                labels.join(",")
            },
            expires,
        ]
    }

    fn document(&self) -> Value {
        json!({
            "id": self.id, "clusterName": self.cluster, "set": self.set, "labels": self.labels,
            "expires": self.expires,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_without_its_secret() {
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": "bootstrap-token-abcdef",
                "labels": {"open-cluster-management.io/cluster-name": "edge1"},
                "annotations": {"cluster.bellwether.dev/token-labels": "{\"region\":\"emea\"}"}},
            "data": {
                "expiration": k8s_openapi::ByteString(b"2026-01-01T01:00:00Z".to_vec()),
                "token-secret": k8s_openapi::ByteString(b"hidden".to_vec()),
            },
        }))
        .unwrap();
        let token = Token::read(&secret).unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let row = ["abcdef", "edge1", "-", "region=emea", "in 60m"];
        assert_eq!(token.row(now), row);
        let later = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(token.row(later)[4], "expired");
        assert!(!token.document().to_string().contains("hidden"));
    }
}
