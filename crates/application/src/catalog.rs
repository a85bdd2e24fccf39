//! Which definition a type stands for.
//!
//! A type is looked for in the namespace of the application, then in the system namespace, then among
//! the built-in definitions. `type@v1` asks for the revision `type-v1`.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::workflow::names::SYSTEM_NAMESPACE;
use bellwether_json::path::str_at;
use serde_json::Value;

use crate::builtin;
use crate::definition::{Definition, DefinitionKind};

/// The definitions of a cluster.
#[derive(Debug, Default, Clone)]
pub struct Catalog {
    definitions: HashMap<(DefinitionKind, String), HashMap<String, Arc<Definition>>>,
    /// Definitions of workloads, which stand in for definitions of components.
    workloads: HashMap<String, HashMap<String, Arc<Definition>>>,
    /// Revisions by name, then namespace.
    revisions: HashMap<(DefinitionKind, String), HashMap<String, Arc<Definition>>>,
}

impl Catalog {
    /// Takes a definition or a revision of one; false if the object is neither.
    pub fn insert(&mut self, object: Value) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = str_at(&object, &["metadata", "name"])
            .unwrap_or_default()
            .to_owned();
        let namespace = str_at(&object, &["metadata", "namespace"])
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or(SYSTEM_NAMESPACE)
            .to_owned();
        if let Some(kind) = DefinitionKind::from_object_kind(&kind) {
            let definition = Definition::new(kind, name.clone(), object);
            let named = self.definitions.entry((kind, name)).or_default();
            named.insert(namespace, definition);
            return true;
        }
        match kind.as_str() {
            "WorkloadDefinition" => {
                let definition = Definition::new(DefinitionKind::Component, name.clone(), object);
                self.workloads
                    .entry(name)
                    .or_default()
                    .insert(namespace, definition);
                true
            }
            "DefinitionRevision" => self.insert_revision(name, namespace, &object),
            _ => false,
        }
    }

    fn insert_revision(&mut self, name: String, namespace: String, object: &Value) -> bool {
        let fields = [
            ("componentDefinition", DefinitionKind::Component),
            ("traitDefinition", DefinitionKind::Trait),
            ("policyDefinition", DefinitionKind::Policy),
            ("workflowStepDefinition", DefinitionKind::WorkflowStep),
        ];
        let spec = &object["spec"];
        let wanted = spec["definitionType"].as_str().unwrap_or_default();
        for (field, kind) in fields {
            let is_wanted = wanted.is_empty() || kind.object_kind().starts_with(wanted);
            if spec[field].is_object() && is_wanted {
                let definition = Definition::new(kind, name.clone(), spec[field].clone());
                let named = self.revisions.entry((kind, name)).or_default();
                named.insert(namespace, definition);
                return true;
            }
        }
        false
    }

    /// Forgets a definition.
    pub fn remove(&mut self, kind: DefinitionKind, namespace: &str, name: &str) {
        if let Some(named) = self.definitions.get_mut(&(kind, name.to_owned())) {
            named.remove(namespace);
        }
    }

    /// The definition of a type. With `auto_update` a version that does not exist stands for the highest
    /// one that begins with it.
    pub fn find(
        &self,
        kind: DefinitionKind,
        namespace: &str,
        type_name: &str,
        auto_update: bool,
    ) -> Option<Arc<Definition>> {
        let Some((name, version)) = type_name.split_once('@') else {
            return self.latest(kind, namespace, type_name);
        };
        let revision = format!("{name}-{version}");
        let found = self
            .revisions
            .get(&(kind, revision.clone()))
            .and_then(|named| in_order(named, namespace));
        match found {
            None if auto_update => self.highest(kind, namespace, &revision),
            found => found,
        }
    }

    fn latest(&self, kind: DefinitionKind, namespace: &str, name: &str) -> Option<Arc<Definition>> {
        let key = (kind, name.to_owned());
        let named = self.definitions.get(&key);
        named
            .and_then(|named| in_order(named, namespace))
            .or_else(|| {
                let workloads = self
                    .workloads
                    .get(name)
                    .filter(|_| kind == DefinitionKind::Component);
                workloads.and_then(|named| in_order(named, namespace))
            })
            .or_else(|| builtin::find(kind, name))
    }

    fn highest(
        &self,
        kind: DefinitionKind,
        namespace: &str,
        prefix: &str,
    ) -> Option<Arc<Definition>> {
        let candidates = self.revisions.iter().filter_map(|((known, name), named)| {
            let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
            let version = version(&format!("0.{rest}"))?;
            let definition = in_order(named, namespace).filter(|_| *known == kind)?;
            Some((version, definition))
        });
        let highest = candidates.max_by(|left, right| left.0.cmp(&right.0));
        highest.map(|(_, definition)| definition)
    }
}

/// The one of the namespace, else that of the system namespace.
fn in_order(named: &HashMap<String, Arc<Definition>>, namespace: &str) -> Option<Arc<Definition>> {
    named
        .get(namespace)
        .or_else(|| named.get(SYSTEM_NAMESPACE))
        .cloned()
}

fn version(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn component(namespace: &str, mark: &str) -> Value {
        json!({
            "kind": "ComponentDefinition",
            "metadata": {"name": "thing", "namespace": namespace},
            "spec": {"schematic": {"cue": {"template": mark}}},
        })
    }

    fn revision(name: &str) -> Value {
        json!({
            "kind": "DefinitionRevision",
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            "spec": {"definitionType": "Component", "componentDefinition": component("", name)},
        })
    }

    #[track_caller]
    fn check(
        catalog: &Catalog,
        namespace: &str,
        type_name: &str,
        auto_update: bool,
        expected: Option<&str>,
    ) {
        let found = catalog.find(DefinitionKind::Component, namespace, type_name, auto_update);
        assert_eq!(
            found.as_deref().and_then(Definition::source),
            expected,
            "{type_name}"
        );
    }

    #[test]
    fn the_namespace_of_the_application_comes_first() {
        let mut catalog = Catalog::default();
        assert!(catalog.insert(component("", "system")));
        assert!(catalog.insert(component("mine", "own")));
        check(&catalog, "mine", "thing", false, Some("own"));
        check(&catalog, "other", "thing", false, Some("system"));
        check(&catalog, "other", "nothing", false, None);
        catalog.remove(DefinitionKind::Component, "mine", "thing");
        check(&catalog, "mine", "thing", false, Some("system"));
    }

    #[test]
    fn versions_are_revisions() {
        let mut catalog = Catalog::default();
        for name in ["thing-v1.2.0", "thing-v1.10.1", "thing-v2"] {
            assert!(catalog.insert(revision(name)));
        }
        check(&catalog, "mine", "thing@v2", false, Some("thing-v2"));
        check(&catalog, "mine", "thing@v1", false, None);
        check(&catalog, "mine", "thing@v1", true, Some("thing-v1.10.1"));
    }

    #[test]
    fn definitions_of_workloads_stand_in_for_those_of_components() {
        let mut catalog = Catalog::default();
        let mut object = component("", "workload");
        object["kind"] = "WorkloadDefinition".into();
        assert!(catalog.insert(object));
        check(&catalog, "mine", "thing", false, Some("workload"));
    }
}
