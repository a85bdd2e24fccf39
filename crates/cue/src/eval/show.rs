//! Printing values on one line, as messages quote them.

use std::fmt::Write;

use super::scalar::{Bound, Check, Described, Scalar};
use super::{Base, Evaluator, NodeId, Status, Val};
use crate::ir::{ArcKind, Decl, Expr, ExprId, StructId};
use crate::label::quote;
use crate::value::{Kind, Value};

/// Deeper structure is printed as `…`; messages are for reading.
const DEPTH: u32 = 12;

/// Longer texts are cut: an error must not carry the whole value.
const LENGTH: usize = 2_000;

impl Evaluator {
    /// A value as it is quoted in messages.
    pub(crate) fn show(&mut self, value: &Val) -> String {
        match value {
            Val::Atom(value) => self.show_value(value),
            Val::Node(node) => self.show_node(*node),
            Val::Function(callee) => super::task::callee_name(*callee).to_owned(),
        }
    }

    #[expect(clippy::unused_self, reason = "one way to print, whatever is printed")]
    pub(crate) fn show_value(&self, value: &Value) -> String {
        let mut out = String::new();
        write_value(&mut out, value, 0);
        cut(out)
    }

    pub(crate) fn show_node(&self, node: NodeId) -> String {
        let mut out = String::new();
        self.write_node(&mut out, node, 0);
        cut(out)
    }

    pub(crate) fn describe(&self, described: &Described) -> String {
        match described {
            Described::Value(value) => self.show_value(value),
            Described::Expr(expr) => {
                let mut out = String::new();
                self.write_expr(&mut out, *expr, 0);
                cut(out)
            }
            Described::Literal(literal) => {
                let mut out = String::new();
                self.write_struct(&mut out, *literal, 0);
                cut(out)
            }
            Described::Kind(kind) => kind.to_string(),
            Described::Bound(bound) => show_bound(bound),
            Described::Text(text) => (*text).to_owned(),
        }
    }

    fn write_node(&self, out: &mut String, node: NodeId, depth: u32) {
        let node = self.deref(node);
        let slot = self.node(node);
        if depth > DEPTH || out.len() > LENGTH {
            out.push_str("...");
            return;
        }
        if let Some(lazy) = &slot.lazy
            && !matches!(slot.base, Base::Error(_))
        {
            write_value(out, &lazy.value, depth);
            return;
        }
        match &slot.base {
            Base::Error(_) => out.push_str("_|_"),
            Base::Disjunction(disjunction) => {
                for (index, value) in disjunction.values.iter().enumerate() {
                    if index > 0 {
                        out.push_str(" | ");
                    }
                    if index < disjunction.defaults {
                        out.push('*');
                    }
                    self.write_node(out, *value, depth + 1);
                }
            }
            Base::Struct => self.write_fields(out, node, depth),
            Base::List => self.write_elements(out, node, depth),
            Base::Unset if slot.has_struct => self.write_fields(out, node, depth),
            Base::Unset if slot.list.is_some() => self.write_elements(out, node, depth),
            Base::Scalar | Base::Unset => self.write_scalar(out, &slot.scalar, depth),
        }
    }

    fn write_fields(&self, out: &mut String, node: NodeId, depth: u32) {
        out.push('{');
        let mut first = true;
        for (label, arc) in &self.node(node).arcs {
            if label.is_index() {
                continue;
            }
            if !first {
                out.push(',');
            }
            first = false;
            out.push_str(&self.labels.show(*label));
            match self.node(*arc).arc {
                ArcKind::Member => {}
                ArcKind::Required => out.push('!'),
                ArcKind::Optional => out.push('?'),
            }
            out.push(':');
            self.write_arc(out, *arc, depth + 1);
        }
        out.push('}');
    }

    /// A field or element; one that is not evaluated yet as it was written.
    fn write_arc(&self, out: &mut String, arc: NodeId, depth: u32) {
        let slot = self.node(arc);
        if slot.status >= Status::Settled {
            return self.write_node(out, arc, depth);
        }
        match slot.conjuncts.first().map(|conjunct| conjunct.source) {
            Some(super::Source::Expr(expr)) => self.write_expr(out, expr, depth),
            Some(super::Source::Data(value)) => {
                write_value(out, &self.values[value as usize], depth);
            }
            _ => self.write_node(out, arc, depth),
        }
    }

    fn write_elements(&self, out: &mut String, node: NodeId, depth: u32) {
        out.push('[');
        let mut first = true;
        for (label, arc) in &self.node(node).arcs {
            if !label.is_index() {
                continue;
            }
            if !first {
                out.push(',');
            }
            first = false;
            self.write_arc(out, *arc, depth + 1);
        }
        if self.node(node).list.is_some_and(|list| !list.closed) {
            if !first {
                out.push(',');
            }
            out.push_str("...");
        }
        out.push(']');
    }

