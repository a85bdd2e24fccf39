//! Defaults, conditions and types.

use bellwether_go::print;
use bellwether_go::value::{Type, Value};

use super::argument::{any, bytes, is_empty, string};
use crate::builtin::metered;
use crate::call::Failure;
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;
const STRING: Type = Type::String;

pub(super) const TABLE: &[Entry] = &[
    variadic("default", &[ANY, ANY], |_, arguments| {
        let given = any(arguments, 1);
        let chosen = usize::from(!is_empty(given));
        Ok(any(arguments, chosen).clone())
    }),
    function("empty", &[ANY], |_, arguments| {
        Ok(Value::Bool(is_empty(any(arguments, 0))))
    }),
    variadic("coalesce", &[ANY], |_, arguments| {
        let found = arguments.iter().find(|value| !is_empty(value));
        Ok(found.cloned().unwrap_or_default())
    }),
    variadic("all", &[ANY], |_, arguments| {
        Ok(Value::Bool(!arguments.iter().any(is_empty)))
    }),
    variadic("any", &[ANY], |_, arguments| {
        Ok(Value::Bool(arguments.iter().any(|value| !is_empty(value))))
    }),
    function("ternary", &[ANY, ANY, Type::Bool], |_, arguments| {
        let chosen = usize::from(!any(arguments, 2).is_true());
        Ok(any(arguments, chosen).clone())
    }),
    function("typeOf", &[ANY], |call, arguments| {
        call.text(print::type_name(any(arguments, 0)))
    }),
    function("typeIs", &[STRING, ANY], |_, arguments| {
        let name = print::type_name(any(arguments, 1));
        Ok(Value::Bool(bytes(arguments, 0) == name.as_bytes()))
    }),
    function("typeIsLike", &[STRING, ANY], |_, arguments| {
        let name = print::type_name(any(arguments, 1));
        let pointed_to = name.strip_prefix('*').unwrap_or(&name);
        let wanted = bytes(arguments, 0);
        let is_like = wanted == name.as_bytes() || wanted == pointed_to.as_bytes();
        Ok(Value::Bool(is_like))
    }),
    function("kindOf", &[ANY], |call, arguments| {
        call.text(any(arguments, 0).kind().to_string())
    }),
    function("kindIs", &[STRING, ANY], |_, arguments| {
        let kind = any(arguments, 1).kind().to_string();
        Ok(Value::Bool(bytes(arguments, 0) == kind.as_bytes()))
    }),
    function("deepEqual", &[ANY, ANY], |call, arguments| {
        let equal = any(arguments, 0).deep_equal(any(arguments, 1), call);
        Ok(Value::Bool(metered(equal)?))
    }),
    function("fail", &[STRING], |_, arguments| {
        Err(Failure::Message(string(arguments, 0).into_owned()))
    }),
    function("hello", &[], |_, _| Ok(Value::from("Hello!"))),
];
