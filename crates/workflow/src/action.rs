//! Actions: which there are, what kind of effect they have, and those that need nothing but the workflow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_go::civil::Instant;
use bellwether_go::layout;
use serde_json::{Map, Value, json};

/// What repeating an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the result depends on the parameters alone.
    Pure,
    /// Nothing, but the result may be another one.
    Observe,
    /// Nothing beyond what it did the first time.
    Apply,
    /// Harm: it is carried out once.
    Once,
}

/// The name of the action that suspends a workflow.
pub const SUSPEND: &str = "builtin.suspend";
/// The name of the action that applies the object of which a step consists.
pub const OBJECT: &str = "step.object";
/// The name of the action that goes back to an earlier revision of an Application. Its result names the revision whose objects
/// were `restored`.
pub const ROLLBACK: &str = "oam.rollback-app";
/// The name of the action that logs something.
pub const LOG: &str = "util.log";
/// The layout of dates if none is given.
const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// Providers and their actions; those of `op` are the same under the names of [`of_op`].
const ACTIONS: &[(&str, &[&str])] = &[
    (
        "builtin",
        &[
            "wait", "suspend", "break", "fail", "message", "var", "export",
        ],
    ),
    (
        "kube",
        &[
            "apply",
            "apply-in-parallel",
            "patch",
            "read",
            "list",
            "delete",
        ],
    ),
    ("http", &["do"]),
    ("email", &["send"]),
    ("git", &["push"]),
    ("config", &["create", "read", "list", "delete"]),
    ("metrics", &["promCheck"]),
    ("time", &["timestamp", "date"]),
    ("util", &["string", "patch-k8s-object", "log"]),
    (
        "oam",
        &[
            "component-apply",
            "component-render",
            "load",
            "load-comps-in-order",
            "load-policies",
            "load-rendered",
            "rollback-app",
        ],
    ),
    (
        "multicluster",
        &[
            "list-clusters",
            "get-placements-from-topology-policies",
            "deploy",
        ],
    ),
    (
        "query",
        &[
            "listResourcesInApp",
            "listAppliedResources",
            "collectResources",
            "searchEvents",
            "collectLogsInPod",
            "collectServiceEndpoints",
        ],
    ),
];

/// The full name of an action, such as `kube.apply`, from the provider and action of a template.
pub fn full_name(provider: &str, action: &str) -> Result<String, String> {
    if provider == "op" || provider.is_empty() {
        let name = of_op(action);
        return name.ok_or_else(|| format!("function {action} not found in provider op"));
    }
    let provider = if provider == "ql" { "query" } else { provider };
    let Some((_, actions)) = ACTIONS.iter().find(|(known, _)| *known == provider) else {
        return Err(format!("provider {provider} not found"));
    };
    if actions.contains(&action) {
        Ok(format!("{provider}.{action}"))
    } else {
        Err(format!(
            "function {action} not found in provider {provider}"
        ))
    }
}

/// The full name of an action of the older package.
fn of_op(action: &str) -> Option<String> {
    if let Some(action) = action.strip_suffix("-config") {
        return Some(format!("config.{action}"));
    }
    let provider = ACTIONS
        .iter()
        .filter(|(provider, _)| *provider != "config")
        .find(|(_, actions)| actions.contains(&action))?
        .0;
    Some(format!("{provider}.{action}"))
}

/// What repeating an action with these parameters does.
pub fn effect(name: &str, params: &Value) -> Effect {
    match name {
        "http.do" => {
            let method = params["method"].as_str().unwrap_or("GET");
            let is_observation = method.eq_ignore_ascii_case("GET") && params["once"] != true;
            if is_observation {
                Effect::Observe
            } else {
                Effect::Once
            }
        }
        // A push that may have been made is made again: it compares what is there first.
        "email.send" | "git.push" => Effect::Once,
        "kube.apply"
        | "kube.apply-in-parallel"
        | "kube.patch"
        | "kube.delete"
        | "config.create"
        | "config.delete"
        | "oam.component-apply"
        | ROLLBACK
        | "multicluster.deploy"
        | OBJECT => Effect::Apply,
        "time.timestamp" | "time.date" | "util.string" | "util.patch-k8s-object" => Effect::Pure,
        _ => Effect::Observe,
    }
}

