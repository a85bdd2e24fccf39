//! Walks a program over bindings, counting costs as cel-go counts them.

mod attribute;
mod fold;

use std::collections::BTreeMap;

use crate::cost::{LIST_COST, MAP_COST};
use crate::declaration::{Function, Implementation, Outcome, Overload};
use crate::error::EvalError;
use crate::plan::{Call, Node, Slot, unsupported_key};
use crate::program::Globals;
use crate::value::{Key, List, MAX_STEPS, Map, Text, Value, display, equal, equal_within, fits};
use crate::vars::Vars;

/// One evaluation in progress.
pub(crate) struct Evaluator<'a, 'v> {
    globals: &'a Globals,
    vars: &'v Vars<'a>,
    slots: Vec<Local<'a>>,
    /// Spent so far.
    pub(crate) cost: u64,
    limit: u64,
    /// Bytes of text made so far.
    made: usize,
    /// Steps that comparisons may still take.
    steps: u32,
}

/// Most bytes of text one evaluation may make, and most that its result may take written out. Adding texts of open type costs one whatever
/// their length, so the cost does not bound it.
const MAX_MADE_BYTES: usize = 32 * 1024 * 1024;

/// A comprehension variable.
enum Local<'a> {
    Empty,
    /// To be evaluated when first asked for.
    Pending(&'a Node),
    Ready(Outcome<'a>),
}

impl<'a, 'v> Evaluator<'a, 'v> {
    pub(crate) fn new(
        globals: &'a Globals,
        vars: &'v Vars<'a>,
        slots: usize,
        limit: u64,
    ) -> Evaluator<'a, 'v> {
        let mut evaluator = Evaluator {
            globals,
            vars,
            slots: Vec::new(),
            cost: 0,
            limit,
            made: 0,
            steps: MAX_STEPS,
        };
        evaluator.slots.resize_with(slots, || Local::Empty);
        evaluator
    }

    /// Evaluates a whole program. A result that could not be written out is refused, as anyone who
    /// asked for it would try.
    pub(crate) fn run(&mut self, root: &'a Node) -> Outcome<'a> {
        let value = self.eval(root)?;
        let mut bytes = MAX_MADE_BYTES;
        if fits(&value, &mut bytes) {
            Ok(value)
        } else {
            Err(EvalError::CallLimitExceeded)
        }
    }

    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            return Err(EvalError::CallLimitExceeded);
        }
        Ok(())
    }

    pub(crate) fn eval(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(constant(value)),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equals(terms, negated) => self.equals(terms, *negated),
            Node::Call(call) => self.call(call),
            Node::InConstants(parts) => {
                let needle = self.eval(&parts.0)?;
                for value in &parts.1 {
                    if equal(value, &needle)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::Quantifier(quantifier) => self.quantifier(quantifier),
            Node::Bind(parts) => {
                self.slots[parts.0.0] = Local::Pending(&parts.1);
                self.eval(&parts.2)
            }
            Node::OptionalOr(terms) => match self.eval(&terms[0])? {
                Value::Optional(None) => self.eval(&terms[1]),
                other => Ok(other),
            },
            Node::OptionalOrValue(terms) => match self.eval(&terms[0])? {
                Value::Optional(None) => self.eval(&terms[1]),
                Value::Optional(Some(value)) => Ok((*value).clone()),
                other => Ok(other),
            },
            Node::Append(parts) => self.append(parts.0, &parts.1),
            Node::Insert(parts) => self.insert(parts.0, &parts.1, &parts.2),
        }
    }

    /// `&&` and `||`: an operand that decides the result hides a failure of the other.
    fn logical(&mut self, terms: &'a [Node; 2], deciding: bool) -> Outcome<'a> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    failure.get_or_insert_with(EvalError::no_such_overload);
                }
                Err(error) if error.is_over_budget() => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(Value::Bool(!deciding)),
        }
    }

    /// Evaluates both operands even if the first fails, as cel-go does; the cost shows it.
    fn both(&mut self, terms: &'a [Node; 2]) -> Result<(Outcome<'a>, Outcome<'a>), EvalError> {
        let left = self.eval(&terms[0]);
        if let Err(error) = &left
            && error.is_over_budget()
        {
            return left.map(|value| (Ok(value), Ok(Value::Null)));
        }
        let right = self.eval(&terms[1]);
        if let Err(error) = &right
            && error.is_over_budget()
        {
            return right.map(|value| (Ok(value), Ok(Value::Null)));
        }
        Ok((left, right))
    }

    fn equals(&mut self, terms: &'a [Node; 2], negated: bool) -> Outcome<'a> {
        let (left, right) = self.both(terms)?;
        self.charge(crate::cost::equality(
            left.as_ref().ok(),
            right.as_ref().ok(),
        ))?;
        let (left, right) = (left?, right?);
        if negated {
            // Unequal is whatever is not known to be equal.
            return match equal_within(&left, &right, &mut self.steps) {
                Err(error) if error.is_over_budget() => Err(error),
                outcome => Ok(Value::Bool(!outcome.unwrap_or(false))),
            };
        }
        equal_within(&left, &right, &mut self.steps).map(Value::Bool)
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        match call.arguments.as_slice() {
            [only] if !call.ends_early => {
                let argument = self.eval(only);
                if let Err(error) = &argument
                    && error.is_over_budget()
                {
                    return argument;
                }
                self.unary(call, argument)
            }
            [first, second] if !call.ends_early => self.binary(call, first, second),
            nodes => self.variadic(call, nodes),
        }
    }

    /// A call whose first failing argument ends it.
    fn variadic(&mut self, call: &'a Call, nodes: &'a [Node]) -> Outcome<'a> {
        let mut arguments = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match self.eval(node) {
                Ok(value) => arguments.push(value),
                Err(error) if index + 1 < nodes.len() || error.is_over_budget() => {
                    return Err(error);
                }
                // All arguments were evaluated, if only to find that the last one fails.
                Err(error) => {
                    arguments.push(Value::Null);
                    self.charge(call.cost.runtime(&arguments, None))?;
                    return Err(error);
                }
            }
        }
        let result = self.invoke(call, &arguments);
        self.charge(call.cost.runtime(&arguments, result.as_ref().ok()))?;
        result
    }

    fn unary(&mut self, call: &'a Call, argument: Outcome<'a>) -> Outcome<'a> {
        if &*call.function.name == crate::ast::operator::NOT_STRICTLY_FALSE {
            self.charge(1)?;
            // A failure is not false.
            return Ok(Value::Bool(!matches!(argument, Ok(Value::Bool(false)))));
        }
        match argument {
            Ok(value) => {
                let arguments = [value];
                let result = self.invoke(call, &arguments);
                self.charge(call.cost.runtime(&arguments, result.as_ref().ok()))?;
                result
            }
            Err(error) => {
                self.charge(call.cost.runtime(&[Value::Null], None))?;
                Err(error)
            }
        }
    }

    fn binary(&mut self, call: &'a Call, first: &'a Node, second: &'a Node) -> Outcome<'a> {
        let left = self.eval(first);
        if matches!(&left, Err(error) if error.is_over_budget()) {
            return left;
        }
        let right = self.eval(second);
        if matches!(&right, Err(error) if error.is_over_budget()) {
            return right;
        }
        match (left, right) {
            (Ok(left), Ok(right)) => {
                let arguments = [left, right];
                let result = self.invoke(call, &arguments);
                self.charge(call.cost.runtime(&arguments, result.as_ref().ok()))?;
                result
            }
            (left, right) => {
                // What failed counts as of size one, like any value without a size.
                let sized = |value: &Outcome<'a>| value.as_ref().map_or(Value::Null, Value::clone);
                let arguments = [sized(&left), sized(&right)];
                self.charge(call.cost.runtime(&arguments, None))?;
                left.and(right)
            }
        }
    }

    fn invoke(&mut self, call: &'a Call, arguments: &[Value<'a>]) -> Outcome<'a> {
        let result = match &call.pattern {
            Some(pattern) => pattern.call(&call.function.name, arguments),
            None => dispatch(
                &call.function,
                call.overload.as_deref(),
                self.vars,
                arguments,
            ),
        };
        let bytes = match &result {
            Ok(Value::String(Text::Shared(text))) => text.len(),
            Ok(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        self.made = self.made.saturating_add(bytes);
        if self.made > MAX_MADE_BYTES {
            return Err(EvalError::CallLimitExceeded);
        }
        result
    }

    fn list(&mut self, elements: &'a [(Node, bool)]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        let mut failure = None;
        for (node, optional) in elements {
            match self.eval(node) {
                Ok(value) if !*optional => values.push(value),
                Ok(Value::Optional(Some(value))) => values.push((*value).clone()),
                Ok(Value::Optional(None)) => {}
                Ok(other) => {
                    failure = Some(EvalError::failed(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        display(&other)
                    )));
                    break;
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.charge(LIST_COST)?;
        match failure {
            Some(error) => Err(error),
            None => Ok(Value::list(values)),
        }
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Outcome<'a> {
        let result = self.map_entries(entries);
        self.charge(MAP_COST)?;
        result.map(|entries| Value::Map(Map::shared(entries)))
    }

    fn map_entries(
        &mut self,
        entries: &'a [(Node, Node, bool)],
    ) -> Result<BTreeMap<Key<'a>, Value<'a>>, EvalError> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let Some(map_key) = Key::new(&key) else {
                return Err(unsupported_key(&key));
            };
            let value = match value {
                Value::Optional(Some(value)) if *optional => (*value).clone(),
                Value::Optional(None) if *optional => {
                    map.remove(&map_key);
                    continue;
                }
                other if *optional => {
                    return Err(EvalError::failed(format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        display(&key),
                        display(&other)
                    )));
                }
                other => other,
            };
            map.insert(map_key, value);
        }
        Ok(map)
    }

    /// The value of a comprehension variable.
    fn local(&mut self, slot: Slot) -> Outcome<'a> {
        match &self.slots[slot.0] {
            Local::Ready(value) => value.clone(),
            Local::Empty => Err(EvalError::failed("no such attribute(s): unset variable")),
            Local::Pending(node) => {
                let value = self.eval(node);
                if let Err(error) = &value
                    && error.is_over_budget()
                {
                    return value;
                }
                self.slots[slot.0] = Local::Ready(value.clone());
                value
            }
        }
    }
}

