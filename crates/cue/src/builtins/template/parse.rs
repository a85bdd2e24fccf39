//! Turns the pieces of a template into a tree.

use std::collections::HashMap;

use super::scan::{Piece, Word, pieces};
use crate::number::Number;
use crate::value::Value;

/// Nested actions and parentheses beyond this are refused; parsing and execution recurse.
const DEPTH_LIMIT: usize = 100;

/// A template with the templates it defines.
#[derive(Debug, Default)]
pub(super) struct Template {
    pub(super) body: Vec<Node>,
    pub(super) defined: HashMap<String, Vec<Node>>,
}

/// A node of a template.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Text(String),
    Action(Pipeline),
    If {
        condition: Pipeline,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Range {
        source: Pipeline,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    With {
        value: Pipeline,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Call {
        name: String,
        argument: Option<Pipeline>,
    },
    Break,
    Continue,
}

/// Commands whose results feed each other, and the variables that take the last result.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipeline {
    pub(super) variables: Vec<String>,
    /// Whether the variables are new.
    pub(super) declares: bool,
    pub(super) commands: Vec<Command>,
}

/// A command: an operand alone, or a function and its arguments.
pub(super) type Command = Vec<Operand>;

/// An operand.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Field(Vec<String>),
    Variable(String, Vec<String>),
    Function(String),
    Constant(Value),
    Nested(Box<Pipeline>, Vec<String>),
}

/// Parses a template.
pub(super) fn parse(source: &str) -> Result<Template, String> {
    let pieces = pieces(source).map_err(|message| format!("template: :1: {message}"))?;
    let mut parser = Parser {
        pieces,
        position: 0,
        depth: 0,
        defined: HashMap::new(),
    };
    let fail = |message: String| format!("template: :1: {message}");
    let (body, end) = parser.list().map_err(fail)?;
    match end {
        Stop::Source => Ok(Template {
            body,
            defined: parser.defined,
        }),
        Stop::Else(_) => Err(fail("unexpected {{else}}".to_owned())),
        Stop::End => Err(fail("unexpected {{end}}".to_owned())),
    }
}

/// What ended a list of nodes.
enum Stop {
    Source,
    End,
    /// `else`, with the words of a following `if` or `with`.
    Else(Vec<Word>),
}

struct Parser {
    pieces: Vec<Piece>,
    position: usize,
    depth: usize,
    defined: HashMap<String, Vec<Node>>,
}

impl Parser {
    fn list(&mut self) -> Result<(Vec<Node>, Stop), String> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err("actions nest too deeply".to_owned());
        }
        let mut nodes = Vec::new();
        let end = loop {
            let Some(piece) = self.pieces.get(self.position).cloned() else {
                break Stop::Source;
            };
            self.position += 1;
            let words = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(words) => words,
            };
            match words.first() {
                Some(Word::Name(name)) if name == "end" => break Stop::End,
                Some(Word::Name(name)) if name == "else" => break Stop::Else(words[1..].to_vec()),
                Some(Word::Name(name)) => {
                    let name = name.clone();
                    nodes.extend(self.keyword(&name, &words)?);
                }
                Some(_) => nodes.push(Node::Action(pipeline(&words)?)),
                None => return Err("missing value for command".to_owned()),
            }
        };
        self.depth -= 1;
        Ok((nodes, end))
    }

    fn keyword(&mut self, name: &str, words: &[Word]) -> Result<Option<Node>, String> {
        Ok(Some(match name {
            "if" => {
                let condition = pipeline(&words[1..])?;
                let (then, otherwise) = self.branches("if")?;
                Node::If {
                    condition,
                    then,
                    otherwise,
                }
            }
            "range" => {
                let source = pipeline(&words[1..])?;
                let (body, otherwise) = self.branches("range")?;
                Node::Range {
                    source,
                    body,
                    otherwise,
                }
            }
            "with" => {
                let value = pipeline(&words[1..])?;
                let (body, otherwise) = self.branches("with")?;
                Node::With {
                    value,
                    body,
                    otherwise,
                }
            }
            "define" => {
                let (name, _) = name_and_argument(&words[1..])?;
                let body = self.closed_list()?;
                self.defined.insert(name, body);
                return Ok(None);
            }
            "block" => {
                let (name, argument) = name_and_argument(&words[1..])?;
                let body = self.closed_list()?;
                self.defined.entry(name.clone()).or_insert(body);
                Node::Call { name, argument }
            }
            "template" => {
                let (name, argument) = name_and_argument(&words[1..])?;
                Node::Call { name, argument }
            }
            "break" => Node::Break,
            "continue" => Node::Continue,
            _ => Node::Action(pipeline(words)?),
        }))
    }

    fn closed_list(&mut self) -> Result<Vec<Node>, String> {
        match self.list()? {
            (nodes, Stop::End) => Ok(nodes),
            (_, Stop::Else(_)) => Err("unexpected {{else}}".to_owned()),
            (_, Stop::Source) => Err("unexpected EOF".to_owned()),
        }
    }

    /// The list up to `else` or `end`, and the list after `else`.
    fn branches(&mut self, kind: &str) -> Result<(Vec<Node>, Vec<Node>), String> {
        let (then, end) = self.list()?;
        match end {
            Stop::Source => Err("unexpected EOF".to_owned()),
            Stop::End => Ok((then, Vec::new())),
            Stop::Else(words) => match words.first() {
                None => Ok((then, self.closed_list()?)),
                // `else if` shares the `end` of the whole.
                Some(Word::Name(name)) if name == kind && kind != "range" => {
                    let nested = self.keyword(kind, &words)?;
                    Ok((then, nested.into_iter().collect()))
                }
                Some(_) => Err("unexpected words after {{else".to_owned()),
            },
        }
    }
}

