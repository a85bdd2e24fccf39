//! The AdmissionReview that is sent to a webhook, and what its answer means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::attributes::{Attributes, Target};
use crate::webhook::Seen;

/// Group of reviews.
pub const GROUP: &str = "admission.k8s.io";

/// Kind of reviews.
pub const KIND: &str = "AdmissionReview";

/// Versions of reviews that are spoken, the better one first.
pub const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The version of a review that a webhook reads; the error says that it reads none of ours.
pub fn version(offered: &[String]) -> Result<&'static str, String> {
    let mut offered = offered.iter();
    let known = offered.find_map(|offer| VERSIONS.into_iter().find(|version| version == offer));
    known.ok_or_else(|| {
        "webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned()
    })
}

/// The review of a request for a webhook that sees its objects as `target`.
pub fn request(
    attributes: &Attributes<'_>,
    target: &Target,
    seen: &Seen<'_>,
    version: &str,
    uid: &str,
) -> Value {
    let mut request = attributes.to_request(target);
    request.insert("uid".into(), uid.into());
    request.insert("object".into(), seen.object().clone());
    request.insert("oldObject".into(), seen.old().clone());
    json!({"kind": KIND, "apiVersion": format!("{GROUP}/{version}"), "request": request})
}

/// An answer that makes sense.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// True if the request may go on.
    pub allowed: bool,
    /// The changes of a mutating webhook: a JSON patch; empty for none.
    pub patch: Vec<u8>,
    /// How `patch` is written.
    pub patch_type: String,
    /// Why the request is refused: a `Status`.
    pub status: Option<Value>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Annotations for the audit log.
    pub annotations: Map<String, Value>,
}

/// Reads the answer to a review; the error says what is wrong with it.
pub fn response(
    answer: &Value,
    version: &str,
    uid: &str,
    is_mutating: bool,
) -> Result<Response, String> {
    let response = answer["response"]
        .as_object()
        .ok_or("webhook response was absent")?;
    let text = |field: &str| response.get(field).and_then(Value::as_str);
    let patch = text("patch").unwrap_or_default();
    let patch = BASE64.decode(patch).map_err(|error| error.to_string())?;
    let mut patch_type = text("patchType");
    if version == "v1" {
        check_identity(answer, uid, text("uid").unwrap_or_default())?;
        check_patch(&patch, patch_type, is_mutating)?;
    } else {
        patch_type = (!patch.is_empty()).then_some("JSONPatch");
    }
    let warnings = response.get("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    let annotations = response.get("auditAnnotations").and_then(Value::as_object);
    Ok(Response {
        allowed: response.get("allowed") == Some(&Value::Bool(true)),
        patch: if is_mutating { patch } else { Vec::new() },
        patch_type: patch_type.unwrap_or_default().to_owned(),
        status: response.get("status").filter(|it| it.is_object()).cloned(),
        warnings: warnings.map(str::to_owned).collect(),
        annotations: annotations.cloned().unwrap_or_default(),
    })
}

fn check_identity(answer: &Value, uid: &str, found: &str) -> Result<(), String> {
    if found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let text = |field: &str| answer[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let expected = format!("{GROUP}/v1");
    if (api_version, kind) != (expected.as_str(), KIND) {
        let api_version = if api_version.is_empty() {
            "/"
        } else {
            api_version
        };
        return Err(format!(
            "expected webhook response of {expected}, Kind={KIND}, got {api_version}, Kind={kind}"
        ));
    }
    Ok(())
}

fn check_patch(patch: &[u8], patch_type: Option<&str>, is_mutating: bool) -> Result<(), String> {
    let problem = match (is_mutating, patch.is_empty(), patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(problem.to_owned())
}

/// The `Status` with which the client is refused.
pub fn refusal(webhook: &str, status: Option<&Value>) -> Value {
    let denied = format!("admission webhook {webhook:?} denied the request");
    let mut status = status.cloned().unwrap_or_else(|| json!({}));
    let code = status["code"].as_u64().unwrap_or(0);
    if code < 400 {
        status["code"] = 400.into();
    }
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let message = match (text("message"), text("reason")) {
        (Some(why), _) | (None, Some(why)) => format!("{denied}: {why}"),
        (None, None) => format!("{denied} without explanation"),
    };
    status["message"] = message.into();
    status["status"] = "Failure".into();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(response: &Value, is_mutating: bool, expected: Result<bool, &str>) {
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        let found = super::response(&answer, "v1", "u1", is_mutating);
        let found = found.map(|response| response.allowed);
        assert_eq!(found, expected.map_err(str::to_owned), "{response}");
    }

    #[test]
    fn an_answer_belongs_to_its_review() {
        check(&json!({"uid": "u1", "allowed": true}), false, Ok(true));
        check(&json!({"uid": "u1"}), false, Ok(false));
        check(&Value::Null, false, Err("webhook response was absent"));
        let other = "expected response.uid=\"u1\", got \"u2\"";
        check(&json!({"uid": "u2", "allowed": true}), false, Err(other));
        let answer = json!({"response": {"uid": "u1", "allowed": true}});
        assert_eq!(
            super::response(&answer, "v1", "u1", false).unwrap_err(),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
        );
        assert!(super::response(&answer, "v1beta1", "u2", false).is_ok());
    }

    #[test]
    fn only_mutating_webhooks_patch() {
        let patched =
            json!({"uid": "u1", "allowed": true, "patch": "W10=", "patchType": "JSONPatch"});
        check(&patched, true, Ok(true));
        let refused = "validating webhook may not return response.patch";
        check(&patched, false, Err(refused));
        let untyped = json!({"uid": "u1", "allowed": true, "patch": "W10="});
        let refused = "webhook returned response.patch but not response.patchType";
        check(&untyped, true, Err(refused));
    }

    #[test]
    fn a_refusal_says_who_refuses_and_why() {
        let check = |status: Option<Value>, code: u64, message: &str| {
            let refused = refusal("a.b.c", status.as_ref());
            assert_eq!(refused["code"], code);
            assert_eq!(refused["message"], message);
            assert_eq!(refused["status"], "Failure");
        };
        let denied = "admission webhook \"a.b.c\" denied the request";
        check(None, 400, &format!("{denied} without explanation"));
        check(
            Some(json!({"message": "no"})),
            400,
            &format!("{denied}: no"),
        );
        let forbidden = json!({"reason": "Forbidden", "code": 403, "status": "Success"});
        check(Some(forbidden), 403, &format!("{denied}: Forbidden"));
    }
}
