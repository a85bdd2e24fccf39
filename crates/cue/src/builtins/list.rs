//! Package `list`.
//!
//! Elements pass through untouched: where an element is not concrete it stays an opaque handle, so
//! that concatenating lists of schemas keeps the schemas.

use std::cmp::Ordering;

use super::argument::{
    Outcome, any, arithmetic, check_length, decimal, elements, int, list_elements, number, numbers,
    string_list, strings,
};
use super::{ANY, INT, LIST, NUMBER, function};
use crate::number::Number;
use crate::value::{Failure, Host, Kind, Package, Param, Value};

pub(super) static PACKAGE: Package = Package {
    path: "list",
    functions: &[
        function("Drop", &[LIST, INT], Kind::LIST, drop),
        function("FlattenN", &[SCHEMA, INT], Kind::LIST, flatten_n),
        function("Repeat", &[LIST, INT], Kind::LIST, repeat),
        function("Concat", &[LIST], Kind::LIST, concat),
        function("Take", &[LIST, INT], Kind::LIST, take),
        function("Slice", &[LIST, INT, INT], Kind::LIST, slice),
        function("Reverse", &[LIST], Kind::LIST, reverse),
        function("MinItems", &[LIST, INT], Kind::BOOL, min_items),
        function("MaxItems", &[LIST, INT], Kind::BOOL, max_items),
        function("UniqueItems", &[LIST], Kind::BOOL, unique_items),
        function("Contains", &[LIST, ANY], Kind::BOOL, contains),
        function("MatchN", &[LIST, SCHEMA, SCHEMA], Kind::BOOL, match_n),
        function("Avg", &[LIST], Kind::NUMBER, average),
        function("Max", &[LIST], Kind::NUMBER, maximum),
        function("Min", &[LIST], Kind::NUMBER, minimum),
        function("Product", &[LIST], Kind::NUMBER, product),
        function("Range", &[NUMBER, NUMBER, NUMBER], Kind::LIST, range),
        function("Sum", &[LIST], Kind::NUMBER, sum),
        function("Sort", &[LIST, SCHEMA], Kind::LIST, sort),
        function("SortStable", &[LIST, SCHEMA], Kind::LIST, sort),
        function("SortStrings", &[LIST], Kind::LIST, sort_strings),
        function("IsSorted", &[LIST, SCHEMA], Kind::BOOL, is_sorted),
        function("IsSortedStrings", &[LIST], Kind::BOOL, is_sorted_strings),
    ],
    source: "
Comparer: {
	T:    _
	x:    T
	y:    T
	less: bool
}
Ascending: {
	Comparer
	T:    number | string
	x:    T
	y:    T
	less: x < y
}
Descending: {
	Comparer
	T:    number | string
	x:    T
	y:    T
	less: x > y
}
",
};

const SCHEMA: Param = Param::schema();

/// A count or position argument that must not be negative.
fn natural(arguments: &[Value], position: usize, message: &str) -> Result<usize, Failure> {
    usize::try_from(int(arguments, position)?).map_err(|_| Failure::error(message))
}

fn drop(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let count = natural(arguments, 1, "negative index")?;
    Ok(Value::list(
        elements(host, arguments, 0)?.into_iter().skip(count),
    ))
}

fn take(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let count = natural(arguments, 1, "negative index")?;
    Ok(Value::list(
        elements(host, arguments, 0)?.into_iter().take(count),
    ))
}

fn slice(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let start = natural(arguments, 1, "negative index")?;
    let (low, high) = (int(arguments, 1)?, int(arguments, 2)?);
    if low > high {
        return Err(Failure::error(format!("invalid index: {low} > {high}")));
    }
    let items = elements(host, arguments, 0)?;
    let end = usize::try_from(high).unwrap_or(usize::MAX);
    match items.get(start..end) {
        Some(part) => Ok(Value::list(part.iter().cloned())),
        None => Err(Failure::error("slice bounds out of range")),
    }
}

fn flatten_n(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let depth = int(arguments, 1)?;
    let Some(items) = list_elements(host, any(arguments, 0)?) else {
        return Err(not_a_list(host, any(arguments, 0)?));
    };
    // A work list instead of recursion: nesting comes from the input.
    let mut pending: Vec<(Value, i64)> = Vec::new();
    pending.extend(items.into_iter().rev().map(|item| (item, depth)));
    let mut result = Vec::new();
    while let Some((item, depth)) = pending.pop() {
        let nested = if depth == 0 {
            None
        } else {
            list_elements(host, &item)
        };
        match nested {
            Some(items) => {
                pending.extend(items.into_iter().rev().map(|item| (item, depth - 1)));
            }
            None => result.push(item),
        }
        check_length(host, Some(result.len() + pending.len()))?;
    }
    Ok(Value::list(result))
}

