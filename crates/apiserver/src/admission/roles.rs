//! Roles and bindings: nobody gives what they do not have, unless they may `escalate` or `bind`.

use serde_json::Value;

use crate::access::{Attributes, PolicyRule, RoleRef, is_all_powerful, is_master, refusal};
use crate::context::RequestContext;
use crate::metadata;
use crate::status::ApiError;

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a role or a binding before it is written; `live` is what it replaces.
pub(super) fn check(
    cx: &RequestContext,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    if is_master(&cx.identity) || live.is_some_and(|live| is_housekeeping(object, live)) {
        return Ok(());
    }
    match &*cx.resource.plural {
        "roles" | "clusterroles" => check_role(cx, object, live),
        "rolebindings" | "clusterrolebindings" => check_binding(cx, object),
        _ => Ok(()),
    }
}

/// Whether a change concerns only what garbage collection works with.
fn is_housekeeping(object: &Value, live: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        let fields = metadata::of(&mut value);
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            fields.remove(field);
        }
        value
    };
    without(object) == without(live)
}

fn may(cx: &RequestContext, verb: &str, resource: &str, name: &str) -> bool {
    let wanted = Attributes {
        verb,
        group: GROUP,
        resource,
        name,
        namespace: cx.namespace(),
        ..Attributes::default()
    };
    cx.cluster.authorizer().allows(&cx.identity, &wanted)
}

fn check_role(cx: &RequestContext, object: &Value, live: Option<&Value>) -> Result<(), ApiError> {
    let asked = cx.name.as_deref().unwrap_or_default();
    if may(cx, "escalate", &cx.resource.plural, asked) {
        return Ok(());
    }
    let rules = PolicyRule::list(&object["rules"]);
    let name = metadata::text(object, "name");
    let forbidden = |why: &str| ApiError::forbidden(cx.resource.subject(), name, why);
    let own = own_rules(cx);
    if let Some(why) = refusal(&cx.identity, &own, &rules) {
        return Err(forbidden(&why));
    }
    // What is gathered from other roles may be anything, now or later.
    let gathers = aggregates(object) || live.is_some_and(aggregates);
    if gathers && !is_all_powerful(&own) {
        return Err(forbidden(
            "must have cluster-admin privileges to use the aggregationRule",
        ));
    }
    Ok(())
}

/// What the caller may do, as a copy: others go on asking while it is compared.
fn own_rules(cx: &RequestContext) -> Vec<PolicyRule> {
    cx.cluster.authorizer().with(|rbac| {
        let rules = rbac.rules_for(&cx.identity, cx.namespace());
        rules.into_iter().cloned().collect()
    })
}

fn aggregates(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"]
        .as_array()
        .is_some_and(|selectors| !selectors.is_empty())
}

fn check_binding(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let role = RoleRef::from_json(&object["roleRef"]);
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        kind => {
            return Err(ApiError::unexplained(format!(
                "unsupported role reference kind: {kind:?}"
            )));
        }
    };
    if may(cx, "bind", resource, &role.name) {
        return Ok(());
    }
    let name = metadata::text(object, "name");
    let rules = cx.cluster.authorizer().with(|rbac| {
        let rules = rbac.referenced(&role, cx.namespace());
        rules.map(<[PolicyRule]>::to_vec)
    });
    // Kubernetes names the resource of the request here, not that of the role.
    let rules = rules.ok_or_else(|| ApiError::not_found(cx.resource.subject(), &role.name))?;
    match refusal(&cx.identity, &own_rules(cx), &rules) {
        Some(why) => Err(ApiError::forbidden(cx.resource.subject(), name, &why)),
        None => Ok(()),
    }
}
