//! Everything the crate does, on one input.

use bellwether_cue::builtins::write_json;
use bellwether_cue::excerpt::render;
use bellwether_cue::format::format_source;
use bellwether_cue::host::{Budget, Evaluation, FieldOptions, SyntaxOptions, Template};
use bellwether_cue::parser::parse_file;
use bellwether_cue::value::Value;

/// A fraction of the usual limits: one input must not keep the others waiting.
fn budget() -> Budget {
    Budget {
        steps: 200_000,
        memory: 100 << 20,
        output: 1 << 20,
        disjuncts: 2_000,
        ..Budget::default()
    }
}

/// Parses, formats, compiles, evaluates, validates, exports and prints; `Err` says which property
/// does not hold.
pub(crate) fn exercise(source: &str) -> Result<(), String> {
    let (_, problems) = parse_file("fuzz.cue", source);
    let _ = render(&problems, &[("fuzz.cue", source)]);
    if problems.is_empty() {
        formatting_is_stable(source)?;
    }
    let template = match Template::compile_files(&[("fuzz.cue", source)], &[]) {
        Ok(template) => template,
        Err(problems) => {
            let _ = render(&problems, &[("fuzz.cue", source)]);
            return Ok(());
        }
    };
    let mut evaluation = template.evaluate(budget());
    let first = outcome(&mut evaluation, source);
    let mut again = template.evaluate(budget());
    let second = outcome(&mut again, source);
    if first != second || evaluation.counters() != again.counters() {
        return Err(format!("two runs differ: {first} and {second}"));
    }
    later_data_is_no_other_data(&template, evaluation, source)
}

/// Data that comes after an evaluation gives the value it would have given before.
fn later_data_is_no_other_data(
    template: &Template,
    mut evaluation: Evaluation,
    source: &str,
) -> Result<(), String> {
    let root = evaluation.root();
    let fields = evaluation.fields(root, FieldOptions::default());
    let names = fields.iter().map(|field| field.name.clone()).take(3);
    let mut filled = Vec::new();
    for name in names {
        filled.push(name);
        let name = filled[filled.len() - 1].clone();
        evaluation.fill(&[&name, "later"], Value::Number(1.into()));
        outcome(&mut evaluation, source);
    }
    let mut fresh = template.evaluate(budget());
    for name in &filled {
        fresh.fill(&[name, "later"], Value::Number(1.into()));
    }
    let (left, right) = (evaluation.root(), fresh.root());
    match (evaluation.export(left), fresh.export(right)) {
        (Ok(left), Ok(right)) if left.sorted() != right.sorted() => {
            let (left, right) = (write_json(&left), write_json(&right));
            Err(format!("later data gives {left}, earlier {right}"))
        }
        _ => Ok(()),
    }
}

fn formatting_is_stable(source: &str) -> Result<(), String> {
    let Ok(once) = format_source("fuzz.cue", source) else {
        return Err("what parses must format".to_owned());
    };
    let twice = format_source("fuzz.cue", &once).map_err(|problems| {
        let problem = problems.first().map(ToString::to_string);
        format!("formatted text does not parse: {problem:?}\n{once}")
    })?;
    if once == twice {
        Ok(())
    } else {
        Err(format!("formatting twice differs:\n{once}\n---\n{twice}"))
    }
}

fn outcome(evaluation: &mut Evaluation, source: &str) -> String {
    let root = evaluation.root();
    let plain = evaluation.validate(root);
    let concrete = evaluation.validate_concrete(root);
    let _ = render(&plain, &[("fuzz.cue", source)]);
    let _ = render(&concrete, &[("fuzz.cue", source)]);
    let _ = evaluation.source(root, SyntaxOptions::default());
    match evaluation.json(root) {
        Ok(json) => json,
        Err(problem) => problem.to_string(),
    }
}
