//! Unified differences between objects, as YAML.
//!
//! The lines are those of Python's `difflib`, which the library that upstream uses is a port of.

use std::collections::HashMap;

use bellwether_api::policy::RecordDiff;
use bellwether_json::yaml::to_yaml;
use serde_json::Value;

/// Lines around a change.
const CONTEXT: usize = 5;

/// Lines of a difference that a status records, after the two headers and the first range.
const MAX_LINES: usize = 50;

/// Lines that do not count towards [`MAX_LINES`].
const HEADERS: usize = 3;

/// A text of this many lines has its frequent lines ignored when matches are looked for.
const POPULAR_FROM: usize = 200;

/// Lines of differences and texts beyond this are not compared: the cost is quadratic.
const MAX_COMPARED: usize = 20_000;

/// What stands for a difference that holds secrets.
pub(super) const REDACTED: &str = "# The difference is redacted because it contains sensitive data. To override, the spec[\"object-templates\"][].recordDiff field must be set to \"InStatus\" for the difference to be recorded in the policy status. Consider existing access to the ConfigurationPolicy objects and the etcd encryption configuration before you proceed with an override.";

/// What is logged instead of a difference that holds secrets.
pub(super) const LOG_REDACTED: &str = "# redacted: the object holds secrets, or is made of some";

/// Where a difference goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recording {
    Log,
    InStatus,
    Nowhere,
    Redacted,
}

impl Recording {
    /// Where differences of an object template go. Kinds that hold secrets are redacted.
    pub(super) fn of(record: Option<&RecordDiff>, api_version: &str, kind: &str) -> Self {
        match record {
            Some(RecordDiff::Log) => Self::Log,
            Some(RecordDiff::InStatus) => Self::InStatus,
            Some(RecordDiff::None) => Self::Nowhere,
            Some(RecordDiff::Other(_)) | None => {
                let group = api_version.split_once('/').map_or("", |(group, _)| group);
                let is_sensitive = matches!(
                    (group, kind),
                    ("", "ConfigMap" | "Secret")
                        | (
                            "oauth.openshift.io",
                            "OAuthAccessToken" | "OAuthAuthorizeTokens" | "OAuthAuthorizeToken"
                        )
                        | ("route.openshift.io", "Route")
                );
                if is_sensitive {
                    Self::Redacted
                } else {
                    Self::InStatus
                }
            }
        }
    }
}

/// The difference between two objects, cut to a readable length unless it is wanted in full.
pub(super) fn difference(before: &Value, after: &Value, is_full: bool) -> String {
    let metadata = &before["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let name = match metadata["namespace"].as_str() {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    };
    let diff = unified(
        &to_yaml(before),
        &to_yaml(after),
        &format!("{name} : existing"),
        &format!("{name} : updated"),
    );
    // What follows the last line break counts as a line.
    let lines: Vec<&str> = diff.split('\n').collect();
    if is_full || lines.len() <= MAX_LINES + HEADERS {
        return diff;
    }
    let shown = lines[..MAX_LINES + HEADERS].join("\n");
    format!(
        "# Truncated: showing {MAX_LINES}/{} diff lines:\n{shown}",
        lines.len()
    )
}

/// A unified difference; empty for equal texts.
fn unified(before: &str, after: &str, from: &str, to: &str) -> String {
    let (before, after) = (lines(before), lines(after));
    let groups = grouped(&Matcher::new(&before, &after).changes());
    if groups.is_empty() {
        return String::new();
    }
    let mut out = format!("--- {from}\n+++ {to}\n");
    for group in groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let left = range(first.before.0, last.before.1);
        let right = range(first.after.0, last.after.1);
        out.extend(["@@ -", &left, " +", &right, " @@\n"]);
        for change in &group {
            let removed = &before[change.before.0..change.before.1];
            let added = &after[change.after.0..change.after.1];
            if change.is_equal {
                append(&mut out, ' ', removed);
            } else {
                append(&mut out, '-', removed);
                append(&mut out, '+', added);
            }
        }
    }
    out
}

fn append(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
}

/// The lines of a text; the library counts an empty one after the last line break.
fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// A run of lines that are equal, or replaced by others.
#[derive(Debug, Clone, Copy)]
struct Change {
    is_equal: bool,
    before: (usize, usize),
    after: (usize, usize),
}

