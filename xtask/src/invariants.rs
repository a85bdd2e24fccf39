//! What ARCHITECTURE.md promises and a machine can check, besides the layers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::layers;
use crate::run::root;
use crate::workspace::{Package, Source, has_word, packages, sources};

/// Code that does I/O, reads a clock, or waits.
const IO: [&str; 22] = [
    "std::fs",
    "fs::read",
    "fs::write",
    "File::open",
    "File::create",
    "OpenOptions",
    // Addresses of `std::net` are plain values.
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "UnixStream",
    "std::env",
    "env::var",
    "tokio",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "process::Command",
    "std::thread",
    "thread::sleep",
    ".await",
];

/// Where tasks are begun that nobody supervises, and why that is right. Elsewhere `spawn_vital` or `Tasks` notices a panic.
const UNSUPERVISED: [(&str, &str); 13] = [
    (
        "crates/apiserver/src/admission/dynamic/call.rs",
        "a connection",
    ),
    ("crates/apiserver/src/listen.rs", "a connection"),
    ("crates/bellwether/src/backup/socket.rs", "a connection"),
    ("crates/bellwether/src/hub.rs", "reports missing rights"),
    (
        "crates/controllers/src/workflow/approval.rs",
        "a connection",
    ),
    (
        "crates/controllers/src/workflow/providers/http.rs",
        "a connection",
    ),
    (
        "crates/examples/src/fleet.rs",
        "reads what a process prints",
    ),
    ("crates/examples/src/server.rs", "a server for examples"),
    ("crates/git/src/web.rs", "a connection"),
    ("crates/process/src/agent.rs", "reports missing rights"),
    ("crates/process/src/diagnostics.rs", "a connection"),
    ("crates/runtime/src/supervise.rs", "supervises"),
    ("crates/webhook/src/server.rs", "a connection"),
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
    let plurals = plurals()?;
    for package in &packages {
        problems.extend(io(package)?);
        problems.extend(kinds_by_name(package, &plurals)?);
        problems.extend(statuses(package)?);
        problems.extend(yaml(package));
        problems.extend(type_names(package)?);
        problems.extend(unused_dependencies(package)?);
        problems.extend(tests(package));
        problems.extend(skipped_by_hand(package)?);
        problems.extend(unsupervised(package)?);
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

/// Modules of the server that are about particular kinds (invariant 3).
const ABOUT_KINDS: [&str; 13] = [
    "access/",
    "admission/",
    "admission.rs",
    "custom/",
    "custom.rs",
    "handler/eviction.rs",
    "handler/token_request.rs",
    "housekeeping/",
    "impersonate.rs",
    "priority.rs",
    // `namespaces` is a word of paths.
    "request.rs",
    "scope.rs",
    "services.rs",
];

/// The names of the built-in kinds in paths, from the crate that declares them.
fn plurals() -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for source in sources(&root().join("crates/kinds/src"))? {
        let text = source.all.join("\n");
        for declaration in ["Resource::namespaced::<", "Resource::cluster::<"] {
            for rest in text.split(declaration).skip(1) {
                let arguments = rest.split_once(">(").map_or("", |(_, rest)| rest);
                let arguments = arguments.split(')').next().unwrap_or_default();
                // Group, version, kind and plural; texts are between quotes.
                let plural = arguments.split('"').skip(1).step_by(2).last();
                found.extend(plural.map(ToOwned::to_owned));
            }
        }
    }
    anyhow::ensure!(found.contains("pods"), "no kinds in crates/kinds");
    Ok(found)
}

/// Lines of the server that name a kind outside the modules that are about kinds.
fn kinds_by_name(package: &Package, plurals: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    if package.name != "bellwether-apiserver" {
        return Ok(Vec::new());
    }
    let folder = package.folder.join("src");
    let mut problems = Vec::new();
    for source in sources(&folder)? {
        let path = source.path.strip_prefix(&folder).unwrap_or(&source.path);
        let path = path.to_string_lossy();
        if ABOUT_KINDS.iter().any(|it| path.starts_with(it)) {
            continue;
        }
        for (number, line) in &source.code {
            let mut texts = line.split('"').skip(1).step_by(2);
            if let Some(plural) = texts.find(|text| plurals.contains(*text)) {
                problems.push(format!(
                    "{}:{number}: the server decides by the name {plural}: make it a field of \
                     kinds::Resource",
                    shown(&source.path)
                ));
            }
        }
    }
    Ok(problems)
}

/// Lines of the server that write a `Status` elsewhere than in `status` (invariant 4).
fn statuses(package: &Package) -> anyhow::Result<Vec<String>> {
    if package.name != "bellwether-apiserver" {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for source in sources(&package.folder.join("src"))? {
        if source.path.ends_with("src/status.rs") {
            continue;
        }
        let found = source
            .code
            .iter()
            .filter(|(_, line)| line.contains(r#""kind": "Status""#));
        problems.extend(found.map(|(number, _)| {
            format!(
                "{}:{number}: only apiserver::status writes a Status",
                shown(&source.path)
            )
        }));
    }
    Ok(problems)
}

/// A reader of YAML in a crate other than the two that may have one (invariant 4).
fn yaml(package: &Package) -> Option<String> {
    const PARSER: &str = "granit-parser";
    let may = ["bellwether-json", "bellwether-cue"].contains(&package.name.as_str());
    let mut dependencies = package.dependencies.iter();
    let has = dependencies.any(|it| it.name == PARSER || it.name.contains("yaml"));
    (has && !may).then(|| format!("{} reads YAML: use bellwether-json", package.name))
}

/// Names of types that say nothing about the type.
const VAGUE_TYPES: [&str; 10] = [
    "Asked", "Heard", "Kept", "Known", "News", "Said", "Standing", "Thing", "Told", "Wish",
];

/// Types whose name does not tell what they are.
fn type_names(package: &Package) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for source in sources(&package.folder.join("src"))? {
        for (number, line) in &source.code {
            if let Some(name) = declared(line).filter(|name| VAGUE_TYPES.contains(name)) {
                problems.push(format!(
                    "{}:{number}: {name} does not tell what the type is",
                    shown(&source.path)
                ));
            }
        }
    }
    Ok(problems)
}

/// The type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let mut kinds = ["struct ", "enum ", "trait ", "type "].iter();
    let name = kinds.find_map(|kind| line.strip_prefix(kind))?;
    let end = name.find(|it: char| !it.is_alphanumeric() && it != '_');
    Some(&name[..end.unwrap_or(name.len())])
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

/// Tasks whose panic nobody would notice.
fn unsupervised(package: &Package) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for source in sources(&package.folder.join("src"))? {
        let path = shown(&source.path);
        if UNSUPERVISED.iter().any(|(known, _)| *known == path) {
            continue;
        }
        for (number, _) in source.code.iter().filter(|(_, line)| spawns(line)) {
            problems.push(format!(
                "{path}:{number}: begin the task with spawn_vital or Tasks, which notice its panic, or list it in UNSUPERVISED"
            ));
        }
    }
    Ok(problems)
}

fn spawns(line: &str) -> bool {
    ["tokio::spawn", "tokio::task::spawn"]
        .iter()
        .any(|name| line.contains(&format!("{name}(")))
}

/// Tests that say by themselves that they are skipped: nobody counts them.
fn skipped_by_hand(package: &Package) -> anyhow::Result<Vec<String>> {
    // What counts them may say so.
    if ["bellwether-testkit", "xtask"].contains(&package.name.as_str()) {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    for source in sources(&package.folder)? {
        let lines = source.all.iter().enumerate();
        for (index, _) in lines.filter(|(_, line)| says_skipped(line)) {
            problems.push(format!(
                "{}:{}: call bellwether_testkit::skip, which counts skipped tests",
                shown(&source.path),
                index + 1
            ));
        }
    }
    Ok(problems)
}

fn says_skipped(line: &str) -> bool {
    line.contains("\"skipped: {")
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
    problems.extend(missing_paths("ARCHITECTURE.md", &page));
    let internals = root().join("docs/internals");
    for entry in fs::read_dir(&internals).context("docs/internals")? {
        let path = entry?.path();
        let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        problems.extend(missing_paths(&shown(&path), &page));
    }
    Ok(problems)
}

/// Folders that paths on a page begin with; those of crates may leave out `crates/`.
const FOLDERS: [&str; 5] = ["crates/", "definitions/", "deploy/", "docs/", "xtask/"];

/// Paths on a page that do not exist.
fn missing_paths(name: &str, page: &str) -> Vec<String> {
    // Odd pieces between backticks are code.
    let code = page.split('`').skip(1).step_by(2);
    let is_name = |code: &&str| !code.contains([' ', '*', '…', '{', '<', ':']);
    let missing = code.filter(is_name).filter(|code| {
        let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder));
        let (first, rest) = code.split_once('/').unwrap_or((code, ""));
        let in_crate = root().join("crates").join(first);
        let is_in_crate = !is_path
            && in_crate.is_dir()
            && ["src/", "tests/"].iter().any(|it| rest.starts_with(it));
        (is_path && !root().join(code).exists()) || (is_in_crate && !in_crate.join(rest).exists())
    });
    let text = |code: &str| format!("{name} names {code}, which does not exist");
    missing.map(text).collect()
}

fn shown(path: &Path) -> String {
    let shown = path.strip_prefix(root()).unwrap_or(path);
    shown.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_skip_themselves_are_found() {
        assert!(says_skipped(r#"eprintln!("skipped: {why}");"#));
        assert!(says_skipped(
            r#"let _ = writeln!(stderr(), "skipped: {}", why);"#
        ));
        assert!(!says_skipped(
            r#"assert_eq!(phase, "skipped: the step before failed");"#
        ));
        assert!(!says_skipped("skip(why);"));
    }

    #[test]
    fn unsupervised_tasks_are_found() {
        assert!(spawns("let task = tokio::spawn(async move {"));
        assert!(!spawns("tokio::task::spawn_blocking(work)"));
        assert!(!spawns("drop(spawn_vital(name, work));"));
        assert!(UNSUPERVISED.is_sorted(), "each is found at once");
    }

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
        for line in [
            "let now: Timestamp = observed.now;",
            "fn awaited() {}",
            "use std::net::IpAddr;",
        ] {
            assert!(!IO.iter().any(|io| does(line, io)), "{line}");
        }
    }

    #[test]
    fn types_are_found_where_they_are_declared() {
        for (line, name) in [
            ("pub(crate) struct Known<T> {", Some("Known")),
            ("    enum Wish {", Some("Wish")),
            ("pub type Said = u8;", Some("Said")),
            ("let known = Known::new();", None),
            ("pub fn news() {}", None),
        ] {
            assert_eq!(declared(line), name, "{line}");
        }
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        let page = "See `crates/apiserver/src/status.rs`, `crates/no/such.rs`, \
            `controllers/tests/integration`, `controllers/tests/none/` and `crates/*/src`.";
        assert_eq!(
            missing_paths("page", page),
            [
                "page names crates/no/such.rs, which does not exist",
                "page names controllers/tests/none/, which does not exist",
            ]
        );
    }

    #[test]
    fn the_plurals_of_all_kinds_are_found() {
        let plurals = plurals().unwrap();
        assert!(plurals.len() > 50, "{plurals:?}");
        assert!(plurals.contains("persistentvolumeclaims"), "{plurals:?}");
    }
}
