//! Runs a parsed template over data.

use super::function;
use super::parse::{Command, Node, Operand, Pipeline, Template};
use super::print;
use crate::value::Value;

/// Templates that call each other deeper than this are refused.
const CALL_LIMIT: usize = 100;

/// Writes the template with `data` as its dot.
pub(super) fn execute(template: &Template, data: &Value, limit: usize) -> Result<String, String> {
    let mut run = Run {
        template,
        output: String::new(),
        limit,
        variables: vec![(String::new(), Item::Value(data.clone()))],
        calls: 0,
    };
    run.list(&template.body, &Item::Value(data.clone()))
        .map_err(|message| format!("template: :1: {message}"))?;
    Ok(run.output)
}

/// A value during execution; a missing field is no value at all.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Value(Value),
    Missing,
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Run<'a> {
    template: &'a Template,
    output: String,
    limit: usize,
    variables: Vec<(String, Item)>,
    calls: usize,
}

impl Run<'_> {
    fn write(&mut self, text: &str) -> Result<(), String> {
        self.output.push_str(text);
        if self.output.len() > self.limit {
            return Err("evaluation limit exceeded: template output".to_owned());
        }
        Ok(())
    }

    fn list(&mut self, nodes: &[Node], dot: &Item) -> Result<Flow, String> {
        for node in nodes {
            let flow = self.node(node, dot)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a list in a scope of its own.
    fn scoped(&mut self, nodes: &[Node], dot: &Item) -> Result<Flow, String> {
        let mark = self.variables.len();
        let flow = self.list(nodes, dot);
        self.variables.truncate(mark);
        flow
    }

    fn node(&mut self, node: &Node, dot: &Item) -> Result<Flow, String> {
        match node {
            Node::Text(text) => self.write(text)?,
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    let text = print::item(&value);
                    self.write(&text)?;
                }
            }
            Node::If {
                condition,
                then,
                otherwise,
            } => {
                let mark = self.variables.len();
                let value = self.pipeline(condition, dot)?;
                let branch = if is_true(&value) { then } else { otherwise };
                let flow = self.scoped(branch, dot);
                self.variables.truncate(mark);
                return flow;
            }
            Node::With {
                value,
                body,
                otherwise,
            } => {
                let mark = self.variables.len();
                let value = self.pipeline(value, dot)?;
                let flow = if is_true(&value) {
                    self.scoped(body, &value)
                } else {
                    self.scoped(otherwise, dot)
                };
                self.variables.truncate(mark);
                return flow;
            }
            Node::Range {
                source,
                body,
                otherwise,
            } => {
                return self.range(source, body, otherwise, dot);
            }
            Node::Call { name, argument } => self.call(name, argument.as_ref(), dot)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn call(&mut self, name: &str, argument: Option<&Pipeline>, dot: &Item) -> Result<(), String> {
        let value = match argument {
            Some(pipeline) => self.pipeline(pipeline, dot)?,
            None => Item::Missing,
        };
        let template = self.template;
        let Some(body) = template.defined.get(name) else {
            return Err(format!("template {name:?} not defined"));
        };
        self.calls += 1;
        if self.calls > CALL_LIMIT {
            return Err("exceeded maximum template depth".to_owned());
        }
        let outer = std::mem::replace(&mut self.variables, vec![(String::new(), value.clone())]);
        self.list(body, &value)?;
        self.variables = outer;
        self.calls -= 1;
        Ok(())
    }

    fn range(
        &mut self,
        source: &Pipeline,
        body: &[Node],
        otherwise: &[Node],
        dot: &Item,
    ) -> Result<Flow, String> {
        let mark = self.variables.len();
        let undeclared = Pipeline {
            variables: Vec::new(),
            ..source.clone()
        };
        let entries = entries(&self.pipeline(&undeclared, dot)?)?;
        if entries.is_empty() {
            let flow = self.scoped(otherwise, dot);
            self.variables.truncate(mark);
            return flow;
        }
        for (key, element) in entries {
            self.variables.truncate(mark);
            let values = match source.variables.as_slice() {
                [_] => vec![element.clone()],
                [_, _] => vec![key, element.clone()],
                _ => Vec::new(),
            };
            for (name, value) in source.variables.iter().zip(values) {
                self.bind(name, Item::Value(value), source.declares)?;
            }
            if self.scoped(body, &Item::Value(element))? == Flow::Break {
                break;
            }
        }
        self.variables.truncate(mark);
        Ok(Flow::Next)
    }

    fn bind(&mut self, name: &str, value: Item, declares: bool) -> Result<(), String> {
        if declares {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        match self
            .variables
            .iter_mut()
            .rev()
            .find(|(known, _)| known == name)
        {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => Err(format!("undefined variable \"${name}\"")),
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Item) -> Result<Item, String> {
        let mut piped: Option<Item> = None;
        for command in &pipeline.commands {
            piped = Some(self.command(command, dot, piped)?);
        }
        let value = piped.unwrap_or(Item::Missing);
        for name in &pipeline.variables {
            self.bind(name, value.clone(), pipeline.declares)?;
        }
        Ok(value)
    }

    fn command(
        &mut self,
        command: &Command,
        dot: &Item,
        piped: Option<Item>,
    ) -> Result<Item, String> {
        let Some((first, rest)) = command.split_first() else {
            return Err("missing value for command".to_owned());
        };
        let Operand::Function(name) = first else {
            if !rest.is_empty() || piped.is_some() {
                return Err("can't give argument to non-function".to_owned());
            }
            return self.operand(first, dot);
        };
        // `and` and `or` stop at the first argument that decides.
        if matches!(name.as_str(), "and" | "or") {
            return self.logic(name == "and", rest, dot, piped);
        }
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for operand in rest {
            arguments.push(self.operand(operand, dot)?);
        }
        arguments.extend(piped);
        function::call(name, &arguments)
    }

    fn logic(
        &mut self,
        all: bool,
        operands: &[Operand],
        dot: &Item,
        piped: Option<Item>,
    ) -> Result<Item, String> {
        let mut last = None;
        for operand in operands {
            let value = self.operand(operand, dot)?;
            if is_true(&value) != all {
                return Ok(value);
            }
            last = Some(value);
        }
        let name = if all { "and" } else { "or" };
        piped
            .or(last)
            .ok_or_else(|| format!("wrong number of args for {name}: want at least 1 got 0"))
    }

    fn operand(&mut self, operand: &Operand, dot: &Item) -> Result<Item, String> {
        match operand {
            Operand::Field(path) => select(dot.clone(), path),
            Operand::Variable(name, path) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                match found {
                    Some((_, value)) => select(value.clone(), path),
                    None => Err(format!("undefined variable \"${name}\"")),
                }
            }
            Operand::Function(name) => function::call(name, &[]),
            Operand::Constant(value) => Ok(Item::Value(value.clone())),
            Operand::Nested(pipeline, path) => {
                let value = self.pipeline(pipeline, dot)?;
                select(value, path)
            }
        }
    }
}

/// Follows field names; a missing field is no value, a field of a non-struct an error.
fn select(item: Item, path: &[String]) -> Result<Item, String> {
    let mut current = item;
    for name in path {
        current = match &current {
            Item::Value(value @ Value::Struct(_)) => match value.field(name) {
                Some(field) => Item::Value(field.clone()),
                None => Item::Missing,
            },
            Item::Value(Value::Null) | Item::Missing => {
                return Err(format!("nil data; no entry for key {name:?}"));
            }
            Item::Value(other) => {
                return Err(format!(
                    "can't evaluate field {name} in type {}",
                    other.kind()
                ));
            }
        };
    }
    Ok(current)
}

/// Keys and elements of what can be ranged over; structs in the order of their labels.
fn entries(item: &Item) -> Result<Vec<(Value, Value)>, String> {
    match item {
        Item::Missing | Item::Value(Value::Null) => Ok(Vec::new()),
        Item::Value(Value::List(items)) => {
            let pairs = items.iter().enumerate();
            Ok(pairs
                .map(|(index, item)| (Value::Number(index.into()), item.clone()))
                .collect())
        }
        Item::Value(Value::Struct(fields)) => {
            let mut pairs: Vec<(Value, Value)> = Vec::new();
            let mut sorted = fields.to_vec();
            sorted.sort_by(|left, right| left.0.cmp(&right.0));
            pairs.extend(
                sorted
                    .into_iter()
                    .map(|(label, field)| (Value::String(label), field)),
            );
            Ok(pairs)
        }
        Item::Value(other) => Err(format!("range can't iterate over {}", other.kind())),
    }
}

/// Truth as templates see it: neither empty, nor zero, nor missing.
pub(super) fn is_true(item: &Item) -> bool {
    match item {
        Item::Missing => false,
        Item::Value(value) => match value {
            Value::Null | Value::Opaque(_) => false,
            Value::Bool(value) => *value,
            Value::Number(number) => !number.is_zero(),
            Value::String(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Struct(fields) => !fields.is_empty(),
        },
    }
}
