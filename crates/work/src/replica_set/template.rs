//! The template of a replica set: values of each cluster, and parts of a size that fits.

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::work::{ManifestWorkSpec, Workload};
use bellwether_cel::{Budget, Vars};
use bellwether_json::equality::semantic_eq;
use serde_json::{Map, Value, json};

use crate::Programs;
use crate::admission::MANIFEST_LIMIT;

/// How deep manifests are looked into.
const MAX_DEPTH: usize = 128;

/// What all expressions of a template may cost for one cluster: some hundredths of a second.
const MAX_COST: u64 = 1_000_000;

/// Puts values of a cluster where texts of the template have `${…}`: an expression over `cluster`,
/// which has `name`, `labels`, `annotations` and `claims`. A text that is nothing but one expression
/// becomes its value, of whatever type; `$${` stands for `${` itself.
pub(super) fn fill(
    template: &ManifestWorkSpec,
    name: &str,
    cluster: Option<&ManagedCluster>,
    programs: &Programs,
) -> Result<ManifestWorkSpec, String> {
    let about = about(name, cluster);
    let mut budget = Budget::new(MAX_COST, MAX_COST);
    // All texts: a manifest whose name has a value is named in options as well.
    let mut spec = serde_json::to_value(template).map_err(|error| error.to_string())?;
    fill_value(&mut spec, &about, programs, &mut budget, 0)?;
    serde_json::from_value(spec)
        .map_err(|error| format!("the template is invalid with these values: {error}"))
}

/// What expressions see of a cluster.
fn about(name: &str, cluster: Option<&ManagedCluster>) -> Value {
    let metadata = cluster
        .map(|cluster| cluster.metadata.clone())
        .unwrap_or_default();
    let status = cluster.and_then(|cluster| cluster.status.as_ref());
    let claims: Map<String, Value> = status
        .and_then(|status| serde_json::to_value(status).ok())
        .and_then(|status| status["clusterClaims"].as_array().cloned())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|claim| Some((claim["name"].as_str()?.to_owned(), claim["value"].clone())))
        .collect();
    json!({
        "name": name,
        "labels": metadata.labels.unwrap_or_default(),
        "annotations": metadata.annotations.unwrap_or_default(),
        "claims": claims,
    })
}

fn fill_value(
    value: &mut Value,
    about: &Value,
    programs: &Programs,
    budget: &mut Budget,
    depth: usize,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("a manifest is nested too deeply".to_owned());
    }
    match value {
        Value::String(text) if text.contains("${") => {
            *value = filled(text, about, programs, budget)?;
        }
        Value::Array(items) => {
            for item in items {
                fill_value(item, about, programs, budget, depth + 1)?;
            }
        }
        Value::Object(map) => {
            for value in map.values_mut() {
                fill_value(value, about, programs, budget, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// A text with its expressions replaced.
fn filled(
    text: &str,
    about: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Result<Value, String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            result.push_str(&rest[..start - 1]);
            result.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        let end = end_of(&rest[start + 2..])
            .ok_or_else(|| format!("the expression in {text:?} has no end"))?;
        let source = &rest[start + 2..start + 2 + end];
        let value = evaluate(source, about, programs, budget)?;
        let after = &rest[start + 3 + end..];
        if result.is_empty() && start == 0 && after.is_empty() {
            return Ok(value);
        }
        result.push_str(&rest[..start]);
        match value {
            Value::String(text) => result.push_str(&text),
            Value::Number(_) | Value::Bool(_) => result.push_str(&value.to_string()),
            other => return Err(format!("{source}: {other} does not fit into a text")),
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(Value::String(result))
}

/// Where an expression ends: at its closing brace, outside of texts.
fn end_of(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) => {
                if c == open {
                    quote = None;
                }
            }
            None => match c {
                '"' | '\'' => quote = Some(c),
                '{' => depth += 1,
                '}' if depth == 0 => return Some(index),
                '}' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

fn evaluate(
    source: &str,
    about: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Result<Value, String> {
    let compiled = programs.template(source);
    let program = compiled.as_ref().as_ref().map_err(Clone::clone)?;
    let vars = Vars::new().json("cluster", about);
    let value = program
        .evaluate(&vars, budget)
        .map_err(|error| format!("{source}: {error}"))?;
    Ok(value.to_json())
}

/// Cuts a work into parts that are not too large; the order of manifests stays.
pub(super) fn split(spec: ManifestWorkSpec) -> Vec<ManifestWorkSpec> {
    let manifests = spec.workload.as_ref().map_or(&[][..], |it| &it.manifests);
    let mut parts: Vec<Vec<Value>> = vec![Vec::new()];
    let mut size = 0;
    for manifest in manifests {
        let length = manifest.to_string().len();
        if size + length > MANIFEST_LIMIT && !parts.last().is_none_or(Vec::is_empty) {
            parts.push(Vec::new());
            size = 0;
        }
        size += length;
        if let Some(part) = parts.last_mut() {
            part.push(manifest.clone());
        }
    }
    if parts.len() == 1 {
        return vec![spec];
    }
    let part = |manifests| ManifestWorkSpec {
        workload: Some(Workload {
            manifests,
            ..spec.workload.clone().unwrap_or_default()
        }),
        ..spec.clone()
    };
    parts.into_iter().map(part).collect()
}

/// Whether two works say the same. Fields that are null say nothing: servers drop them when a work is
/// changed by a merge, such as times of creation in templates of pods and claims.
pub(super) fn is_same_spec(one: &ManifestWorkSpec, other: &ManifestWorkSpec) -> bool {
    if one == other {
        return true;
    }
    let normal = |spec: &ManifestWorkSpec| {
        let mut value = serde_json::to_value(spec).unwrap_or_default();
        let manifests = value.pointer_mut("/workload/manifests");
        for manifest in manifests
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            drop_nulls(manifest, 0);
        }
        value
    };
    semantic_eq(&normal(one), &normal(other))
}

/// Takes away fields that are null.
fn drop_nulls(value: &mut Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(|it| drop_nulls(it, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| drop_nulls(it, depth + 1)),
        _ => {}
    }
}
