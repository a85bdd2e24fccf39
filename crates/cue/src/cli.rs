//! The commands of the `cue` tool as functions: texts in, text out.
//!
//! The binary reads files and prints; everything between is here. Files are pairs of name and
//! text; names ending in `.json`, `.yaml` or `.yml` are data, everything else is source.

mod consolidate;
mod constraint;
mod tag;

#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use crate::ast::File;
use crate::builtins::{parse_json, parse_yaml_stream, write_json, write_json_indented, write_yaml};
use crate::compile::Packages;
use crate::diagnostic::{Diagnostic, Phase};
use crate::excerpt;
use crate::format::format_source;
use crate::host::{Budget, Deadline, Evaluation, Handle, SyntaxOptions, Template};
use crate::parser::{parse_expression, parse_file};
use crate::value::Value;

/// What a command works on.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// Name and text of each file.
    pub files: Vec<(String, String)>,
    /// Only files of this package are taken; needed when there are several.
    pub package: Option<String>,
    /// Values for `@tag` attributes: `name=value`, or a bare name.
    pub tags: Vec<String>,
    /// Expressions to evaluate instead of the whole value.
    pub expressions: Vec<String>,
    /// An expression that data files have to satisfy, instead of the whole package.
    pub schema: Option<String>,
    /// The limits of the evaluation.
    pub budget: Budget,
    /// The limit of time, if there is one.
    pub deadline: Option<Deadline>,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Indented JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// CUE.
    Cue,
    /// A string as it is.
    Text,
}

/// Why a command failed: the problems, and the sources to show them with.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// The problems found.
    pub problems: Vec<Diagnostic>,
    /// A closing remark, such as which flag to use.
    pub note: Option<String>,
    sources: Vec<(String, String)>,
}

impl Failure {
    fn new(mut problems: Vec<Diagnostic>, sources: &[(String, String)]) -> Self {
        for problem in &mut problems {
            // The field that holds an expression of the command line is nobody's business.
            if let Some(first) = problem.path.first()
                && first.starts_with(EXPRESSION)
            {
                problem.path.remove(0);
            }
        }
        Failure {
            problems,
            note: None,
            sources: sources.to_vec(),
        }
    }

    /// Shows problems of data that was part of an expression where they are in the file.
    fn show_data_as(&mut self, name: &str, text: &str) {
        let Some(source) = self.sources.iter_mut().find(|(name, _)| name == "-e") else {
            return;
        };
        let before = source
            .1
            .lines()
            .count()
            .saturating_sub(text.lines().count());
        let before = u32::try_from(before).unwrap_or(0);
        *source = (name.to_owned(), text.to_owned());
        for problem in &mut self.problems {
            for location in problem.location.iter_mut().chain(&mut problem.related) {
                if &*location.file == "-e" && location.at.line > before {
                    location.file = name.into();
                    location.at.line -= before;
                }
            }
        }
    }

