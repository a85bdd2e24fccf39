//! Revisions of applications, and trackers of what they applied.

use std::sync::Arc;

use bellwether_api::SharedObject;
use bellwether_api::meta::FALSE;
use bellwether_api::oam::names::{annotation, condition, label};
use bellwether_api::oam::{
    Application, ApplicationRevision, ApplicationRevisionSpec, ResourceTracker,
};
use bellwether_api::workflow::{WorkflowRunPhase, WorkflowStatus};
use bellwether_application::appfile::Appfile;
use bellwether_application::definition::DefinitionKind;
use bellwether_application::deliver::Delivery;
use bellwether_application::revision::{NumberedRevision, has_spec, number, surplus};
use bellwether_runtime::{
    ObjectKey, created_by, delete_if_exists, ensure, unless_gone, written_by,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};

use super::{Reconciler, to_json};

/// How many revisions are kept besides the one that is delivered.
const HISTORY_LIMIT: usize = 10;

/// The revision that an application is delivered as.
pub(super) struct ChosenRevision {
    pub(super) name: String,
    pub(super) number: i64,
    pub(super) hash: String,
    pub(super) is_new: bool,
}

/// How large what is rendered may be to be stored in a ConfigMap, in bytes.
const RESOURCES_LIMIT: usize = 900_000;

fn publish_version(application: &Application) -> Option<&str> {
    annotation_of(application, annotation::PUBLISH_VERSION)
}

fn publish_version_of(revision: &ApplicationRevision) -> Option<&str> {
    let annotations = revision.metadata.annotations.as_ref()?;
    annotations
        .get(annotation::PUBLISH_VERSION)
        .map(String::as_str)
}

/// The key of an object in the ConfigMap of a revision: its component, and for further objects their name there.
fn resource_key(component: &str, resource: &str) -> String {
    if resource.is_empty() {
        return component.to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let resource: String = resource.chars().map(plain).collect();
    format!("{component}.{resource}")
}

fn annotation_of<'a>(application: &'a Application, key: &str) -> Option<&'a str> {
    let annotations = application.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// Whether an application is rendered by definitions as they are now: it says so, or it could not be delivered by those that its
/// revision recorded.
pub(super) fn follows_definitions(application: &Application) -> bool {
    if annotation_of(application, annotation::AUTO_UPDATE) == Some("true") {
        return true;
    }
    let Some(status) = &application.status else {
        return true;
    };
    let stages = [
        condition::PARSED,
        condition::POLICY,
        condition::RENDER,
        condition::WORKFLOW,
    ];
    let has_failed = status.conditions.iter().any(|known| {
        stages.contains(&known.type_.as_str())
            && known.status == FALSE
            && known.reason == condition::RECONCILE_ERROR
    });
    status.latest_revision.is_none() || has_failed
}

impl Reconciler {
    /// The revisions of an application, oldest first.
    pub(super) fn own_revisions(&self, application: &Application) -> Vec<Arc<ApplicationRevision>> {
        let uid = application.metadata.uid.as_deref();
        let mut revisions = self.revisions.of(&ObjectKey::of(application));
        revisions.retain(|revision| {
            let owners = revision.metadata.owner_references.as_deref();
            let mut owners = owners.unwrap_or_default().iter();
            owners.any(|owner| Some(owner.uid.as_str()) == uid)
        });
        revisions.sort_by_key(|revision| number(revision));
        revisions
    }

    /// The application as it is published: while the version stays the same, changes of the spec wait.
    pub(super) fn published(&self, application: &Application) -> Application {
        let mut published = application.clone();
        let Some(version) = publish_version(application) else {
            return published;
        };
        let revisions = self.own_revisions(application);
        let found = revisions
            .iter()
            .rev()
            .find(|revision| publish_version_of(revision) == Some(version));
        let spec = found.and_then(|revision| {
            serde_json::from_value(revision.spec.application.value()["spec"].take()).ok()
        });
        if let Some(spec) = spec {
            published.spec = spec;
        }
        published
    }

    /// The revision by whose definitions an application is rendered; none if it is by those of today.
    pub(super) fn pinning_revision(
        &self,
        application: &Application,
    ) -> Option<Arc<ApplicationRevision>> {
        let revisions = self.own_revisions(application);
        let named = |name: &str| {
            let found = revisions
                .iter()
                .find(|revision| revision.metadata.name.as_deref() == Some(name))?;
            has_spec(found, application).then(|| Arc::clone(found))
        };
        let rolled_back = annotation_of(application, annotation::ROLLED_BACK_TO).and_then(named);
        if rolled_back.is_some() {
            return rolled_back;
        }
        if follows_definitions(application) {
            return None;
        }
        let status = application.status.as_ref()?;
        let latest = named(&status.latest_revision.as_ref()?.name)?;
        (publish_version_of(&latest) == publish_version(application)).then_some(latest)
    }

