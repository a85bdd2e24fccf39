//! Kinds that need no description of their own: every field, in order.

use serde_json::Value;

use super::page::Page;
use super::read::text;
use super::subject::Subject;

/// How deep objects are shown.
const DEEPEST: usize = 64;
/// Words that are written in capitals.
const ACRONYMS: [&str; 5] = ["api", "guid", "osb", "uid", "url"];

/// Describes an object of any kind.
pub(super) fn describe(subject: &Subject<'_>, page: &mut Page) {
    let metadata = subject.metadata();
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    let mut object = subject.object.clone();
    object["apiVersion"] = subject.kind.api_version().into();
    object["kind"] = subject.kind.kind.as_str().into();
    if let Some(members) = object["metadata"].as_object_mut() {
        let shown = ["name", "namespace", "labels", "annotations"];
        for name in shown.iter().chain(&["managedFields"]) {
            members.remove(*name);
        }
    }
    members(page, 0, &object);
}

/// The members of an object, in order of their keys.
fn members(page: &mut Page, level: usize, object: &Value) {
    for (key, value) in super::page::sorted(object) {
        let label = label(key);
        match value {
            Value::Object(_) if level < DEEPEST => {
                page.line(level, format_args!("{label}:"));
                members(page, level + 1, value);
            }
            Value::Array(items) if level < DEEPEST => {
                page.line(level, format_args!("{label}:"));
                for item in items {
                    match item {
                        Value::Object(_) => members(page, level + 1, item),
                        scalar => page.line(level + 1, plain(scalar)),
                    }
                }
            }
            scalar => page.pair(level, &label, plain(scalar)),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}

/// A key as people write it: `creationTimestamp` is `Creation Timestamp`.
fn label(key: &str) -> String {
    // What is no name in our spelling, such as the key of a label, is left as it is.
    if !key
        .chars()
        .all(|letter| letter.is_alphabetic() || letter == '-')
    {
        return key.to_owned();
    }
    let titled = |word: &String| {
        let lower = word.to_lowercase();
        if ACRONYMS.contains(&lower.as_str()) {
            return word.to_uppercase();
        }
        let mut letters = lower.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect()
        })
    };
    words(key).iter().map(titled).collect::<Vec<_>>().join(" ")
}

/// The words of a name: `podIP` is `pod` and `IP`, `HTTPPort` is `HTTP` and `Port`.
fn words(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let begins = match before {
            None => true,
            Some(before) if letter.is_uppercase() => {
                let after = letters.get(at + 1);
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            }
            Some(before) => letter.is_alphabetic() != before.is_alphabetic(),
        };
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(*letter);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_labels() {
        for (key, expected) in [
            ("creationTimestamp", "Creation Timestamp"),
            ("apiVersion", "API Version"),
            ("uid", "UID"),
            ("podIP", "Pod Ip"),
            ("app.kubernetes.io/name", "app.kubernetes.io/name"),
        ] {
            assert_eq!(label(key), expected);
        }
    }
}
