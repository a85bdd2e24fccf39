//! From a connection and its headers to an identity.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::access::{Attributes, Identity, account_groups, api_audiences, authenticate_token};
use crate::cluster::Cluster;
use crate::status::{ApiError, Subject};

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
pub(crate) struct Known {
    /// Whose rights count.
    pub identity: Identity,
    /// Who acts as that, if it is somebody else.
    pub impersonator: Option<Identity>,
}

impl Known {
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
) -> Result<Known, ApiError> {
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
        Some(other) => Known {
            identity: other,
            impersonator: Some(identity),
        },
        None => Known {
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
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Somebody who may act as somebody else says so in headers.
fn impersonate(
    cluster: &Cluster,
    identity: &Identity,
    headers: &HeaderMap,
) -> Result<Option<Identity>, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    let extra = extra(headers);
    let Some(user) = text("impersonate-user").filter(|user| !user.is_empty()) else {
        let wanted = requested(&groups, text("impersonate-uid"), &extra);
        if wanted.is_empty() {
            return Ok(None);
        }
        return Err(ApiError::bad_request(format!(
            "requested [{}] without impersonating a user",
            wanted.join(" ")
        )));
    };
    let uid = text("impersonate-uid");
    let service_account = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'));
    let who = match service_account {
        Some((namespace, name)) => ("serviceaccounts", namespace, name),
        None => ("users", "", user),
    };
    let mut wanted = vec![("", who.0, "", who.1, who.2)];
    wanted.extend(
        groups
            .iter()
            .map(|group| ("", "groups", "", "", group.as_str())),
    );
    wanted.extend(
        uid.iter()
            .map(|uid| ("authentication.k8s.io", "uids", "", "", *uid)),
    );
    for (key, values) in &extra {
        wanted.extend(values.iter().map(|value| {
            (
                "authentication.k8s.io",
                "userextras",
                key.as_str(),
                "",
                value.as_str(),
            )
        }));
    }
    for (group, resource, subresource, namespace, name) in wanted {
        let attributes = Attributes {
            verb: "impersonate",
            group,
            resource,
            subresource,
            name,
            namespace,
            path: "",
        };
        if !cluster.authorizer().allows(identity, &attributes) {
            let subject = Subject { group, resource };
            return Err(ApiError::forbidden(
                subject,
                name,
                &attributes.refusal(&identity.user),
            ));
        }
    }
    let mut groups = groups;
    if let (Some((namespace, _)), true) = (service_account, groups.is_empty()) {
        groups = account_groups(namespace).into();
    }
    let mut impersonated = if user == "system:anonymous" {
        Identity::anonymous()
    } else {
        Identity::authenticated(user, groups)
    };
    uid.unwrap_or_default().clone_into(&mut impersonated.uid);
    impersonated.extra = extra;
    Ok(Some(impersonated))
}

/// What is asked for besides a user, as Go prints references to objects.
fn requested(
    groups: &[String],
    uid: Option<&str>,
    extra: &BTreeMap<String, Vec<String>>,
) -> Vec<String> {
    let groups = groups.iter().map(|group| format!("{{Group  {group}    }}"));
    let extra = extra.iter().flat_map(|(key, values)| {
        let values = values.iter();
        values.map(move |value| format!("{{UserExtra  {value}  authentication.k8s.io/v1  {key}}}"))
    });
    let uid = uid.map(|uid| format!("{{UID  {uid}  authentication.k8s.io/v1  }}"));
    groups.chain(extra).chain(uid).collect()
}

fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            let key = crate::request::percent_decode(key, false).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    extra
}
