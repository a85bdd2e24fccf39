//! Which definition a type stands for.
//!
//! A type is looked for in the namespace of the application, then in the system namespace, then among
//! the built-in definitions. `type@v1` asks for the revision `type-v1`; a built-in definition that
//! nobody replaced is its own first version.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::oam::names::component_type;
use bellwether_api::workflow::names::SYSTEM_NAMESPACE;
use bellwether_cue::excerpt;
use bellwether_json::path::str_at;
use serde_json::Value;

use crate::builtin;
use crate::definition::{Definition, DefinitionKind};

/// The definitions of a cluster. Copies share what they have in common.
#[derive(Debug, Default, Clone)]
pub struct Catalog {
    known: Arc<DefinitionIndex>,
    /// Definitions as a revision of an application recorded them. They come first.
    pinned: Arc<Pinned>,
    /// Whether a version of a type is always a revision, also of a built-in type.
    needs_revisions: bool,
}

/// Types that controllers know by their name, which has no version therefore.
const KNOWN_BY_NAME: [&str; 2] = [component_type::REF_OBJECTS, component_type::HELM_CHART];

/// Definitions by kind and type.
pub type Pinned = BTreeMap<(DefinitionKind, String), Arc<Definition>>;

/// Definitions of one name, by namespace.
type Named = HashMap<String, Arc<Definition>>;

#[derive(Debug, Default, Clone)]
struct DefinitionIndex {
    definitions: HashMap<(DefinitionKind, String), Named>,
    /// Definitions of workloads, which stand in for definitions of components.
    workloads: HashMap<String, Named>,
    /// Revisions of definitions.
    revisions: HashMap<(DefinitionKind, String), Named>,
}

/// The fields of a DefinitionRevision that have the definition.
const REVISION_FIELDS: [(&str, DefinitionKind); 4] = [
    ("componentDefinition", DefinitionKind::Component),
    ("traitDefinition", DefinitionKind::Trait),
    ("policyDefinition", DefinitionKind::Policy),
    ("workflowStepDefinition", DefinitionKind::WorkflowStep),
];

/// What kind of definition a DefinitionRevision has, and the definition.
pub fn revised(revision: &Value) -> Option<(DefinitionKind, &Value)> {
    let spec = &revision["spec"];
    let wanted = spec["definitionType"].as_str().unwrap_or_default();
    REVISION_FIELDS.into_iter().find_map(|(field, kind)| {
        let is_wanted = wanted.is_empty() || kind.object_kind().starts_with(wanted);
        (spec[field].is_object() && is_wanted).then(|| (kind, &spec[field]))
    })
}

