//! Applications that come from templates: HelmTemplates and KustomizePatches, which steps before rendering consist of.
//!
//! An object is reconciled once for each execution of its step: its source is fetched, an Application is rendered, and
//! compared with the one that the object belongs to. Components and policies that differ are written to it; that restarts
//! its workflow, and the next execution finds no difference. What is decided is in
//! `bellwether_application::pre_render`. Entry point: [`run`].
//!
//! | module | does |
//! |---|---|
//! | `source` | what an address means |
//! | `fetch`, `oci`, `unpack` | fetches a source, and checks its digest |
//! | `cache` | keeps what was fetched on disk |
//! | `render` | makes objects from files and parameters |

pub(crate) mod cache;
pub(crate) mod fetch;
mod oci;
mod render;
pub(crate) mod source;
mod unpack;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use bellwether_api::meta::{Condition, FALSE, TRUE, Time, condition, set_condition};
use bellwether_api::oam::{Application, GROUP as OAM_GROUP};
use bellwether_api::workflow::names::annotation::{PUBLISH_VERSION, WORKFLOW_CONTEXT};
use bellwether_api::workflow::names::condition::{FAILED, RUNNING, SUCCEEDED, WORKFLOW_PROGRESS};
use bellwether_api::workflow::names::label;
use bellwether_api::workflow::{
    ApplicationTemplateStatus, HISTORY_GROUP, HelmTemplate, KustomizePatch, TemplateSource,
};
use bellwether_application::pre_render::{self, Attempt, Verdict};
use bellwether_git::Credentials;
use bellwether_runtime::{
    Cache, Controller, Next, ObjectKey, Reconcile, ReconcileError, Retry, patch_seen, write_status,
};
use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::egress::Egress;
use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};
use crate::workflow::WorkflowOptions;
use crate::workflow::providers::git::from_secret;
use fetch::{Fetched, Files, Part, Problem, Sources};
use source::Source;

/// How many templates are rendered at once.
const WORKERS: usize = 4;
/// The Application was as rendered.
const NO_DIFFERENCE: &str = "no diff";
/// The Application was written.
const WRITTEN_BACK: &str = "written back";

/// What a controller of templates does besides reading its kind, of which it writes the status.
const fn rights(status: &'static [&'static str]) -> [Rule; 3] {
    [
        Rule {
            group: HISTORY_GROUP,
            resources: status,
            verbs: &["patch"],
        },
        Rule {
            group: OAM_GROUP,
            resources: &["applications"],
            verbs: &["get", "patch"],
        },
        Rule {
            group: "",
            resources: &["secrets"],
            verbs: &["get"],
        },
    ]
}

/// The controller of HelmTemplates.
pub const HELM_ENTRY: Entry = Entry {
    name: "helm-template",
    about: "writes Applications that Helm charts render to",
    watches: &[Watched::kind::<HelmTemplate>()],
    rights: &rights(&["helmtemplates/status"]),
    run: |hub, options| run::<HelmTemplate>(hub, options.workflows.clone()).boxed(),
};

/// The controller of KustomizePatches.
pub const KUSTOMIZE_ENTRY: Entry = Entry {
    name: "kustomize-patch",
    about: "writes Applications that are built from a folder and patched",
    watches: &[Watched::kind::<KustomizePatch>()],
    rights: &rights(&["kustomizepatches/status"]),
    run: |hub, options| run::<KustomizePatch>(hub, options.workflows.clone()).boxed(),
};

/// A kind that an Application comes from.
pub trait ApplicationTemplate:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + Debug
    + Send
    + Sync
    + 'static
{
    /// The name of its controller.
    const CONTROLLER: &'static str;

    /// Where its files come from.
    fn from(&self) -> &TemplateSource;

    /// The chart, if it comes from a Helm repository.
    fn chart(&self) -> &str;

    /// What is rendered with the files.
    fn parameters(&self) -> Option<&Map<String, Value>>;

    /// The execution of the step that it is for.
    fn session(&self) -> &str;

    /// What is known of it.
    fn status(&self) -> Option<&ApplicationTemplateStatus>;

    /// Whether its folder stands for itself, or refers to others.
    fn is_folder_enough() -> bool;

    /// Renders objects from files.
    fn render(
        &self,
        files: &BTreeMap<String, bytes::Bytes>,
        application: &str,
        now: Timestamp,
    ) -> Result<Vec<Value>, String>;
}

impl ApplicationTemplate for HelmTemplate {
    const CONTROLLER: &'static str = HELM_ENTRY.name;

    fn from(&self) -> &TemplateSource {
        &self.spec.from
    }

    fn chart(&self) -> &str {
        &self.spec.chart
    }

    fn parameters(&self) -> Option<&Map<String, Value>> {
        self.spec.values.as_ref()
    }

    fn session(&self) -> &str {
        &self.spec.session
    }

    fn status(&self) -> Option<&ApplicationTemplateStatus> {
        self.status.as_ref()
    }

