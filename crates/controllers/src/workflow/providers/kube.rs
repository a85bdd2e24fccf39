//! Actions on objects of the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::workflow::names::label;
use bellwether_apply::plan::{Step, plan};
use bellwether_apply::three_way::ThreeWay;
use bellwether_apply::{
    Drift, Live, Manifest, ObjectId, Ownership, ResourceType, Strategy, Target,
};
use bellwether_json::time::format_time;
use bellwether_runtime::{
    Clock, Discovery, FIELD_MANAGER, ObjectKey, RequestError, created_by, written_by,
};
use bellwether_workflow::merge;
use bellwether_workflow::session::Call;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::super::Owner;
use super::super::watches::Looked;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";
/// Conflicts with other writers are tried again this often.
const ATTEMPTS: u32 = 5;
/// On a configuration: that it was applied. What was applied is secret.
const CONFIG_LAST_APPLIED: &str = "config.oam.dev/last-applied-configuration";

/// Objects of the hub.
pub struct Objects {
    client: Client,
    dynamic: bellwether_runtime::Objects,
    discovery: Discovery,
    clock: Clock,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// An object's place: how to reach it, and what it is called.
struct Place {
    api: Api<DynamicObject>,
    resource: Arc<ResourceType>,
    id: ObjectId,
    path: String,
}

/// Why an object was not applied.
#[derive(Debug, thiserror::Error)]
enum Unapplied {
    #[error(transparent)]
    Refused(#[from] RequestError),
    #[error(transparent)]
    Undecided(#[from] bellwether_apply::plan::ApplyError),
}

impl Objects {
    /// Objects behind a client.
    pub fn new(client: &Client, clock: &Clock) -> Self {
        Self {
            client: client.clone(),
            dynamic: bellwether_runtime::Objects::new(client.into(), FIELD_MANAGER),
            discovery: Discovery::new(Arc::default()),
            clock: clock.clone(),
        }
    }

    /// What a kind is called in paths, and whether its objects are in namespaces.
    async fn kind(&self, api_version: &str, kind: &str) -> Result<Arc<ResourceType>, String> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = self.discovery.find(&self.dynamic, group, version, kind);
        let found = found.await.map_err(|error| error.to_string())?;
        found.ok_or_else(|| format!("no matches for kind {kind:?} in version {api_version:?}"))
    }

    /// Objects of a kind, in one namespace or in all.
    fn api(&self, resource: &ResourceType, namespace: &str) -> Api<DynamicObject> {
        let slash = if resource.group.is_empty() { "" } else { "/" };
        let named = ApiResource {
            api_version: format!("{}{slash}{}", resource.group, resource.version),
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            plural: resource.plural.clone(),
        };
        if resource.namespaced && !namespace.is_empty() {
            Api::namespaced_with(self.client.clone(), namespace, &named)
        } else {
            Api::all_with(self.client.clone(), &named)
        }
    }

    async fn place(&self, object: &Value, cluster: &Value) -> Result<Place, String> {
        refuse_clusters(cluster)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = self
            .kind(&text(&object["apiVersion"]), &text(&object["kind"]))
            .await?;
        let mut namespace = text(&object["metadata"]["namespace"]);
        if resource.namespaced && namespace.is_empty() {
            DEFAULT_NAMESPACE.clone_into(&mut namespace);
        }
        if !resource.namespaced {
            namespace.clear();
        }
        let name = text(&object["metadata"]["name"]);
        Ok(Place {
            api: self.api(&resource, &namespace),
            path: self.api(&resource, "").resource_url().to_owned(),
            id: ObjectId {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace,
                name,
            },
            resource,
        })
    }

    /// Creates or changes an object.
    pub async fn apply(
        &self,
        owner: &Owner,
        call: &Call,
        looked: &mut Vec<Looked>,
    ) -> Result<Value, String> {
        let given = call.params.get("resource").filter(|value| !value.is_null());
        let given = given.unwrap_or(&call.params["value"]);
        let mut object = match given {
            Value::String(text) => parse(text)?,
            other => other.clone(),
        };
        if let Some(patch) = &call.patch {
            object = merge::apply(&object, patch)?;
        }
        for (name, value) in &owner.labels {
            object["metadata"]["labels"][name] = json!(value);
        }
        let applied = self
            .apply_object(owner, object, &call.params["cluster"])
            .await?;
        looked.push(applied.1);
        Ok(json!({"value": applied.0}))
    }

    /// Applies the object of which a step consists; it goes with the workflow.
    pub async fn apply_step(
        &self,
        owner: &Owner,
        params: &Value,
        looked: &mut Vec<Looked>,
    ) -> Result<Value, String> {
        let mut object = params["value"].clone();
        for (name, value) in &owner.labels {
            object["metadata"]["labels"][name] = json!(value);
        }
        object["metadata"]["ownerReferences"] = json!([owner.reference]);
        let applied = self.apply_object(owner, object, &Value::Null).await?;
        looked.push(applied.1);
        Ok(json!({"value": applied.0}))
    }

    /// The log of a container.
    pub async fn log(&self, params: &Value) -> Value {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Err(problem) = refuse_clusters(&params["cluster"]) {
            return json!({"outputs": {"err": problem}});
        }
        let pods: Api<k8s_openapi::api::core::v1::Pod> =
            Api::namespaced(self.client.clone(), &text(&params["namespace"]));
        let options = &params["options"];
        let wanted = kube::api::LogParams {
            container: Some(text(&options["container"])).filter(|name| !name.is_empty()),
            tail_lines: options["tailLines"].as_i64(),
            previous: options["previous"] == true,
            ..kube::api::LogParams::default()
        };
        match pods.logs(&text(&params["pod"]), &wanted).await {
            Ok(logs) => json!({"outputs": {"logs": logs}}),
            Err(error) => json!({"outputs": {"err": message(&error)}}),
        }
    }

    /// Creates or changes several objects.
    pub async fn apply_all(&self, owner: &Owner, params: &Value) -> Result<Value, String> {
        let mut applied = Vec::new();
        for object in params["value"].as_array().into_iter().flatten() {
            let object = self
                .apply_object(owner, object.clone(), &params["cluster"])
                .await?;
            applied.push(object.0);
        }
        Ok(json!({"value": applied}))
    }

    /// Makes an object what it should be; what others added to it stays.
    pub(super) async fn apply_object(
        &self,
        owner: &Owner,
        object: Value,
        cluster: &Value,
    ) -> Result<(Value, Looked), String> {
        let place = self.place(&object, cluster).await?;
        let manifest = Manifest::read(0, &object).map_err(|error| error.to_string())?;
        let manifest = manifest.placed(place.resource.namespaced);
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.apply_once(owner, &manifest, &place).await {
                // Somebody else wrote it meanwhile.
                Err(Unapplied::Refused(error))
                    if (error.is_conflict() || error.is_already_there()) && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.to_string()),
                Ok(live) => {
                    let live = shown(live);
                    let looked = place.looked(&live);
                    return Ok((live, looked));
                }
            }
        }
    }

