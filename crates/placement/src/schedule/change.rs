//! Whether a change of a cluster can change what a placement decides.

use bellwether_cel::Budget;

use super::placement::{Misconfigured, Rules};
use super::score::Coordinate;
use super::{Cluster, Taint, View, group, predicate};

/// What expressions may cost to find out whether one change matters.
const CHANGE_BUDGET: u64 = 10_000;

/// Everything about a cluster that a placement's decision depends on.
#[derive(PartialEq)]
struct Relevance<'a> {
    taints: &'a [Taint],
    /// The first named group that would take it.
    group: Option<usize>,
    /// Where it counts for each spread constraint.
    domains: Vec<Option<&'a str>>,
    /// What it has of the resources that are weighed.
    resources: Vec<Option<f64>>,
}

/// Whether the change of a cluster from `before` to `after`, none if it was not or is no more,
/// can change the decision about `view`. If not, the placement need not be scheduled again.
pub fn affects(view: &View<'_>, before: Option<&Cluster>, after: Option<&Cluster>) -> bool {
    let is_member = |cluster: Option<&Cluster>| cluster.is_some_and(|it| is_eligible(view, it));
    match &view.placement.rules {
        // Whether there is anything to choose from is reported all the same.
        Err(_) => is_member(before) != is_member(after),
        Ok(rules) => {
            let relevance = |cluster| Relevance::of(view, rules, cluster);
            let before_relevance = before.map_or(Ok(None), relevance);
            // What takes long to find out is found out by deciding again.
            let is_same = match (before_relevance, after.map_or(Ok(None), relevance)) {
                (Ok(before), Ok(after)) => before == after,
                _ => false,
            };
            is_member(before) != is_member(after) || !is_same
        }
    }
}

fn is_eligible(view: &View<'_>, cluster: &Cluster) -> bool {
    let asked = &view.placement.cluster_sets;
    let sets = view.sets.iter().filter(|set| {
        view.bindings.contains(&set.name) && (asked.is_empty() || asked.contains(&set.name))
    });
    !cluster.is_deleting && sets.into_iter().any(|set| set.contains(cluster))
}

impl<'a> Relevance<'a> {
    /// None for a cluster that is out of the question.
    fn of(
        view: &View<'_>,
        rules: &Rules,
        cluster: &'a Cluster,
    ) -> Result<Option<Self>, Misconfigured> {
        let mut budget = Budget::new(CHANGE_BUDGET, CHANGE_BUDGET);
        if !is_eligible(view, cluster)
            || !predicate::matches(&rules.predicates, cluster, view.scores, &mut budget)?
        {
            return Ok(None);
        }
        let resources = rules.weights.keys().filter_map(Coordinate::resource);
        Ok(Some(Self {
            taints: &cluster.taints,
            group: group::rule_of(rules, cluster),
            domains: rules.spread.iter().map(|it| it.domain(cluster)).collect(),
            resources: resources.map(|it| cluster.allocatable(it)).collect(),
        }))
    }
}
