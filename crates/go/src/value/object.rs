//! Structs, and types that have a name and methods.

pub(super) mod duration;
pub(super) mod month;
pub(super) mod weekday;

use std::fmt;

use super::{Kind, Text, Type, Value};

/// A struct, or a pointer to one: fields by name, and methods by its type.
pub trait Object: fmt::Debug + Send + Sync {
    /// The name of the type and its methods.
    fn named(&self) -> &'static Named;

    /// Whether it is a struct or a pointer to one.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// The exported fields in the order of their declaration.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// An exported field.
    fn field(&self, name: &[u8]) -> Option<Value> {
        let found = |(known, _): &(&'static str, Value)| known.as_bytes() == name;
        Some(self.fields().into_iter().find(found)?.1)
    }

    /// The fields that `fmt` writes, which are also those that are not exported.
    fn printed(&self) -> Vec<(&'static str, Value)> {
        self.fields()
    }

    /// What `String` or `Error` of the type says, for types that have one of them.
    fn string(&self) -> Option<String> {
        None
    }

    /// What `String` or `Error` of a pointer to it says. Only an action that prints the value itself finds
    /// it: functions get values, which have no address.
    fn pointer_string(&self) -> Option<String> {
        self.string()
    }

    /// What `encoding/json` writes, in the order of the fields; nothing for types that are no JSON object,
    /// or whose order does not matter.
    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// The plain data that `encoding/json` makes of it.
    fn data(&self) -> Value {
        let members = self.members().unwrap_or_else(|| self.fields());
        let members = members.into_iter();
        Value::map(members.map(|(name, value)| (Text::from(name), value)))
    }

    /// For conversions back to the Rust type.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A type with a name.
pub struct Named {
    /// The name with its package, such as `time.Time`.
    pub name: &'static str,
    /// The methods that templates may call.
    pub methods: &'static [Method],
}

impl Named {
    /// The method of a name.
    pub fn method(&self, name: &[u8]) -> Option<&Method> {
        let found = |method: &&Method| method.name.as_bytes() == name;
        self.methods.iter().find(found)
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What a method does to its receiver and arguments; errors use Go's words.
pub type MethodBody = fn(&Value, &[Value], &mut dyn Meter) -> Result<Value, String>;

/// A method of a named type.
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// The types of its parameters.
    pub parameters: &'static [Type],
    /// Whether the last parameter may be repeated.
    pub is_variadic: bool,
    /// What it does.
    pub body: MethodBody,
}

impl fmt::Debug for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Counts what a function costs, and stops it when that is too much.
pub trait Meter {
    /// Charges for work in proportion to `units`: bytes written, elements visited.
    fn charge(&mut self, units: usize) -> Result<(), String>;
}

/// A meter that never stops anything, for input whose size is already bounded.
#[derive(Debug, Clone, Copy)]
pub struct Unmetered;

impl Meter for Unmetered {
    fn charge(&mut self, _units: usize) -> Result<(), String> {
        Ok(())
    }
}

/// A meter that stops at a number of units.
#[derive(Debug, Clone, Copy)]
pub struct Limit(pub usize);

impl Meter for Limit {
    fn charge(&mut self, units: usize) -> Result<(), String> {
        match self.0.checked_sub(units) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err("too large".to_owned()),
        }
    }
}
