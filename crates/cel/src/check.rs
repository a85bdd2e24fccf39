//! The type checker: resolves names and overloads and infers the type of every node.
//!
//! Entry point: [`check`]. The rules and messages are those of cel-go with homogeneous
//! aggregate literals, which is how Kubernetes configures it.

mod call;
pub(crate) mod validate;

use std::sync::Arc;

use crate::ast::{
    Comprehension, Element, Entry, Expr, ExprId, ExprKind, Literal, Positions, Select,
    qualified_name,
};
use crate::declaration::{Function, Functions};
use crate::error::Problems;
use crate::types::unify::{Substitution, most_general};
use crate::types::{AbstractType, Type};

/// What a name or call in the source refers to.
#[derive(Debug, Clone)]
pub(crate) enum Reference {
    /// A variable of the environment, by index.
    Global(usize),
    /// A variable of an enclosing comprehension, by name.
    Local(String),
    /// A type used as a value.
    Type(Type),
    /// A function and those of its overloads (by index) that fit the static types.
    Call(Arc<Function>, Vec<usize>, CallStyle),
}

/// How the target of a call was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStyle {
    /// The target is the first argument, or there is none.
    Ordinary,
    /// The target spelled the first part of the function's name, as in `math.greatest`.
    Namespaced,
}

/// The findings of the checker, by node.
#[derive(Debug)]
pub(crate) struct Checked {
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
}

impl Checked {
    pub(crate) fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id.index()).unwrap_or(&Type::Dyn)
    }

    pub(crate) fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.index())?.as_ref()
    }
}

/// A declared variable.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    pub(crate) of: Type,
}

/// Checks `expr`, reporting what does not fit to `problems`.
pub(crate) fn check(
    expr: &Expr,
    positions: &Positions,
    variables: &[Variable],
    functions: &Functions,
    problems: &mut Problems,
) -> Checked {
    let mut checker = Checker {
        positions,
        variables,
        functions,
        problems,
        scopes: Vec::new(),
        known: Substitution::default(),
        types: vec![None; positions.len()],
        references: vec![None; positions.len()],
    };
    checker.check(expr);
    let Checker {
        known,
        types,
        references,
        ..
    } = checker;
    Checked {
        types: types
            .into_iter()
            .map(|of| of.map_or(Type::Dyn, |of| known.apply(&of, true)))
            .collect(),
        references,
    }
}

struct Checker<'c> {
    positions: &'c Positions,
    variables: &'c [Variable],
    functions: &'c Functions,
    problems: &'c mut Problems,
    /// Variables of enclosing comprehensions, innermost last.
    scopes: Vec<(String, Type)>,
    known: Substitution,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
}

