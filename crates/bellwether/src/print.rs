//! What commands print: a table for people, JSON or YAML for programs.

use anyhow::Context as _;
use bellwether_json::yaml::to_yaml;
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::cli::say;

/// How a command prints.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PrintArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns or text.
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl PrintArgs {
    /// True for the format that people read.
    pub(crate) fn is_table(self) -> bool {
        self.output == Format::Table
    }

    /// Prints lines of cells, the first of which is the heading, or the document.
    pub(crate) fn print(self, document: &Value, lines: &[Vec<String>]) -> anyhow::Result<()> {
        match self.output {
            Format::Table => {
                let mut out = std::io::stdout().lock();
                let printed = bellwether_ctl::write_table(&mut out, lines);
                printed.context("cannot print")?;
            }
            Format::Json => say(&serde_json::to_string_pretty(document)?),
            Format::Yaml => say(to_yaml(document).trim_end()),
        }
        Ok(())
    }
}

/// A line of a table.
pub(crate) fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}
