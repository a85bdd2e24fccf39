//! Parsed templates, and how errors quote them.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use bellwether_go::quote;
use bellwether_go::value::Text;

use crate::function::Function;

/// Where trees come from: the name and text of what was parsed.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// `name:line:column` of a position; columns count bytes from 0, as in Go.
    pub(crate) fn location(&self, pos: usize) -> Location {
        let before = &self.text.as_bytes()[..pos.min(self.text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        let column = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => before.len() - newline - 1,
            None => before.len(),
        };
        Location {
            name: self.name.clone(),
            line,
            column: Some(column),
        }
    }
}

/// A place in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The name of the text that was parsed.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 0; parse errors have none.
    pub column: Option<usize>,
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.name, self.line)?;
        match self.column {
            Some(column) => write!(formatter, ":{column}"),
            None => Ok(()),
        }
    }
}

/// A template: its name, and what it is made of.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) name: String,
    pub(crate) source: Arc<Source>,
    pub(crate) nodes: Vec<Node>,
}

impl Tree {
    /// Whether it writes nothing but blanks.
    pub(crate) fn is_empty(&self) -> bool {
        let is_blank = |node: &Node| match node {
            Node::Text { text, .. } => text.bytes().all(|byte| b"\t\n\x0b\x0c\r ".contains(&byte)),
            _ => false,
        };
        self.nodes.iter().all(is_blank)
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    Text {
        text: Box<str>,
    },
    Action {
        pos: usize,
        pipe: Pipe,
    },
    If(Branch),
    With(Branch),
    Range(Branch),
    Template {
        pos: usize,
        name: Box<str>,
        pipe: Option<Pipe>,
    },
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: usize,
    pub(crate) is_assign: bool,
    pub(crate) declared: Vec<Box<str>>,
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: usize,
    pub(crate) args: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) enum Expr {
    Field {
        pos: usize,
        names: Vec<Text>,
    },
    Variable {
        pos: usize,
        name: Box<str>,
        fields: Vec<Text>,
    },
    Function {
        pos: usize,
        function: Arc<Function>,
    },
    Chain {
        pos: usize,
        base: Box<Expr>,
        fields: Vec<Text>,
    },
    Dot(usize),
    Nil(usize),
    Bool(usize, bool),
    Number(Box<Number>),
    String {
        pos: usize,
        quoted: Box<str>,
        text: Text,
    },
    Pipe(Box<Pipe>),
}

/// A number and everything that it can be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    pub(crate) pos: usize,
    pub(crate) text: Box<str>,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

impl Expr {
    pub(crate) fn pos(&self) -> usize {
        match self {
            Self::Field { pos, .. }
            | Self::Variable { pos, .. }
            | Self::Function { pos, .. }
            | Self::Chain { pos, .. }
            | Self::Dot(pos)
            | Self::Nil(pos)
            | Self::Bool(pos, _)
            | Self::String { pos, .. } => *pos,
            Self::Number(number) => number.pos,
            Self::Pipe(pipe) => pipe.pos,
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { names, .. } => write_fields(formatter, names),
            Self::Variable { name, fields, .. } => {
                formatter.write_str(name)?;
                write_fields(formatter, fields)
            }
            Self::Function { function, .. } => formatter.write_str(function.name()),
            Self::Chain { base, fields, .. } => {
                match &**base {
                    Self::Pipe(pipe) => write!(formatter, "({pipe})")?,
                    other => write!(formatter, "{other}")?,
                }
                write_fields(formatter, fields)
            }
            Self::Dot(_) => formatter.write_char('.'),
            Self::Nil(_) => formatter.write_str("nil"),
            Self::Bool(_, value) => write!(formatter, "{value}"),
            Self::Number(number) => formatter.write_str(&number.text),
            Self::String { quoted, .. } => formatter.write_str(quoted),
            Self::Pipe(pipe) => write!(formatter, "{pipe}"),
        }
    }
}

fn write_fields(formatter: &mut fmt::Formatter<'_>, names: &[Text]) -> fmt::Result {
    names
        .iter()
        .try_for_each(|name| write!(formatter, ".{name}"))
}

impl fmt::Display for Pipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.declared.is_empty() {
            formatter.write_str(&self.declared.join(", "))?;
            formatter.write_str(if self.is_assign { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" | ")?;
            }
            write!(formatter, "{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arg) in self.args.iter().enumerate() {
            if index > 0 {
                formatter.write_char(' ')?;
            }
            match arg {
                Expr::Pipe(pipe) => write!(formatter, "({pipe})")?,
                other => write!(formatter, "{other}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text } => formatter.write_str(text),
            Self::Action { pipe, .. } => write!(formatter, "{{{{{pipe}}}}}"),
            Self::If(branch) => branch.write(formatter, "if"),
            Self::With(branch) => branch.write(formatter, "with"),
            Self::Range(branch) => branch.write(formatter, "range"),
            Self::Template { name, pipe, .. } => {
                write!(formatter, "{{{{template {}", quote::quote(name))?;
                if let Some(pipe) = pipe {
                    write!(formatter, " {pipe}")?;
                }
                formatter.write_str("}}")
            }
            Self::Break => formatter.write_str("{{break}}"),
            Self::Continue => formatter.write_str("{{continue}}"),
        }
    }
}

impl Branch {
    fn write(&self, formatter: &mut fmt::Formatter<'_>, keyword: &str) -> fmt::Result {
        write!(formatter, "{{{{{keyword} {}}}}}", self.pipe)?;
        write_all(formatter, &self.body)?;
        if let Some(otherwise) = &self.otherwise {
            formatter.write_str("{{else}}")?;
            write_all(formatter, otherwise)?;
        }
        formatter.write_str("{{end}}")
    }
}

fn write_all(formatter: &mut fmt::Formatter<'_>, nodes: &[Node]) -> fmt::Result {
    nodes
        .iter()
        .try_for_each(|node| write!(formatter, "{node}"))
}
