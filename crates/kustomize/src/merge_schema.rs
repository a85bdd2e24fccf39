//! How lists merge in strategic merge patches: from the built-in kinds, from the OpenAPI document
//! that a kustomization names, and for Applications.

use std::sync::Arc;

use bellwether_json::path::str_at;
use serde_json::{Map, Value};

use crate::builtin_lists::{BuiltinField, BuiltinType};
use crate::id::Gvk;

/// Where schemas come from in one build.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schemas {
    /// `definitions` of an OpenAPI document, which takes the place of the built-in kinds.
    pub(crate) definitions: Option<Arc<Map<String, Value>>>,
    /// True if lists of Applications merge by name or type.
    pub(crate) applications: bool,
}

/// What is known about one place of an object.
#[derive(Debug, Clone)]
pub(crate) enum MergeSchema {
    Builtin(BuiltinType),
    BuiltinField(BuiltinField),
    Defined {
        node: Arc<Map<String, Value>>,
        definitions: Arc<Map<String, Value>>,
    },
    Application(Place),
}

/// A place in an Application where something is known about lists below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Spec,
    Components,
    Component,
    Traits,
    Policies,
    Workflow,
    Steps,
    Step,
}

impl Schemas {
    /// The schema of a kind.
    pub(crate) fn find(&self, gvk: &Gvk) -> Option<MergeSchema> {
        if self.applications && gvk.group == "core.oam.dev" && gvk.kind == "Application" {
            return Some(MergeSchema::Application(Place::Root));
        }
        if let Some(definitions) = &self.definitions {
            return defined(definitions, gvk);
        }
        // The schema that kustomize ships is that of Kubernetes 1.21, which had this version.
        let version = match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("batch", "CronJob") => "v1",
            _ => &gvk.version,
        };
        BuiltinType::of_kind(&gvk.group, version, &gvk.kind).map(MergeSchema::Builtin)
    }

    /// The schema of an object that says what it is.
    pub(crate) fn of(&self, object: &Value) -> Option<MergeSchema> {
        str_at(object, &["kind"])?;
        str_at(object, &["apiVersion"])?;
        self.find(&Gvk::of(object))
    }
}

fn defined(definitions: &Arc<Map<String, Value>>, gvk: &Gvk) -> Option<MergeSchema> {
    let is_kind = |definition: &&Value| {
        let kinds = definition.get("x-kubernetes-group-version-kind");
        kinds.and_then(Value::as_array).is_some_and(|kinds| {
            kinds.iter().any(|kind| {
                let is = |key: &str, own: &str| str_at(kind, &[key]).unwrap_or_default() == own;
                is("group", &gvk.group) && is("version", &gvk.version) && is("kind", &gvk.kind)
            })
        })
    };
    let node = definitions.values().find(is_kind)?.as_object()?;
    Some(MergeSchema::Defined {
        node: Arc::new(node.clone()),
        definitions: Arc::clone(definitions),
    })
}

/// Follows a reference to another definition, through a bounded number of references.
fn resolve(node: &Value, definitions: &Arc<Map<String, Value>>) -> Option<MergeSchema> {
    let mut node = node.as_object()?;
    for _ in 0..16 {
        let Some(reference) = node.get("$ref").and_then(Value::as_str) else {
            return Some(MergeSchema::Defined {
                node: Arc::new(node.clone()),
                definitions: Arc::clone(definitions),
            });
        };
        let name = reference.rsplit('/').next()?;
        node = definitions.get(name)?.as_object()?;
    }
    None
}

impl MergeSchema {
    /// The schema of a member.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Builtin(kind) => kind.field(name).map(Self::BuiltinField),
            Self::BuiltinField(field) => field.value()?.field(name).map(Self::BuiltinField),
            Self::Defined { node, definitions } => {
                let properties = node.get("properties");
                let member = properties.and_then(|properties| properties.get(name));
                let member = member.or_else(|| node.get("additionalProperties"))?;
                resolve(member, definitions)
            }
            Self::Application(place) => place.field(name).map(Self::Application),
        }
    }

    /// The schema of the items of a list.
    pub(crate) fn items(&self) -> Option<Self> {
        match self {
            Self::BuiltinField(list) => list.value().map(Self::Builtin),
            Self::Defined { node, definitions } => resolve(node.get("items")?, definitions),
            Self::Application(Place::Components) => Some(Self::Application(Place::Component)),
            Self::Application(Place::Steps) => Some(Self::Application(Place::Step)),
            Self::Builtin(_) | Self::Application(_) => None,
        }
    }

    /// The keys by which the items of a list are identified; `None` if the list is replaced as a
    /// whole, no keys if its items are scalars.
    pub(crate) fn merge_keys(&self) -> Option<Vec<String>> {
        match self {
            Self::BuiltinField(list) => list.merge_keys(),
            Self::Defined { node, .. } => {
                let strategy = node.get("x-kubernetes-patch-strategy")?.as_str()?;
                if !strategy.split(',').any(|part| part == "merge") {
                    return None;
                }
                let text = |value: &Value| value.as_str().map(str::to_owned);
                let keys = node.get("x-kubernetes-list-map-keys");
                if let Some(keys) = keys.and_then(Value::as_array) {
                    return Some(keys.iter().filter_map(text).collect());
                }
                let key = node.get("x-kubernetes-patch-merge-key").and_then(text);
                Some(key.into_iter().collect())
            }
            Self::Application(Place::Traits) => Some(vec!["type".to_owned()]),
            Self::Application(Place::Components | Place::Policies | Place::Steps) => {
                Some(vec!["name".to_owned()])
            }
            Self::Builtin(_) | Self::Application(_) => None,
        }
    }
}

impl Place {
    fn field(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::Root, "spec") => Self::Spec,
            (Self::Spec, "components") => Self::Components,
            (Self::Spec, "policies") => Self::Policies,
            (Self::Spec, "workflow") => Self::Workflow,
            (Self::Component, "traits") => Self::Traits,
            (Self::Workflow, "steps") | (Self::Step, "subSteps") => Self::Steps,
            _ => return None,
        })
    }
}
