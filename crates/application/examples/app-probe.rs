//! Answers JSON lines on standard input, for `cargo xtask corpus`.

use std::io::{BufRead as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", bellwether_application::probe::answer(&line?))?;
        output.flush()?;
    }
    Ok(())
}
