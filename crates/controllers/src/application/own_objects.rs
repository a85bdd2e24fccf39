//! Objects that steps of an application bring along: they belong to it like those of its components.

use bellwether_api::oam::TraitStage;
use bellwether_api::oam::names::label;
use bellwether_application::dispatch::describe;
use bellwether_application::label::{Manifest, stamp};
use bellwether_application::member;
use bellwether_application::tracker::{self, CREATOR_WORKFLOW};
use bellwether_runtime::ObjectKey;
use bellwether_workflow::{Done, Request, merge};
use serde_json::{Value, json};

use super::Failure;
use super::actions::{ComponentActions, done, message};
use super::deliver::{Pass, is_local};

/// The creator of objects that belong to an application, but are not among those that its status shows.
pub(super) const NOT_SHOWN: &str = "";
/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

impl ComponentActions<'_> {
    /// Applies an object that a step brings along. It belongs to the application like those of its components.
    pub(super) async fn apply_object(&self, request: &Request) -> Result<Done, String> {
        let params = &request.call.params;
        let given = params.get("resource").filter(|value| !value.is_null());
        let mut object = match given.unwrap_or(&params["value"]) {
            Value::String(text) => crate::workflow::providers::kube::parse(text)?,
            other => other.clone(),
        };
        if let Some(patch) = &request.call.patch {
            object = merge::apply(&object, patch)?;
        }
        let applied = self
            .apply_own(vec![object], &params["cluster"], CREATOR_WORKFLOW)
            .await?;
        let first = applied.into_iter().next().unwrap_or_default();
        Ok(done(json!({"value": first})))
    }

    pub(super) async fn apply_objects(&self, request: &Request) -> Result<Done, String> {
        let params = &request.call.params;
        let objects = params["value"].as_array().cloned().unwrap_or_default();
        let applied = self
            .apply_own(objects, &params["cluster"], CREATOR_WORKFLOW)
            .await?;
        Ok(done(json!({"value": applied})))
    }

    /// Reads an object that the application applied to a member, as far as the member reports it. Why it cannot be read is part of
    /// the result.
    pub(super) fn read_member(&self, params: &Value) -> Value {
        let cluster = params["cluster"].as_str().unwrap_or_default();
        let context = &self.appfile.context;
        let name = member::work_name(&context.namespace, &context.name);
        let key = ObjectKey::new(cluster, &name);
        let work = self.applications.works.cache().get(&key);
        let wanted = wanted(params, &context.namespace);
        let manifests = work
            .as_ref()
            .and_then(|work| work.spec.workload.as_ref())
            .map(|workload| workload.manifests.as_slice());
        let mut manifests = manifests.unwrap_or_default().iter();
        let Some(manifest) = manifests.find(|manifest| reference(manifest) == wanted) else {
            let what = describe(&json!({"apiVersion": wanted[0], "kind": wanted[1],
                "metadata": {"namespace": wanted[2], "name": wanted[3]}}));
            return json!({"err": format!(
                "{what} of cluster {cluster} cannot be read: members report what the application applied there, and this is not part of it; read its fields by the step read-member-object"
            )});
        };
        let live = work.as_ref().and_then(|work| member::live(work, manifest));
        match live {
            Some(live) => json!({"value": live}),
            None => {
                json!({"err": format!("{} is not reported by cluster {cluster} yet", describe(manifest))})
            }
        }
    }

    /// Creates or changes a configuration. Its objects go with the application, but are not among those that it shows.
    pub(super) async fn create_config(&self, params: &Value) -> Result<Done, String> {
        let engine = &self.applications.engine;
        let owner = super::workflow::owner(self.application);
        let made = engine.configuration(&owner, params).await?;
        let mut objects = made.further;
        objects.push(made.secret);
        self.apply_own(objects, &Value::Null, NOT_SHOWN).await?;
        Ok(done(json!({})))
    }

    async fn apply_own(
        &self,
        objects: Vec<Value>,
        cluster: &Value,
        creator: &str,
    ) -> Result<Vec<Value>, String> {
        let cluster = cluster.as_str().unwrap_or_default();
        let context = &self.appfile.context;
        let manifests: Vec<Manifest> = objects
            .into_iter()
            .map(|mut object| {
                let labels = &mut object["metadata"]["labels"];
                labels[label::APP_NAME] = json!(context.name);
                labels[label::APP_NAMESPACE] = json!(context.namespace);
                if object["metadata"]["namespace"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
                {
                    object["metadata"]["namespace"] = json!(DEFAULT_NAMESPACE);
                }
                stamp(&mut object);
                Manifest {
                    object,
                    component: String::new(),
                    trait_type: String::new(),
                    resource: String::new(),
                    stage: TraitStage::DefaultDispatch,
                    cluster: cluster.to_owned(),
                }
            })
            .collect();
        let mut pass = self.pass();
        let all: Vec<&Manifest> = manifests.iter().collect();
        pass.apply_all(&all, creator).await.map_err(message)?;
        let live = manifests.into_iter().map(|manifest| {
            let found = pass.live.remove(&tracker::identity_of(&manifest));
            found.unwrap_or(manifest.object)
        });
        Ok(live.collect())
    }
}

/// What identifies an object: apiVersion, kind, namespace and name.
fn reference(object: &Value) -> [String; 4] {
    let text = |path: &str| {
        let value = object.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    [
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    ]
}

/// What identifies the object that an action reads, in either form of its parameters.
fn wanted(params: &Value, namespace: &str) -> [String; 4] {
    let mut object = if params["value"].is_object() {
        params["value"].clone()
    } else {
        json!({"apiVersion": params["apiVersion"], "kind": params["kind"],
            "metadata": {"name": params["name"], "namespace": params["namespace"]}})
    };
    if object["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        object["metadata"]["namespace"] = json!(namespace);
    }
    reference(&object)
}

impl Pass<'_> {
    /// Applies objects that belong to no component.
    pub(super) async fn apply_all(
        &mut self,
        manifests: &[&Manifest],
        creator: &str,
    ) -> Result<(), Failure> {
        self.check_kinds(manifests).await?;
        self.tracking.record(manifests, creator).await?;
        self.apply_members(manifests).await?;
        let on_hub = manifests.iter().copied();
        let on_hub: Vec<&Manifest> = on_hub.filter(|it| is_local(&it.cluster)).collect();
        self.apply(&on_hub).await
    }
}
