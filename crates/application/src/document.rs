//! Documentation of definitions, made from the markers in their parameters.
//!
//! `// +usage=TEXT` says what a parameter is for, `// +short=x` gives a short name, `// +ignore` keeps it out, `// +immutable` says
//! that it stays as it was created. The rest is in the template itself: `name?: T` may be left out, `name: *1 | int` has a default.

use bellwether_cue::ast::{
    BinaryOp, Constraint, Decl, DeclKind, ElementKind, Expr, ExprKind, File, LabelKind, UnaryOp,
};
use bellwether_cue::parser::parse_file;

use crate::definition::Definition;

/// Deeper parameters are not listed on their own.
const MAX_DEPTH: usize = 7;

/// One parameter of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Where it is, such as `ports[].port`.
    pub path: String,
    /// What it is for.
    pub usage: String,
    /// Which values it takes.
    pub type_text: String,
    /// Whether it has to be given.
    pub required: bool,
    /// What it is if it is not given.
    pub default: String,
    /// Whether it stays as it was when the application was created.
    pub immutable: bool,
}

/// The parameters of a definition, in the order of its template.
pub fn parameters(definition: &Definition) -> Vec<Parameter> {
    let Some(source) = definition.source() else {
        return Vec::new();
    };
    let (file, _) = parse_file("-", source);
    let reader = Reader { file: &file };
    let mut found = Vec::new();
    for decl in &file.decls {
        if let Some("parameter" | "parameters") = name(decl)
            && let DeclKind::Field(field) = &decl.kind
        {
            reader.members(&field.value, "", MAX_DEPTH, &mut found);
        }
    }
    found
}

struct Reader<'a> {
    file: &'a File,
}

