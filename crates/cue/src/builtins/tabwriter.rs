//! Package `text/tabwriter`: aligns columns separated by tabs.

use super::argument::{Outcome, any, text_result};
use super::{ANY, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "text/tabwriter",
    functions: &[function("Write", &[ANY], Kind::STRING, write)],
    source: "",
};

/// Blanks between a column and the next.
const PADDING: usize = 1;

fn write(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut text = String::new();
    match any(arguments, 0)? {
        Value::List(items) => {
            for item in items.iter() {
                text.push_str(&as_text(item)?);
                text.push('\n');
            }
        }
        other => text = as_text(other)?,
    }
    text_result(align(&text))
}

fn as_text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        other => Err(Failure::error(format!(
            "tabwriter.Write: unsupported type {}",
            other.kind()
        ))),
    }
}

/// Pads every cell that ends in a tab to the width of its column. A column is a run of adjacent
/// lines that all have such a cell at the same place; text after the last tab is not part of it.
fn align(text: &str) -> String {
    let lines: Vec<Vec<&str>> = text
        .split('\n')
        .map(|line| line.split('\t').collect())
        .collect();
    let mut widths: Vec<Vec<usize>> = lines
        .iter()
        .map(|cells| vec![0; cells.len().saturating_sub(1)])
        .collect();
    let columns = widths.iter().map(Vec::len).max().unwrap_or(0);
    for column in 0..columns {
        let mut start = 0;
        while start < lines.len() {
            if widths[start].len() <= column {
                start += 1;
                continue;
            }
            let run = widths[start..]
                .iter()
                .take_while(|cells| cells.len() > column)
                .count();
            let end = start + run;
            let cell_width = |line: &Vec<&str>| line[column].chars().count();
            let width = lines[start..end].iter().map(cell_width).max().unwrap_or(0);
            // A column of empty cells takes no room.
            let width = if width == 0 { 0 } else { width + PADDING };
            for line in &mut widths[start..end] {
                line[column] = width;
            }
            start = end;
        }
    }
    let mut output = String::new();
    for (position, cells) in lines.iter().enumerate() {
        if position > 0 {
            output.push('\n');
        }
        for (column, cell) in cells.iter().enumerate() {
            output.push_str(cell);
            if let Some(width) = widths[position].get(column) {
                let blanks = width.saturating_sub(cell.chars().count());
                output.extend(std::iter::repeat_n(' ', blanks));
            }
        }
    }
    output
}
