//! Resource quantities such as `1500m` and `2Gi`, exactly.

use std::cmp::Ordering;
use std::sync::Arc;

use bellwether_json::quantity::Quantity;

use super::{int, text};
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::Value;

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "string_to_quantity",
        "quantity(string) -> kubernetes.Quantity",
        |a| Ok(value(parse(text(a, 0)?)?)),
    );
    functions.add("is_quantity_string", "isQuantity(string) -> bool", |a| {
        Ok(Value::Bool(parse(text(a, 0)?).is_ok()))
    });
    functions.add("quantity_sign", "sign(kubernetes.Quantity) -> int", |a| {
        Ok(Value::Int(quantity(a, 0)?.signum().into()))
    });
    functions.add(
        "quantity_is_greater_than",
        "kubernetes.Quantity::isGreaterThan(kubernetes.Quantity) -> bool",
        |a| Ok(Value::Bool(compared(a)?.is_gt())),
    );
    functions.add(
        "quantity_is_less_than",
        "kubernetes.Quantity::isLessThan(kubernetes.Quantity) -> bool",
        |a| Ok(Value::Bool(compared(a)?.is_lt())),
    );
    functions.add(
        "quantity_compare_to",
        "kubernetes.Quantity::compareTo(kubernetes.Quantity) -> int",
        |a| Ok(Value::Int(compared(a)? as i64)),
    );
    functions.add(
        "quantity_get_float",
        "kubernetes.Quantity::asApproximateFloat() -> double",
        |a| Ok(Value::Double(quantity(a, 0)?.as_f64())),
    );
    functions.add(
        "quantity_get_int",
        "kubernetes.Quantity::asInteger() -> int",
        |a| match quantity(a, 0)?.as_i64() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(EvalError::failed("cannot convert value to integer")),
        },
    );
    functions.add(
        "quantity_is_integer",
        "kubernetes.Quantity::isInteger() -> bool",
        |a| Ok(Value::Bool(quantity(a, 0)?.as_i64().is_some())),
    );
    declare_arithmetic(functions);
}

fn declare_arithmetic(functions: &mut Functions) {
    functions.add(
        "quantity_add",
        "kubernetes.Quantity::add(kubernetes.Quantity) -> kubernetes.Quantity",
        |a| Ok(value(quantity(a, 0)?.add(quantity(a, 1)?))),
    );
    functions.add(
        "quantity_add_int",
        "kubernetes.Quantity::add(int) -> kubernetes.Quantity",
        |a| Ok(value(quantity(a, 0)?.add(&int(a, 1)?.into()))),
    );
    functions.add(
        "quantity_sub",
        "kubernetes.Quantity::sub(kubernetes.Quantity) -> kubernetes.Quantity",
        |a| Ok(value(quantity(a, 0)?.sub(quantity(a, 1)?))),
    );
    functions.add(
        "quantity_sub_int",
        "kubernetes.Quantity::sub(int) -> kubernetes.Quantity",
        |a| Ok(value(quantity(a, 0)?.sub(&int(a, 1)?.into()))),
    );
}

fn parse(text: &str) -> Result<Quantity, EvalError> {
    let parsed = text.parse::<Quantity>();
    parsed.map_err(|error| EvalError::failed(error.to_string()))
}

fn value<'a>(quantity: Quantity) -> Value<'a> {
    Value::Quantity(Arc::new(quantity))
}

fn quantity<'v>(arguments: &'v [Value<'_>], index: usize) -> Result<&'v Quantity, EvalError> {
    match arguments.get(index) {
        Some(Value::Quantity(quantity)) => Ok(quantity),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn compared(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(quantity(arguments, 0)?.cmp(quantity(arguments, 1)?))
}
