//! `cargo xtask bench`: what things cost, as a report.

use crate::run::{cargo, say, watch};

/// Benchmarks by name, and their targets.
const BENCHES: &[(&str, &str)] = &[
    ("apiserver", "apiserver"),
    ("apiserver", "large_object"),
    ("app", "app"),
    ("app", "applications"),
    ("app", "hub"),
    ("cel", "evaluate"),
    ("cue", "render"),
    ("json", "parse"),
    ("jsonpath", "find"),
    ("patch", "ownership"),
    ("placement", "decide"),
    ("placement", "scheduling"),
    ("policy", "policy"),
    ("rollout", "rollout"),
    ("schema", "request"),
    ("soak", "soak"),
    ("store", "throughput"),
    ("template", "templates"),
    ("template", "chart"),
    ("template", "overlay"),
    ("work", "work"),
    ("workflow", "workflow"),
];

/// Runs only by its name: it takes its time.
const LONG: &str = "soak";

/// Runs all benchmarks that do not take long, or the one of that name.
pub(crate) fn bench(name: Option<&str>) -> anyhow::Result<()> {
    let chosen: Vec<_> = BENCHES
        .iter()
        .filter(|(known, _)| name.map_or(*known != LONG, |name| name == *known))
        .collect();
    let known: Vec<&str> = BENCHES.iter().map(|(known, _)| *known).collect();
    anyhow::ensure!(
        !chosen.is_empty(),
        "no such benchmark; there are {}",
        known.join(", ")
    );
    for (name, target) in chosen {
        say(&format!("== {name}"));
        // One package alone has other features, and would have its dependencies built for itself.
        let arguments = ["bench", "--workspace", "--bench", target];
        let succeeded = watch(&mut cargo(&arguments), |_| {})?;
        anyhow::ensure!(succeeded, "the benchmark {name} failed");
    }
    Ok(())
}
