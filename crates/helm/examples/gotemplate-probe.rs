//! Answers JSON lines on standard input, for `cargo xtask corpus`.

use std::io::{BufRead as _, Write as _};

use bellwether_helm::{NoCluster, gotemplate};
use bellwether_template::{World, guessable_bytes};

fn main() -> std::io::Result<()> {
    let world = World {
        facts: &NoCluster,
        now: jiff::Timestamp::constant(1_700_000_000, 123_456_789),
        random: &guessable_bytes,
    };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", gotemplate::answer(&line?, &world))?;
        output.flush()?;
    }
    Ok(())
}
