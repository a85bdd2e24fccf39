//! Rewrites a definition before it is executed as a template.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Request, ResolveError, Side, encryption};

/// A text that is ready to be executed.
pub(super) struct Prepared {
    pub(super) text: String,
    /// Whether an encrypted text was replaced.
    pub(super) is_decrypted: bool,
}

/// Makes YAML of a definition, decrypts it, and rewrites what depends on its layout.
pub(super) fn prepare(request: &Request) -> Result<Prepared, ResolveError> {
    let mut text = request.source.to_yaml();
    let mut is_decrypted = false;
    if let Some(keys) = &request.decrypt {
        (text, is_decrypted) = encryption::decrypt_all(&text, keys)?;
    }
    let patterns = match request.context.side() {
        Side::Hub => &*HUB,
        Side::Managed => &*MANAGED,
    };
    let text = patterns.unquoted(&text);
    let text = patterns.indented(&text, request.context.side().indentation());
    Ok(Prepared { text, is_decrypted })
}

static HUB: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(Side::Hub));
static MANAGED: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(Side::Managed));

/// What is rewritten, for one pair of delimiters.
struct Patterns {
    /// A quoted or block scalar whose template yields something that is no string.
    typed: Option<Regex>,
    /// A template that ends with `autoindent`, and the blanks before it.
    autoindent: Option<Regex>,
}

impl Patterns {
    fn new(side: Side) -> Self {
        let (left, right) = side.delimiters();
        let (left, right) = (regex::escape(left), regex::escape(right));
        let space = r"[\t\n\f\r\x20]";
        let typed = format!(
            r"(?x) :{space}+ (?:[|>]-?{space}+)? '?{space}*
              (?<template> {left} .* (?: \|{space}*to(?:Int|Bool|Literal) | copy(?:ConfigMap|Secret)Data ) .* {right} )
              {space}*'?",
        );
        let autoindent = format!(
            r#"(?<blanks>\x20*)(?<quote>['"]?)(?<template>{left}.*\|\x20*autoindent\x20*-?{right})"#
        );
        Self {
            typed: Regex::new(&typed).ok(),
            autoindent: Regex::new(&autoindent).ok(),
        }
    }

    /// Takes the quotes off values that are no strings.
    fn unquoted(&self, text: &str) -> String {
        match &self.typed {
            Some(typed) => typed.replace_all(text, ": $template").into_owned(),
            None => text.to_owned(),
        }
    }

    /// Gives `autoindent` the column of its template.
    fn indented(&self, text: &str, indentation: i64) -> String {
        let Some(autoindent) = &self.autoindent else {
            return text.to_owned();
        };
        let rewritten = autoindent.replace_all(text, |found: &Captures<'_>| {
            let blanks = i64::try_from(found["blanks"].len()).unwrap_or(i64::MAX);
            let indent = format!("indent {}", blanks - indentation);
            let template = found["template"].replacen("autoindent", &indent, 1);
            format!("{}{}{template}", &found["blanks"], &found["quote"])
        });
        rewritten.into_owned()
    }
}
