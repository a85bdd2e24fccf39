//! Scopes and the resolution of identifiers.

use std::sync::Arc;

use super::{Compiler, import_path};
use crate::ast::{self, DeclKind, LabelKind};
use crate::builtins;
use crate::ir::{
    BoundOp, Callee, Expr, ExprId, LetId, PackageId, PackageIr, Predeclared, Run, Source,
};
use crate::label::Label;
use crate::number::Number;
use crate::token::Span;
use crate::value::{Kind, Package, Value};

/// What a name in a scope stands for.
#[derive(Debug, Clone)]
pub(super) enum Binding {
    Field(Label),
    /// A field whose label is computed; the expression is compiled in the scope itself.
    Dynamic(ExprId),
    Let(usize),
    ForKey,
    ForValue,
    ClauseLet,
    PatternLabel,
    SelfValue,
}

/// A `let` declaration: compiled when first referenced, so that order does not matter.
#[derive(Debug)]
pub(super) struct LetEntry<'a> {
    pub(super) value: &'a ast::Expr,
    pub(super) state: LetState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetState {
    Pending,
    Compiling,
    Done(LetId),
}

/// One lexical scope; at run time each is one environment.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) names: Vec<(Arc<str>, Binding)>,
    pub(super) lets: Vec<LetEntry<'a>>,
    /// Aliases and lets that must be referenced: name, place, whether seen.
    pub(super) aliases: Vec<(Arc<str>, Span, bool)>,
}

impl Scope<'_> {
    pub(super) fn bind(name: &Arc<str>, binding: Binding) -> Self {
        Self {
            names: vec![(name.clone(), binding)],
            ..Self::default()
        }
    }

    fn find(&self, name: &str) -> Option<&Binding> {
        self.names
            .iter()
            .find(|(known, _)| &**known == name)
            .map(|(_, binding)| binding)
    }
}

/// An imported package as seen by one file.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) name: Arc<str>,
    pub(super) span: Span,
    pub(super) path: Arc<str>,
    pub(super) used: bool,
    pub(super) target: Option<Target>,
}

/// What an import gives access to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) builtin: Option<&'static Package>,
    pub(super) source: Option<PackageId>,
}

impl<'a> Compiler<'a> {
    /// Opens the scope of a struct literal or file.
    pub(super) fn open_scope(&mut self, decls: &'a [ast::Decl]) {
        let mut scope = Scope::default();
        for decl in decls {
            match &decl.kind {
                DeclKind::Field(field) => self.declare_field(&mut scope, field),
                DeclKind::Let(declared) => {
                    let name = &declared.name;
                    if &*name.name == "_" {
                        self.error(name.span, "cannot use _ as alias or let clause");
                        continue;
                    }
                    self.check_redeclared(&scope, name);
                    let entry = LetEntry {
                        value: &declared.value,
                        state: LetState::Pending,
                    };
                    scope.lets.push(entry);
                    let binding = Binding::Let(scope.lets.len() - 1);
                    scope.names.insert(0, (name.name.clone(), binding));
                    scope.aliases.push((name.name.clone(), name.span, false));
                }
                _ => {}
            }
        }
        self.scopes.push(scope);
        self.bind_dynamic_aliases(decls);
    }

    fn check_redeclared(&mut self, scope: &Scope<'_>, name: &ast::Ident) {
        match scope.find(&name.name) {
            None => {}
            Some(Binding::Field(_)) if !scope.aliases.iter().any(|(n, ..)| *n == name.name) => {
                let text = format!(
                    "cannot have both alias and field with name \"{}\" in same scope",
                    name.name
                );
                self.error(name.span, text);
            }
            Some(_) => {
                let text = format!("alias \"{}\" redeclared in same scope", name.name);
                self.error(name.span, text);
            }
        }
    }

