//! Requests about objects of any kind, as JSON.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::work::names::FIELD_MANAGER;
use bellwether_patch::managed::is_conflict_only_with;
use bellwether_runtime::{ClientLease, ClusterHandle};
use bellwether_work::manifest::{ObjectId, ResourceType};
use kube::api::{
    DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::request::Request;
use serde_json::Value;

use super::metrics::Metrics;

/// How long an answer may take before a request counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a request gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The server refused it, with these words.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The reason, in a word.
        reason: String,
        /// The reason, in a sentence.
        message: String,
    },
    /// The server was not reached, or its answer could not be read.
    #[error("{0}")]
    Unreached(String),
}

impl RequestError {
    /// Whether the object, or its kind, is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }

    /// Whether an object of that name is there already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Refused { code: 409, reason, .. } if reason == "AlreadyExists")
    }

    /// Whether the object was changed meanwhile, or its fields belong to others.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: 409, reason, .. } if reason != "AlreadyExists")
    }

    /// Whether fields belong to this manager alone, by what it did other than apply them.
    pub fn is_conflict_with_only(&self, manager: &str) -> bool {
        let Self::Refused { message, .. } = self else {
            return false;
        };
        self.is_conflict() && is_conflict_only_with(manager, message)
    }

    /// Whether the server does not let us.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { code: 403, .. })
    }

    /// Returns true if an object cannot be created because its namespace is missing, or going.
    pub fn is_namespace_missing(&self) -> bool {
        match self {
            Self::Refused { code, message, .. } => {
                *code == 404 && message.starts_with("namespaces \"")
                    || *code == 403 && message.contains("because it is being terminated")
            }
            Self::Unreached(_) => false,
        }
    }

    /// Whether the object as sent cannot be accepted.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Refused { code: 422, .. })
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            other => Self::Unreached(other.to_string()),
        }
    }
}

/// What became of a deletion.
#[derive(Debug)]
pub(super) enum Deleted {
    /// The object is gone.
    Gone,
    /// The object waits for something.
    Waits(Value),
}

/// Objects of a cluster.
#[derive(Clone)]
pub(super) struct Objects {
    cluster: ClusterHandle,
    metrics: Arc<Metrics>,
}

impl Objects {
    pub(super) fn new(cluster: ClusterHandle, metrics: Arc<Metrics>) -> Self {
        Self { cluster, metrics }
    }

    /// The cluster that they are of.
    pub(super) fn cluster(&self) -> &ClusterHandle {
        &self.cluster
    }

    /// Keeps a client at hand for several requests.
    pub(super) fn hold(&self) -> ClientLease {
        self.cluster.hold()
    }

    pub(super) async fn get(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
    ) -> Result<Option<Value>, RequestError> {
        let request = collection(resource, &id.namespace).get(&id.name, &GetParams::default());
        match self.send(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(
        &self,
        resource: &ResourceType,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        self.send(collection(resource, namespace).create(&post(false), bytes(object)))
            .await
    }

    /// Whether somebody else may create an object, tried without creating it.
    pub(super) async fn try_create_as(
        &self,
        user: &str,
        resource: &ResourceType,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let request = collection(resource, namespace).create(&post(true), bytes(object));
        let mut request = request.map_err(unsendable)?;
        let name = http::HeaderValue::from_str(user)
            .map_err(|error| RequestError::Unreached(error.to_string()))?;
        request.headers_mut().insert("impersonate-user", name);
        self.ask(request).await
    }

    pub(super) async fn replace(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let request = collection(resource, &id.namespace);
        self.send(request.replace(&id.name, &post(false), bytes(object)))
            .await
    }

    pub(super) async fn merge(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        patch: &Value,
    ) -> Result<Value, RequestError> {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = collection(resource, &id.namespace);
        self.send(request.patch(&id.name, &params, &Patch::Merge(patch)))
            .await
    }

    pub(super) async fn apply(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        configuration: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, RequestError> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            force,
            ..PatchParams::default()
        };
        let request = collection(resource, &id.namespace);
        self.send(request.patch(&id.name, &params, &Patch::Apply(configuration)))
            .await
    }

    /// Deletes an object if it still has this UID; its dependents follow.
    pub(super) async fn delete(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        uid: &str,
    ) -> Result<Deleted, RequestError> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        let request = collection(resource, &id.namespace).delete(&id.name, &params);
        match self.send(request).await {
            Ok(answer) if answer["metadata"]["deletionTimestamp"].is_string() => {
                Ok(Deleted::Waits(answer))
            }
            Ok(_) => Ok(Deleted::Gone),
            // Gone, or another object took its place.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(Deleted::Gone),
            Err(error) => Err(error),
        }
    }

    /// Asks whether a user may do something.
    pub(super) async fn review(&self, review: &Value) -> Result<bool, RequestError> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = self
            .send(Request::new(path).create(&post(false), bytes(review)))
            .await?;
        Ok(answer["status"]["allowed"] == true)
    }

    /// What a path of the server gives, such as discovery.
    pub(super) async fn read(&self, path: &str) -> Result<Value, RequestError> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| RequestError::Unreached(error.to_string()))?;
        self.ask(request).await
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, RequestError> {
        self.ask(request.map_err(unsendable)?).await
    }

    async fn ask(&self, request: http::Request<Vec<u8>>) -> Result<Value, RequestError> {
        self.metrics.member_requests.inc();
        let client = self.cluster.client();
        within(client.request(request)).await
    }
}

/// An answer, if it comes in time.
pub(super) async fn within<T>(
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Unreached(
            "no answer within a minute".to_owned(),
        )),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given by value")]
fn unsendable(error: kube::core::request::Error) -> RequestError {
    RequestError::Unreached(error.to_string())
}

fn post(dry_run: bool) -> PostParams {
    PostParams {
        dry_run,
        field_manager: Some(FIELD_MANAGER.to_owned()),
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The path of all objects of a kind, in one namespace or in all.
pub(super) fn collection(resource: &ResourceType, namespace: &str) -> Request {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let plural = &resource.plural;
    Request::new(if namespace.is_empty() {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{namespace}/{plural}")
    })
}

/// The version of an object as a number, by which states of it can be ordered.
pub(super) fn version_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_with_oneself_is_known() {
        let check = |message: &str, expected: bool| {
            let error = RequestError::Refused {
                code: 409,
                reason: "Conflict".to_owned(),
                message: message.to_owned(),
            };
            assert_eq!(
                error.is_conflict_with_only("work-agent"),
                expected,
                "{message}"
            );
        };
        let one = "Apply failed with 1 conflict: conflict with \"work-agent\" using v1: .data.a";
        check(one, true);
        check(
            "Apply failed with 2 conflicts: conflicts with \"work-agent\" using v1:\n- .data.a\n- .data.b",
            true,
        );
        check(
            "Apply failed with 2 conflicts: conflicts with \"work-agent\" using v1:\n- .data.a\n\
             conflicts with \"kubectl\" using v1:\n- .data.b",
            false,
        );
        check(
            "Apply failed with 1 conflict: conflict with \"work-agent-2\": .data.a",
            false,
        );
        check("the object has been modified", false);
    }
}
