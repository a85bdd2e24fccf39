//! Applications: revisions, delivery to the hub and to members, state, and removal.
//!
//! What an application becomes, and what happens to each object, is decided by `bellwether_application`. Objects on the
//! hub are written here; those on a member go there in a ManifestWork. Objects are watched, so that a change of somebody else is
//! repaired at once. Entry point: [`run`].
//!
//! | module | does |
//! |---|---|
//! | `definitions` | keeps the catalog of definitions |
//! | `children` | watches and reads objects on the hub |
//! | `deliver` | applies objects, and deletes those that are left over |
//! | `revision` | stores revisions and trackers |
//! | `status` | writes what can be said of an application |

mod children;
mod definitions;
mod deliver;
mod revision;
mod status;

use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::oam::names::{finalizer, label, phase};
use bellwether_api::oam::{
    Application, ApplicationRevision, ComponentDefinition, DefinitionRevision, GROUP, Policy,
    PolicyDefinition, ResourceTracker, TraitDefinition, WorkflowStepDefinition,
};
use bellwether_api::work::ManifestWork;
use bellwether_api::workflow::Workflow;
use bellwether_application::appfile;
use bellwether_application::resource_policy::ResourcePolicies;
use bellwether_application::world::{Cluster, ClusterVersion, World};
use bellwether_application::{Class, RenderError, Stage};
use bellwether_runtime::{
    Cache, Change, Next, ObjectKey, Reconcile, ReconcileError, Recorder, Retry, patch_seen,
};
use futures::FutureExt as _;
use kube::Api;
use serde::Serialize;
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};
use children::Children;
use definitions::Definitions;
use status::Report;

/// How many applications are reconciled at once.
const WORKERS: usize = 4;

/// Why an application could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// It cannot be rendered or applied; its status says why.
    #[error("{0}")]
    Reported(String),
}

impl ReconcileError for Error {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            // What is wrong is in the application, and a watch tells when that changes.
            Self::Reported(_) => Retry::Slowly,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Request(error) => error.label(),
            Self::Reported(_) => "reported",
        }
    }
}

