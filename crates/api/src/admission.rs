//! Admission: what a hub checks and completes about a write besides its schema.
//!
//! An [`Admission`] is a set of rules over a [`Review`]. The embedded API server calls it in the
//! process; a webhook server calls the same one for a real API server. Rules do no I/O: what they
//! have to know of the hub they ask of [`Facts`].

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Debug;

use jiff::Timestamp;
use serde_json::Value;

/// Operation of a request on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It creates the object.
    Create,
    /// It changes the object.
    Update,
    /// It deletes the object.
    Delete,
    /// It uses a subresource that is no object.
    Connect,
}

impl Operation {
    /// The word in rules of webhooks and in reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The operation that a word names.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.as_str() == text)
    }
}

/// Resources that rules are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// API group, empty for core.
    pub group: &'static str,
    /// Plural names, with the subresource after a slash if it is one.
    pub resources: &'static [&'static str],
    /// Operations on them.
    pub operations: &'static [Operation],
    /// An expression in CEL, as `matchConditions` of webhooks have: where it is false, the rules have
    /// nothing to say, and a webhook is not called. None means that it is always called.
    pub condition: Option<&'static str>,
}

impl Rule {
    /// Returns true if the rule is about the resource and the operation of a review.
    pub fn matches(&self, review: &Review<'_>) -> bool {
        let is_named = |name: &&&str| match name.split_once('/') {
            Some((resource, subresource)) => {
                (resource, subresource) == (review.resource, review.subresource)
            }
            None => **name == review.resource && review.subresource.is_empty(),
        };
        self.group == review.group
            && self.operations.contains(&review.operation)
            && self.resources.iter().any(|name| is_named(&name))
    }
}

/// A write that is about to happen, without the object itself.
#[derive(Debug)]
pub struct Review<'a> {
    /// The operation.
    pub operation: Operation,
    /// API group of the resource, empty for core.
    pub group: &'a str,
    /// Plural name of the resource.
    pub resource: &'a str,
    /// Subresource, or nothing.
    pub subresource: &'a str,
    /// Namespace of the object, or nothing.
    pub namespace: &'a str,
    /// The object before the change; none at creation.
    pub old: Option<&'a Value>,
    /// User that sends the request.
    pub user: &'a str,
    /// The groups of who asks.
    pub groups: &'a [String],
    /// True if the client wants to be refused what it would be warned of otherwise: `fieldValidation=Strict`, as kubectl
    /// asks for.
    pub is_strict: bool,
    /// Time of the request.
    pub now: Timestamp,
    /// Answers questions about the hub.
    pub facts: &'a dyn Facts,
    /// Warnings that go to the client with the answer.
    pub warnings: RefCell<Vec<String>>,
}

impl Review<'_> {
    /// Sends a warning along with the answer.
    pub fn warn(&self, text: String) {
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
}

/// Answers what rules ask about the hub.
///
/// A shell that has to fetch an answer first says no, or none, notes the question, and calls the rule
/// again when it has the answer.
pub trait Facts: Debug {
    /// Returns true if the sender of the request may do this.
    fn allows(&self, wanted: &Attributes<'_>) -> bool;

    /// An object of the hub; none if it does not exist.
    fn get(&self, id: &ObjectId<'_>) -> Option<Value>;
}

/// Names an object of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Version in which it is read.
    pub version: &'a str,
    /// Plural name of the resource.
    pub resource: &'a str,
    /// Namespace, or nothing.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
}

/// Reason for refusing a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The request is invalid; the message says why.
    BadRequest(String),
    /// The user may not do this; the message says why.
    Forbidden(String),
}

impl Denial {
    /// Description of the problem.
    pub fn message(&self) -> &str {
        match self {
            Self::BadRequest(message) | Self::Forbidden(message) => message,
        }
    }
}

/// Rules that some writes have to pass.
pub trait Admission: Debug + Send + Sync {
    /// A word for logs and for the names of webhooks.
    fn name(&self) -> &'static str;

    /// The resources that the rules are about. Other writes are not shown to them.
    fn rules(&self) -> &'static [Rule];

    /// The resources whose objects are completed; a subset of those that the rules are about.
    fn mutations(&self) -> &'static [Rule] {
        &[]
    }

    /// Completes an object before it is validated.
    fn mutate(&self, _review: &Review<'_>, _object: &mut Value) -> Result<(), Denial> {
        Ok(())
    }

    /// Checks an object that is complete and valid in itself. For a deletion, `object` is what is deleted.
    fn validate(&self, _review: &Review<'_>, _object: &Value) -> Result<(), Denial> {
        Ok(())
    }
}

/// Returns true if any of some rules is about a review.
pub fn rules_match(rules: &[Rule], review: &Review<'_>) -> bool {
    rules.iter().any(|rule| rule.matches(review))
}

/// An action, in the terms of roles and SubjectAccessReviews.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes<'a> {
    /// The verb in lower case.
    pub verb: &'a str,
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name; empty if `path` is asked for.
    pub resource: &'a str,
    /// Subresource, if any.
    pub subresource: &'a str,
    /// Name of the object, if known.
    pub name: &'a str,
    /// Namespace; empty for all, and for cluster-scoped resources.
    pub namespace: &'a str,
    /// Path of a request that is not about a resource.
    pub path: &'a str,
}

impl Attributes<'_> {
    /// The refusal as Kubernetes words it, after "is forbidden: " or "forbidden: ".
    pub fn refusal(&self, user: &str) -> String {
        if self.resource.is_empty() {
            return format!(
                "User \"{user}\" cannot {} path \"{}\"",
                self.verb, self.path
            );
        }
        let resource = self.full_resource();
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        format!(
            "User \"{user}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
            self.verb, self.group
        )
    }

    /// The resource with its subresource, as rules name it.
    pub fn full_resource(&self) -> Cow<'_, str> {
        if self.subresource.is_empty() {
            self.resource.into()
        } else {
            format!("{}/{}", self.resource, self.subresource).into()
        }
    }
}
