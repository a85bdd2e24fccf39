//! The works that a cluster should have: the template with its values, in parts of a size that fits.
//!
//! A template without values is the same for all clusters: it is split once, and nothing of it is copied
//! for a cluster before its work is written.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::work::names::{annotation, label};
use bellwether_api::work::{ManifestWork, ManifestWorkSpec};
use sha2::{Digest as _, Sha256};

use super::memo::{Memo, WantedContent};
use super::{Observed, Plan, handover, template};
use crate::Programs;
use crate::admission::check_new_spec;

/// The value of the annotation that asks for values of clusters.
const CEL: &str = "cel";

/// The works of the clusters of one placement.
pub(super) struct Wanted<'a> {
    observed: &'a Observed<'a>,
    programs: &'a Programs,
    owner: &'a str,
    placement: &'a str,
    /// The parts of a template without values: they are the same for all clusters.
    plain: OnceCell<Result<Parts, String>>,
    /// The labels of the works, by their part.
    labels: RefCell<Vec<Rc<Labels>>>,
}

/// The content of the works of a cluster.
pub(super) type Parts = Rc<[ManifestWorkSpec]>;
/// Labels of a work.
pub(super) type Labels = BTreeMap<String, String>;

impl<'a> Wanted<'a> {
    pub(super) fn new(
        observed: &'a Observed<'a>,
        programs: &'a Programs,
        owner: &'a str,
        placement: &'a str,
    ) -> Self {
        Self {
            observed,
            programs,
            owner,
            placement,
            plain: OnceCell::new(),
            labels: RefCell::default(),
        }
    }

    /// True if the content depends on the cluster.
    pub(super) fn has_values(&self) -> bool {
        let annotations = self.observed.set.metadata.annotations.as_ref();
        annotations.is_some_and(|map| map.contains_key(annotation::TEMPLATE_VALUES))
    }

    /// The content of the works of a cluster, or why there can be none.
    pub(super) fn parts(&self, cluster: &str) -> Result<Parts, String> {
        let annotations = self.observed.set.metadata.annotations.as_ref();
        let mode = annotations.and_then(|map| map.get(annotation::TEMPLATE_VALUES));
        match mode.map(String::as_str) {
            None => self.plain.get_or_init(|| parts(self.template())).clone(),
            Some(CEL) => {
                let found = (self.observed.cluster)(cluster);
                let template = self.template();
                let about = |error| format!("for {cluster}: {error}");
                let spec = template::fill(&template, cluster, found.as_deref(), self.programs);
                spec.and_then(parts).map_err(about)
            }
            Some(other) => Err(format!(
                "the annotation {} is {CEL} or nothing, not {other:?}",
                annotation::TEMPLATE_VALUES
            )),
        }
    }

    /// The content of the works of any cluster; `None` if it depends on the cluster or cannot be written.
    pub(super) fn shared_parts(&self) -> Option<Parts> {
        (!self.has_values()).then(|| self.parts("").ok()).flatten()
    }

    /// True if a cluster has exactly the works that it should have.
    pub(super) fn is_current(
        &self,
        parts: &[ManifestWorkSpec],
        there: &[&Arc<ManifestWork>],
        memo: &Memo,
    ) -> bool {
        let is_live = |work: &&&Arc<ManifestWork>| work.metadata.deletion_timestamp.is_none();
        let live: Vec<_> = there.iter().filter(is_live).collect();
        let is_same = |part: usize, spec: &ManifestWorkSpec, work: &ManifestWork| {
            let wanted = WantedContent {
                set: self.observed.set,
                is_shared: !self.has_values(),
                part,
                spec,
            };
            handover::has_labels(work, &self.labels(part)) && memo.is_same(wanted, work)
        };
        live.len() == parts.len()
            && parts
                .iter()
                .enumerate()
                .all(|(part, spec)| live.iter().any(|work| is_same(part, spec, work)))
    }

    /// True if a cluster has exactly the works that it should have, written for this placement. `None` if
    /// that depends on more than the replica set.
    pub(super) fn is_written(&self, there: &[&Arc<ManifestWork>], memo: &Memo) -> Option<bool> {
        let parts = self.shared_parts()?;
        let mut relabelled = Plan::default();
        handover::adopt(self, there, &mut relabelled);
        relabelled
            .write
            .is_empty()
            .then(|| self.is_current(&parts, there, memo))
    }

    /// The works of a cluster with this content.
    pub(super) fn works(&self, cluster: &str, parts: &[ManifestWorkSpec]) -> Vec<ManifestWork> {
        let parts = parts.iter().enumerate();
        parts
            .map(|(part, spec)| self.work(cluster, part, spec.clone()))
            .collect()
    }

    /// The labels of the works of a part.
    pub(super) fn labels(&self, part: usize) -> Rc<Labels> {
        let mut known = self.labels.borrow_mut();
        while known.len() <= part {
            let next = self.labels_of(known.len());
            known.push(Rc::new(next));
        }
        Rc::clone(&known[part])
    }

    fn labels_of(&self, part: usize) -> Labels {
        let mut labels = self
            .observed
            .set
            .metadata
            .labels
            .clone()
            .unwrap_or_default();
        labels.insert(label::REPLICA_SET.to_owned(), self.owner.to_owned());
        labels.insert(label::PLACEMENT_NAME.to_owned(), self.placement.to_owned());
        if part > 0 {
            labels.insert(label::PART.to_owned(), part.to_string());
        }
        labels
    }

    fn template(&self) -> ManifestWorkSpec {
        let template = &self.observed.set.spec.manifest_work_template;
        template.clone().unwrap_or_default()
    }

    fn work(&self, cluster: &str, part: usize, spec: ManifestWorkSpec) -> ManifestWork {
        let set = self.observed.set;
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let suffix = suffix(&format!("{}/{}/{part}", self.owner, self.placement));
        ManifestWork {
            metadata: ObjectMeta {
                name: Some(format!("{name}{suffix}")),
                namespace: Some(cluster.to_owned()),
                labels: Some(Labels::clone(&self.labels(part))),
                annotations: Some(BTreeMap::from([(
                    annotation::ROLLED_OUT_AT.to_owned(),
                    self.observed.now.to_string(),
                )])),
                ..ObjectMeta::default()
            },
            spec,
            ..ManifestWork::default()
        }
    }
}

/// The parts of a work, each of which a hub accepts.
fn parts(spec: ManifestWorkSpec) -> Result<Parts, String> {
    let parts = template::split(spec);
    parts.iter().try_for_each(check_new_spec)?;
    Ok(parts.into())
}

/// Five characters that stand for a text, as the server appends them to names that it makes up.
fn suffix(text: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    digest.iter().take(5).map(letter).collect()
}
