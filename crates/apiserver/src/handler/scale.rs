//! The scale subresource: the number of replicas of anything that has some.

use http::StatusCode;
use serde_json::{Value, json};

use crate::admission::dynamic::{self, Operation};
use crate::answer::{Answer, Reply};
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::handler::patch::{self, Patch, PatchType};
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::{self, Ownership};
use crate::params::WriteOptions;
use crate::request::Verb;
use crate::resource::{Part, Source};
use crate::status::{ApiError, Subject};
use bellwether_schema::{FieldError, FieldPath};

/// The version of a scale.
const API_VERSION: &str = "autoscaling/v1";

/// Where a kind keeps its numbers.
struct Paths {
    spec_replicas: Vec<String>,
    status_replicas: Vec<String>,
    /// A field that holds a selector: as text, or as an object in built-in kinds.
    selector: Option<Vec<String>>,
    /// Whether an object need not have a number of replicas.
    is_optional: bool,
}

impl Paths {
    /// A custom resource that says nothing about its replicas cannot be shown as a scale.
    fn require_replicas(&self, object: &Value) -> Result<(), ApiError> {
        if self.is_optional || !at(object, &self.spec_replicas).is_null() {
            return Ok(());
        }
        let path = self.spec_replicas.join(".");
        let why = format!("the spec replicas field \".{path}\" does not exist");
        Err(ApiError::internal_cause(&why))
    }
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
            let object = cx.resource.read(&entry.value);
            paths.require_replicas(&object)?;
            let scale = scale_of(&object, &paths);
            Ok(Answer::Value(StatusCode::OK, scale).into())
        }
        Verb::Update | Verb::Patch => set(&cx, &paths, body).await,
        verb if cx.resource.is_custom() => {
            let subject = cx.resource.subject();
            Err(ApiError::verb_not_supported(subject, verb.as_str()))
        }
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
            is_optional: true,
        }),
        Source::Custom(version) => version.scale.as_ref().map(|scale| Paths {
            spec_replicas: scale.spec_replicas.clone(),
            status_replicas: scale.status_replicas.clone(),
            selector: scale.label_selector.clone(),
            is_optional: false,
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
        "kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata,
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
    let wanted = Wanted::parse(cx, body)?;
    if cx.verb == Verb::Patch {
        options.check_patch(matches!(wanted, Wanted::Applied(_)))?;
    }
    let written = change(cx, Part::Scale, &options, |live| {
        let object = match &wanted {
            Wanted::Sent(scale) => with_replicas(cx, paths, live, scale)?,
            Wanted::Patched(patch) => {
                let scale = patch.apply(cx, scale_of(live, paths))?;
                with_replicas(cx, paths, live, &scale)?
            }
            Wanted::Applied(scale) => {
                let object = applied(cx, paths, live, scale, &options)?;
                let ownership = Ownership::Recorded;
                return Ok(Proposal { object, ownership });
            }
        };
        // In Kubernetes a number that nobody has set has no owner to hand it over.
        let ownership = if paths.is_optional || !at(live, &paths.spec_replicas).is_null() {
            Ownership::Update(cx.manager(&options.field_manager))
        } else {
            Ownership::Recorded
        };
        Ok(Proposal { object, ownership })
    })
    .await?;
    let object = match written {
        crate::handler::create::Written::Stored(stored) => cx.resource.read(&stored),
        crate::handler::create::Written::DryRun(object) => object,
    };
    Ok(Answer::Value(StatusCode::OK, scale_of(&object, paths)).into())
}

/// Shows a changed object to mutating webhooks by way of its scale.
pub(super) async fn mutate(
    cx: &RequestContext,
    operation: &Operation,
    object: &mut Value,
    live: &Value,
) -> Result<(), ApiError> {
    let Some(paths) = paths(cx).filter(|_| dynamic::is_configured(cx, Part::Scale)) else {
        return Ok(());
    };
    let (mut scale, old) = (scale_of(object, &paths), scale_of(live, &paths));
    if dynamic::mutate(cx, Part::Scale, operation, Some(&mut scale), Some(&old)).await? {
        *slot(object, &paths) = replicas(cx, &scale)?.into();
    }
    Ok(())
}

/// Lets policies and validating webhooks refuse a changed object, which they see as a scale.
pub(super) async fn validate(
    cx: &RequestContext,
    operation: &Operation,
    object: &Value,
    live: &Value,
) -> Result<(), ApiError> {
    let Some(paths) = paths(cx).filter(|_| dynamic::is_configured(cx, Part::Scale)) else {
        return Ok(());
    };
    let (scale, old) = (scale_of(object, &paths), scale_of(live, &paths));
    dynamic::validate(cx, Part::Scale, operation, Some(&scale), Some(&old)).await
}

/// What a request says of a scale.
enum Wanted {
    /// The whole of it.
    Sent(Value),
    /// What is to be changed.
    Patched(Patch),
    /// What a manager wants to own.
    Applied(Value),
}

impl Wanted {
    fn parse(cx: &RequestContext, body: &RequestBody) -> Result<Self, ApiError> {
        if cx.verb != Verb::Patch {
            let (mut scale, _) = body.parse("Scale")?;
            metadata::match_path(cx, &mut scale)?;
            return Ok(Self::Sent(scale));
        }
        Ok(match PatchType::of(cx, &body.content_type)? {
            PatchType::Apply => Self::Applied(patch::parse_yaml(&body.bytes)?.value),
            kind => Self::Patched(Patch::parse(kind, body)?),
        })
    }
}

/// The object with the number of replicas that a scale says.
fn with_replicas(
    cx: &RequestContext,
    paths: &Paths,
    live: &Value,
    scale: &Value,
) -> Result<Value, ApiError> {
    metadata::check_revision(cx.resource.subject(), scale, live)?;
    let mut object = live.clone();
    *slot(&mut object, paths) = replicas(cx, scale)?.into();
    Ok(object)
}

fn slot<'a>(object: &'a mut Value, paths: &Paths) -> &'a mut Value {
    let path = paths.spec_replicas.iter();
    path.fold(object, |value, name| &mut value[name.as_str()])
}

