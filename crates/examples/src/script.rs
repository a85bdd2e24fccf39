//! Scripts: what is done and what is promised, in YAML.
//!
//! Each step does what it names, in this order: `answer`, `commit`, `apply`, `patch`, `delete`, `run`, `kill`; then it waits
//! until all that it expects was seen. What is in `always` has to be true of every version of the objects, from the beginning to the end.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_json::duration::GoDuration;
use serde::Deserialize;
use serde_json::Value;

use crate::judge::Judge;

/// How long something is waited for if nothing else is said.
const DEFAULT_WITHIN: Duration = Duration::from_mins(1);

/// What is wrong with a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not YAML.
    #[error("the script is not YAML: {0}")]
    Syntax(String),
    /// Its fields are wrong.
    #[error("the script cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
    /// It makes no sense.
    #[error("{place}: {problem}")]
    Content {
        /// Where, such as `steps[2]`.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

/// What an example does and promises.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Script {
    /// What it shows, in one line.
    pub title: String,
    /// What it shows, in some more.
    pub about: String,
    /// The fleet that it is played on.
    #[serde(default)]
    pub fleet: FleetSpec,
    /// HTTP servers that answer while it is played. `${NAME}` in files stands for their address.
    #[serde(default)]
    pub servers: BTreeMap<String, Answers>,
    /// Repositories of git on this machine, which the hub may use.
    #[serde(default)]
    pub repositories: BTreeMap<String, RepositorySpec>,
    /// What is true all the time.
    #[serde(default)]
    pub always: Vec<Promise>,
    /// What is done, and what is seen then.
    pub steps: Vec<Step>,
}

/// A fleet.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FleetSpec {
    /// How many members it has.
    #[serde(default = "default_clusters")]
    pub clusters: usize,
    /// Labels of members, by name.
    #[serde(default)]
    pub labels: BTreeMap<String, BTreeMap<String, String>>,
    /// Further arguments of `bellwether up`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// True if all clusters have to be in one process.
    #[serde(default)]
    pub together: bool,
}

impl Default for FleetSpec {
    fn default() -> Self {
        Self {
            clusters: default_clusters(),
            labels: BTreeMap::new(),
            arguments: Vec::new(),
            together: false,
        }
    }
}

fn default_clusters() -> usize {
    1
}

/// What a server answers from now on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Answers {
    /// The status code.
    #[serde(default = "default_code")]
    pub code: u16,
    /// The body.
    #[serde(default)]
    pub body: Value,
    /// Refuse connections instead.
    #[serde(default)]
    pub down: bool,
}

fn default_code() -> u16 {
    200
}

/// A repository of git, with one branch, `main`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RepositorySpec {
    /// What files of the example call it; replaced by its address.
    pub address: String,
    /// A folder of the example whose files it begins with.
    #[serde(default)]
    pub files: Option<String>,
}

/// A commit of somebody who is not the fleet.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Commit {
    /// The name of the repository.
    pub repository: String,
    /// What it says.
    pub message: String,
    /// Paths in the repository, and files of the example; null for a file that is removed.
    pub files: BTreeMap<String, Option<String>>,
}

/// Something that is true all the time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Promise {
    /// What it means.
    pub say: String,
    /// TYPE/NAME, or TYPE for each object of a type.
    pub object: String,
    /// The namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The cluster.
    #[serde(default = "default_cluster")]
    pub cluster: String,
    /// An expression about `object`.
    pub that: String,
}

/// What is done, and what is seen then.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Step {
    /// The commentary.
    pub say: String,
    /// What servers answer from now on.
    #[serde(default)]
    pub answer: BTreeMap<String, Answers>,
    /// Commits of somebody else.
    #[serde(default)]
    pub commit: Vec<Commit>,
    /// Files that are applied to the hub, or to another cluster.
    #[serde(default)]
    pub apply: Vec<String>,
    /// The cluster that files are applied to.
    #[serde(default = "default_cluster")]
    pub cluster: String,
    /// Changes to objects.
    #[serde(default)]
    pub patch: Vec<Patch>,
    /// Objects that are deleted.
    #[serde(default)]
    pub delete: Vec<Subject>,
    /// Commands of `bellwether`, without that word.
    #[serde(default)]
    pub run: Vec<String>,
    /// Kill the fleet as `kill -9` does, and start it again.
    #[serde(default)]
    pub kill: bool,
    /// What is seen then.
    #[serde(default)]
    pub expect: Vec<Expectation>,
}

