//! The program: a checked tree turned into nodes that are quick to evaluate.
//!
//! Planning resolves names to slots, folds constants, gathers selections into chains and decides
//! how every call is charged. The shape of the result mirrors cel-go's planner closely enough
//! that costs come out the same.

mod call;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Element, Entry, Expr, ExprKind, Literal, Select, operator};
use crate::check::{Checked, Reference};
use crate::cost::CallCost;
use crate::declaration::{Function, Overload};
use crate::error::EvalError;
use crate::library::regex::Pattern;
use crate::parser::ACCUMULATOR;
use crate::types::Type;
use crate::value::{Key, List, Map, Text, Value};

/// Where a comprehension variable lives during evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) usize);

/// An executable node.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value<'static>),
    /// A variable or operand and what is selected from it.
    Attribute(Box<Attribute>),
    /// `has(...)`: the last qualifier is only looked for.
    Test(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    /// `==`, or `!=` when negated.
    Equals(Box<[Node; 2]>, bool),
    Call(Box<Call>),
    /// `x in [constants]`.
    InConstants(Box<(Node, Vec<Value<'static>>)>),
    List(Box<[(Node, bool)]>),
    Map(Box<[(Node, Node, bool)]>),
    Fold(Box<Fold>),
    /// `all` and `exists`, which most rules consist of.
    Quantifier(Box<Quantifier>),
    /// A value with a name: the first node is evaluated when the name is first used.
    Bind(Box<(Slot, Node, Node)>),
    /// `optional.or(optional)`.
    OptionalOr(Box<[Node; 2]>),
    /// `optional.orValue(value)`.
    OptionalOrValue(Box<[Node; 2]>),
    /// `accumulator + [element]`, done in place.
    Append(Box<(Slot, Node)>),
    /// `cel.@mapInsert(accumulator, key, value)`, done in place.
    Insert(Box<(Slot, Node, Node)>),
}

/// A chain of selections.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// What a chain of selections starts from.
#[derive(Debug)]
pub(crate) enum Root {
    /// A variable of the environment, by index.
    Global(usize),
    Local(Slot),
    Operand(Node),
    Conditional(Box<[Node; 3]>),
}

/// One selection.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    Field(Box<str>),
    Constant(Value<'static>),
    Computed(Node),
}

/// A function call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Arc<Function>,
    /// The overload, where the types left only one.
    pub(crate) overload: Option<Arc<Overload>>,
    pub(crate) arguments: Vec<Node>,
    pub(crate) cost: CallCost,
    /// The compiled pattern, where it is constant.
    pub(crate) pattern: Option<Pattern>,
    /// Whether the first failing argument ends the call, uncharged. Calls of one or two
    /// arguments otherwise evaluate both and are charged even so; cel-go does, and costs show it.
    pub(crate) ends_early: bool,
}

/// A fold over a list or map.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) variable: Slot,
    pub(crate) second_variable: Option<Slot>,
    pub(crate) accumulator: Slot,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// `range.all(variable, predicate)`, or `exists`. The same as the fold it is written as, cost
/// included, but without going through its parts.
#[derive(Debug)]
pub(crate) struct Quantifier {
    pub(crate) range: Node,
    pub(crate) variable: Slot,
    pub(crate) second_variable: Option<Slot>,
    pub(crate) predicate: Node,
    /// What one element must yield to decide the whole: false for `all`, true for `exists`.
    pub(crate) deciding: bool,
}

/// Plans `expr`; returns the root node and the number of slots it needs. Fails where a constant
/// part always fails.
pub(crate) fn plan(expr: &Expr, checked: &Checked) -> Result<(Node, usize), EvalError> {
    let mut planner = Planner {
        checked,
        scopes: Vec::new(),
        slots: 0,
    };
    let root = planner.plan(expr)?;
    Ok((root, planner.slots))
}

struct Planner<'p> {
    checked: &'p Checked,
    scopes: Vec<(String, Slot)>,
    /// Slots are never reused, so that a lazily evaluated binding finds its surroundings intact.
    slots: usize,
}

type Planned = Result<Node, EvalError>;

