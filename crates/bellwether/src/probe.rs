//! `bellwether probe …`: the pure engines, for scripts and for tests in other languages.

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;
use bellwether_cue::host::Budget;
use clap::ValueEnum;

/// What answers.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Engine {
    /// An Application with definitions and objects in, its manifests and the verdict of admission out.
    App,
    /// Sources in, value and errors out.
    Cue,
    /// A chart and values in, the result of `helm template` out.
    Chart,
    /// A template and values in, its output in a chart of its own out.
    Gotemplate,
    /// Live objects of a component, trait or Application in, how they fare out.
    Health,
    /// Files of a directory in, the result of `kustomize build` out.
    Kustomize,
    /// Groups, strategy and statuses in, who goes next out.
    Rollout,
    /// A placement, clusters and sets in, who is chosen out.
    Placement,
    /// A ConfigurationPolicy and objects in, what a dry run finds out.
    Policy,
    /// A template of a policy and objects in, what it resolves to out.
    Template,
}

/// Answers JSON lines on standard input with JSON lines on standard output, one for one.
pub(crate) fn run(engine: Engine) -> anyhow::Result<()> {
    let answer: fn(&str) -> String = match engine {
        Engine::App | Engine::Health => bellwether_application::probe::answer,
        Engine::Cue => |line| bellwether_cue::probe::answer(line, Budget::default()),
        Engine::Chart => bellwether_helm::probe::answer,
        Engine::Gotemplate => |line| match crate::helm::world() {
            Ok(world) => bellwether_helm::gotemplate::answer(line, &world),
            Err(error) => serde_json::json!({"error": error.to_string()}).to_string(),
        },
        Engine::Kustomize => bellwether_kustomize::probe::answer,
        Engine::Rollout => bellwether_placement::rollout::probe::answer,
        Engine::Placement => bellwether_placement::schedule::probe::answer,
        Engine::Policy => |line| match crate::helm::world() {
            Ok(world) => bellwether_policy::dryrun::probe::answer(line, &world),
            Err(error) => serde_json::json!({"error": error.to_string()}).to_string(),
        },
        Engine::Template => |line| match crate::helm::world() {
            Ok(world) => bellwether_policy::template::probe::answer(line, &world),
            Err(error) => serde_json::json!({"error": error.to_string()}).to_string(),
        },
    };
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.context("reading standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        writeln!(output, "{}", answer(&line))?;
        output.flush()?;
    }
    Ok(())
}
