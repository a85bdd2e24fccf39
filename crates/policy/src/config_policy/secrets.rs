//! Values that errors must not show: what Secrets hold, and what was decrypted.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::redaction::REDACTED;
use crate::template::{Keys, PREFIX};

/// Shorter values are replaced only where they stand in quotes: they may be part of any word.
const SHORT: usize = 4;

/// Values that errors must not show.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    values: BTreeSet<String>,
}

impl Secrets {
    /// Adds what an object holds, if it is a Secret.
    pub(super) fn add_object(&mut self, object: &Value) {
        if object["kind"] != "Secret" {
            return;
        }
        let values = |field: &str| {
            let values = object[field].as_object();
            let values = values.into_iter().flatten();
            values.filter_map(|(_, value)| value.as_str().map(str::to_owned))
        };
        for encoded in values("data") {
            let decoded = STANDARD.decode(&encoded).ok();
            let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            self.values.extend(decoded);
            self.values.insert(encoded);
        }
        self.values.extend(values("stringData"));
    }

    /// Adds what the encrypted texts of a policy come to.
    pub(super) fn add_encrypted(&mut self, text: &str, keys: &Keys) {
        for part in text.split(PREFIX).skip(1) {
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
            let end = part.find(|c| !is_base64(c)).unwrap_or(part.len());
            if let Ok(plain) = keys.decrypt(&part[..end]) {
                // Values of Secrets are encrypted as they are stored: in base64.
                let decoded = STANDARD.decode(&plain).ok();
                let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
                self.values.extend(decoded);
                self.values.insert(plain);
            }
        }
    }

    /// The text without the values.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest first: one may be part of another.
        let mut values: Vec<&str> = self.values.iter().map(|value| value.trim()).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            if value.len() >= SHORT {
                text = text.replace(value, REDACTED);
                continue;
            }
            for quote in ['"', '\'', '`'] {
                let quoted = format!("{quote}{value}{quote}");
                text = text.replace(&quoted, &format!("{quote}{REDACTED}{quote}"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_replaced_in_both_spellings() {
        let mut secrets = Secrets::default();
        secrets.add_object(&json!({
            "kind": "Secret", "data": {"p": "aHVzaGh1c2g=", "q": "eA=="},
            "stringData": {"r": "loudly"}}));
        secrets.add_object(&json!({"kind": "ConfigMap", "data": {"p": "plain"}}));
        let text = "parsing \"hushhush\": aHVzaGh1c2g= or \"x\" in exit, loudly, plain";
        let shown =
            "parsing \"(redacted)\": (redacted) or \"(redacted)\" in exit, (redacted), plain";
        assert_eq!(secrets.hidden_in(text), shown);
    }
}
