//! The transformers: each changes all objects of a directory.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::FieldSpec;
use crate::error::{Problem, Result};
use crate::field_spec::{Missing, visit, visit_path};
use crate::id::{Gvk, Id};
use crate::kustomization::{ImageEntry, ReplicaEntry};
use crate::merge_schema::Schemas;
use crate::patch::Patch;
use crate::replacement::{self, Replacement};
use crate::resource::{Resource, scalar_text};
use crate::resource_list::ResourceList;
use crate::selector::Selector;
use crate::{hash, image, path};

/// One step of a build.
#[derive(Debug, Clone)]
pub(crate) enum Transformer {
    Patch(Patch),
    Namespace(Namespace),
    Prefix(String, Vec<FieldSpec>),
    Suffix(String, Vec<FieldSpec>),
    Labels(BTreeMap<String, String>, Vec<FieldSpec>),
    Annotations(BTreeMap<String, String>, Vec<FieldSpec>),
    Replicas(ReplicaEntry, Vec<FieldSpec>),
    Image(ImageEntry, Vec<FieldSpec>),
    Replacements(Vec<Replacement>),
    ValueAdd(ValueAdd),
    Hash,
    /// Several, under one name.
    Both(Box<Transformer>, Box<Transformer>),
}

/// Sets the namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldSpec>,
    /// True if namespaces that are set stay.
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

/// Which subjects of role bindings get the namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// Those called `default`.
    #[default]
    Default,
    None,
    /// All service accounts.
    ServiceAccounts,
}

/// Writes a value into fields.
#[derive(Debug, Clone)]
pub(crate) struct ValueAdd {
    pub(crate) value: String,
    pub(crate) targets: Vec<ValueTarget>,
}

/// Fields that a [`ValueAdd`] writes to.
#[derive(Debug, Clone)]
pub(crate) struct ValueTarget {
    pub(crate) selector: Option<Selector>,
    pub(crate) field_path: String,
    /// The part of a path that the value becomes, counted from 1; 0 for the whole field.
    pub(crate) position: usize,
}

impl Transformer {
    /// Changes all objects.
    pub(crate) fn apply(&self, list: &mut ResourceList, schemas: &Schemas) -> Result<()> {
        match self {
            Self::Patch(patch) => patch.apply(list, schemas),
            Self::Namespace(namespace) => namespace.apply(list),
            Self::Prefix(prefix, fields) => add_affix(
                prefix,
                fields,
                list,
                |resource| &mut resource.prefixes,
                |own| format!("{prefix}{own}"),
            ),
            Self::Suffix(suffix, fields) => add_affix(
                suffix,
                fields,
                list,
                |resource| &mut resource.suffixes,
                |own| format!("{own}{suffix}"),
            ),
            Self::Labels(pairs, fields) | Self::Annotations(pairs, fields) => {
                add_pairs(pairs, fields, list)
            }
            Self::Replicas(entry, fields) => set_replicas(entry, fields, list),
            Self::Image(entry, fields) => image::apply(entry, fields, &mut list.resources),
            Self::Replacements(replacements) => replacement::apply(replacements, list),
            Self::ValueAdd(value) => value.apply(list),
            Self::Hash => hash::add_hashes(list),
            Self::Both(first, second) => {
                first.apply(list, schemas)?;
                second.apply(list, schemas)
            }
        }
    }
}

/// Kinds whose names get no prefix or suffix.
fn keeps_name(id: &Id) -> bool {
    match id.gvk.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => id.gvk.group == "apiregistration.k8s.io",
        _ => false,
    }
}

