//! A chart as values: metadata, templates, files, defaults, and the charts inside of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_json::yaml::first_from_yaml;
use serde_json::{Map, Value};

use crate::archive;
use crate::error::{Error, Result, yaml_text};
use crate::ignore::Rules;
use crate::lock::Lock;
use crate::metadata::Metadata;
use crate::render::Cache;
use crate::values::as_floats;

/// Charts inside of charts beyond this depth are refused.
const MAX_DEPTH: usize = 32;

/// A file of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path in the chart, with `/` between its parts.
    pub name: Arc<str>,
    /// The content.
    pub data: Arc<[u8]>,
}

/// A loaded chart. Cloning is cheap: files are shared.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// What `Chart.yaml` says.
    pub metadata: Metadata,
    /// The content of `Chart.lock` or `requirements.lock`, if there is one.
    pub lock: Option<Lock>,
    /// Templates, including those that only define others.
    pub templates: Vec<File>,
    /// Files that are neither templates nor known by name.
    pub files: Vec<File>,
    /// Default values; all numbers are floating point, as Go reads them.
    pub values: Map<String, Value>,
    /// The text of `values.yaml`.
    pub values_text: String,
    /// The text of `values.schema.json`.
    pub schema: Option<Arc<[u8]>>,
    /// The charts in `charts/`.
    pub dependencies: Vec<Chart>,
    /// What a user should know about how the chart is written.
    pub warnings: Vec<String>,
    /// The templates as they were parsed last, shared by all clones.
    pub(crate) parsed: Cache,
}