/// Carries out an action that needs nothing but its parameters.
pub fn pure(name: &str, params: &Value) -> Option<Result<Value, String>> {
    let result = match name {
        "time.timestamp" => timestamp(params),
        "time.date" => date(params),
        "util.string" => string(params),
        _ => return None,
    };
    Some(result)
}

fn layout_of(params: &Value) -> &str {
    match params["layout"].as_str() {
        None | Some("") => RFC3339,
        Some(layout) => layout,
    }
}

fn timestamp(params: &Value) -> Result<Value, String> {
    let date = params["date"].as_str().unwrap_or_default();
    let instant = layout::parse(layout_of(params), date).map_err(|error| error.to_string())?;
    Ok(json!({"timestamp": instant.to_unix()}))
}

fn date(params: &Value) -> Result<Value, String> {
    let seconds = params["timestamp"].as_i64().unwrap_or_default();
    let instant = Instant::from_unix(seconds, 0).ok_or("the time is out of range")?;
    Ok(json!({"date": layout::format(layout_of(params), &instant)}))
}

fn string(params: &Value) -> Result<Value, String> {
    let bytes = params["bt"].as_str().unwrap_or_default();
    let bytes = STANDARD.decode(bytes).map_err(|error| error.to_string())?;
    Ok(json!({"str": String::from_utf8_lossy(&bytes)}))
}

/// The result of an action in the older form: fields of the action itself. What the action says already
/// stays.
pub fn result_of_op(name: &str, params: &Value, result: &Value) -> Value {
    let mut fields = Map::new();
    let Value::Object(returned) = result else {
        return Value::Object(fields);
    };
    for (key, value) in returned {
        let key = match (name, key.as_str()) {
            ("kube.list", "values") => "list",
            (_, key) => key,
        };
        fields.insert(key.to_owned(), value.clone());
    }
    if matches!(name, "kube.apply" | "kube.read")
        && let Some(Value::Object(object)) = returned.get("value")
    {
        for (key, value) in object {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    if name == "http.do" {
        fields.insert("response".to_owned(), result.clone());
    }
    without_what_is_said(&Value::Object(fields), params)
}

/// What is new in a value, compared with what is there: fields that are there already keep their value.
fn without_what_is_said(new: &Value, known: &Value) -> Value {
    let (Value::Object(new_fields), Value::Object(known_fields)) = (new, known) else {
        return known.clone();
    };
    let mut left = Map::new();
    for (key, value) in new_fields {
        match known_fields.get(key) {
            None => {
                left.insert(key.clone(), value.clone());
            }
            Some(known @ Value::Object(_)) if value.is_object() => {
                left.insert(key.clone(), without_what_is_said(value, known));
            }
            Some(_) => {}
        }
    }
    Value::Object(left)
}

/// A hash of parameters, which may hold secrets.
pub fn hash(params: &Value) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in params.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_of_the_older_package_are_those_of_the_newer_ones() {
        assert_eq!(full_name("op", "read"), Ok("kube.read".to_owned()));
        assert_eq!(full_name("op", "read-config"), Ok("config.read".to_owned()));
        assert_eq!(full_name("", "do"), Ok("http.do".to_owned()));
        assert_eq!(
            full_name("moon", "apply"),
            Err("provider moon not found".to_owned())
        );
        assert_eq!(
            full_name("kube", "fly"),
            Err("function fly not found in provider kube".to_owned())
        );
    }

    #[test]
    fn requests_that_change_something_are_sent_once() {
        let of = |method: &str| effect("http.do", &json!({"method": method}));
        assert_eq!((of("GET"), of("POST")), (Effect::Observe, Effect::Once));
        assert_eq!(effect("http.do", &json!({"once": true})), Effect::Once);
    }

    #[test]
    fn results_in_the_older_form_keep_what_the_action_says() {
        let params = json!({"value": {"kind": "ConfigMap", "data": {"a": "1"}}});
        let result = json!({"value": {"kind": "ConfigMap", "data": {"a": "2", "b": "3"}, "status": {"ready": true}}});
        let fields = result_of_op("kube.apply", &params, &result);
        assert_eq!(
            fields["value"],
            json!({"data": {"b": "3"}, "status": {"ready": true}})
        );
        assert_eq!(fields["status"], json!({"ready": true}));
    }
}
