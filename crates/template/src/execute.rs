//! Executes trees over data, by the rules of `text/template`.

mod argument;
mod evaluate;
mod range;

pub(crate) use evaluate::zero;

use std::collections::BTreeMap;
use std::fmt;

use bellwether_go::print;
use bellwether_go::quote;
use bellwether_go::regexp::Regex;
use bellwether_go::value::{Map, Meter, Value};

use crate::ast::{Branch, Command, Expr, Node, Pipe, Tree};
use crate::budget::{BYTES_EXCEEDED, Budget, STEPS_EXCEEDED};
use crate::error::{Phase, TemplateError};
use crate::facts::{Query, World};
use crate::set::Templates;
use crate::stack::deeper;

/// What outlives the execution of one template.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) budget: Budget,
    pub(crate) needs: Vec<Query>,
    pub(crate) entered: BTreeMap<String, usize>,
    pub(crate) regexes: BTreeMap<String, Regex>,
    depth: usize,
    /// Maps into which others were put: they may hold themselves.
    changed: Vec<Map>,
}

impl State {
    pub(crate) const fn new(budget: Budget) -> Self {
        Self {
            budget,
            needs: Vec::new(),
            entered: BTreeMap::new(),
            regexes: BTreeMap::new(),
            depth: 0,
            changed: Vec::new(),
        }
    }

    pub(crate) fn steps(&mut self, count: usize) -> Result<(), String> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.budget.steps = self.budget.steps.checked_sub(count).ok_or_else(|| {
            self.budget.steps = 0;
            STEPS_EXCEEDED.to_owned()
        })?;
        Ok(())
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<(), String> {
        if self.budget.bytes(count) {
            Ok(())
        } else {
            Err(BYTES_EXCEEDED.to_owned())
        }
    }

    /// Remembers that a map may hold itself from now on.
    pub(crate) fn remember(&mut self, map: &Map, value: &Value) {
        let may_hold = matches!(value, Value::Map(_) | Value::List(_) | Value::Object(_));
        if may_hold && !self.changed.last().is_some_and(|last| last.is_same(map)) {
            self.changed.push(map.clone());
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for map in std::mem::take(&mut self.changed) {
            map.clear();
        }
    }
}

impl Meter for State {
    fn charge(&mut self, units: usize) -> Result<(), String> {
        self.bytes(units)
    }
}

/// A value, and whether it came out of a container of `interface {}`, which errors show.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    pub(crate) is_boxed: bool,
}

impl Cell {
    pub(crate) const fn new(value: Value) -> Self {
        Self {
            value,
            is_boxed: false,
        }
    }

    /// The name of its static type.
    fn type_name(&self) -> String {
        if self.is_boxed {
            "interface {}".to_owned()
        } else {
            self.value.type_of().to_string()
        }
    }

    /// What is in the interface.
    fn unboxed(self) -> Self {
        Self::new(match self.value {
            Value::Nil => Value::Invalid,
            value => value,
        })
    }
}

/// The part of a tree that is executed, for errors.
#[derive(Clone, Copy)]
enum At<'t> {
    Nothing,
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Expr(&'t Expr),
}

impl At<'_> {
    fn pos(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Node(node) => match node {
                Node::Action { pos, .. } | Node::Template { pos, .. } => *pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pipe.pos,
                Node::Text { .. } | Node::Break | Node::Continue => 0,
            },
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Expr(expr) => expr.pos(),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Node(node) => write!(formatter, "{node}"),
            Self::Pipe(pipe) => write!(formatter, "{pipe}"),
            Self::Command(command) => write!(formatter, "{command}"),
            Self::Expr(expr) => write!(formatter, "{expr}"),
        }
    }
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

type Done<T> = Result<T, Box<TemplateError>>;

struct Variable<'t> {
    name: &'t str,
    cell: Cell,
}

/// One execution of a template.
pub(crate) struct Run<'t, 's> {
    templates: &'t Templates<'t>,
    world: &'t World<'t>,
    state: &'s mut State,
    out: Vec<u8>,
    variables: Vec<Variable<'t>>,
    tree: Option<&'t Tree>,
    at: At<'t>,
}

impl<'t, 's> Run<'t, 's> {
    pub(crate) fn new(
        templates: &'t Templates<'t>,
        world: &'t World<'t>,
        state: &'s mut State,
    ) -> Self {
        Self {
            templates,
            world,
            state,
            out: Vec::new(),
            variables: Vec::new(),
            tree: None,
            at: At::Nothing,
        }
    }

