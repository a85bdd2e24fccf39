//! Whether others own a field of an object, by its managed fields.

use serde_json::Value;

use crate::fields::{Location, Place, item_in};

/// Whether somebody but this manager owns the field at a location of the configuration.
pub(crate) fn is_owned_by_others(
    live: &Value,
    configuration: &Value,
    location: &Location,
    manager: &str,
) -> bool {
    let entries = live["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        entry["manager"] != *manager && owns(&entry["fieldsV1"], live, configuration, location)
    })
}

fn owns(fields: &Value, live: &Value, configuration: &Value, location: &Location) -> bool {
    let (mut fields, mut live, mut wanted) = (fields, live, configuration);
    for place in location {
        let is_whole = fields.as_object().is_some_and(serde_json::Map::is_empty);
        let found = match place {
            Place::Field(name) => {
                live = &live[name.as_str()];
                wanted = &wanted[name.as_str()];
                fields.get(format!("f:{name}"))
            }
            Place::Index(index) => {
                let Some(item) = item_in(live, wanted, *index) else {
                    return false;
                };
                live = item;
                wanted = &wanted[*index];
                item_fields(fields, item)
            }
        };
        match found {
            Some(below) => fields = below,
            // Who owns a list or a map as a whole owns what is in it.
            None => return is_whole,
        }
    }
    true
}

/// What is owned of an item of a list, which is named by its keys.
fn item_fields<'a>(fields: &'a Value, item: &Value) -> Option<&'a Value> {
    fields.as_object()?.iter().find_map(|(name, below)| {
        let keys: Value = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
        let keys = keys.as_object()?;
        keys.iter()
            .all(|(key, value)| item.get(key) == Some(value))
            .then_some(below)
    })
}