fn not_a_list(host: &mut dyn Host, value: &Value) -> Failure {
    match host.concrete(value) {
        Ok(concrete) => {
            let (shown, kind) = (host.show(&concrete), concrete.kind());
            Failure::error(format!("cannot use value {shown} (type {kind}) as list"))
        }
        Err(failure) => failure,
    }
}

/// Comparisons of elements that take the time of a step.
const COMPARISONS_PER_STEP: usize = 16;

fn repeat(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let count = natural(arguments, 1, "negative count")?;
    let items = elements(host, arguments, 0)?;
    check_length(host, items.len().checked_mul(count))?;
    // However often nothing is repeated, it is nothing, and no length bounds how often.
    let count = if items.is_empty() { 0 } else { count };
    Ok(Value::list(std::iter::repeat_n(items, count).flatten()))
}

fn concat(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut result = Vec::new();
    for part in elements(host, arguments, 0)? {
        match list_elements(host, &part) {
            Some(items) => result.extend(items),
            None => return Err(not_a_list(host, &part)),
        }
        check_length(host, Some(result.len()))?;
    }
    Ok(Value::list(result))
}

fn reverse(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::list(elements(host, arguments, 0)?.into_iter().rev()))
}

fn count(host: &mut dyn Host, arguments: &[Value]) -> Result<i64, Failure> {
    let length = elements(host, arguments, 0)?.len();
    Ok(i64::try_from(length).unwrap_or(i64::MAX))
}

fn min_items(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (count, bound) = (count(host, arguments)?, int(arguments, 1)?);
    if count >= bound {
        return Ok(Value::Bool(true));
    }
    let message = format!("len(list) < MinItems({bound}) ({count} < {bound})");
    if host.is_open(any(arguments, 0)?) {
        Err(Failure::UnsatisfiedYet(message))
    } else {
        Err(Failure::Unsatisfied(message))
    }
}

fn max_items(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (count, bound) = (count(host, arguments)?, int(arguments, 1)?);
    if count <= bound {
        return Ok(Value::Bool(true));
    }
    let message = format!("len(list) > MaxItems({bound}) ({count} > {bound})");
    Err(Failure::Unsatisfied(message))
}

/// Equality of finished values: numbers by kind and value, structs whatever their order.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Struct(left), Value::Struct(right)) => {
            left.len() == right.len()
                && left.iter().all(|(label, value)| {
                    let other = right.iter().find(|(name, _)| name == label);
                    other.is_some_and(|(_, other)| equal(value, other))
                })
        }
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|(left, right)| equal(left, right))
        }
        _ => left == right,
    }
}

fn unique_items(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let items = elements(host, arguments, 0)?;
    let mut finished = Vec::with_capacity(items.len());
    for item in &items {
        finished.push(host.concrete(item).ok());
    }
    for position in 0..items.len() {
        host.work((items.len() - position) / COMPARISONS_PER_STEP)?;
        for other in position + 1..items.len() {
            let (message, is_final) = match (&finished[position], &finished[other]) {
                (Some(left), Some(right)) if equal(left, right) => {
                    let composite = matches!(left, Value::List(_) | Value::Struct(_));
                    let open = host.is_open(&items[position]) || host.is_open(&items[other]);
                    let what = if composite {
                        "equal values".to_owned()
                    } else {
                        format!("equal value ({})", host.show(left))
                    };
                    (what, !composite || !open)
                }
                // Equal so far, but what is not concrete may still differ.
                (None, None) if host.show(&items[position]) == host.show(&items[other]) => {
                    ("equal values".to_owned(), false)
                }
                _ => continue,
            };
            let message = format!("{message} at position {position} and {other}");
            return Err(if is_final {
                Failure::Unsatisfied(message)
            } else {
                Failure::UnsatisfiedYet(message)
            });
        }
    }
    Ok(Value::Bool(true))
}