/// An object.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subject {
    /// TYPE/NAME
    pub object: String,
    /// The namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The cluster.
    #[serde(default = "default_cluster")]
    pub cluster: String,
}

/// A change to an object, as a merge patch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Patch {
    /// TYPE/NAME
    pub object: String,
    /// The namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The cluster.
    #[serde(default = "default_cluster")]
    pub cluster: String,
    /// `status`, if it is about that.
    #[serde(default)]
    pub subresource: Option<String>,
    /// The fields that change.
    pub with: Value,
}

/// Something that is seen sooner or later.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expectation {
    /// What it means, for the commentary; the expression by default.
    #[serde(default)]
    pub say: Option<String>,
    /// TYPE/NAME of an object, which the expression knows as `object`.
    #[serde(default)]
    pub object: Option<String>,
    /// TYPE of objects, which the expression knows as `objects`.
    #[serde(default)]
    pub objects: Option<String>,
    /// A label selector for `objects`.
    #[serde(default)]
    pub labels: Option<String>,
    /// The name of a server; the expression knows what it was asked as `requests`.
    #[serde(default)]
    pub server: Option<String>,
    /// The name of a repository; the expression knows its `commits` and `files` as `repository`.
    #[serde(default)]
    pub repository: Option<String>,
    /// The namespace.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The cluster.
    #[serde(default = "default_cluster")]
    pub cluster: String,
    /// The expression, which may be left out for an object that only has to be there.
    #[serde(default)]
    pub that: Option<String>,
    /// The object is not there.
    #[serde(default)]
    pub gone: bool,
    /// How long it may take, such as `30s`.
    #[serde(default)]
    pub within: Option<String>,
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn default_cluster() -> String {
    "hub".to_owned()
}

impl Expectation {
    /// What is looked at, for messages.
    pub fn subject(&self) -> String {
        let name = self.object.as_ref().or(self.objects.as_ref());
        match (name, &self.server, &self.repository) {
            (Some(name), ..) if self.cluster == "hub" => name.clone(),
            (Some(name), ..) => format!("{name} on {}", self.cluster),
            (None, Some(server), _) => format!("requests to {server}"),
            (None, None, Some(repository)) => format!("repository {repository}"),
            (None, None, None) => String::new(),
        }
    }

    /// How long it may take.
    pub fn limit(&self) -> Duration {
        let parsed = self.within.as_deref().and_then(duration);
        parsed.unwrap_or(DEFAULT_WITHIN)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let parsed: GoDuration = text.parse().ok()?;
    Duration::try_from(parsed.to_signed()).ok()
}

impl Script {
    /// Reads a script, and checks what can be checked without a fleet; `is_file` says which files there are.
    pub fn parse(text: &str, is_file: impl Fn(&str) -> bool) -> Result<Self, ScriptError> {
        let value = bellwether_json::yaml::value_from_yaml(text)
            .map_err(|error| ScriptError::Syntax(error.to_string()))?;
        let script: Self = serde_json::from_value(value)?;
        script.check(is_file)?;
        Ok(script)
    }

    fn check(&self, is_file: impl Fn(&str) -> bool) -> Result<(), ScriptError> {
        let judge = Judge::new();
        for (name, repository) in &self.repositories {
            let folder = repository.files.as_ref().filter(|folder| !is_file(folder));
            if let Some(folder) = folder {
                let problem = Err(format!("there is no folder {folder}"));
                return at(&format!("repositories.{name}"), problem);
            }
        }
        for (index, promise) in self.always.iter().enumerate() {
            let place = format!("always[{index}]");
            at(&place, judge.compile(&promise.that).map(drop))?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            let place = format!("steps[{index}]");
            at(&place, self.check_step(step, &is_file))?;
            for (number, expected) in step.expect.iter().enumerate() {
                let place = format!("{place}.expect[{number}]");
                at(&place, self.check_expectation(expected, &judge))?;
            }
        }
        if self.steps.iter().all(|step| step.expect.is_empty()) {
            return at(
                "steps",
                Err("an example has to promise something: add an expect".to_owned()),
            );
        }
        Ok(())
    }

    fn check_step(&self, step: &Step, is_file: impl Fn(&str) -> bool) -> Result<(), String> {
        let committed = step.commit.iter().flat_map(|commit| commit.files.values());
        let mut files = step.apply.iter().chain(committed.flatten());
        if let Some(file) = files.find(|file| !is_file(file)) {
            return Err(format!("there is no file {file}"));
        }
        for commit in &step.commit {
            self.check_repository(&commit.repository)?;
        }
        if let Some(name) = step
            .answer
            .keys()
            .find(|name| !self.servers.contains_key(*name))
        {
            return Err(format!("there is no server {name}"));
        }
        let subjects = step.delete.iter().map(|subject| &subject.object);
        let subjects = subjects.chain(step.patch.iter().map(|patch| &patch.object));
        for object in subjects {
            named(object)?;
        }
        Ok(())
    }

