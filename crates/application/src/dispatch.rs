//! What to do with one object of an application on its cluster: create it, patch it, leave it, or say why not.
//!
//! The patch is that of a client-side apply: it sets what the manifest has and removes what the manifest had when it was
//! applied last; what others added stays. An object belongs to the application that its labels name.

use bellwether_api::oam::names::{annotation, label};
use bellwether_json::path::str_at;
use bellwether_patch::three_way::{merge_patch, strategic_patch};
use serde_json::{Value, json};

use crate::path;
use crate::resource_policy::{Occasion, ResourcePolicies, UpdateOperation};

/// What to do with an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// It is created.
    Create(Value),
    /// It is changed by a merge patch.
    Merge(Value),
    /// It is changed by a strategic merge patch.
    Strategic(Value),
    /// It is replaced.
    Replace(Value),
    /// It is deleted, and created again when it is gone.
    Recreate,
    /// It is as it should be, or nobody may change it.
    Leave,
}

/// Why an object cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// It belongs to another application.
    #[error(
        "{object} belongs to application {owner}; rename it, or share it by a shared-resource policy in both"
    )]
    OtherOwner {
        /// The object.
        object: String,
        /// The application.
        owner: String,
    },
    /// It exists, and belongs to nobody.
    #[error(
        "{object} exists and belongs to no application; take it with a take-over policy, or rename it"
    )]
    Unowned {
        /// The object.
        object: String,
    },
    /// It is read-only, and does not exist.
    #[error("{object} is read-only by policy and does not exist; create it, or remove the policy")]
    ReadOnlyMissing {
        /// The object.
        object: String,
    },
    /// A patch cannot be made.
    #[error("{object}: {reason}")]
    Patch {
        /// The object.
        object: String,
        /// Why.
        reason: String,
    },
}

/// Everything that a decision about one object looks at.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The object as it should be.
    pub manifest: &'a Value,
    /// The object as it was applied last, if that is recorded.
    pub last_applied: Option<&'a Value>,
    /// The object on the cluster.
    pub live: Option<&'a Value>,
    /// The policies of the application.
    pub policies: &'a ResourcePolicies,
    /// Why it is applied.
    pub occasion: Occasion,
}

/// How people name an object.
pub fn describe(object: &Value) -> String {
    let text = |path: &[&str]| str_at(object, path).unwrap_or_default();
    let namespace = text(&["metadata", "namespace"]);
    let name = text(&["metadata", "name"]);
    let kind = text(&["kind"]);
    if namespace.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {namespace}/{name}")
    }
}

/// What to do with an object.
pub fn decide(request: Request<'_>) -> Result<Action, DispatchError> {
    let Request {
        manifest,
        live,
        policies,
        ..
    } = request;
    if policies.read_only.selects(manifest) {
        let object = describe(manifest);
        return if live.is_some() {
            Ok(Action::Leave)
        } else {
            Err(DispatchError::ReadOnlyMissing { object })
        };
    }
    let keeps_everything = policies.apply_once.keeps_everything();
    let Some(live) = live else {
        // What others deleted stays deleted until the application changes.
        let kept = policies
            .apply_once
            .kept_fields(manifest, request.occasion)
            .is_some()
            || keeps_everything;
        let stays_deleted = kept && request.occasion == Occasion::StateKeep;
        return Ok(if stays_deleted {
            Action::Leave
        } else {
            Action::Create(shared(manifest, None, policies))
        });
    };
    check_owner(manifest, live, policies)?;
    if owner(live) != owner(manifest)
        && policies.shared.selects(manifest)
        && !owner(live).1.is_empty()
    {
        // The first application owns what is shared; others are listed.
        return Ok(share_patch(manifest, live));
    }
    if keeps_everything && request.occasion == Occasion::StateKeep {
        return Ok(Action::Leave);
    }
    let mut wanted = shared(manifest, Some(live), policies);
    if let Some(kept) = policies.apply_once.kept_fields(manifest, request.occasion) {
        keep_fields(&mut wanted, live, kept);
    }
    update(&wanted, request, live)
}

fn owner(object: &Value) -> (&str, &str) {
    let text = |key| str_at(object, &["metadata", "labels", key]).unwrap_or_default();
    (text(label::APP_NAMESPACE), text(label::APP_NAME))
}

fn check_owner(
    manifest: &Value,
    live: &Value,
    policies: &ResourcePolicies,
) -> Result<(), DispatchError> {
    let (namespace, name) = owner(live);
    let object = describe(manifest);
    if (namespace, name) == owner(manifest) {
        return Ok(());
    }
    if name.is_empty() {
        return if policies.take_over.selects(manifest) {
            Ok(())
        } else {
            Err(DispatchError::Unowned { object })
        };
    }
    let is_shared = str_at(live, &["metadata", "annotations", annotation::SHARED_BY]).is_some();
    if policies.shared.selects(manifest) && is_shared {
        return Ok(());
    }
    Err(DispatchError::OtherOwner {
        object,
        owner: format!("{namespace}/{name}"),
    })
}

