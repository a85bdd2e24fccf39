//! The transformers of one directory, in kustomize's order.

use super::{Accumulated, Builder, Loader, Place, configured_by};
use crate::config::{Config, FieldSpec, merge_all, merge_one};
use crate::error::{Error, Problem, Result};
use crate::id::Gvk;
use crate::kustomization::{Kustomization, LabelSet};
use crate::origin::Origin;
use crate::patch::Patch;
use crate::transform::{Namespace, Transformer};
use crate::{path, plugin};

/// Transformers that count as one, and what they are recorded as.
struct Step {
    /// The list of the kustomization that it comes from, and its place in it.
    item: (&'static str, usize),
    transformers: Vec<Transformer>,
    origin: Option<Origin>,
}

impl<'t> Builder<'t> {
    /// Runs the transformers and validators of a directory.
    pub(super) fn transform(
        &mut self,
        accumulated: &mut Accumulated,
        kustomization: &Kustomization,
        loader: &Loader<'t>,
        place: &Place<'_>,
        file: &str,
    ) -> Result<(), Error> {
        let in_file = |problem: Problem| Error::from(problem.in_file(file));
        let text = loader.text(path::base(file)).map_err(in_file)?;
        let builtin = builtin(kustomization, &accumulated.config, loader, text).map_err(in_file)?;
        let mut steps: Vec<Step> = builtin
            .into_iter()
            .map(|(kind, item, transformers)| Step {
                item,
                transformers,
                origin: place
                    .origin
                    .as_ref()
                    .map(|origin| origin.builtin(path::base(file), kind)),
            })
            .collect();
        for object in self.plugins(&kustomization.transformers, loader, place, file)? {
            steps.push(Step {
                item: ("transformers", 0),
                transformers: plugin::transformer(&object, loader).map_err(in_file)?,
                origin: configured_by(&object),
            });
        }
        for step in steps {
            for transformer in &step.transformers {
                let (key, index) = step.item;
                transformer
                    .apply(&mut accumulated.list, &self.schemas)
                    .map_err(|problem| in_file(problem.at_item(text, key, index)))?;
            }
            if let Some(origin) = &step.origin {
                for resource in &mut accumulated.list.resources {
                    if resource.origin.is_none() {
                        resource.origin = Some(origin.clone());
                    } else {
                        resource.transformations.push(origin.clone());
                    }
                }
            }
            accumulated.list.drop_empty();
        }
        self.validate(accumulated, kustomization, loader, place, file)
    }

    /// Runs validators, which are transformers that must not change anything.
    fn validate(
        &mut self,
        accumulated: &Accumulated,
        kustomization: &Kustomization,
        loader: &Loader<'t>,
        place: &Place<'_>,
        file: &str,
    ) -> Result<(), Error> {
        let in_file = |problem: Problem| Error::from(problem.in_file(file));
        for object in self.plugins(&kustomization.validators, loader, place, file)? {
            let mut copy = accumulated.list.clone();
            for transformer in plugin::transformer(&object, loader).map_err(in_file)? {
                transformer
                    .apply(&mut copy, &self.schemas)
                    .map_err(in_file)?;
            }
            let values = |list: &crate::resource_list::ResourceList| -> Vec<serde_json::Value> {
                list.resources
                    .iter()
                    .map(|resource| resource.value.clone())
                    .collect()
            };
            if values(&copy) != values(&accumulated.list) {
                let message = format!("the validator {} changes objects", object.id());
                return Err(in_file(Problem::new(message)));
            }
        }
        Ok(())
    }
}

/// Fields of a transformer: the defaults and what is configured.
fn fields(extra: &Config, of: fn(&Config) -> &Vec<FieldSpec>) -> Result<Vec<FieldSpec>> {
    let mut fields = of(Config::defaults()).clone();
    merge_all(&mut fields, of(extra))?;
    Ok(fields)
}

/// The name of a kind of transformers, the item of the kustomization, and the transformers.
type Builtin = (&'static str, (&'static str, usize), Vec<Transformer>);

