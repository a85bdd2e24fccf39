//! Which of the charts inside are enabled, under which names, and what their parents import.

use bellwether_go::semver::{Constraints, Version};
use serde_json::{Map, Value, json};

use crate::chart::Chart;
use crate::error::{Error, Result};
use crate::values::{Coalescer, scalar, table};

/// Fails if a chart that `Chart.yaml` names is not in `charts/`.
pub(crate) fn check_present(chart: &Chart) -> Result<()> {
    let missing: Vec<&str> = chart
        .metadata
        .dependencies
        .iter()
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !chart.dependencies.iter().any(|found| found.name() == *name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An error occurred while checking for chart dependencies. You may need to run `helm \
         dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in \
         charts/ directory: {}",
        missing.join(", ")
    );
    Err(Error::chart(message))
}

/// Removes charts that are disabled, gives the others their aliases, and imports their values.
pub(crate) fn process(
    chart: &mut Chart,
    values: &Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<()> {
    enable(chart, values, "", warnings)?;
    import(chart, warnings)
}

/// True if a version is in a range; what cannot be read matches nothing.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}

fn enable(
    chart: &mut Chart,
    values: &Map<String, Value>,
    path: &str,
    warnings: &mut Vec<String>,
) -> Result<()> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    rename(chart);
    let mut coalescer = Coalescer::default();
    let values = coalescer.coalesce(chart, values.clone())?;
    for dependency in &mut chart.metadata.dependencies {
        dependency.enabled = by_tags(&dependency.tags, &values);
        let conditions = dependency.condition.trim().split(',');
        for condition in conditions.filter(|condition| !condition.is_empty()) {
            match scalar(&values, &format!("{path}{condition}")) {
                None => {}
                Some(Value::Bool(enabled)) => {
                    dependency.enabled = *enabled;
                    break;
                }
                Some(_) => warnings.push(format!(
                    "Warning: Condition path '{condition}' for chart {} returned non-bool value",
                    dependency.name
                )),
            }
        }
    }
    let disabled: Vec<String> = chart
        .metadata
        .dependencies
        .iter()
        .filter(|dependency| !dependency.enabled)
        .map(|dependency| dependency.name.clone())
        .collect();
    chart
        .dependencies
        .retain(|inner| !disabled.iter().any(|name| name == inner.name()));
    chart
        .metadata
        .dependencies
        .retain(|dependency| !disabled.contains(&dependency.name));
    for inner in &mut chart.dependencies {
        let path = format!("{path}{}.", inner.name());
        enable(inner, &values, &path, warnings)?;
    }
    Ok(())
}

/// Puts a copy of a chart in the place of every dependency that it satisfies, under its alias.
/// Charts that no dependency asks for stay.
fn rename(chart: &mut Chart) {
    let found = std::mem::take(&mut chart.dependencies);
    let satisfies = |inner: &Chart, name: &str, version: &str| {
        inner.name() == name && is_compatible(version, &inner.metadata.version)
    };
    let requested = &chart.metadata.dependencies;
    let mut dependencies: Vec<Chart> = found
        .iter()
        .filter(|inner| {
            !requested
                .iter()
                .any(|request| satisfies(inner, &request.name, &request.version))
        })
        .cloned()
        .collect();
    for request in &mut chart.metadata.dependencies {
        let inner = found
            .iter()
            .find(|inner| satisfies(inner, &request.name, &request.version));
        let known_as = request.known_as().to_owned();
        if let Some(inner) = inner {
            let mut inner = inner.clone();
            inner.metadata.name.clone_from(&known_as);
            dependencies.push(inner);
        }
        request.name = known_as;
    }
    chart.dependencies = dependencies;
}

/// True unless a tag disables the chart and none enables it.
fn by_tags(tags: &[String], values: &Map<String, Value>) -> bool {
    let Some(known) = table(values, "tags") else {
        return true;
    };
    let set: Vec<bool> = tags
        .iter()
        .filter_map(|tag| known.get(tag).and_then(Value::as_bool))
        .collect();
    set.is_empty() || set.contains(&true)
}

/// Copies values of the charts inside to where their parents want them.
fn import(chart: &mut Chart, warnings: &mut Vec<String>) -> Result<()> {
    for inner in &mut chart.dependencies {
        import(inner, warnings)?;
    }
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let mut coalescer = Coalescer {
        keep_nulls: true,
        ..Coalescer::default()
    };
    let mut values = coalescer.coalesce(chart, Map::new())?;
    let mut imported = Map::new();
    for dependency in &mut chart.metadata.dependencies {
        let mut resolved = Vec::new();
        for wish in &dependency.import_values {
            let (child, parent) = match wish {
                Value::String(name) => (format!("exports.{name}"), ".".to_owned()),
                Value::Object(wish) => {
                    let text = |key: &str| match wish.get(key) {
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => other.to_string(),
                        None => "<nil>".to_owned(),
                    };
                    (text("child"), text("parent"))
                }
                _ => continue,
            };
            resolved.push(json!({"child": child, "parent": parent}));
            let Some(found) = table(&values, &format!("{}.{child}", dependency.name)) else {
                let last = child.rsplit('.').next().unwrap_or_default();
                warnings.push(format!(
                    "Warning: ImportValues missing table: {last:?} is not a table"
                ));
                continue;
            };
            let placed = at_path(&parent, found.clone());
            coalescer.tables(&mut imported, placed, "", true);
        }
        dependency.import_values = resolved;
    }
    coalescer.tables(&mut values, imported, "", true);
    chart.values = values;
    Ok(())
}

/// A table inside of others, so that it is at a path.
fn at_path(path: &str, table: Map<String, Value>) -> Map<String, Value> {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, part| {
        Map::from_iter([(part.to_owned(), Value::Object(inner))])
    })
}
