//! Certificate signing requests: approved ones are signed, old ones are removed.
//!
//! What is signed is decided by [`decide`], from the request and nothing else.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::access::MASTERS;
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::delete::delete_object;
use crate::housekeeping::rewrite::rewrite;
use crate::params::DeleteOptions;
use crate::pki::CertificateRequest;
use crate::status::ApiError;

const SIGNER: &str = "csr-signing-controller";
const CLEANER: &str = "csr-cleaner-controller";
/// Where the requests are.
pub(super) const PREFIX: &str = "certificates.k8s.io/certificatesigningrequests/";

/// How long requests are kept, as in Kubernetes: after a decision, and without one.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// The longest life of a certificate, and what it is without a wish.
const LONGEST_SECONDS: i64 = 365 * 86_400;
const SHORTEST_SECONDS: i64 = 600;
/// From here on the end counts from the backdated beginning.
const LONG_SECONDS: i64 = 8 * 3_600;
const BACKDATE_SECONDS: i64 = 300;

/// What to do about a request.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is pending, or done, or somebody else's to sign.
    Nothing,
    /// It is to be signed, for so many seconds.
    Sign(Box<CertificateRequest>, i64),
    /// It was approved, but cannot be signed.
    Fail(String),
}

/// When a request is old enough to go.
pub(super) fn deadline(request: &Value) -> Option<Timestamp> {
    let created = time_of(&request["metadata"]["creationTimestamp"]);
    let issued = is_issued(request);
    let decided =
        |kind: &str| condition(request, kind).map(|found| time_of(&found["lastUpdateTime"]));
    let after = |at: Option<Timestamp>, kept: SignedDuration| at?.saturating_add(kept).ok();
    let mut deadlines = Vec::new();
    if request["status"]["conditions"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        deadlines.push(after(created, PENDING));
    }
    for kind in ["Denied", "Failed"] {
        deadlines.extend(decided(kind).map(|at| after(at, DECIDED)));
    }
    let kept = if issued { DECIDED } else { PENDING };
    deadlines.extend(decided("Approved").map(|at| after(at, kept)));
    deadlines.into_iter().flatten().min()
}

fn time_of(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn condition<'a>(request: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = request["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|found| found["type"] == kind && found["status"] == "True")
}

fn is_issued(request: &Value) -> bool {
    request["status"]["certificate"]
        .as_str()
        .is_some_and(|certificate| !certificate.is_empty())
}

/// Does what has to be done about a request.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster
        .keyspace()
        .get(key)
        .filter(|entry| !entry.value.is_deleting())
    else {
        return;
    };
    let resources = cluster.resources();
    let found = resources.find("certificates.k8s.io", "v1", "certificatesigningrequests");
    let Some(resource) = found else { return };
    let request = entry.value.to_untyped_value();
    let result = if deadline(&request).is_some_and(|at| at <= cluster.clock().now()) {
        let cx = RequestContext::internal(cluster, resource, key, CLEANER);
        let options = DeleteOptions {
            uid: Some(entry.value.uid().to_owned()),
            ..DeleteOptions::default()
        };
        delete_object(&cx, &options).await.map(drop)
    } else {
        let cx = RequestContext::internal(cluster, resource, key, SIGNER);
        sign(&cx, &request).await
    };
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), key, %error, "cannot look after a certificate signing request");
    }
}

async fn sign(cx: &RequestContext, request: &Value) -> Result<(), ApiError> {
    let Some(authority) = &cx.cluster.issuers().authority else {
        return Ok(());
    };
    match decide(request) {
        Step::Nothing => Ok(()),
        Step::Fail(why) => rewrite(cx, |request| fail(request, &why, cx.now)).await,
        Step::Sign(parsed, seconds) => {
            let certificate = authority
                .sign_request(&parsed, cx.cluster.name(), seconds, cx.now)
                .map_err(|error| ApiError::internal(error.to_string()))?;
            let certificate = BASE64.encode(certificate);
            rewrite(cx, |live| {
                // Decided again, because the request may have been denied or replaced meanwhile.
                if live["spec"] == request["spec"] && matches!(decide(live), Step::Sign(..)) {
                    live["status"]["certificate"] = certificate.as_str().into();
                }
            })
            .await
        }
    }
}

fn fail(request: &mut Value, why: &str, now: Timestamp) {
    let now = bellwether_json::time::format_time(now);
    let failed = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
        "lastUpdateTime": now, "lastTransitionTime": now,
    });
    if let Some(conditions) = request["status"]["conditions"].as_array_mut() {
        conditions.push(failed);
    }
}

/// Whether a request is ours to sign, and how.
fn decide(request: &Value) -> Step {
    let spec = &request["spec"];
    let open = condition(request, "Approved").is_some()
        && condition(request, "Denied").is_none()
        && condition(request, "Failed").is_none()
        && !is_issued(request);
    let check = match spec["signerName"].as_str().unwrap_or_default() {
        "kubernetes.io/kube-apiserver-client" => check_client,
        "kubernetes.io/kube-apiserver-client-kubelet" => check_kubelet_client,
        _ => return Step::Nothing,
    };
    if !open {
        return Step::Nothing;
    }
    let pem = BASE64
        .decode(spec["request"].as_str().unwrap_or_default())
        .unwrap_or_default();
    let usages = spec["usages"].as_array().into_iter().flatten();
    let usages: Vec<&str> = usages.filter_map(Value::as_str).collect();
    let checked =
        CertificateRequest::parse(&pem).and_then(|parsed| check(&parsed, &usages).map(|()| parsed));
    match checked {
        Ok(parsed) => Step::Sign(
            Box::new(parsed),
            seconds(spec["expirationSeconds"].as_i64()),
        ),
        Err(why) => Step::Fail(why),
    }
}

fn seconds(wanted: Option<i64>) -> i64 {
    let seconds = wanted.map_or(LONGEST_SECONDS, |wanted| {
        wanted.clamp(SHORTEST_SECONDS, LONGEST_SECONDS)
    });
    if seconds < LONG_SECONDS {
        seconds
    } else {
        seconds - BACKDATE_SECONDS
    }
}

fn check_client(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    for usage in usages {
        if !matches!(
            *usage,
            "client auth" | "digital signature" | "key encipherment"
        ) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".into());
    }
    check_subject(request)
}

/// The last line of defence: admission refuses such requests already.
fn check_subject(request: &CertificateRequest) -> Result<(), String> {
    if request.groups.iter().any(|group| group == MASTERS) {
        return Err(format!(
            "certificates for the group {MASTERS} are not signed"
        ));
    }
    if request.user.is_none() {
        return Err("the subject must have one common name".into());
    }
    Ok(())
}

fn check_kubelet_client(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    if request.groups != ["system:nodes"] {
        return Err("subject organization is not system:nodes".into());
    }
    if request.has_alternative_names {
        return Err("subject alternative names are not allowed".into());
    }
    let mut sorted = usages.to_vec();
    sorted.sort_unstable();
    let required = ["client auth", "digital signature", "key encipherment"];
    if sorted != required && sorted != required[..2] {
        return Err(format!("usages did not match [{}]", required.join(" ")));
    }
    let is_node = |user: &String| user.starts_with("system:node:");
    if !request.user.as_ref().is_some_and(is_node) {
        return Err("subject common name does not begin with system:node:".into());
    }
    check_subject(request)
}

#[cfg(test)]
mod tests;
