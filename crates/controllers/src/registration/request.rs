//! Whether a certificate request is one of a cluster's agent, and what it asks for.
//!
//! Everything is compared in full: a cluster whose name is the beginning of another's gets nothing
//! by that.

use bellwether_api::cluster::agent_identity;
use bellwether_api::cluster::names::label::CLUSTER_NAME;
use bellwether_api::cluster::names::registration::{CLUSTERS_GROUP, SIGNER, USER_PREFIX};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer as _;

/// A request as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRequest {
    /// The cluster that it is for.
    pub cluster: String,
    /// The user that the certificate is to name.
    pub user: String,
}

/// Reads a request; the error says what is wrong with it.
pub fn read(request: &CertificateSigningRequest) -> Result<AgentRequest, String> {
    let cluster = request.labels().get(CLUSTER_NAME).cloned();
    let cluster = cluster.filter(|cluster| !cluster.is_empty());
    let cluster = cluster.ok_or_else(|| format!("it has no label {CLUSTER_NAME}"))?;
    if request.spec.signer_name != SIGNER {
        return Err(format!("its signer is {}", request.spec.signer_name));
    }
    let (_, block) = parse_x509_pem(&request.spec.request.0).map_err(|_| "it is not in PEM")?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err("it is not a certificate request".to_owned());
    }
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|_| "it cannot be read".to_owned())?;
    let subject = &parsed.certification_request_info.subject;
    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        value
            .as_str()
            .map(str::to_owned)
            .map_err(|_| "its subject cannot be read".to_owned())
    };
    let groups: Vec<String> = subject
        .iter_organization()
        .map(text)
        .collect::<Result<_, _>>()?;
    let own: Vec<&String> = groups
        .iter()
        .filter(|group| *group != CLUSTERS_GROUP)
        .collect();
    if own != [&agent_identity::group(&cluster)] {
        return Err(format!("it asks for the groups {}", groups.join(", ")));
    }
    let users: Vec<String> = subject
        .iter_common_name()
        .map(text)
        .collect::<Result<_, _>>()?;
    let [user] = users.as_slice() else {
        return Err("it does not name one user".to_owned());
    };
    let parts: Vec<&str> = user
        .strip_prefix(USER_PREFIX)
        .map(|rest| rest.split(':').collect())
        .unwrap_or_default();
    match parts.as_slice() {
        [first, agent] if *first == cluster && !agent.is_empty() => Ok(AgentRequest {
            cluster,
            user: user.clone(),
        }),
        _ => Err(format!("it asks for the user {user}")),
    }
}

/// Whether nobody has decided about a request.
pub fn is_pending(request: &CertificateSigningRequest) -> bool {
    let conditions = request
        .status
        .as_ref()
        .and_then(|it| it.conditions.as_ref());
    conditions.is_none_or(Vec::is_empty)
}
