//! TOML for templates: `toToml` and its relatives, which Helm has.

use std::collections::BTreeMap;

use bellwether_go::number;
use bellwether_go::toml::{self, Item};
use bellwether_go::value::{Map, Meter, Text, Type, Value};

use crate::call::{Call, Failure};
use crate::function::{Entry, function};
use crate::sprig::argument::{any, bytes, string};

/// `toToml` and `fromToml`.
pub const TABLE: &[Entry] = &[
    // The text of an error is the result.
    function("toToml", &[Type::Interface], |call, a| {
        match write(call, a) {
            Err(Failure::Message(message)) => call.text(message),
            written => written,
        }
    }),
    function("fromToml", &[Type::String], |call, a| {
        call.bytes(bytes(a, 0).len().saturating_mul(8))?;
        Ok(match toml::parse(&string(a, 0)) {
            Ok(item) => value_of(item),
            Err(message) => Value::map([("Error", Value::from(message))]),
        })
    }),
];

fn write(call: &mut Call<'_>, a: &[Value]) -> Result<Value, Failure> {
    let mut metered = Metered {
        call,
        is_exhausted: false,
    };
    match toml::write(any(a, 0), &mut metered) {
        Ok(text) => Ok(Value::from(text)),
        Err(message) if metered.is_exhausted => Err(Failure::Exhausted(message)),
        Err(message) => Err(Failure::Message(message)),
    }
}

/// Tells an error of the meter from one of the writer.
struct Metered<'m, 'c> {
    call: &'m mut Call<'c>,
    is_exhausted: bool,
}

impl Meter for Metered<'_, '_> {
    fn charge(&mut self, units: usize) -> Result<(), String> {
        let charged = self.call.charge(units);
        self.is_exhausted |= charged.is_err();
        charged
    }
}

fn value_of(item: Item) -> Value {
    match item {
        Item::Bool(value) => Value::Bool(value),
        Item::Number(text) => match number::parse_int(&text) {
            Some(value) => Value::int64(value),
            None => Value::Float(number::parse_float(&text.replace('_', "")).unwrap_or(f64::NAN)),
        },
        Item::Time(text) | Item::String(text) => Value::from(text),
        Item::Array(items) => Value::list(items.into_iter().map(value_of).collect()),
        Item::Table(entries) => {
            let entries: BTreeMap<Text, Value> = entries
                .into_iter()
                .map(|(key, item)| (Text::from(key), value_of(item)))
                .collect();
            Value::Map(Map::new(&Type::Interface, entries))
        }
    }
}
