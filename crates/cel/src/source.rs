//! The text of an expression and the places inside it.
//!
//! Positions are byte offsets everywhere; lines and columns (in code points, as users count
//! them) are worked out only when a message is rendered.

/// A byte offset into the source, or [`Position::NONE`] where no place is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(u32);

impl Position {
    /// "Nowhere": used for errors about the expression as a whole.
    pub(crate) const NONE: Position = Position(u32::MAX);

    /// The position of byte `offset`.
    pub(crate) fn at(offset: usize) -> Position {
        // The parser refuses sources above 100,000 code points, so this cannot saturate.
        Position(u32::try_from(offset).unwrap_or(u32::MAX - 1))
    }
}

/// A place for people: line from 1, column from 0 in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, counted from 1; -1 if the problem has no place.
    pub line: i64,
    /// The column, counted in code points from 0; -1 if the problem has no place.
    pub column: i64,
}

/// Longest line that is repeated below a message, in bytes; the limit of cel-go.
const MAX_SNIPPET_LENGTH: usize = 16_384;

/// The line and column of `position` in `text`.
pub(crate) fn locate(text: &str, position: Position) -> Location {
    if position == Position::NONE {
        return Location {
            line: -1,
            column: -1,
        };
    }
    let offset = usize::try_from(position.0)
        .unwrap_or(usize::MAX)
        .min(text.len());
    if text.is_empty() {
        // cel-go finds no column in an empty source.
        return Location {
            line: 1,
            column: -1,
        };
    }
    let mut line = 1;
    let mut start = 0;
    for (index, byte) in text.bytes().enumerate().take(offset) {
        if byte == b'\n' {
            line += 1;
            start = index + 1;
        }
    }
    let column = text
        .get(start..offset)
        .map_or(0, |before| before.chars().count());
    Location {
        line,
        column: i64::try_from(column).unwrap_or(i64::MAX),
    }
}

/// Renders one problem the way cel-go does: a heading, the line, and a mark under the column.
pub(crate) fn render(text: &str, location: Location, message: &str) -> String {
    let mut out = format!(
        "ERROR: <input>:{}:{}: {message}",
        location.line,
        location.column + 1
    );
    let Some(snippet) = usize::try_from(location.line - 1)
        .ok()
        .and_then(|index| text.split('\n').nth(index))
    else {
        return out;
    };
    if snippet.len() > MAX_SNIPPET_LENGTH || text.is_empty() {
        return out;
    }
    let snippet = snippet.replace('\t', " ");
    out.push_str("\n | ");
    out.push_str(&snippet);
    out.push_str("\n | ");
    let column = usize::try_from(location.column).unwrap_or(0);
    let mut characters = snippet.chars();
    for character in characters.by_ref().take(column) {
        out.push(if character.len_utf8() > 1 { '．' } else { '.' });
    }
    let wide = characters.next().is_some_and(|c| c.len_utf8() > 1);
    out.push(if wide { '＾' } else { '^' });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_code_points() {
        let text = "'é' +\n  x";
        assert_eq!(
            locate(text, Position::at(9)),
            Location { line: 2, column: 2 }
        );
        assert_eq!(
            locate(text, Position::at(5)),
            Location { line: 1, column: 4 }
        );
    }

    #[test]
    fn a_mark_stands_under_the_column() {
        let text = "foo.bar";
        assert_eq!(
            render(text, locate(text, Position::at(3)), "bad"),
            "ERROR: <input>:1:4: bad\n | foo.bar\n | ...^"
        );
    }

    #[test]
    fn wide_characters_widen_the_mark() {
        let text = "'é'+é";
        assert_eq!(
            render(text, locate(text, Position::at(5)), "bad"),
            "ERROR: <input>:1:5: bad\n | 'é'+é\n | .．..＾"
        );
    }

    #[test]
    fn a_problem_without_a_place_has_no_snippet() {
        assert_eq!(
            render("x", locate("x", Position::NONE), "too deep"),
            "ERROR: <input>:-1:0: too deep"
        );
    }
}
