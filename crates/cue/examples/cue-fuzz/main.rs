//! Looks for inputs that make the crate panic, hang or disagree with itself.
//!
//! `fuzz SECONDS [SEED] [DIRECTORY...]`: takes the sources in the directories (and the specs of this
//! crate) apart, mixes and breaks them, and does with each result everything the crate can do. What
//! fails is written to the file `fuzz-failure.cue` and ends the run. The input at work is always in
//! `fuzz-current.cue`, so that a crash of the whole process leaves its cause behind.
//!
//! `fuzz FILE` does the same with one file, and says how long it took.

#![allow(clippy::print_stdout, reason = "a program for people")]

mod exercise;
mod mutate;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use exercise::exercise;
use mutate::{Mutator, seeds};

/// An input that takes longer counts as a hang. The budgets of an exercise, six evaluations, end well
/// before, also where other programs want the machine.
const INPUT_TIMEOUT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let file = arguments.peek().map(PathBuf::from);
    if let Some(file) = file.filter(|file| file.is_file()) {
        return replay(&file);
    }
    let seconds = arguments.next().and_then(|text| text.parse().ok());
    let seed = arguments.next().and_then(|text| text.parse().ok());
    let mut sources = seeds();
    for directory in arguments {
        collect(Path::new(&directory), &mut sources);
    }
    run(
        Duration::from_secs(seconds.unwrap_or(60)),
        seed.unwrap_or(1),
        sources,
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "a fuzzer measures real time; nothing else depends on it"
)]
fn replay(file: &Path) -> ExitCode {
    let text = fs::read_to_string(file).unwrap_or_default();
    let began = Instant::now();
    let outcome = exercise(&text);
    println!("{outcome:?} after {:?}", began.elapsed());
    outcome.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// The texts of all `.cue` files at and below a directory.
fn collect(directory: &Path, sources: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "cue") {
            sources.extend(fs::read_to_string(&path));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a fuzzer measures real time; nothing else depends on it"
)]
fn run(length: Duration, seed: u64, sources: Vec<String>) -> ExitCode {
    println!("{} seeds, {length:?}, seed {seed}", sources.len());
    let (inputs, received) = channel::<String>();
    let (outcomes, done) = channel::<Result<(), String>>();
    std::thread::spawn(move || {
        for input in received {
            let outcome = std::panic::catch_unwind(|| exercise(&input));
            let outcome = outcome.unwrap_or_else(|_| Err("panic".to_owned()));
            if outcomes.send(outcome).is_err() {
                return;
            }
        }
    });
    let mut mutator = Mutator::new(seed, sources);
    let (start, mut count, mut slowest) = (Instant::now(), 0_u64, Duration::ZERO);
    while start.elapsed() < length {
        let input = mutator.next_input();
        let _ = fs::write("fuzz-current.cue", &input);
        let began = Instant::now();
        if inputs.send(input.clone()).is_err() {
            return ExitCode::FAILURE;
        }
        let outcome = match done.recv_timeout(INPUT_TIMEOUT) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err("hang".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("the worker is gone".to_owned()),
        };
        count += 1;
        let took = began.elapsed();
        if took > slowest {
            slowest = took;
            println!("slowest so far: {took:?}, input {count}");
            let _ = fs::write("fuzz-slowest.cue", &input);
        }
        if let Err(problem) = outcome {
            let _ = fs::write("fuzz-failure.cue", &input);
            println!("input {count}: {problem}\n{input}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} inputs, no problem, slowest {slowest:?}");
    ExitCode::SUCCESS
}
