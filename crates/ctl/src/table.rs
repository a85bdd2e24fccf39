//! Tables: as the server makes them, in columns of spaces.

use std::io::{self, Write};

use serde_json::Value;

/// Between columns.
const PADDING: usize = 3;
/// Of a column with its padding.
const NARROWEST: usize = 6;

/// Writes lines of cells, each column as wide as its widest cell.
pub fn write(out: &mut dyn Write, lines: &[Vec<String>]) -> io::Result<()> {
    let widths = widths(lines);
    for line in lines {
        write_line(out, line, &widths)?;
    }
    Ok(())
}

/// How wide each column has to be.
pub(crate) fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    (0..columns)
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            (widest + PADDING).max(NARROWEST)
        })
        .collect()
}

/// Writes one line; the last cell is not padded.
pub(crate) fn write_line(out: &mut dyn Write, line: &[String], widths: &[usize]) -> io::Result<()> {
    let mut text = String::new();
    for (index, cell) in line.iter().enumerate() {
        text.push_str(cell);
        if index + 1 < line.len() {
            let width = widths.get(index).copied().unwrap_or(NARROWEST);
            let padding = width.saturating_sub(cell.chars().count()).max(1);
            text.extend(std::iter::repeat_n(' ', padding));
        }
    }
    writeln!(out, "{text}")
}

/// Which columns of a server's table are shown, and what is put beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) wide: bool,
    pub(crate) namespaces: bool,
    pub(crate) labels: bool,
    /// Labels that have a column of their own.
    pub(crate) label_columns: Vec<String>,
    /// What is put before names where several types are shown.
    pub(crate) prefix: String,
}

impl View {
    /// The headers of a table.
    pub(crate) fn headers(&self, table: &Value) -> Vec<String> {
        let mut headers = Vec::new();
        if self.namespaces {
            headers.push("NAMESPACE".to_owned());
        }
        let definitions = list(&table["columnDefinitions"]);
        headers.extend(
            definitions
                .iter()
                .filter(|column| self.shows(column))
                .map(|column| column["name"].as_str().unwrap_or_default().to_uppercase()),
        );
        headers.extend(self.label_columns.iter().map(|label| {
            let name = label.rsplit('/').next().unwrap_or(label);
            name.to_uppercase()
        }));
        if self.labels {
            headers.push("LABELS".to_owned());
        }
        headers
    }

    /// The cells of a row, by the definitions of its columns.
    pub(crate) fn row(&self, definitions: &Value, row: &Value) -> Vec<String> {
        let metadata = &row["object"]["metadata"];
        let mut line = Vec::new();
        if self.namespaces {
            line.push(cell(&metadata["namespace"]));
        }
        let cells = list(&row["cells"]).iter();
        for (index, (value, column)) in cells.zip(list(definitions)).enumerate() {
            if self.shows(column) {
                let prefix = if index == 0 { self.prefix.as_str() } else { "" };
                line.push(format!("{prefix}{}", cell(value)));
            }
        }
        let columns = self.label_columns.iter();
        line.extend(columns.map(|label| cell(&metadata["labels"][label])));
        if self.labels {
            line.push(labels(&metadata["labels"]));
        }
        line
    }

    fn shows(&self, column: &Value) -> bool {
        self.wide || column["priority"].as_i64().unwrap_or(0) == 0
    }
}

/// `key=value` of all labels.
pub(crate) fn labels(labels: &Value) -> String {
    match labels.as_object() {
        Some(labels) if !labels.is_empty() => {
            let mut pairs: Vec<_> = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            pairs.sort();
            pairs.join(",")
        }
        _ => "<none>".to_owned(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        // A row is a line.
        Value::String(text) => match text.split_once('\n') {
            Some((first, _)) => format!("{first}..."),
            None => text.clone(),
        },
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = [["NAME", "A", "AGE"], ["something", "1", "5d"]]
            .map(|line| line.map(str::to_owned).to_vec());
        let mut out = Vec::new();
        write(&mut out, &lines).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "NAME        A     AGE\nsomething   1     5d\n"
        );
    }

    #[test]
    fn a_view_chooses_columns_and_adds_its_own() {
        let table = json!({"columnDefinitions": [
            {"name": "Name", "priority": 0}, {"name": "Note", "priority": 1}, {"name": "Age"},
        ]});
        let row = json!({"cells": ["web", "two\nlines", null], "object": {"metadata": {
            "namespace": "default", "labels": {"b": "2", "a": "1"},
        }}});
        let view = View {
            namespaces: true,
            labels: true,
            prefix: "pod/".to_owned(),
            ..View::default()
        };
        assert_eq!(view.headers(&table), ["NAMESPACE", "NAME", "AGE", "LABELS"]);
        let cells = view.row(&table["columnDefinitions"], &row);
        assert_eq!(cells, ["default", "pod/web", "", "a=1,b=2"]);
        let wide = View {
            wide: true,
            ..View::default()
        };
        assert_eq!(wide.row(&table["columnDefinitions"], &row)[1], "two...");
    }
}
