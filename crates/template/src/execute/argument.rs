//! Arguments: evaluated, and made to fit the types of parameters.

use bellwether_go::value::{Kind, Type, Value};

use super::evaluate::{Arguments, Signature, zero};
use super::{At, Cell, Done, Run};
use crate::ast::Expr;
use crate::stack::deeper;

impl<'t> Run<'t, '_> {
    /// Whether the number of arguments fits.
    pub(super) fn check_count(
        &self,
        signature: Signature<'_>,
        given: usize,
        has_last: bool,
    ) -> Done<()> {
        let Signature {
            name,
            parameters,
            is_variadic,
        } = signature;
        let total = given + usize::from(has_last);
        if is_variadic {
            let fixed = parameters.len() - 1;
            if total < fixed {
                return self.error(format!(
                    "wrong number of args for {name}: want at least {fixed} got {given}"
                ));
            }
        } else if total != parameters.len() {
            let wanted = parameters.len();
            return self.error(format!(
                "wrong number of args for {name}: want {wanted} got {total}"
            ));
        }
        Ok(())
    }

    /// Evaluates the arguments of a call; `last` comes from a pipeline.
    pub(super) fn arguments(
        &mut self,
        signature: Signature<'_>,
        args: &'t [Expr],
        dot: &Cell,
        last: Option<Cell>,
    ) -> Done<Arguments> {
        self.check_count(signature, args.len(), last.is_some())?;
        let of = |position: usize| {
            let parameters = signature.parameters;
            let at_most = parameters.len().saturating_sub(1);
            parameters
                .get(position.min(at_most))
                .copied()
                .unwrap_or(Type::Interface)
        };
        let mut arguments = Arguments::with_capacity(args.len() + 1);
        for (position, arg) in args.iter().enumerate() {
            arguments.push(self.argument(arg, of(position), dot)?);
        }
        if let Some(last) = last {
            let fitted = self.fit(last, of(args.len()))?;
            arguments.push(fitted);
        }
        Ok(arguments)
    }

    /// Evaluates an operand without a type in mind.
    pub(super) fn operand(&mut self, expr: &'t Expr, dot: &Cell) -> Done<Cell> {
        self.step()?;
        self.at = At::Expr(expr);
        match expr {
            Expr::Dot(_) => Ok(dot.clone()),
            Expr::Field { names, .. } => self.fields(dot.clone(), names, expr, &[], dot, None),
            Expr::Variable { name, fields, .. } => {
                let cell = self.variable(name)?;
                self.fields(cell, fields, expr, &[], dot, None)
            }
            Expr::Pipe(pipe) => deeper(|| self.pipeline(pipe, dot)),
            Expr::Function { function, .. } => {
                self.function(function, At::Expr(expr), &[], dot, None)
            }
            Expr::Chain { base, fields, .. } => {
                let receiver = self.chain_base(expr, base, dot)?;
                self.fields(receiver, fields, expr, &[], dot, None)
            }
            Expr::Nil(_) => Ok(Cell::new(Value::Nil)),
            Expr::Bool(..) | Expr::Number(_) | Expr::String { .. } => self.constant(expr),
        }
    }

    /// Evaluates an argument for a parameter of a type.
    pub(super) fn argument(&mut self, expr: &'t Expr, wanted: Type, dot: &Cell) -> Done<Value> {
        match expr {
            Expr::Nil(_) => {
                self.at = At::Expr(expr);
                if wanted.can_be_nil() {
                    Ok(zero(wanted))
                } else {
                    self.error(format!("cannot assign nil to {wanted}"))
                }
            }
            Expr::Bool(..) | Expr::Number(_) | Expr::String { .. } => {
                self.step()?;
                self.literal(expr, wanted)
            }
            _ => {
                let cell = self.operand(expr, dot)?;
                self.fit(cell, wanted)
            }
        }
    }

    /// A constant for a parameter of a type.
    fn literal(&mut self, expr: &'t Expr, wanted: Type) -> Done<Value> {
        self.at = At::Expr(expr);
        match (wanted, expr) {
            (Type::Interface | Type::Reflect, _) => Ok(self.constant(expr)?.value),
            (Type::Bool, Expr::Bool(_, value)) => Ok(Value::Bool(*value)),
            (Type::Bool, _) => self.error(format!("expected bool; found {expr}")),
            (Type::String, Expr::String { text, .. }) => Ok(Value::String(text.clone())),
            (Type::String, _) => self.error(format!("expected string; found {expr}")),
            (Type::Int(kind), Expr::Number(number)) if number.int.is_some() => {
                Ok(Value::Int(kind, number.int.unwrap_or(0)))
            }
            (Type::Int(_), _) => self.error(format!("expected integer; found {expr}")),
            (Type::Uint(kind), Expr::Number(number)) if number.uint.is_some() => {
                Ok(Value::Uint(kind, number.uint.unwrap_or(0)))
            }
            (Type::Uint(_), _) => self.error(format!("expected unsigned integer; found {expr}")),
            (Type::Float64, Expr::Number(number)) if number.float.is_some() => {
                Ok(Value::Float(number.float.unwrap_or(0.0)))
            }
            (Type::Float64, _) => self.error(format!("expected float; found {expr}")),
            _ => self.error(format!("can't handle {expr} for arg of type {wanted}")),
        }
    }

    /// Checks a value against the type of a parameter.
    pub(super) fn fit(&self, cell: Cell, wanted: Type) -> Done<Value> {
        match (&cell.value, wanted) {
            (Value::Invalid, Type::Interface) => Ok(Value::Nil),
            (_, Type::Interface | Type::Reflect) => Ok(cell.value),
            (Value::Invalid, _) if wanted.can_be_nil() => Ok(zero(wanted)),
            (Value::Invalid, _) => self.error(format!("invalid value; expected {wanted}")),
            (Value::List(list), Type::List(element)) if list.element() == element => Ok(cell.value),
            (Value::Map(map), Type::Map(element)) if map.element() == element => {
                Ok(Value::Map(map.clone().without_name()))
            }
            (value, _) if value.kind() != Kind::Invalid && value.type_of() == wanted => {
                Ok(cell.value)
            }
            (value, _) => {
                let found = value.type_of();
                self.error(format!(
                    "wrong type for value; expected {wanted}; got {found}"
                ))
            }
        }
    }
}
