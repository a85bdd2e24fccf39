//! The functions that every template knows.

mod compare;
mod index;

use bellwether_go::escape;
use bellwether_go::print;
use bellwether_go::url;
use bellwether_go::value::{Type, Value};

use crate::call::{Call, Failure};
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;
const SELF: Type = Type::Reflect;

/// All but `and`, `or` and `call`, which do not evaluate their arguments like others.
pub(crate) const TABLE: &[Entry] = &[
    variadic("html", &[ANY], |call, arguments| {
        escaped(call, arguments, escape::html)
    }),
    variadic("js", &[ANY], |call, arguments| {
        escaped(call, arguments, escape::script)
    }),
    variadic("urlquery", &[ANY], |call, arguments| {
        escaped(call, arguments, |text| url::query_escape(text).into_bytes())
    }),
    variadic("index", &[SELF, SELF], index::index),
    variadic("slice", &[SELF, SELF], index::slice),
    function("len", &[SELF], index::length),
    function("not", &[SELF], |_, arguments| {
        Ok(Value::Bool(!arguments[0].is_true()))
    }),
    variadic("print", &[ANY], |call, arguments| {
        Ok(Value::string(metered(print::sprint(arguments, call))?))
    }),
    variadic("println", &[ANY], |call, arguments| {
        Ok(Value::string(metered(print::sprintln(arguments, call))?))
    }),
    variadic("printf", &[Type::String, ANY], |call, arguments| {
        let format = arguments[0].as_text().cloned().unwrap_or_default();
        let text = print::sprintf(format.as_bytes(), &arguments[1..], call);
        Ok(Value::string(metered(text)?))
    }),
    variadic("eq", &[SELF, SELF], |_, arguments| {
        compare::equal(arguments).map(Value::Bool)
    }),
    function("ne", &[SELF, SELF], |_, arguments| {
        compare::equal(arguments).map(|equal| Value::Bool(!equal))
    }),
    function("lt", &[SELF, SELF], |_, arguments| {
        compare::less(&arguments[0], &arguments[1]).map(Value::Bool)
    }),
    function("le", &[SELF, SELF], |_, arguments| {
        compare::less_or_equal(arguments).map(Value::Bool)
    }),
    function("gt", &[SELF, SELF], |_, arguments| {
        compare::less_or_equal(arguments).map(|less| Value::Bool(!less))
    }),
    function("ge", &[SELF, SELF], |_, arguments| {
        compare::less(&arguments[0], &arguments[1]).map(|less| Value::Bool(!less))
    }),
];

/// Printing fails only when the budget is used up.
pub(crate) fn metered<T>(result: Result<T, String>) -> Result<T, Failure> {
    result.map_err(Failure::Exhausted)
}

fn escaped(
    call: &mut Call<'_>,
    arguments: &[Value],
    escape: fn(&[u8]) -> Vec<u8>,
) -> Result<Value, Failure> {
    let text = if let [Value::String(text)] = arguments {
        text.as_bytes().to_vec()
    } else {
        // What is not there is printed as templates print it.
        let shown = |argument: &Value| match argument {
            Value::Nil | Value::Invalid => Value::from("<no value>"),
            other => other.clone(),
        };
        let shown: Vec<Value> = arguments.iter().map(shown).collect();
        metered(print::sprint(&shown, call))?
    };
    call.text(escape(&text))
}
