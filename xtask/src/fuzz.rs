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
    /// Go templates and sprig.
    Template,
}

impl Target {
    const fn package(self) -> &'static str {
        match self {
            Self::Cue => "bellwether-cue",
            Self::Template => "bellwether-template",
        }
    }

    /// Where the fuzzer leaves its first finding, in the target directory.
    const fn finding(self) -> &'static str {
        match self {
            Self::Cue => "fuzz-failure.cue",
            Self::Template => "fuzz-failure.tmpl",
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
        "fuzz",
        "--",
    ]);
    command.arg(seconds.to_string()).arg(seed.to_string());
    for directory in seeds {
        command.arg(std::path::absolute(directory)?);
    }
    let succeeded = command.current_dir(scratch).status()?.success();
    anyhow::ensure!(succeeded, "an input fails: see target/{}", target.finding());
    Ok(())
}
