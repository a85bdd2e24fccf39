//! `time.Month`.

use super::{Method, Named};
use crate::value::Value;

pub(crate) static TYPE: Named = Named {
    name: "time.Month",
    methods: &[Method {
        name: "String",
        parameters: &[],
        is_variadic: false,
        body: |value, _, _| match value {
            Value::Int(_, number) => Ok(Value::string(name(*number))),
            _ => Ok(Value::Nil),
        },
    }],
};

const NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The name of a month, from 1.
pub(crate) fn name(number: i64) -> String {
    let index = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => (*name).to_owned(),
        None => format!("%!Month({number})"),
    }
}
