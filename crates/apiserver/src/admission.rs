//! What the cluster has to say about a write: rules that look beyond the object itself.

mod accounts;
mod certificates;
pub(crate) mod dynamic;
mod limits;
pub(crate) mod quotas;
mod registered;
mod roles;
mod security;
mod type_check;

pub(crate) use registered::stored;
use serde_json::Value;

use crate::context::RequestContext;
use crate::custom;
use crate::priority;
use crate::resource::Part;
use crate::services;
use crate::status::{ApiError, Cause, Subject};

/// Group and name of the resource that defines others.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Group and name of the resource whose status says what its expressions get wrong.
const POLICIES: (&str, &str) = (bellwether_admission::GROUP, "validatingadmissionpolicies");

/// Namespaces that a cluster cannot do without.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Group and name of the resource: what the rules below are chosen by.
fn resource(cx: &RequestContext) -> (&str, &str) {
    (&cx.resource.group, &cx.resource.plural)
}

/// Completes a new object before the kind itself does.
pub(crate) async fn complete(cx: &RequestContext, object: &mut Value) -> Result<(), ApiError> {
    if resource(cx) == ("", "pods") {
        limits::fill(cx, object);
        accounts::assign(cx, object).await?;
    }
    Ok(())
}

/// Completes what webhooks have added to a new object.
pub(crate) fn complete_added(cx: &RequestContext, object: &mut Value) {
    if resource(cx) == ("", "pods") {
        limits::fill(cx, object);
    }
}

/// Checks an object that is sound in itself against the rules of its namespace; `live` is what it was.
pub(crate) fn check(
    cx: &RequestContext,
    part: Part,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let is_limited = match (resource(cx), part) {
        (("", "namespaces"), Part::Main) => {
            return security::check_namespace(cx, object, live);
        }
        (("", "pods"), Part::Main) => live.is_none(),
        (("", "pods"), Part::Other("resize")) | (("", "persistentvolumeclaims"), Part::Main) => {
            true
        }
        _ => false,
    };
    if is_limited {
        limits::check(cx, object)?;
    }
    if matches!(part, Part::Main | Part::Other("ephemeralcontainers")) {
        security::check(cx, object, live)?;
    }
    Ok(())
}

/// Checks and completes an object that is about to be created.
pub(crate) fn on_create(cx: &RequestContext, object: &mut Value) -> Result<(), ApiError> {
    registered::mutate(cx, Part::Main, object, None)?;
    // Before the schema: these rules say more than it can.
    registered::validate(cx, Part::Main, object, None)?;
    match resource(cx) {
        ("", "pods") => priority::assign(cx, object),
        ("", "services") => services::allocate(cx, object, None),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificates::on_create(cx, object)
        }
        (roles::GROUP, _) => roles::check(cx, object, None),
        POLICIES => {
            type_check::check(cx, object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks and completes a change.
pub(crate) fn on_update(
    cx: &RequestContext,
    part: Part,
    object: &mut Value,
    live: &Value,
) -> Result<(), ApiError> {
    registered::mutate(cx, part, object, Some(live))?;
    registered::validate(cx, part, object, Some(live))?;
    match (resource(cx), part) {
        (("", "services"), Part::Main) => services::allocate(cx, object, Some(live)),
        (("certificates.k8s.io", "certificatesigningrequests"), part) => {
            certificates::on_update(cx, part, object, live)
        }
        ((roles::GROUP, _), Part::Main) => roles::check(cx, object, Some(live)),
        (POLICIES, Part::Main) => {
            type_check::check(cx, object);
            Ok(())
        }
        (DEFINITIONS, Part::Main) => {
            custom::accept(cx, object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// True if rules, webhooks or policies may want to see updates of this part of an object.
pub(crate) fn sees_updates(cx: &RequestContext, part: Part) -> bool {
    registered::is_concerned(cx, part) || dynamic::is_configured(cx, part)
}

/// Checks a deletion.
pub(crate) fn on_delete(cx: &RequestContext, live: &Value) -> Result<(), ApiError> {
    let name = crate::metadata::text(live, "name");
    if resource(cx) == ("", "namespaces") && PROTECTED_NAMESPACES.contains(&name) {
        return Err(ApiError::forbidden(
            cx.resource.subject(),
            name,
            "this namespace may not be deleted",
        ));
    }
    registered::validate_deletion(cx, live)
}

/// Shows in the object itself that it is being deleted; called when it is deleted for the first time.
pub(crate) fn mark_deleted(cx: &RequestContext, object: &mut Value) {
    match resource(cx) {
        ("", "namespaces") => object["status"]["phase"] = "Terminating".into(),
        DEFINITIONS => custom::mark_terminating(object, cx.now),
        _ => {}
    }
}

/// Whether a deleted object has to wait for something besides its finalizers.
pub(crate) fn holds_back(cx: &RequestContext, object: &Value) -> bool {
    resource(cx) == ("", "namespaces")
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
}

/// Makes a durable write take effect before it is answered.
pub(crate) fn after_write(cx: &RequestContext) {
    if resource(cx) == DEFINITIONS {
        cx.cluster.refresh_resources();
    }
}

/// Makes a new object take effect before its creation is answered. What fails here is done by
/// housekeeping later.
pub(crate) async fn after_create(cx: &RequestContext, key: &str) {
    match resource(cx) {
        DEFINITIONS => {
            if let Err(error) = custom::establish(&cx.cluster, key).await {
                tracing::warn!(cluster = cx.cluster.name(), name = key, %error, "cannot establish a definition");
            }
        }
        ("", "resourcequotas") => quotas::recount(&cx.cluster, key).await,
        _ => {}
    }
}

/// Objects are created where they can stay: not in a namespace, nor of a kind, that is being deleted.
pub(crate) fn check_place(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    check_definition(cx, object)?;
    check_namespace(cx, object)
}

fn check_definition(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    if !cx.resource.is_custom() {
        return Ok(());
    }
    let key = custom::key(&cx.resource.group, &cx.resource.plural);
    match cx.cluster.keyspace().get(&key) {
        Some(entry) if entry.value.is_deleting() => {
            let name = crate::metadata::text(object, "name");
            let why = "create not allowed while custom resource definition is terminating";
            Err(ApiError::forbidden(cx.resource.subject(), name, why))
        }
        Some(_) => Ok(()),
        None => Err(ApiError::no_such_resource()),
    }
}

fn check_namespace(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let Some(namespace) = cx.namespace.as_deref().filter(|_| cx.resource.namespaced) else {
        return Ok(());
    };
    let Some(entry) = cx
        .cluster
        .keyspace()
        .get(&format!("core/namespaces/{namespace}"))
    else {
        return Err(ApiError::not_found(
            Subject {
                group: "",
                resource: "namespaces",
            },
            namespace,
        ));
    };
    if !entry.value.is_deleting() {
        return Ok(());
    }
    let name = crate::metadata::text(object, "name");
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut error = ApiError::forbidden(cx.resource.subject(), name, &why);
    if let Some(details) = &mut error.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        });
    }
    Err(error)
}
