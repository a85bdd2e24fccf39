//! `cargo xtask fuzz`: the long run of the CUE engine's fuzzer.

use std::path::PathBuf;

use crate::run::{cargo, root};

/// Runs the fuzzer; fails with its first finding, which it leaves in the target directory.
pub(crate) fn fuzz(seconds: u64, seed: u64, seeds: &[PathBuf]) -> anyhow::Result<()> {
    let scratch = root().join("target");
    std::fs::create_dir_all(&scratch)?;
    let mut command = cargo(&[
        "run",
        "--release",
        "--package",
        "bellwether-cue",
        "--example",
        "fuzz",
        "--",
    ]);
    command.arg(seconds.to_string()).arg(seed.to_string());
    for directory in seeds {
        command.arg(std::path::absolute(directory)?);
    }
    let succeeded = command.current_dir(scratch).status()?.success();
    anyhow::ensure!(succeeded, "an input fails: see target/fuzz-failure.cue");
    Ok(())
}
