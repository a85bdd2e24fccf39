//! The scale subresource: the number of replicas of anything that has some.

use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::{Answer, Reply};
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::handler::patch::{Patch, PatchType};
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::request::Verb;
use crate::resource::{Part, Source};
use crate::status::{ApiError, Subject};
use bellwether_schema::{FieldError, FieldPath};

/// Where a kind keeps its numbers.
struct Paths {
    spec_replicas: Vec<String>,
    status_replicas: Vec<String>,
    /// A field that holds a selector: as text, or as an object in built-in kinds.
    selector: Option<Vec<String>>,
}

/// Answers requests to `…/scale`.
pub(crate) async fn handle(cx: RequestContext, body: &RequestBody) -> Result<Reply, ApiError> {
    let paths = paths(&cx).ok_or_else(ApiError::no_such_resource)?;
    match cx.verb {
        Verb::Get => {
            let entry = cx
                .cluster
                .keyspace()
                .get(&cx.key()?)
                .ok_or_else(|| not_found(&cx))?;
            let scale = scale_of(&cx.resource.read(&entry.value), &paths);
            Ok(Answer::Value(StatusCode::OK, scale).into())
        }
        Verb::Update | Verb::Patch => set(&cx, &paths, body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn paths(cx: &RequestContext) -> Option<Paths> {
    let names = |path: &[&str]| path.iter().map(ToString::to_string).collect();
    match &cx.resource.source {
        Source::BuiltIn(kind) => kind.subresource("scale").map(|_| Paths {
            spec_replicas: names(&["spec", "replicas"]),
            status_replicas: names(&["status", "replicas"]),
            selector: Some(names(&["spec", "selector"])),
        }),
        Source::Custom(version) => version.scale.as_ref().map(|scale| Paths {
            spec_replicas: scale.spec_replicas.clone(),
            status_replicas: scale.status_replicas.clone(),
            selector: scale.label_selector.clone(),
        }),
    }
}

fn at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter()
        .fold(object, |value, name| &value[name.as_str()])
}

fn scale_of(object: &Value, paths: &Paths) -> Value {
    let number = |path: &[String]| at(object, path).as_i64().unwrap_or(0);
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(found) = object["metadata"].get(field) {
            metadata[field] = found.clone();
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": number(&paths.status_replicas)},
    });
    let wanted = number(&paths.spec_replicas);
    if wanted != 0 {
        scale["spec"]["replicas"] = wanted.into();
    }
    let selector = paths
        .selector
        .as_deref()
        .map(|path| selector_text(at(object, path)));
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn selector_text(selector: &Value) -> String {
    match selector {
        Value::String(text) => text.clone(),
        Value::Object(_) => bellwether_json::label::LabelSelector::from_object(Some(selector))
            .map(|selector| selector.to_string())
            .unwrap_or_default(),
        _ => String::new(),
    }
}

async fn set(cx: &RequestContext, paths: &Paths, body: &RequestBody) -> Result<Reply, ApiError> {
    let options = if cx.verb == Verb::Patch {
        "PatchOptions"
    } else {
        "UpdateOptions"
    };
    let options = WriteOptions::parse(&cx.query, options)?;
    let patch = match cx.verb {
        Verb::Patch => Some(Patch::parse(PatchType::of(cx, &body.content_type)?, body)?),
        _ => None,
    };
    let sent = if patch.is_none() {
        body.parse("Scale")?.0
    } else {
        Value::Null
    };
    let ownership = Ownership::Update(cx.manager(&options.field_manager));
    let written = change(cx, Part::Scale, &options, |live| {
        let scale = match &patch {
            Some(patch) => patch.apply(cx, scale_of(live, paths))?,
            None => sent.clone(),
        };
        metadata::check_revision(cx.resource.subject(), &scale, live)?;
        let replicas = replicas(cx, &scale)?;
        let mut object = live.clone();
        let slot = paths
            .spec_replicas
            .iter()
            .fold(&mut object, |value, name| &mut value[name.as_str()]);
        *slot = replicas.into();
        Ok(Proposal {
            object,
            ownership: ownership.clone(),
        })
    })
    .await?;
    let object = match written {
        crate::handler::create::Written::Stored(stored) => cx.resource.read(&stored),
        crate::handler::create::Written::DryRun(object) => object,
    };
    Ok(Answer::Value(StatusCode::OK, scale_of(&object, paths)).into())
}

fn replicas(cx: &RequestContext, scale: &Value) -> Result<i64, ApiError> {
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        other => other.as_i64().ok_or_else(|| {
            ApiError::bad_request("Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is not an integer")
        })?,
    };
    if replicas >= 0 {
        return Ok(replicas);
    }
    let path = FieldPath::new("spec");
    let path = path.child("replicas");
    let error = FieldError::invalid(&path, replicas, "must be greater than or equal to 0");
    let subject = Subject {
        group: "autoscaling",
        resource: "Scale",
    };
    Err(ApiError::invalid(subject, cx.name()?, &[error]))
}
