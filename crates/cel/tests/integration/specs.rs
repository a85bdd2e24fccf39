//! Runs the documents in `testdata/`: prose with blocks of expressions and what they yield.
//!
//! A `json` block binds variables for the `cel` blocks that follow it, a `schema` block declares
//! them (`schema resource`: as whole resources). In a `cel` block, lines read:
//!
//! - `expression  =>  value`
//! - `expression  =!>  text of the evaluation error`
//! - `expression  =?>  first line of the compile error`
//! - `expression  =$>  cost of the evaluation`
//! - `expression  =~>  least..most estimated cost`
//!
//! The expectations were computed with cel-go 0.26 and the libraries of Kubernetes 1.35.

#![expect(clippy::expect_used, reason = "a broken document should stop the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether_cel::{
    Budget, DeclType, Env, EnvBuilder, Library, LibrarySet, Program, Type, Value, Vars,
};

/// What Kubernetes knows, and the libraries it does not enable.
const LIBRARIES: LibrarySet = LibrarySet::KUBERNETES
    .with(Library::Math)
    .with(Library::Encoders)
    .with(Library::Bindings);

/// What a document has set up so far.
#[derive(Default)]
struct Context {
    bindings: serde_json::Map<String, serde_json::Value>,
    schema: Option<Arc<DeclType>>,
}

#[test]
fn every_document_holds() {
    let mut checked = 0;
    let mut failures = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a readable document");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        checked += run_document(&name, &text, &mut failures);
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(checked > 700, "only {checked} lines were found");
}

fn documents() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the testdata folder")
        .map(|entry| entry.expect("a folder entry").path())
        .collect();
    paths.sort();
    paths
}

fn run_document(name: &str, text: &str, failures: &mut Vec<String>) -> usize {
    let mut context = Context::default();
    let mut checked = 0;
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let block: Vec<(usize, &str)> = lines
            .by_ref()
            .take_while(|(_, line)| *line != "```")
            .collect();
        let body = || {
            let text: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
            serde_json::from_str::<serde_json::Value>(&text.join("\n")).expect("JSON in the block")
        };
        match language {
            "json" => context.bindings = body().as_object().cloned().expect("an object"),
            "schema" => context.schema = DeclType::from_schema(&body(), false).map(Arc::new),
            "schema resource" => {
                context.schema = DeclType::from_schema(&body(), true).map(Arc::new);
            }
            "cel" => {
                for (number, line) in block {
                    checked += 1;
                    if let Err(problem) = check_line(&context, line) {
                        failures.push(format!("{name}:{}: {line}\n    {problem}", number + 1));
                    }
                }
            }
            other => panic!("{name}: unknown block {other}"),
        }
    }
    checked
}

fn check_line(context: &Context, line: &str) -> Result<(), String> {
    for separator in ["  =!>  ", "  =?>  ", "  =$>  ", "  =~>  ", "  =>  "] {
        if let Some((expression, expected)) = line.rsplit_once(separator) {
            let actual = outcome(context, expression, separator.trim());
            return if actual == expected {
                Ok(())
            } else {
                Err(format!("got {actual}"))
            };
        }
    }
    Err("no expectation".to_owned())
}

fn outcome(context: &Context, expression: &str, kind: &str) -> String {
    let program = match environment(context).compile(expression) {
        Ok(program) => program,
        Err(errors) => {
            let text = errors.to_string();
            let first = text.lines().next().unwrap_or_default();
            return expecting(kind, "=?>", first);
        }
    };
    if kind == "=~>" {
        let estimate = program.estimate_cost();
        return format!("{}..{}", estimate.min, estimate.max);
    }
    let mut vars = Vars::new();
    for (name, value) in &context.bindings {
        vars = vars.json(name, value);
    }
    let mut budget = Budget::kubernetes();
    let result = evaluate(&program, &vars, &mut budget);
    if kind == "=$>" {
        return budget.spent().to_string();
    }
    match result {
        Ok(text) => expecting(kind, "=>", &text),
        Err(text) => expecting(kind, "=!>", &text),
    }
}

fn evaluate(program: &Program, vars: &Vars<'_>, budget: &mut Budget) -> Result<String, String> {
    program
        .evaluate(vars, budget)
        .map(|value: Value<'_>| value.to_string())
        .map_err(|error| error.to_string())
}

/// The text if its kind is the one wanted, else marked so that it cannot match.
fn expecting(wanted: &str, kind: &str, text: &str) -> String {
    if wanted == kind {
        text.to_owned()
    } else {
        format!("{kind} {text}")
    }
}

fn environment(context: &Context) -> Env {
    let mut builder: EnvBuilder = Env::builder().libraries(LIBRARIES);
    for name in context.bindings.keys() {
        builder = match &context.schema {
            Some(schema) => builder.schema_variable(name, schema),
            None => builder.variable(name, Type::Dyn),
        };
    }
    builder.build()
}
