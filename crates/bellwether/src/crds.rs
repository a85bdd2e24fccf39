//! `bellwether crds`: the definitions that a real cluster needs before we work on it.

use bellwether_json::yaml::to_yaml;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::cli::say;

/// Print the CustomResourceDefinitions of the kinds that a hub and its agents work with.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bellwether crds | kubectl apply --server-side -f -")]
pub(crate) struct CrdsArgs {
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One YAML document each.
    Yaml,
    /// One JSON list.
    Json,
}

pub(crate) fn run(arguments: &CrdsArgs) {
    let definitions = bellwether_api::definitions();
    match arguments.output {
        Format::Yaml => {
            let documents: Vec<String> = definitions.map(|it| to_yaml(&it)).collect();
            say(documents.join("---\n").trim_end());
        }
        Format::Json => {
            let definitions: Vec<_> = definitions.collect();
            say(&json!({"apiVersion": "v1", "kind": "List", "items": definitions}).to_string());
        }
    }
}
