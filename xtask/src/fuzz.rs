//! `cargo xtask fuzz`: the long runs of the fuzzers.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::run::{cargo, root};

/// The engines that have a fuzzer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// CUE.
    #[default]
    Cue,
    /// Calls of all functions of Go templates and sprig.
    Template,
    /// Templates of Helm, one in a chart.
    Gotemplate,
    /// Charts.
    Chart,
    /// Kustomizations.
    Kustomize,
    /// Templates of policies.
    Policy,
}

impl Target {
    const fn package(self) -> &'static str {
        match self {
            Self::Cue => "bellwether-cue",
            Self::Template => "bellwether-template",
            Self::Gotemplate | Self::Chart | Self::Kustomize | Self::Policy => "bellwether-testkit",
        }
    }

    /// The example that is the fuzzer. Names differ: all examples are in one directory.
    const fn example(self) -> &'static str {
        match self {
            Self::Cue => "cue-fuzz",
            Self::Template => "template-fuzz",
            Self::Gotemplate | Self::Chart | Self::Kustomize | Self::Policy => "engines-fuzz",
        }
    }

    /// The engine, for a fuzzer of several.
    const fn engine(self) -> Option<&'static str> {
        match self {
            Self::Cue | Self::Template => None,
            Self::Gotemplate => Some("gotemplate"),
            Self::Chart => Some("chart"),
            Self::Kustomize => Some("kustomize"),
            Self::Policy => Some("policy"),
        }
    }

    /// Where the fuzzer leaves its first finding, in the target directory.
    const fn finding(self) -> &'static str {
        match self {
            Self::Cue => "fuzz-failure.cue",
            Self::Template => "fuzz-failure.tmpl",
            Self::Gotemplate | Self::Chart | Self::Kustomize | Self::Policy => "fuzz-failure.jsonl",
        }
    }
}

/// Runs the fuzzer of an engine; fails with its first finding, which it leaves in the target
/// directory.
pub(crate) fn fuzz(
    target: Target,
    seconds: u64,
    seed: u64,
    seeds: &[PathBuf],
) -> anyhow::Result<()> {
    let scratch = root().join("target");
    std::fs::create_dir_all(&scratch)?;
    let mut command = cargo(&[
        "run",
        "--release",
        "--package",
        target.package(),
        "--example",
        target.example(),
        "--",
    ]);
    command.args(target.engine());
    command.arg(seconds.to_string()).arg(seed.to_string());
    for directory in seeds {
        command.arg(std::path::absolute(directory)?);
    }
    let succeeded = command.current_dir(scratch).status()?.success();
    anyhow::ensure!(succeeded, "an input fails: see target/{}", target.finding());
    Ok(())
}
