//! From evaluated nodes back to source text.

use std::fmt::Write;

use super::scalar::{Check, Scalar};
use super::{Base, ErrId, Evaluator, NodeId, Val};
use crate::ir::{ArcKind, Callee};
use crate::label::{Label, quote};
use crate::token::Pos;
use crate::value::{Kind, Value};

/// What the text includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each named"
)]
pub struct SyntaxOptions {
    /// Comments of fields.
    pub docs: bool,
    /// Attributes of fields.
    pub attributes: bool,
    /// Definitions.
    pub definitions: bool,
    /// Hidden fields.
    pub hidden: bool,
    /// Required fields without a value.
    pub required: bool,
    /// Optional and required fields without a value.
    pub optional: bool,
    /// Patterns and `...`.
    pub patterns: bool,
    /// Defaults are taken instead of kept open.
    pub concrete: bool,
    /// The outer braces of a struct are left out.
    pub bare: bool,
    /// Imports of the packages that the text names come first.
    pub imports: bool,
    /// Lists stay open: every list ends in `...`.
    pub open_lists: bool,
}

impl Evaluator {
    /// The source text of a node. At the root of a package the braces are left out.
    pub(crate) fn source(&mut self, node: NodeId, options: SyntaxOptions) -> Result<String, ErrId> {
        self.finalize(node);
        self.named_packages.clear();
        let mut out = String::new();
        let value = self.deref(node);
        let is_bare = value == self.root || options.bare;
        if is_bare && matches!(self.node(value).base, Base::Struct) {
            self.source_fields(&mut out, value, options, 0);
        } else {
            self.source_node(&mut out, node, options, 0);
        }
        if out.len() > self.budget.output {
            return Err(self.exhaust("output"));
        }
        if options.imports {
            let named: Vec<String> = self
                .named_packages
                .iter()
                .map(|path| format!("import \"{path}\"\n"))
                .collect();
            return Ok(named.concat() + &out);
        }
        Ok(out)
    }

    pub(super) fn source_node(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        if indent > 500 {
            out.push('_');
            return;
        }
        // A value may be small and its text large, where one part stands in many places.
        if out.len() > self.budget.output {
            return;
        }
        self.with_stack(super::limit::STACK_FOR_READING, |this| {
            this.source_inner(out, node, options, indent);
        });
    }

    fn source_inner(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        let mut node = self.deref(node);
        if options.concrete
            && let Ok(default) = self.default_node(node, Pos::NONE)
        {
            node = default;
        }
        match self.node(node).base.clone() {
            Base::Error(error) => {
                let message = self.message(error);
                let message = message.lines().next().unwrap_or("").to_owned();
                out.push_str("_|_ // ");
                out.push_str(&message);
            }
            Base::Disjunction(disjunction) => {
                for (index, value) in disjunction.values.iter().enumerate() {
                    if index > 0 {
                        out.push_str(" | ");
                    }
                    if index < disjunction.defaults {
                        out.push('*');
                    }
                    self.source_node(out, *value, options, indent);
                }
            }
            Base::Struct => {
                out.push_str("{\n");
                self.source_fields(out, node, options, indent + 1);
                push_tabs(out, indent);
                out.push('}');
            }
            Base::List => self.source_list(out, node, options, indent),
            Base::Unset if self.node(node).has_struct => {
                out.push_str("{\n");
                self.source_fields(out, node, options, indent + 1);
                push_tabs(out, indent);
                out.push('}');
            }
            Base::Scalar | Base::Unset => {
                let scalar = self.node(node).scalar.clone();
                self.source_scalar(out, &scalar);
            }
        }
    }

    fn source_fields(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        for (label, arc) in self.ordered_arcs(node) {
            let kind = self.node(arc).arc;
            let shown = !label.is_index()
                && (options.definitions || !label.is_definition())
                && (options.hidden || !label.is_hidden())
                && match kind {
                    ArcKind::Member => true,
                    ArcKind::Required => options.required || options.optional,
                    ArcKind::Optional => options.optional,
                };
            if !shown {
                continue;
            }
            if kind == ArcKind::Optional {
                self.finalize(arc);
            }
            self.source_docs(out, arc, options, indent);
            push_tabs(out, indent);
            self.source_label(out, label);
            out.push_str(match kind {
                ArcKind::Member => ": ",
                ArcKind::Required => "!: ",
                ArcKind::Optional => "?: ",
            });
            self.source_node(out, arc, options, indent);
            if options.attributes {
                for meta in self.node(arc).metas.clone() {
                    for attribute in &self.program.metas[meta.0 as usize].attributes {
                        out.push(' ');
                        out.push_str(&attribute.text);
                    }
                }
            }
            out.push('\n');
        }
        if options.patterns {
            self.source_patterns(out, node, options, indent);
        }
    }

