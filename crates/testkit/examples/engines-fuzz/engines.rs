//! The engines that answer JSON lines, and where their seeds are.

use std::path::{Path, PathBuf};

use bellwether_template::{NOWHERE, World};

/// What answers a case.
pub(crate) type Answer = fn(&str) -> String;

/// The engines by name, with the crates that keep their seeds.
pub(crate) const ENGINES: [(&str, &str, Answer); 4] = [
    ("gotemplate", "helm", |line| {
        bellwether_helm::gotemplate::answer(line, &WORLD)
    }),
    ("chart", "helm", bellwether_helm::probe::answer),
    (
        "kustomize",
        "kustomize",
        bellwether_kustomize::probe::answer,
    ),
    ("policy", "policy", |line| {
        bellwether_policy::template::probe::answer(line, &WORLD)
    }),
];

/// A time that does not change, and numbers that are not random.
const WORLD: World<'static> = World {
    facts: NOWHERE.facts,
    now: jiff::Timestamp::constant(1_700_000_000, 123_456_789),
    random: &|bytes| bytes.fill(7),
};

/// The seeds of an engine.
pub(crate) fn seeds(engine: &str, package: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    crates
        .join(package)
        .join(format!("tests/data/fuzz/{engine}.jsonl"))
}
