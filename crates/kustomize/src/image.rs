//! `images`: other names, tags and digests for container images.

use bellwether_go::regexp::Regex;
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
enum Matcher {
    /// A name without operators other than the dot, which stands for any character. Most are, and
    /// compiling an expression costs more than all else that an entry does.
    Plain(String),
    Regex(Regex),
}

impl Matcher {
    fn new(name: &str) -> Result<Self> {
        let is_plain = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/' | b':' | b'.')
        };
        if name.bytes().all(is_plain) {
            return Ok(Self::Plain(name.to_owned()));
        }
        Self::regex(name)
    }

    fn regex(name: &str) -> Result<Self> {
        let tag = "(:[a-zA-Z0-9_.{}-]*)?";
        let digest = "(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?";
        Ok(Self::Regex(regex(&format!("^{name}{tag}{digest}$"))?))
    }

    fn matches(&self, image: &str) -> bool {
        match self {
            Self::Plain(name) => has_plain_name(name, image),
            Self::Regex(regex) => regex.is_match(image),
        }
    }
}

/// True if an image is a plain name, then a tag or none, then a digest or none.
fn has_plain_name(name: &str, image: &str) -> bool {
    let mut rest = image.chars();
    for expected in name.chars() {
        match rest.next() {
            Some(found) if found == expected || (expected == '.' && found != '\n') => {}
            _ => return false,
        }
    }
    let is_word = |text: &str| {
        text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'{' | b'}' | b'-')
        })
    };
    let is_algorithm = |text: &str| {
        text.split(['.', '+', '_', '-'])
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let (tag, digest) = match rest.as_str().split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (rest.as_str(), None),
    };
    (tag.is_empty() || tag.strip_prefix(':').is_some_and(is_word))
        && digest.is_none_or(|digest| {
            digest
                .split_once(':')
                .is_some_and(|(algorithm, value)| is_algorithm(algorithm) && is_word(value))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_match_as_the_expression_does() {
        let names = ["", "a", "web", "r.io/web", "r:5000/web", "w.b", "a/b-c_d"];
        let tails = [
            "",
            ":",
            ":1.2",
            ":a{}",
            ":1:2",
            ":é",
            "@",
            "@sha256:ab",
            ":1@sha256:ab",
            "@sha256",
            "@a+b.c:",
            "@a++b:x",
            "@:x",
            ":1@a:b@c",
            "/x",
            "\n",
            ":1\n",
        ];
        for name in names {
            let (plain, regex) = (Matcher::new(name).unwrap(), Matcher::regex(name).unwrap());
            assert!(matches!(plain, Matcher::Plain(_)), "{name}");
            for image in names.into_iter().chain(["wéb", "w\nb", "rXio/web"]) {
                for tail in tails {
                    let image = format!("{image}{tail}");
                    assert_eq!(
                        plain.matches(&image),
                        regex.matches(&image),
                        "{name} {image}"
                    );
                }
            }
        }
        assert!(matches!(Matcher::new("a|b").unwrap(), Matcher::Regex(_)));
    }
}
