//! Override policies: components that differ where they are deployed.
//!
//! A name may have `*` in it; it has to match as a whole. Properties are merged: objects field by field,
//! everything else replaced.

use bellwether_api::oam::{ApplicationComponent, ApplicationTrait};
use serde::Deserialize;
use serde_json::Value;

/// The properties of an override policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverridePolicy {
    /// What is changed.
    #[serde(default)]
    pub components: Vec<ComponentPatch>,
    /// Names of the components that are deployed; all if absent, none if empty.
    #[serde(default)]
    pub selector: Option<Vec<String>>,
}

/// What is changed in components.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComponentPatch {
    /// Name with wildcards; all components if empty.
    #[serde(default)]
    pub name: String,
    /// Type of the components; another type replaces them.
    #[serde(default, rename = "type")]
    pub component_type: String,
    /// Properties that are merged.
    #[serde(default)]
    pub properties: Option<Value>,
    /// Traits that are merged, added or removed.
    #[serde(default)]
    pub traits: Vec<TraitPatch>,
    /// Revision that others gave the component.
    #[serde(default)]
    pub external_revision: String,
}

/// What is changed in a trait.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraitPatch {
    /// Type of the trait.
    #[serde(rename = "type")]
    pub trait_type: String,
    /// Properties that are merged.
    #[serde(default)]
    pub properties: Option<Value>,
    /// Whether the trait is removed.
    #[serde(default)]
    pub disable: bool,
}

/// The components with a policy applied to them.
pub fn apply(
    components: &[ApplicationComponent],
    policy: &OverridePolicy,
) -> Vec<ApplicationComponent> {
    let mut components = components.to_vec();
    for patch in &policy.components {
        let mut is_known = false;
        for component in &mut components {
            if !matches_component(patch, component) {
                continue;
            }
            is_known = true;
            if patch.component_type.is_empty() || patch.component_type == component.component_type {
                merge_component(component, patch);
            } else {
                *component = added(patch, &component.name);
            }
        }
        if !is_known && !patch.name.is_empty() && !patch.name.contains('*') {
            components.push(added(patch, &patch.name));
        }
    }
    if let Some(selector) = &policy.selector {
        components.retain(|component| {
            selector
                .iter()
                .any(|pattern| matches(pattern, &component.name))
        });
    }
    components
}

fn matches_component(patch: &ComponentPatch, component: &ApplicationComponent) -> bool {
    if patch.name.is_empty() {
        patch.component_type.is_empty() || patch.component_type == component.component_type
    } else {
        matches(&patch.name, &component.name)
    }
}

/// Whether a name matches a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(position) => rest = &rest[position + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn added(patch: &ComponentPatch, name: &str) -> ApplicationComponent {
    let mut component = ApplicationComponent {
        name: name.to_owned(),
        component_type: patch.component_type.clone(),
        ..ApplicationComponent::default()
    };
    merge_component(&mut component, patch);
    component
}

fn merge_component(component: &mut ApplicationComponent, patch: &ComponentPatch) {
    component.properties =
        merged_properties(component.properties.take(), patch.properties.as_ref());
    if !patch.external_revision.is_empty() {
        component
            .external_revision
            .clone_from(&patch.external_revision);
    }
    // Of several traits of a type the last one counts.
    let mut traits: Vec<ApplicationTrait> = Vec::new();
    for known in component.traits.drain(..) {
        match traits
            .iter_mut()
            .find(|other| other.trait_type == known.trait_type)
        {
            Some(earlier) => *earlier = known,
            None => traits.push(known),
        }
    }
    for change in &patch.traits {
        let position = traits
            .iter()
            .position(|known| known.trait_type == change.trait_type);
        match (position, change.disable) {
            (Some(position), true) => {
                traits.remove(position);
            }
            (None, true) => {}
            (Some(position), false) => {
                let known = &mut traits[position];
                known.properties =
                    merged_properties(known.properties.take(), change.properties.as_ref());
            }
            (None, false) => traits.push(ApplicationTrait {
                trait_type: change.trait_type.clone(),
                properties: change.properties.clone(),
                ..ApplicationTrait::default()
            }),
        }
    }
    component.traits = traits;
}

fn merged_properties(base: Option<Value>, patch: Option<&Value>) -> Option<Value> {
    match (base, patch) {
        (base, None) => base,
        (None | Some(Value::Null), Some(patch)) => Some(patch.clone()),
        (Some(mut base), Some(patch)) => {
            merge(&mut base, patch);
            Some(base)
        }
    }
}

/// Merges objects field by field; everything else is replaced.
pub fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (name, value) in patch {
                match base.get_mut(name) {
                    Some(known) => merge(known, value),
                    None => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (base, patch) => *base = patch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_match(pattern: &str, name: &str, expected: bool) {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }

    #[test]
    fn names_match_as_a_whole() {
        check_match("web", "web", true);
        check_match("web", "webapp", false);
        check_match("web*", "webapp", true);
        check_match("*app", "webapp", true);
        check_match("w*p", "webapp", true);
        check_match("w*b*p", "webapp", true);
        check_match("w*x*p", "webapp", false);
        check_match("*", "webapp", true);
        check_match("webapp*webapp", "webapp", false);
    }

    #[test]
    fn components_are_merged_added_replaced_and_selected() {
        let components: Vec<ApplicationComponent> = serde_json::from_value(json!([
            {"name": "web", "type": "webservice", "properties": {"image": "a", "env": [1], "limit": {"cpu": "1", "memory": "1"}},
             "traits": [{"type": "scaler", "properties": {"replicas": 1}}]},
            {"name": "job", "type": "task", "properties": {"image": "j"}},
        ]))
        .unwrap();
        let policy: OverridePolicy = serde_json::from_value(json!({
            "components": [
                {"name": "web", "properties": {"env": [], "limit": {"cpu": "2"}}, "traits": [{"type": "scaler", "disable": true}, {"type": "labels"}]},
                {"name": "job", "type": "worker", "properties": {"image": "w"}},
                {"name": "new", "type": "worker"},
            ],
            "selector": ["web", "n*"],
        }))
        .unwrap();
        let changed = serde_json::to_value(apply(&components, &policy)).unwrap();
        assert_eq!(
            changed,
            json!([
                {"name": "web", "type": "webservice", "properties": {"image": "a", "env": [], "limit": {"cpu": "2", "memory": "1"}},
                 "traits": [{"type": "labels"}]},
                {"name": "new", "type": "worker"},
            ]),
        );
        let none = OverridePolicy {
            selector: Some(Vec::new()),
            ..OverridePolicy::default()
        };
        assert_eq!(apply(&components, &none), []);
        let all = apply(&components, &OverridePolicy::default());
        assert_eq!(all, components);
    }
}
