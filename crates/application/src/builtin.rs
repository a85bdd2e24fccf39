//! The definitions that the program brings along.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::definition::{Definition, DefinitionKind};
use crate::file;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/sources.rs"));
}

/// A definition file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// What it defines.
    pub kind: DefinitionKind,
    /// The name of the type.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
    /// An Application that uses the type.
    pub example: Option<&'static str>,
}

/// All definition files, components first.
pub fn sources() -> impl Iterator<Item = Source> {
    let all = embedded::SOURCES.iter();
    all.map(|(folder, name, text, example)| Source {
        kind: match *folder {
            "components" => DefinitionKind::Component,
            "traits" => DefinitionKind::Trait,
            "policies" => DefinitionKind::Policy,
            _ => DefinitionKind::WorkflowStep,
        },
        name,
        text,
        example: *example,
    })
}

/// An Application that uses a built-in type.
pub fn example(kind: DefinitionKind, name: &str) -> Option<&'static str> {
    let mut all = sources().filter(|source| source.kind == kind && source.name == name);
    all.find_map(|source| source.example)
}

type Table = BTreeMap<(DefinitionKind, &'static str), LazyDefinition>;
type LazyDefinition =
    LazyLock<Option<Arc<Definition>>, Box<dyn FnOnce() -> Option<Arc<Definition>> + Send>>;

/// All definitions, with the names of their types.
fn table(type_name: fn(&str) -> String) -> Table {
    let entry = |source: Source| {
        let read = move || {
            // That every file can be read is a test.
            let object = file::parse(source.name, source.text).ok()?;
            Some(Definition::new(source.kind, type_name(source.name), object))
        };
        let read: Box<dyn FnOnce() -> Option<Arc<Definition>> + Send> = Box::new(read);
        ((source.kind, source.name), LazyLock::new(read))
    };
    sources().map(entry).collect()
}

static TABLE: LazyLock<Table> = LazyLock::new(|| table(str::to_owned));
static FIRST_VERSIONS: LazyLock<Table> =
    LazyLock::new(|| table(|name| format!("{name}-{FIRST_VERSION}")));

/// The version that a built-in definition is.
pub const FIRST_VERSION: &str = "v1";

/// The built-in definition of a type, read the first time.
pub fn find(kind: DefinitionKind, name: &str) -> Option<Arc<Definition>> {
    find_in(&TABLE, kind, name)
}

/// The built-in definition of a type as its first version: the type has the version in its name.
pub fn find_first_version(kind: DefinitionKind, name: &str) -> Option<Arc<Definition>> {
    find_in(&FIRST_VERSIONS, kind, name)
}

fn find_in(table: &'static Table, kind: DefinitionKind, name: &str) -> Option<Arc<Definition>> {
    table
        .iter()
        .find(|((known_kind, known), _)| *known_kind == kind && *known == name)
        .and_then(|(_, definition)| (**definition).clone())
}

/// Names of the built-in types of a kind.
pub fn names(kind: DefinitionKind) -> impl Iterator<Item = &'static str> {
    let all = sources().filter(move |source| source.kind == kind);
    all.map(|source| source.name)
}

/// All built-in definitions as objects for a server.
pub fn objects() -> Vec<Value> {
    let found = sources().filter_map(|source| find(source.kind, source.name));
    found.map(|definition| definition.object.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_definition_named_after_it() {
        for source in sources() {
            let object = match file::parse(source.name, source.text) {
                Ok(object) => object,
                Err(error) => panic!("{}: {error}", source.name),
            };
            assert_eq!(object["metadata"]["name"], source.name);
            assert_eq!(object["kind"], source.kind.object_kind());
            let description = &object["metadata"]["annotations"]["definition.oam.dev/description"];
            assert!(
                description.as_str().is_some_and(|text| text.ends_with('.')),
                "{}",
                source.name
            );
        }
    }

    #[test]
    fn snippets_of_every_definition_compile() {
        for source in sources() {
            let definition = find(source.kind, source.name).unwrap();
            let status = definition.status();
            for snippet in [&status.details, &status.health, &status.message]
                .into_iter()
                .flatten()
            {
                assert!(
                    snippet.is_ok(),
                    "{}: {:?}",
                    source.name,
                    snippet.as_ref().err()
                );
            }
        }
    }

    #[test]
    fn types_are_found_by_kind_and_name() {
        assert!(find(DefinitionKind::Component, "webservice").is_some());
        assert!(find(DefinitionKind::Trait, "webservice").is_none());
    }
}
