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
        let text = match terminal_size::terminal_size() {
            Some((width, height)) => fitted(text, width.0.into(), height.0.into()),
            None => text.to_owned(),
        };
        frame.push_str(&text);
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

/// As much of a text as fits on a terminal: lines that wrapped or scrolled could not be drawn over.
fn fitted(text: &str, width: usize, height: usize) -> String {
    let most = height.saturating_sub(1).max(1);
    let count = text.lines().count();
    let shown = if count > most { most - 1 } else { count };
    let mut fitted = String::new();
    for line in text.lines().take(shown) {
        fitted.push_str(&cut(line, width));
        fitted.push('\n');
    }
    if shown < count {
        let more = format!("… {} more lines\n", count - shown);
        fitted.push_str(&more);
    }
    fitted
}

/// The beginning of a line; escape sequences take no place.
fn cut(line: &str, width: usize) -> String {
    let mut cut = String::new();
    let mut column = 0;
    let mut in_escape = false;
    for character in line.chars() {
        if character == '\x1b' {
            in_escape = true;
        }
        if in_escape {
            in_escape = !character.is_ascii_alphabetic();
            cut.push(character);
            continue;
        }
        column += 1;
        match column.cmp(&width) {
            std::cmp::Ordering::Less => cut.push(character),
            // The last column has the last character, or says that there are more.
            std::cmp::Ordering::Equal => cut.push('…'),
            std::cmp::Ordering::Greater => {}
        }
    }
    if column <= width {
        return line.to_owned();
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(fitted("abc\nde\n", 3, 24), "abc\nde\n");
        assert_eq!(fitted("abcd\n", 3, 24), "ab…\n");
        let coloured = "\x1b[1mabcd\x1b[0m";
        assert_eq!(cut(coloured, 3), "\x1b[1mab…\x1b[0m");
        assert_eq!(cut(coloured, 4), coloured);
        assert_eq!(fitted("a\nb\nc\nd\n", 9, 4), "a\nb\n… 2 more lines\n");
        assert_eq!(fitted("a\nb\nc\n", 9, 4), "a\nb\nc\n");
    }
}
