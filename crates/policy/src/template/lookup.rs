//! What templates look up, and what they may.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Something that has to be known about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// How a kind is served.
    Resource {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// One object.
    Object {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// Its namespace; empty for kinds without one.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All objects of a kind that a selector matches, by namespace and name.
    List {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// Their namespace; empty for all.
        namespace: String,
        /// A label selector; empty for all.
        selector: String,
    },
}

/// What is known about a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// There is no such thing.
    Nothing,
    /// How the kind is served.
    Resource(Resource),
    /// The object.
    Object(Json),
    /// The objects.
    Objects(Vec<Json>),
    /// It cannot be told: the error of the server.
    Failed(String),
}

/// How a kind is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The plural name with the group, as in errors: `deployments.apps`.
    pub name: String,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
}

/// What is known of a cluster.
pub trait Cluster: Sync {
    /// The answer to a question, if it is known.
    fn answer(&self, question: &Question) -> Option<Answer>;
}

impl Cluster for BTreeMap<Question, Answer> {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.get(question).cloned()
    }
}

/// What templates of the hub may look up without a service account of their own: objects of one
/// namespace, and the ManagedCluster that they are resolved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// The namespace; it is also the default.
    pub namespace: String,
    /// The name of the ManagedCluster.
    pub cluster: String,
}
