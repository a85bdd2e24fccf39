//! What is found of each part of an operator, in the words of upstream.

use bellwether_api::meta::{FALSE, TRUE, UNKNOWN};
use bellwether_api::policy::{
    ComplianceState, ObjectName, ObjectProperties, ObjectReference, RelatedObject,
};
use serde_json::Value;

use super::look::{
    CATALOG, DEFINITION, DEPLOYMENT, GROUP, INSTALL_PLAN, OlmKind, SERVICE_VERSION, SUBSCRIPTION,
    text,
};

/// What has a condition of its own, in the order of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Policy,
    Group,
    Subscription,
    InstallPlan,
    ServiceVersion,
    Definitions,
    Deployments,
    Catalog,
    Deprecations,
    Channels,
}

impl Part {
    /// The type of the condition.
    pub(super) const fn condition(self) -> &'static str {
        match self {
            Self::Policy => "ValidPolicySpec",
            Self::Group => "OperatorGroupCompliant",
            Self::Subscription => "SubscriptionCompliant",
            Self::InstallPlan => "InstallPlanCompliant",
            Self::ServiceVersion => "ClusterServiceVersionCompliant",
            Self::Definitions => "CustomResourceDefinitionCompliant",
            Self::Deployments => "DeploymentCompliant",
            Self::Catalog => "CatalogSourcesUnhealthy",
            Self::Deprecations => "NoDeprecations",
            Self::Channels => "MinorChannelUpgradeAvailable",
        }
    }

    /// The kind of its objects.
    pub(super) const fn kind(self) -> Option<OlmKind> {
        Some(match self {
            Self::Policy | Self::Deprecations | Self::Channels => return None,
            Self::Group => GROUP,
            Self::Subscription => SUBSCRIPTION,
            Self::InstallPlan => INSTALL_PLAN,
            Self::ServiceVersion => SERVICE_VERSION,
            Self::Definitions => DEFINITION,
            Self::Deployments => DEPLOYMENT,
            Self::Catalog => CATALOG,
        })
    }

    fn kind_name(self) -> &'static str {
        self.kind().map_or("policy", |kind| kind.name)
    }

    /// The status of the condition where everything is as it should be.
    const fn good(self) -> &'static str {
        match self {
            // These say that something is wrong.
            Self::Catalog | Self::Channels => FALSE,
            _ => TRUE,
        }
    }

    const fn bad(self) -> &'static str {
        match self {
            Self::Catalog | Self::Channels => TRUE,
            _ => FALSE,
        }
    }
}

/// What is found of one part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    pub(super) part: Part,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
    /// The objects of its kind; nothing if those that were listed before stay.
    pub(super) objects: Option<Vec<RelatedObject>>,
    /// True if it is no violation whatever it says.
    is_tolerated: bool,
    /// True if only its condition says it.
    pub(super) is_unsaid: bool,
}

impl Finding {
    pub(super) fn new(part: Part, is_good: bool, reason: &str, message: String) -> Self {
        Self {
            part,
            status: if is_good { part.good() } else { part.bad() },
            reason: reason.to_owned(),
            message,
            objects: None,
            is_tolerated: false,
            is_unsaid: false,
        }
    }

    /// It is no violation if that is so.
    pub(super) fn tolerated_if(mut self, is_tolerated: bool) -> Self {
        self.is_tolerated = is_tolerated;
        self
    }

    /// It is left out of the message of the policy.
    pub(super) fn unsaid(mut self) -> Self {
        self.is_unsaid = true;
        self
    }

    pub(super) fn with(mut self, objects: Vec<RelatedObject>) -> Self {
        self.objects = Some(objects);
        self
    }

    pub(super) fn is_good(&self) -> bool {
        self.is_tolerated || self.status == self.part.good()
    }

    /// A reason and a text that name the kind.
    fn of_kind(part: Part, is_good: bool, reason: &str, before: &str, after: &str) -> Self {
        let kind = part.kind_name();
        let message = format!("{before} {kind}{after}");
        Self::new(part, is_good, &format!("{kind}{reason}"), message)
    }

    pub(super) fn missing(part: Part) -> Self {
        let text = " required by the policy was not found";
        Self::of_kind(part, false, "Missing", "the", text)
    }

    pub(super) fn not_present(part: Part) -> Self {
        Self::of_kind(part, true, "NotPresent", "the", " is not present")
    }