    fn message(text: impl Into<String>) -> Self {
        let problem = Diagnostic::at(Phase::Build, text, None);
        Failure {
            problems: vec![problem],
            ..Failure::default()
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<(&str, &str)> = self
            .sources
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        formatter.write_str(&excerpt::render(&self.problems, &sources))?;
        match &self.note {
            Some(note) => writeln!(formatter, "{note}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// `cue export`: the finished value, which must be concrete.
pub fn export(input: &Input, output: Output) -> Result<String, Failure> {
    let mut loaded = load(input)?;
    let mut result = String::new();
    for value in loaded.values.clone() {
        loaded.require_valid(value)?;
        loaded.require_concrete(value)?;
        result.push_str(&loaded.written(value, output)?);
    }
    Ok(result)
}

/// What `cue eval` shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvalOptions {
    /// Hidden and optional fields too.
    pub all: bool,
    /// Attributes too.
    pub attributes: bool,
    /// Everything must be concrete.
    pub concrete: bool,
    /// The format of the result; CUE unless given.
    pub output: Option<Output>,
}

/// `cue eval`: the value as far as it is known, defaults taken.
pub fn eval(input: &Input, options: EvalOptions) -> Result<String, Failure> {
    let mut loaded = load(input)?;
    let mut result = String::new();
    for value in loaded.values.clone() {
        loaded.require_valid(value)?;
        if options.concrete {
            loaded.require_concrete(value)?;
        }
        match options.output {
            Some(output) if output != Output::Cue => {
                loaded.require_concrete(value)?;
                result.push_str(&loaded.written(value, output)?);
            }
            _ => {
                let syntax = SyntaxOptions {
                    definitions: !options.concrete,
                    hidden: options.all,
                    optional: options.all,
                    attributes: options.attributes,
                    concrete: true,
                    ..SyntaxOptions::default()
                };
                // Evaluated values are shown with blanks, as the reference does.
                result.push_str(&loaded.source(value, syntax)?.replace('\t', "    "));
            }
        }
    }
    Ok(result)
}

/// `cue def`: the sources as one, references kept as they are written. Where expressions are asked for,
/// or data takes part, it is the constraints that are shown, with defaults, optional fields and comments.
pub fn def(input: &Input) -> Result<String, Failure> {
    let mut loaded = load(input)?;
    let mut result = String::new();
    let is_source = !input.files.iter().any(|(name, _)| is_data(name));
    for value in loaded.values.clone() {
        loaded.require_valid(value)?;
        if is_source && input.expressions.is_empty() {
            result.push_str(&consolidate::consolidate(&loaded.files));
            continue;
        }
        let syntax = SyntaxOptions {
            docs: true,
            attributes: true,
            definitions: true,
            hidden: true,
            optional: true,
            patterns: true,
            ..SyntaxOptions::default()
        };
        result.push_str(&loaded.source(value, syntax)?);
    }
    Ok(result)
}

/// `cue vet`: whether the value is free of problems. With `concrete` unset, values that are not
/// concrete are a failure whose note says how to see them; `Some(false)` allows them.
///
/// Data files are checked one by one against the sources.
pub fn vet(input: &Input, concrete: Option<bool>) -> Result<(), Failure> {
    let (data, sources): (Vec<_>, Vec<_>) = input
        .files
        .iter()
        .cloned()
        .partition(|(name, _)| is_data(name));
    if data.is_empty() || sources.is_empty() {
        return vet_one(input, concrete);
    }
    let mut failure = Failure::default();
    for file in data {
        let mut files = sources.clone();
        let mut expressions = input.expressions.clone();
        let mut data = None;
        match &input.schema {
            None => files.push(file),
            Some(schema) => {
                let text = data_source(&file.0, &file.1)?;
                expressions = vec![format!("{schema} &\n{text}")];
                data = Some((file.0, text));
            }
        }
        let one = Input {
            files,
            expressions,
            ..input.clone()
        };
        if let Err(mut found) = vet_one(&one, Some(concrete.unwrap_or(true))) {
            if let Some((name, text)) = data {
                found.show_data_as(&name, &text);
            }
            failure.problems.extend(found.problems);
            failure.sources = found.sources;
        }
    }
    if failure.problems.is_empty() {
        Ok(())
    } else {
        Err(failure)
    }
}

fn vet_one(input: &Input, concrete: Option<bool>) -> Result<(), Failure> {
    let mut loaded = load(input)?;
    for value in loaded.values.clone() {
        loaded.require_valid(value)?;
        match concrete {
            Some(false) => {}
            Some(true) => loaded.require_concrete(value)?,
            None => {
                if loaded.require_concrete(value).is_err() {
                    let note = "some instances are incomplete; use the -c flag to show errors or \
                                -c=false to allow incomplete instances";
                    return Err(Failure {
                        note: Some(note.to_owned()),
                        ..Failure::default()
                    });
                }
            }
        }
    }
    Ok(())
}

/// `cue fmt`: the formatted text of one file.
pub fn fmt(name: &str, text: &str) -> Result<String, Failure> {
    let sources = [(name.to_owned(), text.to_owned())];
    format_source(name, text).map_err(|problems| Failure::new(problems, &sources))
}

/// An evaluation and the values a command is about.
struct Loaded {
    evaluation: Evaluation,
    values: Vec<Handle>,
    /// The files that take part, as they were written.
    files: Vec<File>,
    sources: Vec<(String, String)>,
}

impl Loaded {
    fn require_valid(&mut self, value: Handle) -> Result<(), Failure> {
        let problems = self.evaluation.validate(value);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(problems, &self.sources))
        }
    }

    fn require_concrete(&mut self, value: Handle) -> Result<(), Failure> {
        let problems = self.evaluation.validate_concrete(value);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(problems, &self.sources))
        }
    }

