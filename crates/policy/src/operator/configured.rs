//! What a policy counts as a violation.

use bellwether_api::policy::OperatorPolicy;

/// What `spec.complianceConfig` speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Configured {
    CatalogUnhealthy,
    DeploymentsUnavailable,
    UpgradesAvailable,
    DeprecationsPresent,
    MinorChannelUpgrade,
}

impl Configured {
    /// The field, and what is true without it.
    const fn field(self) -> (&'static str, &'static str) {
        match self {
            Self::CatalogUnhealthy => ("catalogSourceUnhealthy", "Compliant"),
            Self::DeploymentsUnavailable => ("deploymentsUnavailable", "NonCompliant"),
            Self::UpgradesAvailable => ("upgradesAvailable", "Compliant"),
            Self::DeprecationsPresent => ("deprecationsPresent", "Compliant"),
            Self::MinorChannelUpgrade => ("minorChannelUpgradeAvailable", "Compliant"),
        }
    }
}

pub(super) trait Allows {
    /// Whether something is no violation.
    fn allows(&self, what: Configured) -> bool;

    /// Whether the policy says what it means.
    fn mentions(&self, what: Configured) -> bool;
}

impl Allows for OperatorPolicy {
    fn allows(&self, what: Configured) -> bool {
        let (field, default) = what.field();
        let config = self.spec.compliance_config.as_ref();
        let said = config.and_then(|config| config[field].as_str());
        said.unwrap_or(default) == "Compliant"
    }

    fn mentions(&self, what: Configured) -> bool {
        let config = self.spec.compliance_config.as_ref();
        config.is_some_and(|config| config[what.field().0].is_string())
    }
}
