//! Status feedback: selected values of an object, for the hub.
//!
//! Two fronts ask for values: the feedback rules of a ManifestWork, and a WorkManifestConfig for
//! the works of the work API. Both become [`Query`]s, in the order in which they were written. A
//! value that is not there is left out; a query that makes no sense is told, and the others are
//! answered all the same.

use bellwether_api::multicluster::{StatusSyncRule, SyncType, names::language};
use bellwether_api::work::{FeedbackRule, FeedbackType};
use bellwether_cel::{Budget, Vars};
use bellwether_jsonpath::{Error, JsonPath};
use serde_json::{Map, Number, Value};

use crate::programs::{Programs, names};

/// The longest JSON that a ManifestWork carries in one value, unless the agent is told otherwise.
pub const MAX_JSON_RAW: usize = 1024;
/// The longest JSON that a Work carries in one value.
pub const MAX_BYTE_ARRAY: usize = 4096;

/// A value that comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A whole number.
    Integer(i64),
    /// A text.
    String(String),
    /// True or false.
    Boolean(bool),
    /// A list or a map, as JSON.
    Json(String),
}

/// What is done with lists and maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structures {
    /// They are refused.
    Refused,
    /// They come back as JSON of at most so many bytes.
    Json {
        /// So many bytes.
        limit: usize,
        /// Whether several results of a path are a list; otherwise the first counts.
        several: bool,
    },
}

/// A question for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The value at a path.
    Path {
        /// What the value is called.
        name: String,
        /// The version that the object has to be of.
        version: Option<String>,
        /// The path.
        path: String,
    },
    /// The value of an expression.
    Script {
        /// What the value is called.
        name: String,
        /// The language of the script.
        language: String,
        /// The script.
        content: String,
    },
    /// A rule that cannot be understood.
    Wrong(String),
}

/// Values by name, in the order of the questions, and what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    /// The values.
    pub values: Vec<(String, Scalar)>,
    /// What went wrong.
    pub problems: Vec<String>,
}

/// Group and version, kind, and names and paths of values.
type WellKnown = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The usual questions about common kinds, as the agent of Open Cluster Management asks them, and
/// for more kinds.
const WELL_KNOWN: [WellKnown; 8] = [
    (
        "apps/v1",
        "Deployment",
        &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
    ),
    (
        "apps/v1",
        "DaemonSet",
        &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
    ),
    (
        "apps/v1",
        "ReplicaSet",
        &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
    ),
    (
        "batch/v1",
        "Job",
        &[
            (
                "JobComplete",
                ".status.conditions[?(@.type==\"Complete\")].status",
            ),
            ("JobSucceeded", ".status.succeeded"),
        ],
    ),
    (
        "batch/v1",
        "CronJob",
        &[
            ("LastScheduleTime", ".status.lastScheduleTime"),
            ("LastSuccessfulTime", ".status.lastSuccessfulTime"),
        ],
    ),
    (
        "v1",
        "Pod",
        &[
            (
                "PodReady",
                ".status.conditions[?(@.type==\"Ready\")].status",
            ),
            ("PodPhase", ".status.phase"),
        ],
    ),
    (
        "v1",
        "PersistentVolumeClaim",
        &[
            ("Phase", ".status.phase"),
            ("Storage", ".status.capacity.storage"),
        ],
    ),
    (
        "v1",
        "Service",
        &[
            ("ClusterIP", ".spec.clusterIP"),
            ("LoadBalancerIP", ".status.loadBalancer.ingress[0].ip"),
        ],
    ),
];

/// The questions of a ManifestWork about an object of this group, version and kind.
pub fn of_manifest_work(rules: &[FeedbackRule], api_version: &str, kind: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for rule in rules {
        match &rule.kind {
            FeedbackType::WellKnownStatus => {
                let known = well_known(api_version, kind);
                queries.extend(known.unwrap_or_else(|| vec![unknown(api_version, kind)]));
            }
            FeedbackType::JsonPaths => {
                queries.extend(rule.json_paths.iter().map(|path| Query::Path {
                    name: path.name.clone(),
                    version: path.version.clone(),
                    path: path.path.clone(),
                }));
            }
            FeedbackType::Other(other) => {
                queries.push(Query::Wrong(format!(
                    "unrecognized feedback rule type {other}"
                )));
            }
        }
    }
    queries
}

/// A kind whose usual questions are not known, as Go prints it: the core group is an empty one.
fn unknown(api_version: &str, kind: &str) -> Query {
    let slash = if api_version.contains('/') { "" } else { "/" };
    Query::Wrong(format!(
        "cannot find the wellknown statuses for resource with gvk {slash}{api_version}, Kind={kind}"
    ))
}

fn well_known(api_version: &str, kind: &str) -> Option<Vec<Query>> {
    let (_, _, paths) = WELL_KNOWN
        .iter()
        .find(|(version, name, _)| *version == api_version && *name == kind)?;
    let query = |(name, path): &(&str, &str)| Query::Path {
        name: (*name).to_owned(),
        version: None,
        path: (*path).to_owned(),
    };
    Some(paths.iter().map(query).collect())
}

/// The questions of a WorkManifestConfig.
pub fn of_config(rules: &[StatusSyncRule]) -> Vec<Query> {
    let mut queries = Vec::new();
    for rule in rules {
        match &rule.kind {
            SyncType::JsonPaths => queries.extend(rule.json_paths.iter().map(|path| Query::Path {
                name: path.name.clone(),
                version: path.version.clone(),
                path: path.path.clone(),
            })),
            SyncType::Scripts => queries.extend(rule.scripts.iter().map(|script| Query::Script {
                name: script.name.clone(),
                language: script.language.clone(),
                content: script.content.clone(),
            })),
            SyncType::Other(other) => {
                queries.push(Query::Wrong(format!(
                    "unrecognized status sync rule type {other}"
                )));
            }
        }
    }
    queries
}

