//! Answers conformance records: one JSON object per line in, one per line out.

use std::io::{BufRead as _, Write as _};

use bellwether_cue::host::Budget;
use bellwether_cue::probe::answer;

fn main() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", answer(&line?, Budget::default()))?;
        output.flush()?;
    }
    Ok(())
}