fn contains(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let wanted = host.concrete(any(arguments, 1)?)?;
    for item in elements(host, arguments, 0)? {
        if host.concrete(&item).is_ok_and(|item| equal(&item, &wanted)) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn match_n(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (wanted, schema) = (any(arguments, 1)?, any(arguments, 2)?);
    let mut matched = 0i64;
    for item in elements(host, arguments, 0)? {
        if host.matches(&item, schema).is_ok() {
            matched += 1;
        }
    }
    if host.matches(&Value::Number(matched.into()), wanted).is_ok() {
        return Ok(Value::Bool(true));
    }
    let shown = host.show(wanted);
    Err(Failure::Unsatisfied(format!(
        "number of matched elements is {matched}: does not satisfy {shown}"
    )))
}

/// Folds numbers, failing with the reference's text on an error of arithmetic.
fn fold(
    items: &[Number],
    start: i64,
    operation: impl Fn(&Number, &Number) -> Result<Number, crate::number::NumberError>,
) -> Result<Number, Failure> {
    let mut result = Number::from(start);
    for item in items {
        result = operation(item, &result).map_err(arithmetic)?;
    }
    Ok(result)
}

fn non_empty(host: &mut dyn Host, arguments: &[Value]) -> Result<Vec<Number>, Failure> {
    let items = numbers(host, arguments, 0)?;
    if items.is_empty() {
        Err(Failure::error("empty list"))
    } else {
        Ok(items)
    }
}

fn sum(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let items = numbers(host, arguments, 0)?;
    decimal(Ok(fold(&items, 0, Number::add)?))
}

fn product(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let items = numbers(host, arguments, 0)?;
    decimal(Ok(fold(&items, 1, Number::mul)?))
}

fn average(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let items = non_empty(host, arguments)?;
    decimal(fold(&items, 0, Number::add)?.quo(&Number::from(items.len())))
}

fn extreme(host: &mut dyn Host, arguments: &[Value], better: Ordering) -> Outcome {
    let items = non_empty(host, arguments)?;
    let mut best = items[0].clone();
    for item in &items[1..] {
        if item.compare(&best) == better {
            best = item.clone();
        }
    }
    decimal(Ok(best))
}

fn maximum(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    extreme(host, arguments, Ordering::Greater)
}

fn minimum(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    extreme(host, arguments, Ordering::Less)
}

fn range(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (start, limit, step) = (
        number(arguments, 0)?,
        number(arguments, 1)?,
        number(arguments, 2)?,
    );
    if step.is_zero() {
        return Err(Failure::error("step must be non zero"));
    }
    let (ahead, wrong) = if step.is_negative() {
        (
            Ordering::Greater,
            "end must be less than start when step is negative",
        )
    } else {
        (
            Ordering::Less,
            "end must be greater than start when step is positive",
        )
    };
    let order = start.compare(limit);
    if order != ahead && order != Ordering::Equal {
        return Err(Failure::error(wrong));
    }
    let mut result = Vec::new();
    let mut current = start.clone();
    while current.compare(limit) == ahead {
        check_length(host, Some(result.len() + 1))?;
        let next = current.add(step).map_err(arithmetic)?;
        result.push(decimal(Ok(current))?);
        current = next;
    }
    Ok(Value::list(result))
}

/// Whether `left` comes before `right` according to a comparator template.
fn is_less(
    host: &mut dyn Host,
    comparator: &Value,
    left: &Value,
    right: &Value,
) -> Result<bool, Failure> {
    match host.apply(comparator, &[("x", left), ("y", right)], "less")? {
        Value::Bool(less) => Ok(less),
        other => {
            let shown = host.show(&other);
            Err(Failure::error(format!(
                "comparator field less is {shown}, not a bool"
            )))
        }
    }
}

/// Merge sort: stable, and the comparator may fail at any call.
fn sort(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let comparator = any(arguments, 1)?;
    let mut items = elements(host, arguments, 0)?;
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for chunk in items.chunks(2 * width) {
            let (left, right) = chunk.split_at(width.min(chunk.len()));
            merge(host, comparator, left, right, &mut merged)?;
        }
        items = merged;
        width *= 2;
    }
    Ok(Value::list(items))
}

fn merge(
    host: &mut dyn Host,
    comparator: &Value,
    mut left: &[Value],
    mut right: &[Value],
    merged: &mut Vec<Value>,
) -> Result<(), Failure> {
    while let ([first_left, rest_left @ ..], [first_right, rest_right @ ..]) = (left, right) {
        if is_less(host, comparator, first_right, first_left)? {
            merged.push(first_right.clone());
            right = rest_right;
        } else {
            merged.push(first_left.clone());
            left = rest_left;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

fn is_sorted(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let comparator = any(arguments, 1)?;
    let items = elements(host, arguments, 0)?;
    for pair in items.windows(2) {
        // What cannot be compared is not sorted.
        if is_less(host, comparator, &pair[1], &pair[0]).unwrap_or(true) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sort_strings(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut items = strings(host, arguments, 0)?;
    items.sort();
    Ok(string_list(items))
}

fn is_sorted_strings(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(strings(host, arguments, 0)?.is_sorted()))
}
