//! The reviews that controllers and `kubectl auth can-i` send.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::{Map, Value, json};

use super::bearer::{api_audiences, authenticate_token};
use super::identity::Identity;
use super::rbac::{Attributes, Decision, PolicyRule};
use crate::context::RequestContext;
use crate::status::{ApiError, Subject};

/// Fills in the status of a review of the authorization and authentication groups.
pub(crate) fn review(cx: &RequestContext, mut object: Value) -> Result<Value, ApiError> {
    let status = match &*cx.resource.plural {
        "selfsubjectaccessreviews" => access(cx, &cx.identity, &object["spec"], "")?,
        "subjectaccessreviews" => access(cx, &subject(&object["spec"])?, &object["spec"], "")?,
        "localsubjectaccessreviews" => {
            let namespace = cx.namespace.as_deref().unwrap_or_default();
            access(cx, &subject(&object["spec"])?, &object["spec"], namespace)?
        }
        "selfsubjectrulesreviews" => rules(cx, &object["spec"])?,
        "selfsubjectreviews" => json!({"userInfo": cx.identity.to_json()}),
        "tokenreviews" => token(cx, &object["spec"])?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    object["status"] = status;
    let metadata = object["metadata"].take();
    object["metadata"] = if metadata.is_object() {
        metadata
    } else {
        json!({})
    };
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

fn subject(spec: &Value) -> Result<Identity, ApiError> {
    let identity = Identity {
        user: spec["user"].as_str().unwrap_or_default().into(),
        uid: spec["uid"].as_str().unwrap_or_default().into(),
        groups: texts(&spec["groups"]),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    };
    if identity.user.is_empty() && identity.groups.is_empty() {
        return Err(ApiError::bad_request(
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ));
    }
    Ok(identity)
}

fn access(
    cx: &RequestContext,
    identity: &Identity,
    spec: &Value,
    only_namespace: &str,
) -> Result<Value, ApiError> {
    let resource = &spec["resourceAttributes"];
    let path = &spec["nonResourceAttributes"];
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    if resource.is_object() == path.is_object() {
        let path = FieldPath::new("spec");
        let path = path.child("resourceAttributes");
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let error = FieldError::invalid(&path, resource.clone(), detail);
        return Err(invalid(cx, &[error]));
    }
    if !only_namespace.is_empty() && resource["namespace"] != only_namespace {
        return Err(ApiError::bad_request(format!(
            "spec.resourceAttributes.namespace: must match metadata.namespace: {only_namespace}"
        )));
    }
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
    Ok(status(&decision))
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
    let rbac = cx.cluster.authorizer().current();
    let everything = PolicyRule {
        verbs: vec!["*".into()],
        api_groups: vec!["*".into()],
        resources: vec!["*".into()],
        ..PolicyRule::default()
    };
    let anywhere = PolicyRule {
        verbs: vec!["*".into()],
        non_resource_urls: vec!["*".into()],
        ..PolicyRule::default()
    };
    let mut found: Vec<&PolicyRule> = rbac.rules_for(&cx.identity, namespace).collect();
    if cx
        .identity
        .groups
        .iter()
        .any(|group| group == super::identity::MASTERS)
    {
        found.extend([&everything, &anywhere]);
    }
    let (paths, resources): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|rule| !rule.non_resource_urls.is_empty());
    let resource_rule = |rule: &&PolicyRule| {
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