    fn written(&mut self, value: Handle, output: Output) -> Result<String, Failure> {
        let exported = self.evaluation.export(value);
        let exported = exported.map_err(|problem| Failure::new(vec![problem], &self.sources))?;
        Ok(match output {
            Output::Json => format!("{}\n", write_json_indented(&exported)),
            Output::Yaml => write_yaml(&exported),
            Output::Text => match exported {
                Value::String(text) => format!("{text}\n"),
                Value::Bytes(bytes) => format!("{}\n", String::from_utf8_lossy(&bytes)),
                other => {
                    let kind = other.kind();
                    return Err(Failure::message(format!(
                        "cannot write a value of type {kind} as text"
                    )));
                }
            },
            Output::Cue => {
                let syntax = SyntaxOptions {
                    concrete: true,
                    docs: true,
                    ..SyntaxOptions::default()
                };
                self.source(value, syntax)?
            }
        })
    }

    /// The formatted source of a value; the text as it is should it not parse.
    fn source(&mut self, value: Handle, options: SyntaxOptions) -> Result<String, Failure> {
        let options = SyntaxOptions {
            required: true,
            imports: true,
            bare: true,
            ..options
        };
        let text = self.evaluation.source(value, options);
        let text = text.map_err(|problem| Failure::new(vec![problem], &self.sources))?;
        let mut text = format_source("-", &text).unwrap_or(text);
        if !text.ends_with('\n') && !text.is_empty() {
            text.push('\n');
        }
        Ok(text)
    }
}

fn is_data(name: &str) -> bool {
    is_json(name) || matches!(ending(name), Some("yaml" | "yml"))
}

fn is_json(name: &str) -> bool {
    ending(name) == Some("json")
}

fn ending(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, ending)| ending)
}

/// Data as source text: JSON is part of the language.
fn data_source(name: &str, text: &str) -> Result<String, Failure> {
    let failure = |message: String| Failure::message(format!("{name}: {message}"));
    if is_json(name) {
        // The text is kept, so that positions in problems are those of the file.
        parse_json(text).map_err(failure)?;
        return Ok(text.to_owned());
    }
    let mut documents = parse_yaml_stream(text).map_err(failure)?;
    match documents.len() {
        0 => Ok(String::new()),
        1 => Ok(write_json(&documents.remove(0))),
        count => Err(failure(format!("expected one document, found {count}"))),
    }
}