/// The manifest with the list of applications that share it, where they do.
fn shared(manifest: &Value, live: Option<&Value>, policies: &ResourcePolicies) -> Value {
    let mut wanted = manifest.clone();
    if policies.shared.selects(manifest) {
        wanted["metadata"]["annotations"][annotation::SHARED_BY] = sharers(manifest, live).into();
    }
    wanted
}

fn sharers(manifest: &Value, live: Option<&Value>) -> String {
    let (namespace, name) = owner(manifest);
    let own = format!("{namespace}/{name}");
    let known =
        live.and_then(|live| str_at(live, &["metadata", "annotations", annotation::SHARED_BY]));
    let mut all: Vec<&str> = known
        .unwrap_or_default()
        .split(',')
        .filter(|entry| !entry.is_empty())
        .collect();
    if !all.contains(&own.as_str()) {
        all.push(&own);
    }
    all.join(",")
}

fn share_patch(manifest: &Value, live: &Value) -> Action {
    let list = sharers(manifest, Some(live));
    if str_at(live, &["metadata", "annotations", annotation::SHARED_BY]) == Some(&list) {
        return Action::Leave;
    }
    Action::Merge(json!({"metadata": {"annotations": {annotation::SHARED_BY: list}}}))
}

/// Fields keep the values that they have on the cluster; `*` is the whole object.
fn keep_fields(wanted: &mut Value, live: &Value, kept: &[String]) {
    for field in kept {
        if field == "*" {
            *wanted = live.clone();
            return;
        }
        let Ok(steps) = path::parse(field) else {
            continue;
        };
        if let Some(value) = path::find(live, &steps) {
            path::set(wanted, &steps, value.clone());
        }
    }
}

