//! The events of a placement after its decisions have been written.

use bellwether_api::cluster::PlacementStatus;
use bellwether_api::cluster::names::{condition, event};
use bellwether_api::meta::{TRUE, condition as find};
use bellwether_placement::schedule::{Decision, Write};
use bellwether_runtime::EventDraft;

use super::decide::Plan;

/// How many objects a sentence names.
const MOST_NAMES: usize = 3;
/// How long a list of scores may be, and what stands for the rest of a longer one.
const LONGEST_SCORES: usize = 1000;
const MORE_SCORES: &str = "......";
/// So many pairs of a name and a score are never shorter than that.
const MOST_SCORES: usize = LONGEST_SCORES / 4;

/// What carrying out a plan was.
pub(super) fn of(plan: &Plan) -> Vec<EventDraft> {
    let metadata = &plan.placement.metadata;
    let placement = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let (mut created, mut updated, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for write in plan.steps.iter().flatten() {
        match write {
            Write::Create(object) => created.push(object.name.as_str()),
            Write::Update(object) | Write::Relabel(object) => updated.push(object.name.as_str()),
            Write::Delete(name) => deleted.push(name.as_str()),
        }
    }
    // Objects that are there for a transition alone are nobody's business.
    let passing: Vec<&str> = created
        .iter()
        .copied()
        .filter(|it| deleted.contains(it))
        .collect();
    let mut happenings: Vec<EventDraft> = [
        (event::DECISION_CREATE, "created with", created),
        (event::DECISION_UPDATE, "updated with", updated),
        (event::DECISION_DELETE, "deleted with", deleted),
    ]
    .into_iter()
    .filter_map(|(reason, what, mut names)| {
        names.retain(|name| !passing.contains(name));
        let subject = subject(&names)?;
        let message = format!("{subject} {what} placement {placement} in namespace {namespace}");
        Some(EventDraft::normal(reason, message))
    })
    .collect();
    happenings.extend(scores(&plan.scores));
    happenings.extend(misconfigured(plan));
    happenings
}

/// The beginning of a sentence about decisions.
fn subject(names: &[&str]) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(format!("Decision {name} is")),
        _ => {
            let shown = names[..names.len().min(MOST_NAMES)].join(", ");
            let more = names.len().saturating_sub(MOST_NAMES);
            let rest = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            Some(format!("Decisions {shown}{rest} are"))
        }
    }
}

/// The scores that clusters were chosen by, sorted by name.
fn scores(scores: &[Decision]) -> Option<EventDraft> {
    let mut sorted: Vec<&Decision> = scores.iter().collect();
    if sorted.len() > MOST_SCORES {
        sorted.select_nth_unstable_by(MOST_SCORES, |one, other| one.cluster.cmp(&other.cluster));
        sorted.truncate(MOST_SCORES + 1);
    }
    sorted.sort_unstable_by(|one, other| one.cluster.cmp(&other.cluster));
    let mut message = String::new();
    for Decision { cluster, score } in sorted {
        let pair = format!("{cluster}:{score} ");
        if message.len() + pair.len() > LONGEST_SCORES - MORE_SCORES.len() {
            message.push_str(MORE_SCORES);
            break;
        }
        message.push_str(&pair);
    }
    (!message.is_empty()).then(|| EventDraft::normal(event::SCORE_UPDATE, message))
}

/// That a placement has just become one that cannot be understood, or for another reason.
fn misconfigured(plan: &Plan) -> Option<EventDraft> {
    let message = |status: &PlacementStatus| {
        let said = find(&status.conditions, condition::PLACEMENT_MISCONFIGURED)?;
        (said.status == TRUE).then(|| said.message.clone())
    };
    let now = plan.status.as_ref().and_then(message)?;
    let before = plan.placement.status.as_ref().and_then(message);
    (before.as_ref() != Some(&now)).then(|| EventDraft::warning(event::MISCONFIGURED, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: usize) -> String {
        let score = |number: usize| Decision {
            cluster: format!("cluster-{number:04}").into(),
            score: 200,
        };
        let best_first: Vec<Decision> = (0..count).rev().map(score).collect();
        scores(&best_first).map_or_else(String::new, |it| it.message)
    }

    #[test]
    fn scores_are_told_by_name_and_cut_when_there_are_many() {
        assert_eq!(told(0), "");
        assert_eq!(told(2), "cluster-0000:200 cluster-0001:200 ");
        for count in [100, 250, 251, 5000] {
            let told = told(count);
            assert!(
                told.starts_with("cluster-0000:200 cluster-0001:200 "),
                "{told}"
            );
            assert!(told.ends_with("cluster-0057:200 ......"), "{told}");
            assert!(told.len() <= LONGEST_SCORES);
        }
    }
}
