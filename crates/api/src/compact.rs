//! JSON that is kept as text: thousands of objects are in memory, and rarely looked at. Parsed, they take several times as much.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Reads a list without room for further elements. Lists of objects are short, and caches have thousands of them: a vector
/// that grew to one element has room for four.
pub(crate) fn exact<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut list = Vec::deserialize(deserializer)?;
    list.shrink_to_fit();
    Ok(list)
}

/// JSON in memory as text.
#[derive(Clone, Default)]
pub struct CompactJson(Box<str>);

impl CompactJson {
    /// The JSON, parsed.
    pub fn value(&self) -> Value {
        // The text was written from a value; of nothing there is none.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<&Value> for CompactJson {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<Value> for CompactJson {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl PartialEq for CompactJson {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

impl std::fmt::Debug for CompactJson {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for CompactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CompactJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_read_and_written_as_json() {
        let value = json!({"b": [1, 2.5, null], "a": {"text": "\"x\"\n"}});
        let compact: CompactJson = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(compact.value(), value);
        assert_eq!(serde_json::to_value(&compact).unwrap(), value);
        assert_eq!(compact, CompactJson::from(&value));
        assert_ne!(compact, CompactJson::from(json!({})));
        assert_eq!(CompactJson::default().value(), Value::Null);
    }
}
