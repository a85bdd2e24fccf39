//! Selecting clusters by labels and claims.

use bellwether_json::label::{LabelSelector, Operator, Requirement};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::placement::Misconfigured;

/// Labels and claims that a cluster must have.
#[derive(Debug, Clone)]
pub(super) struct Selector {
    labels: LabelSelector,
    claims: LabelSelector,
}

impl Selector {
    /// Reads `labelSelector` and `claimSelector` of an object; absent ones match everything.
    pub(super) fn read(part: &'static str, object: &Value) -> Result<Self, Misconfigured> {
        let selector = |field: &str| match object.get(field) {
            None | Some(Value::Null) => Ok(LabelSelector::everything()),
            Some(selector) => LabelSelector::from_object(Some(&corrected(selector)))
                .map_err(|error| Misconfigured::new(part, error.to_string())),
        };
        Ok(Self {
            labels: selector("labelSelector")?,
            claims: selector("claimSelector")?,
        })
    }

    /// Labels of which a cluster must have one, as far as that can be said.
    pub(super) fn anchors(&self) -> Option<Vec<(&str, &str)>> {
        let is_anchor = |it: &&Requirement| {
            matches!(
                it.operator(),
                Operator::In | Operator::Equals | Operator::DoubleEquals
            )
        };
        let requirement = self.labels.requirements().iter().find(is_anchor)?;
        let values = requirement.values().iter();
        Some(
            values
                .map(|value| (requirement.key(), value.as_str()))
                .collect(),
        )
    }

    pub(super) fn matches(&self, cluster: &Cluster) -> bool {
        self.labels.matches(cluster.labels()) && self.claims.matches(&cluster.claims)
    }

    /// The first thing a cluster lacks.
    pub(super) fn missing(&self, cluster: &Cluster) -> Option<String> {
        let unmet_label = |it: &&Requirement| !it.matches(cluster.labels());
        let unmet_claim = |it: &&Requirement| !it.matches(&cluster.claims);
        let label = self.labels.requirements().iter().find(unmet_label);
        let claim = self.claims.requirements().iter().find(unmet_claim);
        label
            .map(|requirement| format!("label {requirement}"))
            .or_else(|| claim.map(|requirement| format!("claim {requirement}")))
    }
}

/// Early documents wrote the operators `Exist` and `DoesNotExists`; nothing else they could mean.
fn corrected(selector: &Value) -> Value {
    let mut selector = selector.clone();
    let expressions = selector.get_mut("matchExpressions");
    for expression in expressions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(operator) = expression.get_mut("operator") {
            match operator.as_str() {
                Some("Exist") => *operator = json!("Exists"),
                Some("DoesNotExists" | "NotExist") => *operator = json!("DoesNotExist"),
                _ => {}
            }
        }
    }
    selector
}
