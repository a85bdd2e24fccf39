//! What a program using this crate calls: compile, evaluate, look up, fill, export.
//!
//! ```
//! use bellwether_cue::host::{Budget, Template};
//!
//! let template = Template::compile("port: *80 | int\nurl: \"http://host:\\(port)\"")?;
//! let mut evaluation = template.evaluate(Budget::default());
//! let root = evaluation.root();
//! let json = evaluation.json(root).map_err(|problem| vec![problem])?;
//! assert_eq!(json, r#"{"port":80,"url":"http://host:80"}"#);
//! # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
//! ```

use std::sync::Arc;

use crate::compile::{Packages, compile};
use crate::diagnostic::Diagnostic;
pub use crate::eval::SyntaxOptions;
use crate::eval::{Base, Evaluator, NodeId, Strictness};
pub use crate::eval::{Budget, Counters};
pub use crate::ir::ArcKind;
use crate::ir::{Meta, Program};
use crate::label::Label;
use crate::parser::parse_file;
use crate::token::Pos;
use crate::value::{Kind, Value};

/// A compiled program, cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Template {
    program: Arc<Program>,
}

impl Template {
    /// Compiles one source text without imports other than builtin packages.
    pub fn compile(source: &str) -> Result<Self, Vec<Diagnostic>> {
        Self::compile_files(&[("-", source)], &[])
    }

    /// Compiles the files of one package. `packages` are the packages it may import besides the
    /// builtin ones: import path and source text, one file each.
    pub fn compile_files(
        files: &[(&str, &str)],
        packages: &[(&str, &str)],
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut parsed = Vec::with_capacity(files.len());
        let mut problems = Vec::new();
        for (name, source) in files {
            let (file, found) = parse_file(name, source);
            problems.extend(found);
            parsed.push(file);
        }
        let mut imports = Packages::new();
        for (path, source) in packages {
            let (file, found) = parse_file(path, source);
            problems.extend(found);
            imports.entry(Arc::from(*path)).or_default().push(file);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            program: Arc::new(compile(&parsed, &imports)?),
        })
    }

    /// Selections such as `kube.#Aply` of fields that an imported package does not declare. CUE calls these
    /// incomplete, since a package could gain the field; a host whose packages are fixed reports them as mistakes.
    pub fn undeclared_selections(&self) -> Vec<Diagnostic> {
        self.program.undeclared_selections()
    }

    /// Wraps an already compiled program.
    pub fn new(program: Program) -> Self {
        Self {
            program: Arc::new(program),
        }
    }

    /// Starts an evaluation; nothing is computed until it is asked for.
    pub fn evaluate(&self, budget: Budget) -> Evaluation {
        Evaluation {
            evaluator: Evaluator::new(self.program.clone(), budget),
        }
    }
}

/// Tells whether the time of an evaluation is up. The crate reads no clock; anyone who has one hands it
/// in, see [`Evaluation::until`].
#[derive(Clone)]
pub struct Deadline(Arc<dyn Fn() -> bool + Send + Sync>);

impl Deadline {
    /// A deadline that is past once `expired` returns true.
    pub fn new(expired: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(expired))
    }

    pub(crate) fn is_past(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for Deadline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deadline")
    }
}

/// A value inside an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(NodeId);

/// A field of a struct, as iteration returns it.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name without quotes; `#` and `_` are part of it.
    pub name: Arc<str>,
    /// Whether it is a member, required, or optional.
    pub kind: ArcKind,
    /// Whether it is a definition.
    pub definition: bool,
    /// Whether it is hidden.
    pub hidden: bool,
    /// Its value.
    pub value: Handle,
}

/// Which fields iteration returns besides regular members.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldOptions {
    /// Definitions too.
    pub definitions: bool,
    /// Hidden fields too.
    pub hidden: bool,
    /// Optional fields too.
    pub optional: bool,
}

/// One evaluation of a template. Values are computed when asked for and kept.
#[derive(Debug)]
pub struct Evaluation {
    evaluator: Evaluator,
}

impl Evaluation {
    /// The value of the whole package.
    pub fn root(&self) -> Handle {
        Handle(self.evaluator.root)
    }

