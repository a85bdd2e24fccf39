//! One pass over a workflow: load, decide, record, carry out.

use std::collections::BTreeMap;

use bellwether_runtime::{Clock, compute};
use bellwether_workflow::config::Configuration;
use bellwether_workflow::edit::{self, Seen};
use bellwether_workflow::{Done, Entry, Pass, Plan, Request, Spec, State, Woken};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::history::{self, Histories, History, HistoryError, Refused};
use super::providers::Providers;
use super::watches::Looked;
use super::{OwnActions, Owner, WorkflowOptions};

/// Why a pass could not be made. What was recorded stays recorded.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The log cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// What came of a pass.
#[derive(Debug)]
pub struct Outcome {
    /// What is true now.
    pub state: State,
    /// Whether the pass recorded anything.
    pub is_changed: bool,
    /// When to make the next one if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// Objects that steps looked at which were carried out in this pass and are not finished, by step.
    pub looked: BTreeMap<String, Vec<Looked>>,
    /// Evaluated templates by identity of the step, if they are kept.
    pub debug: BTreeMap<String, String>,
}

impl Outcome {
    /// True for a step that is met and not finished.
    pub fn is_open(&self, step: &str) -> bool {
        let step = self.state.step(step);
        step.is_some_and(|step| !step.is_finished())
    }
}

/// What carries out workflows.
pub struct Engine {
    client: Client,
    clock: Clock,
    options: WorkflowOptions,
    histories: Histories,
    providers: Providers,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine for the workflows of a hub.
    pub fn new(client: &Client, clock: &Clock, options: &WorkflowOptions) -> Self {
        Self {
            client: client.clone(),
            clock: clock.clone(),
            options: options.clone(),
            histories: Histories::default(),
            providers: Providers::new(client, clock, options),
        }
    }

    /// Makes a pass over a workflow. `seen` is what its status says.
    pub async fn pass(
        &self,
        owner: &Owner,
        spec: &Spec,
        seen: &Seen,
        woken: Woken,
        last_pass: Option<Timestamp>,
        own: &dyn OwnActions,
    ) -> Result<Outcome, PassError> {
        let mut history = self.histories.load(&self.client, owner).await?;
        let mut buffered: Vec<Entry> = Vec::new();
        let edits = edit::events(seen, &history.entries, spec);
        let woken = if edits.is_empty() { woken } else { Woken::All };
        let state = State::of(&history.entries);
        let mut pass = Pass::new(spec, &self.options.settings, state, woken).after(last_pass);
        if owner.debug {
            pass = pass.debug();
        }
        for event in edits {
            pass.record(event, self.clock.now());
        }
        let mut looked: BTreeMap<String, Vec<Looked>> = BTreeMap::new();
        let mut is_changed = false;
        let mut running = FuturesUnordered::new();
        // Which step an action belongs to, by its identity in the log.
        let mut carried_out: BTreeMap<String, String> = BTreeMap::new();
        let wake_at = loop {
            let Plan {
                append,
                actions,
                is_durable,
                settled,
            } = compute(|| pass.decide(self.clock.now())).await;
            is_changed |= !append.is_empty();
            buffered.extend(append);
            if is_durable || settled.is_some() {
                let client = &self.client;
                let entries = std::mem::take(&mut buffered);
                let appended = self.histories.append(client, owner, &mut history, &entries);
                match appended.await {
                    Err(HistoryError::TooLarge) => {
                        let late = finish_actions(&mut pass, running, self.clock.now()).await;
                        let steps = &carried_out;
                        let entries = entries.into_iter().chain(late).collect();
                        return self.overflow(owner, spec, history, entries, steps).await;
                    }
                    other => other?,
                }
            }
            if let Some(settled) = settled {
                match settled.wake_at {
                    // Something was skipped: what follows from it is decided at once.
                    Some(time)
                        if time <= self.clock.now() && running.is_empty() && is_skip(&pass) => {}
                    wake_at => break wake_at,
                }
            }
            for request in actions {
                carried_out.insert(request.id.clone(), request.step.clone());
                running.push(self.carry_out(owner, own, request));
            }
            if let Some((request, result, objects)) = running.next().await {
                looked
                    .entry(request.step.clone())
                    .or_default()
                    .extend(objects);
                compute(|| pass.complete(&request, result, self.clock.now())).await;
            }
        };
        drop(running);
        let debug = pass.debugged();
        let state = pass.state().clone();
        if state.finished.is_some() {
            self.histories.forget(owner);
        }
        looked.retain(|step, _| state.step(step).is_some_and(|step| !step.is_finished()));
        Ok(Outcome {
            state,
            is_changed,
            wake_at,
            looked,
            debug,
        })
    }

    /// Answers a query about an application that applied these objects.
    pub(crate) async fn query(
        &self,
        request: &Request,
        applied: &[Value],
    ) -> Result<Value, String> {
        self.providers.query(request, applied).await
    }

    /// The objects of a configuration that a step creates.
    pub(crate) async fn configuration(
        &self,
        owner: &Owner,
        params: &Value,
    ) -> Result<Configuration, String> {
        self.providers.configuration(owner, params).await
    }

    /// Ends the steps whose entries do not fit into the log. Their actions were carried out, and are not repeated.
    async fn overflow(
        &self,
        owner: &Owner,
        spec: &Spec,
        mut history: History,
        entries: Vec<Entry>,
        steps: &BTreeMap<String, String>,
    ) -> Result<Outcome, PassError> {
        let now = self.clock.now();
        let refused = Refused {
            spec,
            log: &history.entries,
            entries: &entries,
            steps,
        };
        let written = history::replacement(&refused, now);
        tracing::warn!(workflow = %owner.key, "the history of a workflow is too large: steps fail");
        self.histories
            .append_replacement(&self.client, owner, &mut history, &written)
            .await?;
        Ok(Outcome {
            state: State::of(&history.entries),
            is_changed: true,
            wake_at: Some(now),
            looked: BTreeMap::new(),
            debug: BTreeMap::new(),
        })
    }

    async fn carry_out(
        &self,
        owner: &Owner,
        own: &dyn OwnActions,
        request: Request,
    ) -> (Request, Result<Done, String>, Vec<Looked>) {
        let mut looked = Vec::new();
        let result = match own.carry_out(&request) {
            Some(result) => result.await,
            None => self.providers.carry_out(owner, &request, &mut looked).await,
        };
        (request, result, looked)
    }
}

/// Waits for actions that were begun, so that none of them is repeated; returns what is to be recorded of them.
async fn finish_actions<F>(
    pass: &mut Pass<'_>,
    mut running: FuturesUnordered<F>,
    now: Timestamp,
) -> Vec<Entry>
where
    F: Future<Output = (Request, Result<Done, String>, Vec<Looked>)>,
{
    while let Some((request, result, _)) = running.next().await {
        compute(|| pass.complete(&request, result, now)).await;
    }
    pass.recorded()
}

/// Whether the pass ended because steps were skipped that others may follow.
fn is_skip(pass: &Pass<'_>) -> bool {
    pass.state().terminated && pass.state().finished.is_none()
}
