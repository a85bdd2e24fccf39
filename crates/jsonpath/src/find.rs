//! Evaluation of a template on a value.

use std::sync::LazyLock;

use serde_json::Value;

use crate::compare;
use crate::error::Error;
use crate::node::{End, Filter, Node, Slice, Test};
use crate::print::{go_type, go_value};

/// What stands for the bytes of a string: `.*` on a string gives numbers.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=u8::MAX).map(Value::from).collect());

/// Ranges inside ranges; each costs a level of recursion.
const MAX_RANGES: usize = 64;

/// Results, together with the error that ended the evaluation, if any: a filter that asks for
/// existence looks at what was found before.
type Outcome<'a> = (Vec<&'a Value>, Option<Error>);

/// One evaluation.
pub(crate) struct Finder {
    allow_missing_keys: bool,
    budget: usize,
    remaining: usize,
    /// Ranges that are being gone through.
    ranges: usize,
    /// The `end` met last: after a range, evaluation goes on behind it. Not the one that belongs
    /// to the range, since a range need not have one; so does the peer.
    last_end: Option<usize>,
}

impl Finder {
    pub(crate) fn new(allow_missing_keys: bool, budget: usize) -> Self {
        Self {
            allow_missing_keys,
            budget,
            remaining: budget,
            ranges: 0,
            last_end: None,
        }
    }

    pub(crate) fn run<'a>(
        mut self,
        nodes: &'a [Node],
        value: &'a Value,
    ) -> Result<Vec<Vec<&'a Value>>, Error> {
        let mut results = Vec::new();
        self.nodes(nodes, 0, Some(value), &mut results)?;
        Ok(results)
    }

    /// Evaluates nodes from an index on, up to the end of the range they are in. Without a value
    /// (a range over nothing) they are still evaluated, since the peer reports what they lack.
    fn nodes<'a>(
        &mut self,
        nodes: &'a [Node],
        start: usize,
        value: Option<&'a Value>,
        results: &mut Vec<Vec<&'a Value>>,
    ) -> Result<(), Error> {
        let mut index = start;
        while let Some(node) = nodes.get(index) {
            let found = self.top_level(node, value)?;
            if contains(node, &Node::End) {
                self.last_end = Some(index);
                return Ok(());
            }
            if contains(node, &Node::Range) {
                self.range(nodes, index + 1, &found, results)?;
                index = self.last_end.map_or(index, |end| end.max(index));
            } else {
                results.push(found);
            }
            index += 1;
        }
        Ok(())
    }

    fn top_level<'a>(
        &mut self,
        node: &'a Node,
        value: Option<&'a Value>,
    ) -> Result<Vec<&'a Value>, Error> {
        match (node, value) {
            (Node::Text(text), _) => {
                self.spend(1)?;
                Ok(vec![text])
            }
            (Node::List(steps), Some(value)) => into_result(self.list(vec![value], steps)),
            (Node::List(steps), None) => self.nothing(steps),
            _ => Ok(Vec::new()),
        }
    }

    /// The steps of an action on no value at all.
    fn nothing<'a>(&mut self, steps: &'a [Node]) -> Result<Vec<&'a Value>, Error> {
        match steps.iter().find(|step| !matches!(step, Node::Range)) {
            Some(Node::Field(name)) if !self.allow_missing_keys => {
                Err(Error::NotFound(name.clone()))
            }
            Some(Node::Filter(_)) => {
                Err(Error::NotFilterable("<invalid reflect.Value>".to_owned()))
            }
            _ => into_result(self.list(Vec::new(), steps)),
        }
    }

    fn range<'a>(
        &mut self,
        nodes: &'a [Node],
        start: usize,
        values: &[&'a Value],
        results: &mut Vec<Vec<&'a Value>>,
    ) -> Result<(), Error> {
        if self.ranges == MAX_RANGES {
            return Err(Error::NestedTooDeeply);
        }
        self.ranges += 1;
        if values.is_empty() {
            self.nodes(nodes, start, None, &mut Vec::new())?;
        }
        for value in values {
            self.nodes(nodes, start, Some(value), results)?;
        }
        self.ranges -= 1;
        Ok(())
    }

    fn spend(&mut self, values: usize) -> Result<(), Error> {
        match self.remaining.checked_sub(values) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => Err(Error::BudgetExceeded(self.budget)),
        }
    }

    /// Steps, each on the results of the one before.
    fn list<'a>(&mut self, input: Vec<&'a Value>, steps: &'a [Node]) -> Outcome<'a> {
        let mut values = input;
        for step in steps {
            if let Err(error) = self.spend(values.len() + 1) {
                return (Vec::new(), Some(error));
            }
            let (found, error) = self.step(values, step);
            if error.is_some() {
                return (found, error);
            }
            values = found;
        }
        (values, None)
    }

    fn step<'a>(&mut self, input: Vec<&'a Value>, step: &'a Node) -> Outcome<'a> {
        match step {
            Node::List(steps) => self.list(input, steps),
            Node::Text(text) => (vec![text], None),
            Node::Literal(literal) => (vec![literal; input.len()], None),
            Node::Field(name) => self.field(&input, name),
            Node::Array(slice) => array(input, *slice),
            Node::Filter(filter) => self.filter(input, filter),
            Node::Wildcard => (
                input
                    .into_iter()
                    .flat_map(|value| children(value))
                    .collect(),
                None,
            ),
            Node::Recursive => self.recursive(&input),
            Node::Union(parts) => self.union(&input, parts),
            Node::Range => (input, None),
            Node::End => (
                Vec::new(),
                (self.ranges == 0).then_some(Error::NothingToEnd),
            ),
            Node::Unrecognized(word) => (input, Some(Error::UnrecognizedIdentifier(word.clone()))),
        }
    }

    fn field<'a>(&mut self, input: &[&'a Value], name: &str) -> Outcome<'a> {
        let found: Vec<&Value> = input
            .iter()
            .filter_map(|value| value.as_object()?.get(name))
            .collect();
        let is_missing = found.is_empty() && !input.is_empty() && !self.allow_missing_keys;
        let error = is_missing.then(|| Error::NotFound(name.to_owned()));
        (found, error)
    }

    fn union<'a>(&mut self, input: &[&'a Value], parts: &'a [Vec<Node>]) -> Outcome<'a> {
        let mut found = Vec::new();
        for part in parts {
            let (values, error) = self.list(input.to_vec(), part);
            if error.is_some() {
                return (input.to_vec(), error);
            }
            found.extend(values);
        }
        (found, None)
    }

    /// Each value and everything below it that has something in it, parents first.
    fn recursive<'a>(&mut self, input: &[&'a Value]) -> Outcome<'a> {
        let mut found = Vec::new();
        let mut pending: Vec<&Value> = input.iter().rev().copied().collect();
        while let Some(value) = pending.pop() {
            if let Err(error) = self.spend(1) {
                return (found, Some(error));
            }
            let is_full = match value {
                Value::Array(items) => {
                    pending.extend(items.iter().rev());
                    !items.is_empty()
                }
                Value::Object(map) => {
                    pending.extend(map.values().rev());
                    !map.is_empty()
                }
                // Strings count as lists of bytes.
                Value::String(text) => !text.is_empty(),
                _ => false,
            };
            if is_full {
                found.push(value);
            }
        }
        (found, None)
    }

    fn filter<'a>(&mut self, input: Vec<&'a Value>, filter: &'a Filter) -> Outcome<'a> {
        let mut found = Vec::new();
        for value in &input {
            let Value::Array(items) = value else {
                return (input.clone(), Some(Error::NotFilterable(go_value(value))));
            };
            for item in items {
                match self.passes(item, filter) {
                    Ok(true) => found.push(item),
                    Ok(false) => {}
                    Err(error) => return (input, Some(error)),
                }
            }
        }
        (found, None)
    }

    fn passes<'a>(&mut self, item: &'a Value, filter: &'a Filter) -> Result<bool, Error> {
        let (left, error) = self.list(vec![item], &filter.left);
        let (operator, right) = match &filter.test {
            Test::Exists => {
                // Whatever else went wrong, the peer asks only whether something is left over.
                return match error {
                    Some(error @ Error::BudgetExceeded(_)) => Err(error),
                    _ => Ok(!left.is_empty()),
                };
            }
            Test::Compare(operator, right) => (operator, right),
        };
        let left = match (error, left.as_slice()) {
            (Some(error), _) => return Err(error),
            (None, []) => return Ok(false),
            (None, [left]) => *left,
            (None, _) => return Err(Error::ComparesMany),
        };
        let right = into_result(self.list(vec![item], right))?;
        match right.as_slice() {
            [] => Ok(false),
            [right] => compare::holds(left, operator, right),
            _ => Err(Error::ComparesMany),
        }
    }
}

