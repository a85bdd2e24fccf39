//! What carries out workflows, of WorkflowRuns and of Applications alike.
//!
//! [`Engine::pass`] makes one pass over a workflow: it loads the log, takes in what others changed in the status, asks
//! [`bellwether_workflow`] what is to be done, writes the log, and carries actions out. Whoever owns the workflow
//! writes its status from the state that comes back.
//!
//! | module | what it does |
//! |---|---|
//! | [`approval`] | resumes steps for any client that has their token |
//! | [`history`] | the log in a WorkflowHistory, guarded by its version |
//! | [`context`] | the ConfigMap with the values that steps hand on |
//! | [`definitions`] | templates of steps: of the namespace, of the system, built in |
//! | [`memory`] | what a process remembers: why a workflow is looked at, which version it wrote |
//! | [`providers`] | actions: objects, HTTP, configurations and so on |
//! | [`unsent`] | what a rehearsal would send |
//! | [`watches`] | wakes workflows whose steps wait for an object that changed |

pub mod approval;
pub mod context;
pub mod definitions;
pub mod engine;
pub mod history;
pub mod memory;
pub mod providers;
pub mod unsent;
pub mod watches;

pub use approval::ApprovalOptions;
pub use engine::{Engine, Outcome, PassError};
pub use providers::http::HttpPolicy;
pub use unsent::Unsent;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_runtime::{Fence, ObjectKey};
use bellwether_workflow::{Done, Request, Settings};
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// What a hub sets for workflows.
#[derive(Debug, Clone, Default)]
pub struct WorkflowOptions {
    /// Retries and waits.
    pub settings: Settings,
    /// Where actions may send requests, and where repositories and sources may be.
    pub http: HttpPolicy,
    /// Where approvals are served; none if they are not.
    pub approval: Option<ApprovalOptions>,
    /// Whether everything that revisions of Applications are rendered to is stored, also where no step reads it.
    pub stores_rendered: bool,
    /// Directories of this machine with repositories that may be used.
    pub git_directories: Vec<PathBuf>,
    /// Where sources of templates are cached; without it they are fetched every time.
    pub source_cache: Option<PathBuf>,
    /// Open while this process leads. Nothing is sent, mailed or pushed while it is closed.
    pub fence: Option<Fence>,
    /// Set in a rehearsal: what steps and templates would send is recorded here, and is not sent. Charts and manifests are still
    /// fetched, because rendering needs them.
    pub unsent: Option<Unsent>,
}

/// The object that a workflow belongs to.
#[derive(Debug, Clone)]
pub struct Owner {
    /// Which kind of workflow: keys of different kinds do not meet.
    pub kind: OwnerKind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The reference by which what belongs to the workflow is removed with it.
    pub reference: OwnerReference,
    /// Labels that objects get which steps apply.
    pub labels: BTreeMap<String, String>,
    /// Whether evaluated templates are kept.
    pub debug: bool,
}

/// Which kind of object a workflow belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerKind {
    /// A WorkflowRun.
    Run,
    /// An Application.
    Application,
}

impl Owner {
    /// The annotation that holds what was applied last.
    pub fn last_applied(&self) -> &'static str {
        use bellwether_api::workflow::names::annotation;
        match self.kind {
            OwnerKind::Run => annotation::RUN_LAST_APPLIED,
            OwnerKind::Application => annotation::APP_LAST_APPLIED,
        }
    }

    /// The annotation that holds when it was applied.
    pub fn last_applied_time(&self) -> &'static str {
        use bellwether_api::workflow::names::annotation;
        match self.kind {
            OwnerKind::Run => annotation::RUN_LAST_APPLIED_TIME,
            OwnerKind::Application => annotation::APP_LAST_APPLIED_TIME,
        }
    }

    /// The name of the WorkflowHistory.
    pub fn history_name(&self) -> String {
        match self.kind {
            OwnerKind::Run => format!("workflowrun-{}", self.key.name),
            OwnerKind::Application => format!("application-{}", self.key.name),
        }
    }
}

/// Actions that only the owner of a workflow can carry out, such as those on components.
pub trait OwnActions: Send + Sync {
    /// Carries an action out, if it is one of the owner.
    fn carry_out<'a>(&'a self, request: &'a Request)
    -> Option<BoxFuture<'a, Result<Done, String>>>;
}

/// No actions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOwnActions;

impl OwnActions for NoOwnActions {
    fn carry_out<'a>(&'a self, _: &'a Request) -> Option<BoxFuture<'a, Result<Done, String>>> {
        None
    }
}
