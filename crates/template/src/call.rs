//! What functions have to work with.

use std::fmt;

use bellwether_go::regexp::Regex;
use bellwether_go::value::{Map, Meter, Text, Value};

use crate::error::{Phase, TemplateError};
use crate::execute::{Run, State};
use crate::facts::{Query, World};
use crate::set::Templates;

/// Steps that compiling a pattern costs: the largest take milliseconds.
const REGEX_STEPS: usize = 100_000;

/// Why a function did not return a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It refuses its arguments; the text becomes part of `error calling NAME: …`.
    Message(String),
    /// The budget is used up.
    Exhausted(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

impl From<TemplateError> for Failure {
    fn from(error: TemplateError) -> Self {
        match error.phase() {
            Phase::Budget => Self::Exhausted(error.message().to_owned()),
            _ => Self::Message(error.to_string()),
        }
    }
}

/// A call of a function: the budget, the templates of the set, and what is known of the world.
pub struct Call<'c> {
    pub(crate) templates: &'c Templates<'c>,
    pub(crate) world: &'c World<'c>,
    pub(crate) state: &'c mut State,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Call").finish_non_exhaustive()
    }
}

impl Call<'_> {
    /// Charges for work in proportion to a number of elements.
    pub fn steps(&mut self, count: usize) -> Result<(), Failure> {
        self.state.steps(count).map_err(Failure::Exhausted)
    }

    /// Charges for bytes that are about to be made.
    pub fn bytes(&mut self, count: usize) -> Result<(), Failure> {
        self.state.bytes(count).map_err(Failure::Exhausted)
    }

    /// A string as a result, which is charged for.
    pub fn text(&mut self, text: impl Into<Text>) -> Result<Value, Failure> {
        let text = text.into();
        self.bytes(text.len())?;
        Ok(Value::String(text))
    }

    /// A list as a result, which is charged for.
    pub fn list(&mut self, items: Vec<Value>) -> Result<Value, Failure> {
        self.bytes(items.len().saturating_mul(size_of::<Value>()))?;
        Ok(Value::list(items))
    }

    /// What is known of the world.
    pub const fn world(&self) -> &World<'_> {
        self.world
    }

    /// The answer to a query. If it is not known yet, the whole rendering will have to be repeated
    /// once it is; until then the function goes on with what it returns for nothing found.
    pub fn ask(&mut self, query: Query) -> Option<Value> {
        let answer = self.world.facts.get(&query);
        if answer.is_none() && !self.state.needs.contains(&query) {
            self.state.needs.push(query);
        }
        answer
    }

    /// A compiled pattern; each is compiled once.
    pub fn regex(&mut self, pattern: &str) -> Result<Regex, Failure> {
        if let Some(regex) = self.state.regexes.get(pattern) {
            return Ok(regex.clone());
        }
        self.steps(REGEX_STEPS)?;
        let regex = Regex::new(pattern)
            .map_err(|error| Failure::Message(format!("error parsing regexp: {error}")))?;
        let known = self.state.regexes.entry(pattern.to_owned());
        Ok(known.or_insert(regex).clone())
    }

    /// Changes an entry of a map that templates share.
    pub fn set(&mut self, map: &Map, key: Text, value: Value) -> Result<(), Failure> {
        self.bytes(key.len() + size_of::<Value>())?;
        self.state.remember(map, &value);
        map.set(key, value);
        Ok(())
    }

    /// How many calls of a template by this name are under way, before this one.
    pub fn enter(&mut self, name: &str) -> usize {
        let count = self.state.entered.entry(name.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// Ends what [`Call::enter`] began.
    pub fn leave(&mut self, name: &str) {
        if let Some(count) = self.state.entered.get_mut(name) {
            *count = count.saturating_sub(1);
        }
    }

    /// Executes a template of the set; `None` if there is none of that name.
    pub fn execute(&mut self, name: &str, dot: &Value) -> Option<Result<Vec<u8>, TemplateError>> {
        let tree = self.templates.get(name)?;
        Some(Run::new(self.templates, self.world, self.state).execute(tree, dot))
    }

    /// Parses a text that may use and define templates of the set, and executes it. What it
    /// defines is gone afterwards.
    pub fn execute_text(
        &mut self,
        name: &str,
        text: &str,
        dot: &Value,
    ) -> Result<Vec<u8>, TemplateError> {
        self.state
            .bytes(text.len())
            .map_err(|message| TemplateError::budget(name, message))?;
        let templates = self.templates.with_text(name, text)?;
        match templates.get(name) {
            Some(tree) => Run::new(&templates, self.world, self.state).execute(tree, dot),
            None => Err(TemplateError::no_template(name)),
        }
    }
}

impl Meter for Call<'_> {
    fn charge(&mut self, units: usize) -> Result<(), String> {
        self.state.bytes(units)
    }
}
