//! Expressions, compiled once: every reader of rules shares one cache.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use bellwether_cel::{Env, EnvBuilder, EvalError, Program, Type, Value};

/// Expressions beyond this many are compiled again: the cache is emptied.
const MAX_PROGRAMS: usize = 8192;

/// What an expression is for, which decides what it may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Purpose {
    /// Sees `object`.
    Rule,
    /// The condition of a rule of the form `condition ? one : other`.
    Choice,
    /// Sees `object` and `result`.
    Message,
    /// Sees `object`, `status`, and any other name as a key of the status.
    Script,
    /// Sees `cluster`.
    Template,
}

type Compiled = Arc<Result<Program, String>>;

/// Compiled expressions. Cheap to share, and safe to use from many threads.
///
/// What they may see is put together when somebody asks: most agents never have an expression.
#[derive(Debug)]
pub struct Programs {
    rules: LazyLock<Env>,
    messages: LazyLock<Env>,
    templates: LazyLock<Env>,
    compiled: RwLock<HashMap<(Purpose, String), Compiled>>,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            rules: LazyLock::new(|| with_object().build()),
            messages: LazyLock::new(|| with_object().variable("result", Type::Bool).build()),
            templates: LazyLock::new(|| builder().variable("cluster", Type::Dyn).build()),
            compiled: RwLock::default(),
        }
    }
}

/// For expressions over `object`, which may ask for its conditions.
fn with_object() -> EnvBuilder {
    builder().variable("object", Type::Dyn).function(
        "hasConditions",
        vec![Type::Dyn],
        Type::Bool,
        |_, arguments| Ok(Value::Bool(has_conditions(arguments))),
    )
}

/// What all environments begin with: results such as `{'status': true, 'message': 'done'}` may be
/// written.
fn builder() -> EnvBuilder {
    Env::builder().mixed_literals()
}

/// Whether the argument is a map that has conditions; anything else is false, never an error.
fn has_conditions(arguments: &[Value<'_>]) -> bool {
    let Some(Value::Map(map)) = arguments.first() else {
        return false;
    };
    matches!(map.get_str("conditions"), Some(Ok(Value::List(list))) if !list.is_empty())
}

impl Programs {
    /// A rule over `object`, or what is wrong with it.
    pub fn rule(&self, source: &str) -> Compiled {
        self.get(Purpose::Rule, source, || {
            self.rules
                .compile(source)
                .map_err(|error| error.to_string())
        })
    }

    /// The condition of a rule that is a choice between two values.
    pub fn choice(&self, source: &str) -> Compiled {
        self.get(Purpose::Choice, source, || {
            self.rules.compile_condition(source).ok_or_else(String::new)
        })
    }

    /// An expression over `object` and `result` that gives a message, or the first line of what is
    /// wrong with it.
    pub fn message(&self, source: &str) -> Compiled {
        self.get(Purpose::Message, source, || {
            self.messages.compile(source).map_err(|error| {
                error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
        })
    }

    /// A script over `object`, `status` and the keys of the status, or what is wrong with it. Where
    /// the status has a key with the name of a type, such as `type`, the name means the key.
    pub fn script(&self, source: &str, has_key: impl Fn(&str) -> bool) -> Compiled {
        let types: Vec<&str> = names(source)
            .into_iter()
            .filter(|name| TYPES.contains(name) && has_key(name))
            .collect();
        // No script can have a zero byte, so that no two keys are the same.
        let key = format!("{}\0{source}", types.join(","));
        self.get(Purpose::Script, &key, || {
            script_env(source, &types)
                .compile(source)
                .map_err(|error| error.to_string())
        })
    }

    /// An expression over `cluster`, or what is wrong with it.
    pub fn template(&self, source: &str) -> Compiled {
        self.get(Purpose::Template, source, || {
            self.templates
                .compile(source)
                .map_err(|error| error.to_string())
        })
    }

    fn get(
        &self,
        purpose: Purpose,
        source: &str,
        compile: impl FnOnce() -> Result<Program, String>,
    ) -> Compiled {
        let key = (purpose, source.to_owned());
        // A poisoned lock still holds whole entries: each is put in with one call.
        let read = |lock: &RwLock<HashMap<_, _>>| -> Option<Compiled> {
            lock.read()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .get(&key)
                .cloned()
        };
        if let Some(known) = read(&self.compiled) {
            return known;
        }
        let compiled = Arc::new(compile());
        let mut programs = self
            .compiled
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if programs.len() >= MAX_PROGRAMS {
            programs.clear();
        }
        programs.insert(key, Arc::clone(&compiled));
        compiled
    }
}

/// Names that a script never means as keys of the status.
const TAKEN: [&str; 6] = ["object", "status", "true", "false", "null", "in"];

/// Names of types, which a script means as keys of the status where the status has them.
const TYPES: [&str; 10] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "type",
    "null_type",
];

/// An environment in which every other name of a script is a key of the status: which keys there
/// are is known only when it runs. Of the names of types, only these are keys.
fn script_env(source: &str, types: &[&str]) -> Env {
    let mut builder = builder()
        .variable("object", Type::Dyn)
        .variable("status", Type::Dyn)
        // The number itself: a count of replicas is as good as the list of them.
        .function("size", vec![Type::Int], Type::Int, |_, arguments| {
            arguments
                .first()
                .cloned()
                .ok_or_else(|| EvalError::failed("no such overload"))
        });
    for name in names(source) {
        let is_type = TYPES.contains(&name) && !types.contains(&name);
        if !TAKEN.contains(&name) && !is_type {
            builder = builder.variable(name, Type::Dyn);
        }
    }
    builder.build()
}

/// The names in a script, wherever they stand: too many do no harm.
pub(crate) fn names(source: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<&str> = source
        .split(|c: char| !is_name(c))
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
