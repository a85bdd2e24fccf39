//! Which namespaces a policy selects.

use bellwether_api::policy::{NamespaceSelector, TerminatingInclusion};
use bellwether_json::label::LabelSelector;
use serde_json::{Map, Value};

/// Whether a selector selects nothing, whatever namespaces there are.
pub(crate) fn is_empty(selector: &NamespaceSelector) -> bool {
    !has_labels(selector) && selector.include.is_empty()
}

fn has_labels(selector: &NamespaceSelector) -> bool {
    let has_some = |part: &Option<Value>| match part {
        Some(Value::Object(labels)) => !labels.is_empty(),
        Some(Value::Array(expressions)) => !expressions.is_empty(),
        _ => false,
    };
    has_some(&selector.match_labels) || has_some(&selector.match_expressions)
}

/// The names of the selected namespaces, in order.
pub(crate) fn selected(
    selector: &NamespaceSelector,
    namespaces: &[Value],
) -> Result<Vec<String>, String> {
    if is_empty(selector) {
        return Ok(Vec::new());
    }
    let mut object = Map::new();
    for (key, part) in [
        ("matchLabels", &selector.match_labels),
        ("matchExpressions", &selector.match_expressions),
    ] {
        if let Some(part) = part {
            object.insert(key.to_owned(), part.clone());
        }
    }
    let labels = LabelSelector::from_object(Some(&Value::Object(object)))
        .map_err(|error| format!("error parsing namespace LabelSelector: {error}"))?;
    let without_terminating = selector.terminating_inclusion == Some(TerminatingInclusion::Never);
    let mut names = Vec::new();
    for namespace in namespaces {
        let metadata = &namespace["metadata"];
        let Some(name) = metadata["name"].as_str() else {
            continue;
        };
        let is_terminating = metadata["deletionTimestamp"].is_string();
        if (is_terminating && without_terminating) || !labels.matches_object(namespace) {
            continue;
        }
        let is_included =
            selector.include.is_empty() || matches_any(&selector.include, name, "include")?;
        if is_included && !matches_any(&selector.exclude, name, "exclude")? {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn matches_any(patterns: &[String], name: &str, list: &str) -> Result<bool, String> {
    for pattern in patterns {
        let pattern_chars: Vec<char> = pattern.chars().collect();
        let name: Vec<char> = name.chars().collect();
        match matches_glob(&pattern_chars, &name) {
            Some(true) => return Ok(true),
            Some(false) => {}
            None => {
                return Err(format!(
                    "error parsing '{list}' pattern '{pattern}': syntax error in pattern"
                ));
            }
        }
    }
    Ok(false)
}

/// Whether a name matches a pattern as Go's `filepath.Match` has it; nothing for a broken pattern.
fn matches_glob(pattern: &[char], name: &[char]) -> Option<bool> {
    // Where the last star was, and how far its run goes: going back there is all that is ever needed.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut is_valid = true;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return is_valid.then_some(true),
            None => None,
            Some(_) => {
                let (next, matched) = one(pattern, p, name.get(n).copied())?;
                matched.then_some(next)
            }
        };
        match (step, star) {
            (Some(next), _) => (p, n) = (next, n + 1),
            (None, Some((after, from))) if from < name.len() => {
                star = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            (None, _) => break,
        }
    }
    is_valid &= is_well_formed(&pattern[p.min(pattern.len())..]);
    is_valid.then_some(false)
}

/// Whether the rest of a pattern can be read.
fn is_well_formed(pattern: &[char]) -> bool {
    let mut at = 0;
    while at < pattern.len() {
        if pattern[at] == '*' {
            at += 1;
            continue;
        }
        match one(pattern, at, Some('a')) {
            Some((next, _)) => at = next,
            None => return false,
        }
    }
    true
}

/// Matches one character: where the pattern goes on, and whether it matched. Nothing if it is broken.
fn one(pattern: &[char], at: usize, character: Option<char>) -> Option<(usize, bool)> {
    match pattern.get(at)? {
        '?' => Some((at + 1, character.is_some_and(|c| c != '/'))),
        '\\' => {
            let escaped = *pattern.get(at + 1)?;
            Some((at + 2, character == Some(escaped)))
        }
        '[' => class(pattern, at + 1, character),
        literal => Some((at + 1, character == Some(*literal))),
    }
}

/// Matches one character with a class such as `[^a-z]`.
fn class(pattern: &[char], mut at: usize, character: Option<char>) -> Option<(usize, bool)> {
    let is_negated = pattern.get(at) == Some(&'^');
    at += usize::from(is_negated);
    let mut is_in = false;
    let mut ranges = 0;
    loop {
        if pattern.get(at) == Some(&']') && ranges > 0 {
            let matched = character.is_some() && is_in != is_negated;
            return Some((at + 1, matched));
        }
        let (low, next) = bound(pattern, at)?;
        at = next;
        let mut high = low;
        if pattern.get(at) == Some(&'-') {
            (high, at) = bound(pattern, at + 1)?;
        }
        is_in |= character.is_some_and(|c| low <= c && c <= high);
        ranges += 1;
    }
}

/// One end of a range in a class.
fn bound(pattern: &[char], at: usize) -> Option<(char, usize)> {
    match pattern.get(at)? {
        '-' | ']' => None,
        '\\' => Some((*pattern.get(at + 1)?, at + 2)),
        plain => Some((*plain, at + 1)),
    }
}
