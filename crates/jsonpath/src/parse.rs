//! Templates to nodes.
//!
//! The peer's parser has no grammar: it cuts text at the next bracket or quote and parses the piece
//! again as a template of its own. This one does the same, so that odd templates mean the same.

use serde_json::Value;

use crate::error::Error;
use crate::node::{End, Filter, Node, Operator, Slice, Test};
use crate::quote::unquote;

/// Filters in filters and quoted keys in unions in filters; nobody writes more than three.
const MAX_NESTING: usize = 16;

/// Parses a whole template.
pub(crate) fn template(text: &str) -> Result<Vec<Node>, Error> {
    Parser {
        text,
        position: 0,
        nesting: 0,
    }
    .template()
}

struct Parser<'text> {
    text: &'text str,
    position: usize,
    nesting: usize,
}

impl<'text> Parser<'text> {
    fn template(&mut self) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::new();
        loop {
            let rest = self.rest();
            let end = rest.find('{').unwrap_or(rest.len());
            if end > 0 {
                nodes.push(Node::Text(Value::from(&rest[..end])));
            }
            self.position += end;
            if self.next().is_none() {
                return Ok(nodes);
            }
            nodes.push(Node::List(self.action()?));
        }
    }

    /// A piece of an action, parsed as an action of its own.
    fn nested(&self, text: &str) -> Result<Vec<Node>, Error> {
        if self.nesting == MAX_NESTING {
            return Err(Error::NestedTooDeeply);
        }
        let text = format!("{{{text}}}");
        let mut parser = Parser {
            text: &text,
            position: 0,
            nesting: self.nesting + 1,
        };
        // A brace in the piece ends the action early; the rest must parse but does not count.
        match parser.template()?.into_iter().next() {
            Some(Node::List(nodes)) => Ok(nodes),
            _ => Err(Error::UnclosedAction),
        }
    }

    fn rest(&self) -> &'text str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += character.len_utf8();
        Some(character)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.position += prefix.len();
        }
        found
    }

    /// Everything up to the closing brace, which is consumed.
    fn action(&mut self) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::new();
        loop {
            if self.skip("}") {
                return Ok(nodes);
            }
            if self.skip("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if self.skip("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return Err(Error::MultipleRecursiveDescent);
                }
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(is_word_character) {
                    nodes.push(self.field());
                }
                continue;
            }
            match self.next() {
                None | Some('\n' | '\r') => return Err(Error::UnclosedAction),
                // The current object and the root are both where a path starts anyway.
                Some(' ' | '@' | '$') => {}
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => nodes.push(self.field()),
                Some(first @ ('+' | '-' | '0'..='9')) => {
                    self.position -= first.len_utf8();
                    nodes.push(self.number()?);
                }
                Some(first) if is_word_character(first) => {
                    self.position -= first.len_utf8();
                    nodes.push(self.word());
                }
                Some(other) => return Err(Error::UnrecognizedCharacter(other)),
            }
        }
    }

    /// A field up to the next character that ends it, unless a backslash stands before that.
    fn field(&mut self) -> Node {
        let start = self.position;
        while let Some(character) = self.peek() {
            if is_terminator(character) {
                break;
            }
            self.next();
            if character == '\\' {
                self.next();
            }
        }
        match &self.text[start..self.position] {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self) -> Node {
        let rest = self.rest();
        let word = &rest[..rest.find(is_terminator).unwrap_or(rest.len())];
        self.position += word.len();
        match word {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            "range" => Node::Range,
            "end" => Node::End,
            _ => Node::Unrecognized(word.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Node, Error> {
        let rest = self.rest();
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let digits = unsigned.find(|c: char| c != '.' && !c.is_ascii_digit());
        let sign_length = rest.len() - unsigned.len();
        let number = &rest[..sign_length + digits.unwrap_or(unsigned.len())];
        self.position += number.len();
        if let Ok(integer) = number.parse::<i64>() {
            return Ok(Node::Literal(Value::from(integer)));
        }
        match number.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Literal(Value::from(float))),
            _ => Err(Error::InvalidNumber(number.to_owned())),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Node, Error> {
        // One byte back: the opening quote is part of what is unquoted.
        let start = self.position - quote.len_utf8();
        loop {
            match self.next() {
                None | Some('\n') => return Err(Error::UnterminatedQuote),
                Some(character) if character == quote && !self.is_escaped() => break,
                Some(_) => {}
            }
        }
        let quoted = &self.text[start..self.position];
        let text = unquote(quoted).ok_or_else(|| Error::InvalidQuote(quoted.to_owned()))?;
        Ok(Node::Text(Value::from(text)))
    }

    /// Whether a backslash stands before the character just read, which is one byte long.
    fn is_escaped(&self) -> bool {
        let before = self.position.checked_sub(2);
        before.and_then(|index| self.text.as_bytes().get(index)) == Some(&b'\\')
    }

    /// What stands in brackets, up to the next closing one, be it quoted or not.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let rest = self.rest();
        let end = match rest.find([']', '\n']) {
            Some(end) if rest[end..].starts_with(']') => end,
            _ => return Err(Error::UnterminatedArray),
        };
        self.position += end + 1;
        let text = match &rest[..end] {
            "*" => ":",
            text => text,
        };
        if text.contains(',') {
            let parts = text
                .split(',')
                .map(|part| self.nested(&format!("[{}]", part.trim_matches(' '))));
            nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        if let Some(key) = quoted_key(text) {
            nodes.extend(self.nested(&format!(".{key}"))?);
            return Ok(());
        }
        nodes.push(Node::Array(slice(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<Node, Error> {
        let start = self.position;
        let end = self.filter_end()?;
        let text = &self.text[start..end];
        let filter = match split_comparison(text) {
            None => Filter {
                left: self.nested(text)?,
                test: Test::Exists,
            },
            Some((left, operator, right)) => {
                let left = self.nested(left)?;
                let right = self.nested(right)?;
                Filter {
                    left,
                    test: Test::Compare(operator, right),
                }
            }
        };
        Ok(Node::Filter(Box::new(filter)))
    }

    /// The position of the parenthesis that ends a filter: the first one outside of the first pair
    /// of quotes.
    fn filter_end(&mut self) -> Result<usize, Error> {
        let mut open_quote = None;
        let mut is_closed = false;
        loop {
            match self.next() {
                None | Some('\n') => return Err(Error::UnterminatedFilter),
                Some(quote @ ('"' | '\'')) => match open_quote {
                    None => open_quote = Some(quote),
                    Some(open) => is_closed |= open == quote && !self.is_escaped(),
                },
                Some(')') if open_quote.is_some() == is_closed => break,
                Some(_) => {}
            }
        }
        let end = self.position - 1;
        if self.next() == Some(']') {
            Ok(end)
        } else {
            Err(Error::UnclosedFilter)
        }
    }
}

/// `'key'` without quotes inside.
fn quoted_key(text: &str) -> Option<&str> {
    let key = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

/// Cuts at the first run of operator characters; something must stand on either side.
fn split_comparison(text: &str) -> Option<(&str, Operator, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let run = text[start..]
        .find(|c| !is_operator(c))
        .unwrap_or(text.len() - start);
    // A run that reaches the end gives its last character to the right side.
    let end = if start + run == text.len() {
        text.len() - 1
    } else {
        start + run
    };
    if end == start {
        return None;
    }
    let operator = match &text[start..end] {
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        ">=" => Operator::GreaterOrEqual,
        ">" => Operator::Greater,
        other => Operator::Unrecognized(other.to_owned()),
    };
    Some((&text[..start], operator, &text[end..]))
}

/// `start:end:step`, each optional.
fn slice(text: &str) -> Result<Slice, Error> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_bound = |part: &&str| {
        part.strip_prefix('-')
            .unwrap_or(part)
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(is_bound) {
        return Err(Error::InvalidIndex(text.to_owned()));
    }
    let bound = |index: usize| match parts.get(index) {
        None | Some(&"") => Ok(None),
        Some(part) => part
            .parse()
            .map(Some)
            .map_err(|_| Error::IndexNotANumber((*part).to_owned())),
    };
    let end = match bound(1)? {
        Some(end) => End::Before(end),
        None if parts.len() == 1 => End::AfterStart,
        None => End::Open,
    };
    Ok(Slice {
        start: bound(0)?,
        end,
        step: bound(2)?,
    })
}

fn is_terminator(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn is_word_character(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
