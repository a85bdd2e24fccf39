//! A rehearsal: controllers run, and nothing that they write is kept.
//!
//! Every write is sent with `dryRun=All`, so that the server checks and answers it, and is noted with what it would change. A controller
//! sees the answer and goes on; what others would do after it is not seen, because the object does not change. Kinds that the server does
//! not have look as if they had no objects, so that a hub can be looked at before the definitions of all kinds are created.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::BoxError;

/// How many differences of an object are kept.
const MOST_DIFFERENCES: usize = 10;

/// Parts of the metadata that every write changes.
const VOLATILE: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// What a write would do to an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It would be there.
    Create,
    /// These fields would be different.
    Change(Vec<String>),
    /// It would be gone.
    Delete,
    /// The server refuses the write.
    Refused(String),
}

/// Notes what would be written. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Rehearsal {
    effects: Arc<Mutex<BTreeMap<String, Effect>>>,
}

impl Rehearsal {
    /// Returns what would be written so far, by the path of the object, or of the collection and the name.
    pub fn effects(&self) -> BTreeMap<String, Effect> {
        self.effects.lock().clone()
    }

    /// Returns a client whose writes are not kept. Events and leases are not even sent.
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let rehearsal = self.clone();
        let guarded = tower::service_fn(move |request: Request<Body>| {
            let (client, rehearsal) = (client.clone(), rehearsal.clone());
            async move { rehearsal.send(&client, request).await }
        });
        Client::new(guarded, namespace)
    }

    async fn send(
        &self,
        client: &Client,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path().to_owned();
        if [Method::GET, Method::HEAD].contains(request.method()) {
            return answer_reading(client, request).await;
        }
        if is_question(&path) {
            return Ok(client.send(request).await?);
        }
        let method = request.method().clone();
        let before = match method {
            Method::POST => None,
            _ => read(client, &path).await,
        };
        *request.uri_mut() = dry(request.uri())?;
        let (parts, body) = request.into_parts();
        let sent = body.collect_bytes().await?;
        let request = Request::from_parts(parts, Body::from(sent.clone()));
        let (mut parts, body) = client.send(request).await?.into_parts();
        let mut bytes = body.collect_bytes().await?;
        if [Method::POST, Method::PUT].contains(&method) && is_unserved(parts.status, &bytes) {
            parts = created();
            bytes = sent;
        }
        let after: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !is_passing(&path) {
            self.note(&method, &path, parts.status, before.as_ref(), &after);
        }
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    fn note(
        &self,
        method: &Method,
        path: &str,
        status: StatusCode,
        before: Option<&Value>,
        after: &Value,
    ) {
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        let (place, effect) = match *method {
            _ if status == StatusCode::CONFLICT || status == StatusCode::NOT_FOUND => return,
            _ if !status.is_success() => {
                let message = after["message"].as_str().unwrap_or("no reason").to_owned();
                (path.to_owned(), Effect::Refused(message))
            }
            Method::POST => (format!("{path}/{name}"), Effect::Create),
            Method::DELETE => (path.to_owned(), Effect::Delete),
            _ => match before {
                None => (path.to_owned(), Effect::Create),
                Some(before) => {
                    let changed = differences(before, after);
                    if changed.is_empty() {
                        return;
                    }
                    (path.to_owned(), Effect::Change(changed))
                }
            },
        };
        self.effects.lock().insert(place, effect);
    }
}

/// Answers a request that only reads. A kind that the server does not have has no objects, and none come.
async fn answer_reading(
    client: &Client,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    // Only a list, or a watch, has a limit or a time.
    let (is_watch, is_list) = (query.contains("watch=true"), query.contains("limit="));
    // Not a description of a group or a version.
    let is_object = request.uri().path().split('/').count() > 5;
    let response = client.send(request).await?;
    if response.status() != StatusCode::NOT_FOUND || !(is_watch || is_list || is_object) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let bytes = body.collect_bytes().await?;
    if !is_unserved(parts.status, &bytes) {
        return Ok(Response::from_parts(parts, Body::from(bytes)));
    }
    if is_watch {
        // Nothing will happen. The one who asks gives up after a while, and begins again.
        std::future::pending::<()>().await;
    }
    if !is_list {
        let absent = r#"{"kind":"Status","status":"Failure","reason":"NotFound","message":"not found","code":404}"#;
        let absent = Body::from(absent.as_bytes().to_vec());
        return Ok(Response::from_parts(parts, absent));
    }
    let none = r#"{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;
    Ok(Response::new(Body::from(none.as_bytes().to_vec())))
}

/// True if an answer says that there is no such kind, and not that there is no object of that name.
fn is_unserved(status: StatusCode, body: &[u8]) -> bool {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    status == StatusCode::NOT_FOUND && answer["details"]["name"].is_null()
}

/// The head of an answer to a write that is taken.
fn created() -> http::response::Parts {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::CREATED;
    response.into_parts().0
}

/// Requests that are posted, and change nothing.
fn is_question(path: &str) -> bool {
    path.ends_with("reviews")
}

/// Objects that come and go while nothing happens.
fn is_passing(path: &str) -> bool {
    path.split('/')
        .any(|part| ["events", "leases"].contains(&part))
}

fn dry(uri: &Uri) -> Result<Uri, BoxError> {
    let mut parts = uri.clone().into_parts();
    let query = match uri.query() {
        Some(query) if !query.is_empty() => format!("{query}&dryRun=All"),
        _ => "dryRun=All".to_owned(),
    };
    parts.path_and_query = Some(format!("{}?{query}", uri.path()).parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// Reads an object, also by the path of a part of it such as its status.
async fn read(client: &Client, path: &str) -> Option<Value> {
    let request = Request::get(path).body(Vec::new()).ok()?;
    client.request(request).await.ok()
}

/// The fields in which two states of an object differ, without what every write changes.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(before, after, "", &mut found);
    found.truncate(MOST_DIFFERENCES);
    found
}

fn compare(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    if before == after || found.len() > MOST_DIFFERENCES {
        return;
    }
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        found.push(at.to_owned());
        return;
    };
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let is_volatile = at == ".metadata" && VOLATILE.contains(&key.as_str());
        if !is_volatile {
            let (one, other) = (old.get(key), new.get(key));
            let path = format!("{at}.{key}");
            compare(
                one.unwrap_or(&Value::Null),
                other.unwrap_or(&Value::Null),
                &path,
                found,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_every_write_changes_is_no_difference() {
        let before = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"x": 1}});
        let mut after =
            json!({"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"x": 1}});
        assert!(differences(&before, &after).is_empty());
        after["spec"]["x"] = 2.into();
        after["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(
            differences(&before, &after),
            [".metadata.labels", ".spec.x"]
        );
    }

    #[test]
    fn every_write_is_a_dry_one() {
        let check = |uri: &str, expected: &str| {
            let dry = dry(&uri.parse().unwrap()).unwrap();
            assert_eq!(dry.to_string(), expected);
        };
        check("/api/v1/pods", "/api/v1/pods?dryRun=All");
        check(
            "/api/v1/pods/a?fieldManager=b",
            "/api/v1/pods/a?fieldManager=b&dryRun=All",
        );
    }
}
