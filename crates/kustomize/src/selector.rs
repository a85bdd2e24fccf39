//! Which objects a patch or a replacement is about.

use bellwether_go::regexp::Regex;
use bellwether_json::label::LabelSelector;
use serde::Deserialize;

use crate::error::{Problem, Result};
use crate::id::{Gvk, Id};
use crate::resource::Resource;

/// A selector as it is written. Parts are regular expressions that have to match as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Selector {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    #[serde(rename = "labelSelector")]
    pub(crate) labels: String,
    #[serde(rename = "annotationSelector")]
    pub(crate) annotations: String,
}

impl Selector {
    /// True if only labels and annotations are selected by.
    pub(crate) fn names_nothing(&self) -> bool {
        [
            &self.group,
            &self.version,
            &self.kind,
            &self.name,
            &self.namespace,
        ]
        .iter()
        .all(|part| part.is_empty())
    }

    pub(crate) fn compile(&self) -> Result<CompiledSelector> {
        let labels = |text: &str| {
            LabelSelector::parse(text).map_err(|error| Problem::new(format!("{text:?}: {error}")))
        };
        Ok(CompiledSelector {
            group: Pattern::new(&self.group)?,
            version: Pattern::new(&self.version)?,
            kind: Pattern::new(&self.kind)?,
            name: Pattern::new(&self.name)?,
            namespace: Pattern::new(&self.namespace)?,
            labels: labels(&self.labels)?,
            annotations: labels(&self.annotations)?,
        })
    }
}

/// A selector that is ready to be asked.
#[derive(Debug)]
pub(crate) struct CompiledSelector {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl CompiledSelector {
    /// True if the object is selected by its present or its original name.
    pub(crate) fn selects(&self, resource: &Resource) -> bool {
        let (now, original) = (resource.id(), resource.original_id());
        (self.namespace.matches(original.effective_namespace())
            || self.namespace.matches(now.effective_namespace()))
            && (self.name.matches(&original.name) || self.name.matches(&now.name))
            && self.selects_kind(&now.gvk)
            && self.selects_metadata(resource)
    }

    /// True if the parts of an identity match.
    pub(crate) fn selects_id(&self, id: &Id) -> bool {
        self.selects_kind(&id.gvk)
            && self.name.matches(&id.name)
            && self.namespace.matches(&id.namespace)
    }

    pub(crate) fn selects_metadata(&self, resource: &Resource) -> bool {
        let matches = |selector: &LabelSelector, field: &str| {
            selector.is_everything() || {
                let pairs: std::collections::BTreeMap<String, String> =
                    resource.metadata(field).into_iter().collect();
                selector.matches(&pairs)
            }
        };
        matches(&self.labels, "labels") && matches(&self.annotations, "annotations")
    }

    fn selects_kind(&self, gvk: &Gvk) -> bool {
        self.group.matches(&gvk.group)
            && self.version.matches(&gvk.version)
            && self.kind.matches(&gvk.kind)
    }
}

/// One part of a selector; most are plain words, which need no regular expression.
#[derive(Debug)]
enum Pattern {
    Any,
    Word(String),
    Regex(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/');
        if text.bytes().all(is_plain) {
            return Ok(Self::Word(text.to_owned()));
        }
        Ok(Self::Regex(regex(&format!("^(?:{text})$"))?))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Word(word) => word == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Compiles a regular expression of Go's dialect, whose size is bounded.
pub(crate) fn regex(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|problem| {
        Problem::new(format!("a pattern is not a regular expression: {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_go_reads_them() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let found = Pattern::new(pattern).unwrap().matches(text);
            assert_eq!(found, expected, "{pattern} {text}");
        };
        check(r"v\d", "v1", true);
        check(r"v\d", "v\u{663}", false);
        check("v{,2}", "v{,2}", true);
        check("a|b", "ab", false);
        let error = Pattern::new("a**").unwrap_err().to_string();
        assert!(
            error.ends_with("invalid nested repetition operator: `**`"),
            "{error}"
        );
    }
}
