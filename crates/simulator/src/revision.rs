//! Controller revisions: the history of a stateful set or daemon set, and which entry is current.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::revision::REVISION_HASH;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use crate::hash::{fnv32, safe_text};
use crate::kind::{Reference, label};
use crate::plan::{Plan, to_json};

/// The revision that holds a template, if there is one already, and the whole history.
#[derive(Debug)]
pub(crate) struct History<'a> {
    /// Oldest first.
    revisions: Vec<&'a Arc<ControllerRevision>>,
    data: Value,
    /// The labels of the template.
    labels: BTreeMap<String, String>,
}

impl<'a> History<'a> {
    /// The history of a workload whose template is this one.
    pub(crate) fn new(
        revisions: &'a [Arc<ControllerRevision>],
        template: &PodTemplateSpec,
    ) -> Self {
        let mut revisions: Vec<_> = revisions.iter().collect();
        revisions.sort_by_key(|revision| (revision.revision, revision.metadata.name.clone()));
        Self {
            revisions,
            data: data(template),
            labels: template
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.labels.clone())
                .unwrap_or_default(),
        }
    }

    /// Makes sure that there is a revision of the current template and that it is the newest.
    /// Returns it, unless it has to be created first.
    pub(crate) fn current(
        &self,
        owner: &ObjectMeta,
        reference: &Reference,
        hash_label: &str,
        plan: &mut Plan,
    ) -> Option<&'a ControllerRevision> {
        let newest = self.revisions.last().map_or(0, |newest| newest.revision);
        let same = |revision: &&&Arc<ControllerRevision>| {
            revision
                .data
                .as_ref()
                .is_some_and(|data| data.0 == self.data)
        };
        if let Some(found) = self.revisions.iter().rev().find(same) {
            if found.revision < newest {
                // The template of an earlier revision is back.
                plan.patch(
                    found.as_ref(),
                    json!({"revision": newest.saturating_add(1)}),
                );
            }
            return Some(found);
        }
        let hash = self.free_hash(reference);
        let mut labels = self.labels.clone();
        labels.insert(hash_label.to_owned(), hash.clone());
        let revision = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(format!("{}-{hash}", reference.key.name)),
                namespace: Some(reference.key.namespace.to_string()),
                labels: Some(labels),
                annotations: owner.annotations.clone(),
                owner_references: Some(vec![reference.controller()]),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(self.data.clone())),
            revision: newest.saturating_add(1),
        };
        plan.create(&revision, Some(reference.clone()), None, None);
        None
    }

    /// A hash that no other revision has.
    fn free_hash(&self, owner: &Reference) -> String {
        let text = self.data.to_string();
        let mut salt = 0_u32;
        loop {
            let suffix = if salt == 0 {
                String::new()
            } else {
                salt.to_string()
            };
            let hash = safe_text(fnv32(text.bytes().chain(suffix.bytes())));
            let name = format!("{}-{hash}", owner.key.name);
            let taken = self
                .revisions
                .iter()
                .any(|revision| revision.metadata.name.as_ref() == Some(&name));
            if !taken {
                return hash;
            }
            salt += 1;
        }
    }

    /// The revision of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&'a ControllerRevision> {
        let mut revisions = self.revisions.iter().copied();
        let found = revisions.find(|revision| revision.metadata.name.as_deref() == Some(name));
        found.map(AsRef::as_ref)
    }

    /// Deletes the oldest of those that nobody uses, beyond what history keeps.
    pub(crate) fn clean_up(
        &self,
        limit: Option<i32>,
        is_used: impl Fn(&ControllerRevision) -> bool,
        plan: &mut Plan,
    ) {
        let unused: Vec<_> = self
            .revisions
            .iter()
            .filter(|revision| !is_used(revision))
            .collect();
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
        let surplus = unused.len().saturating_sub(limit);
        for revision in unused.into_iter().take(surplus) {
            plan.delete(revision.as_ref());
        }
    }
}

/// The name of a revision.
pub(crate) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// The hash of a revision, as its label says.
pub(crate) fn hash<'a>(revision: &'a ControllerRevision, hash_label: &str) -> &'a str {
    let found = label(&revision.metadata, hash_label);
    found
        .or_else(|| label(&revision.metadata, REVISION_HASH))
        .unwrap_or_default()
}

/// What a revision holds: the patch that brings its template back.
fn data(template: &PodTemplateSpec) -> Value {
    let mut template = to_json(template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The template that a revision holds.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0["spec"]["template"].clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}
