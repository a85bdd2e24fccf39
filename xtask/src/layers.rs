//! The layers of the workspace: a crate depends on its own layer and those below, and the lower
//! three do no I/O.

use crate::workspace::packages;

/// Crates by layer, lowest first; the names are those of the folders.
const LAYERS: [&[&str]; 5] = [
    &[
        "archive", "go", "json", "jsonpath", "cel", "template", "cue",
    ],
    &[
        "admission",
        "api",
        "helm",
        "kinds",
        "kustomize",
        "patch",
        "protobuf",
        "schema",
    ],
    &[
        "application",
        "apply",
        "placement",
        "policy",
        "work",
        "workflow",
    ],
    &[
        "agent",
        "store",
        "runtime",
        "apiserver",
        "controllers",
        "ctl",
        "examples",
        "git",
        "simulator",
        "webhook",
    ],
    &["testkit", "process", "bellwether"],
];

/// The highest layer that does no I/O.
const PURE: usize = 2;

/// What a crate without I/O has no use for.
const BANNED: [&str; 9] = [
    "tokio",
    "kube",
    "hyper",
    "axum",
    "redb",
    "reqwest",
    "tracing-subscriber",
    "rcgen",
    "tokio-rustls",
];

/// What is wrong with the dependencies between our crates, one line each.
pub(crate) fn check() -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for package in packages()? {
        let name = &package.name;
        if name == "xtask" {
            continue;
        }
        let Some(layer) = layer(name) else {
            problems.push(format!(
                "{name} is in no layer: add it to xtask/src/layers.rs"
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|it| !it.is_for_tests) {
            let other = &dependency.name;
            if layer <= PURE && BANNED.contains(&other.as_str()) {
                problems.push(format!(
                    "{name} (layer {layer}) does no I/O, but depends on {other}"
                ));
            }
            if let Some(above) = self::layer(other).filter(|found| *found > layer) {
                problems.push(format!(
                    "{name} (layer {layer}) depends on {other} (layer {above})"
                ));
            }
        }
    }
    Ok(problems)
}

/// Whether a crate does no I/O.
pub(crate) fn is_pure(package: &str) -> bool {
    layer(package).is_some_and(|layer| layer <= PURE)
}

/// The layer of a crate.
pub(crate) fn layer(package: &str) -> Option<usize> {
    let name = package.strip_prefix("bellwether-").unwrap_or(package);
    if name == package && name != "bellwether" {
        return None;
    }
    LAYERS.iter().position(|names| names.contains(&name))
}
