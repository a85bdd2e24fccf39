//! `cargo xtask bench`: what things cost, as a report.

use crate::run::{cargo, say, watch};

/// Benchmarks by name: package and bench target.
const BENCHES: &[(&str, &str, &str)] = &[
    ("apiserver", "bellwether", "apiserver"),
    ("cel", "bellwether-cel", "evaluate"),
    ("cue", "bellwether-cue", "render"),
    ("json", "bellwether-json", "parse"),
    ("jsonpath", "bellwether-jsonpath", "find"),
    ("patch", "bellwether-patch", "ownership"),
    ("placement", "bellwether-placement", "decide"),
    ("placement", "bellwether-controllers", "scheduling"),
    ("schema", "bellwether-schema", "request"),
    ("soak", "bellwether", "soak"),
    ("store", "bellwether-store", "throughput"),
    ("work", "bellwether", "work"),
];

/// Runs only by its name: it takes its time.
const LONG: &str = "soak";

/// Runs all benchmarks that do not take long, or the one of that name.
pub(crate) fn bench(name: Option<&str>) -> anyhow::Result<()> {
    let chosen: Vec<_> = BENCHES
        .iter()
        .filter(|(known, ..)| name.map_or(*known != LONG, |name| name == *known))
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
