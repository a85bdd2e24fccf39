//! YAML in and out: the only place that knows this format.
//!
//! [`from_yaml`] reads as kubectl does, [`to_yaml`] writes as `kubectl -o yaml` and Helm's `toYaml`
//! do. Both follow Go's `sigs.k8s.io/yaml`: YAML 1.1 scalars (`yes`, `0777`), keys turned into
//! strings, merge keys, numbers as Kubernetes sees them ([`crate::number`]), and on the way out
//! natural key order, lists at the level of their key and lines folded at 80 columns.
//!
//! The text is taken apart by `granit_parser`, whose events keep the difference between `y` and
//! `"y"`; a deserialiser would have lost it.

mod decode;
mod emit;
mod lenient;
mod node;
mod order;
mod resolve;

use serde_json::Value;

use crate::strict;

pub use node::{Node, NodeError, first_node};

/// What to do when a mapping has the same key twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// The last one counts, as kubectl and API servers have it.
    #[default]
    LastWins,
    /// The text is refused: right for configuration files of our own.
    Error,
}

/// Which of Go's readers decides what an unquoted scalar and a key mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `sigs.k8s.io/yaml`, as kubectl and Helm read: `yes` and `y` are booleans, keys of any scalar
    /// type become strings.
    #[default]
    Kubernetes,
    /// `go.yaml.in/yaml/v3`, as kustomize reads resources: only `true` and `false` are booleans,
    /// dates are written out in full, and keys have to be strings.
    GoYamlV3,
}

/// How [`from_yaml_with`] reads, and what it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YamlOptions {
    /// What to do when a mapping has the same key twice.
    pub duplicate_keys: DuplicateKeys,
    /// Containers inside containers beyond this number are refused.
    pub max_depth: usize,
    /// Bytes that aliases may add to what is written out in the text; stops texts of a few lines
    /// that expand to gigabytes.
    pub max_alias_bytes: usize,
    /// Whose rules apply to unquoted scalars.
    pub dialect: Dialect,
    /// Whether a block scalar at the very end of a text gets the line break that the text lacks. kubectl adds
    /// it, readers of Go do not.
    pub adds_final_break: bool,
}

impl Default for YamlOptions {
    fn default() -> Self {
        Self {
            duplicate_keys: DuplicateKeys::LastWins,
            max_depth: strict::DEFAULT_MAX_DEPTH,
            max_alias_bytes: 16 * 1024 * 1024,
            dialect: Dialect::Kubernetes,
            adds_final_break: true,
        }
    }
}

/// One document of a YAML text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// The content; of duplicate keys the last one counts.
    pub value: Value,
    /// Keys that occurred more than once in a mapping, in order of appearance.
    pub duplicates: Vec<DuplicateKey>,
}

/// A key that was set before in the same mapping. Its display form is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: key {key:?} already set in map")]
pub struct DuplicateKey {
    /// The key itself.
    pub key: String,
    /// Where it is, such as `spec.containers[0].image`.
    pub path: String,
    /// Line of the second occurrence, counted from 1.
    pub line: usize,
}

/// Why a text cannot be read as YAML, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("yaml: line {line}, column {column}: {message}")]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// Reads all documents; empty ones are skipped, and of duplicate keys the last one counts.
pub fn from_yaml(text: &str) -> Result<Vec<Value>, YamlError> {
    from_yaml_with(text, YamlOptions::default())
}

/// [`from_yaml`] with the caller's limits and treatment of duplicate keys.
pub fn from_yaml_with(text: &str, options: YamlOptions) -> Result<Vec<Value>, YamlError> {
    let documents = documents_from_yaml(text, options)?;
    Ok(documents
        .into_iter()
        .map(|document| document.value)
        .collect())
}

/// Reads a text of exactly one document; an empty text is null.
pub fn value_from_yaml(text: &str) -> Result<Value, YamlError> {
    value_from_yaml_with(text, YamlOptions::default())
}

