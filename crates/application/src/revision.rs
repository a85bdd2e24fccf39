//! What identifies revisions of applications and components.
//!
//! Identifiers are our own: nobody compares them with those of other controllers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bellwether_api::SharedObject;
use bellwether_api::oam::names::annotation;
use bellwether_api::oam::{
    Application, ApplicationComponent, ApplicationRevision, ApplicationRevisionSpec,
    ApplicationSpec,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::definition::{Definition, DefinitionKind};

/// How many hexadecimal digits an identifier has: 64 bits.
const DIGITS: usize = 16;

/// What identifies a value: equal values have equal identifiers, whatever the order of their fields.
pub fn hash(value: &impl Serialize) -> String {
    // Maps of `serde_json` are sorted, so equal values are equal texts.
    let text = serde_json::to_value(value).unwrap_or_default().to_string();
    let digest = Sha256::digest(text.as_bytes());
    let mut hex = String::with_capacity(DIGITS);
    for byte in digest.iter().take(DIGITS / 2) {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What identifies a component as it is written.
pub fn component_hash(component: &ApplicationComponent) -> String {
    hash(component)
}

/// What identifies the content of a revision: the spec and everything it is rendered by.
pub fn revision_hash<'a>(
    application: &Application,
    definitions: impl IntoIterator<Item = &'a Definition>,
    referred: impl IntoIterator<Item = &'a Value>,
) -> String {
    let definitions = definitions.into_iter().map(Definition::content_hash);
    let mut definitions: Vec<&str> = definitions.collect();
    definitions.sort_unstable();
    let referred = referred.into_iter().map(|object| {
        let name = &object["metadata"]["name"];
        hash(&(&object["kind"], name, content(object)))
    });
    let mut referred: Vec<String> = referred.collect();
    referred.sort_unstable();
    hash(&(&application.spec, definitions, referred))
}

/// Definitions as a revision recorded them, by kind and type.
pub fn recorded(
    revision: &ApplicationRevisionSpec,
) -> impl Iterator<Item = (DefinitionKind, &String, &SharedObject)> {
    let maps = [
        (DefinitionKind::Component, &revision.component_definitions),
        (DefinitionKind::Trait, &revision.trait_definitions),
        (DefinitionKind::Policy, &revision.policy_definitions),
        (
            DefinitionKind::WorkflowStep,
            &revision.workflow_step_definitions,
        ),
    ];
    maps.into_iter().flat_map(|(kind, definitions)| {
        definitions
            .iter()
            .map(move |(name, object)| (kind, name, object))
    })
}

/// Whether a revision has this very spec.
pub fn has_spec(revision: &ApplicationRevision, application: &Application) -> bool {
    let recorded = &revision.spec.application.value()["spec"];
    let Ok(spec) = serde_json::to_value(&application.spec) else {
        return false;
    };
    // Other controllers leave out what is empty.
    let read = || serde_json::from_value::<ApplicationSpec>(recorded.clone()).ok();
    spec == *recorded
        || read().is_some_and(|recorded| serde_json::to_value(recorded).is_ok_and(|it| it == spec))
}

/// Whether a revision recorded the policies, the workflow and the copied objects that an application refers to, as they are.
///
/// Revisions of other controllers have identifiers of their own, which we cannot compute: they are compared by what they recorded.
pub fn has_referred(revision: &ApplicationRevision, referred: &[Value]) -> bool {
    let (shared, copied): (Vec<&Value>, Vec<&Value>) = referred.iter().partition(|object| {
        object["apiVersion"] == "core.oam.dev/v1alpha1"
            && ["Policy", "Workflow"]
                .iter()
                .any(|kind| object["kind"] == *kind)
    });
    let (policies, workflows) = shared.into_iter().partition(|it| it["kind"] == "Policy");
    let spec = &revision.spec;
    settings(spec.policies.values().collect()) == settings(policies)
        && settings(spec.workflow.iter().collect()) == settings(workflows)
        && settings(spec.referred_objects.iter().collect()) == settings(copied)
}

/// What objects say, by their names.
fn settings(objects: Vec<&Value>) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for object in objects {
        let mut content = content(object);
        if let Value::Object(fields) = &mut content {
            fields.retain(|field, _| field != "apiVersion" && field != "kind");
        }
        let name = object["metadata"]["name"].to_string();
        all.entry(name).or_default().push(content);
    }
    all
}

/// The number of a revision: its name ends with it.
pub fn number(revision: &ApplicationRevision) -> i64 {
    let name = revision.metadata.name.as_deref().unwrap_or_default();
    let number = name.rsplit_once("-v");
    number
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or_default()
}

/// The newest of the revisions before this one that was delivered whole.
pub fn last_good<R: std::borrow::Borrow<ApplicationRevision>>(
    revisions: &[R],
    current: i64,
) -> Option<&R> {
    let is_good = |revision: &&R| {
        let revision: &ApplicationRevision = (*revision).borrow();
        let status = revision.status.as_ref();
        number(revision) < current && status.is_some_and(|status| status.succeeded)
    };
    let good = revisions.iter().filter(is_good);
    good.max_by_key(|revision| number((*revision).borrow()))
}

/// Makes an application what it was as a revision.
pub fn restore(
    application: &mut Application,
    revision: &ApplicationRevision,
) -> Result<(), serde_json::Error> {
    let before = revision.spec.application.value();
    application.spec = serde_json::from_value(before["spec"].clone())?;
    let annotations = application.metadata.annotations.get_or_insert_default();
    let name = revision.metadata.name.clone().unwrap_or_default();
    annotations.insert(annotation::ROLLED_BACK_TO.to_owned(), name);
    let published = &before["metadata"]["annotations"][annotation::PUBLISH_VERSION];
    match published.as_str() {
        Some(version) => {
            annotations.insert(annotation::PUBLISH_VERSION.to_owned(), version.to_owned());
        }
        None => {
            annotations.remove(annotation::PUBLISH_VERSION);
        }
    }
    Ok(())
}

/// What is known of a revision when old ones are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedRevision {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i64,
}

