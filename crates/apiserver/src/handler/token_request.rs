//! `serviceaccounts/NAME/token`: a signed token for a service account.

use bellwether_json::time;
use bellwether_kinds::Subresource;
use bellwether_schema::{FieldError, FieldPath, decode};
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use crate::access::{Claims, Holder, Reference, api_audiences, issuer, user_name};
use crate::admission::dynamic::{self, Operation, Shown};
use crate::answer::{Answer, Reply};
use crate::body::{RequestBody, judge, wrong_type};
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::metadata;
use crate::params::{FieldValidation, WriteOptions};
use crate::status::{ApiError, Subject};

const TYPE: &str = "io.k8s.api.authentication.v1.TokenRequest";
const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";
const SUBJECT: Subject<'static> = Subject {
    group: "authentication.k8s.io",
    resource: KIND,
};

const DEFAULT_SECONDS: i64 = 3_600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;

/// Answers `POST` of a token request.
pub(crate) async fn create(
    cx: &RequestContext,
    part: &'static Subresource,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    let options = WriteOptions::parse(&cx.query, "CreateOptions")?;
    let (mut request, warnings) = decode_request(body, options.field_validation)?;
    let (shown, operation) = (Shown::Sent(part), Operation::create(cx, &options, false));
    check_namespace(cx, &request)?;
    request["metadata"]["namespace"] = cx.namespace().into();
    // Webhooks see the fields that Go writes though they are empty.
    request["status"] = json!({"token": "", "expirationTimestamp": null});
    if request["spec"]["boundObjectRef"].is_null() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    dynamic::mutate(cx, shown, &operation, Some(&mut request), None).await?;
    check_namespace(cx, &request)?;
    check_name(cx, &request)?;
    let entry = cx
        .cluster
        .keyspace()
        .get(&cx.key()?)
        .ok_or_else(|| not_found(cx))?;
    let uid = entry.value.uid();
    complete(cx, &mut request, uid)?;
    let seconds = request["spec"]["expirationSeconds"]
        .as_i64()
        .unwrap_or(DEFAULT_SECONDS);
    check_seconds(seconds)?;
    dynamic::validate(cx, shown, &operation, Some(&request), None).await?;
    let claims = Claims {
        expires: Some(cx.now.as_second().saturating_add(seconds)),
        audiences: texts(&request["spec"]["audiences"]),
        holder: bind(cx, &request["spec"]["boundObjectRef"], uid)?,
        ..claims(cx.cluster.name(), cx.namespace(), cx.name()?, uid, cx.now)
    };
    let key = cx.cluster.issuers().token_key.as_ref();
    let token = key
        .ok_or_else(|| ApiError::internal("failed to generate token: this server has no key"))?
        .sign(&claims)
        .map_err(|error| ApiError::internal(format!("failed to generate token: {error}")))?;
    let expires = cx
        .now
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(cx.now);
    request["status"] = json!({"token": token, "expirationTimestamp": time::format_time(expires)});
    let answer = Answer::Value(StatusCode::CREATED, request);
    Ok(Reply { answer, warnings })
}

/// What every token of an account says.
pub(crate) fn claims(
    cluster: &str,
    namespace: &str,
    name: &str,
    uid: &str,
    now: jiff::Timestamp,
) -> Claims {
    Claims {
        audiences: api_audiences(),
        expires: None,
        issued: now.as_second(),
        not_before: now.as_second(),
        issuer: issuer(cluster),
        id: metadata::new_uid(),
        subject: user_name(namespace, name),
        holder: Holder {
            namespace: namespace.to_owned(),
            account: Reference {
                name: name.to_owned(),
                uid: uid.to_owned(),
            },
            ..Holder::default()
        },
    }
}

fn decode_request(
    body: &RequestBody,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let (mut value, repeats) = body.parse(KIND)?;
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let other = (!kind.is_empty() && kind != KIND)
        || (!api_version.is_empty() && api_version != API_VERSION);
    if other {
        let kind = if kind.is_empty() { KIND } else { &kind };
        return Err(wrong_type(SUBJECT.group, KIND, &api_version, kind));
    }
    let cannot = |why: String| {
        ApiError::bad_request(format!(
            "{KIND} in version \"v1\" cannot be handled as a {KIND}: {why}"
        ))
    };
    let schema = bellwether_kinds::type_schema(TYPE)
        .ok_or_else(|| ApiError::internal("token requests have no schema"))?;
    let unknown =
        decode::decode(&mut value, &schema, KIND).map_err(|error| cannot(error.to_string()))?;
    let warnings = judge(validation, &repeats, &unknown).map_err(cannot)?;
    value["apiVersion"] = API_VERSION.into();
    value["kind"] = KIND.into();
    Ok((value, warnings))
}

