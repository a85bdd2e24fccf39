//! Everything that a handler may look at: the request, who sent it, and where it goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::access::Identity;
use crate::answer::Writer;
use crate::apart::Effort;
use crate::cluster::Cluster;
use crate::params::Query;
use crate::request::Verb;
use crate::resource::Resource;
use crate::status::ApiError;

/// A request for a resource that exists, by somebody who may.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The cluster that is asked.
    pub cluster: Arc<Cluster>,
    /// The resource that the path names.
    pub resource: Arc<Resource>,
    /// What is to be done.
    pub verb: Verb,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path.
    pub name: Option<String>,
    /// The subresource in the path.
    pub subresource: Option<String>,
    /// Query parameters.
    pub query: Query,
    /// Who asks.
    pub identity: Identity,
    /// The program that asks, for `managedFields`.
    pub user_agent: String,
    /// How the answer is to be written.
    pub writer: Writer,
    /// When the request came in.
    pub now: Timestamp,
    /// What the client should know besides the answer.
    pub warnings: Warnings,
    /// How much work it may take here.
    pub effort: Effort,
    /// What the audit log should know besides.
    pub notes: Notes,
    /// True if a controller of this server asks, and nobody else.
    pub is_internal: bool,
}

/// Warnings that are gathered while a request is answered. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// What has been gathered so far.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Annotations of the audit log that are gathered while a request is answered. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<BTreeMap<String, String>>>);

impl Notes {
    /// Notes something; the first note under a key stays.
    pub(crate) fn add(&self, key: String, note: String) {
        self.0.lock().entry(key).or_insert(note);
    }

    /// What has been noted so far.
    pub(crate) fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl RequestContext {
    /// A request of our own, on behalf of one of the controllers in this process.
    pub(crate) fn internal(
        cluster: &Arc<Cluster>,
        resource: &Arc<Resource>,
        key: &str,
        controller: &str,
    ) -> Self {
        let (namespace, name) = resource.split_key(key);
        let now = cluster.clock().now();
        Self {
            cluster: cluster.clone(),
            resource: resource.clone(),
            verb: Verb::Update,
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            subresource: None,
            query: Query::default(),
            identity: Identity::administrator(controller),
            user_agent: controller.to_owned(),
            writer: Writer {
                representation: crate::negotiate::Representation::default(),
                include_object: crate::table::IncludeObject::default(),
                now,
            },
            now,
            warnings: Warnings::default(),
            effort: Effort::unlimited(),
            notes: Notes::default(),
            is_internal: true,
        }
    }

    /// Sends a warning along with the answer; again after a lost race is no harm.
    pub(crate) fn warn(&self, text: String) {
        let mut warnings = self.warnings.0.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// The name in the path; handlers of single objects are only called with one.
    pub(crate) fn name(&self) -> Result<&str, ApiError> {
        self.name
            .as_deref()
            .ok_or_else(ApiError::method_not_allowed)
    }

    /// The namespace in the path; empty for what is in none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The key of the object in the path.
    pub(crate) fn key(&self) -> Result<String, ApiError> {
        Ok(self.resource.key(self.namespace.as_deref(), self.name()?))
    }

    /// The manager of written fields: named by the client, or the first part of its user agent.
    pub(crate) fn manager(&self, field_manager: &str) -> String {
        if !field_manager.is_empty() {
            return field_manager.to_owned();
        }
        let program = self.user_agent.split('/').next().unwrap_or_default();
        let printable = program.chars().filter(|letter| !letter.is_control());
        let name: String = printable.take(128).collect();
        if name.is_empty() {
            "unknown".into()
        } else {
            name
        }
    }
}
