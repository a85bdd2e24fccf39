//! Pod Security: what the levels `baseline` and `restricted` forbid, and what namespaces ask for.
//!
//! The levels, their checks and the words of their messages are those of Kubernetes' Pod Security
//! Standards. Labels of a namespace choose a level for each of three modes, see [`Policy`].

mod baseline;
mod restricted;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::value::{at, list, text};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much a pod may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    #[default]
    Privileged,
    /// What does not reach beyond the pod in known ways.
    Baseline,
    /// What follows current practice of hardening.
    Restricted,
}

/// A level as it was in a release of Kubernetes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The minor number of the release; the latest if there is none.
    minor: Option<u32>,
}

impl LevelVersion {
    /// Whether both are levels of the same release.
    pub fn is_of_same_version(self, other: Self) -> bool {
        self.minor == other.minor
    }
}

impl std::fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            Some(minor) => write!(f, "{level}:v1.{minor}"),
            None => write!(f, "{level}:latest"),
        }
    }
}

/// What a namespace asks of its pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// What violates it is refused.
    pub enforce: LevelVersion,
    /// What violates it is noted in the audit log.
    pub audit: LevelVersion,
    /// Who creates what violates it is warned.
    pub warn: LevelVersion,
}

impl Policy {
    /// What the labels of a namespace say. A level that nobody knows counts as the strictest, and is
    /// an error.
    pub fn of_namespace(namespace: &Value) -> (Self, Vec<FieldError>) {
        let labels = at(namespace, &["metadata", "labels"]);
        let mut errors = Vec::new();
        let mut of = |mode: &str| LevelVersion {
            level: level(labels, mode, &mut errors),
            minor: version(labels, &format!("{mode}-version"), &mut errors),
        };
        let mut policy = Self {
            enforce: of("enforce"),
            audit: of("audit"),
            warn: of("warn"),
        };
        // A namespace that refuses pods also warns of workloads whose pods it would refuse.
        let says = |name: &str| labels.get(format!("{PREFIX}{name}")).is_some();
        if !says("warn") {
            policy.warn.level = policy.enforce.level;
            if !says("warn-version") {
                policy.warn.minor = policy.enforce.minor;
            }
        }
        (policy, errors)
    }
}

fn level(labels: &Value, mode: &str, errors: &mut Vec<FieldError>) -> Level {
    let name = format!("{PREFIX}{mode}");
    match labels.get(&name).and_then(Value::as_str) {
        None | Some("privileged") => Level::Privileged,
        Some("baseline") => Level::Baseline,
        Some("restricted") => Level::Restricted,
        Some(other) => {
            let detail = "must be one of privileged, baseline, restricted";
            invalid(&name, other, detail, errors);
            Level::Restricted
        }
    }
}

fn version(labels: &Value, mode: &str, errors: &mut Vec<FieldError>) -> Option<u32> {
    let name = format!("{PREFIX}{mode}");
    let given = labels.get(&name).and_then(Value::as_str)?;
    if given == "latest" {
        return None;
    }
    let minor = given
        .strip_prefix("v1.")
        .and_then(|minor| minor.parse().ok());
    if minor.is_none() {
        invalid(&name, given, "must be \"latest\" or \"v1.x\"", errors);
    }
    minor
}

fn invalid(label: &str, value: &str, detail: &str, errors: &mut Vec<FieldError>) {
    let path = FieldPath::new("metadata");
    let path = path.child("labels");
    errors.push(FieldError::invalid(&path.key(label), value, detail));
}

/// Something that a level forbids, and who does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is forbidden.
    pub reason: String,
    /// Which part of the pod does it, and what to change.
    pub detail: String,
}

impl Violation {
    fn new(reason: &str, detail: String) -> Self {
        Self {
            reason: reason.to_owned(),
            detail,
        }
    }
}

/// What a pod, or a template of pods, does that a level forbids.
pub fn violations(wanted: LevelVersion, pod: &Value) -> Vec<Violation> {
    let pod = PodView {
        pod,
        is_relaxed: wanted.minor.is_none_or(|minor| minor >= 35)
            && *at(pod, &["spec", "hostUsers"]) == false,
    };
    let is_in_force = |check: &&Check| wanted.minor.is_none_or(|minor| check.since <= minor);
    let baseline = || {
        let checks = baseline::CHECKS.iter();
        checks.filter(move |check| wanted.level == Level::Baseline || !check.is_replaced)
    };
    let run = |check: &Check| (check.run)(&pod);
    match wanted.level {
        Level::Privileged => Vec::new(),
        Level::Baseline => baseline().filter(is_in_force).filter_map(run).collect(),
        Level::Restricted => baseline()
            .chain(restricted::CHECKS)
            .filter(is_in_force)
            .filter_map(run)
            .collect(),
    }
}

/// Violations in one line: `privileged (container "a" must not set …), hostPort (…)`.
pub fn describe(violations: &[Violation]) -> String {
    let parts = violations.iter().map(|it| match it.detail.as_str() {
        "" => it.reason.clone(),
        detail => format!("{} ({detail})", it.reason),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The pod, or the template of pods, in an object of a resource; none for resources without one.
pub fn pod_of<'a>(group: &str, plural: &str, object: &'a Value) -> Option<&'a Value> {
    let path: &[&str] = match (group, plural) {
        ("", "pods") => &[],
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    Some(at(object, path)).filter(|found| found.is_object())
}

/// A check of one level.
struct Check {
    /// The minor number of the first release that has it.
    since: u32,
    /// Whether the next level has a stricter one for the same thing.
    is_replaced: bool,
    run: fn(&PodView<'_>) -> Option<Violation>,
}

/// A pod that is checked.
struct PodView<'a> {
    pod: &'a Value,
    /// Whether its users are not those of the node, so that its root is nobody there.
    is_relaxed: bool,
}

impl<'a> PodView<'a> {
    fn spec(&self) -> &'a Value {
        at(self.pod, &["spec"])
    }

    /// A field of the security context of the pod.
    fn security(&self, path: &[&str]) -> &'a Value {
        at(at(self.spec(), &["securityContext"]), path)
    }

    /// Whether it is for nodes with Windows, where much of this does not exist.
    fn is_windows(&self) -> bool {
        text(self.spec(), &["os", "name"]) == "windows"
    }

    /// All containers, in the order in which they are checked.
    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec();
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |containers| list(spec, &[containers]))
    }

    /// The names of the containers that do something.
    fn names(&self, mut does: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        let containers = self.containers().filter(|container| does(container));
        containers
            .map(|container| text(container, &["name"]))
            .collect()
    }

    /// `pod and container "a"`: who sets a field of a security context to something that is `bad`.
    fn setters(&self, path: &[&str], mut bad: impl FnMut(&'a Value) -> bool) -> Vec<String> {
        let mut setters = Vec::new();
        if bad(self.security(path)) {
            setters.push("pod".to_owned());
        }
        let names = self.names(|container| bad(of_container(container, path)));
        if !names.is_empty() {
            setters.push(containers(&names));
        }
        setters
    }
}

/// A field of the security context of a container.
fn of_container<'a>(container: &'a Value, path: &[&str]) -> &'a Value {
    at(at(container, &["securityContext"]), path)
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`
fn containers(names: &[&str]) -> String {
    let word = plural("container", "containers", names.len());
    format!("{word} {}", quoted(names))
}

fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    let names = names.iter().map(|name| format!("{:?}", name.as_ref()));
    names.collect::<Vec<_>>().join(", ")
}

/// In order, each once.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
