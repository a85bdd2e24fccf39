//! Pipelines, commands, fields and calls.

use bellwether_go::quote;
use bellwether_go::value::{Kind, List, Map, Text, Type, Value};
use smallvec::SmallVec;

use super::{At, Cell, Done, Run, Variable};
use crate::ast::{Command, Expr, Number, Pipe};
use crate::call::{Call, Failure};
use crate::function::{Function, Special};
use crate::set::MissingKey;
use crate::stack::deeper;

/// What is called, and with which types of arguments.
#[derive(Clone, Copy)]
pub(super) struct Signature<'n> {
    pub(super) name: &'n str,
    pub(super) parameters: &'static [Type],
    pub(super) is_variadic: bool,
}

pub(super) type Arguments = SmallVec<[Value; 4]>;

impl<'t> Run<'t, '_> {
    pub(super) fn pipeline(&mut self, pipe: &'t Pipe, dot: &Cell) -> Done<Cell> {
        self.at = At::Pipe(pipe);
        let mut value: Option<Cell> = None;
        for command in &pipe.commands {
            value = Some(self.command(command, dot, value)?.unboxed());
        }
        let value = value.unwrap_or_else(|| Cell::new(Value::Invalid));
        for name in &pipe.declared {
            if pipe.is_assign {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push(Variable {
                    name,
                    cell: value.clone(),
                });
            }
        }
        Ok(value)
    }

    /// Evaluates a command; `last` is what the one before it in the pipeline gave.
    fn command(&mut self, command: &'t Command, dot: &Cell, last: Option<Cell>) -> Done<Cell> {
        self.step()?;
        let Some((first, args)) = command.args.split_first() else {
            return self.error("empty command");
        };
        match first {
            Expr::Field { names, .. } => {
                self.at = At::Expr(first);
                self.fields(dot.clone(), names, first, args, dot, last)
            }
            Expr::Chain { base, fields, .. } => {
                let receiver = self.chain_base(first, base, dot)?;
                self.fields(receiver, fields, first, args, dot, last)
            }
            Expr::Function { function, .. } => {
                self.at = At::Expr(first);
                self.function(function, At::Command(command), args, dot, last)
            }
            Expr::Pipe(pipe) => {
                self.not_a_function(first, args, last.as_ref())?;
                deeper(|| self.pipeline(pipe, dot))
            }
            Expr::Variable { name, fields, .. } => {
                self.at = At::Expr(first);
                let cell = self.variable(name)?;
                if fields.is_empty() {
                    self.not_a_function(first, args, last.as_ref())?;
                    return Ok(cell);
                }
                self.fields(cell, fields, first, args, dot, last)
            }
            Expr::Dot(_)
            | Expr::Nil(_)
            | Expr::Bool(..)
            | Expr::Number(_)
            | Expr::String { .. } => {
                self.at = At::Expr(first);
                self.not_a_function(first, args, last.as_ref())?;
                match first {
                    Expr::Dot(_) => Ok(dot.clone()),
                    Expr::Nil(_) => self.error("nil is not a command"),
                    other => self.constant(other),
                }
            }
        }
    }

    fn not_a_function(&self, first: &Expr, args: &[Expr], last: Option<&Cell>) -> Done<()> {
        if args.is_empty() && last.is_none() {
            return Ok(());
        }
        let shown = match first {
            Expr::Pipe(pipe) => pipe.to_string(),
            other => other.to_string(),
        };
        self.error(format!("can't give argument to non-function {shown}"))
    }

    pub(super) fn constant(&mut self, expr: &'t Expr) -> Done<Cell> {
        self.at = At::Expr(expr);
        Ok(Cell::new(match expr {
            Expr::Bool(_, value) => Value::Bool(*value),
            Expr::String { text, .. } => Value::String(text.clone()),
            Expr::Number(number) => match ideal(number) {
                Some(value) => value,
                None => return self.error(format!("{} overflows int", number.text)),
            },
            _ => Value::Invalid,
        }))
    }

    pub(super) fn variable(&self, name: &str) -> Done<Cell> {
        let found = self.variables.iter().rev().find(|v| v.name == name);
        match found {
            Some(variable) => Ok(variable.cell.clone()),
            None => self.error(format!("undefined variable: {name}")),
        }
    }

    pub(super) fn chain_base(&mut self, chain: &'t Expr, base: &'t Expr, dot: &Cell) -> Done<Cell> {
        self.at = At::Expr(chain);
        if let Expr::Nil(_) = base {
            return self.error(format!("indirection through explicit nil in {chain}"));
        }
        self.operand(base, dot)
    }

    /// Follows names; the last one may be a method with arguments.
    pub(super) fn fields(
        &mut self,
        receiver: Cell,
        names: &'t [Text],
        node: &'t Expr,
        args: &'t [Expr],
        dot: &Cell,
        last: Option<Cell>,
    ) -> Done<Cell> {
        let Some((end, inner)) = names.split_last() else {
            return Ok(receiver);
        };
        let mut cell = receiver;
        for name in inner {
            cell = self.field(cell, name, node, &[], dot, None)?;
        }
        self.field(cell, end, node, args, dot, last)
    }

    fn field(
        &mut self,
        receiver: Cell,
        name: &'t Text,
        node: &'t Expr,
        args: &'t [Expr],
        dot: &Cell,
        last: Option<Cell>,
    ) -> Done<Cell> {
        let missing_key = self.templates.options.missing_key;
        match &receiver.value {
            Value::Invalid => {
                if missing_key == MissingKey::Error {
                    let key = quote::quote_bytes(name.as_bytes());
                    return self.error(format!("nil data; no entry for key {key}"));
                }
                return Ok(receiver);
            }
            Value::Nil => {
                return self.error(format!("nil pointer evaluating interface {{}}.{name}"));
            }
            _ => {}
        }
        if let Some(method) = receiver.value.method(name.as_bytes()) {
            let signature = Signature {
                name: method.name,
                parameters: method.parameters,
                is_variadic: method.is_variadic,
            };
            let arguments = self.arguments(signature, args, dot, last)?;
            self.step()?;
            return match (method.body)(&receiver.value, &arguments, self.state) {
                Ok(value) => Ok(Cell::new(value)),
                Err(message) => {
                    self.at = At::Expr(node);
                    self.called(method.name, Err(Failure::Message(message)))
                }
            };
        }
        let has_arguments = !args.is_empty() || last.is_some();
        match &receiver.value {
            Value::Object(object) => {
                if let Some(value) = object.field(name.as_bytes()) {
                    if has_arguments {
                        return self.error(format!(
                            "{name} has arguments but cannot be invoked as function"
                        ));
                    }
                    return Ok(Cell::new(value));
                }
            }
            Value::Map(map) => {
                if has_arguments {
                    return self.error(format!("{name} is not a method but has arguments"));
                }
                let is_boxed = matches!(map.element(), Type::Interface);
                let value = match (map.get(name.as_bytes()), missing_key) {
                    (Some(value), _) => value,
                    (None, MissingKey::Zero) => zero(*map.element()),
                    (None, MissingKey::Invalid) => return Ok(Cell::new(Value::Invalid)),
                    (None, MissingKey::Error) => {
                        let key = quote::quote_bytes(name.as_bytes());
                        return self.error(format!("map has no entry for key {key}"));
                    }
                };
                return Ok(Cell { value, is_boxed });
            }
            _ => {}
        }
        let shown = receiver.type_name();
        self.error(format!("can't evaluate field {name} in type {shown}"))
    }

    /// Calls a function; `whole` is what errors of the function quote.
    pub(super) fn function(
        &mut self,
        function: &'t Function,
        whole: At<'t>,
        args: &'t [Expr],
        dot: &Cell,
        last: Option<Cell>,
    ) -> Done<Cell> {
        let signature = Signature {
            name: function.entry.name,
            parameters: function.entry.parameters,
            is_variadic: function.entry.is_variadic,
        };
        if let Some(special @ (Special::And | Special::Or)) = function.special {
            return self.logic(signature, special == Special::Or, args, dot, last);
        }
        let arguments = self.arguments(signature, args, dot, last)?;
        let result = if function.special == Some(Special::Call) {
            Err(not_callable(args, &arguments))
        } else {
            let mut call = Call {
                templates: self.templates,
                world: self.world,
                state: self.state,
            };
            deeper(|| (function.entry.body)(&mut call, &arguments))
        };
        if result.is_err() {
            self.at = whole;
        }
        self.called(signature.name, result)
    }

    fn called(&self, name: &str, result: Result<Value, Failure>) -> Done<Cell> {
        match result {
            Ok(value) => Ok(Cell::new(value)),
            Err(Failure::Message(message)) => {
                self.error(format!("error calling {name}: {message}"))
            }
            Err(Failure::Exhausted(message)) => self.exhausted(message),
        }
    }

    /// `and` and `or` stop at the first argument that decides.
    fn logic(
        &mut self,
        signature: Signature<'_>,
        stops_at: bool,
        args: &'t [Expr],
        dot: &Cell,
        last: Option<Cell>,
    ) -> Done<Cell> {
        self.check_count(signature, args.len(), last.is_some())?;
        let mut value = Value::Invalid;
        for arg in args {
            value = self.argument(arg, Type::Reflect, dot)?;
            if value.is_true() == stops_at {
                return Ok(Cell::new(value));
            }
        }
        Ok(Cell::new(match last {
            Some(last) => last.value,
            None => value,
        }))
    }
}

