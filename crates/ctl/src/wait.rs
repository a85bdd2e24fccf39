//! `wait`: until objects are as they should be.

use std::io::Write;
use std::str::FromStr;
use std::time::Duration;

use bellwether_jsonpath::JsonPath;
use futures::StreamExt as _;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;

use crate::connection::Connection;
use crate::error::Error;
use crate::output::name;
use crate::request::{self, JSON, with_query};
use crate::selection::{Scope, Target, targets};
use crate::types::{Type, Types};

/// What is waited for, as `--for` says it.
#[derive(Debug, Clone)]
pub enum Goal {
    /// `create`: the object is there.
    There,
    /// `delete`: it is gone, or another object has its name.
    Gone {
        /// The uid of the object; whichever there is first if absent.
        uid: Option<String>,
    },
    /// `condition=TYPE[=STATUS]`
    Condition {
        /// The type of the condition.
        kind: String,
        /// Its status, `true` unless something else is said.
        status: String,
    },
    /// `jsonpath=TEMPLATE[=VALUE]`
    JsonPath {
        /// Where to look.
        path: JsonPath,
        /// What should be there; anything if absent.
        value: Option<String>,
    },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, argument) = text.split_once('=').unwrap_or((text, ""));
        match what.to_lowercase().as_str() {
            "create" => Ok(Self::There),
            "delete" => Ok(Self::Gone { uid: None }),
            "condition" if !argument.is_empty() => {
                let (kind, status) = argument.split_once('=').unwrap_or((argument, "true"));
                Ok(Self::Condition {
                    kind: kind.to_owned(),
                    status: status.to_owned(),
                })
            }
            "jsonpath" if !argument.is_empty() => {
                // The value comes after the template, which may hold the sign itself.
                let (template, value) = match argument.rfind("}=") {
                    Some(end) => (&argument[..=end], Some(argument[end + 2..].to_owned())),
                    None if argument.starts_with('{') => (argument, None),
                    None => match argument.split_once('=') {
                        Some((template, value)) => (template, Some(value.to_owned())),
                        None => (argument, None),
                    },
                };
                let path = JsonPath::parse_relaxed(template)
                    .map_err(|error| format!("error parsing jsonpath {template}: {error}"))?
                    .allow_missing_keys(true);
                Ok(Self::JsonPath { path, value })
            }
            _ => Err(
                "one of: create, delete, condition=TYPE[=STATUS], jsonpath=TEMPLATE[=VALUE]"
                    .to_owned(),
            ),
        }
    }
}

impl Goal {
    /// Whether an object, or its absence, is what is waited for.
    pub fn is_met(&self, object: Option<&Value>) -> bool {
        match (self, object) {
            (Self::There, object) => object.is_some(),
            (Self::Gone { uid: None }, object) => object.is_none(),
            (Self::Gone { uid: Some(uid) }, object) => {
                object.is_none_or(|it| it["metadata"]["uid"] != **uid)
            }
            (_, None) => false,
            (Self::Condition { kind, status }, Some(object)) => condition_met(object, kind, status),
            (Self::JsonPath { path, value }, Some(object)) => {
                let found = path.render(object).unwrap_or_default();
                match value {
                    Some(value) => found == value.trim_matches(['\'', '"']),
                    None => !found.is_empty(),
                }
            }
        }
    }
}

/// Whether a condition has a status, and is about the present state of the object.
fn condition_met(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let Some(condition) = conditions.and_then(|conditions| {
        let same = |condition: &&Value| {
            condition["type"]
                .as_str()
                .is_some_and(|name| name.eq_ignore_ascii_case(kind))
        };
        conditions.iter().find(same)
    }) else {
        return false;
    };
    let generation = object["metadata"]["generation"].as_i64();
    let observed = condition["observedGeneration"]
        .as_i64()
        .or_else(|| object["status"]["observedGeneration"].as_i64());
    let outdated = matches!((generation, observed), (Some(now), Some(seen)) if seen < now);
    !outdated
        && condition["status"]
            .as_str()
            .is_some_and(|found| found.eq_ignore_ascii_case(status))
}

/// What to wait for.
#[derive(Debug, Clone)]
pub struct Wait {
    /// `TYPE NAME…` or `TYPE/NAME…`; or `TYPE` with a selector or `all`.
    pub words: Vec<String>,
    /// Where to look.
    pub scope: Scope,
    /// All objects of the type.
    pub all: bool,
    /// How they should be.
    pub goal: Goal,
    /// For how long, all together.
    pub timeout: Duration,
}

