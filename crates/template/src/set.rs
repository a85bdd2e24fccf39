//! Templates that belong together, and rendering them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bellwether_go::value::Value;

use crate::ast::Tree;
use crate::budget::Budget;
use crate::error::TemplateError;
use crate::execute::{Run, State};
use crate::facts::{Query, World};
use crate::function::Functions;
use crate::parse;
use crate::stack::deeper;

/// What a key that a map does not have evaluates to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingKey {
    /// No value.
    #[default]
    Invalid,
    /// The zero value of the map's element type.
    Zero,
    /// An error.
    Error,
}

/// How templates are read and executed.
#[derive(Debug, Clone)]
pub struct Options {
    /// The functions that templates can call.
    pub functions: Functions,
    /// What opens and closes an action.
    pub delimiters: (String, String),
    /// What missing keys evaluate to.
    pub missing_key: MissingKey,
}

impl Options {
    /// Double braces, and missing keys without a value.
    pub fn new(functions: Functions) -> Self {
        Self {
            functions,
            delimiters: ("{{".to_owned(), "}}".to_owned()),
            missing_key: MissingKey::default(),
        }
    }
}

/// Named templates that can call each other. A set is parsed once and rendered often, also by
/// several threads at a time.
#[derive(Debug, Clone)]
pub struct Set {
    templates: Templates<'static>,
}

/// What came of rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    /// The output.
    Text(Vec<u8>),
    /// What has to be known first: answer these, and render again.
    Needs(Vec<Query>),
}

impl Set {
    /// A set without templates.
    pub fn new(options: Options) -> Self {
        Self {
            templates: Templates {
                options: Arc::new(options),
                own: BTreeMap::new(),
                base: None,
            },
        }
    }

    /// Parses a text as the template of a name, together with what it defines. Later definitions
    /// replace earlier ones, unless they are empty.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), TemplateError> {
        self.templates.add(name, text)
    }

    /// Whether there is a template of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.templates.get(name).is_some()
    }

    /// The names of all templates in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.own.keys().map(String::as_str)
    }

    /// Renders one template under a budget.
    pub fn render(
        &self,
        name: &str,
        dot: &Value,
        world: &World<'_>,
        budget: &mut Budget,
    ) -> Result<Rendered, TemplateError> {
        let mut session = self.session(world, *budget);
        let rendered = session.render(name, dot);
        *budget = session.budget();
        rendered
    }

    /// Begins to render several templates over the same data, under one budget.
    pub fn session<'s>(&'s self, world: &'s World<'s>, budget: Budget) -> Session<'s> {
        Session {
            set: self,
            world,
            state: State::new(budget),
        }
    }
}

/// Renders templates of a set over the same data, under one budget.
///
/// A template may change maps in place, and later templates see that. When the session is dropped,
/// maps that a template changed are emptied, since they may hold themselves.
pub struct Session<'s> {
    set: &'s Set,
    world: &'s World<'s>,
    state: State,
}

impl Session<'_> {
    /// Renders a template of the set.
    pub fn render(&mut self, name: &str, dot: &Value) -> Result<Rendered, TemplateError> {
        let Some(tree) = self.set.templates.get(name) else {
            return Err(TemplateError::no_template(name));
        };
        let run = Run::new(&self.set.templates, self.world, &mut self.state);
        let rendered = run.execute(tree, dot);
        if !self.state.needs.is_empty() {
            return Ok(Rendered::Needs(std::mem::take(&mut self.state.needs)));
        }
        rendered.map(Rendered::Text)
    }

    /// What is left of the budget.
    pub const fn budget(&self) -> Budget {
        self.state.budget
    }
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("budget", &self.state.budget)
            .finish_non_exhaustive()
    }
}

/// Templates by name, over those of a base.
#[derive(Debug, Clone)]
pub(crate) struct Templates<'b> {
    pub(crate) options: Arc<Options>,
    own: BTreeMap<String, Arc<Tree>>,
    base: Option<&'b Templates<'b>>,
}

impl<'b> Templates<'b> {
    pub(crate) fn get(&self, name: &str) -> Option<&Tree> {
        match self.own.get(name) {
            Some(tree) => Some(tree),
            None => self.base?.get(name),
        }
    }

    fn add(&mut self, name: &str, text: &str) -> Result<(), TemplateError> {
        let (left, right) = &self.options.delimiters;
        let functions = &self.options.functions;
        let trees = deeper(|| parse::parse(name, text, (left, right), functions))?;
        for (name, tree) in trees {
            if tree.is_empty() && self.get(&name).is_some() {
                continue;
            }
            self.own.insert(name, Arc::new(tree));
        }
        Ok(())
    }

    /// These templates and those of a text, of which that by `name` is new.
    pub(crate) fn with_text(
        &'b self,
        name: &str,
        text: &str,
    ) -> Result<Templates<'b>, TemplateError> {
        let mut templates = Templates {
            options: Arc::clone(&self.options),
            own: BTreeMap::new(),
            base: Some(self),
        };
        let (left, right) = &self.options.delimiters;
        let functions = &self.options.functions;
        let trees = deeper(|| parse::parse(name, text, (left, right), functions))?;
        for (defined, tree) in trees {
            if defined != name && tree.is_empty() && self.get(&defined).is_some() {
                continue;
            }
            templates.own.insert(defined, Arc::new(tree));
        }
        Ok(templates)
    }
}
