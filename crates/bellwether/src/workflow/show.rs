//! Where workflows stand, for people.

use std::fmt::Write as _;

use bellwether_api::meta::Time;
use bellwether_api::oam::Application;
use bellwether_api::workflow::names::context;
use bellwether_api::workflow::{StepPhase, StepStatus, WorkflowRun};
use bellwether_apiserver::Clock;
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
            format!("{done}/{}", status.steps.len()),
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
pub(super) fn status(subject: &Subject) {
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
    for condition in &status.conditions {
        if condition.status == "False" {
            let _ = write!(text, "\n  {}: {}", condition.reason, condition.message);
        }
    }
    let count = status.steps.len();
    for (index, step) in status.steps.iter().enumerate() {
        let is_last = index + 1 == count;
        let _ = write!(
            text,
            "\n{} {}",
            if is_last { "└─" } else { "├─" },
            line(&step.status, now)
        );
        for (sub_index, sub) in step.sub_steps.iter().enumerate() {
            let bar = if is_last { "  " } else { "│ " };
            let branch = if sub_index + 1 == step.sub_steps.len() {
                "└─"
            } else {
                "├─"
            };
            let _ = write!(text, "\n{bar} {branch} {}", line(sub, now));
        }
    }
    say(&text);
}

/// One step on a line.
fn line(step: &StepStatus, now: Timestamp) -> String {
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
    if !step.message.is_empty() {
        let _ = write!(text, ": {}", step.message.trim_end());
    }
    text
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
