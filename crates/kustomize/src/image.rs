//! `images`: other names, tags and digests for container images.

use serde_json::Value;

use crate::config::FieldSpec;
use crate::error::{Problem, Result};
use crate::field_spec::{Missing, visit};
use crate::kustomization::ImageEntry;
use crate::resource::{Resource, scalar_text};
use crate::selector::regex;

/// Changes the images of objects, in containers anywhere and in the fields of the configuration.
pub(crate) fn apply(
    entry: &ImageEntry,
    fields: &[FieldSpec],
    resources: &mut [Resource],
) -> Result<()> {
    let Ok(matcher) = Matcher::new(&entry.name) else {
        // A name that is not a regular expression matches nothing, as in kustomize.
        return Ok(());
    };
    let is_custom = |resource: &&mut Resource| resource.kind() != "CustomResourceDefinition";
    for resource in resources.iter_mut().filter(is_custom) {
        change(entry, fields, &matcher, resource)?;
    }
    Ok(())
}

fn change(
    entry: &ImageEntry,
    fields: &[FieldSpec],
    matcher: &Matcher,
    resource: &mut Resource,
) -> Result<()> {
    in_containers(&mut resource.value, &mut |image| {
        update(image, entry, matcher)
    })?;
    for field in fields {
        visit(&mut resource.value, field, Missing::Leave, &mut |image| {
            update(image, entry, matcher)
        })?;
    }
    Ok(())
}

fn in_containers(value: &mut Value, set: &mut dyn FnMut(&mut Value) -> Result<()>) -> Result<()> {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| in_containers(item, set)),
        Value::Object(members) => {
            for (name, member) in members {
                in_containers(member, set)?;
                if !matches!(name.as_str(), "containers" | "initContainers") {
                    continue;
                }
                let Value::Array(containers) = member else {
                    continue;
                };
                for container in containers {
                    match container {
                        Value::Object(members) => {
                            let image = members.get_mut("image");
                            image
                                .filter(|image| !image.is_null())
                                .map_or(Ok(()), &mut *set)?;
                        }
                        Value::Null => {}
                        _ => return Err(Problem::new("an item of `containers` is not a mapping")),
                    }
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn update(image: &mut Value, entry: &ImageEntry, matcher: &Matcher) -> Result<()> {
    if image.is_object() || image.is_array() {
        return Err(Problem::new("an image is not a text"));
    }
    let text = scalar_text(image);
    if !matcher.matches(&text) {
        return Ok(());
    }
    let Reference { name, tag, digest } = Reference::split(&text);
    let name = if entry.new_name.is_empty() {
        name
    } else {
        &entry.new_name
    };
    let (mut tag, mut digest) = (tag.to_owned(), digest.to_owned());
    if !entry.new_tag.is_empty() || !entry.digest.is_empty() {
        tag.clone_from(&entry.new_tag);
        digest.clone_from(&entry.digest);
    } else if !entry.tag_suffix.is_empty() {
        tag.push_str(&entry.tag_suffix);
        digest.clear();
    }
    let mut changed = name.to_owned();
    for (separator, part) in [(':', tag), ('@', digest)] {
        if !part.is_empty() {
            changed.push(separator);
            changed.push_str(&part);
        }
    }
    *image = Value::String(changed);
    Ok(())
}

struct Reference<'t> {
    name: &'t str,
    tag: &'t str,
    digest: &'t str,
}

impl<'t> Reference<'t> {
    /// Splits at the tag and the digest; a colon before the first slash belongs to a port.
    fn split(text: &'t str) -> Self {
        let slash = text.find('/').unwrap_or(0);
        let digest_at = text[slash..].find('@').map(|at| at + slash);
        let tag_at = text[slash..].find(':').map(|at| at + slash);
        let (name_end, tag) = match (tag_at, digest_at) {
            (Some(tag_at), None) => (tag_at, &text[tag_at + 1..]),
            (Some(tag_at), Some(digest_at)) if tag_at < digest_at => {
                (tag_at, &text[tag_at + 1..digest_at])
            }
            (_, Some(digest_at)) => (digest_at, ""),
            (None, None) => (text.len(), ""),
        };
        Self {
            name: &text[..name_end],
            tag,
            digest: digest_at.map_or("", |at| &text[at + 1..]),
        }
    }
}

/// Tells whether an image has a name, which is a regular expression.
struct Matcher(regex::Regex);

impl Matcher {
    fn new(name: &str) -> Result<Self> {
        let tag = "(:[a-zA-Z0-9_.{}-]*)?";
        let digest = "(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?";
        Ok(Self(regex(&format!("^{name}{tag}{digest}$"))?))
    }

    fn matches(&self, image: &str) -> bool {
        self.0.is_match(image)
    }
}
