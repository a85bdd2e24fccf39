//! Facts about fields that the OpenAPI schema does not tell, parsed once from `facts.txt`.
//!
//! The notation is described at the top of that file.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("facts.txt");
const API_PREFIX: &str = "io.k8s.api.";

static FACTS: LazyLock<HashMap<String, TypeFacts>> = LazyLock::new(|| parse(TEXT));

/// What is known about the type of this OpenAPI name.
pub(crate) fn of(type_name: &str) -> Option<&'static TypeFacts> {
    FACTS.get(type_name)
}

/// What is known about an object type.
#[derive(Debug, Default)]
pub(crate) struct TypeFacts {
    /// Whether server-side apply replaces objects of the type as a whole.
    pub(crate) atomic: bool,
    /// The fields, sorted by name.
    fields: Vec<FieldFacts>,
    /// Those of them that are written whether or not they were given.
    written: Vec<FieldFacts>,
}

impl TypeFacts {
    /// What is known about one field.
    pub(crate) fn field(&self, name: &str) -> Option<&FieldFacts> {
        let found = self.fields.binary_search_by(|field| field.name.cmp(name));
        found.ok().map(|index| &self.fields[index])
    }

    /// The fields that are written whether or not they were given.
    pub(crate) fn written(&self) -> impl Iterator<Item = &FieldFacts> {
        self.written.iter()
    }
}

/// What is known about a field of an object type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldFacts {
    pub(crate) name: &'static str,
    pub(crate) presence: Presence,
    pub(crate) list: ListFact,
    pub(crate) atomic: bool,
    pub(crate) patch: Option<PatchFact>,
    pub(crate) default: Option<&'static str>,
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Unless it is empty, zero or false.
    NotZero,
    /// If it was given.
    Given,
    /// Always; as `null` if it was not given.
    GivenOrNull,
    /// Always; as the zero value if it was not given.
    Always,
    /// Always, as an object.
    Object,
}

/// How items of a list are distinguished in server-side apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFact {
    /// They are not: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields, comma-separated.
    Keys(&'static str),
}

/// How a strategic merge patch merges a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatchFact {
    pub(crate) merge: bool,
    pub(crate) key: Option<&'static str>,
    pub(crate) retain_keys: bool,
}

fn parse(text: &'static str) -> HashMap<String, TypeFacts> {
    let mut types: HashMap<String, TypeFacts> = HashMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if line.starts_with("//") {
            continue;
        }
        if let Some(fields) = line.strip_prefix("  ") {
            let facts = types.entry(current.clone()).or_default();
            facts.fields.extend(fields.split_whitespace().map(field));
            facts.fields.sort_by_key(|field| field.name);
            let optional =
                |field: &&FieldFacts| matches!(field.presence, Presence::NotZero | Presence::Given);
            let written = facts.fields.iter().filter(|field| !optional(field));
            facts.written = written.copied().collect();
        } else {
            let name = line.trim_end_matches('#');
            current = if name.starts_with("io.k8s.") {
                name.to_owned()
            } else {
                format!("{API_PREFIX}{name}")
            };
            types.entry(current.clone()).or_default().atomic = line.ends_with('#');
        }
    }
    types
}

fn field(token: &'static str) -> FieldFacts {
    let (rest, default) = match token.split_once('=') {
        Some((rest, default)) => (rest, Some(default)),
        None => (token, None),
    };
    let (rest, patch) = patch(rest);
    let (rest, atomic) = match rest.strip_suffix('#') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (rest, list) = match rest.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((rest, "*")) => (rest, ListFact::Set),
        Some((rest, keys)) => (rest, ListFact::Keys(keys)),
        None => (rest, ListFact::Atomic),
    };
    let (name, presence) = presence(rest);
    FieldFacts {
        name,
        presence,
        list,
        atomic,
        patch,
        default,
    }
}

fn patch(token: &'static str) -> (&'static str, Option<PatchFact>) {
    let (rest, retain_keys) = match token.strip_suffix('+') {
        Some(rest) => (rest, true),
        None => (token, false),
    };
    let (rest, key) = match rest.split_once('~') {
        Some((rest, key)) => (rest, Some(key)),
        None => (rest, None),
    };
    let fact = PatchFact {
        merge: key.is_some(),
        key: key.filter(|key| !key.is_empty()),
        retain_keys,
    };
    (rest, (fact.merge || retain_keys).then_some(fact))
}

fn presence(token: &'static str) -> (&'static str, Presence) {
    let marks = [
        ("?!", Presence::GivenOrNull),
        ("{}", Presence::Object),
        ("?", Presence::Given),
        ("!", Presence::Always),
    ];
    marks
        .into_iter()
        .find_map(|(mark, presence)| Some((token.strip_suffix(mark)?, presence)))
        .unwrap_or((token, Presence::NotZero))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_everything_about_a_field() {
        let facts = field("ports![port,protocol]~port+=x");
        assert_eq!(
            facts,
            FieldFacts {
                name: "ports",
                presence: Presence::Always,
                list: ListFact::Keys("port,protocol"),
                atomic: false,
                patch: Some(PatchFact {
                    merge: true,
                    key: Some("port"),
                    retain_keys: true
                }),
                default: Some("x"),
            }
        );
    }

    #[test]
    fn marks_tell_when_a_field_is_written() {
        let cases = [
            ("a", Presence::NotZero),
            ("a?", Presence::Given),
            ("a?!", Presence::GivenOrNull),
            ("a!", Presence::Always),
            ("a{}", Presence::Object),
        ];
        for (token, expected) in cases {
            assert_eq!(field(token).presence, expected, "{token}");
            assert_eq!(field(token).name, "a", "{token}");
        }
    }

    #[test]
    fn containers_merge_by_name() {
        let pod_spec = of("io.k8s.api.core.v1.PodSpec").unwrap();
        let containers = pod_spec.field("containers").unwrap();
        assert_eq!(containers.list, ListFact::Keys("name"));
        assert_eq!(containers.patch.unwrap().key, Some("name"));
        assert!(pod_spec.field("nodeSelector").unwrap().atomic);
    }

    #[test]
    fn a_label_selector_is_one_value() {
        assert!(
            of("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")
                .unwrap()
                .atomic
        );
    }
}
