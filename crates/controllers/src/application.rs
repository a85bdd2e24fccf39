//! Applications: revisions, delivery to the hub and to members, state, and removal.
//!
//! What an application becomes, and what happens to each object, is decided by `bellwether_application`. Objects on the
//! hub are written here; those on a member go there in a ManifestWork. Objects are watched, so that a change of somebody else is
//! repaired at once. Entry point: [`run`].
//!
//! | module | does |
//! |---|---|
//! | `basis` | finds what an application is rendered by |
//! | `concerned` | says which applications a change concerns |
//! | `definitions` | keeps the catalog of definitions |
//! | `index` | finds what belongs to an application |
//! | `members` | brings objects to members |
//! | `objects` | writes, keeps and removes objects on the hub |
//! | `copies` | reads what components copy |
//! | `facts` | knows the version of the hub, and its members |
//! | `outside` | fetches charts, manifests and answers of servers |
//! | `workflow`, `actions` | carries out the steps, and what they do to components |
//! | `restart` | when a workflow is carried out again |
//! | `deliver` | applies objects, and deletes those that are left over |
//! | `tracking` | records what is applied, before it is |
//! | `revision` | stores revisions and trackers |
//! | `status` | writes what can be said of an application |

mod actions;
mod basis;
mod concerned;
mod copies;
mod definitions;
mod deliver;
mod facts;
mod index;
mod members;
mod objects;
mod outside;
mod own_objects;
mod restart;
mod revision;
mod rollback;
mod status;
mod tracking;
mod workflow;

use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::delivery::{Distribution, Rollout};
use bellwether_api::oam::names::{annotation, finalizer, label, phase};
use bellwether_api::oam::{
    Application, ApplicationRevision, ComponentDefinition, DefinitionRevision, GROUP, Policy,
    PolicyDefinition, ResourceTracker, TraitDefinition, WorkflowStepDefinition,
};
use bellwether_api::work::ManifestWork;
use bellwether_api::workflow::{HISTORY_GROUP, Workflow};
use bellwether_application::resource_policy::ResourcePolicies;
use bellwether_application::{Class, RenderError, Stage};
use bellwether_runtime::{
    Cache, Next, ObjectKey, Reconcile, ReconcileError, Recorder, RequestError, Retry, patch_seen,
    unless_gone, write_status, written_by,
};
use bellwether_workflow::spec::Approval;
pub use copies::{Copies, CopyError};
use futures::FutureExt as _;
use jiff::Timestamp;
use kube::Api;
pub use outside::{Fetcher, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use crate::workflow::definitions::Definitions as StepDefinitions;
use crate::workflow::memory::Memory;
use crate::workflow::watches::Watches;
use crate::workflow::{Engine, PassError, WorkflowOptions};
use crate::workflow_run::approval_of;
use concerned::{
    Contested, delivered_by, in_namespace, is_late_or_gone, object_keys, owner_of, owners, rivals,
};
use definitions::Definitions;
use facts::HubFacts;
use index::{Index, Owned};
use objects::HubObjects;
use restart::Restart;
use status::Report;

/// How many applications are reconciled at once.
const WORKERS: usize = 4;

/// Why an application could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// The workflow cannot be carried out.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// A request about an object failed.
    #[error(transparent)]
    Object(#[from] RequestError),
    /// It cannot be rendered or applied; its status says why.
    #[error("{0}")]
    Reported(String),
}

impl ReconcileError for Error {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            Self::Pass(_) => Retry::Backoff,
            Self::Object(error) => error.retry(),
            // What is wrong is in the application, and a watch tells when that changes.
            Self::Reported(_) => Retry::Slowly,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Request(error) => error.label(),
            Self::Pass(_) => "history",
            Self::Object(error) => error.label(),
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
        Watched::kind::<Rollout>(),
        Watched::kind::<Distribution>(),
        Watched::kind::<ComponentDefinition>(),
        Watched::kind::<TraitDefinition>(),
        Watched::kind::<PolicyDefinition>(),
        Watched::kind::<WorkflowStepDefinition>(),
        Watched::kind::<DefinitionRevision>(),
    ],
    // Objects of applications may be of any kind: what they are made of has to be granted besides.
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &[
                "applications",
                "applications/status",
                "applicationrevisions/status",
            ],
            verbs: &["patch"],
        },
        Rule {
            group: GROUP,
            resources: &["applicationrevisions", "resourcetrackers"],
            verbs: &["create", "patch", "delete"],
        },
        // For the rights of the account that an application names.
        Rule {
            group: "authorization.k8s.io",
            resources: &["subjectaccessreviews"],
            verbs: &["create"],
        },
        // For the values of charts.
        Rule {
            group: "",
            resources: &["secrets"],
            verbs: &["get"],
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
        Rule {
            group: GROUP,
            resources: &["resourcetrackers"],
            verbs: &["get", "update"],
        },
        Rule {
            group: HISTORY_GROUP,
            resources: &["workflowhistories"],
            verbs: &["get", "create", "update"],
        },
    ],
    run: |hub, options| run(hub, options.workflows.clone()).boxed(),
};

