//! The chart of an installation: part of the binary, rendered by our own Helm.

use anyhow::bail;
use bellwether_helm::{Chart, Request, Templated, ValueSources, template};
use bellwether_json::yaml::from_yaml;
use serde_json::Value;

/// A file of the chart: its path, and its text.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../deploy/chart/", $path)))),*]
    };
}

/// The files of `deploy/chart`.
pub(super) const FILES: &[(&str, &str)] = files![
    "Chart.yaml",
    "files/rights.yaml",
    "files/webhooks.yaml",
    "templates/_helpers.tpl",
    "templates/bootstrap.yaml",
    "templates/deployment.yaml",
    "templates/execution.yaml",
    "templates/networkpolicy.yaml",
    "templates/poddisruptionbudget.yaml",
    "templates/rbac.yaml",
    "templates/service.yaml",
    "templates/serviceaccount.yaml",
    "templates/webhooks.yaml",
    "values.schema.json",
    "values.yaml",
];

/// Renders the chart; objects come in the order in which they are to be created.
pub(super) fn render(
    release: &str,
    namespace: &str,
    values: &ValueSources,
) -> anyhow::Result<Vec<Value>> {
    let chart = Chart::from_directory(FILES.iter().copied())?;
    let request = Request {
        name: release.to_owned(),
        namespace: namespace.to_owned(),
        ..Request::default()
    };
    let world = crate::helm::world()?;
    let rendered = match template(&chart, &values.merge()?, &request, &world)? {
        Templated::Release(rendered) => rendered,
        Templated::Needs(queries) => bail!("templates look up {} objects", queries.len()),
    };
    let mut objects = Vec::new();
    for manifest in &rendered.manifests {
        objects.extend(from_yaml(&manifest.content)?);
    }
    objects.retain(|object| !object.is_null());
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart")
    }

    fn find(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().display());
            if entry.path().is_dir() {
                find(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_chart_is_in_the_binary() {
        let mut found = Vec::new();
        find(&folder(), "", &mut found);
        found.sort();
        let mut known: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