fn add_affix(
    affix: &str,
    fields: &[FieldSpec],
    list: &mut ResourceList,
    history: fn(&mut Resource) -> &mut Vec<String>,
    change: impl Fn(&str) -> String,
) -> Result<()> {
    if affix.is_empty() {
        return Ok(());
    }
    for resource in &mut list.resources {
        let id = resource.original_id();
        if keeps_name(&id) {
            continue;
        }
        for field in fields
            .iter()
            .filter(|field| id.gvk.is_selected_by(&field.gvk))
        {
            if field.is_path(&["metadata", "name"]) {
                history(resource).push(affix.to_owned());
                resource.remember_id();
            }
            visit(&mut resource.value, field, Missing::Scalar, &mut |value| {
                *value = Value::String(change(&text_of(value)?));
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn text_of(value: &Value) -> Result<String> {
    match value {
        Value::Object(_) | Value::Array(_) => {
            let found = bellwether_json::path::type_name(value);
            Err(Problem::new(format!("expected a scalar, found a {found}")))
        }
        Value::Null => Ok(String::new()),
        scalar => Ok(scalar_text(scalar)),
    }
}

fn add_pairs(
    pairs: &BTreeMap<String, String>,
    fields: &[FieldSpec],
    list: &mut ResourceList,
) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    for resource in &mut list.resources {
        for field in fields {
            visit(&mut resource.value, field, Missing::Mapping, &mut |value| {
                let Value::Object(members) = value else {
                    let found = bellwether_json::path::type_name(value);
                    let message = format!("expected a mapping, found a {found}");
                    return Err(Problem::new(message));
                };
                for (key, text) in pairs {
                    members.insert(key.clone(), Value::from(text.as_str()));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn set_replicas(entry: &ReplicaEntry, fields: &[FieldSpec], list: &mut ResourceList) -> Result<()> {
    let mut found = false;
    for field in fields {
        for resource in &mut list.resources {
            let is_meant = |id: Id| id.name == entry.name && id.gvk.is_selected_by(&field.gvk);
            if resource.is_empty() || !resource.ids().any(is_meant) {
                continue;
            }
            found = true;
            visit(&mut resource.value, field, Missing::Scalar, &mut |value| {
                text_of(value)?;
                *value = Value::from(entry.count);
                Ok(())
            })?;
        }
    }
    if found {
        return Ok(());
    }
    let kinds: Vec<&str> = fields.iter().map(|field| field.gvk.kind.as_str()).collect();
    let message = format!(
        "`replicas` names {}, but nothing of that name is one of {}",
        entry.name,
        kinds.join(", ")
    );
    Err(Problem::new(message))
}

impl Namespace {
    fn apply(&self, list: &mut ResourceList) -> Result<()> {
        if self.name.is_empty() {
            return Ok(());
        }
        for resource in &mut list.resources {
            resource.remember_id();
            self.set_in(&mut resource.value)?;
        }
        list.check_unique("the namespace")
    }

    /// Sets the namespace of one object and in it.
    fn set_in(&self, object: &mut Value) -> Result<()> {
        let gvk = Gvk::of(object);
        let names = |path: &[&str]| -> Vec<String> { path.iter().map(|&s| s.to_owned()).collect() };
        if !gvk.is_cluster_scoped() {
            let path = names(&["metadata", "namespace"]);
            visit_path(object, &path, Missing::Scalar, &mut |value| self.set(value))?;
        }
        let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        if is_binding {
            self.set_subjects(object)?;
        }
        for field in &self.fields {
            let skipped = field.is_path(&["metadata", "namespace"])
                || (field.is_path(&["metadata", "name"]) && gvk.api_version() != "v1")
                || (is_binding && field.is_path(&["subjects", "namespace"]));
            if !skipped {
                visit(object, field, Missing::Scalar, &mut |value| self.set(value))?;
            }
        }
        Ok(())
    }

    fn set(&self, value: &mut Value) -> Result<()> {
        let text = text_of(value)?;
        if !self.unset_only || text.is_empty() {
            *value = Value::from(self.name.as_str());
        }
        Ok(())
    }

    fn set_subjects(&self, object: &mut Value) -> Result<()> {
        let Some(Value::Array(subjects)) = object.get_mut("subjects") else {
            return Ok(());
        };
        for subject in subjects {
            let is =
                |key: &str, wanted: &str| subject.get(key).and_then(Value::as_str) == Some(wanted);
            let is_meant = match self.subjects {
                Subjects::None => false,
                Subjects::Default => is("name", "default"),
                Subjects::ServiceAccounts => is("kind", "ServiceAccount"),
            };
            if is_meant {
                let path = ["namespace".to_owned()];
                visit_path(subject, &path, Missing::Scalar, &mut |value| {
                    self.set(value)
                })?;
            }
        }
        Ok(())
    }
}

impl ValueAdd {
    fn apply(&self, list: &mut ResourceList) -> Result<()> {
        for target in &self.targets {
            let selected = match &target.selector {
                None => (0..list.resources.len()).collect(),
                Some(selector) => list.select(selector)?,
            };
            for index in selected {
                let object = &mut list.resources[index].value;
                if target.field_path == "metadata/namespace" {
                    let namespace = Namespace {
                        name: self.value.clone(),
                        ..Namespace::default()
                    };
                    namespace.set_in(object)?;
                    continue;
                }
                let path = path::split(&target.field_path, '/');
                visit_path(object, &path, Missing::Scalar, &mut |value| {
                    let before = text_of(value)?;
                    *value = Value::String(match target.position {
                        0 => self.value.clone(),
                        position => insert_part(&before, position - 1, &self.value),
                    });
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Inserts a part into a path; positions beyond the end add it at the end.
fn insert_part(path: &str, position: usize, part: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    format!("{}{}", if rooted { "/" } else { "" }, parts.join("/"))
}
