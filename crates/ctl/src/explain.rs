//! Where an object stands and why, for people: a snapshot of what matters becomes a tree, and a tree
//! becomes text.
//!
//! [`EXPLAINERS`] is the table of the kinds that can be explained. Each has a function that reads a
//! [`Snapshot`]; everything after that is pure.

mod application;
mod member;
mod policy;
mod read;
mod rollout;
pub mod tree;
mod work;
mod workflow;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

pub use application::{ApplicationSnapshot, application_triggers, read_application};
pub use policy::{PolicySnapshot, policy_triggers, read_policy};
pub use read::{read_rollout, rollout_triggers};
pub use rollout::{Rollout, RolloutSnapshot, Trouble};
pub use work::WorkSnapshot;
pub use workflow::{Moment, RunSnapshot, next as next_of_step, run_triggers, span};

use crate::error::Error;
use crate::near::did_you_mean_or;
use tree::Tree;

/// Where snapshots are read from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The hub.
    pub client: &'a Client,
    /// The namespace of the object.
    pub namespace: &'a str,
    /// How to reach members, where that is possible.
    pub members: &'a dyn Members,
    /// The present.
    pub now: Timestamp,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Source");
        shown.field("namespace", &self.namespace);
        shown.finish_non_exhaustive()
    }
}

/// Access to the members of a fleet: a person may have it for some, or for none.
pub trait Members: Send + Sync {
    /// A client for a member; nothing if there is no way to reach it.
    fn client<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Option<Client>>;
}

/// Members that cannot be reached.
#[derive(Debug, Clone, Copy)]
pub struct NoMembers;

impl Members for NoMembers {
    fn client<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Option<Client>> {
        Box::pin(std::future::ready(None))
    }
}

/// What is known about an object at one moment.
#[derive(Debug, Clone)]
pub enum Snapshot {
    /// An application.
    Application(Box<ApplicationSnapshot>),
    /// Works of one name: of both interfaces at most.
    Works(Vec<WorkSnapshot>),
    /// A replica set of works.
    Rollout(Box<RolloutSnapshot>),
    /// A policy.
    Policy(Box<PolicySnapshot>),
    /// A run of a workflow.
    Run(Box<RunSnapshot>),
}

impl Snapshot {
    /// What `status` shows.
    pub fn status(&self) -> Vec<Tree> {
        match self {
            Self::Application(snapshot) => vec![snapshot.status()],
            Self::Works(works) => works.iter().map(WorkSnapshot::status).collect(),
            Self::Rollout(snapshot) => vec![Rollout::new(snapshot).status()],
            Self::Policy(snapshot) => vec![snapshot.status()],
            Self::Run(snapshot) => vec![snapshot.status()],
        }
    }

    /// The same for programs.
    pub fn document(&self) -> Value {
        match self {
            Self::Application(snapshot) => snapshot.document(),
            Self::Works(works) => match &**works {
                [only] => only.document(),
                several => several.iter().map(WorkSnapshot::document).collect(),
            },
            Self::Rollout(snapshot) => Rollout::new(snapshot).document(),
            Self::Policy(snapshot) => snapshot.document(),
            Self::Run(snapshot) => snapshot.document(),
        }
    }

    /// What `status -w` compares with what it saw before: lines without times that run.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Application(snapshot) => snapshot.lines(),
            Self::Works(works) => works
                .iter()
                .flat_map(|work| {
                    let text = work.status().render(false);
                    text.lines().map(str::to_owned).collect::<Vec<_>>()
                })
                .collect(),
            Self::Rollout(snapshot) => Rollout::new(snapshot).lines(),
            Self::Policy(snapshot) => snapshot.lines(),
            Self::Run(snapshot) => snapshot.lines(),
        }
    }

    /// True if there is nothing more to watch: the rollout is complete.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Application(snapshot) => snapshot.is_complete(),
            Self::Works(_) => false,
            Self::Rollout(snapshot) => Rollout::new(snapshot).is_complete(),
            Self::Policy(snapshot) => snapshot.is_complete(),
            Self::Run(snapshot) => snapshot.is_complete(),
        }
    }
}

/// Reads what is known about the object of a name.
type Read = for<'a> fn(Source<'a>, &'a str) -> BoxFuture<'a, Result<Snapshot, Error>>;

/// How a kind is explained.
#[derive(Debug, Clone, Copy)]
pub struct Explainer {
    /// What people call it; the first is how messages call it.
    pub names: &'static [&'static str],
    /// How a snapshot is read.
    pub read: Read,
}

/// The kinds that can be explained.
pub const EXPLAINERS: [Explainer; 6] = [
    Explainer {
        names: &APPLICATION,
        read: |source, name| Box::pin(application::read(source, name)),
    },
    Explainer {
        names: &["work", "works"],
        read: |source, name| Box::pin(read::works(source, name)),
    },
    Explainer {
        names: &["manifestwork", "manifestworks"],
        read: |source, name| Box::pin(read::manifest_work(source, name)),
    },
    Explainer {
        names: &REPLICA_SET,
        read: |source, name| Box::pin(read::rollout(source, name)),
    },
    Explainer {
        names: &POLICY,
        read: |source, name| Box::pin(policy::read(source, name)),
    },
    Explainer {
        names: &WORKFLOW_RUN,
        read: |source, name| Box::pin(workflow::read(source, name)),
    },
];

/// What people call an application.
pub const APPLICATION: [&str; 4] = ["app", "apps", "application", "applications"];

/// What people call a policy.
pub const POLICY: [&str; 3] = ["policy", "policies", "plc"];

/// What people call a run of a workflow.
pub const WORKFLOW_RUN: [&str; 4] = ["workflowrun", "workflowruns", "wr", "run"];

/// What people call a replica set of works.
pub const REPLICA_SET: [&str; 6] = [
    "mwrs",
    "manifestworkreplicaset",
    "manifestworkreplicasets",
    "replicaset",
    "replicasets",
    "replica-set",
];

/// Divides `KIND/NAME`; the kind is in lower case, without its group.
pub fn kind_and_name(object: &str) -> Result<(String, &str), Error> {
    match object.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
            let kind = kind.split('.').next().unwrap_or(kind);
            Ok((kind.to_lowercase(), name))
        }
        _ => Err(Error::Usage(format!(
            "{object:?} is not of the form KIND/NAME, such as mwrs/web"
        ))),
    }
}

/// How a kind is explained.
pub fn explainer(kind: &str) -> Result<&'static Explainer, Error> {
    let found = EXPLAINERS.iter().find(|it| it.names.contains(&kind));
    found.ok_or_else(|| {
        let known: Vec<&str> = EXPLAINERS.iter().map(|it| it.names[0]).collect();
        unknown_kind(kind, &known)
    })
}

/// What is said of a kind that a command does not know.
pub fn unknown_kind(kind: &str, known: &[&str]) -> Error {
    let all = EXPLAINERS.iter().flat_map(|it| it.names.iter().copied());
    let guess = did_you_mean_or(kind, known.iter().copied().chain(all), ".");
    Error::Usage(format!(
        "unknown kind {kind:?}{guess} This command knows {}.",
        known.join(", ")
    ))
}
