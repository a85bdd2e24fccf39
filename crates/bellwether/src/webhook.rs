//! `bellwether hub --webhook-listen`: admission on a hub that is not embedded.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use bellwether_controllers::registry;
use bellwether_runtime::{Clock, MetricsRegistry};
use bellwether_webhook::{Keeper, Location, Options, WebhookServer};
use clap::Args;
use kube::Client;
use tokio::net::TcpListener;

use crate::cli::say;

/// How the API server of the hub asks this process about writes.
#[derive(Debug, Clone, Args)]
pub(crate) struct WebhookArgs {
    /// Answer the hub's API server at this address: who may accept clusters, move them between sets, name
    /// an executor. Certificates and webhook configurations are made and kept in order.
    #[arg(long = "webhook-listen", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The Service by which the API server reaches --webhook-listen.
    #[arg(
        long = "webhook-service",
        value_name = "NAMESPACE/NAME[:PORT]",
        requires = "listen",
        conflicts_with = "url",
        value_parser = Location::parse_service
    )]
    service: Option<Location>,
    /// The address by which the API server reaches --webhook-listen; that address itself if neither this
    /// nor a Service is given.
    #[arg(
        long = "webhook-url",
        value_name = "URL",
        requires = "listen",
        value_parser = Location::parse_url
    )]
    url: Option<Location>,
    /// The Secret that keeps the certificate authority of the webhooks.
    #[arg(
        long = "webhook-secret",
        value_name = "NAMESPACE/NAME",
        default_value = "kube-system/bellwether-webhook",
        value_parser = secret
    )]
    secret: (String, String),
    /// Answer only callers with a certificate that one of the authorities in this file has signed.
    #[arg(long = "webhook-client-ca", value_name = "FILE", requires = "listen")]
    client_ca: Option<PathBuf>,
}

fn secret(text: &str) -> Result<(String, String), String> {
    let is_name = |name: &str| bellwether_json::name::dns_subdomain_problems(name).is_empty();
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(format!(
            "{text:?} is not a namespace and a name, such as kube-system/bellwether-webhook"
        )),
    }
}

/// A webhook server that is about to serve.
pub(crate) struct Webhooks {
    server: WebhookServer,
    listener: TcpListener,
    pub(crate) keeper: Keeper,
}

impl WebhookArgs {
    /// Binds the address, if one was given.
    pub(crate) async fn bind(
        &self,
        client: &Client,
        registry: &MetricsRegistry,
    ) -> anyhow::Result<Option<Webhooks>> {
        let Some(address) = self.listen else {
            return Ok(None);
        };
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("--webhook-listen: cannot listen at {address}"))?;
        let bound = listener.local_addr()?;
        let location = match self.service.as_ref().or(self.url.as_ref()) {
            Some(location) => location.clone(),
            None if bound.ip().is_unspecified() => bail!(
                "--webhook-listen {address} does not say how the API server reaches it: add \
                 --webhook-service or --webhook-url"
            ),
            None => Location::Url(format!("https://{bound}")),
        };
        let client_authorities =
            match &self.client_ca {
                Some(path) => Some(std::fs::read_to_string(path).with_context(|| {
                    format!("--webhook-client-ca: cannot read {}", path.display())
                })?),
                None => None,
            };
        let options = Options {
            location,
            secret: self.secret.clone(),
            client_authorities,
            admissions: registry::admission(),
        };
        let clock = Clock::system();
        let server = WebhookServer::new(client.clone(), clock.clone(), options, registry);
        // What is wrong with the authorities of callers shows before anything else happens.
        server.tls_config()?;
        say(&format!("webhooks are at https://{bound}"));
        Ok(Some(Webhooks {
            keeper: Keeper::new(&server, clock),
            server,
            listener,
        }))
    }
}

impl Webhooks {
    /// Serves until it fails, and follows the authority that the leader keeps.
    pub(crate) async fn serve(self, client: Client) -> anyhow::Result<()> {
        tokio::select! {
            served = self.server.serve(self.listener) => Ok(served?),
            () = self.keeper.follow(&client) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_namespace_and_a_name() {
        let expected = ("fleet".to_owned(), "webhook.v1".to_owned());
        assert_eq!(secret("fleet/webhook.v1"), Ok(expected));
        for text in ["fleet", "/a", "a/", "A/b", "a/b/c"] {
            assert!(secret(text).is_err(), "{text}");
        }
    }
}
