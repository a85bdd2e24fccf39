//! Patches of every form: strategic merge or JSON, inline or from a file, with or without a target.

use bellwether_json::yaml::value_from_yaml;
use bellwether_patch::json_patch::JsonPatch;
use serde_json::Value;

use crate::error::{Problem, Result};
use crate::kustomization::PatchOptions;
use crate::merge_schema::Schemas;
use crate::resource::Resource;
use crate::resource_list::ResourceList;
use crate::selector::Selector;
use crate::strategic;

/// A patch that is ready to be applied.
#[derive(Debug, Clone)]
pub(crate) struct Patch {
    content: Content,
    target: Option<Selector>,
    options: PatchOptions,
    /// Where the patch is written, for errors.
    place: String,
}

#[derive(Debug, Clone)]
enum Content {
    /// Partial objects.
    Strategic(Vec<Resource>),
    Json(JsonPatch),
}

impl Patch {
    /// Reads a patch of either form; `place` says where it is written.
    pub(crate) fn read(
        text: &str,
        target: Option<Selector>,
        options: PatchOptions,
        place: &str,
    ) -> Result<Self> {
        let is_json = text.trim_start().starts_with('[') || is_list(text);
        let content = if is_json {
            Content::Json(read_json(text).map_err(|problem| in_place(problem, place))?)
        } else {
            let patches = Resource::read_all(text).map_err(|problem| in_place(problem, place))?;
            Content::Strategic(patches)
        };
        Ok(Self {
            content,
            target,
            options,
            place: place.to_owned(),
        })
    }

    /// Reads a JSON patch.
    pub(crate) fn read_json6902(text: &str, target: Option<Selector>, place: &str) -> Result<Self> {
        if target.as_ref().is_none_or(|target| target.name.is_empty()) {
            let message = "a JSON patch needs a `target` with a `name`";
            return Err(in_place(Problem::new(message), place));
        }
        Ok(Self {
            content: Content::Json(read_json(text).map_err(|problem| in_place(problem, place))?),
            target,
            options: PatchOptions::default(),
            place: place.to_owned(),
        })
    }

    pub(crate) fn apply(&self, list: &mut ResourceList, schemas: &Schemas) -> Result<()> {
        let applied = match (&self.content, &self.target) {
            (Content::Json(patch), Some(target)) => apply_json(patch, target, list),
            (Content::Json(_), None) => Err(Problem::new(
                "a JSON patch needs a `target` that says what to patch",
            )),
            (Content::Strategic(patches), None) => patches.iter().try_for_each(|patch| {
                let index = list.find(&patch.id())?;
                self.merge(patch, &mut list.resources[index], schemas)
            }),
            (Content::Strategic(patches), Some(target)) => match patches.as_slice() {
                [] => Ok(()),
                [patch] => {
                    for index in list.select(target)? {
                        self.merge(patch, &mut list.resources[index], schemas)?;
                    }
                    list.drop_empty();
                    list.check_unique("a patch")
                }
                _ => Err(Problem::new(
                    "several strategic merge patches in one entry cannot have a `target`: \
                     use one entry for each",
                )),
            },
        };
        applied.map_err(|problem| in_place(problem, &self.place))
    }

    fn merge(&self, patch: &Resource, resource: &mut Resource, schemas: &Schemas) -> Result<()> {
        let (name, namespace) = (resource.name().to_owned(), resource.namespace().to_owned());
        let kind = resource.kind().to_owned();
        if self.options.allow_name_change || self.options.allow_kind_change {
            resource.remember_id();
        }
        let mut change = patch.value.clone();
        if let (Value::Object(members), Some(version)) =
            (&mut change, resource.value.get("apiVersion"))
        {
            members.insert("apiVersion".to_owned(), version.clone());
        }
        let merged = strategic::merge(std::mem::take(&mut resource.value), change, schemas)?;
        resource.value = merged.unwrap_or_default();
        if resource.is_empty() {
            return Ok(());
        }
        if !self.options.allow_kind_change {
            resource.set(&["kind"], Value::String(kind))?;
        }
        if !self.options.allow_name_change {
            resource.set_name(&name)?;
        }
        resource.set_namespace(&namespace)
    }
}

/// Says where the patch is; a line in it is not one of the kustomization.
fn in_place(mut problem: Problem, place: &str) -> Problem {
    if problem.file.is_some() {
        return problem;
    }
    let message = std::mem::take(&mut problem.message);
    problem.message = match (place, problem.line.take()) {
        ("", None) => message,
        ("", Some(line)) => format!("line {line} of the patch: {message}"),
        (place, None) => format!("{place}: {message}"),
        (place, Some(line)) => format!("{place}:{line}: {message}"),
    };
    problem
}

fn is_list(text: &str) -> bool {
    let is_content = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("---")
    };
    let first = text.lines().find(is_content);
    first.is_some_and(|line| line.trim_start().starts_with("- "))
}

fn read_json(text: &str) -> Result<JsonPatch> {
    // What begins with a bracket is JSON to kustomize, not YAML.
    if text.starts_with('[')
        && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text)
    {
        let message = format!(
            "unable to parse SM or JSON patch: {error}: quote keys and texts, or write a YAML list"
        );
        return Err(Problem::new(message));
    }
    let operations = value_from_yaml(text)?;
    if operations.as_array().is_none_or(Vec::is_empty) {
        return Err(Problem::new(
            "the patch is empty: list at least one operation",
        ));
    }
    JsonPatch::parse(&operations).map_err(|error| Problem::new(error.to_string()))
}

fn apply_json(patch: &JsonPatch, target: &Selector, list: &mut ResourceList) -> Result<()> {
    for index in list.select(target)? {
        let resource = &mut list.resources[index];
        resource.remember_id();
        let id = resource.id();
        let value = std::mem::take(&mut resource.value);
        resource.value = patch
            .apply(value)
            .map_err(|error| Problem::new(format!("{error}: correct the patch of {id}")))?;
    }
    Ok(())
}
