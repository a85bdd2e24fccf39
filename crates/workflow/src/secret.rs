//! What Secrets hold that actions read: it is kept out of messages, and out of what is written for people who debug a step.
//!
//! Values that a step hands on by `outputs` are not touched: an author who writes such an output asks for the value.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Shorter values are not replaced: texts would be full of them by chance.
const SHORTEST: usize = 4;
/// What stands in place of a value.
const REDACTED: &str = "(redacted)";

/// The values of Secrets that were seen, as they are and encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Takes in what a result holds of Secrets, however deep.
    pub fn collect(&mut self, result: &Value) {
        if is_secret(result) {
            self.collect_data(result);
        }
        match result {
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field)),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn collect_data(&mut self, secret: &Value) {
        for field in ["data", "stringData"] {
            let values = secret[field].as_object().into_iter().flatten();
            for text in values.filter_map(|(_, value)| value.as_str()) {
                self.add(text);
                let decoded = STANDARD.decode(text).ok();
                if let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    self.add(decoded.trim());
                }
            }
        }
    }

    fn add(&mut self, text: &str) {
        if text.len() >= SHORTEST {
            self.0.insert(text.to_owned());
        }
    }

    /// A text without what Secrets hold.
    pub fn redact(&self, text: String) -> String {
        let mut text = text;
        // Longer ones first: one may be part of another.
        let mut known: Vec<&String> = self.0.iter().collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in known {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), REDACTED);
            }
        }
        text
    }
}

/// A value without the data of the Secrets in it.
pub fn without_data(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    let is_secret = is_secret(value);
    match value {
        Value::Object(fields) => {
            if is_secret {
                fields.retain(|name, _| name != "data" && name != "stringData");
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn is_secret(value: &Value) -> bool {
    value["kind"] == "Secret" && value["apiVersion"] == "v1"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read() -> Value {
        json!({"value": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"},
            "data": {"url": STANDARD.encode("https://chat/T0K3N"), "on": STANDARD.encode("1")}}})
    }

    #[test]
    fn what_a_secret_holds_is_not_in_texts() {
        let mut secrets = Secrets::default();
        secrets.collect(&json!({"items": [read()]}));
        let text = r#"Post "https://chat/T0K3N": connection refused on port 1"#;
        let expected = r#"Post "(redacted)": connection refused on port 1"#;
        assert_eq!(secrets.redact(text.to_owned()), expected);
        let encoded = STANDARD.encode("https://chat/T0K3N");
        assert_eq!(secrets.redact(encoded), REDACTED);
    }

    #[test]
    fn outputs_that_are_kept_have_no_data_of_secrets() {
        let kept = without_data(json!({"output": {"$returns": read()}}));
        let secret = &kept["output"]["$returns"]["value"];
        assert_eq!(secret["metadata"]["name"], "hook");
        assert!(secret["data"].is_null(), "{kept}");
    }
}
