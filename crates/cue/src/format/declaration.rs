//! Declarations: comments around them, blank lines between them, values in columns.

use super::Printer;
use crate::ast::{CommentGroup, Comments, Constraint, Decl, DeclKind, ExprKind, Field, LabelKind};

/// A field that shares a column with its neighbours: label, value, trailing comment.
struct Row {
    label: String,
    value: String,
    comment: String,
}

impl Printer<'_> {
    /// Comment groups above a declaration.
    pub(super) fn leading(&mut self, comments: &Comments) {
        for (position, group) in comments.leading.iter().enumerate() {
            self.comment_lines(group);
            let last = position + 1 == comments.leading.len();
            if !last || !comments.leading_attached {
                self.output.push('\n');
            }
            self.new_line();
        }
    }

    /// Comments on the line of a declaration.
    pub(super) fn trailing(&mut self, comments: &Comments) {
        let text = trailing_text(comments);
        if !text.is_empty() {
            self.output.push(' ');
            self.output.push_str(&text);
        }
    }

    /// Declarations, each on its own line, with the comments after the last one. The output ends
    /// without a line break.
    pub(super) fn declarations(&mut self, decls: &[Decl], end: &[CommentGroup]) {
        let mut rows: Vec<Row> = Vec::new();
        let mut previous_end = None;
        for decl in decls {
            let start = first_offset(decl);
            let blank = previous_end.is_some_and(|end| self.line(start) > self.line(end) + 1);
            let aligned = self.row(decl);
            let joins = aligned.is_some() && !blank && decl.comments.leading.is_empty();
            if !joins {
                self.flush(&mut rows);
            }
            if previous_end.is_some() && rows.is_empty() {
                if blank {
                    self.output.push('\n');
                }
                self.new_line();
            }
            if rows.is_empty() {
                self.leading(&decl.comments);
            }
            if let Some(row) = aligned {
                rows.push(row);
            } else {
                self.declaration(decl);
                self.trailing(&decl.comments);
            }
            previous_end = Some(last_offset(decl));
        }
        self.flush(&mut rows);
        for (position, group) in end.iter().enumerate() {
            if !decls.is_empty() || position > 0 {
                let start = group
                    .comments
                    .first()
                    .map_or(0, |comment| comment.span.start);
                let gap = previous_end.is_some_and(|end| self.line(start) > self.line(end) + 1);
                if gap || position > 0 {
                    self.output.push('\n');
                }
                self.new_line();
            }
            self.comment_lines(group);
        }
    }

    /// The declaration as a row, when it is a field with a short value.
    fn row(&self, decl: &Decl) -> Option<Row> {
        let DeclKind::Field(field) = &decl.kind else {
            return None;
        };
        let bulky = |kind: &ExprKind| matches!(kind, ExprKind::Struct(_) | ExprKind::List(_));
        let aligned = match &field.value.kind {
            ExprKind::Alias { value, .. } => !bulky(&value.kind),
            kind => !bulky(kind),
        };
        if !aligned {
            return None;
        }
        let label = self.captured(|printer| printer.label(field));
        let value = self.captured(|printer| printer.value(field));
        if value.contains('\n') {
            return None;
        }
        Some(Row {
            label,
            value,
            comment: trailing_text(&decl.comments),
        })
    }

    /// Prints rows with their values, and then their comments, in columns.
    fn flush(&mut self, rows: &mut Vec<Row>) {
        let width = |text: &str| text.chars().count();
        let label_width = rows.iter().map(|row| width(&row.label)).max().unwrap_or(0);
        let count = rows.len();
        for (position, row) in rows.iter().enumerate() {
            if position > 0 {
                self.new_line();
            }
            self.output.push_str(&row.label);
            let blanks = label_width - width(&row.label) + 1;
            self.output.extend(std::iter::repeat_n(' ', blanks));
            self.output.push_str(&row.value);
            if !row.comment.is_empty() {
                // Comments line up with those of adjacent rows.
                let first = (0..position)
                    .rev()
                    .take_while(|i| !rows[*i].comment.is_empty())
                    .last();
                let run = rows[first.unwrap_or(position)..count]
                    .iter()
                    .take_while(|row| !row.comment.is_empty());
                let value_width = run.map(|row| width(&row.value)).max().unwrap_or(0);
                let blanks = value_width - width(&row.value) + 1;
                self.output.extend(std::iter::repeat_n(' ', blanks));
                self.output.push_str(&row.comment);
            }
        }
        rows.clear();
    }

    pub(super) fn declaration(&mut self, decl: &Decl) {
        match &decl.kind {
            DeclKind::Field(field) => {
                self.label(field);
                self.output.push(' ');
                self.value(field);
            }
            DeclKind::Let(binding) => {
                self.output.push_str("let ");
                self.output.push_str(&binding.name.name);
                self.output.push_str(" = ");
                self.expression(&binding.value);
            }
            DeclKind::Embed(expr) => self.expression(expr),
            DeclKind::Ellipsis(bound) => {
                self.output.push_str("...");
                if let Some(bound) = bound {
                    self.expression(bound);
                }
            }
            DeclKind::Comprehension(comprehension) => self.comprehension(comprehension),
            DeclKind::Attribute(attribute) => self.output.push_str(&attribute.text),
            DeclKind::Bad => {
                let text = self.written(decl.span).to_owned();
                self.output.push_str(&text);
            }
        }
    }

    /// A label with its colon.
    fn label(&mut self, field: &Field) {
        if let Some(alias) = &field.alias {
            self.output.push_str(&alias.name);
            self.output.push('=');
        }
        match &field.label.kind {
            LabelKind::Ident(name) => self.output.push_str(name),
            LabelKind::String(_) | LabelKind::Interpolation(_) => {
                let text = self.written(field.label.span).to_owned();
                self.output.push_str(&text);
            }
            LabelKind::Dynamic(key) => {
                self.output.push('(');
                self.expression(key);
                self.output.push(')');
            }
            LabelKind::Pattern { alias, pattern } => {
                self.output.push('[');
                if let Some(alias) = alias {
                    self.output.push_str(&alias.name);
                    self.alias_sign(pattern);
                }
                self.expression(pattern);
                self.output.push(']');
            }
        }
        self.output.push_str(match field.constraint {
            Constraint::None => ":",
            Constraint::Optional => "?:",
            Constraint::Required => "!:",
        });
    }

    /// The value of a field and its attributes.
    fn value(&mut self, field: &Field) {
        match &field.value.kind {
            // `a: b: 1` stays a chain unless a comment asks for braces.
            ExprKind::Struct(literal) if !literal.braces => match literal.decls.as_slice() {
                [decl] => {
                    self.declaration(decl);
                    self.trailing(&decl.comments);
                }
                _ => self.expression(&field.value),
            },
            _ => self.expression(&field.value),
        }
        for attribute in &field.attributes {
            self.output.push(' ');
            self.output.push_str(&attribute.text);
        }
    }
}

fn trailing_text(comments: &Comments) -> String {
    let lines = comments.trailing.iter().flat_map(|group| &group.comments);
    let lines: Vec<&str> = lines.map(|comment| &*comment.text).collect();
    lines.join(" ")
}

/// Where a declaration begins, its comments included.
pub(super) fn first_offset(decl: &Decl) -> u32 {
    let comment = decl
        .comments
        .leading
        .first()
        .and_then(|group| group.comments.first());
    comment.map_or(decl.span.start, |comment| comment.span.start)
}

/// Where a declaration ends, its comments included.
fn last_offset(decl: &Decl) -> u32 {
    let comment = decl
        .comments
        .trailing
        .last()
        .and_then(|group| group.comments.last());
    comment
        .map_or(0, |comment| comment.span.end)
        .max(decl.span.end)
}