/// Keeps all applications delivered, until it is dropped.
pub async fn run(hub: Hub, options: WorkflowOptions) {
    let controller = bellwether_runtime::Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let queue = controller.queue();
    let memory = Arc::new(Memory::default());
    let contested: Arc<Contested> = Arc::default();
    let waiting = queue.clone();
    let approval = match options.approval.clone() {
        Some(wanted) => Some(approval_of(&hub, || wanted.of_applications(&hub.client)).await),
        None => None,
    };
    let reconciler = Reconciler {
        approval,
        engine: Engine::new(&hub.client, &hub.clock, &options),
        definitions_of_steps: StepDefinitions::start(&hub.client),
        watches: Watches::new(&hub.client, move |key: &ObjectKey, _: &str| {
            waiting.add(key.clone());
        }),
        memory: Arc::clone(&memory),
        stores_rendered: options.stores_rendered,
        copies: Copies::new(&hub.client),
        facts: HubFacts::new(&hub.client, hub.cache()),
        outside: Fetcher::new(&hub.client, &options),
        objects: HubObjects::new(&hub, queue.clone()),
        applications: hub.cache(),
        revisions: Owned::new(hub.cache(), |revision: &ApplicationRevision| {
            let labels = revision.metadata.labels.as_ref()?;
            let namespace = revision.metadata.namespace.as_deref()?;
            Some(ObjectKey::new(namespace, labels.get(label::APP_NAME)?))
        }),
        works: Owned::new(hub.cache(), delivered_by),
        works_by_object: Index::new(hub.cache(), object_keys),
        contested: Arc::clone(&contested),
        trackers: Owned::new(hub.cache(), |tracker: &ResourceTracker| {
            owner_of(tracker.metadata.labels.as_ref())
        }),
        rollouts: Owned::new(hub.cache(), |rollout: &Rollout| {
            owner_of(rollout.metadata.labels.as_ref())
        }),
        distributions: Owned::new(hub.cache(), |distribution: &Distribution| {
            owner_of(distribution.metadata.labels.as_ref())
        }),
        policies: hub.cache(),
        workflows: hub.cache(),
        clusters: hub.cache(),
        definitions: Definitions::start(&hub, &queue),
        events: hub.recorder(ENTRY.name),
        hub,
    };
    let (of_policies, of_workflows, of_trackers) = (
        reconciler.applications.clone(),
        reconciler.applications.clone(),
        reconciler.applications.clone(),
    );
    let controller = controller
        .on(&reconciler.applications, move |change| {
            let Some(new) = change.new else {
                memory.forget(change.key);
                return None;
            };
            let version = new.metadata.resource_version.as_deref();
            let is_own = memory.is_own_write(change.key, version.unwrap_or_default());
            (!is_own).then(|| change.key.clone())
        })
        .on(reconciler.works.cache(), move |change| {
            let mut keys = owners(change);
            keys.extend(rivals(&contested, change));
            keys
        })
        .on(reconciler.rollouts.cache(), owners)
        .on(reconciler.distributions.cache(), owners)
        .on(reconciler.trackers.cache(), move |change| {
            let is_news = is_late_or_gone(&of_trackers, change);
            if is_news { owners(change) } else { Vec::new() }
        })
        .on(&reconciler.policies, move |change| {
            in_namespace(&of_policies, &change.key.namespace)
        })
        .on(&reconciler.workflows, move |change| {
            in_namespace(&of_workflows, &change.key.namespace)
        })
        .after(reconciler.revisions.cache())
        .after(&reconciler.clusters)
        .workers(WORKERS);
    reconciler.definitions.ready().await;
    controller.run(Arc::new(reconciler)).await;
}

