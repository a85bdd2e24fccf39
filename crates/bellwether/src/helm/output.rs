//! `bellwether helm template --output-dir`: a file for each template.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path};

use anyhow::{Context as _, bail};
use bellwether_helm::{Release, Request};

/// Writes the documents of a release below a directory, and returns what to print.
pub(super) fn write_files(
    directory: &Path,
    release: &Release,
    request: &Request,
) -> anyhow::Result<String> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut report = String::new();
    for (path, content) in release.documents(request) {
        let is_inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            bail!("the template {path} would be written outside of the directory");
        }
        // Writing to a string cannot fail.
        let _ = write!(
            files.entry(path).or_default(),
            "---\n# Source: {path}\n{content}\n"
        );
        let _ = writeln!(report, "wrote {}", directory.join(path).display());
    }
    for (path, text) in files {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    report.push('\n');
    Ok(report)
}
