//! Package `struct`.

use super::argument::{Outcome, any, int};
use super::{INT, function};
use crate::value::{Failure, Host, Kind, Package, Param, Value};

pub(super) static PACKAGE: Package = Package {
    path: "struct",
    functions: &[
        function("MinFields", &[STRUCT, INT], Kind::BOOL, min_fields),
        function("MaxFields", &[STRUCT, INT], Kind::BOOL, max_fields),
    ],
    source: "",
};

const STRUCT: Param = Param::shallow(Kind::STRUCT);

fn field_count(host: &mut dyn Host, arguments: &[Value]) -> Result<i64, Failure> {
    let count = match any(arguments, 0)? {
        Value::Struct(fields) => fields.len(),
        other => match host.fields(other) {
            Some(fields) => fields.len(),
            None => {
                return Err(Failure::Incomplete(
                    "non-concrete struct for argument 0".into(),
                ));
            }
        },
    };
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

fn min_fields(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (count, bound) = (field_count(host, arguments)?, int(arguments, 1)?);
    if count >= bound {
        return Ok(Value::Bool(true));
    }
    let message = format!("len(fields) < MinFields({bound}) ({count} < {bound})");
    if host.is_open(any(arguments, 0)?) {
        Err(Failure::UnsatisfiedYet(message))
    } else {
        Err(Failure::Unsatisfied(message))
    }
}

fn max_fields(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (count, bound) = (field_count(host, arguments)?, int(arguments, 1)?);
    if count <= bound {
        return Ok(Value::Bool(true));
    }
    let message = format!("len(fields) > MaxFields({bound}) ({count} > {bound})");
    Err(Failure::Unsatisfied(message))
}