/// Whether this version of the controller handles an application.
fn is_ours(application: &Application) -> bool {
    let annotations = application.metadata.annotations.as_ref();
    let required = annotations.and_then(|all| all.get(annotation::CONTROLLER_VERSION));
    required.is_none_or(|version| version.is_empty() || version == env!("CARGO_PKG_VERSION"))
}

struct Reconciler {
    hub: Hub,
    engine: Engine,
    approval: Option<Approval>,
    definitions_of_steps: StepDefinitions,
    watches: Watches<ObjectKey>,
    memory: Arc<Memory>,
    /// Whether what revisions are rendered to is stored, also where no step reads it.
    stores_rendered: bool,
    applications: Cache<Application>,
    revisions: Owned<ApplicationRevision>,
    works: Owned<ManifestWork>,
    /// Works of applications by the objects that they bring to their member.
    works_by_object: Index<ManifestWork, u64>,
    contested: Arc<Contested>,
    trackers: Owned<ResourceTracker>,
    rollouts: Owned<Rollout>,
    distributions: Owned<Distribution>,
    policies: Cache<Policy>,
    workflows: Cache<Workflow>,
    clusters: Cache<ManagedCluster>,
    definitions: Definitions,
    copies: Copies,
    facts: HubFacts,
    outside: Fetcher,
    objects: HubObjects,
    events: Recorder,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Error> {
        let Some(application) = self.latest(key).await? else {
            self.watches.forget(key);
            self.outside.forget(key);
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
        if !is_ours(&application) {
            return Ok(None);
        }
        if application.metadata.deletion_timestamp.is_some() {
            return self.remove(&application).await;
        }
        if self.add_finalizer(&application).await? {
            // The write comes back as a change.
            return Ok(None);
        }
        let now = self.hub.clock.now();
        let restart = restart::decide(&application, now);
        if let Some(at) = restart.at.filter(|_| restart.is_taken_in) {
            self.schedule_restart(&application, at).await?;
            return Ok(Some(now));
        }
        let mut report = Report::new(&application, now, self.memory.is_first(key));
        report.restart(&restart);
        let published = self.published(&application);
        let result = self.bring_about(&published, &restart, &mut report).await;
        if let Err(Failure::Render(error)) = &result {
            report.failed(error);
        }
        let next_restart = report.next_restart(&application, &restart);
        self.write_report(&application, report).await?;
        match result {
            Ok(next) => {
                let again = next_restart.filter(|at| *at > now);
                Ok(next.into_iter().chain(again).min())
            }
            Err(Failure::Pass(error)) => Err(error.into()),
            Err(Failure::Render(error)) => Err(Error::Reported(error.message)),
            Err(Failure::Request(error)) => Err(error.into()),
            Err(Failure::Object(error)) => Err(error.into()),
        }
    }
}

/// Why an application could not be delivered.
enum Failure {
    Render(RenderError),
    Request(kube::Error),
    Pass(PassError),
    Object(RequestError),
}

impl From<PassError> for Failure {
    fn from(error: PassError) -> Self {
        Self::Pass(error)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::Object(error)
    }
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
    /// An application as it is: the cache may not have heard of what this process wrote last.
    async fn latest(&self, key: &ObjectKey) -> Result<Option<Arc<Application>>, kube::Error> {
        let cached = self.applications.get(key);
        let version = cached
            .as_ref()
            .and_then(|cached| cached.metadata.resource_version.clone());
        if self.memory.is_behind(key, &version.unwrap_or_default()) {
            let api: Api<Application> = Api::namespaced(self.hub.client.clone(), &key.namespace);
            return Ok(api.get_opt(&key.name).await?.map(Arc::new));
        }
        Ok(cached)
    }

