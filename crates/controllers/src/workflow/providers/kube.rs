//! Actions on objects of the hub.

use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::workflow::names::label;
use bellwether_json::time::format_time;
use bellwether_patch::three_way;
use bellwether_runtime::{Clock, ObjectKey, created_by, written_by};
use bellwether_workflow::merge;
use bellwether_workflow::session::Call;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

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
    clock: Clock,
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, bool)>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// An object's place: how to reach it, and what it is called.
struct Place {
    api: Api<DynamicObject>,
    name: String,
    path: String,
    key: ObjectKey,
}

impl Objects {
    /// Objects behind a client.
    pub fn new(client: &Client, clock: &Clock) -> Self {
        Self {
            client: client.clone(),
            clock: clock.clone(),
            kinds: Mutex::default(),
        }
    }

    /// What a kind is called in paths, and whether its objects are in namespaces.
    async fn kind(&self, api_version: &str, kind: &str) -> Result<(ApiResource, bool), String> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        if let Some(known) = self.kinds.lock().get(&gvk) {
            return Ok(known.clone());
        }
        let no_match = || format!("no matches for kind {kind:?} in version {api_version:?}");
        let (resource, capabilities) = pinned_kind(&self.client, &gvk)
            .await
            .map_err(|_| no_match())?;
        let found = (resource, capabilities.scope == Scope::Namespaced);
        self.kinds.lock().insert(gvk, found.clone());
        Ok(found)
    }

    async fn place(&self, object: &Value, cluster: &Value) -> Result<Place, String> {
        refuse_clusters(cluster)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (resource, is_namespaced) = self
            .kind(&text(&object["apiVersion"]), &text(&object["kind"]))
            .await?;
        let mut namespace = text(&object["metadata"]["namespace"]);
        if is_namespaced && namespace.is_empty() {
            DEFAULT_NAMESPACE.clone_into(&mut namespace);
        }
        if !is_namespaced {
            namespace.clear();
        }
        let name = text(&object["metadata"]["name"]);
        let api = if is_namespaced {
            Api::namespaced_with(self.client.clone(), &namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        Ok(Place {
            api,
            path: all.resource_url().to_owned(),
            key: ObjectKey::new(&namespace, &name),
            name,
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
        let mut attempt = 0;
        loop {
            attempt += 1;
            let result = self.apply_once(owner, &object, &place).await;
            match result {
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(message(&error)),
                Ok(live) => {
                    let live = to_value(&live);
                    let looked = place.looked(&live);
                    return Ok((live, looked));
                }
            }
        }
    }

    async fn apply_once(
        &self,
        owner: &Owner,
        object: &Value,
        place: &Place,
    ) -> Result<DynamicObject, kube::Error> {
        let mut wanted = object.clone();
        if !place.key.namespace.is_empty() {
            wanted["metadata"]["namespace"] = json!(&*place.key.namespace);
        }
        let last_applied = owner.last_applied();
        let record = wanted.to_string();
        wanted["metadata"]["annotations"][last_applied] = json!(record);
        wanted["metadata"]["annotations"][owner.last_applied_time()] =
            json!(format_time(self.clock.now()));
        let Some(live) = place.api.get_opt(&place.name).await? else {
            let wanted = serde_json::from_value(wanted).map_err(kube::Error::SerdeError)?;
            return place.api.create(&created_by(), &wanted).await;
        };
        let current = to_value(&live);
        let known = current["metadata"]["annotations"][last_applied].as_str();
        let original = known.and_then(|text| serde_json::from_str(text).ok());
        let original: Value = original.unwrap_or_else(|| json!({}));
        let changes = three_way::merge_patch(&original, object, &current);
        let changes = changes.unwrap_or_else(|_| wanted.clone());
        if is_empty(&changes)
            && original == serde_json::from_str::<Value>(&record).unwrap_or_default()
        {
            return Ok(live);
        }
        let patch = three_way::merge_patch(&original, &wanted, &current);
        let patch = patch.unwrap_or(wanted);
        place
            .api
            .patch(&place.name, &written_by(), &Patch::Merge(patch))
            .await
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
            .get(&place.name)
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

    /// Reads an object; why it cannot be read is part of the result.
    pub async fn read(&self, params: &Value, looked: &mut Vec<Looked>) -> Value {
        let reference = if params["value"].is_object() {
            params["value"].clone()
        } else {
            json!({
                "apiVersion": params["apiVersion"],
                "kind": params["kind"],
                "metadata": {"name": params["name"], "namespace": params["namespace"]},
            })
        };
        let place = match self.place(&reference, &params["cluster"]).await {
            Ok(place) => place,
            Err(problem) => return json!({"err": problem}),
        };
        match place.api.get(&place.name).await {
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
        let (found, is_namespaced) = self.kind(&api_version, &kind).await?;
        let namespace = text(&params["filter"]["namespace"]);
        let api: Api<DynamicObject> = if is_namespaced && !namespace.is_empty() {
            Api::namespaced_with(self.client.clone(), &namespace, &found)
        } else {
            Api::all_with(self.client.clone(), &found)
        };
        let selector = labels_of(&params["filter"]);
        let list = api.list(&ListParams::default().labels(&selector)).await;
        let list = list.map_err(|error| message(&error))?;
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &found);
        looked.push(Looked {
            path: all.resource_url().to_owned(),
            object: ObjectKey::new(if is_namespaced { &namespace } else { "" }, ""),
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
                .delete(&place.name, &DeleteParams::default())
                .await
                .map(|_| ())
        };
        match result {
            Ok(()) => json!({}),
            Err(error) => json!({"err": message(&error)}),
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
            .get(&place.name)
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
            .get_opt(&place.name)
            .await
            .map_err(|error| message(&error))?;
        if live.is_some() {
            let patch = Patch::Merge(secret);
            let patched = place.api.patch(&place.name, &written_by(), &patch).await;
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
            object: self.key.clone(),
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

fn is_empty(patch: &Value) -> bool {
    patch.as_object().is_some_and(Map::is_empty)
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
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    value
}
