//! From a connection and its headers to an identity.

use http::HeaderMap;

use crate::access::{Identity, api_audiences, authenticate_token};
use crate::cluster::Cluster;
use crate::impersonate::impersonate;
use crate::status::ApiError;

/// What is known of a client before its request is read.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Whom its certificate names, or whom this process acts for.
    pub identity: Option<Identity>,
    /// The only cluster for which that holds; `None` for a client without a certificate.
    pub only_cluster: Option<String>,
    /// When the certificate expires; `None` for those who have none.
    pub expires: Option<jiff::Timestamp>,
    /// Where it comes from; `None` for a client in this process.
    pub address: Option<std::net::IpAddr>,
    /// Whether it is in this process, and its paths are within that cluster.
    pub in_process: bool,
}

/// Who a request is from.
#[derive(Debug, Clone)]
pub(crate) struct Authenticated {
    /// Whose rights count.
    pub identity: Identity,
    /// Who acts as that, if it is somebody else.
    pub impersonator: Option<Identity>,
}

impl Authenticated {
    /// Who really sent it.
    pub(crate) fn sender(&self) -> &Identity {
        self.impersonator.as_ref().unwrap_or(&self.identity)
    }
}

/// Who sends a request to `cluster`: proved by a certificate or a token, or nobody in particular.
pub(crate) fn authenticate(
    cluster: &Cluster,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Authenticated, ApiError> {
    let identity = certified(cluster, caller);
    let identity = match (identity, bearer_token(headers)) {
        (Some(identity), _) => identity,
        (None, Some(token)) => {
            let proof = authenticate_token(cluster, token, &api_audiences());
            proof.map_err(|_| ApiError::unauthorized())?.identity
        }
        // A certificate that proves nothing here is a mistake, and not an anonymous visit.
        (None, None) if caller.identity.is_some() => return Err(ApiError::unauthorized()),
        (None, None) => Identity::anonymous(),
    };
    let impersonated = impersonate(cluster, &identity, headers)?;
    Ok(match impersonated {
        Some(other) => Authenticated {
            identity: other,
            impersonator: Some(identity),
        },
        None => Authenticated {
            identity,
            impersonator: None,
        },
    })
}

/// Whom the certificate names, if it is good for this cluster at this moment.
fn certified(cluster: &Cluster, caller: &Caller) -> Option<Identity> {
    let here = caller.only_cluster.as_deref() == Some(cluster.name());
    // Connections may outlive the certificates with which they began.
    let valid = caller
        .expires
        .is_none_or(|expires| cluster.clock().now() <= expires);
    caller.identity.clone().filter(|_| here && valid)
}

/// The token of an `Authorization: Bearer …` header. As in Kubernetes, another scheme counts as no
/// header at all.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
