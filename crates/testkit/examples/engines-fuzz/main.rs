//! Looks for cases that make an engine panic, hang or take much memory.
//!
//! Usage: `fuzz ENGINE SECONDS SEED [PATH…]`. Seeds are JSON lines, as `bellwether probe` reads them: those in
//! the crate of the engine, and of further files or directories. The first finding is written to
//! `fuzz-failure.jsonl` and ends the run with an error.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

mod engines;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bellwether_testkit::{Fuzzer, SLOW};
use engines::{ENGINES, seeds};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let engine = arguments.next().unwrap_or_default();
    let Some((name, package, answer)) = ENGINES.into_iter().find(|(name, ..)| *name == engine)
    else {
        eprintln!("there is no engine {engine}");
        return ExitCode::FAILURE;
    };
    let mut number = |default: u64| {
        let number = arguments.next().and_then(|text| text.parse().ok());
        number.unwrap_or(default)
    };
    let (seconds, seed) = (number(60), number(1));
    let slow = seeds(&format!("{name}-slow"), package);
    let paths: Vec<PathBuf> = [seeds(name, package), slow]
        .into_iter()
        .filter(|path| path.exists())
        .chain(arguments.map(PathBuf::from))
        .collect();
    let fuzzer = match Fuzzer::new(seed, &paths) {
        Ok(fuzzer) => fuzzer,
        Err(error) => {
            eprintln!("cannot read the seeds: {error}");
            return ExitCode::FAILURE;
        }
    };
    let found = fuzzer.run(Duration::from_secs(seconds), SLOW, answer);
    if let Some((line, problem)) = found.failure {
        eprintln!("a case {problem}:\n{line}");
        let _ = std::fs::write("fuzz-failure.jsonl", line + "\n");
        return ExitCode::FAILURE;
    }
    let tried = found.tried;
    println!("{tried} cases in {seconds} s, seed {seed}: none panics, hangs or takes much memory");
    ExitCode::SUCCESS
}
