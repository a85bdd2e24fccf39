//! ConfigurationPolicies: whether the objects of a cluster are as defined, and what repairs them.
//!
//! An [`Evaluation`] goes through the object templates of a policy. What it has to know of the cluster,
//! and what has to be written there, it asks for ([`Step::Needs`]): the caller answers into [`Facts`]
//! and calls [`Evaluation::step`] again. So a dry run, an agent and tests share one engine. In the end
//! [`Evaluation::conclude`] says what is reported.
//!
//! Objects are compared, and merged with what is defined, by [`bellwether_apply::compliance`]. Texts are those of
//! config-policy-controller.

mod conclude;
mod custom_message;
mod desired;
mod diff;
mod evaluation;
mod facts;
mod identity;
mod message;
pub(crate) mod namespaces;
mod object;
mod prune;
mod raw;
mod redaction;
mod schedule;
mod secrets;
#[cfg(test)]
mod tests;

use bellwether_api::policy::ComplianceType;
use bellwether_apply::compliance::Duty;

pub(crate) use conclude::MAX_HISTORY;
pub use conclude::{Conclusion, Report};
pub use evaluation::{Evaluation, EvaluationOptions, Step};
pub use facts::{Facts, Need, Verb, Write, WriteError, WriteErrorKind, WriteOutcome};
pub use prune::{Pruning, prune};
pub use schedule::{Repairs, Trigger, next_evaluation};

/// What a compliance type asks of an object. Other texts than the three are `musthave`, as upstream has it.
pub(crate) fn duty(compliance: &ComplianceType) -> Duty {
    if compliance.is_must_not_have() {
        Duty::MustNotHave
    } else if compliance.is_must_only_have() {
        Duty::MustOnlyHave
    } else {
        Duty::MustHave
    }
}

/// Why something is in its state, as relatedObjects and conditions name it.
pub(crate) mod reason {
    pub(crate) const FOUND: &str = "Resource found as expected";
    pub(crate) const CREATED: &str = "K8s creation success";
    pub(crate) const UPDATED: &str = "K8s update success";
    pub(crate) const DELETED: &str = "K8s deletion success";
    pub(crate) const NOT_FOUND: &str = "Resource not found but should exist";
    pub(crate) const NO_MATCH: &str = "Resource found but does not match";
    pub(crate) const FORBIDDEN: &str = "Resource found but should not exist";
    pub(crate) const ABSENT: &str = "Resource not found as expected";
    pub(crate) const NOT_APPLICABLE: &str =
        "Resource found but will not be handled in mustnothave mode";
    pub(crate) const CREATE_ERROR: &str = "K8s creation error";
    pub(crate) const DELETE_ERROR: &str = "K8s deletion error";
    pub(crate) const UPDATE_ERROR: &str = "K8s update template error";
    pub(crate) const API_ERROR: &str = "api error";
    pub(crate) const TEMPLATE_ERROR: &str = "Error processing template";
    pub(crate) const DECODE_ERROR: &str = "K8s decode object definition error";
    pub(crate) const MAPPING_ERROR: &str = "K8s error";
    pub(crate) const MISSING_NAMESPACE: &str = "K8s missing namespace";
    pub(crate) const NAMESPACE_SELECTOR: &str = "namespaceSelector error";
    pub(crate) const OBJECT_SELECTOR: &str = "objectSelector error";
    pub(crate) const CLEANUP_ERROR: &str = "Error cleaning up child objects";
    pub(crate) const NO_TEMPLATES: &str = "No object templates";
    pub(crate) const INVALID_SPEC: &str = "Invalid spec";
    pub(crate) const HUB_TEMPLATE_ERROR: &str = "Hub template resolution failure";
    pub(crate) const ENCRYPTION_ERROR: &str = "Template encryption configuration error";
}

/// One thing that an evaluation found, of an object or of a whole object template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) is_compliant: bool,
    pub(crate) reason: String,
    /// For reasons whose text is not made of names.
    pub(crate) message: String,
}

impl Finding {
    fn new(is_compliant: bool, reason: &str) -> Self {
        Self::with_message(is_compliant, reason, String::new())
    }

    fn with_message(is_compliant: bool, reason: &str, message: String) -> Self {
        Self {
            is_compliant,
            reason: reason.to_owned(),
            message,
        }
    }
}
