//! `bellwether token create`

use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::cluster::names::registration::TOKEN_NAMESPACE;
use bellwether_api::cluster::names::{annotation, label, registration};
use bellwether_apiserver::{BootstrapToken, Clock};
use bellwether_json::duration::GoDuration;
use bellwether_json::time::format_time;
use bellwether_json::yaml::to_yaml;
use clap::Args;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Config};
use serde_json::{Value, json};

use crate::cli::say;
use crate::cluster::{check_cluster_name, read_labels};
use crate::connect::ConnectArgs;
use crate::data::write_private;
use crate::print::PrintArgs;

/// Create a token for a cluster to request to join with.
///
/// A token for one cluster admits that cluster once, without manual approval, and no other cluster.
/// A token without --cluster-name allows any cluster to send a request, which has to be accepted
/// manually. --set and --labels define the set and the labels of the new cluster.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether token create --cluster-name edge1 --write edge1.bootstrap.yaml\n  bellwether token create --cluster-name edge1 --set prod --labels region=emea --write edge1.bootstrap.yaml\n  bellwether token create --ttl 24h -o json"
)]
pub(super) struct CreateArgs {
    /// The only cluster that may use the token.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// ClusterSet of the new cluster; overrides the set that the cluster requests.
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// Labels of the new cluster, such as region=emea; labels that the cluster requests are ignored.
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    labels: Option<Vec<String>>,
    /// Lifetime of the token, such as 1h or 30m.
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    ttl: String,
    /// Write a kubeconfig with the token and the hub's certificate to this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// The hub's address as members reach it, if not as you do.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    print: PrintArgs,
}

pub(super) async fn run(arguments: CreateArgs) -> anyhow::Result<()> {
    let ttl: GoDuration = arguments.ttl.parse().with_context(|| {
        format!(
            "--ttl: {:?} is not a duration, such as 1h or 30m",
            arguments.ttl
        )
    })?;
    let labels = arguments.labels.as_deref().map(read_labels).transpose()?;
    if let Some(cluster) = &arguments.cluster_name {
        check_cluster_name(cluster)?;
    }
    let connection = arguments.connect.open(None).await?;
    let config = arguments.connect.config().await?;
    let token = BootstrapToken::generate()?;
    let expires = Clock::system().now().checked_add(ttl.to_signed())?;
    let cluster = arguments.cluster_name.as_deref();
    let version = connection.client.apiserver_version().await;
    let version = version.context("the hub does not answer")?;
    let mut secret = token.to_secret(
        &format!("lets {} ask to join", cluster.unwrap_or("clusters")),
        &[registration::BOOTSTRAP_GROUP],
        Some(expires),
    );
    if !version.git_version.contains("+bellwether") {
        anyhow::ensure!(
            arguments.set.is_none() && labels.is_none(),
            "--set and --labels need a hub that checks what tokens are used for, which {} does not",
            version.git_version
        );
        // Kubernetes itself knows tokens in clear only.
        let text = token.reveal();
        let (_, clear) = text.split_once('.').unwrap_or_default();
        secret["data"]["token-secret"] = STANDARD.encode(clear).into();
    }
    if let Some(cluster) = cluster {
        secret["metadata"]["labels"] = json!({label::CLUSTER_NAME: cluster});
    }
    let annotations = &mut secret["metadata"]["annotations"];
    if let Some(set) = &arguments.set {
        annotations[annotation::TOKEN_CLUSTER_SET] = json!(set);
    }
    if let Some(labels) = &labels {
        annotations[annotation::TOKEN_LABELS] = json!(serde_json::to_string(labels)?);
    }
    let secret: Secret = serde_json::from_value(secret)?;
    let secrets: Api<Secret> = Api::namespaced(connection.client, TOKEN_NAMESPACE);
    let created = secrets.create(&PostParams::default(), &secret).await;
    created.context("cannot create the token")?;
    let kubeconfig = kubeconfig(&config, arguments.server.as_deref(), &token.reveal());
    if let Some(path) = &arguments.write {
        write_private(path, &to_yaml(&kubeconfig))?;
    }
    if !arguments.print.is_table() {
        let document = json!({
            "token": token.reveal(), "clusterName": cluster, "set": arguments.set, "labels": labels,
            "expires": expires, "kubeconfig": kubeconfig,
        });
        return arguments.print.print(&document, &[]);
    }
    let token = token.reveal();
    say(&format!("{token}   good until {}", format_time(expires)));
    say_what_next(&arguments, &kubeconfig, &token);
    Ok(())
}

fn say_what_next(arguments: &CreateArgs, kubeconfig: &Value, token: &str) {
    let cluster = arguments.cluster_name.as_deref();
    let name = cluster.unwrap_or("NAME");
    let how = if let Some(path) = &arguments.write {
        format!("--hub-kubeconfig {}", path.display())
    } else {
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str();
        let server = server.unwrap_or_default();
        format!("--hub-apiserver {server} --hub-token {token} --ca-file CA")
    };
    say(&format!(
        "\nNext, with the kubeconfig of the new member:\n  bellwether cluster join --cluster-name {name} {how} --kubeconfig MEMBER"
    ));
    if arguments.write.is_none() {
        say(
            "where CA is a file with the certificate of the hub's authority; --write FILE makes a kubeconfig that has all of it",
        );
    }
    if cluster.is_none() {
        say(&format!(
            "and then, here:\n  bellwether cluster accept {name}"
        ));
    }
}

/// A kubeconfig that lets its holder ask to join.
fn kubeconfig(config: &Config, server: Option<&str>, token: &str) -> Value {
    let server = server.map_or_else(|| config.cluster_url.to_string(), str::to_owned);
    let mut cluster = json!({"server": server.trim_end_matches('/')});
    if config.accept_invalid_certs {
        cluster["insecure-skip-tls-verify"] = json!(true);
    }
    if let Some(certificates) = &config.root_cert {
        let pem: String = certificates.iter().map(|der| pem(der)).collect();
        cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bootstrap",
        "clusters": [{"name": "hub", "cluster": cluster}],
        "users": [{"name": "bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "hub", "user": "bootstrap"}}],
    })
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = vec!["-----BEGIN CERTIFICATE-----"];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        lines.push(line);
        rest = more;
    }
    lines.push("-----END CERTIFICATE-----\n");
    lines.join("\n")
}