/// A constant of the program, borrowed where it can be.
fn constant<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(Text::Shared(text)) => Value::String(Text::Borrowed(text)),
        Value::List(list) => Value::List(List::of_constant(list)),
        other => other.clone(),
    }
}

/// Calls a function with one constant, while planning.
pub(crate) fn call_constant(
    function: &Function,
    overload: Option<&Overload>,
    value: &Value<'static>,
) -> Outcome<'static> {
    dispatch(
        function,
        overload,
        &Vars::new(),
        std::slice::from_ref(value),
    )
}

/// Runs the overload the checker chose, or else the first that fits the values.
fn dispatch<'a>(
    function: &Function,
    overload: Option<&Overload>,
    vars: &Vars<'a>,
    arguments: &[Value<'a>],
) -> Outcome<'a> {
    if let Some(run) = function.singleton {
        // Overloads that an environment adds come last, and before the common implementation.
        let added =
            function
                .overloads
                .iter()
                .rev()
                .map_while(|overload| match &overload.implementation {
                    Implementation::Custom(run) => Some((overload, run)),
                    _ => None,
                });
        let mut fitting = added.filter(|(overload, _)| accepts(overload, arguments));
        return match fitting.next() {
            Some((_, custom)) => custom(vars, arguments),
            None => run(arguments),
        };
    }
    let chosen = match overload {
        Some(overload) => (function.unguarded || accepts(overload, arguments)).then_some(overload),
        None => function
            .overloads
            .iter()
            .map(|overload| &**overload)
            .find(|overload| accepts(overload, arguments)),
    };
    match chosen.map(|overload| &overload.implementation) {
        Some(Implementation::Plain(run)) => run(arguments),
        Some(Implementation::Custom(run)) => run(vars, arguments),
        Some(Implementation::Builtin) | None => {
            let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
            Err(EvalError::failed(format!(
                "no such overload: {}({})",
                function.name,
                types.join(", ")
            )))
        }
    }
}

fn accepts(overload: &Overload, arguments: &[Value<'_>]) -> bool {
    overload.parameters.len() == arguments.len()
        && overload
            .parameters
            .iter()
            .zip(arguments)
            .all(|(parameter, value)| crate::value::is_instance(value, parameter))
}

/// The name cel-go's error texts give to a value's type.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::List(_) => "*types.baseList",
        Value::Map(_) => "*types.baseMap",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
        other => other.type_name(),
    }
}

#[cfg(test)]
mod tests;
