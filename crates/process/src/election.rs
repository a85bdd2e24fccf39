//! Leadership of `hub` and `agent`: of several processes with one task, one acts.

use std::time::Duration;

use anyhow::Context as _;
use bellwether_json::duration::GoDuration;
use bellwether_runtime::{Candidate, Clock, Fence, LeaseOptions};
use clap::Args;
use kube::Client;

use crate::diagnostics::Health;
use crate::output::say;

/// Flags about leadership, as Kubernetes' own controllers have them.
#[derive(Debug, Clone, Args)]
pub struct ElectionArgs {
    /// Take a lease before acting, so that of several processes only one acts.
    #[arg(
        long = "leader-elect",
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    enabled: bool,
    /// Namespace of the lease.
    #[arg(
        long = "leader-elect-resource-namespace",
        value_name = "NAMESPACE",
        default_value = "kube-system"
    )]
    namespace: String,
    /// How long a leader may be silent before another takes over, such as 8s or 15s.
    #[arg(long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "8s", value_parser = lease_duration)]
    duration: Duration,
    /// Name of this process in the lease; a random part is added.
    #[arg(
        long = "leader-elect-identity",
        value_name = "NAME",
        env = "HOSTNAME",
        hide_env = true
    )]
    identity: Option<String>,
}

/// The shortest lease: renewals have to fit in, and the API counts whole seconds.
const SHORTEST: Duration = Duration::from_secs(2);

/// Why a process is not ready that neither leads nor knows that another one does.
const WAITING_FOR_LEASE: &str = "waiting for the lease";

fn lease_duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<GoDuration> = text.parse().ok();
    parsed
        .and_then(|parsed| Duration::try_from(parsed.to_signed()).ok())
        .filter(|duration| *duration >= SHORTEST)
        .ok_or_else(|| format!("{text:?} is not a duration of at least 2s, such as 8s"))
}

/// What a process does while it leads.
#[expect(
    async_fn_in_trait,
    reason = "the terms of this program are polled where they are made"
)]
pub trait Term {
    /// What can be made ready before leading, such as caches.
    type Prepared;

    /// Prepares to lead. `fence` guards clients: their writes pass only while this process leads.
    async fn prepare(&self, fence: Option<&Fence>) -> anyhow::Result<Self::Prepared>;

    /// Acts until it fails; dropped when leadership is lost.
    async fn lead(&self, prepared: Self::Prepared) -> anyhow::Result<()>;
}

impl ElectionArgs {
    /// Acts whenever this process leads, until `stop` ends. The lease of that name is in the cluster
    /// of the client.
    pub async fn run(
        &self,
        client: &Client,
        name: &str,
        health: &Health,
        term: &impl Term,
        stop: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(stop);
        if !self.enabled {
            let lead = async { term.lead(term.prepare(None).await?).await };
            return tokio::select! {
                ended = lead => ended,
                stopped = &mut stop => stopped,
            };
        }
        let mut candidate = Candidate::new(client, &Clock::system(), self.options(name));
        let fence = candidate.fence();
        loop {
            let taking = async {
                let prepared = term.prepare(Some(&fence)).await?;
                health.set_unready(WAITING_FOR_LEASE);
                let on_wait = |holder: Option<&str>| match holder {
                    Some(holder) => {
                        health.set_ready("standing by");
                        say(&format!("standing by: {holder} leads"));
                    }
                    None => health.set_unready(WAITING_FOR_LEASE),
                };
                let leading = candidate.lead(on_wait).await?;
                anyhow::Ok((prepared, leading))
            };
            let (prepared, mut leading) = tokio::select! {
                taken = taking => taken?,
                stopped = &mut stop => return stopped,
            };
            let stopped = tokio::select! {
                ended = term.lead(prepared) => Some(ended),
                stopped = &mut stop => Some(stopped),
                why = leading.keep() => {
                    health.set_unready("no longer leading");
                    say(&format!("no longer leading: {why}"));
                    None
                }
            };
            if let Some(stopped) = stopped {
                health.set_unready("ending");
                leading.release().await;
                return stopped;
            }
        }
    }

    fn options(&self, name: &str) -> LeaseOptions {
        let process = self.identity.as_deref().unwrap_or("bellwether");
        LeaseOptions {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            identity: format!("{process}_{}", uuid::Uuid::new_v4()),
            duration: self.duration,
        }
    }
}

/// A client whose failed requests are not repeated by itself: a repetition could come after the lease.
pub fn client_without_retries(mut config: kube::Config) -> anyhow::Result<Client> {
    config.default_retry = false;
    Client::try_from(config).context("cannot make a client")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_last_for_some_seconds() {
        assert_eq!(lease_duration("15s"), Ok(Duration::from_secs(15)));
        for text in ["1s", "-8s", "soon"] {
            assert!(lease_duration(text).is_err(), "{text}");
        }
    }
}
