//! Commands that tests run.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc;

/// Runs a command to its end: whether it succeeded, its output, its errors.
///
/// # Panics
/// If it cannot be started.
pub fn run(command: &mut Command) -> (bool, String, String) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The lines that a process prints, while it runs. Its output has to be piped.
///
/// # Panics
/// If it is not.
#[expect(clippy::expect_used, reason = "a test that cannot go on fails")]
pub fn lines(process: &mut Child) -> mpsc::Receiver<String> {
    let output = process.stdout.take().expect("the output is piped");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
