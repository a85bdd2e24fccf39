//! Planning calls: operators become nodes of their own, constant conversions are done at once.

use super::{
    Attribute, Call, Node, Planned, Planner, Qualifier, QualifierKey, Root, as_attribute,
    is_conversion, is_primitive,
};
use crate::ast::{self, ExprId, operator};
use crate::check::{CallStyle, Reference};
use crate::cost::CallCost;
use crate::error::EvalError;
use crate::eval;
use crate::library::regex;
use crate::value::Value;

impl Planner<'_> {
    pub(super) fn plan_call(&mut self, id: ExprId, call: &ast::Call) -> Planned {
        let target = match self.checked.reference(id) {
            Some(Reference::Call(_, _, CallStyle::Namespaced)) => None,
            _ => call.target.as_ref(),
        };
        let mut arguments = Vec::with_capacity(call.arguments.len() + 1);
        for argument in target.into_iter().chain(&call.arguments) {
            arguments.push(self.plan(argument)?);
        }
        match self.plan_operator(&call.function, arguments) {
            Ok(node) => Ok(node),
            Err(arguments) => self.plan_function(id, arguments),
        }
    }

    /// Operators the evaluator knows itself; anything else is handed back.
    fn plan_operator(&mut self, function: &str, arguments: Vec<Node>) -> Result<Node, Vec<Node>> {
        match (function, arguments.len()) {
            (operator::CONDITIONAL, 3) => {
                let branches: [Node; 3] = arguments.try_into()?;
                Ok(Node::Attribute(Box::new(Attribute {
                    root: Root::Conditional(Box::new(branches)),
                    qualifiers: Vec::new(),
                })))
            }
            (
                operator::LOGICAL_AND
                | operator::LOGICAL_OR
                | operator::EQUALS
                | operator::NOT_EQUALS
                | operator::INDEX
                | operator::OPT_INDEX
                | operator::OPT_SELECT,
                2,
            ) => {
                let pair: Box<[Node; 2]> = Box::new(arguments.try_into()?);
                Ok(match function {
                    operator::LOGICAL_AND => Node::And(pair),
                    operator::LOGICAL_OR => Node::Or(pair),
                    operator::EQUALS => Node::Equals(pair, false),
                    operator::NOT_EQUALS => Node::Equals(pair, true),
                    _ => plan_index(*pair, function != operator::INDEX),
                })
            }
            _ => self.plan_in_place(function, arguments),
        }
    }

    /// `accumulator + [x]` and `cel.@mapInsert(accumulator, k, v)`.
    fn plan_in_place(&mut self, function: &str, arguments: Vec<Node>) -> Result<Node, Vec<Node>> {
        let slot = match arguments.first() {
            Some(Node::Attribute(attribute)) if attribute.qualifiers.is_empty() => {
                match attribute.root {
                    // Only macros name the accumulator, and only as the value to build on.
                    Root::Local(slot)
                        if self.scopes.iter().any(|(name, of)| {
                            *of == slot && name == crate::parser::ACCUMULATOR
                        }) =>
                    {
                        slot
                    }
                    _ => return Err(arguments),
                }
            }
            _ => return Err(arguments),
        };
        let mut arguments = arguments;
        match (function, arguments.len()) {
            (operator::ADD, 2) => {
                let single = matches!(&arguments[1], Node::List(elements)
                    if matches!(&**elements, [(_, false)]));
                if !single {
                    return Err(arguments);
                }
                let Some(Node::List(elements)) = arguments.pop() else {
                    return Err(arguments);
                };
                match elements.into_vec().pop() {
                    Some((element, _)) => Ok(Node::Append(Box::new((slot, element)))),
                    None => Err(arguments),
                }
            }
            ("cel.@mapInsert", 3) => match (arguments.pop(), arguments.pop()) {
                (Some(value), Some(key)) => Ok(Node::Insert(Box::new((slot, key, value)))),
                _ => Err(arguments),
            },
            _ => Err(arguments),
        }
    }

    fn plan_function(&mut self, id: ExprId, mut arguments: Vec<Node>) -> Planned {
        let Some(Reference::Call(function, fitting, _)) = self.checked.reference(id) else {
            return Err(EvalError::failed("unresolved function"));
        };
        let overload = match fitting.as_slice() {
            [only] => function.overloads.get(*only).cloned(),
            _ => None,
        };
        let overload_id = overload.as_ref().map(|overload| &*overload.id);
        if let Some(node) = plan_special(&function.name, overload_id, &mut arguments)? {
            return Ok(node);
        }
        if is_conversion(&function.name)
            && let [Node::Constant(value)] = arguments.as_slice()
        {
            let value = eval::call_constant(function, overload.as_deref(), value)?;
            return Ok(Node::Constant(value));
        }
        let pattern = match (&*function.name, arguments.get(1)) {
            ("matches" | "find" | "findAll", Some(Node::Constant(Value::String(pattern)))) => {
                Some(regex::compile(pattern)?)
            }
            _ => None,
        };
        let cost = CallCost::of(&function.name, overload_id);
        let chosen_late =
            overload.is_none() && function.singleton.is_none() && function.overloads.len() > 1;
        let ends_early = arguments.len() > 2
            || pattern.is_some()
            || chosen_late
            || overload_id == Some("string_format");
        Ok(Node::Call(Box::new(Call {
            function: function.clone(),
            overload,
            arguments,
            cost,
            pattern,
            ends_early,
        })))
    }
}

fn plan_index([operand, index]: [Node; 2], optional: bool) -> Node {
    let mut attribute = as_attribute(operand);
    let key = match index {
        Node::Constant(value) => match value {
            Value::String(text) => QualifierKey::Field((*text).into()),
            other => QualifierKey::Constant(other),
        },
        other => QualifierKey::Computed(other),
    };
    attribute.qualifiers.push(Qualifier { key, optional });
    Node::Attribute(Box::new(attribute))
}

/// Calls that are more than calls: alternatives of optionals, which evaluate only what they
/// need, and membership in a constant list, which cel-go does not charge for.
fn plan_special(
    function: &str,
    overload: Option<&str>,
    arguments: &mut Vec<Node>,
) -> Result<Option<Node>, EvalError> {
    match (function, overload) {
        ("or", Some("optional_or_optional")) | ("orValue", Some("optional_orValue_value")) => {
            let pair = <[Node; 2]>::try_from(std::mem::take(arguments));
            let Ok(pair) = pair.map(Box::new) else {
                return Err(EvalError::failed("an alternative needs two operands"));
            };
            Ok(Some(match function {
                "or" => Node::OptionalOr(pair),
                _ => Node::OptionalOrValue(pair),
            }))
        }
        (operator::IN, Some("in_list")) => {
            let Some(Node::Constant(Value::List(list))) = arguments.get(1) else {
                return Ok(None);
            };
            let values = list.to_vec()?.into_owned();
            if values.is_empty() {
                return Ok(Some(Node::Constant(Value::Bool(false))));
            }
            if !values.iter().all(|v| is_primitive(&v.runtime_type())) {
                return Ok(None);
            }
            let needle = arguments.swap_remove(0);
            Ok(Some(Node::InConstants(Box::new((needle, values)))))
        }
        _ => Ok(None),
    }
}
