//! `@tag(name)` attributes: values from the command line, unified with the fields they stand at.

use crate::ast::{Attribute, Decl, DeclKind, ElementKind, Expr, ExprKind, File, StructLit};
use crate::label::quote;
use crate::token::Span;

/// A tag given on the command line.
struct Given<'a> {
    name: &'a str,
    value: Option<&'a str>,
    used: bool,
}

/// A value to unify with the expression at a span.
struct Insertion {
    span: Span,
    literal: String,
}

/// The new texts of the files that take values; unchanged files are left out. The tags in
/// `constraints` have already been used to select files.
pub(super) fn inject(
    files: &[File],
    tags: &[String],
    constraints: &[String],
) -> Result<Vec<(String, String)>, String> {
    let mut given: Vec<Given<'_>> = tags
        .iter()
        .map(|tag| match tag.split_once('=') {
            Some((name, value)) => Given {
                name,
                value: Some(value),
                used: false,
            },
            None => Given {
                name: tag,
                value: None,
                used: constraints.contains(tag),
            },
        })
        .collect();
    let mut changed = Vec::new();
    for file in files {
        let mut insertions = Vec::new();
        collect_decls(&file.decls, &mut given, &mut insertions)?;
        if !insertions.is_empty() {
            changed.push((file.name.to_string(), spliced(&file.source, insertions)));
        }
    }
    match given.iter().find(|tag| !tag.used) {
        Some(tag) => Err(format!("no tag for {:?}", tag.name)),
        None => Ok(changed),
    }
}

/// Puts `(value) & literal` in the place of each value, from the end so that offsets stay right.
fn spliced(source: &str, mut insertions: Vec<Insertion>) -> String {
    insertions.sort_by_key(|insertion| std::cmp::Reverse(insertion.span.start));
    let mut text = source.to_owned();
    for Insertion { span, literal } in insertions {
        let replacement = format!("({}) & {literal}", span.text(source));
        text.replace_range(span.start as usize..span.end as usize, &replacement);
    }
    text
}

fn collect_decls(
    decls: &[Decl],
    given: &mut [Given<'_>],
    insertions: &mut Vec<Insertion>,
) -> Result<(), String> {
    for decl in decls {
        match &decl.kind {
            DeclKind::Field(field) => {
                for attribute in &field.attributes {
                    if attribute.name() == "tag"
                        && let Some(literal) = tag_value(attribute, given)?
                    {
                        insertions.push(Insertion {
                            span: field.value.span,
                            literal,
                        });
                    }
                }
                collect_expr(&field.value, given, insertions)?;
            }
            DeclKind::Embed(expr) => collect_expr(expr, given, insertions)?,
            DeclKind::Comprehension(comprehension) => {
                collect_expr(&comprehension.value, given, insertions)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn collect_expr(
    expr: &Expr,
    given: &mut [Given<'_>],
    insertions: &mut Vec<Insertion>,
) -> Result<(), String> {
    match &expr.kind {
        ExprKind::Struct(StructLit { decls, .. }) => collect_decls(decls, given, insertions),
        ExprKind::List(list) => {
            for element in &list.elements {
                if let ElementKind::Value(value) = &element.kind {
                    collect_expr(value, given, insertions)?;
                }
            }
            Ok(())
        }
        ExprKind::Binary { left, right, .. } => {
            collect_expr(left, given, insertions)?;
            collect_expr(right, given, insertions)
        }
        _ => Ok(()),
    }
}

/// The literal a tag attribute receives, if one was given for it.
fn tag_value(attribute: &Attribute, given: &mut [Given<'_>]) -> Result<Option<String>, String> {
    let mut name = "";
    let mut kind = "string";
    let mut short: Vec<&str> = Vec::new();
    for (position, part) in attribute.body().split(',').map(str::trim).enumerate() {
        match part.split_once('=') {
            Some(("type", value)) => kind = value,
            Some(("short", values)) => short = values.split('|').collect(),
            Some((other, _)) => return Err(format!("unsupported option {other:?} in @tag")),
            None if position == 0 => name = part,
            None => return Err(format!("unsupported option {part:?} in @tag")),
        }
    }
    for tag in given {
        let value = match tag.value {
            Some(value) if tag.name == name => value,
            None if short.contains(&tag.name) => tag.name,
            None if tag.name == name && kind == "bool" => "true",
            _ => continue,
        };
        tag.used = true;
        return match kind {
            "string" => Ok(Some(quote(value))),
            "int" | "number" | "bool" => {
                let plain = value == "true"
                    || value == "false"
                    || crate::number::Number::parse_literal(value).is_ok();
                if plain {
                    Ok(Some(value.to_owned()))
                } else {
                    Err(format!(
                        "tag {name:?}: {value:?} is not a value of type {kind}"
                    ))
                }
            }
            other => Err(format!("tag {name:?}: unsupported type {other:?}")),
        };
    }
    Ok(None)
}
