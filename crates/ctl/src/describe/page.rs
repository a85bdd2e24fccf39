//! The page that a description is written on: lines of cells, put under each other as kubectl does.

use std::fmt::Display;

use bellwether_go::tabwriter;
use serde_json::{Map, Value};

use super::read::{go_list, items, text};
use crate::apply::LAST_APPLIED;

/// Between the columns of a block.
const PADDING: usize = 2;
/// Longer annotations get a line of their own, and are cut.
const LONGEST_ANNOTATION: usize = 140;

/// Text whose tabs are columns: cells of a column that stand directly under each other are aligned.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// A line, indented by so many steps.
    pub(super) fn line(&mut self, level: usize, text: impl Display) {
        self.start(level, text);
        self.0.push('\n');
    }

    /// The beginning of a line.
    pub(super) fn start(&mut self, level: usize, text: impl Display) {
        self.0.push_str(&"  ".repeat(level));
        self.0.push_str(&text.to_string());
    }

    /// A label and its value.
    pub(super) fn pair(&mut self, level: usize, label: &str, value: impl Display) {
        self.line(level, format_args!("{label}:\t{value}"));
    }

    /// A label and its value, if it has one.
    pub(super) fn pair_if(&mut self, level: usize, label: &str, value: &str) {
        if !value.is_empty() {
            self.pair(level, label, value);
        }
    }

    /// Several values: the first beside the label, the others under it.
    pub(super) fn list<T: Display>(&mut self, label: &str, values: &[T]) {
        match values {
            [] => self.pair(0, label, "<none>"),
            [first, others @ ..] => {
                self.pair(0, label, first);
                for other in others {
                    self.line(0, format_args!("\t{other}"));
                }
            }
        }
    }

    /// Labels, or anything else that is a map of short texts.
    pub(super) fn labels(&mut self, label: &str, map: &Value) {
        let pairs: Vec<String> = sorted(map)
            .into_iter()
            .map(|(key, value)| format!("{key}={}", text(value)))
            .collect();
        self.list(label, &pairs);
    }

    /// Annotations, without what `apply` notes; long ones are cut.
    pub(super) fn annotations(&mut self, label: &str, map: &Value) {
        let mut lines = Vec::new();
        for (key, value) in sorted(map)
            .into_iter()
            .filter(|(key, _)| *key != LAST_APPLIED)
        {
            let value = text(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            if value.len() + key.len() + 2 > LONGEST_ANNOTATION || value.contains('\n') {
                lines.push(format!("{key}:"));
                let parts = value.split('\n');
                lines.extend(parts.map(|part| format!("  {}", shortened(part))));
            } else {
                lines.push(format!("{key}: {value}"));
            }
        }
        self.list(label, &lines);
    }

    /// Conditions with some of their fields.
    pub(super) fn conditions(&mut self, conditions: &Value) {
        if items(conditions).is_empty() {
            return;
        }
        self.line(0, "Conditions:");
        self.line(1, "Type\tStatus\tReason");
        self.line(1, "----\t------\t------");
        for found in items(conditions) {
            let [kind, status, reason] =
                ["type", "status", "reason"].map(|name| text(&found[name]));
            self.line(1, format_args!("{kind} \t{status}\t{reason}"));
        }
    }

    /// Finalizers, as Go prints a list.
    pub(super) fn finalizers(&mut self, object: &Value) {
        let list = go_list(&object["metadata"]["finalizers"]);
        self.pair(0, "Finalizers", list);
    }

    /// The text with its columns aligned.
    pub(super) fn finish(self) -> String {
        align(&self.0)
    }
}

/// The entries of a map, by key.
pub(super) fn sorted(map: &Value) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map
        .as_object()
        .map(Map::iter)
        .into_iter()
        .flatten()
        .collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

fn shortened(text: &str) -> String {
    let most = LONGEST_ANNOTATION - 2;
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    format!("{}...", &text[..end.unwrap_or(0)])
}

/// Aligns columns as kubectl does.
pub(super) fn align(text: &str) -> String {
    tabwriter::align(text, PADDING)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_under_each_other_are_aligned() {
        let text = "a:\tx\nlonger:\ty\nalone\nb:\t1\t2\nc:\t\t3\n";
        let expected = "a:       x\nlonger:  y\nalone\nb:  1  2\nc:     3\n";
        assert_eq!(align(text), expected);
    }

    #[test]
    fn labels_and_annotations_are_sorted_and_cut() {
        let mut page = Page::default();
        page.labels("Labels", &json!({"b": "2", "a": "1"}));
        page.labels("  Node-Selectors", &json!({}));
        page.annotations(
            "Annotations",
            &json!({"long": "x".repeat(150), "lines": "a\nb\n"}),
        );
        let expected = format!(
            "Labels:            a=1\n                   b=2\n  Node-Selectors:  <none>\n\
             Annotations:       lines:\n                     a\n                     b\n\
             {0}long:\n{0}  {1}...\n",
            " ".repeat(19),
            "x".repeat(138),
        );
        assert_eq!(page.finish(), expected);
    }
}