    /// Takes in an annotation that asks for a restart: its time goes into the status first, then it goes. A process that dies in between
    /// finds one of them, and what is scheduled is carried out once.
    async fn schedule_restart(
        &self,
        application: &Application,
        at: Timestamp,
    ) -> Result<(), kube::Error> {
        let api = self.api(application);
        if write_status(&api, application, &restart::scheduled_at(at))
            .await?
            .is_none()
        {
            return Ok(());
        }
        let name = application.metadata.name.as_deref().unwrap_or_default();
        let patch = json!({"metadata": {"annotations": {annotation::RESTART_WORKFLOW: null}}});
        let patch = kube::api::Patch::Merge(patch);
        let written = unless_gone(api.patch(name, &written_by(), &patch).await)?;
        // The cache may still have the annotation when somebody looks at the application next.
        let version = written.and_then(|written| written.metadata.resource_version);
        let key = ObjectKey::of(application);
        self.memory.wrote(&key, &version.unwrap_or_default());
        Ok(())
    }

    async fn add_finalizer(&self, application: &Application) -> Result<bool, kube::Error> {
        let mut finalizers = application.metadata.finalizers.clone().unwrap_or_default();
        if finalizers
            .iter()
            .any(|known| known == finalizer::RESOURCE_TRACKER)
        {
            return Ok(false);
        }
        finalizers.push(finalizer::RESOURCE_TRACKER.to_owned());
        let annotations = application.metadata.annotations.as_ref();
        let version = annotations.and_then(|all| all.get(annotation::VELA_VERSION));
        let version = version.map_or(env!("CARGO_PKG_VERSION"), String::as_str);
        let metadata = json!({
            "finalizers": finalizers,
            "annotations": {annotation::VELA_VERSION: version},
        });
        self.patch_metadata(application, metadata).await?;
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
        restart: &Restart,
        report: &mut Report,
    ) -> Result<Next, Failure> {
        let recorded = self.recorded_basis(application).await?;
        let parsed = match &recorded {
            Some(basis) => self.parse_recorded(application, basis).await?,
            None => None,
        };
        let today;
        let appfile = if let Some(appfile) = parsed {
            appfile
        } else {
            today = self.basis(application).await?;
            self.parse(application, &today).await?
        };
        let policies = ResourcePolicies::of_appfile(&appfile)
            .map_err(|message| RenderError::new(Stage::Parse, Class::InvalidInput, message))?;
        let revision = self.choose_revision(application, &appfile.context.revision_hash);
        let appfile = appfile.as_revision(revision.number);
        report.parsed(&appfile);
        let limit = policies.garbage_collect.application_revision_limit;
        self.store_revision(application, &appfile, &revision, limit)
            .await?;
        let carried_out = workflow::revision_text(&appfile);
        let replaced = report.replaced_workflow(&carried_out);
        if let Some((name, workflow)) = &replaced {
            self.record_workflow(application, name, workflow, false)
                .await?;
        }
        report.revisioned(&carried_out, &revision, &appfile);
        let next = self
            .deliver(application, &appfile, &policies, restart, report)
            .await?;
        if let Some(workflow) = report.ended_workflow(replaced.is_some()) {
            let is_rolled_back = report.is_rolled_back();
            self.record_workflow(application, &revision.name, workflow, is_rolled_back)
                .await?;
        }
        Ok(next)
    }
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// The phase of an application that is delivered.
fn settled_phase(is_healthy: bool) -> &'static str {
    if is_healthy {
        phase::RUNNING
    } else {
        phase::UNHEALTHY
    }
}
