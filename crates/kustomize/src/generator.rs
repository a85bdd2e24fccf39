//! Config maps and secrets from literals, files and environment files.

use base64::Engine as _;
use bellwether_json::path as json_path;
use serde_json::{Map, Value, json};

use crate::build::Loader;
use crate::error::{Problem, Result};
use crate::kustomization::{GeneratorEntry, GeneratorOptions};
use crate::path;
use crate::resource::{Behavior, Resource};

/// Lines of base64 text are this long, as kustomize breaks them.
const BASE64_LINE: usize = 70;

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

/// Makes the object of one entry.
pub(crate) fn generate(
    kind: Kind,
    entry: &GeneratorEntry,
    general: Option<&GeneratorOptions>,
    loader: &Loader<'_>,
) -> Result<Resource> {
    if entry.name.is_empty() {
        return Err(Problem::new("a generator has no `name`"));
    }
    let pairs = pairs(entry, loader)?;
    let mut value = match kind {
        Kind::ConfigMap => config_map(&pairs),
        Kind::Secret => secret(&pairs, &entry.secret_type),
    };
    set(&mut value, &["metadata", "name"], json!(entry.name));
    if !entry.namespace.is_empty() {
        set(
            &mut value,
            &["metadata", "namespace"],
            json!(entry.namespace),
        );
    }
    let options = GeneratorOptions::or(entry.options.as_ref(), general);
    let mut resource = Resource::new(value);
    resource.set_metadata("labels", options.labels)?;
    resource.set_metadata("annotations", options.annotations)?;
    if options.immutable {
        resource.set(&["immutable"], Value::Bool(true))?;
    }
    resource.needs_hash = !options.disable_name_suffix_hash;
    resource.behavior = match entry.behavior.as_str() {
        "merge" => Behavior::Merge,
        "replace" => Behavior::Replace,
        _ => Behavior::Create,
    };
    Ok(resource)
}

fn set(value: &mut Value, path: &[&str], new: Value) {
    // The value is made here, of nothing but mappings on the way.
    let _ = json_path::set(value, path, new);
}

fn config_map(pairs: &[(String, Vec<u8>)]) -> Value {
    let (mut data, mut binary) = (Map::new(), Map::new());
    for (key, content) in pairs {
        match std::str::from_utf8(content) {
            Ok(text) => data.insert(key.clone(), json!(text)),
            Err(_) => binary.insert(key.clone(), json!(encode(content))),
        };
    }
    let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    for (field, members) in [("data", data), ("binaryData", binary)] {
        if !members.is_empty() {
            set(&mut value, &[field], Value::Object(members));
        }
    }
    value
}

fn secret(pairs: &[(String, Vec<u8>)], secret_type: &str) -> Value {
    let data: Map<String, Value> = pairs
        .iter()
        .map(|(key, content)| (key.clone(), json!(encode(content))))
        .collect();
    let secret_type = if secret_type.is_empty() {
        "Opaque"
    } else {
        secret_type
    };
    json!({"apiVersion": "v1", "kind": "Secret", "type": secret_type, "data": data})
}

fn encode(content: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(content);
    if text.len() < BASE64_LINE {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / BASE64_LINE + 1);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(BASE64_LINE.min(rest.len()));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

/// Keys and values in order; no key twice.
fn pairs(entry: &GeneratorEntry, loader: &Loader<'_>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
    let env = Some(&entry.env).filter(|env| !env.is_empty());
    for file in entry.envs.iter().chain(env) {
        read_env(loader.text(file)?, &mut pairs);
    }
    for literal in &entry.literals {
        let (key, value) = literal.split_once('=').unwrap_or_default();
        if key.is_empty() {
            let message = format!("the literal {literal:?} has to be of the form key=value");
            return Err(Problem::new(message));
        }
        pairs.push((key.to_owned(), unquoted(value).as_bytes().to_vec()));
    }
    for source in &entry.files {
        let (key, file) = file_source(source)?;
        pairs.push((key.to_owned(), loader.bytes(file)?.to_vec()));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (key, _) in &pairs {
        if !seen.insert(key) {
            let message = format!("the generator {} repeats the key `{key}`", entry.name);
            return Err(Problem::new(message));
        }
    }
    Ok(pairs)
}

/// Reads `KEY=value` lines; comments and empty lines are skipped, quotes are part of the value.
fn read_env(text: &str, pairs: &mut Vec<(String, Vec<u8>)>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.lines() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        pairs.push((key.to_owned(), value.as_bytes().to_vec()));
    }
}

/// One pair of quotes around a literal goes.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    value
}

/// `file`, or `key=file`.
pub(crate) fn file_source(source: &str) -> Result<(&str, &str)> {
    match source.split_once('=') {
        None => Ok((path::base(source), source)),
        Some((key, file)) if !key.is_empty() && !file.is_empty() && !file.contains('=') => {
            Ok((key, file))
        }
        Some(_) => {
            let message = format!("the file source {source:?} has to be FILE or KEY=FILE");
            Err(Problem::new(message))
        }
    }
}
