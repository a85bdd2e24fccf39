//! Positions in source text, tokens, and the mapping from byte offsets to lines.
//!
//! A [`Span`] is a pair of byte offsets into one file; only [`LineIndex`] turns
//! offsets into the line and column that a person reads.

use std::sync::Arc;

/// A half-open range of byte offsets in one source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just past the last byte.
    pub end: u32,
}

impl Span {
    /// A span from `start` up to, but without, `end`.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            start: clamp(start),
            end: clamp(end),
        }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// The text the span covers, or the empty string when it lies outside `source`.
    pub fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or("")
    }
}

/// Index of a file among the sources of one compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct FileId(pub u16);

/// A place in the sources of one compilation: the file and the start offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Pos {
    /// Which file.
    pub file: FileId,
    /// Byte offset in that file; `u32::MAX` when there is no position.
    pub offset: u32,
}

impl Pos {
    /// The position of values that came from no source, such as injected data.
    pub const NONE: Self = Self {
        file: FileId(0),
        offset: u32::MAX,
    };

    /// Whether the position points into a source file.
    pub fn is_known(self) -> bool {
        self.offset != u32::MAX
    }
}

/// A line and a column, both counted from one; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line number, from one.
    pub line: u32,
    /// Byte column, from one.
    pub column: u32,
}

/// Start offsets of every line of one file.
#[derive(Debug, Clone, Default)]
pub struct LineIndex {
    starts: Arc<[u32]>,
}

impl LineIndex {
    /// Finds the line starts of `source`.
    pub fn new(source: &str) -> Self {
        let newlines = source
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n');
        let starts: Vec<u32> = std::iter::once(0)
            .chain(newlines.map(|(offset, _)| u32::try_from(offset + 1).unwrap_or(u32::MAX)))
            .collect();
        Self {
            starts: starts.into(),
        }
    }

    /// The line and column of a byte offset.
    pub fn locate(&self, offset: u32) -> LineColumn {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied();
        LineColumn {
            line: u32::try_from(line.max(1)).unwrap_or(u32::MAX),
            column: offset - start.unwrap_or(0) + 1,
        }
    }

    /// The zero-based line number of a byte offset; handy for "same line?" questions.
    pub fn line(&self, offset: u32) -> u32 {
        self.locate(offset).line - 1
    }
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    /// End of the file.
    Eof,
    /// A run of characters that is no token; the lexer has reported it.
    Illegal,
    /// An identifier, including `_`, `#x`, `_x`, `$x` and the keywords.
    Ident,
    /// An attribute such as `@tag(x)`.
    Attribute,
    /// An integer literal, possibly with a multiplier suffix.
    Int,
    /// A floating-point literal.
    Float,
    /// A complete string or bytes literal without interpolation.
    String,
    /// A string or bytes literal with interpolations; its pieces are found again by the parser.
    Interpolation,
    /// `_|_`
    Bottom,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Quo,
    /// `&`
    And,
    /// `|`
    Or,
    /// `&&`
    LogicalAnd,
    /// `||`
    LogicalOr,
    /// `=` as used by aliases and `let`.
    Bind,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
    /// `!`
    Not,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`, written or inserted at the end of a line.
    Comma,
    /// `.`
    Period,
    /// `...`
    Ellipsis,
    /// `:`
    Colon,
    /// `?`
    Option,
}
