//! How one object of an application is treated on its cluster: created, patched, left alone, or not touched.
//!
//! Policies of the application are turned into what the shared engine (`bellwether_apply`) understands. The patch is that of a
//! client-side apply: it sets what the manifest has and removes what the manifest had when it was applied last; what others added stays.
//! An object belongs to the application that its labels name.

use std::collections::BTreeMap;

use bellwether_api::oam::names::{annotation, label};
use bellwether_apply::manifest::ManifestError;
use bellwether_apply::three_way::ThreeWay;
use bellwether_apply::{
    ApplyError, Drift, Live, Manifest, Ownership, SharedList, Step, Strategy, Target, plan,
};
use bellwether_json::path::str_at;
use serde_json::Value;

use crate::resource_policy::{Occasion, ResourcePolicies, UpdateOperation};

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
    /// It is no object that a server could take.
    #[error("{object}: {reason}")]
    Manifest {
        /// The object.
        object: String,
        /// Why.
        reason: ManifestError,
    },
    /// It cannot be decided what to write.
    #[error("{object}: {reason}")]
    Plan {
        /// The object.
        object: String,
        /// Why.
        reason: ApplyError,
    },
}

/// An application as the owner of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppOwner {
    labels: BTreeMap<String, String>,
    list: SharedList<'static>,
}

impl AppOwner {
    /// The application of that name.
    pub fn new(namespace: &str, name: &str) -> Self {
        let labels = [(label::APP_NAMESPACE, namespace), (label::APP_NAME, name)];
        Self {
            labels: labels
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            list: SharedList {
                annotation: annotation::SHARED_BY,
                own: format!("{namespace}/{name}"),
                label_keys: [label::APP_NAMESPACE, label::APP_NAME],
            },
        }
    }

    /// The application that a manifest belongs to.
    fn of(manifest: &Value) -> Self {
        let (namespace, name) = owner(manifest);
        Self::new(namespace, name)
    }

    /// By what objects are known to be its own that it no longer wants.
    pub fn ownership(&self) -> Ownership<'_> {
        Ownership::Shared {
            labels: &self.labels,
            adopt: false,
            list: &self.list,
            joins: false,
        }
    }
}

/// How an object is treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment<'a> {
    /// How it is written.
    pub strategy: Strategy<'a>,
    /// What happens to changes of others.
    pub drift: Drift<'a>,
    /// Whether an object that belongs to nobody is taken.
    pub adopts: bool,
    /// Whether other applications may have it too.
    pub is_shared: bool,
    /// Whether this very manifest was applied before.
    pub applied_before: bool,
}

impl<'a> Treatment<'a> {
    /// How the policies of an application have an object treated. `recorded` is the object as it was applied last.
    pub fn new(
        manifest: &Value,
        recorded: Option<&'a Value>,
        policies: &'a ResourcePolicies,
        occasion: Occasion,
    ) -> Self {
        let is_kept_up = occasion == Occasion::StateKeep;
        Self {
            strategy: strategy(manifest, recorded, policies),
            drift: drift(manifest, policies, occasion),
            // An object that was applied and has lost its labels is still what was applied.
            adopts: is_kept_up || policies.take_over.selects(manifest),
            is_shared: policies.shared.selects(manifest),
            applied_before: is_kept_up,
        }
    }

    /// By what the object is known to belong to an application.
    pub fn ownership<'o>(&self, owner: &'o AppOwner) -> Ownership<'o> {
        if self.is_shared {
            return Ownership::Shared {
                labels: &owner.labels,
                adopt: self.adopts,
                list: &owner.list,
                joins: true,
            };
        }
        Ownership::Labels {
            labels: &owner.labels,
            adopt: self.adopts,
        }
    }

    /// What the engine is asked for.
    pub fn target<'t>(&'t self, manifest: &'t Manifest, owner: &'t AppOwner) -> Target<'t> {
        Target {
            manifest,
            strategy: &self.strategy,
            drift: self.drift,
            ownership: self.ownership(owner),
            baseline: None,
            applied_before: self.applied_before,
        }
    }
}

