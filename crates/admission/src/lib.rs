//! Admission webhooks and policies as Kubernetes runs them: what matches a request, what is sent, and
//! what the answer means.
//!
//! | module | for |
//! |---|---|
//! | [`attributes`] | a request as rules, webhooks and expressions see it |
//! | [`criteria`] | rules and selectors: does a webhook or a policy concern the request |
//! | [`condition`] | `matchConditions` |
//! | [`webhook`] | webhooks of a configuration: when they are called, and again |
//! | [`review`] | the AdmissionReview that is sent, and the answer |
//! | [`policy`] | ValidatingAdmissionPolicies and their bindings: compiled once, evaluated often |
//!
//! Nothing here calls anybody: a shell sends reviews and passes the answers on. What is looked up in the
//! cluster is asked of a [`Host`]. Expressions run under a budget.

pub mod attributes;
pub mod condition;
pub mod criteria;
mod environment;
pub mod policy;
pub mod review;
pub mod webhook;

pub use attributes::{Attributes, Kind, Target};

use bellwether_cel::Authorizer;
use serde_json::Value;

/// Group of the kinds that configure admission.
pub const GROUP: &str = "admissionregistration.k8s.io";

/// Kinds that configure admission are themselves not subject to it: a mistake in them can be repaired.
pub fn is_exempt(group: &str, kind: &str) -> bool {
    group == GROUP
        && matches!(
            kind,
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// Reviews are shown to webhooks, but not to policies: a mistake in one would break the cluster.
pub fn is_hidden_from_policies(group: &str, resource: &str) -> bool {
    match group {
        "authentication.k8s.io" => matches!(resource, "selfsubjectreviews" | "tokenreviews"),
        "authorization.k8s.io" => matches!(
            resource,
            "localsubjectaccessreviews"
                | "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
        ),
        _ => false,
    }
}

/// Answers questions about the cluster that a request is for, and about the rights of its sender.
pub trait Host: Authorizer {
    /// A namespace; none if it does not exist.
    fn namespace(&self, name: &str) -> Option<Value>;

    /// An object in another version of its resource.
    fn convert(&self, object: &Value, target: &Target) -> Value;

    /// True if objects of a kind are in namespaces; none if there is no such kind.
    fn is_namespaced(&self, api_version: &str, kind: &str) -> Option<bool>;

    /// An object of a kind; `namespace` is empty for objects that are in none.
    fn object(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value>;

    /// All objects of a kind, in one namespace if it is not empty.
    fn objects(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value>;
}
