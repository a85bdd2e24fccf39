//! The objects of a dry run.

use bellwether_json::label::LabelSelector;
use serde_json::{Map, Value, json};

use super::mappings::Mappings;
use crate::template::{Answer, Question};

/// Fields of metadata that a server sets.
const SERVER_FIELDS: [&str; 5] = [
    "resourceVersion",
    "generatedName",
    "creationTimestamp",
    "selfLink",
    "uid",
];

/// A namespace that is always there.
const DEFAULT_NAMESPACE: &str = "default";

/// Kinds and objects.
pub(super) struct Store {
    kinds: Mappings,
    /// By namespace and name.
    objects: Vec<Value>,
}

impl Store {
    /// Of several objects with one name the first counts.
    pub(super) fn new(kinds: Mappings, objects: Vec<Value>) -> Result<Self, String> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": DEFAULT_NAMESPACE},
        });
        let mut store = Self {
            kinds,
            objects: vec![namespace],
        };
        for object in objects {
            store.add(object)?;
        }
        store
            .objects
            .sort_by_key(|object| (metadata(object, "namespace"), metadata(object, "name")));
        Ok(store)
    }

    fn add(&mut self, mut object: Value) -> Result<(), String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let Some(resource) = self.kinds.find(&api_version, &kind) else {
            return Err(format!(
                "the resource version was not found for kind {kind}: if this is a custom resource, it may need an entry in the mappings file"
            ));
        };
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in SERVER_FIELDS {
                metadata.remove(field);
            }
        }
        if resource.is_namespaced && metadata(&object, "namespace").is_empty() {
            object["metadata"]["namespace"] = json!(DEFAULT_NAMESPACE);
        }
        let is_known = self.objects.iter().any(|known| {
            known["apiVersion"] == object["apiVersion"]
                && known["kind"] == object["kind"]
                && metadata(known, "name") == metadata(&object, "name")
                && metadata(known, "namespace") == metadata(&object, "namespace")
        });
        if !is_known {
            self.objects.push(object);
        }
        Ok(())
    }

    fn of<'s>(&'s self, api_version: &'s str, kind: &'s str) -> impl Iterator<Item = &'s Value> {
        self.objects
            .iter()
            .filter(move |object| object["apiVersion"] == *api_version && object["kind"] == *kind)
    }

    /// Answers a question.
    pub(super) fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Resource { api_version, kind } => self
                .kinds
                .find(api_version, kind)
                .map_or(Answer::Nothing, Answer::Resource),
            Question::Object {
                api_version,
                kind,
                namespace,
                name,
            } => self
                .of(api_version, kind)
                .find(|object| {
                    metadata(object, "namespace") == *namespace && metadata(object, "name") == *name
                })
                .map_or(Answer::Nothing, |object| Answer::Object(object.clone())),
            Question::List {
                api_version,
                kind,
                namespace,
                selector,
            } => match LabelSelector::parse(selector) {
                Err(error) => Answer::Failed(error.to_string()),
                Ok(selector) => {
                    let objects = self.of(api_version, kind).filter(|object| {
                        let is_there =
                            namespace.is_empty() || metadata(object, "namespace") == *namespace;
                        is_there && selector.matches_object(object)
                    });
                    Answer::Objects(objects.cloned().collect())
                }
            },
        }
    }
}

fn metadata(object: &Value, field: &str) -> String {
    let text = object["metadata"][field].as_str();
    text.unwrap_or_default().to_owned()
}
