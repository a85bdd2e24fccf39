//! What is recorded instead of entries that do not fit into a log: that steps failed for good.
//!
//! Actions that were carried out are never forgotten, for they would be repeated. What is left out otherwise is decided
//! again by the next pass.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::workflow::{StepPhase, StepReason};
use bellwether_workflow::event::{Actor, StepChange};
use bellwether_workflow::{Entry, Event, Spec, State};
use jiff::Timestamp;

/// A result is to blame if it has more bytes than this.
const SMALL_RESULT: usize = 16 * 1024;

/// Entries that do not fit.
#[derive(Debug)]
pub struct Refused<'a> {
    /// The workflow.
    pub spec: &'a Spec,
    /// The log that they were to follow.
    pub log: &'a [Entry],
    /// The entries.
    pub entries: &'a [Entry],
    /// Names of the steps whose actions were carried out, by identity.
    pub steps: &'a BTreeMap<String, String>,
}

/// The entries that are written instead: small ones, by which the steps that are to blame fail.
pub fn replacement(refused: &Refused<'_>, now: Timestamp) -> Vec<Entry> {
    let blamed = blamed(refused);
    let mut state = State::of(refused.log);
    let mut written: Vec<Entry> = Vec::new();
    let mut push = |state: &mut State, event: Event| {
        let entry = Entry {
            seq: state.seq + 1,
            time: now,
            event,
        };
        state.apply(&entry);
        written.push(entry);
    };
    for entry in refused.entries {
        if let Some(event) = kept(&entry.event, refused.steps, &blamed) {
            push(&mut state, event);
        }
    }
    if !state.terminated {
        let by = Actor::Engine;
        let message = String::new();
        push(&mut state, Event::Terminated { by, message });
    }
    for step in &blamed {
        let change = failed(refused, &state, step);
        push(&mut state, Event::StepChanged(Box::new(change)));
    }
    written
}

/// The names of the steps that fail: those with large results, otherwise all that something is to be recorded of.
fn blamed(refused: &Refused<'_>) -> BTreeSet<String> {
    let done = refused
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::ActionDone { id, result, .. } => {
                let size = result.as_ref().map_or(0, |result| result.to_string().len());
                Some((refused.steps.get(id)?, size))
            }
            _ => None,
        });
    let done: Vec<(&String, usize)> = done.collect();
    let large = done.iter().filter(|(_, size)| *size > SMALL_RESULT);
    let large: BTreeSet<String> = large.map(|(step, _)| (*step).clone()).collect();
    if !large.is_empty() {
        return large;
    }
    let changed = refused
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::StepChanged(change) if change.executed && change.step_type != GROUP => {
                Some(change.step.clone())
            }
            _ => None,
        });
    let carried_out = done.iter().map(|(step, _)| (*step).clone());
    changed.chain(carried_out).collect()
}

/// The type of groups, whose status follows from that of their steps.
const GROUP: &str = bellwether_api::workflow::names::step_type::STEP_GROUP;

/// What is kept of an event that does not fit together with others.
fn kept(
    event: &Event,
    steps: &BTreeMap<String, String>,
    blamed: &BTreeSet<String>,
) -> Option<Event> {
    match event {
        Event::ActionDone { id, path, .. } => {
            let is_blamed = steps.get(id).is_none_or(|step| blamed.contains(step));
            Some(if is_blamed {
                Event::ActionDone {
                    id: id.clone(),
                    path: path.clone(),
                    result: None,
                    error: Some(message()),
                }
            } else {
                event.clone()
            })
        }
        Event::StepChanged(change) if change.reason != StepReason::Terminate => None,
        Event::StepChanged(change) if blamed.contains(&change.step) => None,
        // The next pass decides them again. Intents were to be recorded before their actions, which are not begun.
        Event::VarSet { .. }
        | Event::ContextSet { .. }
        | Event::OutputRecorded { .. }
        | Event::RunFinished { .. }
        | Event::ActionIntent { .. } => None,
        other => Some(other.clone()),
    }
}