/// The controller of applications.
pub const ENTRY: Entry = Entry {
    name: "application",
    about: "renders applications, and delivers them to the hub and its members",
    watches: &[
        Watched::kind::<Application>(),
        Watched::kind::<ApplicationRevision>(),
        Watched::kind::<ResourceTracker>(),
        Watched::kind::<Policy>(),
        Watched::kind::<Workflow>(),
        Watched::kind::<ManifestWork>(),
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ComponentDefinition>(),
        Watched::kind::<TraitDefinition>(),
        Watched::kind::<PolicyDefinition>(),
        Watched::kind::<WorkflowStepDefinition>(),
        Watched::kind::<DefinitionRevision>(),
    ],
    // Objects of applications may be of any kind: what they are made of has to be granted besides.
    rights: &[
        Rule {
            group: GROUP,
            resources: &[
                "applications",
                "applications/status",
                "applicationrevisions",
                "applicationrevisions/status",
                "resourcetrackers",
            ],
            verbs: &["create", "patch", "delete"],
        },
        Rule {
            group: "work.open-cluster-management.io",
            resources: &["manifestworks"],
            verbs: &["get", "create", "patch", "delete"],
        },
        Rule {
            group: "",
            resources: &["configmaps"],
            verbs: &[
                "get", "list", "watch", "create", "patch", "update", "delete",
            ],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps all applications delivered, until it is dropped.
pub async fn run(hub: Hub) {
    let controller = bellwether_runtime::Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let queue = controller.queue();
    let reconciler = Reconciler {
        children: Children::new(&hub.client, queue.clone()),
        applications: hub.cache(),
        revisions: hub.cache(),
        works: hub.cache(),
        trackers: hub.cache(),
        policies: hub.cache(),
        workflows: hub.cache(),
        clusters: hub.cache(),
        definitions: Definitions::start(&hub, &queue),
        events: hub.recorder(ENTRY.name),
        hub,
    };
    let (of_policies, of_workflows) = (
        reconciler.applications.clone(),
        reconciler.applications.clone(),
    );
    let controller = controller
        .on(&reconciler.applications, |change| {
            (!is_own_write(change)).then(|| change.key.clone())
        })
        .on(&reconciler.works, owners)
        .on(&reconciler.trackers, |change| {
            if change.new.is_none() {
                owners(change)
            } else {
                Vec::new()
            }
        })
        .on(&reconciler.policies, move |change| {
            in_namespace(&of_policies, &change.key.namespace)
        })
        .on(&reconciler.workflows, move |change| {
            in_namespace(&of_workflows, &change.key.namespace)
        })
        .after(&reconciler.revisions)
        .after(&reconciler.clusters)
        .workers(WORKERS);
    reconciler.definitions.ready().await;
    controller.run(Arc::new(reconciler)).await;
}

/// The applications that the labels of an object name, before and after a change.
fn owners<K: kube::Resource>(change: &Change<'_, K>) -> Vec<ObjectKey> {
    let objects = [change.old, change.new].into_iter().flatten();
    objects
        .filter_map(|object| owner_of(object.meta().labels.as_ref()))
        .collect()
}

/// The application that labels name.
fn owner_of(labels: Option<&std::collections::BTreeMap<String, String>>) -> Option<ObjectKey> {
    let labels = labels?;
    Some(ObjectKey::new(
        labels.get(label::APP_NAMESPACE)?,
        labels.get(label::APP_NAME)?,
    ))
}

fn in_namespace(applications: &Cache<Application>, namespace: &str) -> Vec<ObjectKey> {
    let applications = applications.in_namespace(namespace);
    applications
        .iter()
        .map(|application| ObjectKey::of(&**application))
        .collect()
}

/// True if only the status has changed, which is what this controller writes itself.
fn is_own_write(change: &Change<'_, Application>) -> bool {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return false;
    };
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid == new.uid
        && old.generation.is_some()
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.finalizers == new.finalizers
        && old.deletion_timestamp == new.deletion_timestamp
}

struct Reconciler {
    hub: Hub,
    applications: Cache<Application>,
    revisions: Cache<ApplicationRevision>,
    works: Cache<ManifestWork>,
    trackers: Cache<ResourceTracker>,
    policies: Cache<Policy>,
    workflows: Cache<Workflow>,
    clusters: Cache<ManagedCluster>,
    definitions: Definitions,
    children: Children,
    events: Recorder,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Error> {
        let Some(application) = self.applications.get(key) else {
            return Ok(None);
        };
        let labels = application.metadata.labels.as_ref();
        if labels.is_some_and(|labels| {
            labels
                .get(label::PAUSE)
                .is_some_and(|value| value == "true")
        }) {
            return Ok(None);
        }
        if application.metadata.deletion_timestamp.is_some() {
            return self.remove(&application).await;
        }
        if self.add_finalizer(&application).await? {
            // The write comes back as a change.
            return Ok(None);
        }
        let mut report = Report::new(&application, self.hub.clock.now());
        let published = self.published(&application);
        let result = self.bring_about(&published, &mut report).await;
        if let Err(Failure::Render(error)) = &result {
            report.failed(error);
        }
        self.write_report(&application, report).await?;
        match result {
            Ok(next) => Ok(next),
            Err(Failure::Render(error)) => Err(Error::Reported(error.message)),
            Err(Failure::Request(error)) => Err(error.into()),
        }
    }
}

/// Why an application could not be delivered.
enum Failure {
    Render(RenderError),
    Request(kube::Error),
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self::Render(error)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::Request(error)
    }
}

impl Reconciler {
    async fn add_finalizer(&self, application: &Application) -> Result<bool, kube::Error> {
        let mut finalizers = application.metadata.finalizers.clone().unwrap_or_default();
        if finalizers
            .iter()
            .any(|known| known == finalizer::RESOURCE_TRACKER)
        {
            return Ok(false);
        }
        finalizers.push(finalizer::RESOURCE_TRACKER.to_owned());
        self.patch_metadata(application, json!({"finalizers": finalizers}))
            .await?;
        Ok(true)
    }

    async fn patch_metadata(
        &self,
        application: &Application,
        metadata: Value,
    ) -> Result<(), kube::Error> {
        let patch = json!({"metadata": metadata});
        patch_seen(&self.api(application), application, patch)
            .await
            .map(drop)
    }

    fn api(&self, application: &Application) -> Api<Application> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        Api::namespaced(self.hub.client.clone(), namespace)
    }

    /// Renders, records, applies, and judges.
    async fn bring_about(
        &self,
        application: &Application,
        report: &mut Report,
    ) -> Result<Next, Failure> {
        let policies = ResourcePolicies::of(application)
            .map_err(|message| RenderError::new(Stage::Parse, Class::InvalidInput, message))?;
        let catalog = self.definitions.catalog();
        let world = self.world(application).await?;
        let probed = appfile::parse(application, &catalog, &world, 1)?;
        let revision = self.choose_revision(application, &probed.context.revision_hash);
        let appfile = appfile::parse(application, &catalog, &world, revision.number)?;
        report.parsed();
        self.store_revision(application, &appfile, &revision)
            .await?;
        report.revisioned(&appfile, &revision);
        self.deliver(application, &appfile, &policies, report).await
    }

    /// What rendering has to know of the hub.
    async fn world(&self, application: &Application) -> Result<World, kube::Error> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let mut objects = Vec::new();
        objects.extend(
            self.policies
                .in_namespace(namespace)
                .iter()
                .map(|policy| to_json(&**policy)),
        );
        objects.extend(
            self.workflows
                .in_namespace(namespace)
                .iter()
                .map(|workflow| to_json(&**workflow)),
        );
        objects.extend(self.children.referred(application).await?);
        let clusters = self.clusters.list();
        Ok(World {
            hub_version: self.children.version().await?,
            clusters: clusters.iter().map(|cluster| member(cluster)).collect(),
            objects,
        })
    }
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// A member as rendering sees it.
fn member(cluster: &ManagedCluster) -> Cluster {
    let version = to_json(cluster);
    let version = version
        .pointer("/status/version/kubernetes")
        .and_then(Value::as_str);
    Cluster {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        labels: cluster.metadata.labels.clone().unwrap_or_default(),
        version: version.and_then(version_of_text),
    }
}

/// A version from a text such as `v1.31.0`.
fn version_of_text(text: &str) -> Option<ClusterVersion> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    Some(ClusterVersion {
        major: parts.next()?.to_owned(),
        minor: parts.next()?.to_owned(),
        git_version: text.to_owned(),
        platform: ClusterVersion::default().platform,
    })
}

/// The phase of an application that is delivered.
fn settled_phase(is_healthy: bool) -> &'static str {
    if is_healthy {
        phase::RUNNING
    } else {
        phase::UNHEALTHY
    }
}
