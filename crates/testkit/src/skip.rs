//! Tests that cannot run here: they say so, and are counted as skipped.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Names the file to which `cargo xtask test` has skipped tests added.
const SKIPPED_FILE: &str = "BELLWETHER_SKIPPED_FILE";

/// Says that the test of this thread is skipped, and why. The test is to return after that.
///
/// # Panics
///
/// If the file of skipped tests cannot be written.
pub fn skip(why: impl std::fmt::Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}: {why}");
    // Standard error of a test cannot fail in a way that matters.
    let _ = writeln!(std::io::stderr(), "skipped: {line}");
    let Some(path) = std::env::var_os(SKIPPED_FILE) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{}", line.replace('\n', " ")));
    if let Err(error) = written {
        panic!("cannot count a skipped test: {error}");
    }
}
