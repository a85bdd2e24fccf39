//! The objects that a revision of an application was rendered to, as its ConfigMap has them.

use std::collections::BTreeMap;

use bellwether_api::oam::names::label;
use serde_json::Value;

/// An object of a component.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedObject {
    /// The component.
    pub component: String,
    /// The object.
    pub object: Value,
}

impl RenderedObject {
    /// True for what the component is, not for what its traits are.
    pub fn is_workload(&self) -> bool {
        self.object["metadata"]["labels"][label::RESOURCE_TYPE] == label::WORKLOAD
    }
}

/// Reads the ConfigMap of a revision: an object as JSON in each key. The workload of a component comes first.
pub fn read(data: &BTreeMap<String, String>) -> Result<Vec<RenderedObject>, String> {
    let mut objects = Vec::with_capacity(data.len());
    for (key, text) in data {
        let object: Value =
            serde_json::from_str(text).map_err(|error| format!("key {key}: {error}"))?;
        let component = object["metadata"]["labels"][label::COMPONENT].as_str();
        let component = component.or(key.split('.').next()).unwrap_or_default();
        objects.push(RenderedObject {
            component: component.to_owned(),
            object,
        });
    }
    objects.sort_by(|one, other| {
        let key = |it: &RenderedObject| (it.component.clone(), !it.is_workload());
        key(one).cmp(&key(other))
    });
    Ok(objects)
}

/// The objects of some components; of all if none is named.
pub fn of_components(
    objects: Vec<RenderedObject>,
    names: &[String],
) -> Result<Vec<RenderedObject>, String> {
    if names.is_empty() {
        return Ok(objects);
    }
    let missing = names
        .iter()
        .find(|name| objects.iter().all(|it| it.component != **name));
    if let Some(missing) = missing {
        return Err(format!("component {missing} not found"));
    }
    Ok(objects
        .into_iter()
        .filter(|it| names.contains(&it.component))
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data() -> BTreeMap<String, String> {
        let object = |kind: &str, what: &str| {
            json!({"kind": kind, "metadata": {"labels": {label::COMPONENT: "web", label::RESOURCE_TYPE: what}}}).to_string()
        };
        [
            ("web.expose".to_owned(), object("Service", "TRAIT")),
            ("web".to_owned(), object("Deployment", "WORKLOAD")),
        ]
        .into()
    }

    #[test]
    fn the_workload_of_a_component_comes_first() {
        let kinds: Vec<_> = read(&data())
            .unwrap()
            .iter()
            .map(|it| it.object["kind"].clone())
            .collect();
        assert_eq!(kinds, ["Deployment", "Service"]);
    }

    #[test]
    fn components_that_are_missing_are_named() {
        let all = read(&data()).unwrap();
        assert_eq!(
            of_components(all.clone(), &["web".to_owned()])
                .unwrap()
                .len(),
            2
        );
        assert_eq!(
            of_components(all, &["db".to_owned()]).unwrap_err(),
            "component db not found"
        );
    }
}