    fn is_folder_enough() -> bool {
        true
    }

    fn render(
        &self,
        files: &Files,
        application: &str,
        now: Timestamp,
    ) -> Result<Vec<Value>, String> {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        let values = self.spec.values.clone().unwrap_or_default();
        render::helm(files, &values, application, namespace, now)
    }
}

impl ApplicationTemplate for KustomizePatch {
    const CONTROLLER: &'static str = KUSTOMIZE_ENTRY.name;

    fn from(&self) -> &TemplateSource {
        &self.spec.from
    }

    fn chart(&self) -> &'static str {
        ""
    }

    fn parameters(&self) -> Option<&Map<String, Value>> {
        self.spec.patch.as_ref()
    }

    fn session(&self) -> &str {
        &self.spec.session
    }

    fn status(&self) -> Option<&ApplicationTemplateStatus> {
        self.status.as_ref()
    }

    fn is_folder_enough() -> bool {
        false
    }

    fn render(&self, files: &Files, _: &str, _: Timestamp) -> Result<Vec<Value>, String> {
        render::kustomize(files, &self.spec.from.path, self.spec.patch.as_ref())
    }
}

/// Reconciles all templates of a kind, until it is dropped.
pub async fn run<K: ApplicationTemplate>(hub: Hub, options: WorkflowOptions) {
    let templates: Cache<K> = hub.cache();
    let cache = cache::Cache::new(options.source_cache.as_deref());
    let sources = Sources::new(Arc::new(Egress::new(&options)), cache);
    Controller::new(K::CONTROLLER, &hub.clock, &hub.metrics)
        .on(&templates, |change| {
            change
                .new
                .filter(|template| !is_done(&***template))
                .map(|_| change.key.clone())
        })
        .workers(WORKERS)
        .run(Arc::new(Templates {
            cache: templates.clone(),
            sources,
            hub,
        }))
        .await;
}

struct Templates<K: ApplicationTemplate> {
    hub: Hub,
    cache: Cache<K>,
    sources: Sources,
}

/// Why a template could not be reconciled this time.
#[derive(Debug, thiserror::Error)]
enum TemplateError {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("{0}")]
    Source(String),
}

impl ReconcileError for TemplateError {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            Self::Source(_) => Retry::Backoff,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Request(error) => error.label(),
            Self::Source(_) => "source",
        }
    }
}

/// What came of a template.
enum Outcome {
    /// The Application is as rendered.
    Settled { digest: String },
    /// The Application was written. Its workflow begins again, and with it the step.
    Written { digest: String },
    /// It stays wrong until somebody changes something.
    Failed(String),
}

/// What a step says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    app_name: String,
    step_name: String,
}

/// True if the status is about this generation, and final.
fn is_done(template: &impl ApplicationTemplate) -> bool {
    template.status().is_some_and(|status| {
        let progress = condition(&status.conditions, WORKFLOW_PROGRESS);
        status.observed_generation.is_some()
            && status.observed_generation == template.meta().generation
            && progress.is_some_and(|progress| {
                progress.reason != RUNNING || progress.message == WRITTEN_BACK
            })
    })
}

