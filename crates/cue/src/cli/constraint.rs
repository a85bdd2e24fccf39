//! Build constraints: `@if(expression)` and `@ignore()` before the package clause say whether a file
//! takes part. The names in an expression are tags of the command line.

use crate::ast::{BinaryOp, Expr, ExprKind, File, UnaryOp};
use crate::parser::parse_expression;

/// Keeps the files whose constraints hold, and returns the names of the tags that were asked for.
/// An error if a constraint is malformed, or if constraints leave no source.
pub(super) fn select(files: &mut Vec<File>, tags: &[String]) -> Result<Vec<String>, String> {
    let mut asked = Vec::new();
    let mut excluded = Vec::new();
    let mut kept = Vec::with_capacity(files.len());
    for mut file in files.drain(..) {
        if let Some(reason) = reason_to_exclude(&file, tags, &mut asked)? {
            excluded.push(format!("{}: {reason}", file.name));
        } else {
            file.attributes.retain(|attribute| attribute.name() != "if");
            kept.push(file);
        }
    }
    *files = kept;
    if files.is_empty() && !excluded.is_empty() {
        return Err(format!(
            "build constraints exclude all CUE files:\n    {}",
            excluded.join("\n    ")
        ));
    }
    Ok(asked)
}

fn reason_to_exclude(
    file: &File,
    tags: &[String],
    asked: &mut Vec<String>,
) -> Result<Option<String>, String> {
    for attribute in &file.attributes {
        match attribute.name() {
            "ignore" => return Ok(Some("@ignore() attribute found".to_owned())),
            "if" => {
                let body = attribute.body();
                let (expression, problems) = parse_expression(&file.name, body);
                let malformed = || format!("{}: invalid build constraint @if({body})", file.name);
                if !problems.is_empty() {
                    return Err(malformed());
                }
                match holds(&expression, tags, asked) {
                    Some(true) => {}
                    Some(false) => return Ok(Some(format!("@if({body}) did not match"))),
                    None => return Err(malformed()),
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Whether a constraint holds; `None` if it is made of anything but names, `!`, `&&` and `||`.
fn holds(expression: &Expr, tags: &[String], asked: &mut Vec<String>) -> Option<bool> {
    match &expression.kind {
        ExprKind::Ident(name) => {
            asked.push(name.to_string());
            Some(tags.iter().any(|tag| **tag == **name))
        }
        ExprKind::Paren(inner) => holds(inner, tags, asked),
        ExprKind::Unary {
            op: UnaryOp::Not,
            operand,
        } => holds(operand, tags, asked).map(|value| !value),
        ExprKind::Binary {
            op, left, right, ..
        } => {
            let (left, right) = (holds(left, tags, asked)?, holds(right, tags, asked)?);
            match op {
                BinaryOp::LogicalAnd => Some(left && right),
                BinaryOp::LogicalOr => Some(left || right),
                _ => None,
            }
        }
        _ => None,
    }
}
