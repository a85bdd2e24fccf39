//! Looks at objects of a fleet, once or at every version of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_cel::Program;
use bellwether_ctl::{Connection, Type, Types};
use futures::{StreamExt as _, pin_mut};
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, DynamicObject};
use parking_lot::Mutex;
use serde_json::Value;

use crate::fleet::Fleet;
use crate::judge::{Sight, objection};
use crate::script::Promise;

/// How long to rest before something is tried again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// The longest message of a step in the commentary.
const LONGEST_MESSAGE: usize = 120;

/// Where lines of the commentary go.
pub(crate) type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Finds a type on a cluster by what people call it.
pub(crate) async fn find_type(connection: &Connection, name: &str) -> Result<Type, String> {
    let types = Types::discover(&connection.client).await;
    let types = types.map_err(|error| error.to_string())?;
    types.find(name).cloned().map_err(|error| error.to_string())
}

/// A client for objects of a type.
pub(crate) fn api(
    connection: &Connection,
    kind: &Type,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    match namespace.filter(|_| kind.namespaced) {
        Some(namespace) => Api::namespaced_with(connection.client.clone(), namespace, &resource),
        None => Api::all_with(connection.client.clone(), &resource),
    }
}

/// What went wrong with a request, in the words of the server if it answered.
pub(crate) fn problem(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

/// An object as JSON.
pub(crate) fn to_json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Shows every version of some objects to `see`, until it is dropped. Survives restarts of the fleet.
async fn follow(
    fleet: &Fleet,
    cluster: &str,
    kind: &str,
    namespace: Option<&str>,
    mut see: impl FnMut(&Value),
) {
    loop {
        if let Ok(connection) = fleet.connect(cluster).await
            && let Ok(kind) = find_type(&connection, kind).await
        {
            // The fleet may be down: then it is tried again.
            let _ = follow_once(&api(&connection, &kind, namespace), &mut see).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_once(
    api: &Api<DynamicObject>,
    see: &mut impl FnMut(&Value),
) -> Result<(), kube::Error> {
    let listed = api.list(&ListParams::default()).await?;
    listed.items.iter().for_each(|object| see(&to_json(object)));
    let version = listed.metadata.resource_version.unwrap_or_default();
    let stream = api.watch(&WatchParams::default(), &version).await?;
    pin_mut!(stream);
    while let Some(event) = stream.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => see(&to_json(&object)),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Checks a promise against every version of the objects that it is about; what breaks it is noted.
pub(crate) async fn guard(
    fleet: Arc<Fleet>,
    promise: Promise,
    program: Program,
    broken: Arc<Mutex<Vec<String>>>,
) {
    let (kind, name) = match promise.object.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (&*promise.object, None),
    };
    follow(
        &fleet,
        &promise.cluster,
        kind,
        Some(&promise.namespace),
        |object| {
            let found = object["metadata"]["name"].as_str();
            if name.is_some() && name != found {
                return;
            }
            if let Some(objection) = objection(&program, &Sight::Object(Some(object.clone()))) {
                let found = found.unwrap_or_default();
                broken.lock().push(format!(
                    "{kind}/{found}: {}: {objection}\n{object}",
                    promise.say
                ));
            }
        },
    )
    .await;
}

/// Tells what steps of workflows do.
pub(crate) async fn narrate(fleet: Arc<Fleet>, kind: &'static str, tell: Tell) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    follow(&fleet, "hub", kind, None, |object| {
        for (what, state) in states(object) {
            if known.insert(what.clone(), state.clone()).as_ref() != Some(&state) {
                tell(&format!("    {what}: {state}"));
            }
        }
    })
    .await;
}

/// What the commentary says of an object: its phase, and the phases of its steps.
fn states(object: &Value) -> Vec<(String, String)> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let status = &object["status"];
    let mut told = Vec::new();
    let phase = status["status"].as_str().or(status["phase"].as_str());
    if let Some(phase) = phase {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        told.push((format!("{kind} {name}"), phase.to_owned()));
    }
    let own = status["steps"].as_array();
    let steps = own.or(status["workflow"]["steps"].as_array());
    for step in steps.into_iter().flatten() {
        told.push(step_state(name, step));
        let sub_steps = step["subSteps"].as_array();
        told.extend(
            sub_steps
                .into_iter()
                .flatten()
                .map(|step| step_state(name, step)),
        );
    }
    told
}

fn step_state(owner: &str, step: &Value) -> (String, String) {
    let text = |field: &str| step[field].as_str().unwrap_or_default();
    let what = format!("{owner} step {} ({})", text("name"), text("type"));
    let message: String = text("message").chars().take(LONGEST_MESSAGE).collect();
    let state = match message.lines().next() {
        Some(message) if !message.is_empty() => format!("{}, {message}", text("phase")),
        _ => text("phase").to_owned(),
    };
    (what, state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_commentary_names_phases_of_applications_and_steps() {
        let application = json!({"kind": "Application", "metadata": {"name": "shop"}, "status": {
            "status": "runningWorkflow",
            "workflow": {"steps": [
                {"name": "all", "type": "step-group", "phase": "running", "subSteps": [
                    {"name": "a", "type": "deploy", "phase": "running", "message": "wait healthy\nmore"},
                ]},
            ]},
        }});
        let expected = [
            ("application shop", "runningWorkflow"),
            ("shop step all (step-group)", "running"),
            ("shop step a (deploy)", "running, wait healthy"),
        ];
        let expected = expected.map(|(what, state)| (what.to_owned(), state.to_owned()));
        assert_eq!(states(&application), expected);
    }
}
