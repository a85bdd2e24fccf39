//! What is told about a placement when its decisions have been written.

use bellwether_api::cluster::PlacementStatus;
use bellwether_api::cluster::names::{condition, event};
use bellwether_api::meta::{TRUE, condition as find};
use bellwether_placement::schedule::Write;

use super::decide::Plan;
use crate::events::{Happening, Tone};

/// How many objects a sentence names.
const MOST_NAMES: usize = 3;

/// What carrying out a plan was.
pub(super) fn of(plan: &Plan) -> Vec<Happening> {
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
    let mut happenings: Vec<Happening> = [
        (event::DECISION_CREATE, "created with", created),
        (event::DECISION_UPDATE, "updated with", updated),
        (event::DECISION_DELETE, "deleted with", deleted),
    ]
    .into_iter()
    .filter_map(|(reason, what, mut names)| {
        names.retain(|name| !passing.contains(name));
        let subject = subject(&names)?;
        Some(Happening {
            tone: Tone::Normal,
            reason,
            message: format!("{subject} {what} placement {placement} in namespace {namespace}"),
        })
    })
    .collect();
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

/// That a placement has just become one that cannot be understood, or for another reason.
fn misconfigured(plan: &Plan) -> Option<Happening> {
    let message = |status: &PlacementStatus| {
        let said = find(&status.conditions, condition::PLACEMENT_MISCONFIGURED)?;
        (said.status == TRUE).then(|| said.message.clone())
    };
    let now = plan.status.as_ref().and_then(message)?;
    let before = plan.placement.status.as_ref().and_then(message);
    (before.as_ref() != Some(&now)).then_some(Happening {
        tone: Tone::Warning,
        reason: event::MISCONFIGURED,
        message: now,
    })
}
