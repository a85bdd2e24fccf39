//! The part of `metadata` that belongs to the server.

use bellwether_json::time;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::context::RequestContext;
use crate::status::{ApiError, Subject};

/// Letters of generated names: no vowels, so that no words appear, and nothing that looks alike.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const LONGEST_NAME: usize = 63;

/// The `metadata` of an object, created if it is missing.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        object["metadata"] = Value::Object(Map::new());
    }
    match &mut object["metadata"] {
        Value::Object(fields) => fields,
        _ => unreachable!("just made an object"),
    }
}

/// A text field of `metadata`; empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or("")
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Makes namespace and name agree with the path, or says how they do not.
pub(crate) fn match_path(cx: &RequestContext, object: &mut Value) -> Result<(), ApiError> {
    let (in_path, name) = (cx.namespace.as_deref(), cx.name.as_deref());
    let fields = of(object);
    let current = fields
        .get("namespace")
        .and_then(Value::as_str)
        .unwrap_or("");
    // What is in no namespace may name one, which is cleared.
    if !current.is_empty() && in_path.is_some_and(|namespace| namespace != current) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    match in_path {
        Some(namespace) => fields.insert("namespace".into(), namespace.into()),
        None => fields.remove("namespace"),
    };
    let Some(name) = name else { return Ok(()) };
    match fields.get("name").and_then(Value::as_str).unwrap_or("") {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        current if current != name => Err(ApiError::bad_request(format!(
            "the name of the object ({current}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// Sets uid and creation time, and removes what only the server sets later.
pub(crate) fn initialize(object: &mut Value, uid: &str, now: Timestamp) {
    let fields = of(object);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
        "resourceVersion",
    ] {
        fields.remove(field);
    }
    fields.insert("uid".into(), uid.into());
    fields.insert("creationTimestamp".into(), time::format_time(now).into());
}

/// Takes over what an update may leave out: a client need not repeat what the server set.
pub(crate) fn carry_over(object: &mut Value, live: &Value) {
    let fields = of(object);
    fields.remove("selfLink");
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if let Some(found) = live["metadata"].get(field)
            && fields.get(field).is_none_or(Value::is_null)
        {
            fields.insert(field.into(), found.clone());
        }
    }
    // Generations are counted, never set.
    match live["metadata"].get("generation") {
        Some(generation) => fields.insert("generation".into(), generation.clone()),
        None => fields.remove("generation"),
    };
}

/// Checks the uid that an update names against the live object.
pub(crate) fn check_uid(
    subject: Subject<'_>,
    key: &str,
    object: &Value,
    live: &Value,
) -> Result<(), ApiError> {
    let (uid, live_uid) = (text(object, "uid"), text(live, "uid"));
    if !uid.is_empty() && uid != live_uid {
        return Err(ApiError::conflict(
            subject,
            text(live, "name"),
            &format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {live_uid}"
            ),
        ));
    }
    Ok(())
}

/// Checks the revision that an update names against the live object.
pub(crate) fn check_revision(
    subject: Subject<'_>,
    object: &Value,
    live: &Value,
) -> Result<(), ApiError> {
    let revision = text(object, "resourceVersion");
    if !revision.is_empty() && revision != "0" && revision != text(live, "resourceVersion") {
        return Err(ApiError::stale(subject, text(live, "name")));
    }
    Ok(())
}

/// A name that begins with `base` and ends in random letters.
pub(crate) fn generate_name(base: &str) -> String {
    let mut kept = base.len().min(LONGEST_NAME - SUFFIX_LENGTH);
    while !base.is_char_boundary(kept) {
        kept -= 1;
    }
    let letters = uuid::Uuid::new_v4().into_bytes();
    let suffix = letters
        .iter()
        .take(SUFFIX_LENGTH)
        .map(|byte| char::from(SUFFIX_LETTERS[usize::from(*byte) % SUFFIX_LETTERS.len()]));
    base[..kept].chars().chain(suffix).collect()
}

/// A fresh uid.
pub(crate) fn new_uid() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generated_names_fit_and_begin_as_asked() {
        let name = generate_name("gen-");
        assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
        assert_eq!(generate_name(&"x".repeat(300)).len(), LONGEST_NAME);
        assert!(generate_name(&"é".repeat(40)).len() <= LONGEST_NAME);
    }

    #[test]
    fn an_update_need_not_repeat_what_the_server_set() {
        let live = json!({"metadata": {"uid": "u", "creationTimestamp": "t", "generation": 3}});
        let mut object = json!({"metadata": {"name": "x", "generation": 9}});
        carry_over(&mut object, &live);
        assert_eq!(
            object,
            json!({"metadata": {"name": "x", "uid": "u", "creationTimestamp": "t", "generation": 3}})
        );
    }
}
