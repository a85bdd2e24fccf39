//! Revisions of definitions: what they are called, what is in them, and which are kept.
//!
//! A definition with `spec.version` has the revision `NAME-vX.Y.Z`; one with the annotation `definitionrevision.oam.dev/name` has
//! `NAME-vTHAT`; all others are counted, `NAME-v1`, `NAME-v2`. A revision stays as it is.

use std::collections::BTreeSet;

use bellwether_api::oam::names::{annotation, label};
use bellwether_json::path::str_at;
use serde_json::{Value, json};

use crate::definition::DefinitionKind;
use crate::revision::hash;

/// The name that the author of a definition gave its revision; none if revisions are counted.
pub fn named(definition: &Value) -> Option<String> {
    let name = str_at(definition, &["metadata", "name"])?;
    let version = str_at(definition, &["spec", "version"]).filter(|text| !text.is_empty());
    let annotated = str_at(
        definition,
        &["metadata", "annotations", annotation::REVISION_NAME],
    )
    .filter(|text| !text.is_empty());
    let version = version.or(annotated)?;
    Some(format!("{name}-v{version}"))
}

/// What makes two definitions the same: the spec.
pub fn content(definition: &Value) -> &Value {
    &definition["spec"]
}

/// What identifies the content of a definition.
pub fn content_hash(definition: &Value) -> String {
    hash(content(definition))
}

/// The key of the label that names the definition.
fn name_label(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Component => label::COMPONENT_DEFINITION_NAME,
        DefinitionKind::Trait => label::TRAIT_DEFINITION_NAME,
        DefinitionKind::Policy => label::POLICY_DEFINITION_NAME,
        DefinitionKind::WorkflowStep => label::WORKFLOW_STEP_DEFINITION_NAME,
    }
}

/// What is known of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionInfo {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// What identifies its content.
    pub hash: String,
}

/// The revision that a definition needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Needed {
    /// This one is there already.
    Existing(RevisionInfo),
    /// This object has to be created.
    New(RevisionInfo, Box<Value>),
}

/// The revision of a definition as it is now. `known` are those of the definition, in any order.
pub fn needed(kind: DefinitionKind, definition: &Value, known: &[RevisionInfo]) -> Needed {
    let hash = content_hash(definition);
    let name = str_at(definition, &["metadata", "name"]).unwrap_or_default();
    let last = known.iter().map(|revision| revision.number).max();
    let number = last.unwrap_or_default() + 1;
    let given = named(definition);
    // What was before is the earlier revision again, unless its author gives it another name.
    let same = known.iter().filter(|revision| match &given {
        Some(given) => revision.name == *given,
        None => revision.hash == hash,
    });
    if let Some(found) = same.max_by_key(|revision| revision.number) {
        return Needed::Existing(found.clone());
    }
    let revision_name = given.unwrap_or_else(|| format!("{name}-v{number}"));
    let revision = RevisionInfo {
        name: revision_name,
        number,
        hash,
    };
    let object = object(kind, definition, &revision);
    Needed::New(revision, Box::new(object))
}

fn object(kind: DefinitionKind, definition: &Value, revision: &RevisionInfo) -> Value {
    let name = str_at(definition, &["metadata", "name"]).unwrap_or_default();
    let metadata = &definition["metadata"];
    let mut copy = json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": kind.object_kind(),
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "spec": definition["spec"],
    });
    for field in ["annotations", "labels"] {
        if metadata[field].is_object() {
            copy["metadata"][field] = metadata[field].clone();
        }
    }
    bellwether_json::path::remove(
        &mut copy,
        &["metadata", "annotations", annotation::KUBECTL_LAST_APPLIED],
    );
    let field = match kind {
        DefinitionKind::Component => "componentDefinition",
        DefinitionKind::Trait => "traitDefinition",
        DefinitionKind::Policy => "policyDefinition",
        DefinitionKind::WorkflowStep => "workflowStepDefinition",
    };
    let object_kind = kind.object_kind();
    json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "DefinitionRevision",
        "metadata": {
            "name": revision.name,
            "namespace": metadata["namespace"],
            "labels": {name_label(kind): name},
            "ownerReferences": [{
                "apiVersion": "core.oam.dev/v1beta1", "kind": object_kind, "name": name,
                "uid": metadata["uid"], "controller": true,
            }],
        },
        "spec": {
            "revision": revision.number,
            "revisionHash": revision.hash,
            "definitionType": object_kind.trim_end_matches("Definition"),
            field: copy,
        },
    })
}

/// Revisions that can be deleted, oldest first: those beyond the limit that no application uses.
pub fn surplus<'a>(
    known: &'a [RevisionInfo],
    current: &str,
    used: &BTreeSet<String>,
    limit: usize,
) -> Vec<&'a RevisionInfo> {
    let mut old: Vec<&RevisionInfo> = known
        .iter()
        .filter(|revision| revision.name != current)
        .collect();
    old.sort_by_key(|revision| revision.number);
    let count = old.len().saturating_sub(limit);
    let unused = old.into_iter().filter(|old| !used.contains(&old.name));
    unused.take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(spec: &Value) -> Value {
        json!({"metadata": {"name": "paint", "namespace": "n", "uid": "u"}, "spec": spec})
    }

    fn known(name: &str, number: i64, spec: &Value) -> RevisionInfo {
        RevisionInfo {
            name: name.to_owned(),
            number,
            hash: hash(spec),
        }
    }

    #[track_caller]
    fn check(definition: &Value, revisions: &[RevisionInfo], expected: (&str, bool)) {
        let (found, is_new) = match needed(DefinitionKind::Component, definition, revisions) {
            Needed::Existing(found) => (found, false),
            Needed::New(found, object) => {
                assert_eq!(object["metadata"]["name"], found.name);
                assert_eq!(object["spec"]["definitionType"], "Component");
                (found, true)
            }
        };
        assert_eq!((found.name.as_str(), is_new), expected);
    }

    #[test]
    fn revisions_are_counted_or_named_by_their_author() {
        let (red, blue) = (json!({"a": "red"}), json!({"a": "blue"}));
        check(&definition(&red), &[], ("paint-v1", true));
        let first = known("paint-v1", 1, &red);
        check(
            &definition(&red),
            std::slice::from_ref(&first),
            ("paint-v1", false),
        );
        check(
            &definition(&blue),
            std::slice::from_ref(&first),
            ("paint-v2", true),
        );
        let both = [first, known("paint-v2", 2, &blue)];
        check(&definition(&red), &both, ("paint-v1", false));
        let versioned = definition(&json!({"version": "1.2.0"}));
        check(&versioned, &both, ("paint-v1.2.0", true));
        let mut annotated = definition(&red);
        annotated["metadata"]["annotations"] = json!({(annotation::REVISION_NAME): "final"});
        check(&annotated, &both, ("paint-vfinal", true));
    }

    #[test]
    fn revisions_in_use_are_kept_beyond_the_limit() {
        let known: Vec<RevisionInfo> = (1..=5)
            .map(|number| known(&format!("paint-v{number}"), number, &json!(number)))
            .collect();
        let names = |limit: usize, used: &[&str]| -> Vec<String> {
            let used = used.iter().map(|name| (*name).to_owned()).collect();
            let found = surplus(&known, "paint-v5", &used, limit);
            found.iter().map(|revision| revision.name.clone()).collect()
        };
        assert_eq!(names(2, &[]), ["paint-v1", "paint-v2"]);
        assert_eq!(names(2, &["paint-v1"]), ["paint-v2", "paint-v3"]);
        assert!(names(10, &[]).is_empty());
    }
}