/// Revisions beyond the limit, oldest first. Those in use are not counted, and stay.
pub fn surplus<'a>(
    known: &'a [NumberedRevision],
    used: &[&str],
    limit: usize,
) -> Vec<&'a NumberedRevision> {
    let mut old: Vec<&NumberedRevision> = known
        .iter()
        .filter(|revision| !used.contains(&revision.name.as_str()))
        .collect();
    old.sort_by_key(|revision| revision.number);
    let count = old.len().saturating_sub(limit);
    old.truncate(count);
    old
}

/// An object without its metadata and status.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Value::Object(fields) = &mut content {
        fields.remove("metadata");
        fields.remove("status");
    }
    content
}

/// The end of a generated name.
pub(crate) fn short_hash(value: &Value) -> String {
    let mut hash = hash(value);
    hash.truncate(10);
    hash
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(image: &str) -> Application {
        serde_json::from_value(json!({
            "metadata": {"name": "shop"},
            "spec": {"components": [{"name": "web", "type": "webservice", "properties": {"image": image}}]},
        }))
        .unwrap()
    }

    #[test]
    fn revisions_differ_by_spec_and_definitions_only() {
        let definition = |text: &str, version: &str| {
            let object = json!({"kind": "ComponentDefinition",
                "metadata": {"name": "webservice", "resourceVersion": version},
                "spec": {"schematic": {"cue": {"template": text}}}});
            Definition::new(DefinitionKind::Component, "webservice", object)
        };
        let hash = |image: &str, definition: &Definition| {
            revision_hash(&application(image), [definition], [])
        };
        let first = hash("nginx", &definition("a", "1"));
        assert_eq!(first, hash("nginx", &definition("a", "2")));
        assert_ne!(first, hash("nginx", &definition("b", "1")));
        assert_ne!(first, hash("apache", &definition("a", "1")));
        assert_eq!(first.len(), DIGITS);
    }

    /// A revision whose identifier another controller made up.
    fn foreign(spec: &Value, policies: &Value) -> ApplicationRevision {
        serde_json::from_value(json!({
            "metadata": {"name": "shop-v1"},
            "spec": {"application": {"metadata": {"name": "shop"}, "spec": spec}, "policies": policies},
        }))
        .unwrap()
    }

    #[test]
    fn revisions_of_others_are_known_by_what_they_recorded() {
        let app = application("nginx");
        let same = json!({"components": [
            {"name": "web", "type": "webservice", "properties": {"image": "nginx"}, "traits": []},
        ]});
        let other = json!({"components": [{"name": "web", "type": "worker"}]});
        let policy = |image: &str| {
            json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "p", "uid": image},
                "type": "override", "properties": {"image": image}})
        };
        let recorded = json!({"default/p": {"metadata": {"name": "p"}, "type": "override", "properties": {"image": "a"}}});
        assert!(has_spec(&foreign(&same, &json!({})), &app));
        assert!(!has_spec(&foreign(&other, &json!({})), &app));
        assert!(has_referred(&foreign(&same, &json!({})), &[]));
        assert!(has_referred(&foreign(&same, &recorded), &[policy("a")]));
        assert!(!has_referred(&foreign(&same, &recorded), &[policy("b")]));
        assert!(!has_referred(&foreign(&same, &recorded), &[]));
    }

    #[test]
    fn the_oldest_revisions_that_nobody_uses_go() {
        let known: Vec<NumberedRevision> = (1..=5)
            .map(|number| NumberedRevision {
                name: format!("shop-v{number}"),
                number,
            })
            .collect();
        let names = |used: &[&str], limit: usize| -> Vec<String> {
            let found = surplus(&known, used, limit);
            found.iter().map(|revision| revision.name.clone()).collect()
        };
        assert_eq!(names(&["shop-v5"], 2), ["shop-v1", "shop-v2"]);
        assert_eq!(names(&["shop-v1"], 2), ["shop-v2", "shop-v3"]);
        assert!(names(&["shop-v5"], 10).is_empty());
    }
}
