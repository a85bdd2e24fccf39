//! What a terminal can show: colours, and lines that are drawn again.

use std::io::{IsTerminal as _, Write as _};

use anstream::{AutoStream, ColorChoice};

use crate::cli::say;

/// True if people see standard output as it is printed.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True if colours are wanted on standard output: a terminal that can show them, and neither
/// `NO_COLOR` nor `TERM=dumb` forbids them.
pub(crate) fn has_colours() -> bool {
    AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
}

/// The same for standard error.
pub(crate) fn has_colours_for_errors() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

/// A text on a terminal that is drawn over its predecessor.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    drawn: usize,
}

impl Screen {
    /// Draws a text where the last one was.
    pub(crate) fn draw(&mut self, text: &str) {
        let mut frame = String::new();
        if self.drawn > 0 {
            // To the beginning of the line so many lines up, then erase all below.
            frame = format!("\x1b[{}F\x1b[J", self.drawn);
        }
        frame.push_str(text);
        self.drawn = text.lines().count();
        let mut out = std::io::stdout();
        let written = out.write_all(frame.as_bytes()).and_then(|()| out.flush());
        crate::cli::note_broken_pipe(&written);
    }
}

/// Prints lines that were not there before, and returns all of them for the next time.
pub(crate) fn print_new(known: &[String], lines: Vec<String>) -> Vec<String> {
    for line in lines.iter().filter(|line| !known.contains(line)) {
        say(line);
    }
    lines
}
