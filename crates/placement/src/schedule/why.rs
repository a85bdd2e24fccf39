//! Why a cluster is chosen, or what kept it out first.

use std::fmt;

use super::cluster::Taint;
use super::{Cluster, View, eligible, predicate, score, spread, taint};

/// What became of one cluster. Prints as a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is chosen.
    Chosen {
        /// With this score.
        score: i64,
    },
    /// There is no such cluster.
    Unknown,
    /// It is being deleted.
    Deleting,
    /// Nothing can be chosen, for the reason of the placement's condition.
    NothingEligible(String),
    /// It is in none of the sets to choose from.
    NotInSets,
    /// The placement is not in order.
    Misconfigured {
        /// What is wrong.
        problem: String,
        /// Whether the cluster is among the decisions that are kept.
        is_kept: bool,
    },
    /// No predicate matches.
    Predicate {
        /// What it lacks first, for each predicate.
        missing: Vec<String>,
    },
    /// A taint is not tolerated.
    Tainted(Taint),
    /// Others are better.
    Outscored {
        /// Its score.
        score: i64,
        /// Its place among those possible, from 1.
        rank: usize,
        /// How many are asked for.
        number: usize,
        /// The lowest score that was chosen.
        last: i64,
    },
    /// It would have upset the spread.
    Spread {
        /// Its score.
        score: i64,
    },
}

/// Tells what became of the cluster called `name`.
pub fn why(view: &View<'_>, name: &str) -> Verdict {
    let Some(cluster) = view.clusters.iter().find(|it| &*it.name == name) else {
        return Verdict::Unknown;
    };
    if cluster.is_deleting {
        return Verdict::Deleting;
    }
    // Anyone who is out of the question is asked about too.
    let view = &View {
        candidates: None,
        ..*view
    };
    let clusters = match eligible(view) {
        Ok(clusters) => clusters,
        Err(nothing) => return Verdict::NothingEligible(nothing.message),
    };
    if !clusters.iter().any(|it| it.name == cluster.name) {
        return Verdict::NotInSets;
    }
    match &view.placement.rules {
        Err(problem) => Verdict::Misconfigured {
            problem: problem.to_string(),
            is_kept: view.decided.contains(name),
        },
        Ok(rules) => {
            let mut budget = predicate::budget(1);
            match predicate::matches(&rules.predicates, cluster, view.scores, &mut budget) {
                Ok(true) => {}
                Ok(false) => {
                    let missing = predicate::missing(&rules.predicates, cluster, view.scores);
                    return Verdict::Predicate { missing };
                }
                Err(problem) => {
                    return Verdict::Misconfigured {
                        problem: problem.to_string(),
                        is_kept: view.decided.contains(name),
                    };
                }
            }
            let is_decided = view.decided.contains(name);
            match taint::tolerated(&rules.tolerations, cluster, is_decided, view.now) {
                Err(taint) => Verdict::Tainted(taint.clone()),
                Ok(_) => compared(view, rules, &clusters, cluster),
            }
        }
    }
}

/// How a possible cluster stands against the others.
fn compared(
    view: &View<'_>,
    rules: &super::placement::Rules,
    clusters: &[&Cluster],
    cluster: &Cluster,
) -> Verdict {
    let mut budget = predicate::budget(clusters.len());
    let is_possible = |it: &&Cluster| {
        let is_decided = view.decided.contains(&it.name);
        predicate::matches(&rules.predicates, it, view.scores, &mut budget).unwrap_or(false)
            && taint::tolerated(&rules.tolerations, it, is_decided, view.now).is_ok()
    };
    let possible = clusters.iter().copied().filter(is_possible).collect();
    let ranked = score::rank(&rules.weights, view, possible, &mut score::Notes::default());
    let place = ranked.iter().position(|(it, _)| it.name == cluster.name);
    let Some((place, score)) = place.map(|place| (place, ranked[place].1.score)) else {
        return Verdict::Unknown;
    };
    let chosen = spread::choose(&rules.spread, ranked, rules.number);
    if chosen.iter().any(|(it, _)| it.name == cluster.name) {
        return Verdict::Chosen { score };
    }
    match (rules.number, chosen.last()) {
        (Some(number), Some((_, last))) if place >= number && last.score >= score => {
            Verdict::Outscored {
                score,
                rank: place + 1,
                number,
                last: last.score,
            }
        }
        (Some(0), None) => Verdict::Outscored {
            score,
            rank: place + 1,
            number: 0,
            last: score,
        },
        _ => Verdict::Spread { score },
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen { score } => write!(formatter, "It is chosen, with a score of {score}."),
            Self::Unknown => formatter.write_str("There is no such cluster."),
            Self::Deleting => formatter.write_str("It is being deleted."),
            Self::NothingEligible(message) => write!(formatter, "{message}."),
            Self::NotInSets => {
                formatter.write_str("It is in none of the cluster sets the placement chooses from.")
            }
            Self::Misconfigured { problem, is_kept } => {
                let kept = if *is_kept {
                    "; it was chosen before and is kept"
                } else {
                    ""
                };
                write!(
                    formatter,
                    "The placement is misconfigured: {problem}{kept}."
                )
            }
            Self::Predicate { missing } => {
                let what = missing.join("; or ");
                write!(formatter, "It does not match: {what}.")
            }
            Self::Tainted(taint) => {
                let Taint {
                    key, value, effect, ..
                } = taint;
                let equals = if value.is_empty() { "" } else { "=" };
                let effect = effect.as_str();
                write!(
                    formatter,
                    "Its taint {key}{equals}{value}:{effect} is not tolerated."
                )
            }
            Self::Outscored {
                score,
                rank,
                number,
                last,
            } => write!(
                formatter,
                "Its score of {score} is rank {rank}, and {number} are asked for; the last one \
                 chosen has {last}."
            ),
            Self::Spread { score } => write!(
                formatter,
                "Its score is {score}, but choosing it would upset the spread."
            ),
        }
    }
}
