//! Selecting clusters by labels and claims.

use bellwether_api::cluster::{ClaimSelector, ClusterSelector, GroupClusterSelector};
use bellwether_api::meta;
use bellwether_json::label::{LabelSelector, Operator, Requirement, SelectorError};

use super::cluster::Cluster;

/// Labels and claims that a cluster must have.
#[derive(Debug, Clone)]
pub(super) struct Selector {
    labels: LabelSelector,
    claims: LabelSelector,
}

impl Selector {
    /// Compiles the selector of a predicate.
    pub(super) fn of_predicate(selector: &ClusterSelector) -> Result<Self, String> {
        Self::new(
            selector.label_selector.as_ref(),
            selector.claim_selector.as_ref(),
        )
    }

    /// Compiles the selector of a decision group.
    pub(super) fn of_group(selector: &GroupClusterSelector) -> Result<Self, String> {
        Self::new(
            selector.label_selector.as_ref(),
            selector.claim_selector.as_ref(),
        )
    }

    /// Compiles a selector of labels and one of claims; absent ones match everything.
    pub(super) fn new(
        labels: Option<&meta::LabelSelector>,
        claims: Option<&ClaimSelector>,
    ) -> Result<Self, String> {
        let everything = || Ok(LabelSelector::everything());
        let by_claims = |it: &ClaimSelector| {
            requirements(&it.match_expressions).map(LabelSelector::from_requirements)
        };
        Ok(Self {
            labels: labels.map_or_else(everything, label_selector)?,
            claims: claims.map_or_else(everything, by_claims)?,
        })
    }

    /// Matches every cluster.
    pub(super) fn everything() -> Self {
        Self {
            labels: LabelSelector::everything(),
            claims: LabelSelector::everything(),
        }
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

/// Compiles a label selector, or returns what is wrong with it.
pub(super) fn label_selector(selector: &meta::LabelSelector) -> Result<LabelSelector, String> {
    let labels = selector.match_labels.iter().flatten();
    let equals = |(key, value): (&String, &String)| {
        Requirement::new(key, Operator::Equals, vec![value.clone()]).map_err(text)
    };
    let mut all: Vec<Requirement> = labels.map(equals).collect::<Result<_, _>>()?;
    let expressions = selector.match_expressions.as_deref();
    all.extend(requirements(expressions.unwrap_or_default())?);
    Ok(LabelSelector::from_requirements(all))
}

fn requirements(
    expressions: &[meta::LabelSelectorRequirement],
) -> Result<Vec<Requirement>, String> {
    let requirement = |it: &meta::LabelSelectorRequirement| {
        let values = it.values.clone().unwrap_or_default();
        Requirement::new(&it.key, operator(&it.operator)?, values).map_err(text)
    };
    expressions.iter().map(requirement).collect()
}

/// Early documents wrote `Exist`, `NotExist` and `DoesNotExists`, which are accepted too.
fn operator(name: &str) -> Result<Operator, String> {
    match name {
        "In" => Ok(Operator::In),
        "NotIn" => Ok(Operator::NotIn),
        "Exists" | "Exist" => Ok(Operator::Exists),
        "DoesNotExist" | "DoesNotExists" | "NotExist" => Ok(Operator::DoesNotExist),
        other => Err(format!("{other:?} is not a valid label selector operator")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn text(error: SelectorError) -> String {
    error.to_string()
}
