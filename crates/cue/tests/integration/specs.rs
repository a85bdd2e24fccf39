//! Runs the literate specs in `testdata`: prose, a block of source, a block with what to expect.
//!
//! A `cue` block is followed by `json` (the exported value, fields in order), `error` (a final
//! problem whose text contains the block), `incomplete` (a problem that more data may resolve) or
//! `reject` (a problem found before evaluation). Several `cue` blocks in a row are files of one package; a
//! `package PATH` block before them is what they may import under that path. A `base` and a `patch` block
//! are merged first; `patch NAME` names the strategy.
//!
//! A `work` block after the expectation holds the work that it took: nodes made, conjuncts unified,
//! alternatives tried. It is exact, so that a change that makes evaluation do more shows as a
//! difference here, long before it shows on a clock.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::builtins::{parse_json, write_json};
use bellwether_cue::diagnostic::{Diagnostic, Phase};
use bellwether_cue::host::{Budget, Counters, Evaluation, Template};
use bellwether_cue::patch::{Operand, Strategy, apply};

/// A fenced block and where it starts.
struct Block<'a> {
    kind: &'a str,
    text: String,
    line: usize,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    for (index, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some("") if open => open = false,
            Some(kind) => {
                open = true;
                blocks.push(Block {
                    kind,
                    text: String::new(),
                    line: index + 1,
                });
            }
            None => {
                if let Some(block) = blocks.last_mut().filter(|_| open) {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
        }
    }
    blocks
}

/// What happened to a source.
enum Outcome {
    Json(String),
    Problems(&'static str, Vec<Diagnostic>),
    Failed(String),
}

/// The outcome of a source and the work it took.
struct Run {
    outcome: Outcome,
    work: Option<Counters>,
}

fn finish(mut evaluation: Evaluation) -> Run {
    let outcome = conclude(&mut evaluation);
    Run {
        outcome,
        work: Some(evaluation.counters()),
    }
}

fn conclude(evaluation: &mut Evaluation) -> Outcome {
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if !problems.is_empty() {
        return Outcome::Problems("error", problems);
    }
    let problems = evaluation.validate_concrete(root);
    if !problems.is_empty() {
        return Outcome::Problems("incomplete", problems);
    }
    match evaluation.json(root) {
        Ok(json) => Outcome::Json(json),
        Err(problem) => Outcome::Problems("incomplete", vec![problem]),
    }
}

/// Evaluates one example: its packages, then its files.
fn evaluated(blocks: &[Block<'_>]) -> Run {
    let mut files = Vec::new();
    let mut packages = Vec::new();
    for block in blocks {
        match block.kind.split_once(' ') {
            Some((_, path)) => packages.push((path, block.text.as_str())),
            None => files.push(("-", block.text.as_str())),
        }
    }
    match Template::compile_files(&files, &packages) {
        Ok(template) => finish(template.evaluate(Budget::default())),
        Err(problems) => {
            assert!(problems.iter().all(|problem| problem.phase != Phase::Eval));
            Run {
                outcome: Outcome::Problems("reject", problems),
                work: None,
            }
        }
    }
}

fn merged(base: &str, patch: &str, strategy: Strategy) -> Run {
    let compiled = |source: &str| {
        Template::compile(source)
            .expect(source)
            .evaluate(Budget::default())
    };
    let (mut base, mut patch) = (compiled(base), compiled(patch));
    let (base_root, patch_root) = (base.root(), patch.root());
    let result = apply(
        Operand {
            evaluation: &mut base,
            value: base_root,
        },
        Operand {
            evaluation: &mut patch,
            value: patch_root,
        },
        strategy,
        Budget::default(),
    );
    match result {
        Ok(evaluation) => finish(evaluation),
        Err(error) => Run {
            outcome: Outcome::Failed(error.to_string()),
            work: None,
        },
    }
}

fn is_source(block: &Block<'_>) -> bool {
    block.kind == "cue" || block.kind.starts_with("package ")
}

fn strategy(kind: &str) -> Option<Strategy> {
    match kind {
        "patch" => Some(Strategy::Unify),
        "patch jsonMergePatch" => Some(Strategy::JsonMergePatch),
        "patch jsonPatch" => Some(Strategy::JsonPatch),
        _ => None,
    }
}

/// The disagreement between an outcome and an expectation, if there is one.
fn disagreement(outcome: &Outcome, expected: &Block<'_>) -> Option<String> {
    let wanted = expected.text.trim();
    match (outcome, expected.kind) {
        (Outcome::Json(json), "json") => {
            let wanted = write_json(&parse_json(wanted).expect("expected JSON"));
            (*json != wanted).then(|| format!("got {json}"))
        }
        (Outcome::Problems(class, problems), kind) if *class == kind => {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let found = texts.iter().any(|text| text.contains(wanted));
            (!found).then(|| format!("got {texts:?}"))
        }
        (Outcome::Failed(text), "error") => (!text.contains(wanted)).then(|| format!("got {text}")),
        (Outcome::Json(json), _) => Some(format!("got the value {json}")),
        (Outcome::Problems(class, problems), _) => Some(format!("got {class}: {problems:?}")),
        (Outcome::Failed(text), _) => Some(format!("got the error {text}")),
    }
}

fn run(name: &str, document: &str) {
    let blocks = blocks(document);
    let mut failures = Vec::new();
    let mut position = 0;
    while position < blocks.len() {
        let block = &blocks[position];
        let (Run { outcome, work }, mut length) = if block.kind == "base" {
            let patch = &blocks[position + 1];
            let strategy = strategy(patch.kind).expect(patch.kind);
            (merged(&block.text, &patch.text, strategy), 2)
        } else {
            let rest = &blocks[position..];
            let length = rest.iter().take_while(|block| is_source(block)).count();
            assert!(length > 0, "{name}:{}: unexpected block", block.line);
            (evaluated(&rest[..length]), length)
        };
        let expected = &blocks[position + length];
        if let Some(text) = disagreement(&outcome, expected) {
            failures.push(format!(
                "{name}:{}: expected {}{}: {text}",
                block.line,
                expected.kind,
                expected.text.trim_end()
            ));
        }
        if let Some(block) = blocks
            .get(position + length + 1)
            .filter(|b| b.kind == "work")
        {
            let spent = work.map_or_else(String::new, |work| {
                let Counters {
                    nodes,
                    conjuncts,
                    disjuncts,
                    ..
                } = work;
                format!("nodes {nodes}, unifications {conjuncts}, disjuncts {disjuncts}")
            });
            if block.text.trim() != spent {
                let line = block.line;
                failures.push(format!("{name}:{line}: the work is now {spent}"));
            }
            length += 1;
        }
        position += length + 1;
    }
    assert!(position > 0, "{name} has no examples");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

macro_rules! specs {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let file = concat!(stringify!($name), ".md");
                run(file, include_str!(concat!("../../testdata/", stringify!($name), ".md")));
            }
        )*
    };
}

specs! {
    lexing, unification, disjunctions, references, structs, closedness, existence, errors, cycles,
    operators, packages, strings, order, builtins, extensions, patches, work,
}
