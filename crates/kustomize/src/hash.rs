//! The hash that generated objects get behind their name.

use bellwether_json::marshal::to_json;
use bellwether_json::path;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::Result;
use crate::resource::Resource;
use crate::resource_list::ResourceList;

/// Adds a hash of the content to the names of all objects that need one.
pub(crate) fn add_hashes(list: &mut ResourceList) -> Result<()> {
    for resource in &mut list.resources {
        if resource.needs_hash {
            let name = format!("{}-{}", resource.name(), hash(resource));
            resource.remember_id();
            resource.set_name(&name)?;
        }
    }
    Ok(())
}

/// Ten characters that are easy to read and spell no words.
fn hash(resource: &Resource) -> String {
    let digest = Sha256::digest(encode(resource));
    // Ten characters are five bytes.
    let nibbles = digest
        .iter()
        .take(5)
        .flat_map(|byte| [byte >> 4, byte & 15]);
    let hex = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16));
    let readable = |character: char| match character {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    };
    hex.map(readable).collect()
}

/// What the hash is of. The name is always empty, so that a new prefix is not a new hash.
fn encode(resource: &Resource) -> String {
    let value = &resource.value;
    let part = |field: &str| path::get(value, &[field]).cloned();
    let mut encoded = Map::new();
    encoded.insert("name".to_owned(), json!(""));
    encoded.insert("kind".to_owned(), json!(resource.kind()));
    let mut fields = vec!["data"];
    let optional = match resource.kind() {
        "ConfigMap" => "binaryData",
        "Secret" => {
            fields.push("type");
            "stringData"
        }
        _ => return to_json(value),
    };
    for field in fields {
        encoded.insert(field.to_owned(), part(field).unwrap_or_else(|| json!("")));
    }
    if let Some(members @ Value::Object(_)) = part(optional) {
        encoded.insert(optional.to_owned(), members);
    }
    to_json(&Value::Object(encoded))
}
