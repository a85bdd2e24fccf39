//! The reviews that controllers and `kubectl auth can-i` send.

use bellwether_api::admission::Attributes;
use bellwether_json::time;
use bellwether_schema::FieldError;
use serde_json::{Map, Value, json};

use super::bearer::{api_audiences, authenticate_token};
use super::identity::Identity;
use super::rbac::Decision;
use super::rule::PolicyRule;
use crate::context::RequestContext;
use crate::metadata;
use crate::resource::Part;
use crate::status::{ApiError, Subject};

/// Completes the metadata of a review.
pub(crate) fn complete(cx: &RequestContext, review: &mut Value) -> Result<(), ApiError> {
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    if &*cx.resource.plural == "localsubjectaccessreviews" {
        metadata::match_path(cx, review)?;
    }
    Ok(())
}

/// Checks a review that is complete.
pub(crate) fn check(cx: &RequestContext, review: &Value) -> Result<(), ApiError> {
    let errors = cx.resource.validate(Part::Main, review, None, &cx.effort)?;
    if errors.is_empty() {
        Ok(())
    } else {
        Err(invalid(cx, &errors))
    }
}

/// Fills in the status of a review of the authorization and authentication groups that has passed [`check`].
pub(crate) fn review(cx: &RequestContext, mut object: Value) -> Result<Value, ApiError> {
    let plural = &*cx.resource.plural;
    let spec = &object["spec"];
    let status = match plural {
        "selfsubjectaccessreviews" => access(cx, &cx.identity, spec),
        "subjectaccessreviews" | "localsubjectaccessreviews" => access(cx, &subject(spec), spec),
        "selfsubjectrulesreviews" => {
            let status = rules(cx, spec)?;
            object["spec"] = json!({});
            status
        }
        "selfsubjectreviews" => {
            object["metadata"]["creationTimestamp"] = time::format_time(cx.now).into();
            json!({"userInfo": cx.identity.to_json()})
        }
        "tokenreviews" => token(cx, spec)?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    object["status"] = status;
    Ok(object)
}

/// Whether a token is good, and whose it is.
fn token(cx: &RequestContext, spec: &Value) -> Result<Value, ApiError> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let mut audiences = texts(&spec["audiences"]);
    if audiences.is_empty() {
        audiences = api_audiences();
    }
    Ok(match authenticate_token(&cx.cluster, token, &audiences) {
        Ok(proof) => json!({
            "authenticated": true, "user": proof.identity.to_json(), "audiences": proof.audiences,
        }),
        Err(why) => json!({"user": {}, "error": why}),
    })
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn subject(spec: &Value) -> Identity {
    let extra = spec["extra"].as_object().into_iter().flatten();
    Identity {
        user: spec["user"].as_str().unwrap_or_default().into(),
        uid: spec["uid"].as_str().unwrap_or_default().into(),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    }
}

fn access(cx: &RequestContext, identity: &Identity, spec: &Value) -> Value {
    let resource = &spec["resourceAttributes"];
    let path = &spec["nonResourceAttributes"];
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let source = if resource.is_object() { resource } else { path };
    let [verb, group, name, namespace] =
        ["verb", "group", "name", "namespace"].map(|key| text(&source[key]));
    let [plural, subresource, path] =
        ["resource", "subresource", "path"].map(|key| text(&source[key]));
    let decision = cx.cluster.authorizer().decide(
        identity,
        &Attributes {
            verb: &verb,
            group: &group,
            resource: &plural,
            subresource: &subresource,
            name: &name,
            namespace: &namespace,
            path: &path,
        },
    );
    status(&decision)
}

/// Reviews have neither kind nor name in Kubernetes' messages.
fn invalid(cx: &RequestContext, errors: &[FieldError]) -> ApiError {
    ApiError::invalid(
        Subject {
            group: &cx.resource.group,
            resource: "",
        },
        "",
        errors,
    )
}

fn status(decision: &Decision) -> Value {
    let mut status = Map::new();
    status.insert("allowed".into(), decision.allowed.into());
    if !decision.reason.is_empty() {
        status.insert("reason".into(), decision.reason.as_str().into());
    }
    Value::Object(status)
}

fn rules(cx: &RequestContext, spec: &Value) -> Result<Value, ApiError> {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let rules: Vec<PolicyRule> = cx.cluster.authorizer().with(|rbac| {
        let rules = rbac.rules_for(&cx.identity, namespace);
        rules.into_iter().cloned().collect()
    });
    let (paths, resources): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .partition(|rule| !rule.non_resource_urls.is_empty());
    let resource_rule = |rule: &PolicyRule| {
        let mut out =
            json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
        if !rule.resource_names.is_empty() {
            out["resourceNames"] = json!(rule.resource_names);
        }
        out
    };
    Ok(json!({
        "resourceRules": resources.iter().map(resource_rule).collect::<Vec<_>>(),
        "nonResourceRules": paths
            .iter()
            .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}))
            .collect::<Vec<_>>(),
        "incomplete": false,
    }))
}
