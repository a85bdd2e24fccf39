//! Showing that one is alive: the lease that the hub made is renewed.

use bellwether_api::cluster::names::object;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{Api, Client};

use super::AgentError;
use crate::hub::created_by;

/// The lease of a cluster, and what was last seen of it.
pub(super) struct Heartbeat {
    leases: Api<Lease>,
    last: Option<Lease>,
}

impl Heartbeat {
    pub(super) fn new(hub: &Client, cluster: &str) -> Self {
        Self {
            leases: Api::namespaced(hub.clone(), cluster),
            last: None,
        }
    }

    /// Renews the lease; tells whether there is one. Agents may update leases, but not patch them.
    pub(super) async fn beat(&mut self, now: Timestamp) -> Result<bool, AgentError> {
        let lease = match self.last.take() {
            Some(lease) => Some(lease),
            None => match self.leases.get_opt(object::LEASE).await {
                Ok(lease) => lease,
                // The hub gives the right to look together with the lease.
                Err(kube::Error::Api(status)) if status.code == 403 => None,
                Err(error) => return Err(AgentError::kube("read the lease")(error)),
            },
        };
        let Some(mut lease) = lease else {
            return Ok(false);
        };
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(MicroTime(now));
        match self
            .leases
            .replace(object::LEASE, &created_by(), &lease)
            .await
        {
            Ok(renewed) => {
                self.last = Some(renewed);
                Ok(true)
            }
            // Somebody else wrote or removed it: it is read anew.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(false),
            Err(error) => Err(AgentError::kube("renew the lease")(error)),
        }
    }
}
