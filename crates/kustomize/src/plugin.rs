//! `generators`, `transformers` and `validators` that are objects: the built-in ones by their kind.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::build::Loader;
use crate::config::FieldSpec;
use crate::error::{Problem, Result};
use crate::generator::{self, Kind};
use crate::kustomization::{
    GeneratorEntry, ImageEntry, PatchOptions, ReplacementEntry, ReplicaEntry, decode, strip_nulls,
};
use crate::patch::Patch;
use crate::replacement::Replacement;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::transform::{Namespace, Subjects, Transformer, ValueAdd, ValueTarget};

/// Fields that every plugin has, and that say nothing about what it does.
const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn refuse_foreign(plugin: &Resource) -> Result<()> {
    if plugin.api_version() == "builtin" {
        return Ok(());
    }
    let message = format!(
        "{} is not built in: plugins that run programs or containers are not supported",
        plugin.id()
    );
    Err(Problem::new(message))
}

fn configuration(plugin: &Resource) -> Value {
    let mut value = plugin.value.clone();
    if let Value::Object(members) = &mut value {
        members.retain(|key, _| !ENVELOPE.contains(&key.as_str()));
    }
    strip_nulls(&mut value);
    value
}

fn read<T: DeserializeOwned>(plugin: &Resource) -> Result<T> {
    decode(plugin.kind(), configuration(plugin))
}

