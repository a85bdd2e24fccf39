//! YAML as templates write it, read as leniently as Go's reader does.

use bellwether_json::yaml::{
    Dialect, DuplicateKeys, YamlError, YamlOptions, YamlStyle, from_yaml_with,
};
use serde_json::Value as Json;

/// The layout of YAML in templates: lists are indented, lines are never folded.
pub(super) const STYLE: YamlStyle = YamlStyle {
    fold_after: None,
    indent_lists: true,
    is_direct: false,
};

/// The reader's message for text behind the end of the first document.
const TRAILING: &str = "did not find expected <document start>";

/// The reader's message for a quoted scalar that goes on too far to the left.
const UNINDENTED: &str = "invalid indentation in multiline quoted scalar";

/// Lines of quoted scalars that are moved to the right, at most: each costs another pass.
const MAX_MOVED: usize = 64;

/// Columns that such a line is moved by. Blanks before it mean nothing.
const COLUMNS: usize = 64;

/// Reads the first document; an empty text is null. Go does not look at what follows the first
/// document, nor at the indentation of lines that continue a quoted scalar.
pub(super) fn first(text: &str) -> Result<Json, YamlError> {
    let options = YamlOptions {
        dialect: Dialect::GoYamlV3,
        duplicate_keys: DuplicateKeys::Error,
        ..YamlOptions::default()
    };
    let mut text = text.to_owned();
    let mut moved = 0;
    let mut is_cut = false;
    loop {
        let error = match from_yaml_with(&text, options) {
            Ok(documents) => return Ok(documents.into_iter().next().unwrap_or_default()),
            Err(error) => error,
        };
        let Some(start) = start_of_line(&text, error.line) else {
            return Err(error);
        };
        if error.message == UNINDENTED && moved < MAX_MOVED {
            text.insert_str(start, &" ".repeat(COLUMNS));
            moved += 1;
        } else if error.message == TRAILING && !is_cut {
            let line = &text[start..];
            let before = line.chars().take(error.column.saturating_sub(1));
            let end = start + before.map(char::len_utf8).sum::<usize>();
            text.truncate(end);
            is_cut = true;
        } else {
            return Err(error);
        }
    }
}

/// Where a line begins; lines count from 1.
fn start_of_line(text: &str, line: usize) -> Option<usize> {
    match line.checked_sub(2) {
        None => Some(0),
        Some(nth) => text.match_indices('\n').nth(nth).map(|(at, _)| at + 1),
    }
}