fn into_result((values, error): Outcome<'_>) -> Result<Vec<&Value>, Error> {
    match error {
        Some(error) => Err(error),
        None => Ok(values),
    }
}

/// Whether an action has a certain word among its steps.
fn contains(node: &Node, word: &Node) -> bool {
    matches!(node, Node::List(steps) if steps.contains(word))
}

/// What is directly inside a value.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        Value::String(text) => text
            .bytes()
            .filter_map(|byte| BYTES.get(usize::from(byte)))
            .collect(),
        _ => Vec::new(),
    }
}

fn array(input: Vec<&Value>, slice: Slice) -> Outcome<'_> {
    let mut found = Vec::new();
    for value in &input {
        let items = match value {
            Value::Null => continue,
            Value::Array(items) => items,
            _ => return (input.clone(), Some(Error::NotAList(go_type(value)))),
        };
        match select(items, slice) {
            Ok(Some(selected)) => found.extend(selected),
            // The peer stops at the first empty slice, even if more lists follow.
            Ok(None) => return (found, None),
            Err(error) => return (input, Some(error)),
        }
    }
    (found, None)
}

/// The items that a slice selects; `None` if its ends coincide.
fn select(items: &[Value], slice: Slice) -> Result<Option<impl Iterator<Item = &Value>>, Error> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(length)
        } else {
            index
        }
    };
    let start = from_end(slice.start.unwrap_or(0));
    let end = match slice.end {
        End::Open => length,
        End::Before(end) => from_end(end),
        // After the last item, counted from the end, comes the length itself.
        End::AfterStart => match slice.start.unwrap_or(0).saturating_add(1) {
            0 => length,
            end => from_end(end),
        },
    };
    if start == end {
        return Ok(None);
    }
    let out_of_bounds = |index| Error::OutOfBounds {
        index,
        length: items.len(),
    };
    if start < 0 || start >= length {
        return Err(out_of_bounds(start));
    }
    if end < 0 || end > length {
        return Err(out_of_bounds(end.saturating_sub(1)));
    }
    if start > end {
        return Err(Error::SliceReversed { start, end });
    }
    let step = match slice.step {
        None => 1,
        Some(step) => usize::try_from(step)
            .ok()
            .filter(|step| *step > 0)
            .ok_or(Error::StepNotPositive)?,
    };
    let bounds =
        usize::try_from(start).unwrap_or_default()..usize::try_from(end).unwrap_or_default();
    Ok(Some(
        items.get(bounds).unwrap_or_default().iter().step_by(step),
    ))
}