fn name_and_argument(words: &[Word]) -> Result<(String, Option<Pipeline>), String> {
    match words.split_first() {
        Some((Word::Text(name), [])) => Ok((name.clone(), None)),
        Some((Word::Text(name), rest)) => Ok((name.clone(), Some(pipeline(rest)?))),
        _ => Err("expected a quoted template name".to_owned()),
    }
}

fn pipeline(words: &[Word]) -> Result<Pipeline, String> {
    nested_pipeline(words, 0)
}

fn nested_pipeline(words: &[Word], depth: usize) -> Result<Pipeline, String> {
    if depth > DEPTH_LIMIT {
        return Err("parentheses nest too deeply".to_owned());
    }
    let mut result = Pipeline::default();
    let mut words = words;
    let assignment = words
        .iter()
        .position(|word| matches!(word, Word::Declare | Word::Assign));
    if let Some(position) = assignment {
        result.declares = words[position] == Word::Declare;
        for word in &words[..position] {
            match word {
                Word::Variable(name, path) if path.is_empty() => {
                    result.variables.push(name.clone());
                }
                Word::Comma => {}
                _ => return Err("only variables can be assigned".to_owned()),
            }
        }
        words = &words[position + 1..];
    }
    let mut level = 0usize;
    let mut start = 0;
    for (position, word) in words.iter().enumerate() {
        match word {
            Word::Open => level += 1,
            Word::Close => level = level.saturating_sub(1),
            Word::Pipe if level == 0 => {
                result
                    .commands
                    .push(command(&words[start..position], depth)?);
                start = position + 1;
            }
            _ => {}
        }
    }
    result.commands.push(command(&words[start..], depth)?);
    Ok(result)
}

fn command(words: &[Word], depth: usize) -> Result<Command, String> {
    let mut operands = Vec::new();
    let mut position = 0;
    while position < words.len() {
        let operand = match &words[position] {
            Word::Field(path) => Operand::Field(path.clone()),
            Word::Variable(name, path) => Operand::Variable(name.clone(), path.clone()),
            Word::Name(name) => match name.as_str() {
                "true" => Operand::Constant(Value::Bool(true)),
                "false" => Operand::Constant(Value::Bool(false)),
                "nil" => Operand::Constant(Value::Null),
                _ => Operand::Function(name.clone()),
            },
            Word::Number(text) => {
                let number = Number::parse_literal(text);
                Operand::Constant(Value::Number(number.map_err(|error| error.to_string())?))
            }
            Word::Text(text) => Operand::Constant(Value::string(text.as_str())),
            Word::Open => {
                let length = closing(&words[position..])?;
                let inner = &words[position + 1..position + length];
                position += length;
                let path = match words.get(position + 1) {
                    Some(Word::Chain(path)) => {
                        position += 1;
                        path.clone()
                    }
                    _ => Vec::new(),
                };
                Operand::Nested(Box::new(nested_pipeline(inner, depth + 1)?), path)
            }
            other => return Err(format!("unexpected {other:?} in command")),
        };
        operands.push(operand);
        position += 1;
    }
    if operands.is_empty() {
        Err("missing value for command".to_owned())
    } else {
        Ok(operands)
    }
}

fn closing(words: &[Word]) -> Result<usize, String> {
    let mut level = 0usize;
    for (position, word) in words.iter().enumerate() {
        match word {
            Word::Open => level += 1,
            Word::Close => {
                level -= 1;
                if level == 0 {
                    return Ok(position);
                }
            }
            _ => {}
        }
    }
    Err("unclosed left paren".to_owned())
}
