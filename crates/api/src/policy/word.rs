//! Values of one word that policies consist of.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// Reaction to a violation of a policy. Kept as it is written: clusters get the
/// spelling of the root policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RemediationAction(pub String);

impl RemediationAction {
    /// The action that only reports.
    pub fn inform() -> Self {
        Self("inform".to_owned())
    }

    /// The action that repairs.
    pub fn enforce() -> Self {
        Self("enforce".to_owned())
    }

    /// Returns true if violations are repaired.
    pub fn is_enforce(&self) -> bool {
        self.0.eq_ignore_ascii_case("enforce")
    }

    /// Returns true if it is not set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RemediationAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for RemediationAction {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RemediationAction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["Inform", "inform", "Enforce", "enforce"]})
    }
}

open_enum! {
    /// Result of an evaluation of a policy.
    pub enum ComplianceState {
        /// Everything is as the policy says.
        Compliant = "Compliant",
        /// Dependencies are not met yet.
        Pending = "Pending",
        /// Something is not as the policy says.
        NonCompliant = "NonCompliant",
        /// Nothing is known yet. Controllers leave the field out instead.
        Unknown = "",
    }
}

open_enum! {
    /// Progress of a cluster, or of a whole fleet, with the present version of a policy.
    pub enum RolloutStatus {
        /// The cluster has the version as inform, and waits to be told to enforce it.
        ToApply = "ToApply",
        /// The cluster has the version as it is meant, and has not reported about it.
        Progressing = "Progressing",
        /// The cluster reported that it complies.
        Succeeded = "Succeeded",
        /// The cluster reported that it does not comply.
        Failed = "Failed",
        /// The cluster reported nothing in time.
        TimeOut = "TimeOut",
        /// Not used.
        Skip = "Skip",
    }
}

impl RolloutStatus {
    /// Returns true if the cluster has reported, or was given up on.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::TimeOut)
    }
}
