//! What ARCHITECTURE.md promises and a machine can check, besides the layers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::layers;
use crate::run::root;
use crate::workspace::{Package, Source, has_word, packages, sources};

/// Code that does I/O, reads a clock, or waits.
const IO: [&str; 15] = [
    "std::fs",
    "fs::read",
    "fs::write",
    "File::open",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "tokio",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "process::Command",
    "thread::sleep",
    ".await",
];

/// Programs of integration tests besides `integration`, and why.
const MORE_TESTS: [(&str, &str); 1] = [
    // Runs only where kubectl is installed.
    ("bellwether", "kubectl"),
];

/// What does not hold, one line each.
pub(crate) fn check() -> anyhow::Result<Vec<String>> {
    let packages = packages()?;
    let mut problems = Vec::new();
    for package in &packages {
        problems.extend(io(package)?);
        problems.extend(unused_dependencies(package)?);
        problems.extend(tests(package));
    }
    problems.extend(unused_workspace_dependencies(&packages)?);
    problems.extend(map(&packages)?);
    Ok(problems)
}

/// Lines of a crate without I/O that do some.
fn io(package: &Package) -> anyhow::Result<Vec<String>> {
    if !layers::is_pure(&package.name) {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for source in sources(&package.folder.join("src"))? {
        for (number, line) in &source.code {
            if let Some(found) = IO.iter().find(|it| does(line, it)) {
                problems.push(format!(
                    "{}:{number}: {} does no I/O, but this line has {found}",
                    shown(&source.path),
                    package.name
                ));
            }
        }
    }
    Ok(problems)
}

fn does(line: &str, io: &str) -> bool {
    match io {
        ".await" => has_word(line, "await") && line.contains(".await"),
        io => has_word(line, io),
    }
}

/// Dependencies that nothing of a crate names.
fn unused_dependencies(package: &Package) -> anyhow::Result<Vec<String>> {
    let names = |sources: &[Source], identifier: &str| {
        // The library of `md-5` is `md5`.
        let joined = identifier.replace('_', "");
        let mut lines = sources.iter().flat_map(|source| &source.all);
        lines.any(|line| has_word(line, identifier) || has_word(line, &joined))
    };
    let mut product = sources(&package.folder.join("src"))?;
    product.extend(sources(&package.folder.join("build"))?);
    let mut for_tests = Vec::new();
    for folder in ["tests", "benches", "examples"] {
        for_tests.extend(sources(&package.folder.join(folder))?);
    }
    let unused = package.dependencies.iter().filter(|dependency| {
        let identifier = &dependency.identifier;
        let is_named = names(&product, identifier)
            || (dependency.is_for_tests && names(&for_tests, identifier));
        !is_named
    });
    let text = |name: &String| format!("{} does not use its dependency {name}", package.name);
    Ok(unused.map(|dependency| text(&dependency.name)).collect())
}

/// Dependencies of the workspace that no crate has.
fn unused_workspace_dependencies(packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).context("Cargo.toml")?;
    let section = manifest
        .split_once("[workspace.dependencies]\n")
        .map(|(_, rest)| rest.split("\n[").next().unwrap_or_default());
    let used: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let names = section.context("no workspace dependencies")?.lines();
    let names = names
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.trim());
    let unused = names.filter(|name| !used.contains(name));
    Ok(unused
        .map(|name| format!("no crate uses {name} of the workspace's dependencies"))
        .collect())
}

/// Programs of integration tests beyond one: each links the whole tree again.
fn tests(package: &Package) -> Vec<String> {
    let is_known = |test: &str| MORE_TESTS.contains(&(package.name.as_str(), test));
    let tests: Vec<&str> = package.tests.iter().map(String::as_str).collect();
    let own: Vec<&str> = tests.into_iter().filter(|test| !is_known(test)).collect();
    if own.len() < 2 {
        return Vec::new();
    }
    vec![format!(
        "{} has {} programs of integration tests ({}): make them modules of tests/integration/main.rs",
        package.name,
        own.len(),
        own.join(", ")
    )]
}

/// What the map in ARCHITECTURE.md lacks, and what it names that is not there.
fn map(packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let mut problems = Vec::new();
    for package in packages {
        let name = package.name.strip_prefix("bellwether-");
        let name = name.unwrap_or(&package.name);
        let layer = layers::layer(&package.name).map_or("–".to_owned(), |it| it.to_string());
        let layer = if name == "testkit" { "–" } else { &layer };
        if !page.contains(&format!("\n| {layer} | `{name}` |")) {
            problems.push(format!(
                "ARCHITECTURE.md: the map has no line for {name} in layer {layer}"
            ));
        }
    }
    // Odd pieces between backticks are code; those that look like paths have to exist.
    for code in page.split('`').skip(1).step_by(2) {
        let is_path = code.starts_with("crates/") && !code.contains(' ');
        if is_path && !root().join(code).exists() {
            problems.push(format!(
                "ARCHITECTURE.md names {code}, which does not exist"
            ));
        }
    }
    Ok(problems)
}

fn shown(path: &Path) -> String {
    let shown = path.strip_prefix(root()).unwrap_or(path);
    shown.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_is_found_where_it_is_done() {
        for line in [
            "let text = std::fs::read_to_string(path)?;",
            "let now = Timestamp::now();",
            "client.get(name).await?;",
            "tokio::spawn(work());",
        ] {
            assert!(IO.iter().any(|io| does(line, io)), "{line}");
        }
        for line in ["let now: Timestamp = observed.now;", "fn awaited() {}"] {
            assert!(!IO.iter().any(|io| does(line, io)), "{line}");
        }
    }
}