fn failed(refused: &Refused<'_>, state: &State, step: &str) -> StepChange {
    let known = state.step(step);
    let declared = refused.spec.step(step);
    let id = refused.steps.iter().find(|(_, name)| *name == step);
    let id = id.map(|(id, _)| id.clone());
    let recorded = refused.entries.iter().find_map(|entry| match &entry.event {
        Event::StepChanged(change) if change.step == step => Some(change),
        _ => None,
    });
    let next = state.steps.iter().map(|step| step.order + 1).max();
    StepChange {
        step: step.to_owned(),
        id: known
            .map(|known| known.id.clone())
            .or_else(|| recorded.map(|change| change.id.clone()))
            .or(id)
            .unwrap_or_default(),
        step_type: declared.map_or_else(String::new, |(step, _)| step.step_type.clone()),
        group: declared.and_then(|(_, group)| Some(group?.base.name.clone())),
        phase: StepPhase::Failed,
        reason: StepReason::Action,
        message: message(),
        failures: known.map_or(0, |known| known.failures),
        order: known
            .map(|known| known.order)
            .or_else(|| recorded.map(|change| change.order))
            .or(next)
            .unwrap_or_default(),
        executed: true,
    }
}

/// What the status of a step says whose results do not fit.
fn message() -> String {
    "what came of the actions of this step is too large to be recorded; they are not repeated"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn done(id: &str, bytes: usize) -> Event {
        Event::ActionDone {
            id: id.to_owned(),
            path: "call".to_owned(),
            result: Some(json!({"body": "x".repeat(bytes)})),
            error: None,
        }
    }

    fn changed(step: &str, phase: StepPhase) -> Event {
        Event::StepChanged(Box::new(StepChange {
            step: step.to_owned(),
            id: format!("id-{step}"),
            step_type: "request".to_owned(),
            group: None,
            phase,
            reason: StepReason::None,
            message: String::new(),
            failures: 0,
            order: 3,
            executed: true,
        }))
    }

    fn var(value: Value) -> Event {
        let name = "v".to_owned();
        Event::VarSet { name, value }
    }

    /// Events that are written instead, after a log that has begun; the state after them.
    fn check(events: Vec<Event>, expected: &[&str]) -> State {
        let entry = |(seq, event)| Entry {
            seq,
            time: Timestamp::UNIX_EPOCH,
            event,
        };
        let mode = bellwether_api::workflow::WorkflowExecuteMode::default();
        let revision = String::new();
        let log = vec![entry((1, Event::RunStarted { mode, revision }))];
        let entries: Vec<Entry> = (2..).zip(events).map(entry).collect();
        let steps: BTreeMap<String, String> = ["a", "b"]
            .map(|step| (format!("id-{step}"), step.to_owned()))
            .into();
        let refused = Refused {
            spec: &Spec::default(),
            log: &log,
            entries: &entries,
            steps: &steps,
        };
        let written = replacement(&refused, Timestamp::UNIX_EPOCH);
        let names: Vec<String> = written
            .iter()
            .map(|entry| match &entry.event {
                Event::ActionDone { id, error, .. } => format!("done {id} {}", error.is_some()),
                Event::StepChanged(change) => format!("{} {}", change.step, change.phase),
                other => serde_json::to_value(other).unwrap()["event"].to_string(),
            })
            .collect();
        assert_eq!(names, expected);
        State::of(log.iter().chain(&written))
    }

    #[test]
    fn a_step_with_a_large_result_fails_and_its_action_is_recorded() {
        let events = vec![
            done("id-a", 100_000),
            done("id-b", 10),
            changed("a", StepPhase::Succeeded),
            changed("b", StepPhase::Succeeded),
        ];
        let expected = [
            "done id-a true",
            "done id-b false",
            "\"Terminated\"",
            "a failed",
        ];
        let state = check(events, &expected);
        assert!(state.step("a").unwrap().is_finished());
        let kept = &state.actions["id-b/call"];
        assert!(kept.result.is_some(), "its step goes on with it");
    }

    #[test]
    fn without_a_large_result_all_steps_of_the_entries_fail() {
        let events = vec![
            Event::MessageSet {
                message: "m".to_owned(),
            },
            var(json!("x".repeat(100))),
            changed("a", StepPhase::Succeeded),
        ];
        check(events, &["\"MessageSet\"", "\"Terminated\"", "a failed"]);
    }
}
