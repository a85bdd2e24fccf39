//! Where workflows stand, for people.

use std::fmt::Write as _;

use bellwether_api::meta::Time;
use bellwether_api::oam::Application;
use bellwether_api::workflow::names::context;
use bellwether_api::workflow::{StepPhase, StepReason, StepStatus, WorkflowRun};
use bellwether_apiserver::Clock;
use bellwether_workflow::state::StepState;
use bellwether_workflow::{Settings, State, backoff};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

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
    for condition in status.conditions.iter().filter(|it| it.status == "False") {
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
    if let Some(next) = state.step(&step.name).and_then(|it| next(it, state, now)) {
        let _ = write!(text, ", {next}");
    }
    if !step.message.is_empty() {
        let _ = write!(text, ": {}", step.message.trim_end());
    }
    text
}

/// What happens to an open step next if nothing else does, by the times that a hub has without settings.
fn next(step: &StepState, state: &State, now: Timestamp) -> Option<String> {
    let settings = Settings::default();
    match step.phase {
        StepPhase::Failed if !step.is_finished() => {
            let last = step.last_execute?;
            let delay = backoff::delay(step.failures.max(1), settings.max_failed_backoff);
            let times = match step.failures {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            };
            let wait = span(now, backoff::add(last, delay));
            Some(format!("failed {times}, next try in {wait}"))
        }
        StepPhase::Running if step.reason == StepReason::Wait => {
            let since = step.since?;
            let next = backoff::next_after(since, now, settings.max_wait_backoff);
            let (since, wait) = (span(since, now), span(now, next));
            Some(format!(
                "waits since {since}, looks again in {wait} at the latest"
            ))
        }
        StepPhase::Suspending => {
            let time = state.context.get(&context::resume_time(&step.id))?;
            let wait = span(now, time.parse().ok()?);
            Some(format!("goes on in {wait}"))
        }
        _ => None,
    }
}

fn ago(time: &Time, now: Timestamp) -> String {
    span(time.0, now)
}

/// How long something took, in the largest units.
fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Shows the logs of a step: where they are is in the context of the run.
pub(super) async fn logs(
    client: &Client,
    namespace: &str,
    subject: &Subject,
    step: Option<&str>,
) -> anyhow::Result<()> {
    let name = subject.backend().map_or_else(
        || context::config_map(subject.name()),
        |backend| backend.name,
    );
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = maps.get_opt(&name).await?.unwrap_or_default();
    let text = map
        .data
        .unwrap_or_default()
        .remove(context::LOG_CONFIG)
        .unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let first = || config.as_object().and_then(|steps| steps.keys().next());
    let step = step
        .map(str::to_owned)
        .or_else(|| first().cloned())
        .ok_or_else(|| anyhow::anyhow!("no step of {} has logs", subject.name()))?;
    let source = &config[&step]["source"];
    if let Some(url) = source["url"].as_str() {
        say(&format!("the log of step {step} is at {url}"));
        return Ok(());
    }
    let Some(resources) = source["resources"].as_array() else {
        anyhow::bail!("no log config found for step {step}");
    };
    for resource in resources {
        let namespace = resource["namespace"].as_str().unwrap_or(namespace);
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let labels = resource["labelSelector"].as_object().into_iter().flatten();
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        let found = match resource["name"].as_str() {
            Some(name) => pods.get_opt(name).await?.into_iter().collect(),
            None => {
                pods.list(&ListParams::default().labels(&labels.join(",")))
                    .await?
                    .items
            }
        };
        for pod in found {
            let log = pods.logs(&pod.name_any(), &LogParams::default()).await?;
            say(&format!("=== {}\n{}", pod.name_any(), log.trim_end()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_next_to_an_open_step_is_told() {
        let now: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let before: Timestamp = "2026-01-01T00:00:08Z".parse().unwrap();
        let mut state = State::default();
        let failed = StepState {
            phase: StepPhase::Failed,
            reason: StepReason::Execute,
            failures: 8,
            last_execute: Some(before),
            ..StepState::default()
        };
        let told = next(&failed, &state, now);
        assert_eq!(told.as_deref(), Some("failed 8 times, next try in 4s"));
        let waiting = StepState {
            phase: StepPhase::Running,
            reason: StepReason::Wait,
            since: Some(before),
            ..StepState::default()
        };
        let told = next(&waiting, &state, now);
        assert_eq!(
            told.as_deref(),
            Some("waits since 2s, looks again in 1s at the latest")
        );
        let suspended = StepState {
            id: "x".to_owned(),
            phase: StepPhase::Suspending,
            ..StepState::default()
        };
        assert_eq!(next(&suspended, &state, now), None);
        let until = "2026-01-01T00:01:40Z".to_owned();
        state.context.insert(context::resume_time("x"), until);
        let told = next(&suspended, &state, now);
        assert_eq!(told.as_deref(), Some("goes on in 1m30s"));
    }
}
