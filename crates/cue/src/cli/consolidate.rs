//! Several files of a package as one, with everything as it was written: references stay references.
//!
//! What files keep to themselves is brought together with care: imports are merged, `let` clauses come
//! first, and a file whose private names mean something else in another one is embedded in braces.

use crate::ast::{DeclKind, File, ImportDecl};
use crate::format::{format_file, format_source};

use std::collections::HashMap;

/// The text of one file that means the same as all of them.
pub(super) fn consolidate(files: &[File]) -> String {
    let mut text = package_clause(files);
    text.push_str(&imports(files));
    let (mut lets, mut bodies) = (String::new(), Vec::new());
    let mut taken: HashMap<String, usize> = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        let own = private_names(file);
        let clashes = own.iter().any(|name| taken.contains_key(name));
        for name in own {
            taken.entry(name).or_insert(index);
        }
        let is_let = |kind: &DeclKind| matches!(kind, DeclKind::Let(_));
        if clashes {
            let body = part(file, |_| true);
            bodies.push(format!("{{\n{body}}}\n"));
        } else {
            lets.push_str(&part(file, is_let));
            bodies.push(part(file, |kind| !is_let(kind)));
        }
    }
    bodies.retain(|body| !body.is_empty());
    if !lets.is_empty() {
        text.push_str(&lets);
        text.push('\n');
    }
    text.push_str(&bodies.join("\n"));
    format_source("-", &text).unwrap_or(text)
}

/// The package clause of the first file that has one, and the documentation of all.
fn package_clause(files: &[File]) -> String {
    let mut clauses = files.iter().filter(|file| file.package.is_some());
    let Some(first) = clauses.next() else {
        return String::new();
    };
    let mut text = format_file(&File {
        attributes: Vec::new(),
        imports: Vec::new(),
        decls: Vec::new(),
        end_comments: Vec::new(),
        ..first.clone()
    });
    text.push('\n');
    text
}

/// Every import once.
fn imports(files: &[File]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for file in files {
        for spec in file.imports.iter().flat_map(|import| &import.specs) {
            let name = spec.name.as_ref();
            let name = name.map_or_else(String::new, |name| format!("{} ", name.name));
            let line = format!("{name}\"{}\"", spec.path);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    match lines.as_slice() {
        [] => String::new(),
        [one] => format!("import {one}\n\n"),
        many => format!("import (\n\t{}\n)\n\n", many.join("\n\t")),
    }
}

/// The declarations of a file that `wanted` selects, formatted.
fn part(file: &File, wanted: impl Fn(&DeclKind) -> bool) -> String {
    let decls: Vec<_> = file
        .decls
        .iter()
        .filter(|decl| wanted(&decl.kind))
        .cloned()
        .collect();
    if decls.is_empty() {
        return String::new();
    }
    format_file(&File {
        attributes: Vec::new(),
        package: None,
        imports: Vec::<ImportDecl>::new(),
        decls,
        ..file.clone()
    })
}

/// The names that only the file itself sees.
fn private_names(file: &File) -> Vec<String> {
    file.decls
        .iter()
        .filter_map(|decl| match &decl.kind {
            DeclKind::Let(binding) => Some(binding.name.name.to_string()),
            DeclKind::Field(field) => field.alias.as_ref().map(|alias| alias.name.to_string()),
            _ => None,
        })
        .collect()
}
