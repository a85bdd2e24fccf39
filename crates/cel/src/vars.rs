//! Bindings: the values of variables for one evaluation.

use crate::value::Value;

/// The variables of one evaluation. Names an environment does not declare are allowed: only
/// functions supplied by the embedder can see them.
#[derive(Debug, Default, Clone)]
pub struct Vars<'a> {
    bound: Vec<(&'a str, Binding<'a>)>,
}

/// A bound value. JSON stays JSON until its declared type says how to look at it.
#[derive(Debug, Clone)]
pub(crate) enum Binding<'a> {
    Json(&'a serde_json::Value),
    Value(Value<'a>),
    /// An optional that holds JSON, for `oldSelf` under `optionalOldSelf`.
    OptionalJson(Option<&'a serde_json::Value>),
}

impl<'a> Vars<'a> {
    /// No bindings.
    pub fn new() -> Vars<'a> {
        Vars::default()
    }

    /// Binds `name` to JSON without copying it. If the variable is declared with a schema, the
    /// JSON is read as that schema says.
    #[must_use]
    pub fn json(mut self, name: &'a str, json: &'a serde_json::Value) -> Vars<'a> {
        self.set(name, Binding::Json(json));
        self
    }

    /// Binds `name` to an optional that holds `json`, read as the declared schema says.
    #[must_use]
    pub fn optional_json(mut self, name: &'a str, json: Option<&'a serde_json::Value>) -> Vars<'a> {
        self.set(name, Binding::OptionalJson(json));
        self
    }

    /// Binds `name` to a value.
    #[must_use]
    pub fn value(mut self, name: &'a str, value: impl Into<Value<'a>>) -> Vars<'a> {
        self.set(name, Binding::Value(value.into()));
        self
    }

    fn set(&mut self, name: &'a str, binding: Binding<'a>) {
        match self.bound.iter_mut().find(|(bound, _)| *bound == name) {
            Some(entry) => entry.1 = binding,
            None => self.bound.push((name, binding)),
        }
    }

    pub(crate) fn binding(&self, name: &str) -> Option<&Binding<'a>> {
        self.bound
            .iter()
            .find(|(bound, _)| *bound == name)
            .map(|(_, binding)| binding)
    }

    /// The value bound to `name`, with JSON read without regard to declared types.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        Some(match self.binding(name)? {
            Binding::Json(json) => Value::from_json(json),
            Binding::Value(value) => value.clone(),
            Binding::OptionalJson(json) => match json {
                Some(json) => Value::some(Value::from_json(json)),
                None => Value::none(),
            },
        })
    }
}
