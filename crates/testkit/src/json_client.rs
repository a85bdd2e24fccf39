//! Objects of any kind as JSON, to and from one cluster.

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::objects::{collection, condition, path};
use crate::polling::Polling;

/// The media type of JSON merge patches.
const MERGE_PATCH: &str = "application/merge-patch+json";
/// The media type of everything else.
const JSON: &str = "application/json";

/// A client of a cluster that sends and returns JSON. Objects say by `apiVersion`, `kind` and `metadata` which of them
/// is meant.
#[derive(Clone)]
pub struct JsonClient(Client);

impl std::fmt::Debug for JsonClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("JsonClient").finish_non_exhaustive()
    }
}

impl From<Client> for JsonClient {
    fn from(client: Client) -> Self {
        Self(client)
    }
}

impl JsonClient {
    /// The client underneath.
    pub fn client(&self) -> Client {
        self.0.clone()
    }

    /// Sends a request. A null body is none; the body of a `PATCH` is a merge patch.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let media_type = if method == "PATCH" { MERGE_PATCH } else { JSON };
        self.send_as(method, path, body, media_type).await
    }

    /// The same with another media type.
    pub async fn send_as(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        media_type: &str,
    ) -> Result<Value, kube::Error> {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        self.0
            .request(request(method, path, media_type, body))
            .await
    }

    /// Sends a request; the answer, or the Status of a refusal.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn answer(&self, method: &str, path: &str, body: &Value) -> Value {
        match self.send(method, path, body).await {
            Ok(answer) => answer,
            Err(kube::Error::Api(status)) => json!(status),
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    /// Creates definitions of kinds, and waits until the kinds are served.
    ///
    /// # Panics
    /// If one is refused.
    pub async fn define(&self, definitions: impl IntoIterator<Item = Value>) {
        for definition in definitions {
            self.create(&definition).await;
            let is_served = async || {
                let seen = self.get(&definition).await.unwrap_or_default();
                let served = condition(&seen["status"], "Established")["status"] == "True";
                served.then_some(()).ok_or(seen)
            };
            let what = format!("{} is served", definition["metadata"]["name"]);
            Polling::REAL.until(what, is_served).await;
        }
    }

    /// Creates an object. Its status is not written: see [`merge_status`](Self::merge_status).
    pub async fn try_create(&self, object: &Value) -> Result<Value, kube::Error> {
        self.send("POST", &collection(object), object).await
    }

    /// Creates an object.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn create(&self, object: &Value) -> Value {
        let created = self.try_create(object).await;
        created.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    /// Creates an object, and returns the whole response with its headers.
    ///
    /// # Panics
    /// If there is no response.
    pub async fn respond_to_create(&self, object: &Value) -> http::Response<Body> {
        let body = object.to_string().into_bytes();
        let request = request("POST", &collection(object), JSON, body).map(Body::from);
        let response = self.0.send(request).await;
        response.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    /// Returns an object, if it exists.
    ///
    /// # Panics
    /// If it cannot be read.
    pub async fn get(&self, object: &Value) -> Option<Value> {
        let path = path(object);
        match self.send("GET", &path, &Value::Null).await {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            Err(error) => panic!("{error}: {path}"),
        }
    }

    /// Changes an object by a merge patch.
    ///
    /// # Panics
    /// If the patch is refused.
    pub async fn merge(&self, object: &Value, patch: &Value) -> Value {
        let merged = self.send("PATCH", &path(object), patch).await;
        merged.unwrap_or_else(|error| panic!("{error}: {patch}"))
    }

    /// Changes the status of an object by a merge patch.
    ///
    /// # Panics
    /// If the patch is refused.
    pub async fn merge_status(&self, object: &Value, status: &Value) -> Value {
        let path = format!("{}/status", path(object));
        let merged = self
            .send("PATCH", &path, &json!({ "status": status }))
            .await;
        merged.unwrap_or_else(|error| panic!("{error}: {status}"))
    }

    /// Deletes an object at once, in the background: nobody runs pods whose end could be waited for.
    pub async fn try_delete(&self, object: &Value) -> Result<Value, kube::Error> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        self.send("DELETE", &path(object), &options).await
    }

    /// Deletes an object at once.
    ///
    /// # Panics
    /// If that is refused, or if the object does not exist.
    pub async fn delete(&self, object: &Value) {
        let deleted = self.try_delete(object).await;
        deleted.unwrap_or_else(|error| panic!("{error}: {object}"));
    }

    /// Returns all objects at a path.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.send("GET", path, &Value::Null).await;
        let mut list = list.unwrap_or_else(|error| panic!("{error}: {path}"));
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }
}

#[expect(clippy::unwrap_used, reason = "a test with a broken path fails")]
fn request(method: &str, path: &str, media_type: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type);
    request.body(body).unwrap()
}