impl Catalog {
    /// A catalog in which a version of a type is always a revision, also of a built-in type.
    pub fn of_revisions() -> Self {
        Self {
            needs_revisions: true,
            ..Self::default()
        }
    }

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
            self.insert_definition(namespace, Definition::new(kind, name, object));
            return true;
        }
        match kind.as_str() {
            "WorkloadDefinition" => {
                let definition = Definition::new(DefinitionKind::Component, name.clone(), object);
                let workloads = &mut Arc::make_mut(&mut self.known).workloads;
                workloads
                    .entry(name)
                    .or_default()
                    .insert(namespace, definition);
                true
            }
            "DefinitionRevision" => {
                let Some((kind, definition)) = revised(&object) else {
                    return false;
                };
                let definition = Definition::new(kind, name, definition.clone());
                self.insert_revision(namespace, definition);
                true
            }
            _ => false,
        }
    }

    /// Takes everything that another catalog knows; it comes before what was known.
    pub fn extend(&mut self, other: &Self) {
        let known = Arc::make_mut(&mut self.known);
        for (key, named) in &other.known.definitions {
            let own = known.definitions.entry(key.clone()).or_default();
            own.extend(named.clone());
        }
        for (name, named) in &other.known.workloads {
            let own = known.workloads.entry(name.clone()).or_default();
            own.extend(named.clone());
        }
        for (key, named) in &other.known.revisions {
            let own = known.revisions.entry(key.clone()).or_default();
            own.extend(named.clone());
        }
    }

    /// Takes a definition that is read already.
    pub fn insert_definition(&mut self, namespace: String, definition: Arc<Definition>) {
        let key = (definition.kind, definition.type_name.clone());
        let definitions = &mut Arc::make_mut(&mut self.known).definitions;
        definitions
            .entry(key)
            .or_default()
            .insert(namespace, definition);
    }

    /// Takes a revision that is read already; its type is the name of the revision.
    pub fn insert_revision(&mut self, namespace: String, definition: Arc<Definition>) {
        let key = (definition.kind, definition.type_name.clone());
        let revisions = &mut Arc::make_mut(&mut self.known).revisions;
        revisions
            .entry(key)
            .or_default()
            .insert(namespace, definition);
    }

    /// Forgets a definition.
    pub fn remove(&mut self, kind: DefinitionKind, namespace: &str, name: &str) {
        let definitions = &mut Arc::make_mut(&mut self.known).definitions;
        if let Some(named) = definitions.get_mut(&(kind, name.to_owned())) {
            named.remove(namespace);
        }
    }

    /// Forgets a revision.
    pub fn remove_revision(&mut self, namespace: &str, name: &str) {
        let revisions = &mut Arc::make_mut(&mut self.known).revisions;
        for kind in DefinitionKind::ALL {
            if let Some(named) = revisions.get_mut(&(kind, name.to_owned())) {
                named.remove(namespace);
            }
        }
    }

    /// Definitions of policies that apply to every application of a namespace, in the order in which they do.
    pub fn global_policies(&self, namespace: &str) -> Vec<Arc<Definition>> {
        let pinned = self.pinned.values();
        let known = self.known.definitions.values();
        let known = known.filter_map(|named| in_order(named, namespace));
        let is_global = |definition: &Arc<Definition>| {
            definition.kind == DefinitionKind::Policy
                && definition.flag("global")
                && crate::scoped::is_scoped(definition)
        };
        let mut found: BTreeMap<(i64, String), Arc<Definition>> = BTreeMap::new();
        // A revision that recorded definitions keeps them, and gets no others.
        let all: Vec<Arc<Definition>> = if self.pinned.is_empty() {
            known.filter(is_global).collect()
        } else {
            pinned.filter(|it| is_global(it)).cloned().collect()
        };
        for definition in all {
            let priority = definition.object["spec"]["priority"].as_i64();
            let key = (priority.unwrap_or_default(), definition.type_name.clone());
            found.insert(key, definition);
        }
        found.into_values().collect()
    }

    /// The same catalog, with definitions that come before all others.
    #[must_use]
    pub fn pinned_to(&self, definitions: Pinned) -> Self {
        Self {
            known: Arc::clone(&self.known),
            pinned: Arc::new(definitions),
            needs_revisions: self.needs_revisions,
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
            let pinned = self.pinned.get(&(kind, type_name.to_owned()));
            return pinned
                .cloned()
                .or_else(|| self.latest(kind, namespace, type_name));
        };
        let key = (kind, format!("{name}-{version}"));
        if let Some(pinned) = self.pinned.get(&key) {
            return Some(Arc::clone(pinned));
        }
        let found = self.known.revisions.get(&key);
        let found = found.and_then(|named| in_order(named, namespace));
        found
            .or_else(|| {
                auto_update
                    .then(|| self.highest(kind, namespace, &key.1))
                    .flatten()
            })
            .or_else(|| self.first_version(kind, namespace, name, version))
    }

    /// A built-in definition as its first version. Nothing is known of versions before somebody replaced it.
    fn first_version(
        &self,
        kind: DefinitionKind,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Option<Arc<Definition>> {
        let has_versions = matches!(kind, DefinitionKind::Component | DefinitionKind::Trait);
        let is_wanted = has_versions
            && version == builtin::FIRST_VERSION
            && !self.needs_revisions
            && !KNOWN_BY_NAME.contains(&name)
            && self.own(kind, namespace, name).is_none();
        is_wanted
            .then(|| builtin::find_first_version(kind, name))
            .flatten()
    }

    /// The type of a namespace whose name is most like another one.
    pub fn closest(&self, kind: DefinitionKind, namespace: &str, name: &str) -> Option<String> {
        let own = self.known.definitions.iter();
        let own = own
            .filter(|((known, _), named)| *known == kind && in_order(named, namespace).is_some());
        let own = own.map(|((_, name), _)| name.as_str());
        let built_in = builtin::names(kind).map(|name: &str| name);
        let mut names: Vec<&str> = own.chain(built_in).collect();
        names.sort_unstable();
        excerpt::closest(name, names).map(str::to_owned)
    }

    fn latest(&self, kind: DefinitionKind, namespace: &str, name: &str) -> Option<Arc<Definition>> {
        self.own(kind, namespace, name)
            .or_else(|| builtin::find(kind, name))
    }

    /// A definition of the hub.
    fn own(&self, kind: DefinitionKind, namespace: &str, name: &str) -> Option<Arc<Definition>> {
        let key = (kind, name.to_owned());
        let named = self.known.definitions.get(&key);
        named
            .and_then(|named| in_order(named, namespace))
            .or_else(|| {
                let workloads = self
                    .known
                    .workloads
                    .get(name)
                    .filter(|_| kind == DefinitionKind::Component);
                workloads.and_then(|named| in_order(named, namespace))
            })
    }

    fn highest(
        &self,
        kind: DefinitionKind,
        namespace: &str,
        prefix: &str,
    ) -> Option<Arc<Definition>> {
        let revisions = self.known.revisions.iter();
        let candidates = revisions.filter_map(|((known, name), named)| {
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
fn in_order(named: &Named, namespace: &str) -> Option<Arc<Definition>> {
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
    fn a_built_in_definition_is_its_own_first_version() {
        let find = |catalog: &Catalog, kind, name: &str| {
            let found = catalog.find(kind, "mine", name, false);
            found.map(|found| found.type_name.clone())
        };
        let (component, of_trait) = (DefinitionKind::Component, DefinitionKind::Trait);
        let mut catalog = Catalog::default();
        let worker = find(&catalog, component, "worker@v1");
        assert_eq!(worker.as_deref(), Some("worker-v1"));
        let scaler = find(&catalog, of_trait, "scaler@v1");
        assert_eq!(scaler.as_deref(), Some("scaler-v1"));
        assert_eq!(find(&catalog, component, "worker@v2"), None);
        assert_eq!(find(&catalog, component, "ref-objects@v1"), None);
        assert_eq!(find(&Catalog::of_revisions(), component, "worker@v1"), None);
        let mut own = self::component("mine", "own");
        own["metadata"]["name"] = "worker".into();
        assert!(catalog.insert(own));
        assert_eq!(find(&catalog, component, "worker@v1"), None);
    }

    #[test]
    fn types_that_may_be_meant_are_named() {
        let mut catalog = Catalog::default();
        assert!(catalog.insert(component("mine", "own")));
        for (name, namespace, expected) in [
            ("webservise", "mine", Some("webservice")),
            ("thign", "mine", Some("thing")),
            ("thign", "other", None),
            ("zeppelin", "mine", None),
        ] {
            let closest = catalog.closest(DefinitionKind::Component, namespace, name);
            assert_eq!(closest.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn pinned_definitions_come_first() {
        let mut catalog = Catalog::default();
        assert!(catalog.insert(component("", "new")));
        assert!(catalog.insert(revision("thing-v2")));
        let old = |name: &str| {
            let key = (DefinitionKind::Component, name.to_owned());
            (
                key,
                Definition::new(DefinitionKind::Component, name, component("", "old")),
            )
        };
        let pinned = catalog.pinned_to([old("thing"), old("thing-v2")].into());
        check(&pinned, "mine", "thing", false, Some("old"));
        check(&pinned, "mine", "thing@v2", false, Some("old"));
        check(&catalog, "mine", "thing", false, Some("new"));
        catalog.remove_revision(SYSTEM_NAMESPACE, "thing-v2");
        check(&catalog, "mine", "thing@v2", false, None);
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
