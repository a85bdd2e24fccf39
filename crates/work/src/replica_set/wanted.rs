//! The works that a cluster should have: the template with its values, in parts of a size that fits.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::work::names::{annotation, label};
use bellwether_api::work::{ManifestWork, ManifestWorkSpec};
use sha2::{Digest as _, Sha256};

use super::{Observed, template};
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
    plain: OnceCell<Result<Vec<ManifestWorkSpec>, String>>,
}

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
        }
    }

    /// The works of a cluster, or why there can be none.
    pub(super) fn of(&self, cluster: &str) -> Result<Vec<ManifestWork>, String> {
        let annotations = self.observed.set.metadata.annotations.as_ref();
        let mode = annotations.and_then(|map| map.get(annotation::TEMPLATE_VALUES));
        let parts = match mode.map(String::as_str) {
            None => self.plain.get_or_init(|| parts(self.template())).clone()?,
            Some(CEL) => {
                let found = (self.observed.cluster)(cluster);
                let template = self.template();
                let about = |error| format!("for {cluster}: {error}");
                let spec = template::fill(&template, cluster, found.as_deref(), self.programs);
                spec.and_then(parts).map_err(about)?
            }
            Some(other) => {
                return Err(format!(
                    "the annotation {} is {CEL} or nothing, not {other:?}",
                    annotation::TEMPLATE_VALUES
                ));
            }
        };
        let parts = parts.into_iter().enumerate();
        Ok(parts
            .map(|(part, spec)| self.work(cluster, part, spec))
            .collect())
    }

    fn template(&self) -> ManifestWorkSpec {
        let template = &self.observed.set.spec.manifest_work_template;
        template.clone().unwrap_or_default()
    }

    fn work(&self, cluster: &str, part: usize, spec: ManifestWorkSpec) -> ManifestWork {
        let set = self.observed.set;
        let mut labels = set.metadata.labels.clone().unwrap_or_default();
        labels.insert(label::REPLICA_SET.to_owned(), self.owner.to_owned());
        labels.insert(label::PLACEMENT_NAME.to_owned(), self.placement.to_owned());
        if part > 0 {
            labels.insert(label::PART.to_owned(), part.to_string());
        }
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let suffix = suffix(&format!("{}/{}/{part}", self.owner, self.placement));
        ManifestWork {
            metadata: ObjectMeta {
                name: Some(format!("{name}{suffix}")),
                namespace: Some(cluster.to_owned()),
                labels: Some(labels),
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
fn parts(spec: ManifestWorkSpec) -> Result<Vec<ManifestWorkSpec>, String> {
    let parts = template::split(spec);
    parts.iter().try_for_each(check_new_spec)?;
    Ok(parts)
}

/// Five characters that stand for a text, as the server appends them to names that it makes up.
fn suffix(text: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    digest.iter().take(5).map(letter).collect()
}