    /// Rejects `+` and `*` on lists as the reference does; by default they concatenate and repeat,
    /// because templates in the field still rely on it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.evaluator.strict = true;
        self
    }

    /// Ends the evaluation with an ordinary error once the deadline is past: the limit of time. It
    /// is looked at every few hundred steps, and holds for all that is evaluated later.
    ///
    /// ```
    /// use bellwether_cue::host::{Budget, Deadline, Template};
    ///
    /// let template = Template::compile("a: b + 1, b: 1")?;
    /// let past = Deadline::new(|| true);
    /// let mut evaluation = template.evaluate(Budget::default()).until(past);
    /// let root = evaluation.root();
    /// let problems = evaluation.validate(root);
    /// assert!(problems[0].to_string().contains("evaluation limit exceeded: time"));
    /// # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
    /// ```
    #[must_use]
    pub fn until(mut self, deadline: Deadline) -> Self {
        self.evaluator.set_deadline(deadline);
        self
    }

    /// The value that a handle stands for by now, all data taken in.
    fn current(&mut self, handle: Handle) -> Handle {
        self.evaluator.refresh();
        Handle(self.evaluator.relocate(handle.0))
    }

    /// Adds plain data at a path of field names. Of what is evaluated already, only what depends on
    /// the data is evaluated again, the next time that anything is asked for. Handles stay valid; one
    /// to a field that is gone keeps the value it had.
    ///
    /// If the evaluation has an error that no data can resolve, or comes to one, it is done again from
    /// the beginning, so that its messages are those of an evaluation that had all data at once.
    ///
    /// ```
    /// use bellwether_cue::host::{Budget, Template};
    /// use bellwether_cue::value::Value;
    ///
    /// let template = Template::compile(
    ///     "request: {url: \"http://host\", response?: string}
    ///      if request.response == _|_ {waiting: true}
    ///      greeting: \"hello\"",
    /// )?;
    /// let mut evaluation = template.evaluate(Budget::default());
    /// let root = evaluation.root();
    /// assert!(evaluation.lookup(root, "waiting").is_some());
    /// evaluation.fill(&["request", "response"], Value::string("ok"));
    /// let root = evaluation.root();
    /// assert!(evaluation.lookup(root, "waiting").is_none());
    /// # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
    /// ```
    pub fn fill(&mut self, path: &[&str], data: Value) {
        self.evaluator.fill(path, data);
    }

    /// Adds JSON at a path of field names, see [`fill`](Self::fill) and [`bridge`](crate::bridge).
    ///
    /// ```
    /// use bellwether_cue::host::{Budget, Template};
    /// use serde_json::json;
    ///
    /// let template = Template::compile("parameter: {cpu: int}, limit: parameter.cpu * 2")?;
    /// let mut evaluation = template.evaluate(Budget::default());
    /// evaluation.fill_json(&["parameter"], &json!({"cpu": 2}));
    /// let root = evaluation.root();
    /// let exported = evaluation.export_json(root).map_err(|problem| vec![problem])?;
    /// assert_eq!(exported, json!({"parameter": {"cpu": 2}, "limit": 4}));
    /// # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
    /// ```
    pub fn fill_json(&mut self, path: &[&str], data: &serde_json::Value) {
        self.evaluator.fill(path, crate::bridge::from_json(data));
    }

    /// The unification of two values of this evaluation. Neither of them changes.
    ///
    /// ```
    /// use bellwether_cue::host::{Budget, Template};
    ///
    /// let template = Template::compile("a: {x: int, y: 1}, b: {x: 2}")?;
    /// let mut evaluation = template.evaluate(Budget::default());
    /// let root = evaluation.root();
    /// let a = evaluation.lookup(root, "a").expect("declared");
    /// let b = evaluation.lookup(root, "b").expect("declared");
    /// let both = evaluation.unify(a, b);
    /// assert_eq!(evaluation.json(both), Ok(r#"{"x":2,"y":1}"#.to_owned()));
    /// assert!(evaluation.json(a).is_err());
    /// # Ok::<(), Vec<bellwether_cue::diagnostic::Diagnostic>>(())
    /// ```
    pub fn unify(&mut self, left: Handle, right: Handle) -> Handle {
        let left = self.current(left);
        let right = self.current(right);
        Handle(self.evaluator.unify(left.0, right.0))
    }

    /// A field of a value by its name; `#x` and `_x` select definitions and hidden fields. An
    /// optional field that no one gave is absent.
    pub fn lookup(&mut self, value: Handle, name: &str) -> Option<Handle> {
        let value = self.current(value);
        self.evaluator.find_field(value.0, name).map(Handle)
    }

    /// Follows a path of field names and list indexes from a value.
    pub fn lookup_path(&mut self, value: Handle, path: &[&str]) -> Option<Handle> {
        path.iter()
            .try_fold(value, |value, name| self.lookup(value, name))
    }

    /// Whether the value is free of problems that no further data can resolve.
    pub fn exists(&mut self, value: Handle) -> bool {
        self.validate(value).is_empty()
    }

    /// The problems at and below a value that no further data can resolve.
    pub fn validate(&mut self, value: Handle) -> Vec<Diagnostic> {
        let value = self.current(value);
        self.evaluator.validate(value.0, Strictness::Plain)
    }

    /// All problems that keep the value from being exported.
    pub fn validate_concrete(&mut self, value: Handle) -> Vec<Diagnostic> {
        let value = self.current(value);
        self.evaluator.validate(value.0, Strictness::Concrete)
    }

    /// The finished value with defaults taken.
    pub fn export(&mut self, value: Handle) -> Result<Value, Diagnostic> {
        let value = self.current(value);
        let exported = self.evaluator.plain(value.0);
        exported.map_err(|error| self.first_problem(error))
    }

    /// The finished value as `serde_json` has it, defaults taken, see [`bridge`](crate::bridge).
    pub fn export_json(&mut self, value: Handle) -> Result<serde_json::Value, Diagnostic> {
        let value = self.current(value);
        let exported = self.evaluator.json_value(value.0);
        exported.map_err(|error| self.first_problem(error))
    }

    /// The finished value as JSON text on one line.
    pub fn json(&mut self, value: Handle) -> Result<String, Diagnostic> {
        let value = self.current(value);
        let written = self.evaluator.json(value.0);
        written.map_err(|error| self.first_problem(error))
    }

    fn first_problem(&self, error: crate::eval::ErrId) -> Diagnostic {
        let leaves = self.evaluator.leaves(error);
        let leaf = leaves.first().copied().unwrap_or(error);
        self.evaluator.diagnostic(leaf)
    }

    /// The value as CUE text, defaults and documentation kept as the options say.
    pub fn source(&mut self, value: Handle, options: SyntaxOptions) -> Result<String, Diagnostic> {
        let value = self.current(value);
        let written = self.evaluator.source(value.0, options);
        written.map_err(|error| self.first_problem(error))
    }

    /// The value as a tree, defaults and comments kept.
    pub(crate) fn tree(&mut self, value: Handle) -> Result<crate::tree::Tree, Diagnostic> {
        let value = self.current(value);
        let tree = self.evaluator.tree(value.0);
        tree.map_err(|error| self.first_problem(error))
    }

    /// The kinds the value may still have.
    pub fn kind(&mut self, value: Handle) -> Kind {
        let value = self.current(value);
        self.evaluator.finalize(value.0);
        self.evaluator.node_kind(value.0)
    }

    /// The kind of the concrete value, defaults taken; empty when it is not concrete.
    pub fn concrete_kind(&mut self, value: Handle) -> Kind {
        let value = self.current(value);
        self.evaluator.finalize(value.0);
        let Ok(node) = self.evaluator.default_node(value.0, Pos::NONE) else {
            return Kind::BOTTOM;
        };
        let slot = self.evaluator.node(node);
        match slot.base {
            Base::Struct => Kind::STRUCT,
            Base::List => Kind::LIST,
            _ => slot.scalar.atom.as_ref().map_or(Kind::BOTTOM, Value::kind),
        }
    }

    /// The value with its default taken, or the value itself when it has none.
    pub fn default(&mut self, value: Handle) -> Handle {
        let value = self.current(value);
        self.evaluator.finalize(value.0);
        self.evaluator
            .default_node(value.0, Pos::NONE)
            .map_or(value, Handle)
    }

    /// The fields of a struct in order.
    pub fn fields(&mut self, value: Handle, options: FieldOptions) -> Vec<Field> {
        let value = self.current(value);
        self.evaluator.finalize(value.0);
        // A struct that is not complete has fields, too.
        let node = self.evaluator.default_node(value.0, Pos::NONE);
        let node = node.unwrap_or(value.0);
        let mut fields = Vec::new();
        for (label, arc) in self.evaluator.ordered_arcs(node) {
            let kind = self.evaluator.node(arc).arc;
            let wanted = !label.is_index()
                && (options.definitions || !label.is_definition())
                && (options.hidden || !label.is_hidden())
                && (options.optional || kind != ArcKind::Optional);
            if wanted {
                fields.push(Field {
                    name: self.evaluator.labels.text(label),
                    kind,
                    definition: label.is_definition(),
                    hidden: label.is_hidden(),
                    value: Handle(arc),
                });
            }
        }
        fields
    }

    /// The elements of a list.
    pub fn elements(&mut self, value: Handle) -> Vec<Handle> {
        let value = self.current(value);
        self.evaluator.finalize(value.0);
        let Ok(node) = self.evaluator.default_node(value.0, Pos::NONE) else {
            return Vec::new();
        };
        let arcs = self.evaluator.ordered_arcs(node);
        let is_element = |label: &Label| label.is_index();
        arcs.into_iter()
            .filter(|(label, _)| is_element(label))
            .map(|(_, arc)| Handle(arc))
            .collect()
    }

    /// Documentation and attributes of the field a value belongs to, one entry per declaration.
    pub fn metas(&mut self, value: Handle) -> Vec<Meta> {
        let value = self.current(value);
        let metas = self.evaluator.node(value.0).metas.clone();
        let all = &self.evaluator.program.metas;
        metas
            .iter()
            .filter_map(|id| all.get(id.0 as usize))
            .cloned()
            .collect()
    }

    /// The path of a value, elements as they are printed.
    pub fn path(&self, value: Handle) -> Vec<String> {
        self.evaluator.path(value.0)
    }

    /// Where the value is declared first.
    pub fn position(&self, value: Handle) -> Option<crate::diagnostic::Location> {
        self.evaluator.location(self.evaluator.node_pos(value.0))
    }

    /// Work done so far.
    pub fn counters(&self) -> Counters {
        self.evaluator.counters
    }
}