    async fn apply_once(
        &self,
        owner: &Owner,
        manifest: &Manifest,
        place: &Place,
    ) -> Result<Value, Unapplied> {
        let strategy = Strategy::ThreeWay(ThreeWay {
            annotation: Some(owner.last_applied()),
            recorded: None,
            fallback: None,
            recreate: &[],
            replace: false,
        });
        let target = Target {
            manifest,
            strategy: &strategy,
            drift: Drift::Undo,
            ownership: Ownership::None,
            baseline: None,
            applied_before: true,
        };
        let live = self.dynamic.get(&place.resource, &place.id).await?;
        let step = plan(&target, live.as_ref().map_or(Live::Absent, Live::Present))?;
        let now = json!(format_time(self.clock.now()));
        match step {
            Step::Create(mut object) => {
                object["metadata"]["annotations"][owner.last_applied_time()] = now;
                let namespace = &place.id.namespace;
                let created = self.dynamic.create(&place.resource, namespace, &object);
                Ok(created.await?)
            }
            Step::Patch(mut patch) => {
                let live = live.unwrap_or_default();
                let metadata = &mut patch.content["metadata"];
                metadata["annotations"][owner.last_applied_time()] = now;
                // It is refused if the object is another one, or was changed since it was read.
                for field in ["uid", "resourceVersion"] {
                    metadata[field] = live["metadata"][field].clone();
                }
                let patched = self.dynamic.patch(&place.resource, &place.id, &patch);
                Ok(patched.await?)
            }
            // The strategy has no other steps for an object that was read.
            _ => Ok(live.unwrap_or_default()),
        }
    }