/// The transformers that the fields of a kustomization stand for, by the name of their kind.
fn builtin(
    kustomization: &Kustomization,
    extra: &Config,
    loader: &Loader<'_>,
    text: &str,
) -> Result<Vec<Builtin>> {
    let mut steps = Vec::new();
    let strategic = &kustomization.patches_strategic_merge;
    if !strategic.is_empty() {
        let item = ("patchesStrategicMerge", 0);
        let patches = plugin::strategic_patches(strategic, loader)
            .map_err(|problem| problem.at_item(text, item.0, item.1))?;
        steps.push(("PatchStrategicMergeTransformer", item, patches));
    }
    for (index, entry) in kustomization.patches.iter().enumerate() {
        let item = ("patches", index);
        let patch = plugin::text_or_file(entry.patch.trim(), &entry.path, loader)
            .and_then(|patch| Patch::read(&patch, entry.target.clone(), entry.options, &entry.path))
            .map_err(|problem| problem.at_item(text, item.0, item.1))?;
        steps.push(("PatchTransformer", item, vec![Transformer::Patch(patch)]));
    }
    if !kustomization.namespace.is_empty() {
        let namespace = Namespace {
            name: kustomization.namespace.clone(),
            fields: fields(extra, |config| &config.namespace)?,
            ..Namespace::default()
        };
        steps.push((
            "NamespaceTransformer",
            ("namespace", 0),
            vec![Transformer::Namespace(namespace)],
        ));
    }
    if !kustomization.name_prefix.is_empty() {
        let fields = fields(extra, |config| &config.name_prefix)?;
        let prefix = Transformer::Prefix(kustomization.name_prefix.clone(), fields);
        steps.push(("PrefixTransformer", ("namePrefix", 0), vec![prefix]));
    }
    if !kustomization.name_suffix.is_empty() {
        let fields = fields(extra, |config| &config.name_suffix)?;
        let suffix = Transformer::Suffix(kustomization.name_suffix.clone(), fields);
        steps.push(("SuffixTransformer", ("nameSuffix", 0), vec![suffix]));
    }
    for labels in label_steps(kustomization, extra)? {
        steps.push(("LabelTransformer", ("labels", 0), vec![labels]));
    }
    if !kustomization.common_annotations.is_empty() {
        let fields = fields(extra, |config| &config.common_annotations)?;
        let annotations =
            Transformer::Annotations(kustomization.common_annotations.clone(), fields);
        steps.push((
            "AnnotationsTransformer",
            ("commonAnnotations", 0),
            vec![annotations],
        ));
    }
    for (index, entry) in kustomization.patches_json6902.iter().enumerate() {
        let item = ("patchesJson6902", index);
        let patch = plugin::text_or_file(&entry.patch, &entry.path, loader)
            .and_then(|patch| Patch::read_json6902(&patch, entry.target.clone(), &entry.path))
            .map_err(|problem| problem.at_item(text, item.0, item.1))?;
        let patch = vec![Transformer::Patch(patch)];
        steps.push(("PatchJson6902Transformer", item, patch));
    }
    for (index, entry) in kustomization.replicas.iter().enumerate() {
        let fields = fields(extra, |config| &config.replicas)?;
        let replicas = Transformer::Replicas(entry.clone(), fields);
        steps.push((
            "ReplicaCountTransformer",
            ("replicas", index),
            vec![replicas],
        ));
    }
    for (index, entry) in kustomization.images.iter().enumerate() {
        let fields = fields(extra, |config| &config.images)?;
        let image = Transformer::Image(entry.clone(), fields);
        steps.push(("ImageTagTransformer", ("images", index), vec![image]));
    }
    if !kustomization.replacements.is_empty() {
        let replacements = plugin::replacements(&kustomization.replacements, loader)?;
        let replacements = Transformer::Replacements(replacements);
        steps.push((
            "ReplacementTransformer",
            ("replacements", 0),
            vec![replacements],
        ));
    }
    Ok(steps)
}

fn label_steps(kustomization: &Kustomization, extra: &Config) -> Result<Vec<Transformer>> {
    if kustomization.labels.is_empty() && kustomization.common_labels.is_empty() {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for labels in &kustomization.labels {
        let fields = label_fields(labels, extra)?;
        steps.push(Transformer::Labels(labels.pairs.clone(), fields));
    }
    // kustomize adds this step even if there are no common labels.
    steps.push(Transformer::Labels(
        kustomization.common_labels.clone(),
        fields(extra, |config| &config.common_labels)?,
    ));
    Ok(steps)
}

fn label_fields(labels: &LabelSet, extra: &Config) -> Result<Vec<FieldSpec>> {
    let mut merged = labels.fields.clone();
    merge_all(&mut merged, &fields(extra, |config| &config.labels)?)?;
    if labels.include_selectors {
        merge_all(&mut merged, &fields(extra, |config| &config.common_labels)?)?;
        return Ok(merged);
    }
    if labels.include_templates {
        merge_all(
            &mut merged,
            &fields(extra, |config| &config.template_labels)?,
        )?;
    }
    if labels.include_volume_claim_templates {
        let claims = fields(extra, |config| &config.volume_claim_template_labels)?;
        merge_all(&mut merged, &claims)?;
    }
    merge_one(
        &mut merged,
        &FieldSpec::new(Gvk::default(), "metadata/labels", true),
    )?;
    Ok(merged)
}
