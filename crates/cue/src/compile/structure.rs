//! Struct literals, fields and comprehensions.

use super::Compiler;
use super::scope::{Binding, Scope};
use crate::ast::{self, ClauseKind, Constraint, DeclKind, ExprKind, LabelKind};
use crate::ir::{
    ArcKind, Clause, Comprehension, Decl, Expr, ExprId, Meta, Run, StructId, StructLit,
};
use crate::token::{FileId, Pos, Span};
use crate::value::Value;

impl<'a> Compiler<'a> {
    pub(super) fn file(&mut self, file: &'a ast::File) -> StructId {
        self.open_file(file);
        let index = self.file;
        self.open_imports(file);
        self.file = index;
        let decls = self.members(&file.decls);
        self.close_imports();
        self.finish_struct(decls, true, Span::default())
    }

    pub(super) fn struct_literal(&mut self, literal: &'a ast::StructLit, span: Span) -> StructId {
        let decls = self.members(&literal.decls);
        self.finish_struct(decls, false, span)
    }

    pub(super) fn finish_struct(
        &mut self,
        decls: Vec<Decl>,
        is_file: bool,
        span: Span,
    ) -> StructId {
        let embeds = |decl: &Decl| matches!(decl, Decl::Embed(_) | Decl::Comprehension(_));
        let has_embedding = decls.iter().any(embeds);
        let has_ellipsis = decls.iter().any(|decl| matches!(decl, Decl::Ellipsis));
        let pos = Pos {
            file: FileId(self.file),
            offset: span.start,
        };
        self.add_struct(StructLit {
            decls,
            is_file,
            has_embedding,
            has_ellipsis,
            pos,
        })
    }

    fn members(&mut self, decls: &'a [ast::Decl]) -> Vec<Decl> {
        self.open_scope(decls);
        let mut members = Vec::with_capacity(decls.len());
        for decl in decls {
            match &decl.kind {
                DeclKind::Field(field) => {
                    let meta = self.meta(decl, field);
                    members.extend(self.field(field, meta));
                }
                DeclKind::Embed(expr) => members.push(Decl::Embed(self.expr(expr))),
                DeclKind::Ellipsis(value) => {
                    if let Some(value) = value
                        && !matches!(&value.kind, ExprKind::Ident(name) if &**name == "_")
                    {
                        self.error(value.span, "unsupported ellipsis with type in struct");
                    }
                    members.push(Decl::Ellipsis);
                }
                DeclKind::Comprehension(comprehension) => {
                    if let Some(id) = self.comprehension(comprehension) {
                        members.push(Decl::Comprehension(id));
                    }
                }
                DeclKind::Let(_) | DeclKind::Attribute(_) | DeclKind::Bad => {}
            }
        }
        self.close_scope();
        members
    }

    /// Comments and attributes of a field. In `a: b: 1` the comments above document the innermost
    /// field, as they do in the reference.
    fn meta(&mut self, decl: &ast::Decl, field: &ast::Field) -> crate::ir::MetaId {
        if decl.comments.is_empty() && field.attributes.is_empty() && self.chained_docs.is_empty() {
            return crate::ir::MetaId(0);
        }
        let mut docs = std::mem::take(&mut self.chained_docs);
        let lines = decl.comments.docs().flat_map(|group| &group.comments);
        docs.extend(lines.map(|comment| comment.text.clone()));
        if matches!(&field.value.kind, ExprKind::Struct(literal) if !literal.braces) {
            self.chained_docs = std::mem::take(&mut docs);
        }
        self.add_meta(Meta {
            docs,
            attributes: field.attributes.clone(),
        })
    }

    fn field(&mut self, field: &'a ast::Field, meta: crate::ir::MetaId) -> Option<Decl> {
        let kind = match field.constraint {
            Constraint::None => ArcKind::Member,
            Constraint::Optional => ArcKind::Optional,
            Constraint::Required => ArcKind::Required,
        };
        match &field.label.kind {
            LabelKind::Ident(name) => {
                if &**name == "_" {
                    self.error(field.label.span, "cannot use _ as label");
                    return None;
                }
                let label = self.labels.identifier(name, self.package);
                let value = self.field_value(&field.value);
                Some(Decl::Field {
                    label,
                    kind,
                    value,
                    meta,
                })
            }
            LabelKind::String(name) => {
                let label = self.labels.string(name);
                let value = self.field_value(&field.value);
                Some(Decl::Field {
                    label,
                    kind,
                    value,
                    meta,
                })
            }
            LabelKind::Interpolation(interpolation) => {
                let key = self.interpolation(interpolation, field.label.span);
                let value = self.field_value(&field.value);
                Some(Decl::Dynamic {
                    key,
                    kind,
                    value,
                    meta,
                })
            }
            LabelKind::Dynamic(key) => {
                let key = self.expr(key);
                let value = self.field_value(&field.value);
                Some(Decl::Dynamic {
                    key,
                    kind,
                    value,
                    meta,
                })
            }
            LabelKind::Pattern { alias, pattern } => {
                if kind != ArcKind::Member {
                    self.error(field.label.span, "pattern constraint cannot be optional");
                }
                Some(self.pattern(field, alias.as_ref(), pattern, meta))
            }
        }
    }

