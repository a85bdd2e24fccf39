//! Examples can be applied side by side: none changes an object of another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Files that change the object of another example on purpose.
const VARIANTS: [&str; 2] = ["policy/broken.yaml", "web/conflict.yaml"];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

/// An object with everything that it brings to members.
fn objects(document: &Value) -> Vec<Value> {
    let mut all = vec![document.clone()];
    for list in [
        "/spec/workload/manifests",
        "/spec/manifestWorkTemplate/workload/manifests",
    ] {
        let manifests = document.pointer(list).and_then(Value::as_array);
        all.extend(manifests.into_iter().flatten().cloned());
    }
    all
}

#[test]
fn no_example_overwrites_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    paths.sort();
    let mut known: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        // Charts and overlays are input of other commands; nobody applies them as they are.
        let is_input = ["case-5-templates/templates", "helm/", "kustomize/"]
            .iter()
            .any(|it| name.starts_with(it));
        if is_input || VARIANTS.contains(&&*name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let documents = bellwether_json::yaml::from_yaml(&text).unwrap();
        for object in documents.iter().flat_map(objects) {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            // Not every file has objects: some are patches, or values for templates.
            let (Some(kind), Some(object_name)) = (text("/kind"), text("/metadata/name")) else {
                continue;
            };
            let namespace = text("/metadata/namespace").unwrap_or("default");
            let key = format!("{kind} {namespace}/{object_name}");
            let (first, same) = known
                .entry(key.clone())
                .or_insert_with(|| (name.clone(), object.clone()));
            // An example that is played may have several versions of its own objects.
            let folder = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
            let is_played = folder(first) == folder(&name)
                && root.join(folder(&name)).join("script.yaml").exists();
            assert!(
                *first == name || *same == object || is_played,
                "{name} and {first} have a different {key}: choose another name"
            );
        }
    }
    assert!(known.len() > 30, "examples were found");
}