    /// The revision with this content, or the next one.
    pub(super) fn choose_revision(&self, application: &Application, hash: &str) -> ChosenRevision {
        let revisions = self.own_revisions(application);
        let version = publish_version(application);
        let same = revisions.iter().rev().find(|revision| {
            let labels = revision.metadata.labels.as_ref();
            labels
                .and_then(|all| all.get(label::APP_REVISION_HASH))
                .is_some_and(|known| known == hash)
                && publish_version_of(revision) == version
        });
        let status = application.status.as_ref();
        let told = status.and_then(|status| status.latest_revision.as_ref());
        let app = application.metadata.name.as_deref().unwrap_or_default();
        let latest = revisions.last().map_or(0, |latest| number(latest));
        let next = latest.max(told.map_or(0, |told| told.revision)) + 1;
        let number = same.map_or(next, |revision| number(revision));
        ChosenRevision {
            name: format!("{app}-v{number}"),
            number,
            hash: hash.to_owned(),
            is_new: same.is_none(),
        }
    }

    /// Stores a new revision, and deletes those beyond the limit.
    pub(super) async fn store_revision(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        chosen: &ChosenRevision,
        limit: Option<usize>,
    ) -> Result<(), kube::Error> {
        if !chosen.is_new {
            return Ok(());
        }
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let api: Api<ApplicationRevision> = Api::namespaced(self.hub.client.clone(), namespace);
        let revision = revision(application, appfile, chosen);
        let mut created = api.create(&created_by(), &revision).await;
        if self
            .removes_leftover(application, &api, &chosen.name, &created)
            .await?
        {
            created = api.create(&created_by(), &revision).await;
        }
        if let Err(kube::Error::Api(status)) = &created
            && status.code == 409
        {
            // It is what a process before this one stored, or one that the cache has not heard of yet.
            let known = api.get(&chosen.name).await?;
            let labels = known.metadata.labels.as_ref();
            if labels.and_then(|all| all.get(label::APP_REVISION_HASH)) != Some(&chosen.hash) {
                return created.map(drop);
            }
        } else {
            created?;
        }
        let known: Vec<NumberedRevision> = self
            .own_revisions(application)
            .iter()
            .map(|revision| NumberedRevision {
                name: revision.metadata.name.clone().unwrap_or_default(),
                number: number(revision),
            })
            .collect();
        let latest = application.status.as_ref();
        let latest = latest.and_then(|status| status.latest_revision.as_ref());
        let latest = latest.map_or("", |latest| latest.name.as_str());
        let used = [chosen.name.as_str(), latest];
        for old in surplus(&known, &used, limit.unwrap_or(HISTORY_LIMIT)) {
            let parameters = DeleteParams::default();
            delete_if_exists(&api, &old.name, &parameters).await?;
            let maps: Api<ConfigMap> = Api::namespaced(self.hub.client.clone(), namespace);
            delete_if_exists(&maps, &old.name, &parameters).await?;
        }
        Ok(())
    }

    /// Deletes a revision that stands in the way of a new one, if it is left over from an application of this name that is gone.
    /// Owner references take it away sooner or later; the new application need not wait for that.
    async fn removes_leftover(
        &self,
        application: &Application,
        api: &Api<ApplicationRevision>,
        name: &str,
        created: &Result<ApplicationRevision, kube::Error>,
    ) -> Result<bool, kube::Error> {
        let is_in_the_way = matches!(created, Err(kube::Error::Api(status)) if status.code == 409);
        if !is_in_the_way {
            return Ok(false);
        }
        let Some(known) = api.get_opt(name).await? else {
            return Ok(true);
        };
        let owners = known.metadata.owner_references.unwrap_or_default();
        let is_own = |uid: &str| application.metadata.uid.as_deref() == Some(uid);
        if owners.is_empty() || owners.iter().any(|owner| is_own(&owner.uid)) {
            return Ok(false);
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: known.metadata.uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        delete_if_exists(api, name, &parameters).await?;
        Ok(true)
    }

    /// Records where the workflow of a revision stands, and whether it was delivered whole.
    pub(super) async fn record_workflow(
        &self,
        application: &Application,
        name: &str,
        workflow: &WorkflowStatus,
        is_rolled_back: bool,
    ) -> Result<(), kube::Error> {
        let namespace = application.metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or_default();
        let known = self.revisions.cache().get(&ObjectKey::new(namespace, name));
        let status = known.and_then(|revision| revision.status.clone());
        let status = status.unwrap_or_default();
        // What its own workflow took back is nothing to go back to.
        let is_done = workflow.phase == Some(WorkflowRunPhase::Succeeded);
        let succeeded = !is_rolled_back && (status.succeeded || is_done);
        let is_known = status.workflow.as_ref() == Some(workflow) && status.succeeded == succeeded;
        if is_known {
            return Ok(());
        }
        let api: Api<ApplicationRevision> = Api::namespaced(self.hub.client.clone(), namespace);
        let patch = json!({"status": {"succeeded": succeeded, "workflow": workflow}});
        let patch = Patch::Merge(patch);
        unless_gone(api.patch_status(name, &written_by(), &patch).await).map(drop)
    }

    /// Stores what a revision is rendered to, by component, and names the ConfigMap in the revision. What is too large for a
    /// ConfigMap is left out.
    pub(super) async fn store_resources(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        delivery: &Delivery,
    ) -> Result<(), kube::Error> {
        let mut data = serde_json::Map::new();
        let mut size = 0;
        for manifest in delivery
            .components
            .iter()
            .flat_map(|component| &component.manifests)
        {
            let key = resource_key(&manifest.component, &manifest.resource);
            let text = manifest.object.to_string();
            size += key.len() + text.len();
            if size <= RESOURCES_LIMIT {
                data.insert(key, text.into());
            }
        }
        let config_map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": appfile.context.revision,
                "namespace": appfile.context.namespace,
                "ownerReferences": [owner_reference(application)],
            },
            "data": data,
        });
        ensure(&self.hub.client, &config_map).await?;
        let (namespace, name) = (&appfile.context.namespace, &appfile.context.revision);
        let api: Api<ApplicationRevision> = Api::namespaced(self.hub.client.clone(), namespace);
        let patch = Patch::Merge(json!({"spec": {"resourcesConfigMap": {"name": name}}}));
        unless_gone(api.patch(name, &written_by(), &patch).await).map(drop)
    }

    /// The trackers of an application, the newest first.
    pub(super) fn own_trackers(&self, application: &Application) -> Vec<ResourceTracker> {
        let uid = application.metadata.uid.as_deref();
        let mut trackers: Vec<ResourceTracker> = self
            .trackers
            .of(&ObjectKey::of(application))
            .iter()
            .filter(|tracker| {
                let labels = tracker.metadata.labels.as_ref();
                labels
                    .and_then(|labels| labels.get(label::APP_UID))
                    .map(String::as_str)
                    == uid
            })
            .map(|tracker| (**tracker).clone())
            .collect();
        trackers.sort_by_key(|tracker| std::cmp::Reverse(tracker.spec.application_generation));
        trackers
    }

    /// Deletes a tracker whose objects are gone, or recorded elsewhere.
    pub(super) async fn forget(&self, tracker: &ResourceTracker) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.hub.client.clone());
        let name = tracker.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        unless_gone(api.patch(name, &written_by(), &patch).await)?;
        delete_if_exists(&api, name, &DeleteParams::default()).await
    }
}