/// Runs a generator.
pub(crate) fn generate(plugin: &Resource, loader: &Loader<'_>) -> Result<Resource> {
    refuse_foreign(plugin)?;
    let kind = match plugin.kind() {
        "ConfigMapGenerator" => Kind::ConfigMap,
        "SecretGenerator" => Kind::Secret,
        other => {
            let message =
                format!("{other} is not a generator: use ConfigMapGenerator or SecretGenerator");
            return Err(Problem::new(message));
        }
    };
    let mut entry: GeneratorEntry = read(plugin)?;
    if entry.name.is_empty() {
        plugin.name().clone_into(&mut entry.name);
    }
    if entry.namespace.is_empty() {
        plugin.namespace().clone_into(&mut entry.namespace);
    }
    generator::generate(kind, &entry, None, loader)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Form {
    prefix: String,
    suffix: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    replica: ReplicaEntry,
    image_tag: ImageEntry,
    field_specs: Option<Vec<FieldSpec>>,
    unset_only: bool,
    set_role_binding_subjects: String,
    replacements: Vec<ReplacementEntry>,
    target: Option<Selector>,
    path: String,
    patch: String,
    json_op: String,
    options: PatchOptions,
    paths: Vec<String>,
    patches: String,
    value: String,
    targets: Vec<ValueTargetForm>,
    target_file_path: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ValueTargetForm {
    selector: Option<Selector>,
    field_path: String,
    file_path_position: i64,
}

/// Reads a transformer.
pub(crate) fn transformer(plugin: &Resource, loader: &Loader<'_>) -> Result<Vec<Transformer>> {
    refuse_foreign(plugin)?;
    let form: Form = read(plugin)?;
    let fields = form.field_specs.clone().unwrap_or_default();
    let needs_fields = || {
        if form.field_specs.is_some() {
            return Ok(());
        }
        let message = format!("{} needs `fieldSpecs`", plugin.id());
        Err(Problem::new(message))
    };
    let one = |transformer| Ok(vec![transformer]);
    match plugin.kind() {
        "AnnotationsTransformer" => one(Transformer::Annotations(form.annotations, fields)),
        "LabelTransformer" => one(Transformer::Labels(form.labels, fields)),
        "ImageTagTransformer" => one(Transformer::Image(form.image_tag, fields)),
        "ReplicaCountTransformer" => one(Transformer::Replicas(form.replica, fields)),
        "HashTransformer" => one(Transformer::Hash),
        "PrefixTransformer" => {
            needs_fields()?;
            one(Transformer::Prefix(form.prefix, fields))
        }
        "SuffixTransformer" => {
            needs_fields()?;
            one(Transformer::Suffix(form.suffix, fields))
        }
        "PrefixSuffixTransformer" => {
            needs_fields()?;
            one(Transformer::Both(
                Box::new(Transformer::Prefix(form.prefix, fields.clone())),
                Box::new(Transformer::Suffix(form.suffix, fields)),
            ))
        }
        "NamespaceTransformer" => one(Transformer::Namespace(Namespace {
            name: plugin.namespace().to_owned(),
            fields,
            unset_only: form.unset_only,
            subjects: subjects(&form.set_role_binding_subjects)?,
        })),
        "ReplacementTransformer" => one(Transformer::Replacements(replacements(
            &form.replacements,
            loader,
        )?)),
        "PatchTransformer" => patches(&form, loader),
        "PatchJson6902Transformer" => {
            let text = text_or_file(&form.json_op, &form.path, loader)?;
            let patch = Patch::read_json6902(&text, form.target, &form.path)?;
            one(Transformer::Patch(patch))
        }
        "PatchStrategicMergeTransformer" => {
            let mut transformers = strategic_patches(&form.paths, loader)?;
            if !form.patches.is_empty() {
                let patch = Patch::read(&form.patches, None, PatchOptions::default(), "")?;
                transformers.push(Transformer::Patch(patch));
            }
            Ok(transformers)
        }
        "ValueAddTransformer" => one(Transformer::ValueAdd(value_add(form, loader)?)),
        other => {
            let message = format!("{other} is not a transformer that is built in");
            Err(Problem::new(message))
        }
    }
}

fn subjects(text: &str) -> Result<Subjects> {
    match text {
        "" | "defaultOnly" => Ok(Subjects::Default),
        "none" => Ok(Subjects::None),
        "allServiceAccounts" => Ok(Subjects::ServiceAccounts),
        _ => {
            let message = format!(
                "`setRoleBindingSubjects` is {text:?}; use defaultOnly, none or allServiceAccounts"
            );
            Err(Problem::new(message))
        }
    }
}

fn patches(form: &Form, loader: &Loader<'_>) -> Result<Vec<Transformer>> {
    let text = text_or_file(form.patch.trim(), &form.path, loader)?;
    let patch = Patch::read(&text, form.target.clone(), form.options, &form.path)?;
    Ok(vec![Transformer::Patch(patch)])
}

/// The text itself, or that of a file; one of them has to be given.
pub(crate) fn text_or_file(text: &str, path: &str, loader: &Loader<'_>) -> Result<String> {
    match (text.is_empty(), path.is_empty()) {
        (false, true) => Ok(text.to_owned()),
        (true, false) => Ok(loader.text(path)?.to_owned()),
        (true, true) => Err(Problem::new("a patch needs `patch` or `path`")),
        (false, false) => Err(Problem::new(
            "a patch has both `patch` and `path`: remove one",
        )),
    }
}

/// Entries of `patchesStrategicMerge`: texts or files.
pub(crate) fn strategic_patches(
    entries: &[String],
    loader: &Loader<'_>,
) -> Result<Vec<Transformer>> {
    let read = |entry: &String| {
        let options = PatchOptions::default();
        let patch = if entry.contains('\n') {
            Patch::read(entry, None, options, "")?
        } else {
            Patch::read(loader.text(entry)?, None, options, entry)?
        };
        Ok(Transformer::Patch(patch))
    };
    entries.iter().map(read).collect()
}

/// Replacements, with those that are in files.
pub(crate) fn replacements(
    entries: &[ReplacementEntry],
    loader: &Loader<'_>,
) -> Result<Vec<Replacement>> {
    let mut replacements = Vec::new();
    for entry in entries {
        if entry.path.is_empty() {
            replacements.push(entry.replacement.clone());
            continue;
        }
        if entry.replacement.source.is_some() || entry.replacement.targets.is_some() {
            let message = "a replacement has both `path` and its own fields: remove one";
            return Err(Problem::new(message));
        }
        let mut content = loader.yaml(&entry.path)?;
        strip_nulls(&mut content);
        let in_file = |problem: Problem| problem.in_file(&loader.path(&entry.path));
        match content {
            Value::Array(_) => {
                let several: Vec<Replacement> = decode("replacements", content).map_err(in_file)?;
                replacements.extend(several);
            }
            content => replacements.push(decode("replacement", content).map_err(in_file)?),
        }
    }
    Ok(replacements)
}

fn value_add(form: Form, loader: &Loader<'_>) -> Result<ValueAdd> {
    let value = match form.value.trim() {
        "" => crate::path::base(loader.root()).to_owned(),
        value => value.to_owned(),
    };
    let mut targets = form.targets;
    if !form.target_file_path.is_empty() {
        let mut content = loader.yaml(&form.target_file_path)?;
        let listed = content
            .get_mut("targets")
            .map(Value::take)
            .unwrap_or_default();
        let more: Vec<ValueTargetForm> = decode("targets", listed)?;
        targets.extend(more);
    }
    if targets.is_empty() {
        return Err(Problem::new(
            "a ValueAddTransformer needs at least one of `targets`",
        ));
    }
    let target = |form: ValueTargetForm| {
        if form.field_path.is_empty() {
            return Err(Problem::new("a target needs `fieldPath`"));
        }
        let position = usize::try_from(form.file_path_position)
            .map_err(|_| Problem::new("`filePathPosition` cannot be negative"))?;
        Ok(ValueTarget {
            selector: form.selector,
            field_path: form.field_path,
            position,
        })
    };
    Ok(ValueAdd {
        value,
        targets: targets.into_iter().map(target).collect::<Result<_>>()?,
    })
}
