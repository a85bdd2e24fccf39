//! Operations on lists.

use std::cmp::Ordering;

use super::{int, list};
use crate::declaration::{Functions, Implementation, Outcome};
use crate::error::EvalError;
use crate::value::{List, Value, compare, equal};

/// Types with an order, as `sort` and the like accept them.
const COMPARABLE: &[(&str, &str)] = &[
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("google.protobuf.Duration", "duration"),
    ("google.protobuf.Timestamp", "timestamp"),
    ("string", "string"),
    ("bytes", "bytes"),
];

/// Longest list an expression may make from nothing; a longer one could not be paid for.
const MAX_RANGE: i64 = 1_000_000;

/// Deepest nesting `flatten` descends into.
const MAX_FLATTEN_DEPTH: i64 = 100;

pub(super) fn declare(functions: &mut Functions) {
    functions.add("list_slice", "list(T)::slice(int, int) -> list(T)", |a| {
        slice(list(a, 0)?, int(a, 1)?, int(a, 2)?)
    });
    functions.add("list_flatten", "list(list(T))::flatten() -> list(T)", |a| {
        flatten(list(a, 0)?, 1)
    });
    functions.add(
        "list_flatten_int",
        "list(dyn)::flatten(int) -> list(dyn)",
        |a| flatten(list(a, 0)?, int(a, 1)?),
    );
    functions.add("lists_range", "lists.range(int) -> list(int)", |a| {
        let count = int(a, 0)?;
        if count > MAX_RANGE {
            return Err(EvalError::CallLimitExceeded);
        }
        Ok(Value::list((0..count).map(Value::Int).collect()))
    });
    functions.add("list_reverse", "list(T)::reverse() -> list(T)", |a| {
        let mut values = list(a, 0)?.to_vec()?.into_owned();
        values.reverse();
        Ok(Value::list(values))
    });
    functions.add("list_distinct", "list(T)::distinct() -> list(T)", |a| {
        distinct(list(a, 0)?)
    });
    for (id, of) in COMPARABLE {
        functions.declare(
            &format!("list_{id}_sort"),
            &format!("list({of})::sort() -> list({of})"),
            Implementation::Builtin,
        );
        functions.declare(
            &format!("list_{id}_sortByAssociatedKeys"),
            &format!("list(T)::@sortByAssociatedKeys(list({of})) -> list(T)"),
            Implementation::Builtin,
        );
    }
    functions.singleton("sort", |a| match a {
        [Value::List(values)] => sort_by(values, values),
        _ => Err(EvalError::failed("no such overload: sort")),
    });
    functions.singleton("@sortByAssociatedKeys", |a| match a {
        [Value::List(values), Value::List(keys)] => sort_by(values, keys),
        _ => Err(EvalError::failed("no such overload: @sortByAssociatedKeys")),
    });
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Outcome<'a> {
    let fail = |reason: String| {
        Err(EvalError::failed(format!(
            "cannot slice({start}, {end}), {reason}"
        )))
    };
    let (Ok(first), Ok(past)) = (usize::try_from(start), usize::try_from(end)) else {
        return fail("negative indexes not supported".to_owned());
    };
    if first > past {
        return fail("start index must be less than or equal to end index".to_owned());
    }
    if past > list.len() {
        return fail(format!("list is length {}", list.len()));
    }
    let mut values = Vec::with_capacity(past - first);
    for index in first..past {
        if let Some(value) = list.get(index) {
            values.push(value?);
        }
    }
    Ok(Value::list(values))
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Outcome<'a> {
    if depth < 0 {
        return Err(EvalError::failed("level must be non-negative"));
    }
    let mut values = Vec::new();
    flatten_into(list, depth.min(MAX_FLATTEN_DEPTH), &mut values)?;
    Ok(Value::list(values))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    values: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    for value in list.iter() {
        match value? {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, values)?,
            other => values.push(other),
        }
    }
    Ok(())
}

fn distinct<'a>(list: &List<'a>) -> Outcome<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for value in list.iter() {
        let value = value?;
        let mut seen = false;
        for known in &unique {
            if equal(&value, known)? {
                seen = true;
                break;
            }
        }
        if !seen {
            unique.push(value);
        }
    }
    Ok(Value::list(unique))
}