    /// Merges into an object that is there.
    pub async fn patch(
        &self,
        owner: &Owner,
        call: &Call,
        looked: &mut Vec<Looked>,
    ) -> Result<Value, String> {
        let place = self
            .place(&call.params["value"], &call.params["cluster"])
            .await?;
        let live = place
            .api
            .get(&place.id.name)
            .await
            .map_err(|error| message(&error))?;
        let mut object = to_value(&live);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in [
                "managedFields",
                "resourceVersion",
                "uid",
                "creationTimestamp",
                "generation",
            ] {
                metadata.remove(field);
            }
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        let patch = call
            .patch
            .clone()
            .unwrap_or_else(|| call.params["patch"].to_string());
        let mut object = merge::apply(&object, &patch)?;
        for (name, value) in &owner.labels {
            object["metadata"]["labels"][name] = json!(value);
        }
        let (live, seen) = self
            .apply_object(owner, object, &call.params["cluster"])
            .await?;
        looked.push(seen);
        Ok(json!({"result": live}))
    }

    /// Reads an object for a template; if it cannot be read, the result has what was asked for beside the reason.
    pub async fn read_or_reference(&self, params: &Value, looked: &mut Vec<Looked>) -> Value {
        let mut read = self.read(params, looked).await;
        if read["err"].is_string() {
            read["value"] = reference(params);
        }
        read
    }

    /// Reads an object; why it cannot be read is part of the result.
    pub async fn read(&self, params: &Value, looked: &mut Vec<Looked>) -> Value {
        let reference = reference(params);
        let place = match self.place(&reference, &params["cluster"]).await {
            Ok(place) => place,
            Err(problem) => return json!({"err": problem}),
        };
        match place.api.get(&place.id.name).await {
            Ok(live) => {
                let live = to_value(&live);
                looked.push(place.looked(&live));
                json!({"value": live})
            }
            Err(error) => {
                looked.push(place.looked(&Value::Null));
                json!({"err": message(&error)})
            }
        }
    }

    /// Lists objects; why they cannot be listed is part of the result.
    pub async fn list(&self, params: &Value, looked: &mut Vec<Looked>) -> Value {
        match self.try_list(params, looked).await {
            Ok(values) => json!({"values": values}),
            Err(problem) => json!({"err": problem}),
        }
    }

    async fn try_list(&self, params: &Value, looked: &mut Vec<Looked>) -> Result<Value, String> {
        refuse_clusters(&params["cluster"])?;
        let resource = if params["resource"].is_object() {
            &params["resource"]
        } else {
            &params["value"]
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&resource["apiVersion"]), text(&resource["kind"]));
        let found = self.kind(&api_version, &kind).await?;
        let namespace = text(&params["filter"]["namespace"]);
        let api = self.api(&found, &namespace);
        let selector = labels_of(&params["filter"]);
        let list = api.list(&ListParams::default().labels(&selector)).await;
        let list = list.map_err(|error| message(&error))?;
        let watched = if found.namespaced { &*namespace } else { "" };
        looked.push(Looked {
            path: self.api(&found, "").resource_url().to_owned(),
            object: ObjectKey::new(watched, ""),
            version: list.metadata.resource_version.clone(),
        });
        let items: Vec<Value> = list.items.iter().map(to_value).collect();
        Ok(json!({"apiVersion": api_version, "kind": format!("{kind}List"), "items": items}))
    }

    /// Deletes an object, or those that a filter chooses; what is wrong is part of the result.
    pub async fn delete(&self, params: &Value) -> Value {
        let place = match self.place(&params["value"], &params["cluster"]).await {
            Ok(place) => place,
            Err(problem) => return json!({"err": problem}),
        };
        let filter = &params["filter"];
        let result = if filter.is_object() {
            let namespace = filter["namespace"].as_str().unwrap_or_default();
            let mut object = params["value"].clone();
            object["metadata"]["namespace"] = json!(namespace);
            let place = match self.place(&object, &params["cluster"]).await {
                Ok(place) => place,
                Err(problem) => return json!({"err": problem}),
            };
            let selector = ListParams::default().labels(&labels_of(filter));
            let deleted = place
                .api
                .delete_collection(&DeleteParams::default(), &selector)
                .await;
            deleted.map(|_| ())
        } else {
            place
                .api
                .delete(&place.id.name, &DeleteParams::default())
                .await
                .map(|_| ())
        };
        match result {
            Ok(()) => json!({}),
            Err(error) => json!({"value": params["value"], "err": message(&error)}),
        }
    }

    /// The content of a Secret.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let reference = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        });
        let place = self.place(&reference, &Value::Null).await?;
        let secret = place
            .api
            .get(&place.id.name)
            .await
            .map_err(|error| message(&error))?;
        let secret = to_value(&secret);
        Ok(decoded(&secret))
    }
}

