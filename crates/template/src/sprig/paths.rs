//! Paths. Those of files are the same as any others: there is no other operating system here.

use bellwether_go::path;
use bellwether_go::value::{Type, Value};

use super::argument::string;
use crate::function::{Entry, function};

const STRING: Type = Type::String;

pub(super) const TABLE: &[Entry] = &[
    function("base", &[STRING], |call, a| {
        call.text(path::base(&string(a, 0)))
    }),
    function("osBase", &[STRING], |call, a| {
        call.text(path::base(&string(a, 0)))
    }),
    function("dir", &[STRING], |call, a| {
        call.text(path::dir(&string(a, 0)))
    }),
    function("osDir", &[STRING], |call, a| {
        call.text(path::dir(&string(a, 0)))
    }),
    function("clean", &[STRING], |call, a| {
        call.text(path::clean(&string(a, 0)))
    }),
    function("osClean", &[STRING], |call, a| {
        call.text(path::clean(&string(a, 0)))
    }),
    function("ext", &[STRING], |call, a| {
        call.text(path::ext(&string(a, 0)))
    }),
    function("osExt", &[STRING], |call, a| {
        call.text(path::ext(&string(a, 0)))
    }),
    function("isAbs", &[STRING], |_, a| {
        Ok(Value::Bool(string(a, 0).starts_with('/')))
    }),
    function("osIsAbs", &[STRING], |_, a| {
        Ok(Value::Bool(string(a, 0).starts_with('/')))
    }),
];
