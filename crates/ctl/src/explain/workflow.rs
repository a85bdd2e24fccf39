//! Where a workflow stands: its steps with times, what they wait for and since when, and what happens next.

use std::sync::Arc;

use bellwether_api::meta::FALSE;
use bellwether_api::workflow::names::context;
use bellwether_api::workflow::{
    StepPhase, StepReason, StepStatus, WorkflowHistory, WorkflowRun, WorkflowRunPhase,
    WorkflowRunStatus, WorkflowStepStatus,
};
use bellwether_runtime::{Cache, Selection};
use bellwether_workflow::state::StepState;
use bellwether_workflow::{Entry, Settings, State, backoff};
use jiff::Timestamp;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::application::one_line;
use super::read::{find, guess};
use super::rollout::next_line;
use super::tree::{Layout, Node, Span, Tone, Tree};
use super::{Snapshot, Source};
use crate::error::Error;

/// What a workflow is known to be at one moment, beyond its status.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// What its history says.
    pub state: State,
    /// The present; without it nothing is said that changes with time alone.
    pub now: Option<Timestamp>,
}

impl Moment {
    /// Reads the history of a workflow. Without one, what the status says has to do.
    pub(super) async fn read(source: Source<'_>, history: &str) -> Self {
        let histories: Api<WorkflowHistory> =
            Api::namespaced(source.client.clone(), source.namespace);
        let found = histories.get_opt(history).await.ok().flatten();
        let entries = found.map(|found| found.entries).unwrap_or_default();
        let entries: Result<Vec<Entry>, _> = entries.iter().map(Entry::read).collect();
        Self {
            state: State::of(&entries.unwrap_or_default()),
            now: Some(source.now),
        }
    }

    /// The same without the present.
    pub(super) fn timeless(&self) -> Self {
        Self {
            state: self.state.clone(),
            now: None,
        }
    }

    /// The steps of a workflow, each with its own steps.
    pub(super) fn steps(&self, steps: &[WorkflowStepStatus]) -> Vec<Node> {
        let node = |step: &StepStatus| Node::leaf(self.cells(step));
        let steps = steps.iter().map(|step| Node {
            children: step.sub_steps.iter().map(node).collect(),
            ..node(&step.status)
        });
        steps.collect()
    }

    fn cells(&self, step: &StepStatus) -> Vec<Span> {
        let phase = step.phase();
        let tone = match phase {
            StepPhase::Succeeded => Tone::Good,
            StepPhase::Failed => Tone::Bad,
            StepPhase::Pending | StepPhase::Skipped => Tone::Quiet,
            _ => Tone::Active,
        };
        let mut cells = vec![
            Span::plain(format!("{} ({})", step.name, step.step_type)),
            Span::new(tone, phase.to_string()),
        ];
        cells.extend(self.times(step).map(Span::plain));
        if !step.message.is_empty() {
            cells.push(Span::plain(one_line(&step.message)));
        }
        cells
    }