fn name(decl: &Decl) -> Option<&str> {
    match &decl.kind {
        DeclKind::Field(field) => match &field.label.kind {
            LabelKind::Ident(name) | LabelKind::String(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

impl Reader<'_> {
    fn text(&self, expr: &Expr) -> String {
        let text = expr.span.text(&self.file.source);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Lists the fields of a struct, also of one that is referred to.
    fn members(&self, expr: &Expr, path: &str, depth: usize, found: &mut Vec<Parameter>) {
        if depth == 0 {
            return;
        }
        match &expr.kind {
            ExprKind::Struct(literal) => {
                for decl in &literal.decls {
                    match &decl.kind {
                        DeclKind::Field(_) => self.field(decl, path, depth, found),
                        DeclKind::Embed(inner) => self.members(inner, path, depth, found),
                        DeclKind::Comprehension(inner) => {
                            self.members(&inner.value, path, depth - 1, found);
                        }
                        _ => {}
                    }
                }
            }
            ExprKind::Paren(inner) => self.members(inner, path, depth, found),
            ExprKind::Unary {
                op: UnaryOp::Default,
                operand,
            } => self.members(operand, path, depth, found),
            ExprKind::Binary {
                op: BinaryOp::Or,
                left,
                right,
                ..
            } => {
                self.members(left, path, depth, found);
                let before = found.len();
                self.members(right, path, depth, found);
                // Another shape of all parameters has to be chosen, not given.
                if path.is_empty() {
                    let top = found[before..].iter_mut();
                    top.filter(|other| !other.path.contains(['.', '[']))
                        .for_each(|other| other.required = false);
                }
            }
            ExprKind::Call { arguments, .. } => {
                for argument in arguments {
                    self.members(argument, path, depth, found);
                }
            }
            ExprKind::List(literal) => {
                for element in &literal.elements {
                    if let ElementKind::Ellipsis(Some(inner)) = &element.kind {
                        self.members(inner, &format!("{path}[]"), depth, found);
                    }
                }
            }
            ExprKind::Ident(wanted) => {
                if let Some(value) = self.declared(wanted) {
                    self.members(value, path, depth - 1, found);
                }
            }
            _ => {}
        }
    }

    fn field(&self, decl: &Decl, path: &str, depth: usize, found: &mut Vec<Parameter>) {
        let DeclKind::Field(field) = &decl.kind else {
            return;
        };
        let lines: Vec<&str> = decl
            .comments
            .docs()
            .flat_map(|group| &group.comments)
            .map(|comment| comment.text.trim_start_matches('/').trim())
            .collect();
        if lines.contains(&"+ignore") {
            return;
        }
        let label = match name(decl) {
            Some(name) => name.to_owned(),
            None => "*".to_owned(),
        };
        let path = if path.is_empty() {
            label
        } else {
            format!("{path}.{label}")
        };
        let usage = lines.iter().find_map(|line| line.strip_prefix("+usage="));
        let default = self.default(&field.value);
        found.push(Parameter {
            usage: usage.unwrap_or_default().to_owned(),
            type_text: self.type_text(&field.value),
            required: field.constraint != Constraint::Optional
                && name(decl).is_some()
                && self.has_to_be_given(&field.value, depth),
            default,
            path: path.clone(),
            immutable: lines.contains(&"+immutable"),
        });
        self.members(&field.value, &path, depth - 1, found);
    }

    /// Whether a field of that type has to be given: it has no default, and something in it has none.
    fn has_to_be_given(&self, expr: &Expr, depth: usize) -> bool {
        match &expr.kind {
            ExprKind::Struct(literal) if depth > 0 => literal.decls.iter().any(|decl| {
                let DeclKind::Field(field) = &decl.kind else {
                    return matches!(decl.kind, DeclKind::Embed(_));
                };
                field.constraint != Constraint::Optional
                    && name(decl).is_some()
                    && self.has_to_be_given(&field.value, depth - 1)
            }),
            ExprKind::Ident(wanted) if depth > 0 => match self.declared(wanted) {
                Some(value) => self.has_to_be_given(value, depth - 1),
                None => true,
            },
            _ => self.default(expr).is_empty(),
        }
    }

    /// The value of a definition inside the template, such as `#Probe`.
    fn declared(&self, wanted: &str) -> Option<&Expr> {
        let declared = wanted.starts_with('#').then(|| {
            let mut decls = self.file.decls.iter();
            decls.find(|decl| name(decl) == Some(wanted))
        });
        match declared.flatten().map(|decl| &decl.kind) {
            Some(DeclKind::Field(field)) => Some(&field.value),
            _ => None,
        }
    }

    /// The marked alternative.
    fn default(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Binary {
                op: BinaryOp::Or,
                left,
                right,
                ..
            } => {
                let left = self.default(left);
                if left.is_empty() {
                    self.default(right)
                } else {
                    left
                }
            }
            ExprKind::Unary {
                op: UnaryOp::Default,
                operand,
            } => match &operand.kind {
                ExprKind::Ident(_) => String::new(),
                _ => self.text(operand),
            },
            _ => String::new(),
        }
    }

    /// The alternatives without the mark; structs by their shape alone.
    fn type_text(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Struct(literal) => match literal.decls.as_slice() {
                [decl] if name(decl).is_none() => match &decl.kind {
                    DeclKind::Field(field) => format!("map of {}", self.type_text(&field.value)),
                    _ => "object".to_owned(),
                },
                _ => "object".to_owned(),
            },
            ExprKind::List(literal) => {
                match literal.elements.first().map(|element| &element.kind) {
                    Some(ElementKind::Ellipsis(Some(inner))) => {
                        format!("list of {}", self.type_text(inner))
                    }
                    _ => "list".to_owned(),
                }
            }
            ExprKind::Ident(name) if name.starts_with('#') => match self.declared(name) {
                Some(value) if matches!(value.kind, ExprKind::Binary { .. }) => self.text(value),
                _ => "object".to_owned(),
            },
            ExprKind::Paren(inner) => self.type_text(inner),
            ExprKind::Unary {
                op: UnaryOp::Default,
                operand,
            } => self.type_text(operand),
            ExprKind::Binary {
                op: BinaryOp::Or,
                left,
                right,
                ..
            } => {
                let (left, right) = (self.type_text(left), self.type_text(right));
                let is_kind = ["string", "int", "bool", "number"].contains(&right.as_str());
                // A default beside its own kind says nothing more.
                if left == right || (is_kind && !left.contains(" | ")) {
                    right
                } else {
                    format!("{left} | {right}")
                }
            }
            ExprKind::Null => "null".to_owned(),
            _ => self.text(expr),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::DefinitionKind;

    #[test]
    fn parameters_are_listed_with_what_their_markers_say() {
        let source = "parameter: {\n\t// +usage=How many\n\tcount: *1 | int\n\t// +usage=Ports of it\n\tports?: [...{\n\t\t// +usage=Number\n\t\tport: int\n\t}]\n\t// +ignore\n\told?: string\n\tpolicy: *\"Always\" | \"Never\"\n\tlabels: [string]: string\n\tprobe?: #Probe\n}\n#Probe: {path: string}\n";
        let object = json!({"spec": {"schematic": {"cue": {"template": source}}}});
        let definition = Definition::new(DefinitionKind::Component, "thing", object);
        let lines: Vec<String> = parameters(&definition)
            .iter()
            .map(|found| {
                format!(
                    "{}|{}|{}|{}|{}",
                    found.path, found.type_text, found.required, found.default, found.usage
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                "count|int|false|1|How many",
                "ports|list of object|false||Ports of it",
                "ports[].port|int|true||Number",
                "policy|\"Always\" | \"Never\"|false|\"Always\"|",
                "labels|map of string|false||",
                "labels.*|string|false||",
                "probe|object|false||",
                "probe.path|string|true||",
            ],
        );
    }
}