impl Chart {
    /// Loads a chart from the files of a directory. Files that `.helmignore` names are left out.
    pub fn from_directory<P: AsRef<str>, C: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (P, C)>,
    ) -> Result<Self> {
        let mut files: BTreeMap<String, Vec<u8>> = files
            .into_iter()
            .map(|(path, content)| (path.as_ref().to_owned(), content.as_ref().to_vec()))
            .collect();
        let rules = match files.get(".helmignore") {
            Some(rules) => Rules::parse(&String::from_utf8_lossy(rules))?,
            None => Rules::parse("")?,
        };
        files.retain(|path, _| !rules.ignores(path));
        Self::from_files(files.into_iter().collect(), 0)
    }

    /// Loads a packed chart, a `.tgz`.
    pub fn from_archive(archive: &[u8]) -> Result<Self> {
        Self::from_packed(archive, 0)
    }

    fn from_packed(archive: &[u8], depth: usize) -> Result<Self> {
        Self::from_files(archive::files(archive)?, depth)
    }

    fn from_files(files: Vec<(String, Vec<u8>)>, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            let message = format!("charts are nested deeper than {MAX_DEPTH} levels");
            return Err(Error::chart(message));
        }
        let mut chart = Self::default();
        let Some((_, content)) = files.iter().find(|(name, _)| name == "Chart.yaml") else {
            return Err(Error::chart("Chart.yaml file is missing"));
        };
        chart.metadata.read("Chart.yaml", &text(content))?;
        if chart.metadata.api_version.is_empty() {
            "v1".clone_into(&mut chart.metadata.api_version);
        }
        let mut packed: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        for (name, content) in files {
            let content = without_mark(content);
            match name.strip_prefix("charts/") {
                Some(inner) if extension(&name) != "prov" => {
                    let folder = inner.split('/').next().unwrap_or(inner).to_owned();
                    packed
                        .entry(folder)
                        .or_default()
                        .push((inner.to_owned(), content));
                }
                _ => chart.add_file(&name, content)?,
            }
        }
        chart.metadata.validate()?;
        for (folder, files) in packed {
            if folder.starts_with(['_', '.']) {
                continue;
            }
            let loaded = Self::subchart(&folder, files, depth).map_err(|error| {
                let name = &chart.metadata.name;
                Error::chart(format!(
                    "error unpacking subchart {folder} in {name}: {error}"
                ))
            })?;
            chart.dependencies.extend(loaded);
        }
        Ok(chart)
    }

    fn subchart(folder: &str, files: Vec<(String, Vec<u8>)>, depth: usize) -> Result<Option<Self>> {
        if extension(folder) == "tgz" {
            let Some((_, content)) = files.iter().find(|(name, _)| name == folder) else {
                let message = format!("expected the archive {folder}, found a directory");
                return Err(Error::chart(message));
            };
            return Self::from_packed(content, depth + 1).map(Some);
        }
        let inside: Vec<(String, Vec<u8>)> = files
            .into_iter()
            .filter_map(|(name, content)| {
                let (_, rest) = name.split_once('/')?;
                Some((rest.to_owned(), content))
            })
            .collect();
        // A file in `charts/` that is not an archive belongs to no chart.
        if inside.is_empty() {
            return Err(Error::chart("Chart.yaml file is missing"));
        }
        Self::from_files(inside, depth + 1).map(Some)
    }

    fn add_file(&mut self, name: &str, content: Vec<u8>) -> Result<()> {
        let is_v1 = self.metadata.api_version == "v1";
        match name {
            "Chart.yaml" => {}
            "values.yaml" => {
                self.values_text = text(&content);
                self.values = read_values(&self.values_text).map_err(|message| {
                    Error::chart(format!("cannot load values.yaml: {message}"))
                })?;
            }
            "values.schema.json" => self.schema = Some(content.into()),
            "Chart.lock" | "requirements.lock" => {
                self.lock = Some(Lock::read(name, &text(&content))?);
                if is_v1 && name == "requirements.lock" {
                    self.push_file(name, content);
                }
            }
            "requirements.yaml" => {
                self.metadata.read(name, &text(&content))?;
                if is_v1 {
                    self.push_file(name, content);
                } else {
                    self.warnings.push(
                        "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We \
                         recommend migrating dependencies to Chart.yaml."
                            .to_owned(),
                    );
                }
            }
            _ if name.starts_with("templates/") => self.templates.push(file(name, content)),
            _ => self.push_file(name, content),
        }
        Ok(())
    }

    fn push_file(&mut self, name: &str, content: Vec<u8>) {
        self.files.push(file(name, content));
    }

    /// The name of the chart, which is its alias where it is a dependency.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// True if the chart only offers definitions to others.
    pub fn is_library(&self) -> bool {
        self.metadata.chart_type == "library"
    }

    /// Custom resource definitions of this chart and those inside, with the paths that they are
    /// printed under.
    pub fn crds(&self) -> Vec<(String, &File)> {
        let mut found = Vec::new();
        self.add_crds(self.name(), &mut found);
        found
    }

    fn add_crds<'c>(&'c self, path: &str, found: &mut Vec<(String, &'c File)>) {
        for file in &self.files {
            let is_manifest = matches!(extension(&file.name), "yaml" | "yml" | "json");
            if file.name.starts_with("crds/") && is_manifest {
                found.push((format!("{path}/{}", file.name), file));
            }
        }
        for dependency in &self.dependencies {
            dependency.add_crds(&format!("{path}/charts/{}", dependency.name()), found);
        }
    }
}

fn file(name: &str, content: Vec<u8>) -> File {
    File {
        name: name.into(),
        data: content.into(),
    }
}

/// What follows the last dot of a path.
fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Removes the mark that some editors put at the beginning of UTF-8 files.
fn without_mark(mut content: Vec<u8>) -> Vec<u8> {
    if content.starts_with(&[0xEF, 0xBB, 0xBF]) {
        content.drain(..3);
    }
    content
}

fn text(content: &[u8]) -> String {
    String::from_utf8_lossy(content).into_owned()
}

/// Reads a file of values; the error is what is wrong with it.
pub(crate) fn read_values(text: &str) -> Result<Map<String, Value>, String> {
    match first_from_yaml(text).map_err(|error| yaml_text(&error))? {
        Value::Object(mut values) => {
            values.values_mut().for_each(as_floats);
            Ok(values)
        }
        Value::Null => Ok(Map::new()),
        other => {
            let kind = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go \
                 value of type map[string]interface {{}}"
            ))
        }
    }
}