/// The object after a manager has applied a scale: it owns the number of replicas and nothing else.
fn applied(
    cx: &RequestContext,
    paths: &Paths,
    live: &Value,
    scale: &Value,
    options: &WriteOptions,
) -> Result<Value, ApiError> {
    metadata::check_revision(cx.resource.subject(), scale, live)?;
    let mut wanted = json!({
        "apiVersion": *cx.resource.api_version, "kind": *cx.resource.kind,
        "metadata": {"name": cx.name()?, "namespace": cx.namespace()},
    });
    if !scale["spec"]["replicas"].is_null() {
        *slot(&mut wanted, paths) = replicas(cx, scale)?.into();
    }
    let (manager, force) = (&options.field_manager, options.force.unwrap_or(false));
    ownership::apply(cx, Part::Scale, Some(live), &wanted, manager, force).map_err(as_scale)
}

/// The owner of the number of replicas owns it in a scale, as seen by a client that applies a scale.
fn as_scale(mut error: ApiError) -> ApiError {
    let rename = |text: &mut String| {
        if let Some((before, rest)) = text.split_once(" using ") {
            let after = rest.find(':').map_or("", |end| &rest[end..]);
            *text = format!("{before} using {API_VERSION}{after}");
        }
    };
    rename(&mut error.message);
    for cause in error.details.iter_mut().flat_map(|it| &mut it.causes) {
        rename(&mut cause.message);
    }
    error
}

fn replicas(cx: &RequestContext, scale: &Value) -> Result<i64, ApiError> {
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        other => other.as_i64().ok_or_else(|| {
            ApiError::bad_request("Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is not an integer")
        })?,
    };
    // What custom resources allow, their schema says.
    if replicas >= 0 || cx.resource.is_custom() {
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