    fn write_expr(&self, out: &mut String, expr: ExprId, depth: u32) {
        if depth > DEPTH || out.len() > LENGTH {
            out.push_str("...");
            return;
        }
        match self.program.expr(expr) {
            Expr::Value(value) => write_value(out, self.program.constant(value), depth),
            Expr::Struct(literal) => self.write_struct(out, literal, depth),
            Expr::Bottom => out.push_str("_|_"),
            Expr::Top => out.push('_'),
            Expr::List(elements) => {
                out.push('[');
                for (index, element) in self.program.elements(elements).iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    match element {
                        crate::ir::Element::Value(value) => self.write_expr(out, *value, depth + 1),
                        crate::ir::Element::Ellipsis(value) => {
                            out.push_str("...");
                            if !matches!(self.program.expr(*value), Expr::Top) {
                                self.write_expr(out, *value, depth + 1);
                            }
                        }
                        crate::ir::Element::Comprehension(id) => {
                            let value = self.program.comprehension(*id).value_expr;
                            self.write_expr(out, value, depth + 1);
                        }
                    }
                }
                out.push(']');
            }
            _ => out.push_str(self.program.text(expr)),
        }
    }

    fn write_struct(&self, out: &mut String, literal: StructId, depth: u32) {
        out.push('{');
        for (index, decl) in self.program.structure(literal).decls.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match decl {
                Decl::Field {
                    label, kind, value, ..
                } => {
                    out.push_str(&self.labels.show(*label));
                    out.push_str(match kind {
                        ArcKind::Member => ":",
                        ArcKind::Required => "!:",
                        ArcKind::Optional => "?:",
                    });
                    self.write_expr(out, *value, depth + 1);
                }
                Decl::Dynamic { key, value, .. } => {
                    self.write_expr(out, *key, depth + 1);
                    out.push(':');
                    self.write_expr(out, *value, depth + 1);
                }
                Decl::Pattern { pattern, value, .. } => {
                    out.push('[');
                    self.write_expr(out, *pattern, depth + 1);
                    out.push_str("]:");
                    self.write_expr(out, *value, depth + 1);
                }
                Decl::Embed(expr) => self.write_expr(out, *expr, depth + 1),
                Decl::Comprehension(id) => {
                    self.write_struct(out, self.program.comprehension(*id).value, depth + 1);
                }
                Decl::Ellipsis => out.push_str("..."),
            }
        }
        out.push('}');
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LENGTH {
        let mut end = LENGTH;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Evaluator {
    fn write_scalar(&self, out: &mut String, scalar: &Scalar, depth: u32) {
        if let Some(atom) = &scalar.atom {
            write_value(out, atom, 0);
            return;
        }
        let mut parts: Vec<String> = Vec::new();
        for bound in scalar.bounds() {
            parts.push(show_bound(bound));
        }
        for check in scalar.checks() {
            match check {
                Check::Bound(bound) => parts.push(show_bound(bound)),
                Check::Call {
                    callee, arguments, ..
                } => parts.push(self.show_call(*callee, arguments, depth)),
            }
        }
        let implied = bounds_kind(scalar);
        if parts.is_empty() || !scalar.kind.contains(implied) {
            parts.push(scalar.kind.to_string());
        }
        out.push_str(&parts.join(" & "));
    }

    /// A validator as it is called.
    fn show_call(&self, callee: crate::ir::Callee, arguments: &[Val], depth: u32) -> String {
        let mut out = match callee {
            crate::ir::Callee::Predeclared(function) => function.name().to_owned(),
            crate::ir::Callee::Builtin(package, builtin) => {
                let package = package.rsplit('/').next().unwrap_or(package);
                format!("{package}.{}", builtin.name)
            }
        };
        // A function that stands for itself, such as `time.Time`, is not called.
        if arguments.is_empty() {
            return out;
        }
        out.push('(');
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            match argument {
                Val::Atom(value) => write_value(&mut out, value, 0),
                Val::Node(node) => self.write_node(&mut out, *node, depth + 1),
                Val::Function(callee) => out.push_str(&self.show_call(*callee, &[], depth)),
            }
        }
        out.push(')');
        out
    }
}

/// The kinds the bounds alone admit.
fn bounds_kind(scalar: &Scalar) -> Kind {
    let mut kind = Kind::TOP;
    for bound in scalar.bounds() {
        kind = kind & super::scalar::bound_kind(bound);
    }
    for check in scalar.checks() {
        match check {
            Check::Bound(bound) => kind = kind & super::scalar::bound_kind(bound),
            Check::Call {
                callee: crate::ir::Callee::Builtin(_, builtin),
                ..
            } => {
                kind = kind & builtin.params.first().map_or(Kind::TOP, |param| param.kind);
            }
            Check::Call { .. } => {}
        }
    }
    kind
}

pub(crate) fn show_bound(bound: &Bound) -> String {
    let mut out = bound.op.text().to_owned();
    write_value(&mut out, &bound.value, 0);
    out
}

fn write_value(out: &mut String, value: &Value, depth: u32) {
    if depth > DEPTH || out.len() > LENGTH {
        out.push_str("...");
        return;
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_message()),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(bytes) => {
            out.push('\'');
            for byte in bytes.iter() {
                if byte.is_ascii_graphic() && *byte != b'\'' && *byte != b'\\' || *byte == b' ' {
                    out.push(char::from(*byte));
                } else {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
        }
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item, depth + 1);
            }
            out.push(']');
        }
        Value::Struct(fields) => {
            out.push('{');
            for (index, (label, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                if crate::label::is_identifier(label) {
                    out.push_str(label);
                } else {
                    out.push_str(&quote(label));
                }
                out.push(':');
                write_value(out, value, depth + 1);
            }
            out.push('}');
        }
        Value::Opaque(_) => out.push('_'),
    }
}
