//! Colours of a terminal.

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Colors {
    are_on: bool,
}

const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";
const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

impl Colors {
    pub(super) const fn new(are_on: bool) -> Self {
        Self { are_on }
    }

    fn colored(self, text: &str, color: &str) -> String {
        if self.are_on {
            format!("{color}{text}{RESET}")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn success(self, text: &str) -> String {
        self.colored(text, GREEN)
    }

    pub(super) fn error(self, text: &str) -> String {
        self.colored(text, RED)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.colored(text, YELLOW)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.colored(text, BOLD)
    }

    /// Colours the lines of a difference.
    pub(super) fn diff(self, diff: &str) -> String {
        let lines = diff.split('\n').map(|line| {
            if line.starts_with('-') && !line.starts_with("---") {
                self.error(line)
            } else if line.starts_with('+') && !line.starts_with("+++") {
                self.success(line)
            } else {
                line.to_owned()
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
