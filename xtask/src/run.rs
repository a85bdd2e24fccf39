//! Running programs and telling people about it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Prints a line.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A program in the root of the repository.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// Cargo, the same that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    program(env!("CARGO"), arguments)
}

/// Runs a program, passes its output on and hands each line of standard output to `line`.
/// Returns whether it succeeded.
pub(crate) fn watch(command: &mut Command, mut line: impl FnMut(&str)) -> anyhow::Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let output = child.stdout.take().context("no output to read")?;
    for text in BufReader::new(output).lines() {
        let text = text?;
        say(&text);
        line(&text);
    }
    Ok(child.wait()?.success())
}

/// Whether a program can be run at all.
pub(crate) fn is_installed(name: &str, arguments: &[&str]) -> bool {
    let quiet = |command: &mut Command| {
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    quiet(&mut program(name, arguments))
}
