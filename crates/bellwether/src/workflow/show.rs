//! Where workflows stand, for people.

use std::fmt::Write as _;

use bellwether_api::meta::Time;
use bellwether_api::oam::Application;
use bellwether_api::workflow::{StepPhase, StepStatus, WorkflowRun, WorkflowRunPhase};
use bellwether_apiserver::Clock;
use bellwether_ctl::explain::{next_of_step, span};
use bellwether_workflow::State;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};

use super::subject::Subject;
use crate::cli::say;

/// Lists workflows of runs and applications.
pub(super) async fn list(client: &Client, namespace: Option<&str>) -> anyhow::Result<()> {
    let api: Api<WorkflowRun> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let applications: Api<Application> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let all = ListParams::default();
    let runs = api.list(&all).await?.items.into_iter();
    let mut subjects: Vec<Subject> = runs.map(|run| Subject::Run(Box::new(run))).collect();
    let applications = applications.list(&all).await?.items.into_iter();
    subjects.extend(applications.map(|it| Subject::Application(Box::new(it))));
    let titles = ["NAMESPACE", "KIND", "NAME", "PHASE", "STEPS", "AGE"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let now = Clock::system().now();
    for subject in subjects {
        let status = subject.status();
        let done = status
            .steps
            .iter()
            .filter(|step| step.status.is_finished())
            .count();
        let phase = status
            .phase
            .map(|phase| phase.to_string())
            .unwrap_or_default();
        let metadata = subject.metadata();
        let age = metadata.creation_timestamp.as_ref();
        rows.push(vec![
            metadata.namespace.clone().unwrap_or_default(),
            subject.kind().to_owned(),
            subject.name().to_owned(),
            phase,
            format!("{done}/{}", status.steps.len().max(subject.own_steps())),
            age.map(|time| ago(time, now)).unwrap_or_default(),
        ]);
    }
    say(table(&rows).trim_end());
    Ok(())
}

/// Columns that fit their widest cell.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}   ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Shows a run and its steps as a tree.
pub(super) fn status(subject: &Subject, state: &State) {
    let status = subject.status();
    let now = Clock::system().now();
    let phase = status
        .phase
        .as_ref()
        .map_or("not begun", |phase| phase.as_str());
    let mut text = format!("{} {}: {phase}", subject.kind(), subject.name());
    if let Some(started) = &status.start_time {
        let end = status.end_time.as_ref().map_or(now, |time| time.0);
        let _ = write!(text, " for {}", span(started.0, end));
    }
    if !status.message.is_empty() {
        let _ = write!(text, "\n  {}", status.message);
    }
    let mut said = Vec::new();
    // A problem of a run that was solved stays in its conditions until it succeeds.
    let is_over =
        matches!(subject, Subject::Run(_)) && status.phase != Some(WorkflowRunPhase::Initializing);
    let problems = status.conditions.iter();
    for condition in problems.filter(|it| !is_over && it.status == "False") {
        let line = format!("\n  {}: {}", condition.reason, condition.message);
        // Conditions of different types often say the same.
        if !said.contains(&line) {
            text.push_str(&line);
            said.push(line);
        }
    }
    let count = status.steps.len();
    for (index, step) in status.steps.iter().enumerate() {
        let is_last = index + 1 == count;
        let _ = write!(
            text,
            "\n{} {}",
            if is_last { "└─" } else { "├─" },
            line(&step.status, state, now)
        );
        for (sub_index, sub) in step.sub_steps.iter().enumerate() {
            let bar = if is_last { "  " } else { "│ " };
            let branch = if sub_index + 1 == step.sub_steps.len() {
                "└─"
            } else {
                "├─"
            };
            let _ = write!(text, "\n{bar} {branch} {}", line(sub, state, now));
        }
    }
    say(&text);
}

/// One step on a line.
fn line(step: &StepStatus, state: &State, now: Timestamp) -> String {
    let phase = step.phase();
    let mut text = format!("{} ({}): {phase}", step.name, step.step_type);
    if !step.reason.is_none() && step.reason.as_str() != "Skip" {
        let _ = write!(text, "/{}", step.reason);
    }
    if let (Some(first), Some(last)) = (&step.first_execute_time, &step.last_execute_time) {
        let is_open = matches!(
            phase,
            StepPhase::Running | StepPhase::Suspending | StepPhase::Pending
        );
        let end = if is_open { now } else { last.0 };
        let _ = write!(text, ", {}", span(first.0, end));
    }
    let known = state.step(&step.name);
    if let Some(next) = known.and_then(|it| next_of_step(it, state, now)) {
        let _ = write!(text, ", {next}");
    }
    if !step.message.is_empty() {
        let _ = write!(text, ": {}", step.message.trim_end());
    }
    text
}

fn ago(time: &Time, now: Timestamp) -> String {
    span(time.0, now)
}
