//! Answers JSON lines on standard input, for `cargo xtask corpus`: cases with a `template` are resolved, others are
//! dry runs.

use std::io::{BufRead as _, Write as _};

use bellwether_policy::{dryrun, template};
use bellwether_template::{NOWHERE, World, guessable_bytes};
use serde_json::Value;

fn main() -> std::io::Result<()> {
    let world = World {
        facts: NOWHERE.facts,
        now: jiff::Timestamp::constant(1_700_000_000, 123_456_789),
        random: &guessable_bytes,
    };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let case: Value = serde_json::from_str(&line).unwrap_or_default();
        let answer = match case.get("template") {
            Some(_) => template::probe::answer(&line, &world),
            None => dryrun::probe::answer(&line, &world),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}