    fn declare_field(&mut self, scope: &mut Scope<'a>, field: &ast::Field) {
        if let LabelKind::Ident(name) = &field.label.kind {
            let clash = scope.aliases.iter().any(|(alias, ..)| alias == name);
            if clash {
                let text =
                    format!("cannot have both alias and field with name \"{name}\" in same scope");
                self.error(field.label.span, text);
            }
            if scope.find(name).is_none() {
                let label = self.labels.identifier(name, self.package);
                scope.names.push((name.clone(), Binding::Field(label)));
            }
        }
        let Some(alias) = &field.alias else { return };
        if &*alias.name == "_" {
            self.error(alias.span, "cannot use _ as alias or let clause");
            return;
        }
        let binding = match &field.label.kind {
            LabelKind::Ident(name) => Binding::Field(self.labels.identifier(name, self.package)),
            LabelKind::String(name) => Binding::Field(self.labels.string(name)),
            // Bound while the value is compiled, or once the scope is open.
            LabelKind::Pattern { .. } | LabelKind::Interpolation(_) | LabelKind::Dynamic(_) => {
                return;
            }
        };
        self.check_redeclared(scope, alias);
        scope.names.push((alias.name.clone(), binding));
        scope.aliases.push((alias.name.clone(), alias.span, false));
    }

    /// Aliases of computed labels need the scope open, because the label is an expression in it.
    fn bind_dynamic_aliases(&mut self, decls: &'a [ast::Decl]) {
        for decl in decls {
            let DeclKind::Field(field) = &decl.kind else {
                continue;
            };
            let Some(alias) = &field.alias else { continue };
            let key = match &field.label.kind {
                LabelKind::Interpolation(interpolation) => {
                    self.interpolation(interpolation, field.label.span)
                }
                LabelKind::Dynamic(key) => self.expr(key),
                _ => continue,
            };
            if let Some(scope) = self.scopes.last_mut() {
                scope
                    .names
                    .push((alias.name.clone(), Binding::Dynamic(key)));
                scope.aliases.push((alias.name.clone(), alias.span, false));
            }
        }
    }