/// [`value_from_yaml`] with the caller's limits and treatment of duplicate keys.
pub fn value_from_yaml_with(text: &str, options: YamlOptions) -> Result<Value, YamlError> {
    Ok(single(documents_from_yaml(text, options)?)?.value)
}

/// Reads the first document of a text, as Go's readers of one value do: what follows it is not looked at,
/// and need not be YAML. An empty text is null.
pub fn first_from_yaml(text: &str) -> Result<Value, YamlError> {
    let options = YamlOptions::default();
    match from_json(text, options) {
        Some(documents) => Ok(documents.into_iter().next().unwrap_or_default().value),
        None => Ok(decode::first_document(text, options)?.value),
    }
}

/// [`value_from_yaml`] together with what was odd about it.
pub fn document_from_yaml(text: &str) -> Result<Document, YamlError> {
    single(documents_from_yaml(text, YamlOptions::default())?)
}

/// What an unquoted scalar means to `go.yaml.in/yaml/v3`. Numbers that JSON cannot hold stay text.
pub fn plain_scalar(text: &str) -> Value {
    decode::plain_scalar(text)
}

fn single(mut documents: Vec<Document>) -> Result<Document, YamlError> {
    if documents.len() > 1 {
        let message = format!("expected a single document, found {}", documents.len());
        return Err(YamlError {
            message,
            line: 1,
            column: 1,
        });
    }
    Ok(documents.pop().unwrap_or_default())
}

/// Reads all documents together with what was odd about each, for callers that report duplicate
/// keys as warnings. With [`DuplicateKeys::Error`] the first duplicate is the error.
pub fn documents_from_yaml(text: &str, options: YamlOptions) -> Result<Vec<Document>, YamlError> {
    if let Some(documents) = from_json(text, options) {
        return Ok(documents);
    }
    decode::documents(text, options)
}

/// Most YAML bodies that machines send are JSON, which is read far faster by its own parser, and
/// may be several objects with nothing in between. Not taken when there is something to say about
/// the text, since only the YAML reader knows lines.
fn from_json(text: &str, options: YamlOptions) -> Option<Vec<Document>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let parse_options = strict::ParseOptions {
        max_depth: options.max_depth,
        fold_integral_floats: true,
    };
    let documents = strict::parse_stream(text.as_bytes(), parse_options).ok()?;
    let is_clean = documents.iter().all(|parsed| parsed.duplicates.is_empty());
    let to_document = |parsed: strict::Parsed| Document {
        value: parsed.value,
        duplicates: Vec::new(),
    };
    is_clean.then(|| documents.into_iter().map(to_document).collect())
}

/// The number of characters of a text whose last line has content but no line break.
fn open_end(text: &str) -> Option<usize> {
    let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    let is_open = !last.trim_start_matches(' ').is_empty();
    is_open.then(|| text.chars().count())
}

/// The layout of written YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YamlStyle {
    /// Scalars are folded at the first space beyond this column; `None` never folds.
    pub fold_after: Option<usize>,
    /// Whether the items of a list stand two columns to the right of the list's key.
    pub indent_lists: bool,
    /// Whether numbers come from values of Go instead of JSON: floats are then written as `%g` does.
    pub is_direct: bool,
    /// Whether texts are laid out as `gopkg.in/yaml.v3` does: tabs may stand in literal blocks, and those lose
    /// a line break that they begin with.
    pub is_v3: bool,
}

impl Default for YamlStyle {
    /// The layout of `kubectl -o yaml`.
    fn default() -> Self {
        Self {
            fold_after: Some(80),
            indent_lists: false,
            is_direct: false,
            is_v3: false,
        }
    }
}

/// Writes a value as `kubectl -o yaml` does, with a line break at the end.
pub fn to_yaml(value: &Value) -> String {
    emit::emit(value, YamlStyle::default())
}

/// [`to_yaml`] in another layout.
pub fn to_yaml_with(value: &Value, style: YamlStyle) -> String {
    emit::emit(value, style)
}

#[cfg(test)]
mod tests;