impl Checker<'_> {
    fn report(&mut self, id: ExprId, message: impl Into<String>) {
        self.problems.report(self.positions.get(id), message);
    }

    fn set_type(&mut self, id: ExprId, of: Type) {
        if let Some(slot) = self.types.get_mut(id.index()) {
            *slot = Some(of);
        }
    }

    fn type_of(&self, expr: &Expr) -> Type {
        self.types
            .get(expr.id.index())
            .and_then(Clone::clone)
            .unwrap_or(Type::Error)
    }

    fn set_reference(&mut self, id: ExprId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id.index()) {
            *slot = Some(reference);
        }
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        self.report(
            id,
            format!("undeclared reference to '{name}' (in container '')"),
        );
        self.set_type(id, Type::Error);
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        self.report(
            id,
            format!("expected type '{expected}' but found '{actual}'"),
        );
    }

    fn check(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unspecified => self.set_type(expr.id, Type::Error),
            ExprKind::Literal(literal) => self.set_type(expr.id, literal_type(literal)),
            ExprKind::Ident(name) => {
                if !self.resolve(expr.id, name) {
                    self.undeclared(expr.id, name);
                }
            }
            ExprKind::Select(select) => self.check_select(expr, select),
            ExprKind::Call(call) => self.check_call(expr, call),
            ExprKind::List(elements) => self.check_list(expr.id, elements),
            ExprKind::Map(entries) => self.check_map(expr.id, entries),
            ExprKind::Struct(name, _) => self.check_struct(expr.id, name),
            ExprKind::Comprehension(fold) => self.check_comprehension(expr.id, fold),
        }
    }

    /// Resolves a possibly dotted name to a variable or type.
    fn resolve(&mut self, id: ExprId, name: &str) -> bool {
        let absolute = name.strip_prefix('.');
        let name = absolute.unwrap_or(name);
        let local = self.scopes.iter().rev().find(|(local, _)| local == name);
        if let (Some((_, of)), None) = (local, absolute) {
            let of = of.clone();
            self.set_type(id, of);
            self.set_reference(id, Reference::Local(name.to_owned()));
            return true;
        }
        let global = self
            .variables
            .iter()
            .position(|variable| &*variable.name == name);
        if let Some(index) = global {
            self.set_type(id, self.variables[index].of.clone());
            self.set_reference(id, Reference::Global(index));
            return true;
        }
        let Some(of) = named_type(name) else {
            return false;
        };
        self.set_type(id, Type::type_of(of.clone()));
        self.set_reference(id, Reference::Type(of));
        true
    }

    fn check_select(&mut self, expr: &Expr, select: &Select) {
        // `a.b.c` may be one variable with dots in its name.
        if let Some(name) = qualified_name(expr)
            && self.resolve(expr.id, &name)
        {
            return;
        }
        let result = self.selected(expr.id, &select.operand, &select.field, false);
        let result = if select.test_only { Type::Bool } else { result };
        let result = self.known.apply(&result, false);
        self.set_type(expr.id, result);
    }

    /// The type of `operand.field`.
    fn selected(&mut self, id: ExprId, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.known.apply(&self.type_of(operand), false);
        let (target, is_optional) = match &operand_type {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let result = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => {
                let of = object.fields.get(field).or_else(|| {
                    // Words the language reserves may be written as they are, too.
                    let escaped = crate::escaping::reserved(field)?;
                    object.fields.get(&escaped)
                });
                if let Some(of) = of {
                    of.clone()
                } else {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            }
            Type::Abstract(kind) if kind.is_message() => {
                self.report(
                    id,
                    format!("unexpected failed resolution of '{}'", kind.name()),
                );
                Type::Error
            }
            Type::Parameter(_) => {
                // Nothing is known yet: it stays open.
                self.known.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.report(
                        id,
                        format!("type '{other}' does not support field selection"),
                    );
                }
                Type::Dyn
            }
        };
        if is_optional || optional {
            Type::optional(result)
        } else {
            result
        }
    }

    /// An element of an aggregate literal; `?` unwraps an optional.
    fn check_element(&mut self, value: &Expr, optional: bool) -> Type {
        self.check(value);
        let of = self.type_of(value);
        if !optional {
            return of;
        }
        match of {
            Type::Optional(inner) => (*inner).clone(),
            other => {
                if !other.is_dyn() {
                    self.mismatch(value.id, &Type::optional(other.clone()), &other);
                }
                other
            }
        }
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else {
            return current;
        };
        if self.known.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        // Mixed literals are reported by validation, which knows the exceptions.
        Type::Dyn
    }

    fn check_list(&mut self, id: ExprId, elements: &[Element]) {
        let mut joined = None;
        for element in elements {
            let of = self.check_element(&element.value, element.optional);
            joined = Some(self.join(joined, of));
        }
        let element = joined.unwrap_or_else(|| self.known.fresh());
        self.set_type(id, Type::list(element));
    }

    fn check_map(&mut self, id: ExprId, entries: &[Entry]) {
        let mut keys = None;
        let mut values = None;
        for entry in entries {
            self.check(&entry.key);
            let key = self.type_of(&entry.key);
            keys = Some(self.join(keys, key));
            let value = self.check_element(&entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.known.fresh());
        let value = values.unwrap_or_else(|| self.known.fresh());
        self.set_type(id, Type::map(key, value));
    }

    /// Message literals: no type that could be made this way is ever declared.
    fn check_struct(&mut self, id: ExprId, name: &str) {
        if !self.resolve(id, name) {
            self.undeclared(id, name);
            return;
        }
        let message = if let Some(Reference::Type(_)) = self.references[id.index()] {
            format!("'{name}' is not a message type")
        } else {
            let of = self.types[id.index()].clone().unwrap_or(Type::Error);
            format!("'{of}' is not a type")
        };
        self.report(id, message);
        self.set_type(id, Type::Error);
    }

    fn check_comprehension(&mut self, id: ExprId, fold: &Comprehension) {
        self.check(&fold.range);
        self.check(&fold.init);
        let accumulator = self.type_of(&fold.init);
        let range = self.known.apply(&self.type_of(&fold.range), false);
        let two = fold.second_variable.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.known.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension \
                     (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outside = self.scopes.len();
        self.scopes
            .push((fold.accumulator.clone(), accumulator.clone()));
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second_variable {
            self.scopes.push((name.clone(), second));
        }
        self.check(&fold.condition);
        self.require(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.require(&fold.step, &accumulator);
        self.scopes.truncate(outside + 1);
        self.check(&fold.result);
        self.scopes.truncate(outside);
        let result = self.known.apply(&self.type_of(&fold.result), false);
        self.set_type(id, result);
    }

    fn require(&mut self, expr: &Expr, wanted: &Type) {
        let actual = self.type_of(expr);
        if !self.known.assignable(wanted, &actual) {
            self.mismatch(expr.id, wanted, &actual);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The type an expression can refer to by name.
fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "type" => Type::Type(None),
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "net.IP" => Type::Abstract(AbstractType::Ip),
        "net.CIDR" => Type::Abstract(AbstractType::Cidr),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
