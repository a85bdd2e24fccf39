//! What Go's reader takes and a reader of YAML 1.2 refuses, and the words of Go's errors.

use granit_parser::{ErrorKind, ScanError};

use super::node::{Node, NodeError};

/// Places of a text that are repaired, at most: each costs another pass.
const MAX_REPAIRS: usize = 64;

/// Columns that a line is moved by which continues a quoted scalar. Blanks before it mean nothing.
const COLUMNS: usize = 64;

const CANNOT_START: &str = "found character that cannot start any token";

/// Refuses texts that Go's reader refuses before it looks at their structure.
pub(super) fn check(text: &str) -> Result<(), String> {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}' | '\u{10000}'..);
    if !text.chars().all(is_allowed) {
        return Err("control characters are not allowed".to_owned());
    }
    let mut lines = text.split('\n');
    let first = lines.find_map(|line| {
        let content = line.trim_start_matches([' ', '\r', '\u{FEFF}']);
        let is_content = !content.is_empty() && !content.starts_with('#');
        is_content.then_some(content)
    });
    match first {
        Some(content) if content.starts_with('\t') => Err(CANNOT_START.to_owned()),
        _ => Ok(()),
    }
}

/// Whether this can stand behind a document: Go's reader looks at one token there, but not at its place.
pub(super) const fn may_follow(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ExpectedDocumentStart
            | ErrorKind::MisplacedFlowCollectionEnd
            | ErrorKind::UnclosedFlowCollection { .. }
            | ErrorKind::CommentNotSeparated
    )
}

/// What a text has to be that was cut off before an error.
#[derive(Clone, Copy)]
enum Cut {
    Anything,
    /// A quoted scalar, or a list or map in brackets.
    Closed,
}

/// A text that is repaired where Go's reader takes it as it is.
pub(super) struct Retry {
    text: String,
    repairs: usize,
    cut: Option<Cut>,
    error: Option<NodeError>,
}

impl Retry {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            repairs: 0,
            cut: None,
            error: None,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The node, if it is one that text may follow.
    pub(super) fn accept(self, node: Node) -> Result<Node, NodeError> {
        let is_wanted = match self.cut {
            None | Some(Cut::Anything) => true,
            Some(Cut::Closed) => match node {
                Node::String(_) => self.text.trim_start().starts_with(['"', '\'']),
                Node::List(_) | Node::Map(_) => self.text.trim_start().starts_with(['[', '{']),
                _ => false,
            },
        };
        if is_wanted {
            Ok(node)
        } else {
            Err(self.into_error())
        }
    }

    /// The first error that cannot be repaired.
    pub(super) fn into_error(self) -> NodeError {
        self.error
            .unwrap_or_else(|| NodeError("cannot be read".to_owned()))
    }

    /// Changes the text so that it can be read; false if the error is one.
    pub(super) fn repair(&mut self, error: &ScanError, words: String) -> bool {
        if self.cut.is_none() {
            self.error = Some(NodeError(words));
        }
        let marker = error.marker();
        let offset = |index: usize| {
            let nth = self.text.char_indices().nth(index);
            nth.map_or(self.text.len(), |(offset, _)| offset)
        };
        let at = offset(marker.index());
        let cut = match error.kind() {
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::CommentNotSeparated
                if self.repairs == MAX_REPAIRS =>
            {
                return false;
            }
            ErrorKind::InvalidQuotedScalarIndent => {
                let start = offset(marker.index().saturating_sub(marker.col()));
                self.text.insert_str(start, &" ".repeat(COLUMNS));
                self.repairs += 1;
                return true;
            }
            ErrorKind::CommentNotSeparated => {
                self.text.insert(at, ' ');
                self.repairs += 1;
                return true;
            }
            ErrorKind::ExpectedDocumentStart => Cut::Anything,
            ErrorKind::InvalidTrailingSingleQuotedScalar
            | ErrorKind::InvalidTrailingDoubleQuotedScalar
                if is_token(&self.text[at..]) =>
            {
                Cut::Closed
            }
            ErrorKind::MisplacedFlowCollectionEnd | ErrorKind::UnclosedFlowCollection { .. } => {
                Cut::Closed
            }
            _ => return false,
        };
        if self.cut.is_some() {
            return false;
        }
        self.text.truncate(at);
        self.cut = Some(cut);
        true
    }
}

