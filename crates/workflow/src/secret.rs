//! What Secrets hold that actions read: it is kept out of messages, and out of what is written for people who debug a step.
//!
//! Values that a step hands on by `outputs` are not touched: an author who writes such an output asks for the value.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Actions that return values of configurations.
const CONFIGURATIONS: [&str; 2] = ["config.read", "config.list"];
/// Shorter values are not replaced: texts would be full of them by chance.
const SHORTEST: usize = 4;
/// What stands in place of a value.
const REDACTED: &str = "(redacted)";

/// The values of Secrets that were seen, as they are and encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Takes in what an action returned. Configurations are kept in Secrets, so all of their values are taken in.
    pub fn collect_result(&mut self, action: &str, result: &Value) {
        if CONFIGURATIONS.contains(&action) {
            let listed = result["configs"].as_array().into_iter().flatten();
            for configuration in listed.chain([result]) {
                self.collect_texts(&configuration["config"]);
            }
        }
        self.collect(result);
    }

    /// Takes in what a result holds of Secrets, however deep.
    pub fn collect(&mut self, result: &Value) {
        if is_secret(result) {
            self.collect_data(result);
        }
        for item in secrets_of_list(result) {
            self.collect_data(item);
        }
        match result {
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field)),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn collect_texts(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Object(fields) => fields.values().for_each(|field| self.collect_texts(field)),
            Value::Array(items) => items.iter().for_each(|item| self.collect_texts(item)),
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
    let is_list = is_list_of_secrets(value);
    match value {
        Value::Object(fields) => {
            if is_secret {
                remove_data(fields);
            }
            if is_list {
                let items = fields.get_mut("items").and_then(Value::as_array_mut);
                let items = items.into_iter().flatten();
                items.filter_map(Value::as_object_mut).for_each(remove_data);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn remove_data(secret: &mut Map<String, Value>) {
    secret.retain(|name, _| name != "data" && name != "stringData");
}

fn is_secret(value: &Value) -> bool {
    value["kind"] == "Secret" && value["apiVersion"] == "v1"
}

fn is_list_of_secrets(value: &Value) -> bool {
    value["kind"] == "SecretList" && value["apiVersion"] == "v1"
}

/// The items of a list of Secrets, which do not say their kind.
fn secrets_of_list(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value["items"].as_array();
    let items = items.filter(|_| is_list_of_secrets(value));
    items.into_iter().flatten()
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

    fn listed() -> Value {
        let mut item = read()["value"].take();
        let fields = item.as_object_mut().unwrap();
        fields.retain(|name, _| name != "kind" && name != "apiVersion");
        json!({"values": {"apiVersion": "v1", "kind": "SecretList", "items": [item]}})
    }

    #[track_caller]
    fn check(action: &str, result: &Value, text: &str, expected: &str) {
        let mut secrets = Secrets::default();
        secrets.collect_result(action, result);
        assert_eq!(secrets.redact(text.to_owned()), expected);
    }

    #[test]
    fn what_lists_and_configurations_hold_is_not_in_texts() {
        let text = "found https://chat/T0K3N in eu";
        check("kube.list", &listed(), text, "found (redacted) in eu");
        let config =
            json!({"config": {"nested": [{"token": "https://chat/T0K3N"}], "region": "eu"}});
        check("config.read", &config, text, "found (redacted) in eu");
        let configs = json!({"configs": [{"name": "found", "config": config["config"]}]});
        check("config.list", &configs, text, "found (redacted) in eu");
        check("kube.read", &config, text, text);
        let maps = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [
            {"data": {"url": "https://chat/T0K3N"}}]});
        check("kube.list", &maps, text, text);
    }

    #[test]
    fn lists_that_are_kept_have_no_data_of_secrets() {
        let kept = without_data(json!({"output": {"$returns": listed()}}));
        let secret = &kept["output"]["$returns"]["values"]["items"][0];
        assert_eq!(secret["metadata"]["name"], "hook");
        assert!(secret["data"].is_null(), "{kept}");
    }

    #[test]
    fn outputs_that_are_kept_have_no_data_of_secrets() {
        let kept = without_data(json!({"output": {"$returns": read()}}));
        let secret = &kept["output"]["$returns"]["value"];
        assert_eq!(secret["metadata"]["name"], "hook");
        assert!(secret["data"].is_null(), "{kept}");
    }
}
