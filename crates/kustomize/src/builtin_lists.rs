//! Which lists of the built-in kinds merge, and by which keys.
//!
//! The whole schema of a kind knows this too, but takes milliseconds to build: more than everything
//! else that a build does. The notation of the table is described at its top; a test derives the
//! table from the schemas.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("builtin_lists.txt");

/// The line of each type, by its name.
static TYPES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = TEXT.lines().filter(|line| !line.starts_with("//"));
    lines.filter_map(|line| line.split_once(' ')).collect()
});

/// An object type with a list that merges in it, or below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltinType {
    fields: &'static str,
}

/// A field that is a list that merges, or that leads to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltinField {
    /// The keys of a list, separated by commas.
    keys: Option<&'static str>,
    /// The type of the object, or of the items of a list.
    value: Option<&'static str>,
}

impl BuiltinType {
    /// The type of the objects of a kind; `None` if no list of theirs merges.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<Self> {
        Self::named(&format!("{group}/{version}/{kind}"))
    }

    fn named(name: &str) -> Option<Self> {
        TYPES.get(name).map(|fields| Self { fields })
    }

    /// What is known about a field; `None` if nothing merges there.
    pub(crate) fn field(self, name: &str) -> Option<BuiltinField> {
        let mut fields = self.fields.split(' ').map(BuiltinField::read);
        fields.find_map(|(own, field)| (own == name).then_some(field))
    }
}

impl BuiltinField {
    /// Reads `name`, `name[keys]`, `name>Type` or `name[keys]>Type`.
    fn read(text: &'static str) -> (&'static str, Self) {
        let (text, value) = match text.split_once('>') {
            Some((text, value)) => (text, Some(value)),
            None => (text, None),
        };
        let (name, keys) = match text.split_once('[') {
            Some((name, keys)) => (name, Some(keys.trim_end_matches(']'))),
            None => (text, None),
        };
        (name, Self { keys, value })
    }

    /// The type of the object, or of the items of a list; `None` if nothing merges below.
    pub(crate) fn value(self) -> Option<BuiltinType> {
        BuiltinType::named(self.value?)
    }

    /// The keys by which the items of a list are identified; no keys if its items are scalars, `None`
    /// if this is no list that merges.
    pub(crate) fn merge_keys(self) -> Option<Vec<String>> {
        let keys = self.keys?.split(',').filter(|key| !key.is_empty());
        Some(keys.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bellwether_schema::{ListType, Schema};

    use super::*;

    /// The lines of the table as the schemas of the built-in kinds have them.
    #[derive(Default)]
    struct Table {
        /// Fields by the name of their type; no fields if nothing merges.
        lines: BTreeMap<String, Vec<String>>,
    }

    impl Table {
        /// Adds a type and all below it; true if anything merges there.
        fn add(&mut self, name: &str, schema: &Schema) -> bool {
            if let Some(fields) = self.lines.get(name) {
                return !fields.is_empty();
            }
            self.lines.insert(name.to_owned(), Vec::new());
            let mut fields = Vec::new();
            for (field, schema) in &schema.properties {
                let keys = merge_keys(schema);
                let value = match &keys {
                    Some(_) => schema.items.as_deref(),
                    None => Some(&**schema),
                };
                let value = value.and_then(|value| self.reference(value));
                let keys = keys.map(|keys| format!("[{keys}]"));
                if keys.is_some() || value.is_some() {
                    let (keys, value) = (keys.unwrap_or_default(), value.unwrap_or_default());
                    fields.push(format!("{field}{keys}{value}"));
                }
            }
            let merges = !fields.is_empty();
            self.lines.insert(name.to_owned(), fields);
            merges
        }

        fn reference(&mut self, schema: &Schema) -> Option<String> {
            if let Some(values) = &schema.additional_properties {
                assert!(
                    merge_keys(values).is_none() && self.reference(values).is_none(),
                    "the table has no notation for maps of what merges"
                );
            }
            let name = schema.type_name.as_deref()?.trim_start_matches("io.k8s.");
            self.add(name, schema).then(|| format!(">{name}"))
        }
    }

    fn merge_keys(schema: &Schema) -> Option<String> {
        let strategy = schema.patch.as_ref().filter(|strategy| strategy.merge)?;
        // Objects that merge need no note.
        schema.items.as_ref()?;
        Some(match (&schema.list_type, &strategy.merge_key) {
            (ListType::Map(keys), _) => keys.join(","),
            (_, Some(key)) => key.clone(),
            (_, None) => String::new(),
        })
    }

    #[test]
    fn the_table_is_that_of_the_schemas() {
        let mut table = Table::default();
        for kind in bellwether_kinds::resources() {
            let name = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
            table.add(&name, &kind.schema());
        }
        let comments = TEXT.lines().filter(|line| line.starts_with("//"));
        let mut derived: Vec<String> = comments.map(str::to_owned).collect();
        let lines = table.lines.iter().filter(|(_, fields)| !fields.is_empty());
        derived.extend(lines.map(|(name, fields)| format!("{name} {}", fields.join(" "))));
        let derived = derived.join("\n") + "\n";
        assert!(
            TEXT == derived,
            "write this to src/builtin_lists.txt:\n{derived}"
        );
    }

    #[test]
    fn places_are_found() {
        let deployment = BuiltinType::of_kind("apps", "v1", "Deployment").unwrap();
        let spec = deployment.field("spec").unwrap();
        assert_eq!(spec.merge_keys(), None);
        let template = spec.value().unwrap().field("template").unwrap();
        let pod = template.value().unwrap().field("spec").unwrap();
        let containers = pod.value().unwrap().field("containers").unwrap();
        assert_eq!(containers.merge_keys(), Some(vec!["name".to_owned()]));
        let ports = containers.value().unwrap().field("ports").unwrap();
        let keys = ["containerPort", "protocol"].map(str::to_owned);
        assert_eq!(ports.merge_keys(), Some(keys.to_vec()));
        assert_eq!(containers.value().unwrap().field("args"), None);
        let metadata = deployment.field("metadata").unwrap().value().unwrap();
        let finalizers = metadata.field("finalizers").unwrap();
        assert_eq!(finalizers.merge_keys(), Some(Vec::new()));
        assert_eq!(BuiltinType::of_kind("apps", "v1", "Deploy"), None);
    }
}