/// Whether Go's reader finds tokens in the rest of a line that leave the scalar before it alone.
fn is_token(rest: &str) -> bool {
    let line = rest.split('\n').next().unwrap_or_default();
    let line = line.trim_start_matches([' ', '\t']);
    let is_key = line.contains(": ") || line.trim_end().ends_with(':');
    let mut characters = line.chars();
    let Some(first) = characters.next() else {
        return true;
    };
    let blank_follows = characters
        .clone()
        .next()
        .is_none_or(|next| matches!(next, ' ' | '\t' | '\r'));
    match first {
        _ if is_key && !matches!(first, '{' | '[' | '#') => false,
        '@' | '`' | '%' | '|' | '>' => false,
        '-' | '?' | ':' => !blank_follows,
        '"' | '\'' => rest.trim_start_matches([' ', '\t'])[1..].contains(first),
        _ => true,
    }
}

/// An error in the words of Go's reader. `open` is the line where the innermost container begins.
pub(super) fn words(text: &str, error: &ScanError, open: Option<usize>) -> String {
    let line = error.marker().line();
    // Go's parser counts from 0, and begins with the container that is open.
    let before = line.saturating_sub(1);
    if let Some(words) = scanner_words(error.kind()) {
        return at_line(if before == 0 { 0 } else { line }, words);
    }
    if let Some(words) = parser_words(error.kind()) {
        let begins = open.map_or(0, |line| line.saturating_sub(1));
        return at_line(if begins == 0 { before } else { begins }, words);
    }
    match error.kind() {
        ErrorKind::UnclosedFlowCollection { open } if before == 0 => {
            at_line(text.lines().count(), unclosed(*open))
        }
        ErrorKind::UnclosedFlowCollection { open }
        | ErrorKind::MismatchedFlowCollectionEnd { open, .. } => at_line(before, unclosed(*open)),
        ErrorKind::UnknownAnchor => {
            let rest = text.chars().skip(error.marker().index() + 1);
            let name: String = rest
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                .collect();
            format!("unknown anchor '{name}' referenced")
        }
        _ => at_line(line, &error.info()),
    }
}

fn scanner_words(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => "mapping values are not allowed in this context",
        ErrorKind::MappingKeyNotAllowed => "mapping keys are not allowed in this context",
        ErrorKind::BlockSequenceEntryNotAllowed => {
            "block sequence entries are not allowed in this context"
        }
        ErrorKind::UnexpectedCharacter { .. }
        | ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation => CANNOT_START,
        ErrorKind::UnclosedQuotedScalar => "found unexpected end of stream",
        ErrorKind::UnknownQuotedScalarEscape => "found unknown escape character",
        ErrorKind::SimpleKeyExpected => "could not find expected ':'",
        ErrorKind::InvalidBlockScalarHeader => "did not find expected comment or line break",
        _ => return None,
    })
}

fn parser_words(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ExpectedNodeContent | ErrorKind::MisplacedFlowCollectionEnd => {
            "did not find expected node content"
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => "did not find expected key",
        ErrorKind::ExpectedBlockSequenceEntry => "did not find expected '-' indicator",
        ErrorKind::ExpectedFlowMappingSeparator => unclosed('{'),
        ErrorKind::ExpectedFlowSequenceSeparator => unclosed('['),
        _ => return None,
    })
}

const fn unclosed(open: char) -> &'static str {
    if open == '{' {
        "did not find expected ',' or '}'"
    } else {
        "did not find expected ',' or ']'"
    }
}

/// Go shows no line where its number is 0.
fn at_line(line: usize, words: &str) -> String {
    match line {
        0 => words.to_owned(),
        line => format!("line {line}: {words}"),
    }
}