fn owner_reference(application: &Application) -> Value {
    json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "name": application.metadata.name,
        "uid": application.metadata.uid,
        "controller": true,
    })
}

/// Group and version of shared policies and workflows.
const OAM_V1ALPHA1: &str = "core.oam.dev/v1alpha1";

/// A definition without what the server filled in.
fn recordable(definition: &Value) -> SharedObject {
    let mut object = definition.clone();
    for field in [
        "managedFields",
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "generation",
    ] {
        bellwether_json::path::remove(&mut object, &["metadata", field]);
    }
    bellwether_json::path::remove(&mut object, &["status"]);
    SharedObject::new(object)
}

fn revision(
    application: &Application,
    appfile: &Appfile<'_>,
    chosen: &ChosenRevision,
) -> ApplicationRevision {
    let mut snapshot = application.clone();
    snapshot.status = None;
    snapshot.metadata.managed_fields = None;
    let of_kind = |kind: DefinitionKind| {
        let used = appfile
            .definitions
            .iter()
            .filter(|((known, _), _)| *known == kind);
        used.map(|((_, name), definition)| (name.clone(), recordable(&definition.object)))
            .collect()
    };
    let is_kind = |object: &&Value, kind: &str| {
        object["kind"] == kind && object["apiVersion"] == OAM_V1ALPHA1
    };
    let policies = appfile.referred.iter().filter(|it| is_kind(it, "Policy"));
    let policies = policies.map(|policy| {
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        (
            format!("{}/{name}", appfile.context.namespace),
            policy.clone(),
        )
    });
    let workflow = appfile.referred.iter().find(|it| is_kind(it, "Workflow"));
    let copied = appfile
        .referred
        .iter()
        .filter(|it| !is_kind(it, "Policy") && !is_kind(it, "Workflow"));
    let spec = ApplicationRevisionSpec {
        policies: policies.collect(),
        workflow: workflow.cloned(),
        referred_objects: copied.cloned().collect(),
        application: to_json(&snapshot).into(),
        component_definitions: of_kind(DefinitionKind::Component),
        trait_definitions: of_kind(DefinitionKind::Trait),
        policy_definitions: of_kind(DefinitionKind::Policy),
        workflow_step_definitions: of_kind(DefinitionKind::WorkflowStep),
        ..ApplicationRevisionSpec::default()
    };
    let mut revision = ApplicationRevision::new(chosen.name.clone(), spec);
    let mut labels = application.metadata.labels.clone().unwrap_or_default();
    labels.insert(label::APP_NAME.to_owned(), appfile.context.name.clone());
    labels.insert(label::APP_REVISION_HASH.to_owned(), chosen.hash.clone());
    revision.metadata.labels = Some(labels);
    let mut annotations = application.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(annotation::KUBECTL_LAST_APPLIED);
    revision.metadata.annotations = Some(annotations);
    revision.metadata.owner_references =
        serde_json::from_value(json!([owner_reference(application)])).ok();
    revision
}