/// A request may repeat what the path says, and nothing else.
fn check_namespace(cx: &RequestContext, request: &Value) -> Result<(), ApiError> {
    let namespace = metadata::text(request, "namespace");
    if !namespace.is_empty() && namespace != cx.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn check_name(cx: &RequestContext, request: &Value) -> Result<(), ApiError> {
    let name = metadata::text(request, "name");
    if name.is_empty() || name == cx.name()? {
        return Ok(());
    }
    let path = FieldPath::new("metadata");
    let detail = "must match the service account name if specified";
    let error = FieldError::invalid(&path.child("name"), name, detail);
    Err(ApiError::invalid(SUBJECT, cx.name()?, &[error]))
}

fn complete(cx: &RequestContext, request: &mut Value, uid: &str) -> Result<(), ApiError> {
    let given = metadata::text(request, "uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
        );
        return Err(ApiError::conflict(SUBJECT, cx.name()?, &why));
    }
    request["metadata"] = json!({
        "name": cx.name()?, "namespace": cx.namespace(), "uid": uid,
        "creationTimestamp": time::format_time(cx.now),
    });
    let spec = &mut request["spec"];
    if texts(&spec["audiences"]).is_empty() {
        spec["audiences"] = json!(api_audiences());
    }
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = DEFAULT_SECONDS.into();
    }
    if spec["boundObjectRef"].is_null() {
        spec["boundObjectRef"] = Value::Null;
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let detail = if seconds < SHORTEST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let path = FieldPath::new("spec");
    let error = FieldError::invalid(&path.child("expirationSeconds"), seconds, detail);
    Err(ApiError::invalid(SUBJECT, "", &[error]))
}

/// The account, and the object with which the token shall end.
fn bind(cx: &RequestContext, wanted: &Value, uid: &str) -> Result<Holder, ApiError> {
    let mut holder = claims(cx.cluster.name(), cx.namespace(), cx.name()?, uid, cx.now).holder;
    if !wanted.is_object() {
        return Ok(holder);
    }
    let text = |key: &str| wanted[key].as_str().unwrap_or_default();
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let (plural, namespace) = match (group, kind) {
        ("", "Pod") => ("pods", Some(cx.namespace())),
        ("", "Secret") => ("secrets", Some(cx.namespace())),
        ("", "Node") => ("nodes", None),
        _ => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let subject = Subject {
        group: "",
        resource: plural,
    };
    let (found, object) =
        reference(cx, plural, namespace, name).ok_or_else(|| ApiError::not_found(subject, name))?;
    if !text("uid").is_empty() && text("uid") != found.uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        let subject = Subject {
            group: "",
            resource: kind,
        };
        return Err(ApiError::conflict(subject, name, &why));
    }
    match kind {
        "Pod" => {
            if object["spec"]["serviceAccountName"].as_str() != cx.name.as_deref() {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                    cx.name()?
                )));
            }
            holder.pod = Some(found);
            holder.node = object["spec"]["nodeName"].as_str().map(|node| {
                let known = reference(cx, "nodes", None, node).map(|(found, _)| found);
                known.unwrap_or_else(|| Reference {
                    name: node.to_owned(),
                    uid: String::new(),
                })
            });
        }
        "Secret" => holder.secret = Some(found),
        _ => holder.node = Some(found),
    }
    Ok(holder)
}

fn reference(
    cx: &RequestContext,
    plural: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<(Reference, Value)> {
    let key = match namespace {
        Some(namespace) => format!("core/{plural}/{namespace}/{name}"),
        None => format!("core/{plural}/{name}"),
    };
    let entry = cx.cluster.keyspace().get(&key)?;
    let reference = Reference {
        name: name.to_owned(),
        uid: entry.value.uid().to_owned(),
    };
    Some((reference, entry.value.to_untyped_value()))
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
