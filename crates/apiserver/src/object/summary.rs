//! Reading an object without what only machines look at: who wrote which field, and what `kubectl
//! apply` wrote last. These are most of many objects, and no column of a table shows them.

use std::fmt;

use bellwether_patch::managed::LAST_APPLIED_ANNOTATION as LAST_APPLIED;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::StoredObject;

impl StoredObject {
    /// The object with its type, without `metadata.managedFields` and the last applied
    /// configuration.
    pub(crate) fn to_summary(&self, api_version: &str, kind: &str) -> Value {
        let json = self.untyped_json();
        let mut reader = serde_json::Deserializer::from_slice(&json);
        match Place::Object.deserialize(&mut reader) {
            Ok(mut fields) => {
                fields.insert("apiVersion".into(), api_version.into());
                fields.insert("kind".into(), kind.into());
                Value::Object(fields)
            }
            // Metadata of another form than usual: there is nothing to leave out.
            Err(_) => self.to_value(api_version, kind),
        }
    }
}

/// Where in an object a map is.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    Annotations,
}

/// What becomes of a field.
enum Fate {
    Read,
    Skip,
    Descend(Place),
}

impl Place {
    fn fate(self, name: &str) -> Fate {
        match (self, name) {
            (Self::Object, "metadata") => Fate::Descend(Self::Metadata),
            (Self::Metadata, "annotations") => Fate::Descend(Self::Annotations),
            (Self::Metadata, "managedFields") | (Self::Annotations, LAST_APPLIED) => Fate::Skip,
            _ => Fate::Read,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = match self.fate(&name) {
                Fate::Read => entries.next_value()?,
                Fate::Descend(place) => Value::Object(entries.next_value_seed(place)?),
                Fate::Skip => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            fields.insert(name, value);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Draft;

    #[test]
    fn a_summary_has_all_but_the_records_of_machines() {
        let stored = Draft::new(&json!({
            "metadata": {
                "name": "x", "labels": {"a": "b"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "k": "v"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"managedFields": [1]},
        }))
        .finish(3);
        let expected = json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": {
                "name": "x", "labels": {"a": "b"}, "annotations": {"k": "v"}, "resourceVersion": "3",
            },
            "spec": {"managedFields": [1]},
        });
        assert_eq!(stored.to_summary("v1", "X"), expected);
    }
}