fn strategy<'a>(
    manifest: &Value,
    recorded: Option<&'a Value>,
    policies: &'a ResourcePolicies,
) -> Strategy<'a> {
    if policies.read_only.selects(manifest) {
        return Strategy::ReadOnly;
    }
    let rules = &policies.update.rules;
    let rule = rules.iter().find(|rule| rule.selector.matches(manifest));
    let settings = rule.map(|rule| &rule.strategy);
    // These may be as large as an object can be: what was applied last is only in the tracker.
    let is_data = ["ConfigMap", "Secret", "CustomResourceDefinition"]
        .iter()
        .any(|kind| manifest["kind"] == *kind);
    Strategy::ThreeWay(ThreeWay {
        annotation: (!is_data).then_some(annotation::APP_LAST_APPLIED),
        recorded,
        fallback: Some(annotation::KUBECTL_LAST_APPLIED),
        recreate: settings.map_or(&[], |settings| settings.recreate_fields.as_slice()),
        replace: settings.is_some_and(|settings| settings.op == UpdateOperation::Replace),
    })
}

fn drift<'a>(manifest: &Value, policies: &'a ResourcePolicies, occasion: Occasion) -> Drift<'a> {
    let apply_once = &policies.apply_once;
    if apply_once.keeps_everything() && occasion == Occasion::StateKeep {
        return Drift::KeepDeleted;
    }
    match apply_once.kept_fields(manifest, occasion) {
        Some(paths) => Drift::KeepFields(paths),
        None => Drift::Undo,
    }
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

/// Fields of ConfigMaps and Secrets whose keys stay when a later version no longer has them.
const KEPT_DATA: [&str; 3] = ["data", "binaryData", "stringData"];

/// What is compared with the next version of an object that was applied. What it no longer has is removed, except for keys of
/// ConfigMaps and Secrets: like KubeVela, which records nothing of them, we leave those.
pub fn compared(mut recorded: Value) -> Value {
    let is_kept = recorded["apiVersion"] == "v1"
        && (recorded["kind"] == "ConfigMap" || recorded["kind"] == "Secret");
    if let (true, Some(fields)) = (is_kept, recorded.as_object_mut()) {
        fields.retain(|name, _| !KEPT_DATA.contains(&name.as_str()));
    }
    recorded
}

/// Returns true if a live object came from another application that shared it and is gone, and was not written since: it has
/// our labels, but is of a revision of the other one.
pub fn is_handed_over(manifest: &Value, live: &Value) -> bool {
    let text = |key| str_at(live, &["metadata", "labels", key]).unwrap_or_default();
    let writer = text(label::APP_REVISION).rsplit_once("-v");
    owner(manifest) == owner(live) && writer.is_some_and(|(name, _)| name != text(label::APP_NAME))
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

/// The manifest of an object, as the engine reads it.
pub fn read(object: &Value) -> Result<Manifest, DispatchError> {
    Manifest::read(0, object).map_err(|reason| DispatchError::Manifest {
        object: describe(object),
        reason,
    })
}

/// Why an object cannot be applied, given what the engine says and what is there.
pub fn explain(manifest: &Value, live: Option<&Value>, reason: ApplyError) -> DispatchError {
    let object = describe(manifest);
    match reason {
        ApplyError::Unowned(_) => DispatchError::Unowned { object },
        ApplyError::OwnedByOther { .. } => {
            let (namespace, name) = live.map_or(("", ""), owner);
            DispatchError::OtherOwner {
                object,
                owner: format!("{namespace}/{name}"),
            }
        }
        reason => DispatchError::Plan { object, reason },
    }
}

/// What to do with an object.
pub fn decide(request: Request<'_>) -> Result<Step, DispatchError> {
    let Request { manifest, live, .. } = request;
    let treatment = Treatment::new(
        manifest,
        request.last_applied,
        request.policies,
        request.occasion,
    );
    if treatment.strategy == Strategy::ReadOnly && live.is_none() {
        return Err(missing(manifest));
    }
    let owner = AppOwner::of(manifest);
    let read = read(manifest)?;
    let state = live.map_or(Live::Absent, Live::Present);
    plan(&treatment.target(&read, &owner), state).map_err(|reason| explain(manifest, live, reason))
}

/// What is said of an object that is only read, and is not there.
pub fn missing(manifest: &Value) -> DispatchError {
    DispatchError::ReadOnlyMissing {
        object: describe(manifest),
    }
}

/// What is said of an object that others deleted, where a policy leaves it so.
pub fn left_deleted(manifest: &Value) -> String {
    format!(
        "{} was deleted by others; the apply-once policy leaves it so until the application changes",
        describe(manifest)
    )
}

fn owner(object: &Value) -> (&str, &str) {
    let text = |key| str_at(object, &["metadata", "labels", key]).unwrap_or_default();
    (text(label::APP_NAMESPACE), text(label::APP_NAME))
}

#[cfg(test)]
mod tests;