    /// Closes the innermost scope; unreferenced aliases are errors.
    pub(super) fn close_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        for (name, span, used) in scope.aliases {
            if !used {
                self.error(span, format!("unreferenced alias or let clause {name}"));
            }
        }
    }

    /// Resolves an identifier used as a value.
    pub(super) fn identifier(&mut self, name: &Arc<str>, span: Span) -> ExprId {
        if &**name == "_" {
            return self.add(Expr::Top, span);
        }
        for index in (0..self.scopes.len()).rev() {
            let Some(binding) = self.scopes[index].find(name).cloned() else {
                continue;
            };
            self.mark_used(index, name);
            let up = u32::try_from(self.scopes.len() - 1 - index).unwrap_or(u32::MAX);
            return self.bound(&binding, index, up, span);
        }
        if let Some(import) = self.imports.iter_mut().find(|import| import.name == *name) {
            import.used = true;
            return match import.target.and_then(|target| target.source) {
                Some(package) => self.add(Expr::Import(package), span),
                None => self.bottom(span, format!("package {name:?} used as value")),
            };
        }
        if let Some(label) = self.package_names.get(name).copied() {
            let up = u32::try_from(self.scopes.len().saturating_sub(1)).unwrap_or(u32::MAX);
            return self.add(Expr::Field { up, label }, span);
        }
        match self.predeclared(name) {
            Some(expr) => self.add(expr, span),
            None => self.bottom(span, format!("reference \"{name}\" not found")),
        }
    }

    fn mark_used(&mut self, index: usize, name: &str) {
        for (alias, _, used) in &mut self.scopes[index].aliases {
            if &**alias == name {
                *used = true;
            }
        }
    }

    fn bound(&mut self, binding: &Binding, index: usize, up: u32, span: Span) -> ExprId {
        let expr = match *binding {
            Binding::Field(label) => Expr::Field { up, label },
            Binding::Dynamic(key) => Expr::DynamicField { up, key },
            Binding::ForKey => Expr::ForKey { up },
            Binding::ForValue => Expr::ForValue { up },
            Binding::ClauseLet => Expr::ClauseLet { up },
            Binding::PatternLabel => Expr::PatternLabel { up },
            Binding::SelfValue => Expr::SelfValue { up },
            Binding::Let(entry) => match self.compile_let(index, entry) {
                Some(id) => Expr::Let { up, id },
                None => {
                    return self.bottom(span, "cyclic references in let clause or alias");
                }
            },
        };
        self.add(expr, span)
    }

    /// Compiles a `let` in the scope that declares it; `None` when it refers to itself.
    fn compile_let(&mut self, index: usize, entry: usize) -> Option<LetId> {
        let declared = &mut self.scopes[index].lets[entry];
        match declared.state {
            LetState::Done(id) => return Some(id),
            LetState::Compiling => return None,
            LetState::Pending => declared.state = LetState::Compiling,
        }
        let value = declared.value;
        let inner = self.scopes.split_off(index + 1);
        let expr = self.expr(value);
        self.scopes.extend(inner);
        let id = LetId(u32::try_from(self.program.lets.len()).unwrap_or(u32::MAX));
        self.program.lets.push(expr);
        self.scopes[index].lets[entry].state = LetState::Done(id);
        Some(id)
    }

    /// Reads the imports of a file, compiling the packages that are seen first.
    pub(super) fn open_imports(&mut self, file: &'a ast::File) {
        for spec in file.imports.iter().flat_map(|import| &import.specs) {
            let path = import_path(&spec.path);
            let last = path.rsplit('/').next().unwrap_or(path);
            let last = last.split_once('@').map_or(last, |(name, _)| name);
            let name: Arc<str> = match (&spec.name, spec.path.split_once(':')) {
                (Some(name), _) => name.name.clone(),
                (None, Some((_, qualifier))) => qualifier.into(),
                (None, None) => self.declared_name(path).unwrap_or_else(|| last.into()),
            };
            let target = self.import(path, spec.path_span);
            let path = spec.path.clone();
            self.imports.push(Import {
                name,
                span: spec.span,
                path,
                used: false,
                target,
            });
        }
    }

    fn declared_name(&self, path: &str) -> Option<Arc<str>> {
        let files = self.packages.get(path)?;
        files
            .iter()
            .find_map(|file| file.package.as_ref())
            .map(|clause| clause.name.name.clone())
    }

    fn import(&mut self, path: &str, span: Span) -> Option<Target> {
        let builtin = if self.packages.contains_key(path) {
            None
        } else {
            builtins::package(path)
        };
        if let Some(id) = self.by_path.get(path) {
            return Some(Target {
                builtin,
                source: Some(*id),
            });
        }
        let files = self.packages.get(path).or_else(|| self.builtin.get(path));
        let Some(files) = files else {
            if builtin.is_some() {
                return Some(Target {
                    builtin,
                    source: None,
                });
            }
            let first = path.split('/').next().unwrap_or(path);
            let text = if first.contains('.') {
                format!("package \"{path}\" not found")
            } else {
                format!("builtin package \"{path}\" undefined")
            };
            self.error(span, text);
            return None;
        };
        let id = PackageId(u32::try_from(self.program.packages.len()).unwrap_or(u32::MAX));
        // Registered before its body is compiled, so that an import cycle ends here.
        self.by_path.insert(path.into(), id);
        self.program.packages.push(PackageIr { files: Vec::new() });
        self.package(id, files);
        Some(Target {
            builtin,
            source: Some(id),
        })
    }

    /// Reports the imports of the current file that nothing refers to.
    pub(super) fn close_imports(&mut self) {
        for import in std::mem::take(&mut self.imports) {
            if !import.used {
                let last = import.path.rsplit('/').next().unwrap_or(&import.path);
                let text = if last == &*import.name || import.path.contains(':') {
                    format!("imported and not used: \"{}\"", import.path)
                } else {
                    format!(
                        "imported and not used: \"{}\" as {}",
                        import.path, import.name
                    )
                };
                self.error(import.span, text);
            }
        }
    }

    pub(super) fn open_file(&mut self, file: &ast::File) {
        self.file = u16::try_from(self.program.sources.len()).unwrap_or(u16::MAX);
        self.program.sources.push(Source {
            name: file.name.clone(),
            text: file.source.clone(),
            lines: file.lines.clone(),
        });
    }
}