fn sort_by<'a>(values: &List<'a>, keys: &List<'a>) -> Outcome<'a> {
    if values.len() != keys.len() {
        return Err(EvalError::failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            values.len(),
            keys.len()
        )));
    }
    let keys = keys.to_vec()?;
    let Some(first) = keys.first() else {
        return Ok(Value::List(values.clone()));
    };
    if require_order(first).is_err() {
        return Err(EvalError::failed("list elements must be comparable"));
    }
    if keys
        .iter()
        .any(|key| std::mem::discriminant(key) != std::mem::discriminant(first))
    {
        return Err(EvalError::failed("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order
        .sort_by(|left, right| compare("", &keys[*left], &keys[*right]).unwrap_or(Ordering::Equal));
    let values = values.to_vec()?;
    Ok(Value::list(
        order
            .into_iter()
            .map(|index| values[index].clone())
            .collect(),
    ))
}

/// The list functions Kubernetes had before cel-go did.
pub(super) fn declare_kubernetes(functions: &mut Functions) {
    for of in [
        "int",
        "uint",
        "double",
        "bool",
        "duration",
        "timestamp",
        "string",
        "bytes",
    ] {
        functions.add(
            &format!("list_{of}_is_sorted_bool"),
            &format!("list({of})::isSorted() -> bool"),
            is_sorted,
        );
        functions.add(
            &format!("list_{of}_max_{of}"),
            &format!("list({of})::max() -> {of}"),
            |a| extreme(list(a, 0)?, "max", Ordering::Less),
        );
        functions.add(
            &format!("list_{of}_min_{of}"),
            &format!("list({of})::min() -> {of}"),
            |a| extreme(list(a, 0)?, "min", Ordering::Greater),
        );
    }
    functions.add("list_int_sum_int", "list(int)::sum() -> int", |a| {
        sum(list(a, 0)?, Value::Int(0))
    });
    functions.add("list_uint_sum_uint", "list(uint)::sum() -> uint", |a| {
        sum(list(a, 0)?, Value::Uint(0))
    });
    functions.add(
        "list_double_sum_double",
        "list(double)::sum() -> double",
        |a| sum(list(a, 0)?, Value::Double(0.0)),
    );
    functions.add(
        "list_duration_sum_duration",
        "list(duration)::sum() -> duration",
        |a| {
            let zero = crate::time::Duration::from_nanoseconds(0);
            sum(list(a, 0)?, Value::Duration(zero))
        },
    );
    functions.add("list_a_index_of_int", "list(A)::indexOf(A) -> int", |a| {
        position(list(a, 0)?, a.get(1), false)
    });
    functions.add(
        "list_a_last_index_of_int",
        "list(A)::lastIndexOf(A) -> int",
        |a| position(list(a, 0)?, a.get(1), true),
    );
}

fn is_sorted<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let values = list(arguments, 0)?.to_vec()?;
    values.iter().try_for_each(require_order)?;
    for pair in values.windows(2) {
        if compare("isSorted", &pair[0], &pair[1]).is_ok_and(Ordering::is_gt) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

/// Refuses values that have no order at all.
fn require_order(value: &Value<'_>) -> Result<(), EvalError> {
    match value {
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => Ok(()),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The first element no other element is beyond; `replace` is the order in which one gives way.
fn extreme<'a>(list: &List<'a>, name: &str, replace: Ordering) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for value in list.iter() {
        let value = value?;
        require_order(&value)?;
        let better = match &best {
            None => true,
            Some(best) => compare(name, best, &value).is_ok_and(|order| order == replace),
        };
        if better {
            best = Some(value);
        }
    }
    best.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

fn sum<'a>(list: &List<'a>, zero: Value<'a>) -> Outcome<'a> {
    let mut total = zero;
    for value in list.iter() {
        total = super::standard::add(&[total, value?])?;
    }
    Ok(total)
}

fn position<'a>(list: &List<'a>, wanted: Option<&Value<'a>>, backwards: bool) -> Outcome<'a> {
    let wanted = wanted.ok_or_else(EvalError::no_such_overload)?;
    let mut found = -1;
    for (index, value) in list.iter().enumerate() {
        if equal(&value?, wanted).unwrap_or(false) {
            found = i64::try_from(index).unwrap_or(i64::MAX);
            if !backwards {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}
