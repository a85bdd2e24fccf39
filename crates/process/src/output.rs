//! Lines that a process prints on standard output.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the reader of standard output has gone.
static PIPE_IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Prints a line. A reader that has gone is no reason to fail: servers go on, and other commands
/// ask [`is_pipe_broken`] for their exit status.
pub fn say(line: &str) {
    note_broken_pipe(&writeln!(std::io::stdout(), "{line}"));
}

/// Takes note if standard output was closed by its reader.
pub fn note_broken_pipe(written: &std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        PIPE_IS_BROKEN.store(true, Ordering::Relaxed);
    }
}

/// True if standard output was closed by its reader.
pub fn is_pipe_broken() -> bool {
    PIPE_IS_BROKEN.load(Ordering::Relaxed)
}
