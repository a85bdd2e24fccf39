//! Development tasks: `cargo xtask test`, `bench`, `corpus`, `fuzz`, `image`.

mod bench;
mod corpus;
mod fuzz;
mod image;
mod invariants;
mod layers;
mod run;
mod test;
mod workspace;

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
    /// Score an engine against a file of cases, by tier: CUE, or what the name of the file says.
    Corpus {
        /// JSON lines: a case each, with what is expected.
        path: std::path::PathBuf,
        /// Print the cases that fail.
        #[arg(long)]
        failures: bool,
    },
    /// Build an OCI image as an archive, without a container engine; the same sources give the same digest.
    Image(image::ImageArgs),
    /// Look for inputs that make an engine panic, hang or contradict itself.
    Fuzz {
        /// Which engine.
        #[arg(long, value_enum, default_value_t)]
        target: fuzz::Target,
        /// For how long.
        #[arg(default_value_t = 600)]
        seconds: u64,
        /// The same number gives the same inputs.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Directories with more sources to start from.
        seeds: Vec<std::path::PathBuf>,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Test => test::test(),
        Command::Bench { name } => bench::bench(name.as_deref()),
        Command::Corpus { path, failures } => corpus::corpus(&path, failures),
        Command::Image(arguments) => image::image(&arguments),
        Command::Fuzz {
            target,
            seconds,
            seed,
            seeds,
        } => fuzz::fuzz(target, seconds, seed, &seeds),
    }
}
