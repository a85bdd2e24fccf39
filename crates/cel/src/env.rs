//! Environments: which variables and functions expressions may use.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, operator};
use crate::check::{self, Checked, Reference, Variable};
use crate::declaration::{Functions, Implementation, Overload};
use crate::error::{CompileErrors, EvalError, Problems};
use crate::library::{self, LibrarySet};
use crate::parser;
use crate::plan;
use crate::program::{Global, Globals, Inner, Program};
use crate::schema::DeclType;
use crate::types::Type;
use crate::value::Value;
use crate::vars::Vars;

/// What expressions are compiled against. Cheap to clone; compile as many expressions as you
/// like with one.
#[derive(Debug, Clone)]
pub struct Env {
    variables: Arc<[Variable]>,
    globals: Globals,
    functions: Arc<Functions>,
    libraries: LibrarySet,
    mixed: bool,
}

impl Env {
    /// An environment to be; every library is enabled unless you say otherwise.
    pub fn builder() -> EnvBuilder {
        EnvBuilder {
            variables: Vec::new(),
            globals: Vec::new(),
            custom: Vec::new(),
            libraries: LibrarySet::ALL,
            mixed: false,
        }
    }

    /// Compiles an expression: parses it, checks types, and prepares it for evaluation.
    pub fn compile(&self, source: &str) -> Result<Program, CompileErrors> {
        self.compile_part(source, Some)
    }

    /// Compiles only the condition of an expression `condition ? one : other`; there is none if the
    /// expression has another form.
    pub fn compile_condition(&self, source: &str) -> Option<Program> {
        let condition = |expr: Expr| match expr.kind {
            ExprKind::Call(call) if call.function == operator::CONDITIONAL => {
                call.arguments.into_iter().next()
            }
            _ => None,
        };
        self.compile_part(source, condition).ok()
    }

    /// Compiles what `part` takes of an expression; what it takes nothing of is refused.
    fn compile_part(
        &self,
        source: &str,
        part: impl FnOnce(Expr) -> Option<Expr>,
    ) -> Result<Program, CompileErrors> {
        let mut problems = Problems::default();
        let mut parsed = parser::parse(source, self.libraries, &mut problems);
        if !problems.is_empty() {
            return Err(problems.into_errors(source));
        }
        let whole = parsed.expr.id;
        let Some(expr) = part(parsed.expr) else {
            problems.report(parsed.positions.get(whole), "not of the form asked for");
            return Err(problems.into_errors(source));
        };
        parsed.expr = expr;
        let checked = check::check(
            &parsed.expr,
            &parsed.positions,
            &self.variables,
            &self.functions,
            &mut problems,
        );
        if problems.is_empty() {
            check::validate::validate(
                &parsed.expr,
                &checked,
                &parsed.positions,
                self.mixed,
                &mut problems,
            );
        }
        if !problems.is_empty() {
            return Err(problems.into_errors(source));
        }
        let (root, slots) = plan::plan(&parsed.expr, &checked)
            .map_err(|error| CompileErrors::program(source, &error))?;
        let mut referenced = Vec::new();
        collect_references(&parsed.expr, &checked, &mut referenced);
        Ok(Program::new(Inner {
            source: source.into(),
            root,
            slots,
            globals: self.globals.clone(),
            expr: parsed.expr,
            checked,
            referenced,
        }))
    }
}

/// Builds an [`Env`].
#[derive(Debug)]
pub struct EnvBuilder {
    variables: Vec<Variable>,
    globals: Vec<Global>,
    custom: Vec<(String, Overload)>,
    libraries: LibrarySet,
    mixed: bool,
}

impl EnvBuilder {
    /// Declares a variable of type `of`. The later of two declarations of a name wins.
    #[must_use]
    pub fn variable(self, name: &str, of: Type) -> EnvBuilder {
        self.add(name, of, None)
    }

    /// Declares a variable whose JSON a schema describes: dates become timestamps, fields are
    /// known by their escaped names, lists compare as their list type says.
    #[must_use]
    pub fn schema_variable(self, name: &str, decl: &Arc<DeclType>) -> EnvBuilder {
        match decl.cel_type("selfType") {
            Some(of) => self.add(name, of, Some(decl.clone())),
            None => self,
        }
    }

    /// Like [`EnvBuilder::schema_variable`], but the variable is an optional; bind it with
    /// [`Vars::optional_json`].
    #[must_use]
    pub fn optional_schema_variable(self, name: &str, decl: &Arc<DeclType>) -> EnvBuilder {
        match decl.cel_type("selfType") {
            Some(of) => self.add(name, Type::optional(of), Some(decl.clone())),
            None => self,
        }
    }

