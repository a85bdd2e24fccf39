//! Reading objects that may lack anything.

use bellwether_json::label::LabelSelector;
use bellwether_json::quantity::Quantity;
use serde_json::Value;

/// A text; empty if it is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number; 0 if it is none.
pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A text or number as it is written.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text or number, or a word that says that there is none.
pub(super) fn shown_or(value: &Value, none: &str) -> String {
    match value {
        Value::Null => none.to_owned(),
        other => shown(other),
    }
}

/// A text, or `<none>`.
pub(super) fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

/// The items of a list; none if it is not a list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A list of texts, joined.
pub(super) fn joined(value: &Value, separator: &str) -> String {
    let texts: Vec<&str> = items(value).iter().map(text).collect();
    texts.join(separator)
}

/// A list of texts as Go prints it.
pub(super) fn go_list(value: &Value) -> String {
    format!("[{}]", joined(value, " "))
}

/// A quantity in its canonical form.
pub(super) fn quantity(value: &Value) -> String {
    let written = shown(value);
    let parsed = written.parse::<Quantity>();
    parsed.map_or(written, |quantity| quantity.to_string())
}

/// `Kind/name` of what manages an object.
pub(super) fn controller(object: &Value) -> Option<String> {
    let owners = items(&object["metadata"]["ownerReferences"]);
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(format!("{}/{}", text(&owner["kind"]), text(&owner["name"])))
}

/// Whether an object is managed by the one with that uid.
pub(super) fn is_controlled_by(object: &Value, uid: &Value) -> bool {
    let owners = items(&object["metadata"]["ownerReferences"]);
    let mut owners = owners.iter();
    owners.any(|owner| owner["controller"] == true && owner["uid"] == *uid)
}

/// A selector as people write it.
pub(super) fn selector(object: &Value) -> String {
    LabelSelector::from_object(Some(object)).map_or_else(
        |error| format!("Failed to get selector: {error}"),
        |selector| selector.to_string(),
    )
}

/// A map of labels on one line.
pub(super) fn flat_labels(map: &Value) -> String {
    let pairs = super::page::sorted(map).into_iter();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    or_none(&pairs.join(",")).to_owned()
}

/// Go's `%t` of a field that may be missing.
pub(super) fn truth(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

/// A truth as `True` or `False`.
pub(super) fn capital(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// What is written in base64; anything that is no letter of it is passed over.
pub(super) fn base64_bytes(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0);
    for letter in text.bytes() {
        let Some(value) = LETTERS.iter().position(|known| *known == letter) else {
            continue;
        };
        buffer = (buffer << 6) | u32::try_from(value).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((buffer >> bits) & 0xff).unwrap_or(0));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, expected) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YW Jj", "abc")] {
            assert_eq!(base64_bytes(text), expected.as_bytes(), "{text}");
        }
    }
}
