//! Requests about objects of any kind of a cluster, as JSON.

use bellwether_apply::plan::Patch as ObjectPatch;
use bellwether_apply::{ObjectId, ResourceType};
use kube::api::{
    DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::request::Request;
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;

use crate::cluster_handle::{ClientLease, ClusterHandle};
use crate::request_error::{RequestError, in_time};

/// What became of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object is marked as deleted, and waits for finalizers.
    Waits(Value),
}

/// Objects of a cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Objects {
    cluster: ClusterHandle,
    /// Who writes, as `managedFields` has it.
    manager: &'static str,
    requests: Counter,
}

impl Objects {
    /// Objects of a cluster, written in the name of a field manager.
    pub fn new(cluster: ClusterHandle, manager: &'static str) -> Self {
        Self {
            cluster,
            manager,
            requests: Counter::default(),
        }
    }

    /// Counts requests; watches are not counted.
    #[must_use]
    pub fn counted_by(mut self, requests: Counter) -> Self {
        self.requests = requests;
        self
    }

    /// Returns the cluster that they are of.
    pub fn cluster(&self) -> &ClusterHandle {
        &self.cluster
    }

    /// Keeps a client at hand for several requests.
    pub fn hold(&self) -> ClientLease {
        self.cluster.hold()
    }

    /// Reads an object; nothing if it does not exist.
    pub async fn get(
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

    /// Creates an object.
    pub async fn create(
        &self,
        resource: &ResourceType,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        self.send(collection(resource, namespace).create(&self.post(false), bytes(object)))
            .await
    }

    /// Asks, without creating it, whether somebody else may create an object.
    pub async fn try_create_as(
        &self,
        user: &str,
        resource: &ResourceType,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let request = collection(resource, namespace).create(&self.post(true), bytes(object));
        let mut request = request.map_err(unsendable)?;
        let name = http::HeaderValue::from_str(user)
            .map_err(|error| RequestError::Unreached(error.to_string()))?;
        request.headers_mut().insert("impersonate-user", name);
        self.ask(request).await
    }

    /// Replaces an object.
    pub async fn replace(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let request = collection(resource, &id.namespace);
        self.send(request.replace(&id.name, &self.post(false), bytes(object)))
            .await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        patch: &Value,
    ) -> Result<Value, RequestError> {
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let request = collection(resource, &id.namespace);
        self.send(request.patch(&id.name, &params, &Patch::Merge(patch)))
            .await
    }

    /// Asks, without doing it, what replacing an object would come to. Fields that the kind does not
    /// have are refused.
    pub async fn try_replace(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let request = collection(resource, &id.namespace);
        let request = request.replace(&id.name, &self.post(true), bytes(object));
        let mut request = request.map_err(unsendable)?;
        let uri = format!("{}&fieldValidation=Strict", request.uri());
        *request.uri_mut() = uri
            .parse()
            .map_err(|error: http::uri::InvalidUri| RequestError::Unreached(error.to_string()))?;
        self.ask(request).await
    }

    /// Changes an object by a patch that a plan made.
    pub async fn patch(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        patch: &ObjectPatch,
    ) -> Result<Value, RequestError> {
        if !patch.is_strategic {
            return self.merge(resource, id, &patch.content).await;
        }
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let request = collection(resource, &id.namespace);
        self.send(request.patch(&id.name, &params, &Patch::Strategic(&patch.content)))
            .await
    }

    /// Has the server apply a configuration.
    pub async fn apply(
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
    pub async fn delete(
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

    /// Deletes an object of any UID. Succeeds if it does not exist.
    pub async fn delete_if_exists(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
    ) -> Result<(), RequestError> {
        let request = collection(resource, &id.namespace);
        let request = request.delete(&id.name, &DeleteParams::default());
        match self.send(request).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Asks whether a user may do something.
    pub async fn review(&self, review: &Value) -> Result<bool, RequestError> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = self
            .send(Request::new(path).create(&self.post(false), bytes(review)))
            .await?;
        Ok(answer["status"]["allowed"] == true)
    }

    /// Returns what a path of the server gives, such as discovery.
    pub async fn read(&self, path: &str) -> Result<Value, RequestError> {
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
        self.requests.inc();
        let client = self.cluster.client();
        in_time(client.request(request)).await
    }

    fn post(&self, dry_run: bool) -> PostParams {
        PostParams {
            dry_run,
            field_manager: Some(self.manager.to_owned()),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given by value")]
fn unsendable(error: kube::core::request::Error) -> RequestError {
    RequestError::Unreached(error.to_string())
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Returns the path of all objects of a kind, in one namespace or in all.
pub fn collection(resource: &ResourceType, namespace: &str) -> Request {
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

/// Returns the version of an object as a number, by which states of it can be ordered.
pub fn version_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
