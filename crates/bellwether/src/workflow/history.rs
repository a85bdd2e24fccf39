//! What happened in a workflow, from its history.

use std::fmt::Write as _;

use anyhow::Context as _;
use bellwether_api::workflow::WorkflowHistory;
use bellwether_workflow::{Entry, Event, State, project};
use kube::{Api, Client};

use super::subject::Subject;
use crate::cli::say;

async fn load(client: &Client, namespace: &str, subject: &Subject) -> anyhow::Result<Vec<Entry>> {
    let api: Api<WorkflowHistory> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(&subject.history()).await?;
    let name = subject.name();
    let found = found
        .with_context(|| format!("nothing is recorded of {name:?} in namespace {namespace:?}"))?;
    let entries: Result<Vec<Entry>, _> = found.entries.iter().map(Entry::read).collect();
    Ok(entries?)
}

/// What is true after everything that is recorded; nothing where nothing can be read.
pub(super) async fn state(client: &Client, namespace: &str, subject: &Subject) -> State {
    let entries = load(client, namespace, subject).await;
    State::of(&entries.unwrap_or_default())
}

/// Lists what happened.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
    subject: &Subject,
) -> anyhow::Result<()> {
    let mut text = String::new();
    for entry in load(client, namespace, subject).await? {
        let _ = writeln!(
            text,
            "{:>5}  {}  {}",
            entry.seq,
            entry.time,
            describe(&entry.event)
        );
    }
    say(text.trim_end());
    Ok(())
}

/// Shows the steps after each entry that changed any.
pub(super) async fn replay(
    client: &Client,
    namespace: &str,
    subject: &Subject,
    until: Option<u64>,
) -> anyhow::Result<()> {
    let entries = load(client, namespace, subject).await?;
    let mut state = State::default();
    let mut text = String::new();
    for entry in entries
        .iter()
        .filter(|entry| until.is_none_or(|until| entry.seq <= until))
    {
        state.apply(entry);
        let _ = writeln!(
            text,
            "{:>5}  {}  {}",
            entry.seq,
            entry.time,
            describe(&entry.event)
        );
        let steps: Vec<String> = state
            .steps
            .iter()
            .map(|step| format!("{}={}", step.name, step.phase))
            .collect();
        let _ = writeln!(
            text,
            "       {}: {}",
            project::phase(&state),
            steps.join(" ")
        );
    }
    say(text.trim_end());
    Ok(())
}

/// An event in a line. Results of actions are left out: they may be secret.
fn describe(event: &Event) -> String {
    match event {
        Event::RunStarted { .. } => "the run began".to_owned(),
        Event::StepChanged(change) => {
            let mut text = format!("step {} is {}", change.step, change.phase);
            if !change.reason.is_none() {
                let _ = write!(text, "/{}", change.reason);
            }
            if change.failures > 0 {
                let _ = write!(text, " (failed {} times)", change.failures);
            }
            if !change.message.is_empty() {
                let _ = write!(text, ": {}", change.message.trim_end());
            }
            text
        }
        Event::ActionIntent { path, action, .. } => {
            format!("{action} at {path} is about to be carried out")
        }
        Event::ActionDone {
            path,
            error: Some(error),
            ..
        } => format!("action at {path} failed: {error}"),
        Event::ActionDone { path, .. } => format!("action at {path} was carried out"),
        Event::ActionAmbiguous { path, .. } => format!(
            "action at {path} may have been carried out before: the process ended before its result was recorded"
        ),
        Event::VarSet { name, .. } => format!("output {name} was set"),
        Event::ContextSet { key, .. } => format!("context {key} was set"),
        Event::OutputRecorded { step, .. } => format!("the output of step {step} was recorded"),
        Event::ResourceRecorded { step, resource } => format!(
            "step {step} consists of {} {}",
            resource.kind, resource.name
        ),
        Event::Suspended { by, .. } => format!("suspended ({by:?})"),
        Event::Resumed { by, step } => {
            let step = step.as_deref().filter(|step| !step.is_empty());
            format!("resumed {} ({by:?})", step.unwrap_or("all steps"))
        }
        Event::Terminated { by, message } => format!("ended early ({by:?}) {message}")
            .trim_end()
            .to_owned(),
        Event::Broken { message } => format!("a step ended the workflow: {message}"),
        Event::Restarted { by, steps, .. } if steps.is_empty() => format!("restarted ({by:?})"),
        Event::Restarted { by, steps, .. } => format!("restarted {} ({by:?})", steps.join(", ")),
        Event::RolledBack { to } => format!("objects of {to} were applied again"),
        Event::RollbackRequested { by } => format!("goes back to an earlier version ({by:?})"),
        Event::MessageSet { message } => format!("message: {message}"),
        Event::RunFinished { phase } => format!("the run is {phase}"),
        Event::Snapshot { state } if state.finished.is_some() && !state.revision.is_empty() => {
            format!("back to {}, which was delivered before", state.revision)
        }
        Event::Snapshot { .. } => "earlier entries were left out".to_owned(),
    }
}
