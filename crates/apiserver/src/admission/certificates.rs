//! Certificate signing requests: who may approve and sign, and what may not be asked for at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::access::{Attributes, MASTERS};
use crate::context::RequestContext;
use crate::metadata;
use crate::pki::CertificateRequest;
use crate::resource::Part;
use crate::status::ApiError;

const GROUP: &str = "certificates.k8s.io";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A request has to be one, and nobody becomes a master by asking.
pub(super) fn on_create(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let encoded = object["spec"]["request"].as_str().unwrap_or_default();
    let pem = BASE64.decode(encoded).unwrap_or_default();
    let name = metadata::text(object, "name");
    let parsed = match CertificateRequest::parse(&pem) {
        Ok(parsed) => parsed,
        // Validation says so in its own words.
        Err(_) if !pem.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") => return Ok(()),
        Err(why) => {
            let path = FieldPath::new("spec");
            let value = object["spec"]["request"].clone();
            let error = FieldError::invalid(&path.child("request"), value, why);
            return Err(ApiError::invalid(
                cx.resource.kind_subject(),
                name,
                &[error],
            ));
        }
    };
    let signer = object["spec"]["signerName"].as_str().unwrap_or_default();
    if signer == CLIENT_SIGNER && parsed.groups.iter().any(|group| group == MASTERS) {
        let why = format!("use of {signer} signer with {MASTERS} group is not allowed");
        return Err(ApiError::forbidden(cx.resource.subject(), name, &why));
    }
    Ok(())
}

/// Decisions and certificates come from those who may do so for the signer.
pub(super) fn on_update(
    cx: &RequestContext,
    part: Part,
    object: &Value,
    live: &Value,
) -> Result<(), ApiError> {
    let verb = match part {
        Part::Other("approval") => "approve",
        Part::Status if object["status"] != live["status"] => "sign",
        _ => return Ok(()),
    };
    // The live one counts: a request cannot be moved to a signer for which one may.
    let signer = live["spec"]["signerName"].as_str().unwrap_or_default();
    if may(cx, verb, signer) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    let name = metadata::text(live, "name");
    Err(ApiError::forbidden(cx.resource.subject(), name, &why))
}

/// Whether the caller has a verb on a signer, by its name or by all of its domain.
fn may(cx: &RequestContext, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")]
        .iter()
        .any(|name| {
            let wanted = Attributes {
                verb,
                group: GROUP,
                resource: "signers",
                name,
                ..Attributes::default()
            };
            cx.cluster.authorizer().allows(&cx.identity, &wanted)
        })
}