impl<K: ApplicationTemplate> Reconcile for Templates<K> {
    type Key = ObjectKey;
    type Error = TemplateError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, TemplateError> {
        let Some(template) = self.cache.get(key) else {
            return Ok(None);
        };
        if is_done(&*template) || template.meta().deletion_timestamp.is_some() {
            return Ok(None);
        }
        match Box::pin(self.bring_about(&template)).await {
            Ok(Outcome::Settled { digest }) => {
                self.report(&template, &digest, (TRUE, SUCCEEDED), NO_DIFFERENCE)
                    .await?;
            }
            Ok(Outcome::Written { digest }) => {
                self.report(&template, &digest, (FALSE, RUNNING), WRITTEN_BACK)
                    .await?;
            }
            Ok(Outcome::Failed(message)) => {
                self.report(&template, "", (FALSE, FAILED), &message)
                    .await?;
            }
            Err(TemplateError::Source(message)) => {
                self.report(&template, "", (FALSE, RUNNING), &message)
                    .await?;
                return Err(TemplateError::Source(message));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }
}

impl<K: ApplicationTemplate> Templates<K> {
    async fn bring_about(&self, template: &K) -> Result<Outcome, TemplateError> {
        let namespace = template.meta().namespace.clone().unwrap_or_default();
        let applications: Api<Application> = Api::namespaced(self.hub.client.clone(), &namespace);
        let context = context(template);
        let application = applications.get_opt(&context.app_name).await?;
        let Some(application) =
            application.filter(|application| owns(application, template, &context))
        else {
            return Ok(Outcome::Failed(format!(
                "no Application {:?} with a step {:?} before rendering owns this object",
                context.app_name, context.step_name
            )));
        };
        let fetched = match self.fetch(template, &namespace).await {
            Ok(fetched) => fetched,
            Err(Problem {
                message,
                is_temporary: true,
            }) => return Err(TemplateError::Source(message)),
            Err(Problem { message, .. }) => return Ok(Outcome::Failed(message)),
        };
        let rendered = match self
            .render(template, fetched.files, &context.app_name)
            .await
        {
            Ok(rendered) => rendered,
            Err(message) => return Ok(Outcome::Failed(message)),
        };
        let from = template.from();
        let inputs = pre_render::inputs(
            &from.source,
            &fetched.digest,
            &from.path,
            template.parameters(),
        );
        let attempt = Attempt {
            step: &context.step_name,
            session: template.session(),
            inputs: &inputs,
            now: self.hub.clock.now(),
        };
        let digest = fetched.digest;
        match pre_render::compare(&application, &rendered, attempt) {
            Verdict::Settled => Ok(Outcome::Settled { digest }),
            Verdict::Written => Ok(Outcome::Written { digest }),
            Verdict::Unsettled(message) => Ok(Outcome::Failed(message)),
            Verdict::Write(patch) => match patch_seen(&applications, &application, patch).await {
                // A version that is published by name is not carried out again.
                Ok(Some(written)) if is_published(&written) => Ok(Outcome::Settled { digest }),
                Ok(_) => Ok(Outcome::Written { digest }),
                Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                    let message =
                        format!("the rendered Application is refused: {}", status.message);
                    Ok(Outcome::Failed(message))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    async fn fetch(&self, template: &K, namespace: &str) -> Result<Fetched, Problem> {
        let from = template.from();
        let source = Source::read(from, template.chart()).map_err(Problem::lasting)?;
        let credentials = match &from.secret_ref {
            None => Credentials::default(),
            Some(reference) => {
                let secrets: Api<Secret> = Api::namespaced(self.hub.client.clone(), namespace);
                let name = &reference.name;
                let secret = secrets.get(name).await;
                let secret = secret.map_err(|error| {
                    Problem::temporary(format!("the Secret {name:?} cannot be read: {error}"))
                })?;
                let data = secret.data.unwrap_or_default();
                let data = data
                    .into_iter()
                    .map(|(key, value)| (key, value.0))
                    .collect();
                from_secret(name, &data).map_err(Problem::lasting)?
            }
        };
        let part = if K::is_folder_enough() {
            Part::Folder(&from.path)
        } else {
            Part::Everything
        };
        self.sources
            .fetch(&source, part, &from.digest, &credentials)
            .await
    }

    /// Renders on a thread of its own: a template may take its time.
    async fn render(&self, template: &K, files: Files, application: &str) -> Result<Value, String> {
        let (template, name, now) = (
            template.clone(),
            application.to_owned(),
            self.hub.clock.now(),
        );
        let rendered = tokio::task::spawn_blocking(move || {
            let objects = template.render(&files, &name, now)?;
            pre_render::application_among(&objects)
        });
        match rendered.await {
            Ok(rendered) => rendered,
            Err(error) => Err(format!("rendering ended early: {error}")),
        }
    }

    async fn report(
        &self,
        template: &K,
        digest: &str,
        (status, reason): (&str, &str),
        message: &str,
    ) -> Result<(), kube::Error> {
        let known = template.status().cloned().unwrap_or_default();
        let mut conditions = known.conditions.clone();
        let generation = template.meta().generation;
        let is_news = set_condition(
            &mut conditions,
            Condition {
                type_: WORKFLOW_PROGRESS.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                observed_generation: generation,
                last_transition_time: Time(self.hub.clock.now()),
            },
        );
        if !is_news && known.observed_generation == generation {
            return Ok(());
        }
        let new = ApplicationTemplateStatus {
            observed_generation: generation,
            digest: digest.to_owned(),
            conditions,
            ..known
        };
        let namespace = template.meta().namespace.as_deref().unwrap_or_default();
        let api: Api<K> = Api::namespaced(self.hub.client.clone(), namespace);
        let mut new = serde_json::to_value(&new).unwrap_or_default();
        if digest.is_empty() {
            // The status is merged: what is not there would stay.
            new["digest"] = Value::Null;
        }
        write_status(&api, template, &new).await.map(drop)
    }
}

/// What the step says that a template belongs to.
fn context(template: &impl Resource) -> Context {
    let annotations = template.meta().annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(WORKFLOW_CONTEXT));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// True if an Application asked for this template. Anybody could name any Application otherwise, and have it written.
fn owns(application: &Application, template: &impl Resource, context: &Context) -> bool {
    let meta = template.meta();
    let name = meta
        .labels
        .as_ref()
        .and_then(|labels| labels.get(label::APP_NAME));
    let is_labelled = name.is_some() && name == application.metadata.name.as_ref();
    let expected = format!("{}-{}", context.app_name, context.step_name);
    is_labelled
        && meta.name.as_deref() == Some(expected.as_str())
        && pre_render::has_step(application, &context.step_name)
}

fn is_published(application: &Application) -> bool {
    let annotations = application.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(PUBLISH_VERSION))
}
