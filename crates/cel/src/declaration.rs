//! Functions as the checker and the evaluator see them: names, overloads, implementations.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::EvalError;
use crate::types::{self, Type};
use crate::value::Value;
use crate::vars::Vars;

/// A function's outcome.
pub(crate) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// A function written in this crate.
pub(crate) type Plain = for<'a> fn(&[Value<'a>]) -> Outcome<'a>;

/// A function supplied by the embedder. It sees the bindings of the evaluation besides its
/// arguments, so that data no expression may name can still reach it.
pub(crate) type Custom = Arc<dyn for<'a> Fn(&Vars<'a>, &[Value<'a>]) -> Outcome<'a> + Send + Sync>;

/// What runs when an overload is chosen.
#[derive(Clone)]
pub(crate) enum Implementation {
    Plain(Plain),
    Custom(Custom),
    /// The evaluator itself knows what to do.
    Builtin,
}

/// One signature of a function.
pub(crate) struct Overload {
    /// The identity by which costs are looked up, as in cel-go.
    pub(crate) id: Arc<str>,
    pub(crate) member: bool,
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
    /// How many type variables the signature uses; they are numbered from 0.
    pub(crate) type_variables: u32,
    pub(crate) implementation: Implementation,
}

/// A function and everything it can be applied to.
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) overloads: Vec<Arc<Overload>>,
    /// One implementation for all overloads, which tells them apart by looking at the values.
    pub(crate) singleton: Option<Plain>,
    /// Arguments are handed over without comparing them to the signature; the implementation
    /// says itself what is wrong with them.
    pub(crate) unguarded: bool,
}

impl fmt::Debug for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Every function of a library or environment, by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Functions {
    table: HashMap<Arc<str>, Arc<Function>>,
}

impl Functions {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.table.get(name)
    }

    /// Adds an overload; `signature` is `f(int) -> int` or, for members, `string.f(int) -> int`.
    ///
    /// # Panics
    /// If the signature cannot be read: signatures are constants of this crate, and a test loads
    /// every library.
    pub(crate) fn add(&mut self, id: &str, signature: &str, run: Plain) {
        self.declare(id, signature, Implementation::Plain(run));
    }

    /// Adds an overload that the evaluator handles itself or that a singleton implements.
    pub(crate) fn declare(&mut self, id: &str, signature: &str, run: Implementation) {
        let Some((name, overload)) = parse_signature(id, signature, run) else {
            unreachable!("unreadable signature {signature:?} of {id}");
        };
        self.insert(name, overload);
    }

    /// Adds an overload of a function that may already exist.
    pub(crate) fn insert(&mut self, name: &str, overload: Overload) {
        let name: Arc<str> = name.into();
        let function = self.entry(&name);
        function.overloads.push(Arc::new(overload));
    }

    /// Sets the common implementation of all overloads of `name`.
    pub(crate) fn singleton(&mut self, name: &str, run: Plain) {
        self.entry(&name.into()).singleton = Some(run);
    }

    /// Leaves the checking of argument types to the implementations of `name`.
    pub(crate) fn unguarded(&mut self, name: &str) {
        self.entry(&name.into()).unguarded = true;
    }

    fn entry(&mut self, name: &Arc<str>) -> &mut Function {
        let shared = self.table.entry(name.clone()).or_insert_with(|| {
            Arc::new(Function {
                name: name.clone(),
                overloads: Vec::new(),
                singleton: None,
                unguarded: false,
            })
        });
        if Arc::get_mut(shared).is_none() {
            // The function is shared with another environment: extend a copy.
            *shared = Arc::new(Function {
                name: shared.name.clone(),
                overloads: shared.overloads.clone(),
                singleton: shared.singleton,
                unguarded: shared.unguarded,
            });
        }
        match Arc::get_mut(shared) {
            Some(function) => function,
            None => unreachable!("the function was made unique above"),
        }
    }
}

/// Reads `[target.]name(arguments) -> result`.
fn parse_signature<'s>(
    id: &str,
    signature: &'s str,
    implementation: Implementation,
) -> Option<(&'s str, Overload)> {
    let (call, result) = signature.rsplit_once(" -> ")?;
    // A member's target is set off by `::`, since both types and names contain dots.
    let (target, call) = match call.split_once("::") {
        Some((target, call)) => (Some(types::parse(target)?), call),
        None => (None, call),
    };
    let (name, arguments) = call.split_once('(')?;
    let member = target.is_some();
    let mut parameters: Vec<Type> = target.into_iter().collect();
    parameters.extend(types::parse_list(arguments.strip_suffix(')')?)?);
    let overload = Overload::new(
        id,
        member,
        parameters,
        types::parse(result)?,
        implementation,
    );
    Some((name, overload))
}

impl Overload {
    /// An overload whose type variables are renumbered from 0.
    pub(crate) fn new(
        id: &str,
        member: bool,
        mut parameters: Vec<Type>,
        mut result: Type,
        implementation: Implementation,
    ) -> Overload {
        let mut variables = Vec::new();
        for of in parameters.iter_mut().chain([&mut result]) {
            *of = types::renumber(of, &mut variables);
        }
        Overload {
            id: id.into(),
            member,
            parameters,
            result,
            type_variables: u32::try_from(variables.len()).unwrap_or(0),
            implementation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_tell_members_from_functions() {
        let (name, overload) = parse_signature(
            "x",
            "list(A)::sortBy(list(B)) -> list(A)",
            Implementation::Builtin,
        )
        .unwrap();
        assert_eq!((name, overload.member), ("sortBy", true));
        assert_eq!(overload.parameters.len(), 2);
        let (name, overload) = parse_signature(
            "x",
            "optional.none() -> optional(V)",
            Implementation::Builtin,
        )
        .unwrap();
        assert_eq!((name, overload.member), ("optional.none", false));
        assert!(overload.parameters.is_empty());
    }
}
