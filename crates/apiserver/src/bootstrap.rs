//! What every cluster begins with: its namespaces, its roles, and the service of its API.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::access::{bootstrap_objects, complete};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::create::create_object;
use crate::housekeeping::rewrite;
use crate::ownership::Ownership;
use crate::params::WriteOptions;
use crate::resource::Resource;
use crate::status::ApiError;

const CONTROLLER: &str = "kube-apiserver";
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates what is missing, and completes default roles; what people have changed stays.
pub(crate) async fn prepare(cluster: &Arc<Cluster>) -> Result<(), ApiError> {
    let namespaces = NAMESPACES
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    });
    // Each step at once, so that its writes share a commit.
    try_join_all(namespaces.map(|object| create_if_absent(cluster, object))).await?;
    let roles = bootstrap_objects().into_iter();
    try_join_all(roles.map(|object| create_or_complete(cluster, object))).await?;
    create_if_absent(cluster, service).await
}

/// Creates a default role or binding, or adds what it lacks.
async fn create_or_complete(cluster: &Arc<Cluster>, object: Value) -> Result<(), ApiError> {
    let (resource, key) = place(cluster, &object)?;
    let Some(entry) = cluster.keyspace().get(&key) else {
        return create_if_absent(cluster, object).await;
    };
    if !complete(&mut entry.value.to_untyped_value(), &object) {
        return Ok(());
    }
    let cx = RequestContext::internal(cluster, &resource, &key, CONTROLLER);
    rewrite(&cx, |live| {
        complete(live, &object);
    })
    .await
}

/// The resource of an object, and its key.
fn place(cluster: &Cluster, object: &Value) -> Result<(Arc<Resource>, String), ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resources = cluster.resources();
    let resource = resources
        .find_kind(&text(&object["apiVersion"]), &text(&object["kind"]))
        .ok_or_else(ApiError::no_such_resource)?;
    let namespace = object["metadata"]["namespace"].as_str();
    let key = resource.key(namespace, &text(&object["metadata"]["name"]));
    Ok((resource.clone(), key))
}

/// Creates an object; one that is there already stays as it is.
pub(crate) async fn create_if_absent(
    cluster: &Arc<Cluster>,
    mut object: Value,
) -> Result<(), ApiError> {
    let (resource, key) = place(cluster, &object)?;
    if cluster.keyspace().get(&key).is_some() {
        return Ok(());
    }
    // What is built in has few defaults.
    let _ = resource.default(&mut object);
    let cx = RequestContext::internal(cluster, &resource, &key, CONTROLLER);
    let ownership = Ownership::Update(CONTROLLER.into());
    create_object(&cx, object, &WriteOptions::default(), &ownership)
        .await
        .map(drop)
}