/// Waits for objects one after the other, and prints each.
pub async fn run(connection: &Connection, wait: &Wait, out: &mut dyn Write) -> Result<(), Error> {
    let types = Types::discover(&connection.client).await?;
    let end = tokio::time::Instant::now() + wait.timeout;
    let mut found = Vec::new();
    for Target { kind, name } in targets(&types, &wait.words)? {
        let namespace = kind.namespaced.then(|| wait.scope.namespace.clone());
        match name {
            Some(name) => found.push((kind, namespace, name)),
            None => found.extend(matching(connection, wait, &kind).await?),
        }
    }
    if found.is_empty() {
        return Err(Error::Usage("no matching resources found".to_owned()));
    }
    for (kind, namespace, name) in found {
        let namespace = namespace.as_deref();
        let mut goal = wait.goal.clone();
        if !matches!(goal, Goal::There) {
            let path = kind.path(namespace, Some(&request::escape(&name)));
            let answer = request::get(&connection.client, &path, JSON).await;
            if let Goal::Gone { uid } = &mut goal {
                match answer {
                    // What was never there needs no word.
                    Err(error) if error.is_not_found() => continue,
                    found => *uid = found?["metadata"]["uid"].as_str().map(str::to_owned),
                }
            } else {
                answer?;
            }
        }
        let rest = end.saturating_duration_since(tokio::time::Instant::now());
        until(connection, &kind, namespace, &name, &goal, rest).await?;
        writeln!(out, "{} condition met", kind.named(&name))?;
        out.flush()?;
    }
    Ok(())
}

async fn matching(
    connection: &Connection,
    wait: &Wait,
    kind: &Type,
) -> Result<Vec<(Type, Option<String>, String)>, Error> {
    let scope = &wait.scope;
    if !wait.all && scope.labels.is_empty() && scope.fields.is_empty() {
        return Err(Error::Usage(
            "resource(s) were provided, but no name was specified".to_owned(),
        ));
    }
    let query = [
        ("labelSelector", scope.labels.as_str()),
        ("fieldSelector", &scope.fields),
    ];
    let path = with_query(&kind.path(scope.namespace(), None), &query);
    let list = request::get(&connection.client, &path, JSON).await?;
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let entry = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        (kind.clone(), namespace, name(object).to_owned())
    };
    Ok(items.iter().map(entry).collect())
}

/// Watches one object until the goal is met.
pub(crate) async fn until(
    connection: &Connection,
    kind: &Type,
    namespace: Option<&str>,
    name: &str,
    goal: &Goal,
    timeout: Duration,
) -> Result<(), Error> {
    let resource = kind.to_api_resource();
    let client = connection.client.clone();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let states = watcher::watch_object(api, name).default_backoff();
    let met = async {
        let mut states = std::pin::pin!(states);
        while let Some(state) = states.next().await {
            let Ok(object) = state else {
                continue;
            };
            let object = object.and_then(|object| serde_json::to_value(object).ok());
            if goal.is_met(object.as_ref()) {
                return;
            }
        }
    };
    tokio::time::timeout(timeout, met).await.map_err(|_| {
        // There is no object that it could be about.
        let there = !matches!(goal, Goal::There);
        Error::TimedOut(there.then(|| format!("{}/{name}", kind.plural)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "objects are written in place"
    )]
    fn check(goal: &str, object: Value, expected: bool) {
        let parsed: Goal = goal.parse().unwrap();
        assert_eq!(parsed.is_met(Some(&object)), expected, "{goal}");
    }

    #[test]
    fn goals_are_read_as_kubectl_reads_them() {
        let ready = |status: &str, seen: i64| {
            json!({"metadata": {"generation": 2}, "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": status, "observedGeneration": seen}],
            }})
        };
        check("condition=ready", ready("True", 2), true);
        check("condition=Ready", ready("True", 1), false);
        check("condition=Ready=False", ready("False", 2), true);
        check("condition=Other", ready("True", 2), false);
        check("jsonpath={.status.phase}=Running", ready("True", 2), true);
        check("jsonpath=.status.phase=Pending", ready("True", 2), false);
        check("jsonpath={.status.phase}", ready("True", 2), true);
        check("jsonpath={.status.other}", ready("True", 2), false);
        check(
            "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True",
            ready("True", 2),
            true,
        );
        check("create", json!({}), true);
        check("delete", json!({}), false);
        assert!("delete".parse::<Goal>().unwrap().is_met(None));
        let uid = Some("1".to_owned());
        let gone = Goal::Gone { uid };
        assert!(!gone.is_met(Some(&json!({"metadata": {"uid": "1"}}))));
        assert!(gone.is_met(Some(&json!({"metadata": {"uid": "2"}}))));
        assert!(!"condition=Ready".parse::<Goal>().unwrap().is_met(None));
        assert!(
            "soon"
                .parse::<Goal>()
                .unwrap_err()
                .starts_with("one of: create")
        );
    }
}