impl Objects {
    /// Writes the Secret of a configuration.
    pub(super) async fn apply_config(&self, secret: Value) -> Result<(), String> {
        let mut secret = secret;
        let record = json!({"data": "kept in the Secret alone"}).to_string();
        secret["metadata"]["annotations"][CONFIG_LAST_APPLIED] = json!(record);
        let place = self.place(&secret, &Value::Null).await?;
        let live = place
            .api
            .get_opt(&place.id.name)
            .await
            .map_err(|error| message(&error))?;
        if live.is_some() {
            let patch = Patch::Merge(secret);
            let patched = place.api.patch(&place.id.name, &written_by(), &patch).await;
            return patched.map(|_| ()).map_err(|error| message(&error));
        }
        let secret = serde_json::from_value(secret).map_err(|error| error.to_string())?;
        let created = place.api.create(&created_by(), &secret).await;
        created.map(|_| ()).map_err(|error| message(&error))
    }

    /// The Secret of a configuration, and its content.
    pub(super) async fn config(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(Value, BTreeMap<String, Vec<u8>>), String> {
        let reference = json!({"value": {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        }});
        let read = self.read(&reference, &mut Vec::new()).await;
        if let Some(problem) = read["err"].as_str() {
            return Err(problem.to_owned());
        }
        let secret = read["value"].clone();
        let data = decoded(&secret);
        Ok((secret, data))
    }

    /// The configurations of a template.
    pub(super) async fn configs(
        &self,
        namespace: &str,
        template: &str,
    ) -> Result<Vec<(Value, BTreeMap<String, Vec<u8>>)>, String> {
        let list = json!({
            "resource": {"apiVersion": "v1", "kind": "Secret"},
            "filter": {"namespace": namespace, "matchingLabels": {
                label::CONFIG_CATALOG: label::CONFIG_CATALOG_VALUE,
                label::CONFIG_TYPE: template,
            }},
        });
        let values = self.try_list(&list, &mut Vec::new()).await?;
        let items = values["items"].as_array().cloned().unwrap_or_default();
        Ok(items
            .into_iter()
            .map(|item| (item.clone(), decoded(&item)))
            .collect())
    }
}

/// The content of a Secret.
fn decoded(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let decode = |value: &Value| {
        STANDARD
            .decode(value.as_str().unwrap_or_default())
            .unwrap_or_default()
    };
    let data = secret["data"].as_object().into_iter().flatten();
    data.map(|(key, value)| (key.clone(), decode(value)))
        .collect()
}

impl Place {
    fn looked(&self, live: &Value) -> Looked {
        Looked {
            path: self.path.clone(),
            object: ObjectKey::new(&self.id.namespace, &self.id.name),
            version: live["metadata"]["resourceVersion"]
                .as_str()
                .map(str::to_owned),
        }
    }
}

/// Actions reach objects of the hub. What happens on a member is in works, which are objects of the hub.
fn refuse_clusters(cluster: &Value) -> Result<(), String> {
    match cluster.as_str() {
        None | Some("" | "local") => Ok(()),
        Some(cluster) => Err(format!(
            "objects of cluster {cluster:?} are reached by works only: apply a ManifestWork in the namespace {cluster} of the hub (step apply-object), or read fields of an object by the step read-member-object"
        )),
    }
}

/// An object from YAML or JSON.
pub fn parse(text: &str) -> Result<Value, String> {
    let documents = bellwether_json::yaml::from_yaml(text).map_err(|error| error.to_string())?;
    documents
        .into_iter()
        .next()
        .ok_or_else(|| "resource is empty".to_owned())
}

/// The object that parameters name.
fn reference(params: &Value) -> Value {
    if params["value"].is_object() {
        return params["value"].clone();
    }
    let mut metadata = json!({"name": params["name"]});
    if params["namespace"].is_string() {
        metadata["namespace"] = params["namespace"].clone();
    }
    json!({"apiVersion": params["apiVersion"], "kind": params["kind"], "metadata": metadata})
}

/// Labels as a selector.
fn labels_of(filter: &Value) -> String {
    let labels = filter["matchingLabels"].as_object();
    let pairs = labels.into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().unwrap_or_default();
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join(",")
}

/// What the server says.
pub(super) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn to_value(object: &DynamicObject) -> Value {
    shown(serde_json::to_value(object).unwrap_or_default())
}

/// An object as templates see it.
fn shown(mut value: Value) -> Value {
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    value
}