    fn source_patterns(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        for index in 0..self.node(node).patterns.len() {
            let pattern = self.node(node).patterns[index];
            if let super::node::Matcher::AnyString = pattern.matcher
                && let super::Source::Expr(value) = pattern.conjunct.source
            {
                push_tabs(out, indent);
                out.push_str("[string]: ");
                let node = self.anonymous(value, pattern.conjunct.env);
                self.finalize(node);
                self.source_node(out, node, options, indent);
                out.push('\n');
            }
        }
        if self.node(node).has_ellipsis {
            push_tabs(out, indent);
            out.push_str("...\n");
        }
    }

    fn source_docs(
        &mut self,
        out: &mut String,
        arc: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        if !options.docs {
            return;
        }
        for meta in self.node(arc).metas.clone() {
            for line in &self.program.metas[meta.0 as usize].docs {
                push_tabs(out, indent);
                out.push_str(line);
                out.push('\n');
            }
        }
    }

    fn source_label(&self, out: &mut String, label: Label) {
        let text = self.labels.text(label);
        if label.is_regular() && crate::parser::is_keyword(&text) {
            out.push_str(&quote(&text));
        } else {
            out.push_str(&self.labels.show(label));
        }
    }

    fn source_list(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        out.push('[');
        let mut first = true;
        for (label, arc) in self.ordered_arcs(node) {
            if !label.is_index() {
                continue;
            }
            if !first {
                out.push_str(", ");
            }
            first = false;
            self.source_node(out, arc, options, indent);
        }
        let open = self.node(node).list.is_some_and(|list| !list.closed) && !options.concrete;
        if open || options.open_lists {
            if !first {
                out.push_str(", ");
            }
            out.push_str("...");
            self.source_rest(out, node, options, indent);
        }
        out.push(']');
    }

    /// What further elements of an open list have to be, if that is known.
    pub(super) fn source_rest(
        &mut self,
        out: &mut String,
        node: NodeId,
        options: SyntaxOptions,
        indent: usize,
    ) {
        let rest = self.node(node).patterns.iter().rev().find_map(|pattern| {
            match (pattern.matcher, pattern.conjunct.source) {
                (super::node::Matcher::From(_), super::Source::Expr(value)) => {
                    Some((value, pattern.conjunct.env))
                }
                _ => None,
            }
        });
        if let Some((value, env)) = rest {
            let rest = self.anonymous(value, env);
            self.finalize(rest);
            self.source_node(out, rest, options, indent);
        }
    }

    fn source_scalar(&mut self, out: &mut String, scalar: &Scalar) {
        if let Some(atom) = &scalar.atom {
            out.push_str(&source_atom(atom));
            return;
        }
        let mut parts: Vec<String> = Vec::new();
        let mut implied = Kind::TOP;
        let bounds = scalar.checks().iter().filter_map(|check| match check {
            Check::Bound(bound) => Some(bound),
            Check::Call { .. } => None,
        });
        for bound in scalar.bounds().chain(bounds) {
            parts.push(format!("{}{}", bound.op.text(), source_atom(&bound.value)));
            implied = implied & super::scalar::bound_kind(bound);
        }
        for check in scalar.checks() {
            if let Check::Call {
                callee, arguments, ..
            } = check
            {
                parts.push(self.source_check(*callee, arguments));
                if let Callee::Builtin(_, builtin) = callee
                    && let Some(first) = builtin.params.first()
                {
                    implied = implied & first.kind;
                }
            }
        }
        if parts.is_empty() || !scalar.kind.contains(implied) {
            parts.insert(0, kind_source(scalar.kind));
        }
        out.push_str(&parts.join(" & "));
    }

    fn source_check(&mut self, callee: Callee, arguments: &[Val]) -> String {
        let name = match callee {
            Callee::Predeclared(function) => function.name().to_owned(),
            Callee::Builtin(package, builtin) => {
                self.named_packages.insert(package);
                format!(
                    "{}.{}",
                    package.rsplit('/').next().unwrap_or(package),
                    builtin.name
                )
            }
        };
        let texts: Vec<String> = arguments.iter().map(|value| self.show(value)).collect();
        format!("{name}({})", texts.join(", "))
    }
}

/// The disjunction of types a kind stands for.
fn kind_source(kind: Kind) -> String {
    if kind == Kind::TOP {
        return "_".to_owned();
    }
    if kind == Kind::STRUCT {
        return "{...}".to_owned();
    }
    if kind == Kind::LIST {
        return "[...]".to_owned();
    }
    let text = kind.to_string();
    text.trim_matches(['(', ')'])
        .replace('|', " | ")
        .replace("struct", "{...}")
        .replace("list", "[...]")
}

fn source_atom(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_source(),
        Value::String(text) => quote(text),
        Value::Bytes(bytes) => {
            let mut out = String::from("'");
            for byte in bytes.iter() {
                if byte.is_ascii_graphic() && *byte != b'\'' && *byte != b'\\' || *byte == b' ' {
                    out.push(char::from(*byte));
                } else {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            out.push('\'');
            out
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(source_atom).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(label, value)| format!("{}: {}", quote(label), source_atom(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Opaque(_) => "_".to_owned(),
    }
}

fn push_tabs(out: &mut String, count: usize) {
    for _ in 0..count {
        out.push('\t');
    }
}
