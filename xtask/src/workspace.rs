//! What cargo and the folders say about the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::run::cargo;

/// A crate of the workspace.
pub(crate) struct Package {
    /// Its name, such as `bellwether-store`.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Its dependencies.
    pub(crate) dependencies: Vec<Dependency>,
    /// Its programs of integration tests.
    pub(crate) tests: Vec<String>,
}

/// A dependency of a crate.
pub(crate) struct Dependency {
    /// The name of the package.
    pub(crate) name: String,
    /// The name in source code.
    pub(crate) identifier: String,
    /// Whether only tests, examples and benchmarks have it.
    pub(crate) is_for_tests: bool,
}

/// All crates of the workspace.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(package: &Value) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    let dependencies = list(&package["dependencies"]);
    let targets = list(&package["targets"]);
    let tests = targets
        .iter()
        .filter(|target| list(&target["kind"]).contains(&Value::from("test")));
    Package {
        name: text(&package["name"]),
        folder: manifest.parent().unwrap_or(&manifest).to_owned(),
        dependencies: dependencies
            .iter()
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                identifier: match dependency["rename"].as_str() {
                    Some(rename) => rename.replace('-', "_"),
                    None => text(&dependency["name"]).replace('-', "_"),
                },
                is_for_tests: dependency["kind"] == "dev",
            })
            .collect(),
        tests: tests.map(|target| text(&target["name"])).collect(),
    }
}

/// A source file, without comments.
pub(crate) struct Source {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its lines, with their numbers, without comments and without its tests.
    pub(crate) code: Vec<(usize, String)>,
    /// All its lines without comments.
    pub(crate) all: Vec<String>,
}

/// The Rust files in a folder and below; none if there is no such folder.
pub(crate) fn sources(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(source(&path)?);
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn source(path: &Path) -> anyhow::Result<Source> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().map(|line| match line.find("//") {
        // Addresses have slashes, too; comments begin a line or follow a space.
        Some(0) => "",
        Some(at) if line[..at].ends_with(' ') => &line[..at],
        _ => line,
    });
    let all: Vec<String> = lines.map(ToOwned::to_owned).collect();
    let is_test_file = path.components().any(|part| {
        let part = part.as_os_str();
        part == "tests" || part == "tests.rs"
    });
    let code = if is_test_file {
        Vec::new()
    } else {
        without_tests(&all)
    };
    Ok(Source {
        path: path.to_owned(),
        code,
        all,
    })
}

/// The numbered lines outside test modules that are written in place.
fn without_tests(lines: &[String]) -> Vec<(usize, String)> {
    let mut code = Vec::new();
    let mut is_test = false;
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1);
        is_test = is_test
            || (line == "#[cfg(test)]"
                && next.is_some_and(|next| next.starts_with("mod ") && next.ends_with('{')));
        if !is_test {
            code.push((index + 1, line.clone()));
        }
        is_test = is_test && line != "}";
    }
    code
}

/// Whether a line has a word: an identifier with nothing of an identifier around it.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |text: Option<char>| text.is_some_and(|it| it.is_alphanumeric() || it == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_after_a_test_module_is_code() {
        let lines = |text: &str| -> Vec<String> { text.lines().map(ToOwned::to_owned).collect() };
        let numbers = |text: &str| -> Vec<usize> {
            let code = without_tests(&lines(text));
            code.into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(numbers("#[cfg(test)]\nmod tests;\nfn a() {}"), [1, 2, 3]);
        assert_eq!(
            numbers("fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}"),
            [1, 2, 7]
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use serde::Serialize;", "serde"));
        assert!(has_word("tokio::spawn(x)", "tokio"));
        assert!(!has_word("use serde_json::json;", "serde"));
        assert!(!has_word("fn tokio_like() {}", "tokio"));
    }
}
