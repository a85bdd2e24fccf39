//! What identifies revisions of applications and components.
//!
//! Identifiers are our own: nobody compares them with those of other controllers.

use std::fmt::Write as _;

use bellwether_api::oam::{Application, ApplicationComponent};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// How many hexadecimal digits an identifier has: 64 bits.
const DIGITS: usize = 16;

/// What identifies a value: equal values have equal identifiers, whatever the order of their fields.
pub fn hash(value: &impl Serialize) -> String {
    // Maps of `serde_json` are sorted, so equal values are equal texts.
    let text = serde_json::to_value(value).unwrap_or_default().to_string();
    let digest = Sha256::digest(text.as_bytes());
    let mut hex = String::with_capacity(DIGITS);
    for byte in digest.iter().take(DIGITS / 2) {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What identifies a component as it is written.
pub fn component_hash(component: &ApplicationComponent) -> String {
    hash(component)
}

/// What identifies the content of a revision: the spec and everything it is rendered by.
pub fn revision_hash<'a>(
    application: &Application,
    definitions: impl IntoIterator<Item = &'a Value>,
    referred: impl IntoIterator<Item = &'a Value>,
) -> String {
    let specs = |objects: &mut dyn Iterator<Item = &'a Value>| {
        let mut hashes: Vec<String> = objects
            .map(|object| {
                hash(&(
                    &object["kind"],
                    &object["metadata"]["name"],
                    content(object),
                ))
            })
            .collect();
        hashes.sort();
        hashes
    };
    hash(&(
        &application.spec,
        specs(&mut definitions.into_iter()),
        specs(&mut referred.into_iter()),
    ))
}

/// An object without its metadata and status.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Value::Object(fields) = &mut content {
        fields.remove("metadata");
        fields.remove("status");
    }
    content
}

/// The end of a generated name.
pub(crate) fn short_hash(value: &Value) -> String {
    let mut hash = hash(value);
    hash.truncate(10);
    hash
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(image: &str) -> Application {
        serde_json::from_value(json!({
            "metadata": {"name": "shop"},
            "spec": {"components": [{"name": "web", "type": "webservice", "properties": {"image": image}}]},
        }))
        .unwrap()
    }

    #[test]
    fn revisions_differ_by_spec_and_definitions_only() {
        let definition = |text: &str, version: &str| {
            json!({"kind": "ComponentDefinition", "metadata": {"name": "webservice", "resourceVersion": version},
                   "spec": {"schematic": {"cue": {"template": text}}}})
        };
        let hash =
            |image: &str, definition: &Value| revision_hash(&application(image), [definition], []);
        let first = hash("nginx", &definition("a", "1"));
        assert_eq!(first, hash("nginx", &definition("a", "2")));
        assert_ne!(first, hash("nginx", &definition("b", "1")));
        assert_ne!(first, hash("apache", &definition("a", "1")));
        assert_eq!(first.len(), DIGITS);
    }
}