impl Compiler<'_> {
    fn predeclared(&mut self, name: &str) -> Option<Expr> {
        let name = name.strip_prefix("__").unwrap_or(name);
        let function = |function| Some(Expr::Function(Callee::Predeclared(function)));
        match name {
            "string" => Some(Expr::Type(Kind::STRING)),
            "bytes" => Some(Expr::Type(Kind::BYTES)),
            "bool" => Some(Expr::Type(Kind::BOOL)),
            "int" => Some(Expr::Type(Kind::INT)),
            "float" => Some(Expr::Type(Kind::FLOAT)),
            "number" => Some(Expr::Type(Kind::NUMBER)),
            "len" => function(Predeclared::Len),
            "close" => function(Predeclared::Close),
            "and" => function(Predeclared::And),
            "or" => function(Predeclared::Or),
            "div" => function(Predeclared::Div),
            "mod" => function(Predeclared::Mod),
            "quo" => function(Predeclared::Quo),
            "rem" => function(Predeclared::Rem),
            "error" => function(Predeclared::Error),
            "matchN" => function(Predeclared::MatchN),
            "matchIf" => function(Predeclared::MatchIf),
            "no_sharing" => Some(Expr::Top),
            _ => {
                let (kind, bounds) = range(name)?;
                let bounds = Run::append(&mut self.program.bounds, bounds);
                Some(Expr::Range(kind, bounds))
            }
        }
    }
}

/// The sized numbers: a type and its bounds.
fn range(name: &str) -> Option<(Kind, Vec<(BoundOp, Value)>)> {
    const FLOAT32: &str = "3.40282346638528859811704183484516925440e+38";
    const FLOAT64: &str = "1.797693134862315708145274237317043567981e+308";
    let (low, high): (&str, &str) = match name {
        "rune" => ("0", "1114111"),
        "int8" => ("-128", "127"),
        "int16" => ("-32768", "32767"),
        "int32" => ("-2147483648", "2147483647"),
        "int64" => ("-9223372036854775808", "9223372036854775807"),
        "int128" => (
            "-170141183460469231731687303715884105728",
            "170141183460469231731687303715884105727",
        ),
        "uint" => ("0", ""),
        "uint8" => ("0", "255"),
        "uint16" => ("0", "65535"),
        "uint32" => ("0", "4294967295"),
        "uint64" => ("0", "18446744073709551615"),
        "uint128" => ("0", "340282366920938463463374607431768211455"),
        "float32" => ("-", FLOAT32),
        "float64" => ("-", FLOAT64),
        _ => return None,
    };
    let number = |text: &str| Number::parse_literal(text).ok();
    if low == "-" {
        let high = number(high)?;
        let bounds = vec![
            (BoundOp::GreaterEqual, Value::Number(high.negated())),
            (BoundOp::LessEqual, Value::Number(high)),
        ];
        return Some((Kind::NUMBER, bounds));
    }
    let low = match low.strip_prefix('-') {
        Some(digits) => number(digits)?.negated(),
        None => number(low)?,
    };
    let mut bounds = vec![(BoundOp::GreaterEqual, Value::Number(low))];
    if !high.is_empty() {
        bounds.push((BoundOp::LessEqual, Value::Number(number(high)?)));
    }
    Some((Kind::INT, bounds))
}
