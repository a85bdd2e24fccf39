//! Functions that templates can call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bellwether_go::value::{Type, Value};

use crate::call::{Call, Failure};

/// What a function does.
pub type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;

/// An entry of a table of functions: name, types of parameters, body.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name that templates use.
    pub name: &'static str,
    /// The types of the parameters, which arguments are checked against and converted to.
    pub parameters: &'static [Type],
    /// Whether the last parameter may be given any number of times, also never.
    pub is_variadic: bool,
    /// What it does. It gets at least as many arguments as it has parameters that are not variadic.
    pub body: Body,
}

/// A function with a fixed number of parameters.
pub const fn function(name: &'static str, parameters: &'static [Type], body: Body) -> Entry {
    Entry {
        name,
        parameters,
        is_variadic: false,
        body,
    }
}

/// A function whose last parameter may be repeated.
pub const fn variadic(name: &'static str, parameters: &'static [Type], body: Body) -> Entry {
    Entry {
        name,
        parameters,
        is_variadic: true,
        body,
    }
}

/// The functions whose arguments are not all evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    And,
    Or,
    Call,
}

/// A function of a template.
pub struct Function {
    pub(crate) entry: Entry,
    pub(crate) special: Option<Special>,
}

impl Function {
    pub(crate) const fn name(&self) -> &'static str {
        self.entry.name
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.entry.name)
    }
}

/// The functions that the templates of a set can call, by name. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Functions {
    by_name: Arc<BTreeMap<&'static str, Arc<Function>>>,
}

impl Functions {
    /// The functions that every template knows.
    pub fn builtin() -> Self {
        let special = [
            ("and", Special::And),
            ("or", Special::Or),
            ("call", Special::Call),
        ];
        let special = special.map(|(name, special)| Function {
            entry: variadic(name, &[Type::Reflect, Type::Reflect], |_, arguments| {
                Ok(arguments.last().cloned().unwrap_or_default())
            }),
            special: Some(special),
        });
        let plain = crate::builtin::TABLE.iter().map(|entry| Function {
            entry: *entry,
            special: None,
        });
        let all = special.into_iter().chain(plain);
        Self {
            by_name: Arc::new(all.map(|f| (f.entry.name, Arc::new(f))).collect()),
        }
    }

    /// The functions that every template knows, and those of sprig.
    pub fn sprig() -> Self {
        static SPRIG: std::sync::OnceLock<Functions> = std::sync::OnceLock::new();
        let all = || {
            let tables = crate::sprig::TABLES.iter();
            tables.fold(Self::builtin(), |functions, table| functions.with(table))
        };
        SPRIG.get_or_init(all).clone()
    }

    /// Adds functions; those that are known by the same name are replaced.
    #[must_use]
    pub fn with(mut self, entries: &[Entry]) -> Self {
        let by_name = Arc::make_mut(&mut self.by_name);
        for entry in entries {
            let function = Function {
                entry: *entry,
                special: None,
            };
            by_name.insert(entry.name, Arc::new(function));
        }
        self
    }

    /// Takes functions away.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        Arc::make_mut(&mut self.by_name).retain(|name, _| !names.contains(name));
        self
    }

    /// The names of all functions in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Function>> {
        self.by_name.get(name).map(Arc::clone)
    }
}
