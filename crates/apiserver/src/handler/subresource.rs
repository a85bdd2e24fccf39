//! Subresources of single built-in kinds that are neither status nor scale.

use bellwether_kinds::Subresource;
use http::StatusCode;
use serde_json::{Value, json};

use crate::admission::dynamic::{self, Operation, Shown};
use crate::answer::{Answer, Reply};
use crate::body::{RequestBody, decode_sent};
use crate::context::RequestContext;
use crate::handler::update::{Proposal, change, update};
use crate::handler::{connection, eviction, get, log, patch, token_request};
use crate::metadata;
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::request::Verb;
use crate::resource::{Part, Source};
use crate::status::{ApiError, success};

/// Answers requests to a subresource that the kind has; 404 for others.
pub(crate) async fn handle(cx: RequestContext, body: &RequestBody) -> Result<Reply, ApiError> {
    let subresource = cx.subresource.as_deref().unwrap_or_default();
    let known = match &cx.resource.source {
        Source::BuiltIn(kind) => kind.subresource(subresource),
        Source::Custom(_) => None,
    };
    let known = known.ok_or_else(ApiError::no_such_resource)?;
    if !known.verbs.contains(&cx.verb.as_str()) {
        return Err(ApiError::method_not_allowed());
    }
    match known.name {
        "binding" => bind(&cx, known, body).await,
        "eviction" => eviction::evict(&cx, known, body).await,
        "token" => token_request::create(&cx, known, body).await,
        "log" => log::get(&cx),
        name if known.kind.is_none() => object(&cx, Part::Other(name), body).await,
        name => {
            connection::admit(&cx, known).await?;
            Err(ApiError::bad_request(format!(
                "{}/{name} is not available: embedded clusters do not run containers",
                cx.resource.plural
            )))
        }
    }
}

/// Reads what a subresource takes, an object of a kind of its own.
pub(super) fn sent(
    cx: &RequestContext,
    part: &'static Subresource,
    body: &RequestBody,
) -> Result<Value, ApiError> {
    let (_, version, kind) = part.kind.unwrap_or_default();
    let (value, _) = body.parse(kind)?;
    let mut value = decode_sent(part, value).map_err(|why| {
        ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
        ))
    })?;
    let namespace = metadata::text(&value, "namespace");
    if !namespace.is_empty() && namespace != cx.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    value["metadata"]["namespace"] = cx.namespace().into();
    Ok(value)
}

/// The object itself, of which the subresource may change one part.
async fn object(cx: &RequestContext, part: Part, body: &RequestBody) -> Result<Reply, ApiError> {
    match cx.verb {
        Verb::Get => get::get(cx).await.map(Into::into),
        Verb::Update => update(cx, part, body).await,
        Verb::Patch => patch::patch(cx, part, body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// A scheduler says on which node a pod goes.
async fn bind(
    cx: &RequestContext,
    part: &'static Subresource,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    require(cx, Verb::Create)?;
    let options = WriteOptions::parse(&cx.query, "CreateOptions")?;
    let mut binding = sent(cx, part, body)?;
    let (shown, operation) = (Shown::Sent(part), Operation::create(cx, &options, false));
    dynamic::mutate(cx, shown, &operation, Some(&mut binding), None).await?;
    if binding["metadata"]["name"].as_str() != Some(cx.name()?) {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    let node = binding["target"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name: Required value"));
    }
    dynamic::validate(cx, shown, &operation, Some(&binding), None).await?;
    change(cx, Part::Whole, &options, |live| {
        let current = live["spec"]["nodeName"].as_str().unwrap_or("");
        if !current.is_empty() {
            return Err(ApiError::conflict(
                crate::status::Subject {
                    group: "",
                    resource: "pods/binding",
                },
                cx.name()?,
                &format!(
                    "pod {} is already assigned to node \"{current}\"",
                    cx.name()?
                ),
            ));
        }
        let mut object = live.clone();
        object["spec"]["nodeName"] = node.as_str().into();
        set_scheduled(&mut object, cx);
        let ownership = Ownership::Update(cx.manager(&options.field_manager));
        Ok(Proposal { object, ownership })
    })
    .await?;
    Ok(Answer::Value(StatusCode::CREATED, success(Some(201), None)).into())
}

fn set_scheduled(pod: &mut Value, cx: &RequestContext) {
    let scheduled = json!({
        "type": "PodScheduled", "status": "True",
        "lastProbeTime": null, "lastTransitionTime": bellwether_json::time::format_time(cx.now),
    });
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = pod["status"]["conditions"].as_array_mut() {
        conditions.retain(|found| found["type"] != "PodScheduled");
        conditions.push(scheduled);
    }
}

fn require(cx: &RequestContext, verb: Verb) -> Result<(), ApiError> {
    if cx.verb == verb {
        Ok(())
    } else {
        Err(ApiError::method_not_allowed())
    }
}
