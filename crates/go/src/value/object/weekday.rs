//! `time.Weekday`.

use super::{Method, Named};
use crate::value::Value;

pub(crate) static TYPE: Named = Named {
    name: "time.Weekday",
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

const NAMES: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The name of a day of the week, from Sunday as 0.
pub(crate) fn name(number: i64) -> String {
    match usize::try_from(number)
        .ok()
        .and_then(|index| NAMES.get(index))
    {
        Some(name) => (*name).to_owned(),
        None => format!("%!Weekday({number})"),
    }
}
