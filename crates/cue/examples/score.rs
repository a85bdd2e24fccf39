//! Scores conformance records from standard input, one JSON object per line.
//!
//! `cargo run --release -p bellwether-cue --example score < records.jsonl`. Arguments filter by
//! part of the identifier; `-v` lists what is wrong.

#![allow(clippy::print_stdout, reason = "a command line tool")]

use std::io::BufRead as _;

use bellwether_cue::host::Budget;
use bellwether_cue::probe::answer;
use bellwether_cue::score::score;

fn main() -> std::io::Result<()> {
    let mut filters: Vec<String> = std::env::args().skip(1).collect();
    let verbose = filters.iter().any(|argument| argument == "-v");
    filters.retain(|argument| !argument.starts_with('-'));
    let lines = std::io::stdin()
        .lock()
        .lines()
        .collect::<Result<Vec<String>, _>>()?;
    let chosen = lines.iter().map(String::as_str).filter(|line| {
        filters.is_empty() || filters.iter().any(|filter| line.contains(filter.as_str()))
    });
    let report = score(chosen, |line| {
        let line = line.to_owned();
        // A panic in one record must not hide the others.
        let run = std::panic::catch_unwind(move || answer(&line, Budget::default()));
        run.ok()
    });
    if verbose {
        for outcome in report.outcomes.iter().filter(|outcome| !outcome.right) {
            println!(
                "T{} {} {}: {}",
                outcome.tier, outcome.kind, outcome.id, outcome.reason
            );
        }
    }
    print!("{report}");
    Ok(())
}
