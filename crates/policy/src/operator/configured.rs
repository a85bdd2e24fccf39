//! What a policy counts as a violation.

use bellwether_api::policy::OperatorPolicy;

/// What `spec.complianceConfig` speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Configured {
    CatalogUnhealthy,
    DeploymentsUnavailable,
    UpgradesAvailable,
}

pub(super) trait Allows {
    /// Whether something is no violation.
    fn allows(&self, what: Configured) -> bool;
}

impl Allows for OperatorPolicy {
    fn allows(&self, what: Configured) -> bool {
        let (field, default) = match what {
            Configured::CatalogUnhealthy => ("catalogSourceUnhealthy", "Compliant"),
            Configured::DeploymentsUnavailable => ("deploymentsUnavailable", "NonCompliant"),
            Configured::UpgradesAvailable => ("upgradesAvailable", "Compliant"),
        };
        let config = self.spec.compliance_config.as_ref();
        let said = config.and_then(|config| config[field].as_str());
        said.unwrap_or(default) == "Compliant"
    }
}
