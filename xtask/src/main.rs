//! Development tasks: `cargo xtask test`, `cargo xtask bench`, `cargo xtask corpus`.

mod bench;
mod corpus;
mod layers;
mod run;
mod test;

use clap::{Parser, Subcommand};

/// Everything that a developer runs, one command each.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Format, lint, unit, integration and end-to-end tests; says what it skips and why.
    Test,
    /// Benchmarks, all or one: a report, never a verdict.
    Bench {
        /// Which one, such as `store` or `cue`.
        name: Option<String>,
    },
    /// Score the CUE engine against a file of cases, by kind and tier.
    Corpus {
        /// JSON lines: a case each, with what is expected.
        path: std::path::PathBuf,
        /// Print the cases that fail.
        #[arg(long)]
        failures: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Test => test::test(),
        Command::Bench { name } => bench::bench(name.as_deref()),
        Command::Corpus { path, failures } => corpus::corpus(&path, failures),
    }
}
