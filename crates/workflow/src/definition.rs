//! The template of a type of steps, compiled once.

use std::borrow::Cow;
use std::sync::Arc;

use bellwether_cue::diagnostic::Diagnostic;
use bellwether_cue::host::{Budget, Evaluation, Template};
use bellwether_cue::parser::parse_file;
use serde_json::Value;

use crate::packages::PACKAGES;

/// What templates may refer to without declaring it.
const SCOPE: &str = "context: _\nparameter: _\nparameters: _\n";

/// The name of the template in messages.
const FILE: &str = "-";

/// A template, and whether it can be compiled.
#[derive(Debug, Clone)]
pub struct Definition {
    source: Arc<str>,
    compiled: Result<Template, String>,
}

impl Definition {
    /// Compiles a template. What is wrong with it is said when it is used.
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        let source = source.into();
        let compiled = compile(&source, &[]).map_err(|problems| {
            let of_syntax = || syntax_problem(&source);
            let of_imports = || unknown_import(&problems);
            of_syntax()
                .or_else(of_imports)
                .unwrap_or_else(|| describe(&problems))
        });
        Self { source, compiled }
    }

    /// The text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Begins an evaluation with data; `more` are further files of the same package.
    pub fn evaluate(&self, data: &StepData, more: &[(&str, &str)]) -> Result<Evaluation, String> {
        let template = if more.is_empty() {
            self.compiled.clone()?
        } else {
            compile(&self.source, more).map_err(|problems| describe(&problems))?
        };
        let mut evaluation = template.evaluate(Budget::default());
        evaluation.fill_json(&["context"], &data.context);
        evaluation.fill_json(&["parameter"], &data.parameter);
        evaluation.fill_json(&["parameters"], &data.parameter);
        Ok(evaluation)
    }
}

/// Reports what is wrong with a template, with the places in it.
pub fn check(source: &str) -> Result<(), Vec<Diagnostic>> {
    compile(source, &[]).map(drop)
}

/// What a template is evaluated with.
#[derive(Debug, Clone, Default)]
pub struct StepData {
    /// What is known of the workflow and the step.
    pub context: Value,
    /// The parameters of the step.
    pub parameter: Value,
}

/// A template without imports of our packages that it does not use: those are no mistake worth a failure.
fn without_unused_imports(source: &str) -> Cow<'_, str> {
    let is_unused = |line: &str| {
        let line = line.trim();
        let path = line.strip_prefix("import").unwrap_or(line).trim();
        let package = PACKAGES
            .iter()
            .find(|(known, _)| path == format!("{known:?}"));
        package.is_some_and(|(path, _)| {
            let name = path.rsplit('/').next().unwrap_or(path);
            !source.contains(&format!("{name}.#"))
        })
    };
    if !source.lines().any(is_unused) {
        return Cow::Borrowed(source);
    }
    let lines = source
        .lines()
        .map(|line| if is_unused(line) { "" } else { line });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Compiles files of one package with everything that they may import.
fn compile(source: &str, more: &[(&str, &str)]) -> Result<Template, Vec<Diagnostic>> {
    let source = &*without_unused_imports(source);
    let mut files = vec![(FILE, source), ("scope", SCOPE)];
    files.extend(more);
    let used: Vec<(&str, &str)> = PACKAGES
        .iter()
        .copied()
        .filter(|(path, _)| files.iter().any(|(_, text)| text.contains(path)))
        .collect();
    let template = Template::compile_files(&files, &used)?;
    // Nobody adds to our packages: an action that is not there is misspelt, and would never be carried out.
    let undeclared = template.undeclared_selections();
    if undeclared.is_empty() {
        Ok(template)
    } else {
        Err(undeclared)
    }
}

/// What is wrong with the syntax of a template. Other tools for this API read it together with the data that
/// follows it, which shows in the message.
fn syntax_problem(source: &str) -> Option<String> {
    let (_, problems) = parse_file(FILE, &format!("{source}\ncontext: {{}}\nparameter: {{}}\n"));
    (!problems.is_empty()).then(|| describe(&problems))
}

/// What is wrong with an import of a package that is not there: one that other installations add may be meant.
fn unknown_import(problems: &[Diagnostic]) -> Option<String> {
    let path = problems.iter().find_map(|problem| {
        let text = problem.message.as_str();
        let text = text.strip_prefix("builtin ").unwrap_or(text);
        let (path, _) = text.strip_prefix("package \"")?.split_once('"')?;
        Some(path)
    })?;
    Some(format!(
        "import {path:?}: there is no such package (packages of outside providers, kind Package of cue.oam.dev, are not supported)"
    ))
}

/// What is wrong, in one line.
pub fn describe(problems: &[Diagnostic]) -> String {
    match problems {
        [] => "unknown problem".to_owned(),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} (and {} more errors)", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_nobody_provides_is_named() {
        for path in ["ext/weather", "example.org/weather"] {
            let source = format!("import \"{path}\"\nnow: weather.#Now");
            let definition = Definition::new(source);
            let problem = definition.evaluate(&StepData::default(), &[]);
            let problem = problem.map(drop).unwrap_err();
            let expected = format!("import {path:?}: there is no such package");
            assert!(problem.starts_with(&expected), "{problem}");
        }
    }

    #[test]
    fn an_action_that_a_package_lacks_is_a_mistake() {
        for (source, expected) in [
            (
                "import \"vela/builtin\"\nsay: builtin.#Mesage & {$params: message: \"hi\"}",
                "undefined field: #Mesage",
            ),
            (
                "import \"vela/kube\"\nif parameter.on {write: kube.#Aply & {}}",
                "undefined field: #Aply",
            ),
            ("import \"vela/op\"\nwrite: op.#Apply & {value: {}}", ""),
        ] {
            let found = check(source).map_err(|problems| problems[0].message.clone());
            let expected = if expected.is_empty() {
                Ok(())
            } else {
                Err(expected.to_owned())
            };
            assert_eq!(found, expected, "{source}");
        }
    }
}
