//! Works: which manifests are refused, and in whose name they may be applied.
//!
//! These kinds are served by definitions; on another hub a webhook checks the same.

use bellwether_api::Kind as _;
use bellwether_api::work::{GROUP, ManifestWork, ManifestWorkReplicaSet};
use bellwether_work::admission;
use serde_json::Value;

use crate::access::Attributes;
use crate::context::RequestContext;
use crate::status::ApiError;

/// Group of the kinds.
pub(super) const KINDS: &str = GROUP;

/// Checks an object of the group; `live` is what it replaces.
pub(super) fn check(
    cx: &RequestContext,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let plural = &*cx.resource.plural;
    // Anyone who lets go of an object that is being deleted is not asked what was in it.
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Ok(());
    }
    if plural == ManifestWorkReplicaSet::NAMES.plural {
        return template(cx, object, live);
    }
    if plural != ManifestWork::NAMES.plural {
        return Ok(());
    }
    if live.is_none_or(|live| live["spec"] != object["spec"]) {
        admission::check_manifest_work(object).map_err(ApiError::bad_request)?;
        warn(cx, &object["spec"]);
    }
    executor(cx, object, live)
}

/// Warns of rules that can never hold.
fn warn(cx: &RequestContext, spec: &Value) {
    for warning in admission::warnings(spec) {
        cx.warn(warning);
    }
}

/// A template has whole manifests; how large they are together does not matter, since works are
/// split.
fn template(cx: &RequestContext, object: &Value, live: Option<&Value>) -> Result<(), ApiError> {
    let template = &object["spec"]["manifestWorkTemplate"];
    admission::check_rules(template).map_err(ApiError::bad_request)?;
    if live.is_none_or(|live| live["spec"] != object["spec"]) {
        warn(cx, template);
    }
    let Some(manifests) = template.pointer("/workload/manifests") else {
        return Ok(());
    };
    let manifests = manifests.as_array().map_or(&[][..], Vec::as_slice);
    admission::check_manifests(manifests, usize::MAX).map_err(ApiError::bad_request)
}

/// To have a work applied in somebody's name takes a right of its own.
fn executor(cx: &RequestContext, object: &Value, live: Option<&Value>) -> Result<(), ApiError> {
    let changed = admission::changed_executor(object, live).map_err(ApiError::bad_request)?;
    let Some(account) = changed else {
        return Ok(());
    };
    let namespace = cx.namespace.as_deref().unwrap_or_default();
    let name = format!("system:serviceaccount:{}:{}", account.0, account.1);
    let wanted = Attributes {
        verb: "execute-as",
        group: GROUP,
        resource: ManifestWork::NAMES.plural,
        name: &name,
        namespace,
        ..Attributes::default()
    };
    if cx
        .cluster
        .authorizer()
        .decide(&cx.identity, &wanted)
        .allowed
    {
        return Ok(());
    }
    let user = &cx.identity.user;
    let denial = admission::executor_denial(user, &account, namespace);
    Err(ApiError::bad_request(denial))
}