    fn add(mut self, name: &str, of: Type, decl: Option<Arc<DeclType>>) -> EnvBuilder {
        let name: Arc<str> = name.into();
        if let Some(index) = self.variables.iter().position(|v| v.name == name) {
            self.variables.remove(index);
            self.globals.remove(index);
        }
        self.variables.push(Variable {
            name: name.clone(),
            of,
        });
        self.globals.push(Global { name, decl });
        self
    }

    /// Declares a function `name(parameters) -> result`. `run` is only called with values of the
    /// declared types, and sees the bindings of the evaluation as well.
    #[must_use]
    pub fn function<F>(self, name: &str, parameters: Vec<Type>, result: Type, run: F) -> EnvBuilder
    where
        F: for<'a> Fn(&Vars<'a>, &[Value<'a>]) -> Result<Value<'a>, EvalError>
            + Send
            + Sync
            + 'static,
    {
        self.add_function(name, false, parameters, result, run)
    }

    /// Declares a member function `parameters[0].name(parameters[1..]) -> result`.
    #[must_use]
    pub fn method<F>(self, name: &str, parameters: Vec<Type>, result: Type, run: F) -> EnvBuilder
    where
        F: for<'a> Fn(&Vars<'a>, &[Value<'a>]) -> Result<Value<'a>, EvalError>
            + Send
            + Sync
            + 'static,
    {
        self.add_function(name, true, parameters, result, run)
    }

    fn add_function<F>(
        mut self,
        name: &str,
        member: bool,
        parameters: Vec<Type>,
        result: Type,
        run: F,
    ) -> EnvBuilder
    where
        F: for<'a> Fn(&Vars<'a>, &[Value<'a>]) -> Result<Value<'a>, EvalError>
            + Send
            + Sync
            + 'static,
    {
        let id = format!("custom_{name}_{}", self.custom.len());
        let implementation = Implementation::Custom(Arc::new(run));
        let overload = Overload::new(&id, member, parameters, result, implementation);
        self.custom.push((name.to_owned(), overload));
        self
    }

    /// Restricts the libraries, for example to [`LibrarySet::KUBERNETES`], what a Kubernetes API
    /// server of version 1.35 knows.
    #[must_use]
    pub fn libraries(mut self, libraries: LibrarySet) -> EnvBuilder {
        self.libraries = libraries;
        self
    }

    /// Lets lists and maps that are written in an expression have elements of several types, as CEL
    /// itself does: `{'ready': true, 'message': 'all there'}`. A Kubernetes API server refuses them
    /// in the rules that it runs, and so does an environment by default.
    #[must_use]
    pub fn mixed_literals(mut self) -> EnvBuilder {
        self.mixed = true;
        self
    }

    /// The environment.
    pub fn build(self) -> Env {
        let mut functions = library::functions(self.libraries);
        if !self.custom.is_empty() {
            let mut extended = (*functions).clone();
            for (name, overload) in self.custom {
                extended.insert(&name, overload);
            }
            functions = Arc::new(extended);
        }
        Env {
            variables: self.variables.into(),
            globals: Globals {
                variables: self.globals.into(),
            },
            functions,
            libraries: self.libraries,
            mixed: self.mixed,
        }
    }
}

fn collect_references(expr: &Expr, checked: &Checked, found: &mut Vec<usize>) {
    if let Some(Reference::Global(index)) = checked.reference(expr.id) {
        if !found.contains(index) {
            found.push(*index);
        }
        return;
    }
    let mut visit = |expr: &Expr| collect_references(expr, checked, found);
    match &expr.kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => visit(&select.operand),
        ExprKind::Call(call) => call.target.iter().chain(&call.arguments).for_each(visit),
        ExprKind::List(elements) => elements.iter().for_each(|element| visit(&element.value)),
        ExprKind::Map(entries) => {
            for entry in entries {
                visit(&entry.key);
                visit(&entry.value);
            }
        }
        ExprKind::Struct(_, fields) => fields.iter().for_each(|field| visit(&field.value)),
        ExprKind::Comprehension(fold) => {
            for part in [
                &fold.range,
                &fold.init,
                &fold.condition,
                &fold.step,
                &fold.result,
            ] {
                visit(part);
            }
        }
    }
}

#[cfg(test)]
mod tests;
