//! A resource that a cluster serves: built in, or defined by a CustomResourceDefinition.
//!
//! Handlers know only this type. What differs between kinds is asked of it, and answered by the
//! `kinds` crate for built-in kinds and by the definition's schema for the others.

use std::sync::{Arc, OnceLock};

use bellwether_kinds as kinds;
use bellwether_schema::Schema;
use serde_json::{Value, json};

use crate::custom::CustomVersion;
use crate::params::Propagation;
use crate::request::Verb;
use crate::status::Subject;

/// One version of one resource.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// API group, empty for core.
    pub group: Arc<str>,
    /// Version under which it is served.
    pub version: Arc<str>,
    /// `v1`, `apps/v1`.
    pub api_version: Arc<str>,
    /// Kind of an object.
    pub kind: Arc<str>,
    /// Kind of a list.
    pub list_kind: Arc<str>,
    /// Name in paths.
    pub plural: Arc<str>,
    /// Name for one, in discovery.
    pub singular: Arc<str>,
    /// What people type instead.
    pub short_names: Vec<String>,
    /// Groups such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be done.
    pub verbs: Vec<Verb>,
    /// Keys of objects begin with this; versions of one resource share it.
    pub prefix: Arc<str>,
    /// Where the differences between kinds come from.
    pub source: Source,
    /// What an object is before anybody has written to it; computed on first use.
    pub(crate) blank: Arc<OnceLock<Value>>,
}

/// Who defines a resource.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// We do.
    BuiltIn(&'static kinds::Resource),
    /// A CustomResourceDefinition.
    Custom(Arc<CustomVersion>),
}

/// Parts of an object that are read and written on their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object without its status, where that is a subresource.
    Main,
    /// `status`
    Status,
    /// `scale`: the object, by way of its number of replicas.
    Scale,
    /// A subresource that writes one more field of its own, such as `approval` or `finalize`.
    Other(&'static str),
    /// Everything, for our own controllers: nothing is taken back and nothing refused.
    Whole,
}

impl Part {
    /// The word in `managedFields[].subresource`; empty for the main part.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main | Self::Whole => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Other(name) => name,
        }
    }
}

impl Resource {
    /// The resource in error messages: `widgets.example.com`.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            group: &self.group,
            resource: &self.plural,
        }
    }

    /// The kind in error messages: `Widget.example.com`.
    pub(crate) fn kind_subject(&self) -> Subject<'_> {
        Subject {
            group: &self.group,
            resource: &self.kind,
        }
    }

    /// The key of an object.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) => format!("{}{namespace}/{name}", self.prefix),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// The common beginning of the keys of a collection.
    pub(crate) fn collection_prefix(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}{namespace}/", self.prefix),
            None => self.prefix.to_string(),
        }
    }

    /// Namespace and name from a key.
    pub(crate) fn split_key<'a>(&self, key: &'a str) -> (Option<&'a str>, &'a str) {
        let rest = key.strip_prefix(&*self.prefix).unwrap_or(key);
        match rest.split_once('/') {
            Some((namespace, name)) if self.namespaced => (Some(namespace), name),
            _ => (None, rest),
        }
    }

    /// The schema of an object, for merging, pruning and publishing.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        match &self.source {
            Source::BuiltIn(kind) => kind.schema(),
            Source::Custom(version) => version.schema.get().schema().clone(),
        }
    }

    /// What an object is before anybody has written to it, for telling who wrote what.
    pub(crate) fn blank(&self) -> &Value {
        self.blank.get_or_init(|| match &self.source {
            Source::BuiltIn(kind) => kinds::blank(kind),
            Source::Custom(_) => json!({}),
        })
    }

    /// A warning for everybody who uses this version.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match &self.source {
            Source::BuiltIn(_) => None,
            Source::Custom(version) => version.deprecation.as_deref(),
        }
    }

    /// Whether objects are only answered, never stored.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(&self.source, Source::BuiltIn(kind) if kind.is_virtual())
    }

    /// Whether objects have a form in protobuf: those of built-in kinds do.
    pub(crate) fn has_protobuf(&self) -> bool {
        !self.is_custom() && bellwether_protobuf::knows(&self.api_version, &self.kind)
    }

    /// Whether objects are measurements, which are made when somebody asks.
    pub(crate) fn is_measured(&self) -> bool {
        &*self.group == kinds::metrics::GROUP && !self.is_custom()
    }

    /// What becomes of dependents if a delete does not set a propagation policy.
    pub(crate) fn default_propagation(&self) -> Propagation {
        if self.built_in().is_some_and(|kind| kind.orphans_dependents) {
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    }

    /// Whether a delete answers with the object instead of a status.
    pub(crate) fn returns_deleted(&self) -> bool {
        self.built_in().is_some_and(|kind| kind.returns_deleted)
    }

    /// Whether objects may take some time to end.
    pub(crate) fn ends_gracefully(&self) -> bool {
        self.built_in()
            .is_some_and(|kind| kind.grace_period.is_some())
    }

    /// How many seconds an object may take to end.
    pub(crate) fn grace_period(&self, wanted: Option<i64>, live: &Value) -> i64 {
        let rule = self.built_in().and_then(|kind| kind.grace_period);
        rule.map_or(0, |grace_period| grace_period(wanted, live))
    }

    fn built_in(&self) -> Option<&kinds::Resource> {
        match &self.source {
            Source::BuiltIn(kind) => Some(kind),
            Source::Custom(_) => None,
        }
    }

    /// Whether `status` is read and written on its own.
    pub(crate) fn has_status(&self) -> bool {
        match &self.source {
            Source::BuiltIn(kind) => kind.has_status(),
            Source::Custom(version) => version.has_status,
        }
    }

    /// Whether this is a custom resource.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.source, Source::Custom(_))
    }

    /// The number of its schema, which no other resource has; zero for built-in kinds.
    pub(crate) fn schema_number(&self) -> u32 {
        match &self.source {
            Source::BuiltIn(_) => 0,
            Source::Custom(version) => version.schema.number(),
        }
    }
}

/// The beginning of all keys of a resource.
pub(crate) fn key_prefix(group: &str, plural: &str) -> Arc<str> {
    let group = if group.is_empty() { "core" } else { group };
    format!("{group}/{plural}/").into()
}
