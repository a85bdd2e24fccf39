//! How a policy is rolled out: to all clusters at once, or step by step.

use bellwether_api::policy::Policy;
use bellwether_placement::rollout::{Kind, Strategy};

use crate::propagation::is_enforced;

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
}

impl Mode {
    /// Reads how a root policy is rolled out. Policies that only inform go to all clusters at once.
    pub fn of(root: &Policy) -> Self {
        let is_enforced = is_enforced(&root.spec);
        let written = root.spec.rollout_strategy.as_ref().filter(|_| is_enforced);
        let read = written.map(Strategy::try_from).transpose();
        let (strategy, problem) = match read {
            Ok(strategy) => (strategy.unwrap_or_default(), None),
            Err(error) => (Strategy::default(), Some(error.to_string())),
        };
        Self {
            is_enforced,
            is_progressive: problem.is_some() || strategy.kind != Kind::All,
            strategy,
            problem,
        }
    }

    /// True if a cluster may take only so long.
    pub fn has_deadline(&self) -> bool {
        !matches!(self.strategy.progress_deadline.as_str(), "" | "None")
    }
}
