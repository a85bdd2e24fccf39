//! `cargo xtask bench`: what things cost, as a report.

use crate::run::{cargo, say, watch};

/// Benchmarks by name: package and bench target.
const BENCHES: &[(&str, &str, &str)] = &[
    ("store", "bellwether-store", "writes"),
    ("cue", "bellwether-cue", "render"),
    ("cel", "bellwether-cel", "evaluate"),
    ("patch", "bellwether-patch", "managed"),
    ("json", "bellwether-json", "parse"),
];

/// Runs all benchmarks, or the one of that name.
pub(crate) fn bench(name: Option<&str>) -> anyhow::Result<()> {
    let chosen: Vec<_> = BENCHES
        .iter()
        .filter(|(known, ..)| name.is_none_or(|name| name == *known))
        .collect();
    let known: Vec<&str> = BENCHES.iter().map(|(known, ..)| *known).collect();
    anyhow::ensure!(
        !chosen.is_empty(),
        "no such benchmark; there are {}",
        known.join(", ")
    );
    for (name, package, target) in chosen {
        say(&format!("== {name}"));
        let succeeded = watch(
            &mut cargo(&["bench", "--package", package, "--bench", target]),
            |_| {},
        )?;
        anyhow::ensure!(succeeded, "the benchmark {name} failed");
    }
    Ok(())
}