impl Planner<'_> {
    fn slot(&mut self, name: &str) -> Slot {
        let slot = Slot(self.slots);
        self.slots += 1;
        self.scopes.push((name.to_owned(), slot));
        slot
    }

    fn plan(&mut self, expr: &Expr) -> Planned {
        if let Some(node) = self.plan_name(expr) {
            return Ok(node);
        }
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Constant(literal_value(literal))),
            ExprKind::Select(select) => self.plan_select(select),
            ExprKind::Call(call) => self.plan_call(expr.id, call),
            ExprKind::List(elements) => self.plan_list(elements),
            ExprKind::Map(entries) => self.plan_map(entries),
            ExprKind::Comprehension(fold) => self.plan_comprehension(fold),
            ExprKind::Unspecified | ExprKind::Ident(_) | ExprKind::Struct(..) => {
                Err(EvalError::failed("unsupported expression"))
            }
        }
    }

    /// Names, including dotted ones that the checker found to be one name.
    fn plan_name(&mut self, expr: &Expr) -> Option<Node> {
        let root = match self.checked.reference(expr.id)? {
            Reference::Global(index) => Root::Global(*index),
            Reference::Local(name) => {
                let slot = self.scopes.iter().rev().find(|(local, _)| local == name)?.1;
                Root::Local(slot)
            }
            Reference::Type(of) => return Some(Node::Constant(Value::Type(Arc::new(of.clone())))),
            Reference::Call(..) => return None,
        };
        Some(Node::Attribute(Box::new(Attribute {
            root,
            qualifiers: Vec::new(),
        })))
    }

    fn plan_select(&mut self, select: &Select) -> Planned {
        let operand = self.plan(&select.operand)?;
        let mut attribute = as_attribute(operand);
        attribute.qualifiers.push(Qualifier {
            key: QualifierKey::Field(select.field.as_str().into()),
            optional: false,
        });
        Ok(if select.test_only {
            Node::Test(Box::new(attribute))
        } else {
            Node::Attribute(Box::new(attribute))
        })
    }

    fn plan_list(&mut self, elements: &[Element]) -> Planned {
        let mut nodes = Vec::with_capacity(elements.len());
        for element in elements {
            nodes.push((self.plan(&element.value)?, element.optional));
        }
        let constant = nodes
            .iter()
            .all(|(node, optional)| !optional && matches!(node, Node::Constant(_)));
        if !constant {
            return Ok(Node::List(nodes.into_boxed_slice()));
        }
        let values = nodes
            .into_iter()
            .filter_map(|(node, _)| into_constant(node))
            .collect();
        Ok(Node::Constant(Value::List(List::values(values))))
    }

    fn plan_map(&mut self, entries: &[Entry]) -> Planned {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            nodes.push((
                self.plan(&entry.key)?,
                self.plan(&entry.value)?,
                entry.optional,
            ));
        }
        let constant = nodes.iter().all(|(key, value, optional)| {
            !optional && matches!((key, value), (Node::Constant(_), Node::Constant(_)))
        });
        if !constant {
            return Ok(Node::Map(nodes.into_boxed_slice()));
        }
        let mut map = BTreeMap::new();
        for (key, value, _) in nodes {
            let (Some(key), Some(value)) = (into_constant(key), into_constant(value)) else {
                continue;
            };
            let key = Key::new(&key).ok_or_else(|| unsupported_key(&key))?;
            map.insert(key, value);
        }
        Ok(Node::Constant(Value::Map(Map::shared(map))))
    }

    fn plan_quantifier(
        &mut self,
        fold: &Comprehension,
        predicate: &Expr,
        deciding: bool,
    ) -> Planned {
        let range = self.plan(&fold.range)?;
        let outside = self.scopes.len();
        let variable = self.slot(&fold.variable);
        let second_variable = fold.second_variable.as_ref().map(|name| self.slot(name));
        let predicate = self.plan(predicate)?;
        self.scopes.truncate(outside);
        Ok(Node::Quantifier(Box::new(Quantifier {
            range,
            variable,
            second_variable,
            predicate,
            deciding,
        })))
    }

    fn plan_comprehension(&mut self, fold: &Comprehension) -> Planned {
        if fold.is_bind() && fold.accumulator != ACCUMULATOR {
            let init = self.plan(&fold.init)?;
            let slot = self.slot(&fold.accumulator);
            let result = self.plan(&fold.result)?;
            self.scopes.pop();
            return Ok(Node::Bind(Box::new((slot, init, result))));
        }
        if let Some((predicate, deciding)) = quantified(fold) {
            return self.plan_quantifier(fold, predicate, deciding);
        }
        let init = self.plan(&fold.init)?;
        let range = self.plan(&fold.range)?;
        let outside = self.scopes.len();
        let accumulator = self.slot(&fold.accumulator);
        let variable = self.slot(&fold.variable);
        let second_variable = fold.second_variable.as_ref().map(|name| self.slot(name));
        let condition = self.plan(&fold.condition)?;
        let step = self.plan(&fold.step)?;
        self.scopes.truncate(outside + 1);
        let result = self.plan(&fold.result)?;
        self.scopes.truncate(outside);
        Ok(Node::Fold(Box::new(Fold {
            range,
            variable,
            second_variable,
            accumulator,
            init,
            condition,
            step,
            result,
        })))
    }
}

/// The predicate of a fold that is `all` or `exists`, and what decides it. Only macros can name
/// the accumulator, so its name and the operator tell.
fn quantified(fold: &Comprehension) -> Option<(&Expr, bool)> {
    let ExprKind::Call(step) = &fold.step.kind else {
        return None;
    };
    let (function, [_, predicate]) = (step.function.as_str(), step.arguments.as_slice()) else {
        return None;
    };
    match (function, &fold.init.kind) {
        _ if fold.accumulator != ACCUMULATOR => None,
        (operator::LOGICAL_AND, ExprKind::Literal(Literal::Bool(true))) => Some((predicate, false)),
        (operator::LOGICAL_OR, ExprKind::Literal(Literal::Bool(false))) => Some((predicate, true)),
        _ => None,
    }
}

pub(crate) fn unsupported_key(key: &Value<'_>) -> EvalError {
    EvalError::failed(format!("unsupported key type: {}", key.type_name()))
}

/// A node as the start of a chain of selections.
fn as_attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute(attribute) => *attribute,
        other => Attribute {
            root: Root::Operand(other),
            qualifiers: Vec::new(),
        },
    }
}

fn into_constant(node: Node) -> Option<Value<'static>> {
    match node {
        Node::Constant(value) => Some(value),
        _ => None,
    }
}

fn literal_value(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Shared(text.as_str().into())),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}

/// Whether calls of the function with a constant are done while planning.
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

/// Whether `of` is a type whose values can be compared quickly.
fn is_primitive(of: &Type) -> bool {
    matches!(
        of,
        Type::Bool | Type::Double | Type::Int | Type::String | Type::Uint
    )
}
