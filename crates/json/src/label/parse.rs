//! The text notation of label selectors.

use std::collections::BTreeSet;

use super::{Operator, Requirement, SelectorError, invalid};
use crate::name;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'text> {
    End,
    Comma,
    OpenParenthesis,
    ClosedParenthesis,
    Not,
    /// One of the binary operators; `in` and `notin` are words where a word is expected.
    Operator(Operator, &'text str),
    Word(&'text str),
}

impl<'text> Token<'text> {
    /// What stands in the text.
    fn literal(self) -> &'text str {
        match self {
            Self::End => "",
            Self::Comma => ",",
            Self::OpenParenthesis => "(",
            Self::ClosedParenthesis => ")",
            Self::Not => "!",
            Self::Operator(_, text) | Self::Word(text) => text,
        }
    }

    /// The word, where keys and values are expected.
    fn as_word(self) -> Option<&'text str> {
        match self {
            Self::Word(text) | Self::Operator(Operator::In | Operator::NotIn, text) => Some(text),
            _ => None,
        }
    }
}

fn error<T>(message: String) -> Result<T, SelectorError> {
    Err(SelectorError(message))
}

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    loop {
        let token = parser.peek();
        if token == Token::End {
            return Ok(requirements);
        }
        if token.as_word().is_none() && token != Token::Not {
            let found = token.literal();
            return error(format!(
                "found '{found}', expected: !, identifier, or 'end of string'"
            ));
        }
        let requirement = parser
            .requirement()
            .map_err(|problem| SelectorError(format!("unable to parse requirement: {problem}")))?;
        requirements.push(requirement);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => {
                let token = parser.peek();
                if token.as_word().is_none() && token != Token::Not {
                    let found = token.literal();
                    return error(format!("found '{found}', expected: identifier after ','"));
                }
            }
            token => {
                let found = token.literal();
                return error(format!("found '{found}', expected: ',' or 'end of string'"));
            }
        }
    }
}

struct Parser<'text> {
    rest: &'text str,
}

impl<'text> Parser<'text> {
    fn peek(&self) -> Token<'text> {
        scan(self.rest).0
    }

    fn next(&mut self) -> Token<'text> {
        let (token, rest) = scan(self.rest);
        self.rest = rest;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next();
        let is_negated = token == Token::Not;
        if is_negated {
            token = self.next();
        }
        let Some(key) = token.as_word() else {
            return error(format!("found '{}', expected: identifier", token.literal()));
        };
        let problems = name::label_key_problems(key);
        if !problems.is_empty() {
            return error(invalid("<nil>", key, &problems.join("; ")));
        }
        if is_negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.next() {
            Token::Operator(operator, _) => operator,
            token => {
                let found = token.literal();
                return error(format!(
                    "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
                ));
            }
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?]),
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement::new(key, operator, values)
    }

    fn exact_value(&mut self) -> Result<&'text str, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok("");
        }
        let token = self.next();
        match token.as_word() {
            Some(value) => Ok(value),
            None => error(format!("found '{}', expected: identifier", token.literal())),
        }
    }

    /// `(a,b,,c)`; between two commas stands the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'text str>, SelectorError> {
        let token = self.next();
        if token != Token::OpenParenthesis {
            return error(format!("found '{}' expected: '('", token.literal()));
        }
        let token = self.peek();
        if token == Token::ClosedParenthesis {
            self.next();
            return Ok(BTreeSet::from([""]));
        }
        if token.as_word().is_none() && token != Token::Comma {
            let found = token.literal();
            return error(format!("found '{found}', expected: ',', ')' or identifier"));
        }
        let mut values = BTreeSet::new();
        loop {
            let token = self.next();
            if let Some(value) = token.as_word() {
                values.insert(value);
                match self.peek() {
                    Token::Comma => continue,
                    Token::ClosedParenthesis => break,
                    token => {
                        let found = token.literal();
                        return error(format!("found '{found}', expected: ',' or ')'"));
                    }
                }
            }
            if token != Token::Comma {
                let found = token.literal();
                return error(format!("found '{found}', expected: ',', or identifier"));
            }
            let next = self.peek();
            if values.is_empty() || matches!(next, Token::ClosedParenthesis | Token::Comma) {
                values.insert("");
            }
            if next == Token::ClosedParenthesis {
                break;
            }
        }
        self.next();
        Ok(values)
    }
}

/// The first token of a text, and what follows it.
fn scan(text: &str) -> (Token<'_>, &str) {
    const SYMBOLS: [(&str, Token<'static>); 9] = [
        // Longer ones first.
        ("==", Token::Operator(Operator::DoubleEquals, "==")),
        ("!=", Token::Operator(Operator::NotEquals, "!=")),
        ("=", Token::Operator(Operator::Equals, "=")),
        (">", Token::Operator(Operator::GreaterThan, ">")),
        ("<", Token::Operator(Operator::LessThan, "<")),
        ("!", Token::Not),
        ("(", Token::OpenParenthesis),
        (")", Token::ClosedParenthesis),
        (",", Token::Comma),
    ];
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() || text.starts_with('\0') {
        return (Token::End, "");
    }
    for (symbol, token) in SYMBOLS {
        if let Some(rest) = text.strip_prefix(symbol) {
            return (token, rest);
        }
    }
    let is_end = |c: char| "=!(),>< \t\r\n\0".contains(c);
    let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    let token = match word {
        "in" => Token::Operator(Operator::In, word),
        "notin" => Token::Operator(Operator::NotIn, word),
        _ => Token::Word(word),
    };
    (token, rest)
}