fn update(wanted: &Value, request: Request<'_>, live: &Value) -> Result<Action, DispatchError> {
    let failed = |reason: String| DispatchError::Patch {
        object: describe(wanted),
        reason,
    };
    let rule = request
        .policies
        .update
        .rules
        .iter()
        .find(|rule| rule.selector.matches(wanted));
    if let Some(rule) = rule {
        for field in &rule.strategy.recreate_fields {
            let steps = path::parse(field).map_err(failed)?;
            if path::find(live, &steps) != path::find(wanted, &steps) {
                return Ok(Action::Recreate);
            }
        }
        if rule.strategy.op == UpdateOperation::Replace {
            return Ok(replacement(wanted, live));
        }
    }
    let empty = json!({});
    let original = request.last_applied.unwrap_or(&empty);
    let api_version = wanted["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = wanted["kind"].as_str().unwrap_or_default();
    let resource = bellwether_kinds::find_kind(group, version, kind);
    let patch = if let Some(resource) = resource {
        let patch = strategic_patch(original, wanted, live, &resource.schema());
        patch.map_err(|error| failed(error.to_string()))?
    } else {
        let patch = merge_patch(original, wanted, live);
        patch.map_err(|error| failed(error.to_string()))?
    };
    let is_strategic = resource.is_some();
    Ok(
        match (
            patch.as_object().is_none_or(serde_json::Map::is_empty),
            is_strategic,
        ) {
            (true, _) => Action::Leave,
            (false, true) => Action::Strategic(patch),
            (false, false) => Action::Merge(patch),
        },
    )
}

/// The object as a whole, with what only the server can know.
fn replacement(wanted: &Value, live: &Value) -> Action {
    let mut whole = wanted.clone();
    whole["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    let mut bare = live.clone();
    for field in ["uid", "creationTimestamp", "generation", "managedFields"] {
        bellwether_json::path::remove(&mut bare, &["metadata", field]);
    }
    bellwether_json::path::remove(&mut bare, &["status"]);
    if bare == whole {
        Action::Leave
    } else {
        Action::Replace(whole)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::oam::Application;

    use super::*;

    fn object(app: &str, data: &Value) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "n", "labels": {}}, "data": data});
        if !app.is_empty() {
            object["metadata"]["labels"] = json!({"app.oam.dev/name": app, "app.oam.dev/namespace": "n", "app.oam.dev/component": "web"});
        }
        object
    }

    fn policies(policies: &Value) -> ResourcePolicies {
        let application: Application = serde_json::from_value(
            json!({"metadata": {"name": "shop"}, "spec": {"components": [], "policies": policies}}),
        )
        .unwrap();
        ResourcePolicies::of(&application).unwrap()
    }

    fn of_type(kind: &str, rest: Value) -> Value {
        let mut rule = json!({"selector": {"componentNames": ["web"]}});
        if !rest.is_null() {
            rule["strategy"] = rest;
        }
        json!([{"name": "p", "type": kind, "properties": {"enable": true, "rules": [rule]}}])
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(
        policy: Value,
        live: Option<Value>,
        last: Option<Value>,
        occasion: Occasion,
        expected: Result<Action, &str>,
    ) {
        let manifest = object("shop", &json!({"a": "1"}));
        let policies = policies(&policy);
        let request = Request {
            manifest: &manifest,
            last_applied: last.as_ref(),
            live: live.as_ref(),
            policies: &policies,
            occasion,
        };
        match (decide(request), expected) {
            (Ok(action), Ok(expected)) => assert_eq!(action, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    #[test]
    fn objects_are_created_patched_and_left() {
        let wanted = object("shop", &json!({"a": "1"}));
        let (update, none) = (Occasion::Update, json!([]));
        check(
            none.clone(),
            None,
            None,
            update,
            Ok(Action::Create(wanted.clone())),
        );
        check(
            none.clone(),
            Some(wanted.clone()),
            None,
            update,
            Ok(Action::Leave),
        );
        let drifted = object("shop", &json!({"a": "9", "foreign": "x"}));
        let patch = json!({"data": {"a": "1"}});
        check(
            none.clone(),
            Some(drifted.clone()),
            None,
            Occasion::StateKeep,
            Ok(Action::Strategic(patch)),
        );
        let before = object("shop", &json!({"a": "9", "old": "x"}));
        let both = object("shop", &json!({"a": "1", "old": "x", "foreign": "y"}));
        check(
            none,
            Some(both),
            Some(before),
            update,
            Ok(Action::Strategic(json!({"data": {"old": null}}))),
        );
    }

    #[test]
    fn objects_of_others_are_not_touched() {
        let update = Occasion::Update;
        let other = Some(object("other", &json!({})));
        check(
            json!([]),
            other,
            None,
            update,
            Err("belongs to application n/other"),
        );
        let unowned = Some(object("", &json!({"a": "1"})));
        check(
            json!([]),
            unowned.clone(),
            None,
            update,
            Err("belongs to no application"),
        );
        let labels = json!({"metadata": {"labels": {"app.oam.dev/name": "shop", "app.oam.dev/namespace": "n", "app.oam.dev/component": "web"}}});
        check(
            of_type("take-over", Value::Null),
            unowned,
            None,
            update,
            Ok(Action::Strategic(labels)),
        );
        check(
            of_type("read-only", Value::Null),
            None,
            None,
            update,
            Err("read-only"),
        );
        check(
            of_type("read-only", Value::Null),
            Some(object("", &json!({}))),
            None,
            update,
            Ok(Action::Leave),
        );
    }

    #[test]
    fn shared_objects_stay_with_the_first_application() {
        let mut live = object("other", &json!({"a": "theirs"}));
        live["metadata"]["annotations"] = json!({"app.oam.dev/shared-by": "n/other"});
        let patch =
            json!({"metadata": {"annotations": {"app.oam.dev/shared-by": "n/other,n/shop"}}});
        let policy = of_type("shared-resource", Value::Null);
        check(
            policy,
            Some(live),
            None,
            Occasion::Update,
            Ok(Action::Merge(patch)),
        );
    }

    #[test]
    fn apply_once_keeps_what_others_changed() {
        let whole = json!([{"name": "p", "type": "apply-once", "properties": {"enable": true}}]);
        let drifted = Some(object("shop", &json!({"a": "9"})));
        let patched = Action::Strategic(json!({"data": {"a": "1"}}));
        check(
            whole.clone(),
            drifted.clone(),
            None,
            Occasion::StateKeep,
            Ok(Action::Leave),
        );
        check(
            whole.clone(),
            drifted.clone(),
            None,
            Occasion::Update,
            Ok(patched.clone()),
        );
        check(whole, None, None, Occasion::StateKeep, Ok(Action::Leave));
        let rule =
            |affect: &str| of_type("apply-once", json!({"path": ["data.a"], "affect": affect}));
        check(
            rule(""),
            drifted.clone(),
            None,
            Occasion::Update,
            Ok(Action::Leave),
        );
        check(
            rule("onStateKeep"),
            drifted.clone(),
            None,
            Occasion::Update,
            Ok(patched.clone()),
        );
        check(
            rule("onStateKeep"),
            drifted.clone(),
            None,
            Occasion::StateKeep,
            Ok(Action::Leave),
        );
        check(
            rule("onUpdate"),
            drifted,
            None,
            Occasion::StateKeep,
            Ok(patched),
        );
        check(
            rule("onStateKeep"),
            None,
            None,
            Occasion::StateKeep,
            Ok(Action::Leave),
        );
        let created = Action::Create(object("shop", &json!({"a": "1"})));
        check(
            rule("onUpdate"),
            None,
            None,
            Occasion::StateKeep,
            Ok(created),
        );
    }

    #[test]
    fn resource_update_replaces_and_recreates() {
        let drifted = Some(object("shop", &json!({"a": "9", "foreign": "x"})));
        let mut whole = object("shop", &json!({"a": "1"}));
        whole["metadata"]["resourceVersion"] = Value::Null;
        check(
            of_type("resource-update", json!({"op": "replace"})),
            drifted.clone(),
            None,
            Occasion::Update,
            Ok(Action::Replace(whole)),
        );
        let recreate = of_type("resource-update", json!({"recreateFields": ["data.a"]}));
        check(
            recreate,
            drifted,
            None,
            Occasion::Update,
            Ok(Action::Recreate),
        );
    }
}
