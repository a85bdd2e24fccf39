//! Status feedback: selected values of an object, for the hub.
//!
//! Two fronts ask for values: the feedback rules of a ManifestWork, and a WorkManifestConfig for
//! the works of the work API. Both become [`Query`]s, in the order in which they were written. A
//! value that is not there is left out; a query that makes no sense is reported, and the others are
//! answered all the same.

pub mod limits;
mod subject;

use bellwether_api::multicluster::{StatusSyncRule, SyncType, names::language};
use bellwether_api::work::{FeedbackRule, FeedbackType};
use bellwether_cel::{Budget, Vars};
use bellwether_jsonpath::{Error, JsonPath};
use serde_json::{Map, Value};

use crate::programs::{Programs, names};

pub use limits::{Allowance, Limits, MAX_BYTE_ARRAY, MAX_JSON_RAW, MAX_TEXT, Structures};
pub use subject::{Subject, Versions, versions_asked_for};

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
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A question for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The value at a path.
    Path {
        /// What the value is called.
        name: String,
        /// The version that the object is read in.
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
    /// Whether a script exceeded its budget.
    pub is_over_budget: bool,
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

/// Answers questions about an object. Of two with one name the first counts, and the second is
/// reported. What the values take is taken from the allowance of the work.
pub fn answer(
    queries: &[Query],
    subject: &Subject<'_>,
    programs: &Programs,
    limits: Limits,
    allowance: &mut Allowance,
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
                by_path(name, version.as_deref(), path, subject, limits),
            ),
            Query::Script {
                name,
                language,
                content,
            } => (
                name,
                by_script(
                    name,
                    language,
                    content,
                    subject.object,
                    programs,
                    &mut budget,
                    limits,
                ),
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
            Ok(Some(value)) => match allowance.take(name, &value) {
                Ok(()) => answers.values.push((name.clone(), value)),
                Err(problem) => answers.problems.push(problem),
            },
            Ok(None) => {}
            Err(problem) => answers.problems.push(problem),
        }
    }
    answers.is_over_budget = budget.remaining() == 0;
    answers
}

fn by_path(
    name: &str,
    version: Option<&str>,
    path: &str,
    subject: &Subject<'_>,
    limits: Limits,
) -> Result<Option<Scalar>, String> {
    let object = subject.in_version(name, version)?;
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
    match (limits.structures, nodes.as_slice()) {
        (_, []) => Ok(None),
        (Structures::Json { several: true, .. }, [_, _, ..]) => {
            let list = nodes.iter().map(|node| (*node).clone()).collect();
            limits.scalar(name, &Value::Array(list))
        }
        (_, [first, ..]) => limits.scalar(name, first),
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
    limits: Limits,
) -> Result<Option<Scalar>, String> {
    if !in_language.eq_ignore_ascii_case(language::CEL) {
        return Err(format!(
            "the language {in_language} of the script {name} is not known: use CEL"
        ));
    }
    // What has no status yet has an empty one: a script may ask for its size.
    let none = Value::Object(Map::new());
    let status = object.get("status").filter(|it| !it.is_null());
    let status = status.unwrap_or(&none);
    let compiled = programs.script(content, |name| status.get(name).is_some());
    let program = compiled
        .as_ref()
        .as_ref()
        .map_err(|error| format!("failed to compile script {name}: {error}"))?;
    let mut vars = Vars::new().json("object", object).json("status", status);
    for key in names(content) {
        if !matches!(key, "object" | "status")
            && let Some(value) = status.get(key)
        {
            vars = vars.json(key, value);
        }
    }
    match program.evaluate(&vars, budget) {
        Ok(bellwether_cel::Value::Bytes(bytes)) => limits.bytes(name, &bytes).map(Some),
        Ok(value) => limits.scalar(name, &value.to_json()),
        Err(error) => {
            let text = error.to_string();
            // What the object does not have is not found, and no mistake.
            let is_missing = ["no such attribute", "no such key", "index out of bounds"]
                .iter()
                .any(|start| text.starts_with(start));
            if error.is_over_budget() {
                // What is left is not worth trying either.
                *budget = Budget::new(0, 0);
                Err(format!(
                    "failed to evaluate script {name}: CEL evaluation budget exceeded"
                ))
            } else if is_missing {
                Ok(None)
            } else {
                Err(format!("failed to evaluate script {name}: {text}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