/// Parses, selects, injects and compiles.
fn load(input: &Input) -> Result<Loaded, Failure> {
    let mut sources = Vec::with_capacity(input.files.len());
    for (name, text) in &input.files {
        let text = if is_data(name) {
            data_source(name, text)?
        } else {
            text.clone()
        };
        sources.push((name.clone(), text));
    }
    let mut parsed = parse_all(&sources)?;
    select_package(&mut parsed, input.package.as_deref())?;
    let constraints = constraint::select(&mut parsed, &input.tags).map_err(Failure::message)?;
    let injected = tag::inject(&parsed, &input.tags, &constraints).map_err(Failure::message)?;
    if !injected.is_empty() {
        for (name, text) in injected {
            if let Some(source) = sources.iter_mut().find(|(known, _)| *known == name) {
                source.1 = text;
            }
        }
        let names: Vec<String> = parsed.iter().map(|file| file.name.to_string()).collect();
        let kept: Vec<(String, String)> = sources
            .iter()
            .filter(|(name, _)| names.contains(name))
            .cloned()
            .collect();
        parsed = parse_all(&kept)?;
        constraint::select(&mut parsed, &input.tags).map_err(Failure::message)?;
    }
    let files = parsed.clone();
    for (position, expression) in input.expressions.iter().enumerate() {
        parsed.push(expression_file(
            &parsed,
            position,
            expression,
            &mut sources,
        )?);
    }
    let program = crate::compile::compile(&parsed, &Packages::new())
        .map_err(|problems| Failure::new(problems, &sources))?;
    let mut evaluation = Template::new(program).evaluate(input.budget);
    if let Some(deadline) = &input.deadline {
        evaluation = evaluation.until(deadline.clone());
    }
    let root = evaluation.root();
    let mut values = Vec::new();
    for position in 0..input.expressions.len() {
        let label = expression_label(position);
        values.extend(evaluation.lookup(root, &label));
    }
    if input.expressions.is_empty() {
        values.push(root);
    }
    Ok(Loaded {
        evaluation,
        values,
        files,
        sources,
    })
}

fn parse_all(sources: &[(String, String)]) -> Result<Vec<File>, Failure> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for (name, text) in sources {
        let (file, found) = parse_file(name, text);
        files.push(file);
        problems.extend(found);
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(Failure::new(problems, sources))
    }
}

/// How the hidden fields that hold expressions of the command line begin.
const EXPRESSION: &str = "_expression_";

/// The name of the hidden field that holds an expression of the command line.
fn expression_label(position: usize) -> String {
    format!("{EXPRESSION}{position}")
}

/// A file that adds an expression as a hidden field, so that it sees the names of the package.
fn expression_file(
    files: &[File],
    position: usize,
    expression: &str,
    sources: &mut Vec<(String, String)>,
) -> Result<File, Failure> {
    let name = match position {
        0 => "-e".to_owned(),
        more => format!("-e {}", more + 1),
    };
    let (_, problems) = parse_expression(&name, expression);
    if !problems.is_empty() {
        return Err(Failure::new(problems, &[(name, expression.to_owned())]));
    }
    // Imports used by the expression are those of the files.
    let mut text = String::new();
    for spec in files
        .iter()
        .flat_map(|file| &file.imports)
        .flat_map(|import| &import.specs)
    {
        let local = spec.name.as_ref().map_or_else(
            || spec.path.rsplit(['/', ':']).next().unwrap_or("").to_owned(),
            |name| name.name.to_string(),
        );
        let line = format!("import {local} \"{}\"\n", spec.path);
        if expression.contains(&format!("{local}.")) && !text.contains(&line) {
            text.push_str(&line);
        }
    }
    // The expression begins a line, so that problems show it as it was given.
    let _ = writeln!(text, "{}:\n{expression}", expression_label(position));
    let (file, problems) = parse_file(&name, &text);
    sources.push((name, text));
    if problems.is_empty() {
        Ok(file)
    } else {
        Err(Failure::new(problems, sources))
    }
}

/// Keeps the files of one package; files without a package clause always stay.
fn select_package(files: &mut Vec<File>, wanted: Option<&str>) -> Result<(), Failure> {
    let package_of = |file: &File| {
        file.package
            .as_ref()
            .map(|clause| clause.name.name.to_string())
    };
    let mut names: Vec<String> = files.iter().filter_map(package_of).collect();
    names.sort();
    names.dedup();
    let chosen = match (wanted, names.as_slice()) {
        (Some(wanted), _) => wanted.to_owned(),
        (None, [] | [_]) => return Ok(()),
        (None, many) => {
            return Err(Failure::message(format!(
                "found packages {}; name the one you mean",
                many.join(", ")
            )));
        }
    };
    if !names.contains(&chosen) {
        return Err(Failure::message(format!("no files of package {chosen:?}")));
    }
    files.retain(|file| package_of(file).is_none_or(|name| name == chosen));
    Ok(())
}
