//! From syntax to the compiled form: names are resolved, labels interned, and
//! everything that can be rejected without evaluation is rejected here.

mod expression;
mod scope;
mod structure;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast;
use crate::builtins;
use crate::diagnostic::{Diagnostic, Location, Phase};
use crate::ir::{
    Comprehension, ConstId, Expr, ExprId, Meta, MetaId, Origin, PackageId, PackageIr, Program,
    StructId, StructLit,
};
use crate::label::{Interner, Label};
use crate::token::Span;
use crate::value::Value;

use self::scope::{Import, Scope};

pub(crate) use self::tree::{compile_pair, compile_tree};

/// Parsed packages that a compilation may import, by import path.
pub type Packages = HashMap<Arc<str>, Vec<ast::File>>;

/// Compiles the files of one package, and what they import from `packages` or from the builtin
/// ones.
pub fn compile(files: &[ast::File], packages: &Packages) -> Result<Program, Vec<Diagnostic>> {
    let builtin = builtin_sources(files, packages);
    let mut compiler = Compiler::new(packages, &builtin);
    compiler
        .program
        .packages
        .push(PackageIr { files: Vec::new() });
    compiler.refuse_constraints(files);
    compiler.package(PackageId(0), files);
    if compiler.diagnostics.is_empty() {
        compiler.program.labels = Arc::new(compiler.labels);
        Ok(compiler.program)
    } else {
        Err(compiler.diagnostics)
    }
}

/// The parsed CUE parts of the builtin packages that are imported directly or indirectly.
fn builtin_sources(files: &[ast::File], packages: &Packages) -> Packages {
    let mut found = Packages::new();
    let mut seen: Vec<Arc<str>> = Vec::new();
    let mut todo: Vec<&ast::ImportSpec> = specs(files).collect();
    while let Some(spec) = todo.pop() {
        let path = import_path(&spec.path);
        if seen.iter().any(|known| **known == *path) {
            continue;
        }
        seen.push(path.into());
        if let Some(imported) = packages.get(path) {
            todo.extend(specs(imported));
        } else if let Some(package) = builtins::package(path) {
            let (file, _) = crate::parser::parse_file(path, package.source);
            found.insert(path.into(), vec![file]);
        }
    }
    found
}

fn specs(files: &[ast::File]) -> impl Iterator<Item = &ast::ImportSpec> {
    files
        .iter()
        .flat_map(|file| &file.imports)
        .flat_map(|import| &import.specs)
}

/// The path without a `:name` qualifier.
fn import_path(path: &str) -> &str {
    path.split_once(':').map_or(path, |(path, _)| path)
}

struct Compiler<'a> {
    packages: &'a Packages,
    builtin: &'a Packages,
    program: Program,
    labels: Interner,
    by_path: HashMap<Arc<str>, PackageId>,
    diagnostics: Vec<Diagnostic>,
    scopes: Vec<Scope<'a>>,
    imports: Vec<Import>,
    /// Names declared at the top of any file of the package being compiled.
    package_names: HashMap<Arc<str>, Label>,
    package: u32,
    file: u16,
    /// Comments above `a: b: 1`, on their way to the innermost field.
    chained_docs: Vec<Arc<str>>,
}

impl<'a> Compiler<'a> {
    fn new(packages: &'a Packages, builtin: &'a Packages) -> Self {
        Self {
            packages,
            builtin,
            program: Program {
                exprs: Vec::new(),
                constants: Vec::new(),
                bounds: Vec::new(),
                operands: Vec::new(),
                elements: Vec::new(),
                terms: Vec::new(),
                origins: Vec::new(),
                structs: Vec::new(),
                comprehensions: Vec::new(),
                lets: Vec::new(),
                metas: vec![Meta::default()],
                packages: Vec::new(),
                labels: Arc::default(),
                sources: Vec::new(),
            },
            labels: Interner::default(),
            by_path: HashMap::new(),
            diagnostics: Vec::new(),
            scopes: Vec::new(),
            imports: Vec::new(),
            package_names: HashMap::new(),
            package: 0,
            file: 0,
            chained_docs: Vec::new(),
        }
    }

    fn add(&mut self, expr: Expr, span: Span) -> ExprId {
        let id = ExprId(u32::try_from(self.program.exprs.len()).unwrap_or(u32::MAX));
        self.program.exprs.push(expr);
        self.program.origins.push(Origin {
            file: self.file,
            span,
            focus: span.start,
        });
        id
    }

    fn add_value(&mut self, value: Value, span: Span) -> ExprId {
        let id = ConstId(u32::try_from(self.program.constants.len()).unwrap_or(u32::MAX));
        self.program.constants.push(value);
        self.add(Expr::Value(id), span)
    }

    fn add_struct(&mut self, literal: StructLit) -> StructId {
        let id = StructId(u32::try_from(self.program.structs.len()).unwrap_or(u32::MAX));
        self.program.structs.push(literal);
        id
    }

    fn add_comprehension(&mut self, comprehension: Comprehension) -> crate::ir::ComprehensionId {
        let id = u32::try_from(self.program.comprehensions.len()).unwrap_or(u32::MAX);
        self.program.comprehensions.push(comprehension);
        crate::ir::ComprehensionId(id)
    }

    fn add_meta(&mut self, meta: Meta) -> MetaId {
        if meta.docs.is_empty() && meta.attributes.is_empty() {
            return MetaId(0);
        }
        let id = MetaId(u32::try_from(self.program.metas.len()).unwrap_or(0));
        self.program.metas.push(meta);
        id
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        let location = self
            .program
            .sources
            .get(usize::from(self.file))
            .map(|source| Location {
                file: source.name.clone(),
                at: source.lines.locate(span.start),
            });
        let diagnostic = Diagnostic::at(Phase::Build, message, location);
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether a file takes part is decided before it is compiled; a constraint that is still there
    /// would be ignored.
    fn refuse_constraints(&mut self, files: &[ast::File]) {
        for file in files {
            let constraint = |attribute: &&ast::Attribute| attribute.name() == "if";
            if let Some(attribute) = file.attributes.iter().find(constraint) {
                let location = Location {
                    file: file.name.clone(),
                    at: file.lines.locate(attribute.span.start),
                };
                let message = format!(
                    "@if({}): files must be selected by their build constraints before they are \
                     compiled",
                    attribute.body()
                );
                self.diagnostics
                    .push(Diagnostic::at(Phase::Build, message, Some(location)));
            }
        }
    }

    fn bottom(&mut self, span: Span, message: impl Into<String>) -> ExprId {
        self.error(span, message);
        self.add(Expr::Bottom, span)
    }

    fn package(&mut self, id: PackageId, files: &'a [ast::File]) {
        let saved = (
            std::mem::take(&mut self.scopes),
            std::mem::take(&mut self.imports),
            std::mem::take(&mut self.package_names),
            self.package,
            self.file,
        );
        self.package = id.0;
        for decl in files.iter().flat_map(|file| &file.decls) {
            if let ast::DeclKind::Field(field) = &decl.kind
                && let ast::LabelKind::Ident(name) = &field.label.kind
            {
                let label = self.labels.identifier(name, self.package);
                self.package_names.insert(name.clone(), label);
            }
        }
        for file in files {
            let literal = self.file(file);
            self.program.packages[id.0 as usize].files.push(literal);
        }
        (
            self.scopes,
            self.imports,
            self.package_names,
            self.package,
            self.file,
        ) = saved;
    }
}