/// Answers questions about an object. Of two with one name the first counts, and the second is told.
pub fn answer(
    queries: &[Query],
    object: &Value,
    programs: &Programs,
    structures: Structures,
) -> Answers {
    let mut answers = Answers::default();
    let mut budget = Budget::kubernetes();
    for query in queries {
        let (name, answer) = match query {
            Query::Path {
                name,
                version,
                path,
            } => (
                name,
                by_path(name, version.as_deref(), path, object, structures),
            ),
            Query::Script {
                name,
                language,
                content,
            } => (
                name,
                by_script(name, language, content, object, programs, &mut budget)
                    .and_then(|value| scalar(name, value.as_ref(), structures)),
            ),
            Query::Wrong(problem) => {
                answers.problems.push(problem.clone());
                continue;
            }
        };
        match answer {
            Ok(Some(_)) if answers.values.iter().any(|(known, _)| known == name) => {
                answers
                    .problems
                    .push(format!("there are two values with the name {name}"));
            }
            Ok(Some(value)) => answers.values.push((name.clone(), value)),
            Ok(None) => {}
            Err(problem) => answers.problems.push(problem),
        }
    }
    answers
}

fn by_path(
    name: &str,
    version: Option<&str>,
    path: &str,
    object: &Value,
    structures: Structures,
) -> Result<Option<Scalar>, String> {
    let found = object["apiVersion"].as_str().unwrap_or_default();
    let found = found.rsplit('/').next().unwrap_or_default();
    if version.is_some_and(|wanted| !wanted.is_empty() && wanted != found) {
        return Err(format!(
            "version set in the path {name} is not matched for the related resource"
        ));
    }
    let template = if path.starts_with('{') {
        path.to_owned()
    } else {
        format!("{{{path}}}")
    };
    let parsed = JsonPath::parse(&template)
        .map_err(|error| format!("failed to parse json path {path} of {name} with error: {error}"))?
        .allow_missing_keys(true);
    let results = match parsed.find(object) {
        Ok(results) => results,
        // An item that a list does not have is as little there as a key that a map does not have.
        Err(Error::OutOfBounds { .. }) => return Ok(None),
        Err(error) => {
            return Err(format!(
                "failed to find value for {name} with error: {error}"
            ));
        }
    };
    let Some(nodes) = results.first() else {
        return Ok(None);
    };
    match (structures, nodes.as_slice()) {
        (_, []) => Ok(None),
        (Structures::Json { several: true, .. }, [_, _, ..]) => {
            let list = nodes.iter().map(|node| (*node).clone()).collect();
            scalar(name, Some(&Value::Array(list)), structures)
        }
        (_, [first, ..]) => scalar(name, Some(first), structures),
    }
}

/// A script sees the object, its status, and the keys of the status by their names.
fn by_script(
    name: &str,
    in_language: &str,
    content: &str,
    object: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Result<Option<Value>, String> {
    if !in_language.eq_ignore_ascii_case(language::CEL) {
        return Err(format!(
            "the language {in_language} of the script {name} is not known: use CEL"
        ));
    }
    let compiled = programs.script(content);
    let program = compiled
        .as_ref()
        .as_ref()
        .map_err(|error| format!("failed to compile script {name}: {error}"))?;
    // What has no status yet has an empty one: a script may ask for its size.
    let none = Value::Object(Map::new());
    let status = object.get("status").filter(|it| !it.is_null());
    let status = status.unwrap_or(&none);
    let mut vars = Vars::new().json("object", object).json("status", status);
    for key in names(content) {
        if !matches!(key, "object" | "status")
            && let Some(value) = status.get(key)
        {
            vars = vars.json(key, value);
        }
    }
    match program.evaluate(&vars, budget) {
        Ok(value) => Ok(Some(value.to_json())),
        Err(error) => {
            let text = error.to_string();
            // What the object does not have is not found, and no mistake.
            let is_missing = ["no such attribute", "no such key", "index out of bounds"]
                .iter()
                .any(|start| text.starts_with(start));
            if is_missing && !error.is_over_budget() {
                Ok(None)
            } else {
                Err(format!("failed to evaluate script {name}: {text}"))
            }
        }
    }
}

/// The shortest text of a number.
fn decimal(number: &Number) -> String {
    let text = number.to_string();
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A JSON value as one that can come back; null is nothing.
fn scalar(
    name: &str,
    value: Option<&Value>,
    structures: Structures,
) -> Result<Option<Scalar>, String> {
    Ok(match value {
        None | Some(Value::Null) => None,
        Some(Value::Bool(value)) => Some(Scalar::Boolean(*value)),
        Some(Value::String(text)) => Some(Scalar::String(text.clone())),
        Some(Value::Number(number)) => Some(match number.as_i64() {
            Some(integer) => Scalar::Integer(integer),
            None => Scalar::String(decimal(number)),
        }),
        Some(structure @ (Value::Array(_) | Value::Object(_))) => match structures {
            Structures::Refused => {
                let kind = if structure.is_array() {
                    "[]interface {}"
                } else {
                    "map[string]interface {}"
                };
                return Err(format!(
                    "the type {kind} of the value for {name} is not found"
                ));
            }
            Structures::Json { limit, .. } => {
                let json = structure.to_string();
                if json.len() > limit {
                    return Err(format!(
                        "the length of returned json raw string for name {name} is larger than the maximum length {limit}"
                    ));
                }
                Some(Scalar::Json(json))
            }
        },
    })
}

#[cfg(test)]
mod tests;