/// Changes with a few equal lines around them; those that are near each other are in one group.
fn grouped(changes: &[Change]) -> Vec<Vec<Change>> {
    if changes.iter().all(|change| change.is_equal) {
        return Vec::new();
    }
    let mut changes = changes.to_vec();
    if let Some(first) = changes.first_mut().filter(|change| change.is_equal) {
        first.before.0 = first.before.0.max(first.before.1.saturating_sub(CONTEXT));
        first.after.0 = first.after.0.max(first.after.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = changes.last_mut().filter(|change| change.is_equal) {
        last.before.1 = last.before.1.min(last.before.0 + CONTEXT);
        last.after.1 = last.after.1.min(last.after.0 + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for mut change in changes {
        if change.is_equal && change.before.1 - change.before.0 > 2 * CONTEXT {
            group.push(Change {
                before: (change.before.0, change.before.0 + CONTEXT),
                after: (change.after.0, change.after.0 + CONTEXT),
                ..change
            });
            groups.push(std::mem::take(&mut group));
            change.before.0 = change.before.1 - CONTEXT;
            change.after.0 = change.after.1 - CONTEXT;
        }
        group.push(change);
    }
    if group.iter().any(|change| !change.is_equal) {
        groups.push(group);
    }
    groups
}

/// Finds runs of equal lines, the longest first.
struct Matcher<'m> {
    before: &'m [&'m str],
    after: &'m [&'m str],
    /// Where each line of the later text is.
    places: HashMap<&'m str, Vec<usize>>,
}

impl<'m> Matcher<'m> {
    fn new(before: &'m [&'m str], after: &'m [&'m str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, line) in after.iter().enumerate() {
            places.entry(line).or_default().push(index);
        }
        if after.len() >= POPULAR_FROM {
            let limit = after.len() / 100 + 1;
            places.retain(|_, indexes| indexes.len() <= limit);
        }
        Self {
            before,
            after,
            places,
        }
    }

    /// The longest run of equal lines in two ranges: where it starts in each, and its length.
    fn longest(&self, before: (usize, usize), after: (usize, usize)) -> (usize, usize, usize) {
        let (mut best_before, mut best_after, mut best) = (before.0, after.0, 0);
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for i in before.0..before.1 {
            let mut next = HashMap::new();
            let places = self.places.get(self.before[i]);
            for &j in places.into_iter().flatten() {
                if j < after.0 {
                    continue;
                }
                if j >= after.1 {
                    break;
                }
                let earlier = j.checked_sub(1).and_then(|j| lengths.get(&j));
                let length = earlier.copied().unwrap_or_default() + 1;
                next.insert(j, length);
                if length > best {
                    (best_before, best_after, best) = (i + 1 - length, j + 1 - length, length);
                }
            }
            lengths = next;
        }
        // Frequent lines are no places, but they may stand at the ends of a run.
        while best_before > before.0
            && best_after > after.0
            && self.before[best_before - 1] == self.after[best_after - 1]
        {
            (best_before, best_after, best) = (best_before - 1, best_after - 1, best + 1);
        }
        while best_before + best < before.1
            && best_after + best < after.1
            && self.before[best_before + best] == self.after[best_after + best]
        {
            best += 1;
        }
        (best_before, best_after, best)
    }

    /// All runs of equal lines, in order.
    fn matches(&self) -> Vec<(usize, usize, usize)> {
        if self.before.len().max(self.after.len()) > MAX_COMPARED {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut open = vec![((0, self.before.len()), (0, self.after.len()))];
        while let Some((before, after)) = open.pop() {
            let (i, j, length) = self.longest(before, after);
            if length == 0 {
                continue;
            }
            found.push((i, j, length));
            if before.0 < i && after.0 < j {
                open.push(((before.0, i), (after.0, j)));
            }
            if i + length < before.1 && j + length < after.1 {
                open.push(((i + length, before.1), (j + length, after.1)));
            }
        }
        found.sort_unstable();
        found
    }

    /// Equal and replaced runs, in order.
    fn changes(&self) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        let (mut i, mut j) = (0, 0);
        let end = (self.before.len(), self.after.len(), 0);
        for (before, after, length) in self.matches().into_iter().chain([end]) {
            if i < before || j < after {
                changes.push(Change {
                    is_equal: false,
                    before: (i, before),
                    after: (j, after),
                });
            }
            (i, j) = (before + length, after + length);
            let run = Change {
                is_equal: true,
                before: (before, i),
                after: (after, j),
            };
            match changes.last_mut() {
                Some(last) if last.is_equal && last.before.1 == before && last.after.1 == after => {
                    last.before.1 = i;
                    last.after.1 = j;
                }
                _ if length > 0 => changes.push(run),
                _ => {}
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_follows_the_last_line_break_counts_as_a_line_of_a_long_difference() {
        let object = |count: usize| {
            let spec: Vec<String> = (0..count).map(|index| format!("i{index}")).collect();
            json!({"metadata": {"name": "x"}, "spec": spec})
        };
        let full = difference(&object(0), &object(60), true);
        let lines = full.split('\n').count();
        let cut = difference(&object(0), &object(60), false);
        assert!(cut.starts_with(&format!("# Truncated: showing 50/{lines} diff lines:\n")));
        assert_eq!(cut.split('\n').count(), 1 + MAX_LINES + HEADERS);
        assert!(!cut.ends_with('\n'));
    }
}