    fn pattern(
        &mut self,
        field: &'a ast::Field,
        alias: Option<&'a ast::Ident>,
        pattern: &'a ast::Expr,
        meta: crate::ir::MetaId,
    ) -> Decl {
        let pattern = self.expr(pattern);
        if let Some(alias) = alias {
            if &*alias.name == "_" {
                self.error(alias.span, "cannot use _ as alias or let clause");
            }
            self.scopes
                .push(Scope::bind(&alias.name, Binding::PatternLabel));
        }
        let value = match &field.alias {
            Some(name) => {
                let mut scope = Scope::bind(&name.name, Binding::SelfValue);
                scope.aliases.push((name.name.clone(), name.span, false));
                self.scopes.push(scope);
                let inner = self.field_value(&field.value);
                self.close_scope();
                self.add(Expr::WithSelf(inner), field.value.span)
            }
            None => self.field_value(&field.value),
        };
        if alias.is_some() {
            self.scopes.pop();
        }
        Decl::Pattern {
            pattern,
            value,
            alias: alias.is_some(),
            meta,
        }
    }

    /// A field value or list element, which may bind a name to itself.
    pub(super) fn field_value(&mut self, value: &'a ast::Expr) -> ExprId {
        let ExprKind::Alias { name, value: inner } = &value.kind else {
            return self.expr(value);
        };
        if &*name.name == "_" {
            return self.bottom(name.span, "cannot use _ as alias or let clause");
        }
        let mut scope = Scope::bind(&name.name, Binding::SelfValue);
        scope.aliases.push((name.name.clone(), name.span, false));
        self.scopes.push(scope);
        let inner = self.expr(inner);
        self.close_scope();
        self.add(Expr::WithSelf(inner), value.span)
    }

    pub(super) fn comprehension(
        &mut self,
        comprehension: &'a ast::Comprehension,
    ) -> Option<crate::ir::ComprehensionId> {
        let depth = self.scopes.len();
        let mut clauses = Vec::new();
        for clause in &comprehension.clauses {
            match &clause.kind {
                ClauseKind::For { key, value, source } => {
                    let source = self.expr(source);
                    let mut scope = Scope::bind(&value.name, Binding::ForValue);
                    if let Some(key) = key {
                        scope.names.push((key.name.clone(), Binding::ForKey));
                    }
                    self.scopes.push(scope);
                    clauses.push(Clause::For { source });
                }
                ClauseKind::If(condition) => {
                    clauses.push(Clause::If {
                        condition: self.expr(condition),
                    });
                }
                ClauseKind::Let { name, value } => {
                    let value = self.expr(value);
                    self.scopes
                        .push(Scope::bind(&name.name, Binding::ClauseLet));
                    clauses.push(Clause::Let { value });
                }
            }
        }
        let ExprKind::Struct(literal) = &comprehension.value.kind else {
            self.scopes.truncate(depth);
            return None;
        };
        let value = self.struct_literal(literal, comprehension.value.span);
        let value_expr = self.add(Expr::Struct(value), comprehension.value.span);
        self.scopes.truncate(depth);
        Some(self.add_comprehension(Comprehension {
            clauses,
            value,
            value_expr,
        }))
    }

    pub(super) fn interpolation(&mut self, literal: &'a ast::Interpolation, span: Span) -> ExprId {
        let mut parts = Vec::new();
        for part in &literal.parts {
            match part {
                ast::InterpolationPart::Text(text, text_span) => {
                    let value = match std::str::from_utf8(text) {
                        Ok(text) => Value::string(text),
                        Err(_) => Value::Bytes(text.clone()),
                    };
                    parts.push(self.add_value(value, *text_span));
                }
                ast::InterpolationPart::Expr(expr) => parts.push(self.expr(expr)),
            }
        }
        let parts = Run::append(&mut self.program.operands, parts);
        self.add(
            Expr::Interpolation {
                bytes: literal.bytes,
                parts,
            },
            span,
        )
    }
}
