//! Lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`.

use super::list;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{List, Value};

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "list_sets_contains_list",
        "sets.contains(list(T), list(T)) -> bool",
        |a| Ok(Value::Bool(contains_all(list(a, 0)?, list(a, 1)?)?)),
    );
    functions.add(
        "list_sets_equivalent_list",
        "sets.equivalent(list(T), list(T)) -> bool",
        |a| {
            let (left, right) = (list(a, 0)?, list(a, 1)?);
            Ok(Value::Bool(
                contains_all(left, right)? && contains_all(right, left)?,
            ))
        },
    );
    functions.add(
        "list_sets_intersects_list",
        "sets.intersects(list(T), list(T)) -> bool",
        |a| {
            let (left, right) = (list(a, 0)?, list(a, 1)?);
            for value in left.iter() {
                if right.contains(&value?)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    );
}

fn contains_all(list: &List<'_>, sublist: &List<'_>) -> Result<bool, EvalError> {
    for value in sublist.iter() {
        if !list.contains(&value?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
