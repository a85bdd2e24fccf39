//! Whether somebody may do what a request asks for.

use crate::access::{Attributes, Identity};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::params::Query;
use crate::request::{ResourcePath, Verb};
use crate::status::{ApiError, Subject};

/// Checks a request for an object or a collection.
pub(crate) fn resource(
    cluster: &Cluster,
    identity: &Identity,
    verb: Verb,
    target: &ResourcePath,
    query: &Query,
) -> Result<(), ApiError> {
    let namespace = if target.is_namespace() {
        target.name.as_deref()
    } else {
        target.namespace.as_deref()
    };
    let name = match &target.name {
        Some(name) => name,
        None => selected_name(verb, query),
    };
    let wanted = Attributes {
        verb: verb.as_str(),
        group: &target.group,
        resource: &target.resource,
        subresource: target.subresource.as_deref().unwrap_or(""),
        name,
        namespace: namespace.unwrap_or(""),
        path: "",
    };
    decide(cluster, identity, &wanted)
}

/// Who lists or watches one object by its name needs no more than permission for that one.
fn selected_name(verb: Verb, query: &Query) -> &str {
    if !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
        return "";
    }
    let selector = query.get("fieldSelector").unwrap_or_default();
    let mut names = selector.split(',').filter_map(|term| {
        let value = term.strip_prefix("metadata.name=")?;
        Some(value.strip_prefix('=').unwrap_or(value))
    });
    // What is escaped is no name.
    names
        .rfind(|name| !name.contains(['\\', '/', '%']))
        .unwrap_or_default()
}

/// Checks that somebody who updates or applies what is not there may create it.
pub(crate) fn creation(cx: &RequestContext) -> Result<(), ApiError> {
    if cx.verb == Verb::Create {
        return Ok(());
    }
    let wanted = Attributes {
        verb: Verb::Create.as_str(),
        group: &cx.resource.group,
        resource: &cx.resource.plural,
        name: cx.name.as_deref().unwrap_or_default(),
        namespace: cx.namespace(),
        ..Attributes::default()
    };
    decide(&cx.cluster, &cx.identity, &wanted)
}

/// Checks a request for a path that is not a resource.
pub(crate) fn path(
    cluster: &Cluster,
    identity: &Identity,
    verb: &str,
    path: &str,
) -> Result<(), ApiError> {
    let wanted = Attributes {
        verb,
        path,
        ..Attributes::default()
    };
    if cluster.authorizer().allows(identity, &wanted) {
        return Ok(());
    }
    Err(ApiError::forbidden_path(format!(
        "forbidden: {}",
        wanted.refusal(&identity.user)
    )))
}

fn decide(cluster: &Cluster, identity: &Identity, wanted: &Attributes<'_>) -> Result<(), ApiError> {
    if cluster.authorizer().allows(identity, wanted) {
        return Ok(());
    }
    let subject = Subject {
        group: wanted.group,
        resource: wanted.resource,
    };
    Err(ApiError::forbidden(
        subject,
        wanted.name,
        &wanted.refusal(&identity.user),
    ))
}
