//! How a policy is rolled out: to all clusters at once, or step by step.

use bellwether_api::policy::Policy;
use bellwether_api::policy::names::annotation;
use bellwether_placement::rollout::{Hold, Kind, Strategy};

use crate::propagation::{has_two_forms, is_enforced};

/// How a policy is rolled out.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// True if the policy changes clusters.
    pub is_enforced: bool,
    /// True if clusters get a version as inform until it is their turn.
    pub is_progressive: bool,
    /// The strategy, as far as it can be understood.
    pub strategy: Strategy,
    /// What is wrong with the strategy. Nobody is released then.
    pub problem: Option<String>,
    /// Why no further cluster is released, if somebody decided so.
    pub hold: Option<Hold>,
}

impl Mode {
    /// Reads how a root policy is rolled out. Policies that are the same as inform go to all clusters at once.
    pub fn of(root: &Policy) -> Self {
        let written = root.spec.rollout_strategy.as_ref();
        let written = written.filter(|_| has_two_forms(&root.spec));
        let read = written.map(Strategy::try_from).transpose();
        let (strategy, problem) = match read {
            Ok(strategy) => (strategy.unwrap_or_default(), None),
            Err(error) => (Strategy::default(), Some(error.to_string())),
        };
        Self {
            is_enforced: is_enforced(&root.spec),
            is_progressive: problem.is_some() || strategy.kind != Kind::All,
            strategy,
            problem,
            hold: is_paused(root).then_some(Hold::Paused),
        }
    }

    /// True if a cluster may take only so long.
    pub fn has_deadline(&self) -> bool {
        !matches!(self.strategy.progress_deadline.as_str(), "" | "None")
    }
}

fn is_paused(root: &Policy) -> bool {
    let annotations = root.metadata.annotations.as_ref();
    let value = annotations.and_then(|it| it.get(annotation::ROLLOUT_PAUSED));
    value.is_some_and(|value| value != "false")
}
