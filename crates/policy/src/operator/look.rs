//! What an evaluation of an operator reads and writes, one question at a time.

use jiff::Timestamp;
use serde_json::Value;

use crate::config_policy::{Facts, Need, Verb, Write, WriteError, WriteOutcome};
use crate::template::{Answer, Question};

/// A kind, by its group with version and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OlmKind {
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
}

const fn kind(api_version: &'static str, name: &'static str) -> OlmKind {
    OlmKind { api_version, name }
}

pub(super) const SUBSCRIPTION: OlmKind = kind("operators.coreos.com/v1alpha1", "Subscription");
pub(super) const GROUP: OlmKind = kind("operators.coreos.com/v1", "OperatorGroup");
pub(super) const INSTALL_PLAN: OlmKind = kind("operators.coreos.com/v1alpha1", "InstallPlan");
pub(super) const SERVICE_VERSION: OlmKind =
    kind("operators.coreos.com/v1alpha1", "ClusterServiceVersion");
pub(super) const CATALOG: OlmKind = kind("operators.coreos.com/v1alpha1", "CatalogSource");
pub(super) const PACKAGE: OlmKind = kind("packages.operators.coreos.com/v1", "PackageManifest");
pub(super) const DEFINITION: OlmKind = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition");
pub(super) const DEPLOYMENT: OlmKind = kind("apps/v1", "Deployment");
pub(super) const NAMESPACE: OlmKind = kind("v1", "Namespace");
pub(super) const POLICY: OlmKind = kind(
    "policy.open-cluster-management.io/v1beta1",
    "OperatorPolicy",
);

/// Why an evaluation cannot go on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stop {
    /// Something has to be known or written first.
    Needs(Vec<Need>),
    /// The server does not answer: its error.
    Failed(String),
}

/// What came of a write.
pub(super) enum Written<'l> {
    /// It is left out: this is what is found before anything is written.
    NotYet,
    /// The object as the server has it now; null if it is gone.
    Done(&'l Value),
    /// It was refused.
    Failed(&'l WriteError),
}

/// What is known of the cluster.
#[derive(Clone, Copy)]
pub(super) struct Look<'l> {
    pub(super) facts: &'l Facts,
    /// Whether writes are left out.
    pub(super) is_before: bool,
    /// The present.
    pub(super) now: Timestamp,
}

impl<'l> Look<'l> {
    fn ask(&self, question: Question) -> Result<&'l Answer, Stop> {
        match self.facts.get(&question) {
            Some(Answer::Failed(error)) => Err(Stop::Failed(error.clone())),
            Some(answer) => Ok(answer),
            None => Err(Stop::Needs(vec![Need::Read(question)])),
        }
    }

    /// Whether the cluster has a kind.
    pub(super) fn is_served(&self, kind: OlmKind) -> Result<bool, Stop> {
        let answer = self.ask(Question::Resource {
            api_version: kind.api_version.to_owned(),
            kind: kind.name.to_owned(),
        })?;
        Ok(*answer != Answer::Nothing)
    }

    /// One object, if it is there.
    pub(super) fn object(
        &self,
        kind: OlmKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<&'l Value>, Stop> {
        let answer = self.ask(Question::Object {
            api_version: kind.api_version.to_owned(),
            kind: kind.name.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })?;
        Ok(match answer {
            Answer::Object(object) => Some(object),
            _ => None,
        })
    }

    /// The objects of a kind that a selector matches.
    pub(super) fn list(
        &self,
        kind: OlmKind,
        namespace: &str,
        selector: &str,
    ) -> Result<&'l [Value], Stop> {
        let answer = self.ask(Question::List {
            api_version: kind.api_version.to_owned(),
            kind: kind.name.to_owned(),
            namespace: namespace.to_owned(),
            selector: selector.to_owned(),
        })?;
        Ok(match answer {
            Answer::Objects(objects) => objects,
            _ => &[],
        })
    }

    /// Writes an object, or tries to.
    pub(super) fn write(
        &self,
        verb: Verb,
        kind: OlmKind,
        object: &Value,
    ) -> Result<Written<'l>, Stop> {
        if self.is_before && verb != Verb::DryRun {
            return Ok(Written::NotYet);
        }
        let write = Write {
            verb,
            api_version: kind.api_version.to_owned(),
            kind: kind.name.to_owned(),
            namespace: text(object, "namespace").to_owned(),
            name: text(object, "name").to_owned(),
            object: object.clone(),
        };
        match self.facts.written(&write) {
            Some(WriteOutcome::Done(object)) => Ok(Written::Done(object)),
            Some(WriteOutcome::Failed(error)) => Ok(Written::Failed(error)),
            None => Err(Stop::Needs(vec![Need::Write(write)])),
        }
    }
}

/// A field of the metadata of an object; empty if it has none.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object["metadata"][field].as_str().unwrap_or_default()
}