    pub(super) fn created(part: Part) -> Self {
        let text = " required by the policy was created";
        Self::of_kind(part, true, "Created", "the", text)
    }

    pub(super) fn matches(part: Part) -> Self {
        let text = " matches what is required by the policy";
        Self::of_kind(part, true, "Matches", "the", text)
    }

    pub(super) fn mismatch(part: Part) -> Self {
        let text = " found on the cluster does not match the policy";
        Self::of_kind(part, false, "Mismatch", "the", text)
    }

    pub(super) fn cannot_be_enforced(part: Part) -> Self {
        let mut finding = Self::mismatch(part);
        finding.message.push_str(" and can't be enforced");
        finding
    }

    pub(super) fn updated(part: Part) -> Self {
        let text = " was updated to match the policy";
        Self::of_kind(part, true, "Updated", "the", text)
    }

    pub(super) fn kept(part: Part) -> Self {
        Self::of_kind(part, true, "Kept", "the policy specifies to keep the", "")
    }

    pub(super) fn not_applicable(part: Part) -> Self {
        let text = "MustNotHave policies ignore kind";
        Self::of_kind(part, true, "NotApplicable", text, "")
    }

    /// The objects that must not be there are.
    pub(super) fn present(part: Part, names: &[&str]) -> Self {
        let text = format!("{} present", named(names, "is", "are"));
        Self::of_kind(part, false, "Present", "the", &text)
    }

    pub(super) fn deleted(part: Part, names: &[&str]) -> Self {
        let text = format!("{} deleted", named(names, "was", "were"));
        Self::of_kind(part, true, "Deleted", "the", &text)
    }

    pub(super) fn deleting(part: Part, names: &[&str]) -> Self {
        let text = format!("{} a deletion timestamp", named(names, "has", "have"));
        Self::of_kind(part, false, "Deleting", "the", &text)
    }

    /// A write was refused.
    pub(super) fn refused(part: Part, action: &str, error: &str) -> Self {
        let text = format!(" required by the policy could not be {action}: {error}");
        Self::of_kind(part, false, "Error", "the", &text)
    }

    /// Nothing can be said, because of the policy.
    pub(super) fn invalid(part: Part) -> Self {
        let text = " could not be determined because the policy is invalid";
        let mut finding = Self::of_kind(part, false, "", "the status of the", text);
        finding.status = UNKNOWN;
        INVALID.clone_into(&mut finding.reason);
        finding
    }

    /// Nothing can be said, because the server does not answer.
    pub(super) fn failed(part: Part, error: &str) -> Self {
        let text = format!(" could not be determined: {error}");
        let mut finding = Self::of_kind(part, false, "Unknown", "the status of the", &text);
        finding.status = UNKNOWN;
        finding
    }
}

/// The reason where a policy cannot be understood.
pub(super) const INVALID: &str = "InvalidPolicySpec";

fn named(names: &[&str], one: &str, several: &str) -> String {
    match names {
        [] => format!(" {one}"),
        [name] => format!(" ({name}) {one}"),
        names => format!("s ({}) {several}", names.join(", ")),
    }
}

/// An object of a status.
pub(super) fn related(
    kind: OlmKind,
    object: &Value,
    is_compliant: Option<bool>,
    reason: &str,
) -> RelatedObject {
    let uid = text(object, "uid");
    let mut listed = unseen(
        kind,
        text(object, "namespace"),
        text(object, "name"),
        is_compliant,
        reason,
    );
    listed.properties = (!uid.is_empty()).then(|| ObjectProperties {
        uid: uid.to_owned(),
        ..ObjectProperties::default()
    });
    listed
}

/// An object of a status that the cluster does not have, or that stands for all of its kind.
pub(super) fn unseen(
    kind: OlmKind,
    namespace: &str,
    name: &str,
    is_compliant: Option<bool>,
    reason: &str,
) -> RelatedObject {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let state = is_compliant.map(|is_compliant| {
        let state = if is_compliant {
            ComplianceState::Compliant
        } else {
            ComplianceState::NonCompliant
        };
        state.as_str().to_owned()
    });
    RelatedObject {
        object: ObjectReference {
            kind: text(kind.name),
            api_version: text(kind.api_version),
            metadata: ObjectName {
                name: text(name),
                namespace: text(namespace),
                ..ObjectName::default()
            },
            ..ObjectReference::default()
        },
        compliant: state,
        reason: text(reason),
        ..RelatedObject::default()
    }
}
