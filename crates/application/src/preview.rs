//! What delivering an application would change, object by object, before anything is touched.

use bellwether_api::oam::names::{annotation, label};
use bellwether_apply::Step;
use bellwether_apply::diff::{Difference, diff};
use bellwether_json::path::str_at;
use bellwether_patch::strategic::{self, StrategicError};
use serde_json::Value;

use crate::dispatch::{self, Request, describe};

/// What would happen to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It would be created.
    Create,
    /// It would change in these fields.
    Update(Vec<Difference>),
    /// It would be deleted and created again.
    Recreate,
    /// It would be deleted.
    Delete,
    /// It would stay as it is.
    Keep,
    /// It cannot be applied.
    Refused(String),
}

impl Outcome {
    /// The word that reports use.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update(_) => "update",
            Self::Recreate => "recreate",
            Self::Delete => "delete",
            Self::Keep => "keep",
            Self::Refused(_) => "refused",
        }
    }
}

/// What would happen to an object on the hub.
pub fn preview(request: Request<'_>) -> Outcome {
    let step = match dispatch::decide(request) {
        Ok(step) => step,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let Some(live) = request.live else {
        return match step {
            Step::Create(_) => Outcome::Create,
            _ => Outcome::Keep,
        };
    };
    let (patch, is_strategic) = match step {
        Step::Read | Step::Leave => return Outcome::Keep,
        Step::Create(_) => return Outcome::Create,
        Step::Recreate { .. } => return Outcome::Recreate,
        Step::Delete { .. } => return Outcome::Delete,
        Step::Replace(whole) => return changed(live, whole),
        Step::Apply { configuration, .. } => (configuration, false),
        Step::Own(patch) => (patch, false),
        Step::Patch(patch) => (patch.content, patch.is_strategic),
    };
    let after = if is_strategic {
        match patched(live, patch) {
            Some(Ok(after)) => after,
            Some(Err(error)) => return Outcome::Refused(error.to_string()),
            None => return Outcome::Keep,
        }
    } else {
        let mut after = live.clone();
        if bellwether_patch::merge::apply(&mut after, patch).is_err() {
            return Outcome::Refused(format!("{} is too deep", describe(live)));
        }
        after
    };
    changed(live, after)
}

/// What would happen to an object whose present state is only known by what was sent to its cluster.
pub fn preview_sent(sent: Option<&Value>, manifest: &Value) -> Outcome {
    match sent {
        None => Outcome::Create,
        Some(sent) => changed(sent, manifest.clone()),
    }
}

/// Labels that change with every revision say nothing about the object.
const OF_THE_REVISION: [&str; 2] = [label::APP_REVISION, label::APP_REVISION_HASH];
/// Labels and annotations that objects get when they are applied say nothing about what is rendered.
const OF_THE_HUB: [(&str, &str); 2] = [
    ("labels", label::RENDER_HASH),
    ("annotations", annotation::VELA_VERSION),
];
/// What the server writes.
const OF_THE_SERVER: [&str; 5] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
];

fn changed(before: &Value, mut after: Value) -> Outcome {
    for field in OF_THE_SERVER {
        if let Some(value) = before["metadata"].get(field) {
            after["metadata"][field] = value.clone();
        }
    }
    if let (Some(status), None) = (before.get("status"), after.get("status")) {
        after["status"] = status.clone();
    }
    // What was applied last is the object itself, once more.
    let path = ["metadata", "annotations", annotation::APP_LAST_APPLIED];
    match str_at(before, &path) {
        Some(applied) if str_at(&after, &path).is_some() => {
            after["metadata"]["annotations"][annotation::APP_LAST_APPLIED] = applied.into();
        }
        _ => drop(bellwether_json::path::remove_and_prune(&mut after, &path)),
    }
    for key in OF_THE_REVISION {
        let known = &before["metadata"]["labels"][key];
        if !known.is_null() && after["metadata"]["labels"][key].is_string() {
            after["metadata"]["labels"][key] = known.clone();
        }
    }
    for (field, key) in OF_THE_HUB {
        let known = &before["metadata"][field][key];
        if known.is_string() {
            after["metadata"][field][key] = known.clone();
        }
    }
    match diff(before, &after) {
        differences if differences.is_empty() => Outcome::Keep,
        differences => Outcome::Update(differences),
    }
}

/// An object after a strategic merge patch; none if its kind has no schema for that.
fn patched(object: &Value, patch: Value) -> Option<Result<Value, StrategicError>> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let resource = bellwether_kinds::find_kind(group, version, kind)?;
    Some(strategic::apply(object.clone(), patch, &resource.schema()))
}

#[cfg(test)]
mod tests {
    use bellwether_api::oam::Application;
    use serde_json::json;

    use super::*;
    use crate::resource_policy::{Occasion, ResourcePolicies};

    fn object(value: &str, revision: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "n", "labels": {
                "app.oam.dev/name": "shop", "app.oam.dev/namespace": "n", "app.oam.dev/appRevision": revision}},
            "data": {"key": value}})
    }

    #[track_caller]
    fn check(live: Option<&Value>, expected: &str) {
        let application: Application =
            serde_json::from_value(json!({"spec": {"components": []}})).unwrap();
        let manifest = object("new", "shop-v2");
        let outcome = preview(Request {
            manifest: &manifest,
            last_applied: None,
            live,
            policies: &ResourcePolicies::of(&application).unwrap(),
            occasion: Occasion::Update,
        });
        let text = match &outcome {
            Outcome::Update(differences) => differences[0].to_string(),
            Outcome::Refused(why) => why.clone(),
            other => other.as_str().to_owned(),
        };
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn changes_are_named_by_field_and_revisions_are_none() {
        check(None, "create");
        check(
            Some(&object("old", "shop-v1")),
            "data.key: \"old\" -> \"new\"",
        );
        check(Some(&object("new", "shop-v1")), "keep");
        let mut foreign = object("old", "other-v1");
        foreign["metadata"]["labels"]["app.oam.dev/name"] = "other".into();
        check(Some(&foreign), "belongs to application n/other");
    }

    #[test]
    fn objects_of_members_are_compared_with_what_was_sent() {
        let (old, new) = (object("old", "v1"), object("new", "v2"));
        assert_eq!(preview_sent(None, &new), Outcome::Create);
        assert_eq!(preview_sent(Some(&new), &new), Outcome::Keep);
        let mut applied = new.clone();
        applied["metadata"]["labels"]["oam.dev/render-hash"] = "1".into();
        applied["metadata"]["annotations"] = json!({"oam.dev/kubevela-version": "1"});
        assert_eq!(preview_sent(Some(&applied), &new), Outcome::Keep);
        assert_eq!(preview_sent(Some(&old), &new).as_str(), "update");
    }
}