    /// Executes a tree and returns what it wrote.
    pub(crate) fn execute(mut self, tree: &'t Tree, dot: &Value) -> Result<Vec<u8>, TemplateError> {
        let dot = Cell::new(dot.clone()).unboxed();
        match deeper(|| self.tree(tree, &dot)) {
            Ok(()) => Ok(self.out),
            Err(error) => Err(*error),
        }
    }

    fn error<T>(&self, message: impl Into<String>) -> Done<T> {
        self.fail(Phase::Execute, message.into())
    }

    fn fail<T>(&self, phase: Phase, message: String) -> Done<T> {
        let Some(tree) = self.tree else {
            return Err(Box::new(TemplateError::no_template("")));
        };
        let location = tree.source.location(self.at.pos());
        let name = quote::quote(&tree.name);
        let context = format!("executing {name} at <{}>", self.at);
        Err(Box::new(TemplateError::execute(
            phase, location, context, message,
        )))
    }

    fn exhausted<T>(&self, message: String) -> Done<T> {
        self.fail(Phase::Budget, message)
    }

    fn step(&mut self) -> Done<()> {
        if self.state.budget.step() {
            Ok(())
        } else {
            self.exhausted(STEPS_EXCEEDED.to_owned())
        }
    }

    /// Executes a tree with variables of its own.
    fn tree(&mut self, tree: &'t Tree, dot: &Cell) -> Done<()> {
        let variables = std::mem::take(&mut self.variables);
        let (outer, at) = (self.tree.replace(tree), self.at);
        if self.state.depth >= self.state.budget.depth {
            let limit = self.state.budget.depth;
            self.tree = outer.or(self.tree);
            return self.fail(
                Phase::Budget,
                format!("exceeded maximum template depth ({limit})"),
            );
        }
        self.variables.push(Variable {
            name: "$",
            cell: dot.clone(),
        });
        self.state.depth += 1;
        let done = self.nodes(&tree.nodes, dot);
        self.state.depth -= 1;
        done?;
        self.variables = variables;
        (self.tree, self.at) = (outer, at);
        Ok(())
    }

    fn nodes(&mut self, nodes: &'t [Node], dot: &Cell) -> Done<Flow> {
        for node in nodes {
            let flow = self.node(node, dot)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, node: &'t Node, dot: &Cell) -> Done<Flow> {
        self.step()?;
        match node {
            Node::Text { text } => {
                if let Err(message) = self.state.bytes(text.len()) {
                    return self.exhausted(message);
                }
                self.out.extend_from_slice(text.as_bytes());
            }
            Node::Action { pipe, .. } => {
                self.at = At::Node(node);
                let cell = self.pipeline(pipe, dot)?;
                if pipe.declared.is_empty() {
                    self.at = At::Node(node);
                    self.print(&cell.value)?;
                }
            }
            Node::If(branch) => {
                self.at = At::Node(node);
                return deeper(|| self.branch(branch, dot, false));
            }
            Node::With(branch) => {
                self.at = At::Node(node);
                return deeper(|| self.branch(branch, dot, true));
            }
            Node::Range(branch) => {
                self.at = At::Node(node);
                return deeper(|| self.range(branch, dot));
            }
            Node::Template { name, pipe, .. } => {
                self.at = At::Node(node);
                let Some(tree) = self.templates.get(name) else {
                    let name = quote::quote(name);
                    return self.error(format!("template {name} not defined"));
                };
                let cell = match pipe {
                    Some(pipe) => self.pipeline(pipe, dot)?,
                    None => Cell::new(Value::Invalid),
                };
                self.at = At::Node(node);
                deeper(|| self.tree(tree, &cell))?;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value) -> Done<()> {
        let printed = match value {
            Value::Invalid => {
                self.out.extend_from_slice(b"<no value>");
                self.state.bytes(10)
            }
            value => print::append_printable(&mut self.out, value, self.state),
        };
        match printed {
            Ok(()) => Ok(()),
            Err(message) => self.exhausted(message),
        }
    }

    fn branch(&mut self, branch: &'t Branch, dot: &Cell, is_with: bool) -> Done<Flow> {
        let mark = self.variables.len();
        let cell = self.pipeline(&branch.pipe, dot)?;
        let flow = if cell.value.is_true() {
            self.nodes(&branch.body, if is_with { &cell } else { dot })
        } else {
            match &branch.otherwise {
                Some(nodes) => self.nodes(nodes, dot),
                None => Ok(Flow::Next),
            }
        };
        self.variables.truncate(mark);
        flow
    }

    fn assign(&mut self, name: &str, cell: Cell) -> Done<()> {
        let found = self.variables.iter_mut().rev().find(|v| v.name == name);
        match found {
            Some(variable) => {
                variable.cell = cell;
                Ok(())
            }
            None => self.error(format!("undefined variable: {name}")),
        }
    }
}
