//! Trying what a command would do.

use std::str::FromStr;

/// Whether a command changes anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It does what it says.
    #[default]
    None,
    /// Nothing is sent.
    Client,
    /// The server does everything but write.
    Server,
}

impl DryRun {
    /// The query parameter that asks the server for it.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::Server => "All",
            Self::None | Self::Client => "",
        }
    }

    /// What is said after what would have been done.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

impl FromStr for DryRun {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "client" => Ok(Self::Client),
            "server" => Ok(Self::Server),
            other => Err(format!(
                "invalid dry-run value ({other}). Must be \"none\", \"server\", or \"client\""
            )),
        }
    }
}
