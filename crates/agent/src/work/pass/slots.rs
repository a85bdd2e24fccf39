//! The manifests of a work, each with what the cluster calls it and what is known of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::work::{ManifestCondition, ManifestResourceMeta};
use bellwether_apply::manifest::defined_kinds;
use bellwether_apply::record::Entry;
use bellwether_apply::{Manifest, ObjectId, ResourceType};
use bellwether_work::admission;
use bellwether_work::status;
use serde_json::Value;

use super::Pass;
use crate::work::hub::HubWork;
use crate::work::records::Record;
use crate::work::{AgentError, report};

/// A manifest whose kind the cluster knows.
pub(super) struct Mapped {
    pub(super) manifest: Manifest,
    pub(super) resource: Arc<ResourceType>,
    pub(super) id: ObjectId,
    pub(super) is_defined_here: bool,
}

impl Mapped {
    /// The manifest as a record names it before it is applied.
    pub(super) fn entry(&self) -> Entry {
        Entry {
            id: self.id.clone(),
            version: self.resource.version.clone(),
            uid: None,
        }
    }
}

/// A manifest of the work and what is known of it.
pub(in crate::work) struct Slot {
    pub(in crate::work) meta: ManifestResourceMeta,
    pub(super) mapped: Result<Mapped, String>,
    pub(in crate::work) known: Option<ManifestCondition>,
    /// Whether it is done, as the hub or the record on the member says.
    pub(in crate::work) is_complete: bool,
}

impl Pass<'_> {
    /// Reads the manifests, and asks the cluster what it calls their kinds.
    pub(super) async fn slots(
        &self,
        work: &HubWork,
        record: Option<&Record>,
    ) -> Result<Vec<Slot>, AgentError> {
        let none = Vec::new();
        let workload = work.work.spec.workload.as_ref();
        let values: &[Value] = workload.map_or(&none, |workload| &workload.manifests);
        // Where the hub refuses nothing, what it should have refused is not applied.
        let refused = admission::check_name(work.name())
            .and_then(|()| admission::check_spec(&work.work.spec))
            .err();
        let mut checked = admission::Seen::default();
        let manifests: Vec<Result<Manifest, String>> = values
            .iter()
            .enumerate()
            .map(|(ordinal, value)| {
                checked.check(value)?;
                Manifest::read(ordinal, value).map_err(|error| error.to_string())
            })
            .collect();
        let defined = defined_kinds(manifests.iter().filter_map(|it| it.as_ref().ok()));
        let known = known_manifests(work);
        let uid = work.metadata().uid.as_deref().unwrap_or_default();
        let completed = record
            .map(|record| record.completed(uid))
            .unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut slots = Vec::new();
        for (ordinal, manifest) in manifests.into_iter().enumerate() {
            let mut meta = meta_of(ordinal, &values[ordinal]);
            let mut mapped = match (manifest, &refused) {
                (Err(error), _) => Err(error),
                (Ok(_), Some(error)) => Err(error.clone()),
                (Ok(manifest), None) => self.map(manifest, &defined).await,
            };
            if let Ok(found) = &mapped {
                meta.resource.clone_from(&found.id.resource);
                meta.namespace.clone_from(&found.id.namespace);
                if !seen.insert(found.id.clone()) {
                    mapped = Err(format!("another manifest of the work is also {}", found.id));
                }
            }
            let known = status::find_known(known, &meta).cloned();
            let id = mapped.as_ref().ok().map(|mapped| &mapped.id);
            slots.push(Slot {
                is_complete: report::is_complete(known.as_ref())
                    || id.is_some_and(|id| completed.contains(id)),
                known,
                meta,
                mapped,
            });
        }
        Ok(slots)
    }

    async fn map(
        &self,
        manifest: Manifest,
        defined: &BTreeMap<(String, String, String), ResourceType>,
    ) -> Result<Mapped, String> {
        let (group, version, kind) = (&manifest.group, &manifest.version, &manifest.kind);
        let here = defined.get(&(group.clone(), version.clone(), kind.clone()));
        let delivery = &self.member.delivery;
        let found = delivery
            .discovery
            .find(&delivery.objects, group, version, kind)
            .await
            .map_err(|error| error.to_string())?;
        let resource = found
            .or_else(|| here.cloned().map(Arc::new))
            .ok_or_else(|| format!("the server doesn't have a resource type {kind:?}"))?;
        let is_defined_here = here.is_some();
        let manifest = manifest.placed(resource.namespaced);
        Ok(Mapped {
            id: ObjectId {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: manifest.namespace.clone(),
                name: manifest.name.clone(),
            },
            manifest,
            resource,
            is_defined_here,
        })
    }
}

fn known_manifests(work: &HubWork) -> &[ManifestCondition] {
    let status = work.work.status.as_ref();
    let manifests = status.and_then(|status| status.resource_status.as_ref());
    manifests.map_or(&[], |status| &status.manifests)
}

/// What a manifest says that it is, even if it cannot be applied.
pub(super) fn meta_of(ordinal: usize, value: &Value) -> ManifestResourceMeta {
    let text = |pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let api_version = text("/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    ManifestResourceMeta {
        ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("/kind"),
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        ..ManifestResourceMeta::default()
    }
}