    fn check_repository(&self, name: &str) -> Result<(), String> {
        if self.repositories.contains_key(name) {
            return Ok(());
        }
        Err(format!("there is no repository {name}"))
    }

    fn check_expectation(&self, expected: &Expectation, judge: &Judge) -> Result<(), String> {
        let subjects = [
            &expected.object,
            &expected.objects,
            &expected.server,
            &expected.repository,
        ];
        if subjects.iter().filter(|subject| subject.is_some()).count() != 1 {
            return Err("name one of object, objects, server and repository".to_owned());
        }
        if let Some(name) = &expected.repository {
            self.check_repository(name)?;
        }
        if let Some(object) = &expected.object {
            named(object)?;
        }
        if let Some(name) = expected
            .server
            .as_ref()
            .filter(|name| !self.servers.contains_key(*name))
        {
            return Err(format!("there is no server {name}"));
        }
        if expected.gone && (expected.object.is_none() || expected.that.is_some()) {
            return Err("gone is about one object, and needs no expression".to_owned());
        }
        if expected.that.is_none() && expected.object.is_none() {
            return Err("that is missing".to_owned());
        }
        if let Some(within) = expected
            .within
            .as_deref()
            .filter(|text| duration(text).is_none())
        {
            return Err(format!("{within:?} is not a duration, such as 30s"));
        }
        match &expected.that {
            Some(expression) => judge.compile(expression).map(drop),
            None => Ok(()),
        }
    }
}

fn named(object: &str) -> Result<(), String> {
    match object.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(()),
        _ => Err(format!("{object:?} is not of the form TYPE/NAME")),
    }
}

fn at(place: &str, result: Result<(), String>) -> Result<(), ScriptError> {
    result.map_err(|problem| ScriptError::Content {
        place: place.to_owned(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(steps: &str, expected: &str) {
        let text = format!("title: t\nabout: a\nservers: {{hook: {{}}}}\nsteps:\n{steps}");
        let error = Script::parse(&text, |file| file == "app.yaml").unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_script_is_checked_before_a_fleet_is_started() {
        refused(
            "- {say: x, apply: [no.yaml]}",
            "steps[0]: there is no file no.yaml",
        );
        refused(
            "- {say: x, apply: [app.yaml]}",
            "steps: an example has to promise something: add an expect",
        );
        refused(
            "- {say: x, delete: [{object: pods}]}",
            "steps[0]: \"pods\" is not of the form TYPE/NAME",
        );
        refused(
            "- {say: x, expect: [{}]}",
            "steps[0].expect[0]: name one of object, objects, server and repository",
        );
        refused(
            "- {say: x, expect: [{server: hok, that: 'true'}]}",
            "steps[0].expect[0]: there is no server hok",
        );
        refused(
            "- {say: x, expect: [{repository: apps, that: 'true'}]}",
            "steps[0].expect[0]: there is no repository apps",
        );
        refused(
            "- {say: x, commit: [{repository: apps, message: m, files: {a: app.yaml}}]}",
            "steps[0]: there is no repository apps",
        );
        refused(
            "- {say: x, expect: [{objects: pods}]}",
            "steps[0].expect[0]: that is missing",
        );
        refused(
            "- {say: x, expect: [{object: pod/a, within: soon}]}",
            "steps[0].expect[0]: \"soon\" is not a duration, such as 30s",
        );
        refused(
            "- {say: x, expect: [{object: pod/a, gone: true, that: 'true'}]}",
            "steps[0].expect[0]: gone is about one object, and needs no expression",
        );
    }

    #[test]
    fn fields_that_do_not_exist_are_refused() {
        let error = Script::parse("title: t\nabout: a\nsteps: [{say: x, aply: []}]", |_| true);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("unknown field `aply`"), "{error}");
    }

    #[test]
    fn expressions_are_compiled() {
        let text = "title: t\nabout: a\nsteps:\n- {say: x, expect: [{object: pod/a, that: 'object.status.'}]}";
        let error = Script::parse(text, |_| true).unwrap_err().to_string();
        assert!(error.starts_with("steps[0].expect[0]: "), "{error}");
    }
}
