//! `bellwether examples`: lists the examples in the binary, and plays them on a fleet that is thrown away.

use std::path::Path;

use anyhow::Context as _;
use bellwether_ctl::near::nearest;
use bellwether_examples::{Chaos, EXAMPLES, Example, Settings, play};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::cli::say;
use crate::print::line;

/// What to do with examples.
#[derive(Debug, Args)]
pub(crate) struct ExamplesArgs {
    #[command(subcommand)]
    command: ExamplesCommand,
}

#[derive(Debug, Subcommand)]
enum ExamplesCommand {
    List(ListArgs),
    Run(RunArgs),
    Show(ShowArgs),
}

/// List the examples that can be played.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bellwether examples list\n  bellwether examples list -o name")]
struct ListArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns.
    Table,
    /// Only names.
    Name,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Play an example on a fleet that is thrown away, with a commentary.
///
/// Starts a hub and members on a free port, does what the script of the example says, and waits for what it promises. The
/// exit code is 0 only if everything that was promised was seen.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bellwether examples run canary\n  bellwether examples run case-2-blue-green --kills 5 --seed 7\n  bellwether examples run case-1-multi-cluster --apart --kills 5"
)]
struct RunArgs {
    /// The example, as `examples list` names it, or a folder such as ./examples/canary.
    name: String,
    /// Kill processes of the fleet this many times at random moments, as `kill -9` does: the end is the same.
    #[arg(long, value_name = "N", default_value_t = 0)]
    kills: usize,
    /// Run the hub and each agent in a process of its own; --kills then kills one of them at a time.
    #[arg(long)]
    apart: bool,
    /// What the random moments depend on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Print the files of an example.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether examples show canary")]
struct ShowArgs {
    /// The example, as `examples list` names it.
    name: String,
}

pub(crate) async fn run(arguments: ExamplesArgs) -> anyhow::Result<()> {
    match arguments.command {
        ExamplesCommand::List(arguments) => list(&arguments),
        ExamplesCommand::Show(arguments) => show(&arguments),
        ExamplesCommand::Run(arguments) => {
            let example = find(&arguments.name)?;
            let settings = Settings {
                program: std::env::current_exe().context("cannot find this program")?,
                chaos: (arguments.kills > 0).then_some(Chaos {
                    kills: arguments.kills,
                    seed: arguments.seed,
                }),
                is_apart: arguments.apart,
            };
            Ok(Box::pin(play(&example, &settings, say)).await?)
        }
    }
}

fn find(name: &str) -> anyhow::Result<Example> {
    if name.starts_with(['.', '/']) {
        return Example::read(Path::new(name)).with_context(|| format!("cannot read {name}"));
    }
    let name = name.trim_end_matches('/').trim_start_matches("examples/");
    Example::find(name).cloned().with_context(|| {
        let names = EXAMPLES.iter().map(|example| &*example.name);
        match nearest(name, names) {
            Some(meant) => format!("there is no example {name:?}; did you mean {meant}?"),
            None => format!("there is no example {name:?}: see bellwether examples list"),
        }
    })
}

fn list(arguments: &ListArgs) -> anyhow::Result<()> {
    let mut lines = vec![line(["NAME", "SHOWS"])];
    let mut documents = Vec::new();
    for example in EXAMPLES {
        let script = example
            .script()
            .with_context(|| format!("example {}", example.name))?;
        lines.push(line([&example.name, &script.title]));
        documents.push(json!({"name": example.name, "title": script.title, "about": script.about}));
    }
    match arguments.output {
        Format::Table => {
            let printed = bellwether_ctl::write_table(&mut std::io::stdout().lock(), &lines);
            printed.context("cannot print")?;
        }
        Format::Name => EXAMPLES.iter().for_each(|example| say(&example.name)),
        Format::Json => say(&serde_json::to_string_pretty(&documents)?),
        Format::Yaml => say(bellwether_json::yaml::to_yaml(&json!(documents)).trim_end()),
    }
    Ok(())
}

fn show(arguments: &ShowArgs) -> anyhow::Result<()> {
    let example = find(&arguments.name)?;
    for (path, text) in &*example.files {
        say(&format!("==> {path} <==\n{text}"));
    }
    Ok(())
}