    /// How long a step took or takes, and what happens to it next.
    fn times(&self, step: &StepStatus) -> Option<String> {
        let now = self.now?;
        let mut texts = Vec::new();
        if let (Some(first), Some(last)) = (&step.first_execute_time, &step.last_execute_time) {
            let end = if step.is_finished() { last.0 } else { now };
            texts.push(span(first.0, end));
        }
        let known = self.state.step(&step.name);
        texts.extend(known.and_then(|known| next(known, &self.state, now)));
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

/// What happens to an open step next if nothing else does, by the times that a hub has without settings.
pub fn next(step: &StepState, state: &State, now: Timestamp) -> Option<String> {
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

/// How long something took, in the largest units.
pub fn span(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A WorkflowRun with its history, read at one moment.
#[derive(Debug, Clone)]
pub struct RunSnapshot {
    run: WorkflowRun,
    moment: Moment,
}

pub(super) async fn read(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let (client, namespace) = (source.client, source.namespace);
    let runs: Api<WorkflowRun> = Api::namespaced(client.clone(), namespace);
    let Some(run) = find(&runs, name).await? else {
        let guess = guess(&runs, name, "; see bellwether workflow list -A").await;
        return Err(Error::Usage(format!(
            "there is no workflow run {name} in namespace {namespace}{guess}"
        )));
    };
    let moment = Moment::read(source, &format!("workflowrun-{name}")).await;
    Ok(Snapshot::Run(Box::new(RunSnapshot { run, moment })))
}

/// Notifies of changes of a WorkflowRun, until the result is dropped.
pub fn run_triggers(
    client: &Client,
    namespace: &str,
    name: &str,
    changed: &Arc<Notify>,
) -> Cache<WorkflowRun> {
    let runs: Api<WorkflowRun> = Api::namespaced(client.clone(), namespace);
    let selection = Selection::fields(&format!("metadata.name={name}"));
    let changed = Arc::clone(changed);
    Cache::start(runs, selection, move |_| changed.notify_one())
}

impl RunSnapshot {
    fn name(&self) -> &str {
        self.run.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.run.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn told(&self) -> WorkflowRunStatus {
        self.run.status.clone().unwrap_or_default()
    }

    /// Returns true if the run is finished.
    pub fn is_complete(&self) -> bool {
        self.told().finished
    }

    /// The page of `status`.
    pub fn status(&self) -> Tree {
        self.status_at(&self.moment)
    }

    /// The lines of the page without times that run.
    pub fn lines(&self) -> Vec<String> {
        let text = self.status_at(&self.moment.timeless()).render(false);
        text.lines().map(str::to_owned).collect()
    }

    fn status_at(&self, moment: &Moment) -> Tree {
        let told = self.told();
        let phase = told.phase.as_ref();
        let tone = match phase {
            Some(WorkflowRunPhase::Succeeded) => Tone::Good,
            Some(WorkflowRunPhase::Failed | WorkflowRunPhase::Terminated) => Tone::Bad,
            None => Tone::Quiet,
            Some(_) => Tone::Active,
        };
        let label = format!("workflow run {}/{}", self.namespace(), self.name());
        let phase = phase.map_or("not begun", |phase| phase.as_str());
        let mut title = vec![Span::new(Tone::Title, label), Span::new(tone, phase)];
        if let (Some(started), Some(now)) = (&told.start_time, moment.now) {
            let end = told.end_time.as_ref().map_or(now, |time| time.0);
            title.push(Span::plain(format!("for {}", span(started.0, end))));
        }
        let reasons = self.reasons().into_iter();
        let mut notes: Vec<Vec<Span>> = reasons
            .map(|reason| vec![Span::new(Tone::Active, reason)])
            .collect();
        notes.extend(next_line(&self.next()));
        Tree {
            title,
            nodes: moment.steps(&told.steps),
            notes,
            layout: Layout::Branches,
        }
    }

    /// What a person should know besides the steps.
    fn reasons(&self) -> Vec<String> {
        let told = self.told();
        // A problem that was solved stays in the conditions until the run succeeds.
        let is_stuck = told.phase == Some(WorkflowRunPhase::Initializing);
        let problems = told.conditions.iter();
        let problems = problems.filter(|known| is_stuck && known.status == FALSE);
        let problems = problems.map(|known| format!("{}: {}", known.reason, known.message));
        let message = Some(told.message.clone()).filter(|text| !text.is_empty());
        message.into_iter().chain(problems).collect()
    }

    fn next(&self) -> Vec<String> {
        let object = match self.namespace() {
            "default" => self.name().to_owned(),
            namespace => format!("{} -n {namespace}", self.name()),
        };
        let told = self.told();
        match told.phase {
            Some(WorkflowRunPhase::Suspending) => {
                vec![format!("bellwether workflow resume {object}")]
            }
            Some(WorkflowRunPhase::Failed) => {
                vec![format!("bellwether workflow history {object}")]
            }
            _ => Vec::new(),
        }
    }

    /// The same for programs.
    pub fn document(&self) -> Value {
        let told = self.told();
        json!({
            "name": self.name(), "namespace": self.namespace(), "phase": told.phase,
            "finished": told.finished, "startTime": told.start_time, "endTime": told.end_time,
            "steps": told.steps, "reasons": self.reasons(), "next": self.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn what_happens_next_to_an_open_step_is_told() {
        let now = at("2026-01-01T00:00:10Z");
        let before = at("2026-01-01T00:00:08Z");
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

    fn snapshot() -> RunSnapshot {
        let step = json!({"name": "web", "id": "x", "type": "apply-deployment", "phase": "running",
            "reason": "Wait", "message": "0 of 1 ready", "firstExecuteTime": "2026-01-01T00:00:00Z",
            "lastExecuteTime": "2026-01-01T00:00:00Z"});
        let run = json!({"metadata": {"name": "r", "namespace": "shop"}, "spec": {},
            "status": {"status": "executing", "mode": {}, "suspend": false, "terminated": false,
                "finished": false, "startTime": "2026-01-01T00:00:00Z", "steps": [step]}});
        let mut state = State::default();
        state.steps.push(StepState {
            name: "web".to_owned(),
            phase: StepPhase::Running,
            reason: StepReason::Wait,
            since: Some(at("2026-01-01T00:00:00Z")),
            ..StepState::default()
        });
        RunSnapshot {
            run: serde_json::from_value(run).unwrap(),
            moment: Moment {
                state,
                now: Some(at("2026-01-01T00:00:20Z")),
            },
        }
    }

    #[test]
    fn a_run_is_a_tree_with_times() {
        let text = snapshot().status().render(false);
        let first = text.lines().next().unwrap();
        assert!(
            first.contains("executing") && first.contains("for 20s"),
            "{text}"
        );
        assert!(
            text.contains("20s, waits since 20s, looks again in") && text.contains("0 of 1 ready"),
            "{text}"
        );
    }

    #[test]
    fn lines_do_not_change_with_time_alone() {
        let mut later = snapshot();
        later.moment.now = Some(at("2026-01-01T00:01:20Z"));
        assert_eq!(later.lines(), snapshot().lines());
        assert_ne!(
            later.status().render(false),
            snapshot().status().render(false)
        );
    }
}
