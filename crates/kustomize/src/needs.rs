//! What a tree still lacks for a build.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use bellwether_json::path::items_at;
use serde_json::Value;

use crate::generator::file_source;
use crate::kustomization::{FILE_NAMES, GeneratorEntry, Kustomization};
use crate::limits::MAX_DIRECTORIES;
use crate::resource::Resource;
use crate::{Tree, path};

/// What has to be fetched before a build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files and directories. Of a directory only the kustomization file is asked for.
    pub paths: Vec<String>,
    /// Addresses of files and repositories elsewhere.
    pub remotes: Vec<String>,
}

impl Needs {
    /// True if nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.remotes.is_empty()
    }

    pub(crate) fn add_remote(&mut self, address: &str) {
        if !self.remotes.iter().any(|known| known == address) {
            self.remotes.push(address.to_owned());
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self
            .paths
            .iter()
            .chain(&self.remotes)
            .map(String::as_str)
            .collect();
        write!(
            f,
            "these files or remote bases are not at hand: {}; fetch them and name the copy instead",
            all.join(", ")
        )
    }
}

/// What is missing from a tree for a build of the directory, as far as it can be told from what is
/// there. Add it and ask again, until nothing is missing.
pub fn needs(tree: &Tree, directory: &str) -> Needs {
    let mut needs = Needs::default();
    let mut seen = BTreeSet::new();
    let mut paths = BTreeSet::new();
    let mut open = VecDeque::from([path::clean(directory)]);
    while let Some(root) = open.pop_front() {
        if !seen.insert(root.clone()) || seen.len() > MAX_DIRECTORIES {
            continue;
        }
        if !tree.knows(&root) {
            paths.insert(root);
            continue;
        }
        // Errors are for the build itself, which says them better.
        let file = FILE_NAMES
            .iter()
            .find_map(|name| tree.file(&path::join(&root, name)));
        let kustomization = file
            .and_then(|content| std::str::from_utf8(content).ok())
            .and_then(|text| Kustomization::read(text).ok());
        let Some(kustomization) = kustomization else {
            continue;
        };
        for entry in references(tree, &root, &kustomization) {
            if let Some(path) = tree.remote(&entry) {
                open.push_back(path.to_owned());
                continue;
            }
            let local = path::join(&root, &entry);
            if tree.is_directory(&local) {
                open.push_back(local);
            } else if is_remote(&entry) {
                needs.add_remote(&entry);
            } else if !tree.knows(&local) {
                paths.insert(local);
            }
        }
    }
    needs.paths = paths.into_iter().collect();
    needs
}

/// All files and directories that a kustomization names.
fn references(tree: &Tree, root: &str, kustomization: &Kustomization) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    let lists = [
        &kustomization.resources,
        &kustomization.components,
        &kustomization.crds,
        &kustomization.configurations,
        &kustomization.patches_strategic_merge,
        &kustomization.generators,
        &kustomization.transformers,
        &kustomization.validators,
    ];
    entries.extend(lists.into_iter().flatten().cloned());
    let patches = kustomization
        .patches
        .iter()
        .chain(&kustomization.patches_json6902);
    entries.extend(patches.map(|patch| patch.path.clone()));
    entries.extend(
        kustomization
            .replacements
            .iter()
            .map(|entry| entry.path.clone()),
    );
    entries.extend(kustomization.openapi.get("path").cloned());
    let generators = [
        &kustomization.config_map_generator,
        &kustomization.secret_generator,
    ];
    for generator in generators.into_iter().flatten() {
        entries.extend(generator_files(generator));
    }
    let plugins = [
        &kustomization.generators,
        &kustomization.transformers,
        &kustomization.validators,
    ];
    for entry in plugins.into_iter().flatten() {
        let text = if is_inline(entry) {
            Some(entry.as_str())
        } else {
            let content = tree.file(&path::join(root, entry));
            content.and_then(|content| std::str::from_utf8(content).ok())
        };
        let resources = text.and_then(|text| Resource::read_all(text).ok());
        for plugin in resources.into_iter().flatten() {
            entries.extend(plugin_files(&plugin.value));
        }
    }
    entries.retain(|entry| !entry.is_empty() && !is_inline(entry));
    entries
}

fn generator_files(generator: &GeneratorEntry) -> impl Iterator<Item = String> + '_ {
    let files = generator
        .files
        .iter()
        .filter_map(|source| file_source(source).ok())
        .map(|(_, file)| file.to_owned());
    let env = std::iter::once(generator.env.clone());
    files.chain(generator.envs.iter().cloned()).chain(env)
}

/// Files that the configuration of a generator or transformer names.
fn plugin_files(plugin: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut files: Vec<String> = ["path", "env", "targetFilePath"]
        .iter()
        .filter_map(|field| plugin.get(field).and_then(text))
        .collect();
    for field in ["paths", "envs", "files"] {
        let sources = items_at(plugin, &[field]).iter().filter_map(Value::as_str);
        files.extend(sources.map(|source| match file_source(source) {
            Ok((_, file)) if field == "files" => file.to_owned(),
            _ => source.to_owned(),
        }));
    }
    let replacements = items_at(plugin, &["replacements"]).iter();
    files.extend(replacements.filter_map(|entry| entry.get("path").and_then(text)));
    files
}

/// True if an entry is the text of objects rather than the path of a file.
pub(crate) fn is_inline(entry: &str) -> bool {
    entry.contains('\n') || entry.contains("kind:")
}

/// True if an entry is an address of a file or repository elsewhere.
pub(crate) fn is_remote(entry: &str) -> bool {
    let schemes = [
        "http://", "https://", "ssh://", "git://", "file://", "git::", "git@",
    ];
    let hosts = ["github.com/", "gitlab.com/", "bitbucket.org/"];
    schemes
        .iter()
        .chain(&hosts)
        .any(|start| entry.starts_with(start))
        || entry.contains("?ref=")
        || entry.contains(".git/")
        || entry.rsplit('.').next() == Some("git")
}