/// Nothing can be called: values are never functions.
fn not_callable(args: &[Expr], arguments: &[Value]) -> Failure {
    match arguments.first() {
        None | Some(Value::Invalid | Value::Nil) => Failure::from("call of nil"),
        Some(value) => {
            let name = args.first().map_or_else(String::new, ToString::to_string);
            Failure::Message(format!("non-function {name} of type {}", value.type_of()))
        }
    }
}

/// The type that a constant has where any will do.
pub(super) fn ideal(number: &Number) -> Option<Value> {
    if let Some((real, imaginary)) = number.complex {
        return Some(Value::Complex(real, imaginary));
    }
    let text = &*number.text;
    let is_hex_int = text.len() > 2
        && (text.starts_with("0x") || text.starts_with("0X"))
        && !text.contains(['p', 'P']);
    if let Some(float) = number.float
        && !is_hex_int
        && !text.starts_with('\'')
        && text.contains(['.', 'e', 'E', 'p', 'P'])
    {
        return Some(Value::Float(float));
    }
    number.int.map(Value::int)
}

/// The zero value of a type.
pub(crate) fn zero(of: Type) -> Value {
    match of {
        Type::Interface => Value::Nil,
        Type::Bool => Value::Bool(false),
        Type::Int(kind) => Value::Int(kind, 0),
        Type::Uint(kind) => Value::Uint(kind, 0),
        Type::Float64 => Value::Float(0.0),
        Type::Complex128 => Value::Complex(0.0, 0.0),
        Type::String => Value::String(Text::default()),
        Type::List(element) => Value::List(List::nil(element)),
        Type::Map(element) => Value::Map(Map::nil(element)),
        Type::Named(_, Kind::Map) => Value::Map(Map::nil(&Type::Interface)),
        Type::Named(..) | Type::Reflect => Value::Invalid,
    }
}
