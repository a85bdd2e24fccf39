//! Carries out WorkflowRuns.
//!
//! A run is looked at when it or something that its steps wait for changes, and when its time has come. What is
//! true of it is in its history; its status is written from that. Entry point: [`run`].

mod observe;
mod publish;

use std::sync::Arc;

use bellwether_api::workflow::{GROUP, HISTORY_GROUP, Workflow, WorkflowRun};
use bellwether_runtime::{
    Cache, Controller, Next, ObjectKey, Queue, Reconcile, ReconcileError, Recorder, Retry,
    Selection,
};
use bellwether_workflow::spec::Approval;
use bellwether_workflow::{Woken, spec};
use futures::FutureExt as _;
use jiff::Timestamp;
use kube::{Api, Resource as _};

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, READ, Rule, Watched};
use crate::workflow::approval::{self, Approvals};
use crate::workflow::definitions::Definitions;
use crate::workflow::memory::Memory;
use crate::workflow::watches::Watches;
use crate::workflow::{Engine, NoOwnActions, PassError, WorkflowOptions};
use observe::{RunEntry, Steps};

/// The wait before the key of approvals is asked for again.
const RETRY: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

/// How many runs are carried out at once.
const WORKERS: usize = 16;

/// The controller of WorkflowRuns. What steps do to other objects is up to their authors: an installation has to
/// grant it.
pub const ENTRY: Entry = Entry {
    name: "workflow-run",
    about: "carries out the steps of workflow runs",
    watches: &[Watched::kind::<Workflow>()],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["workflowruns", "workflowstepdefinitions"],
            verbs: READ,
        },
        Rule {
            group: GROUP,
            resources: &["workflowruns/status"],
            verbs: &["update"],
        },
        Rule {
            group: HISTORY_GROUP,
            resources: &["workflowhistories"],
            verbs: &["get", "create", "update"],
        },
        Rule {
            group: "",
            resources: &["configmaps"],
            verbs: &["get", "create", "update", "patch"],
        },
    ],
    run: |hub, options| run(hub, options.workflows.clone()).boxed(),
};

/// Carries out WorkflowRuns until it is dropped.
pub async fn run(hub: Hub, options: WorkflowOptions) {
    let path = WorkflowRun::url_path(&(), None);
    let runs: Cache<RunEntry> =
        Cache::follow(hub.client.clone(), path, Selection::default(), |_| {});
    let definitions = Arc::new(Definitions::start(&hub.client));
    definitions.cache().answered().await;
    let approval = serve_approvals(&hub, &options).await;
    let controller = Controller::new(ENTRY.name, &hub.clock, &hub.metrics).workers(WORKERS);
    let queue = controller.queue();
    let memory = Arc::new(Memory::default());
    let (woken, waiting) = (Arc::clone(&memory), queue.clone());
    let watches = Watches::new(&hub.client, move |key: &ObjectKey, step: &str| {
        woken.wake_step(key, step);
        waiting.add(key.clone());
    });
    retry_when_there(definitions.cache(), &memory, &queue);
    let workflows: Cache<Workflow> = hub.cache();
    retry_when_there(&workflows, &memory, &queue);
    let own = Arc::clone(&memory);
    let (approval, server) = approval.unzip();
    let server = server.map_or_else(|| std::future::pending().boxed(), |it| it.boxed());
    controller
        .beside(server)
        .on(&runs, move |change| {
            let Some(entry) = change.new else {
                own.forget(change.key);
                return None;
            };
            if own.is_own_write(change.key, &entry.version)
                || (change.old.is_none() && entry.is_done)
            {
                return None;
            }
            own.wake_all(change.key);
            Some(change.key.clone())
        })
        .run(Arc::new(Runs {
            engine: Engine::new(&hub.client, &hub.clock, &options),
            recorder: hub.recorder(ENTRY.name),
            hub,
            definitions,
            memory,
            watches,
            approval,
        }))
        .await;
}

/// How steps are resumed over HTTP, and what serves that.
async fn serve_approvals(
    hub: &Hub,
    options: &WorkflowOptions,
) -> Option<(Approval, impl Future<Output = ()> + Send + use<>)> {
    let wanted = options.approval.clone()?;
    let approval = approval_of(hub, || wanted.of_runs(&hub.client)).await;
    let approvals = Approvals::new(&hub.client, &hub.clock, approval.key.clone());
    Some((approval, approval::serve(wanted, approvals)))
}

/// Asks for the key of approvals until there is an answer.
pub(crate) async fn approval_of<F: Future<Output = Result<Approval, kube::Error>>>(
    hub: &Hub,
    ask: impl Fn() -> F,
) -> Approval {
    loop {
        match ask().await {
            Ok(approval) => return approval,
            Err(error) => {
                tracing::warn!(%error, "the key of approvals cannot be read");
                let now = hub.clock.now();
                hub.clock.until(now.checked_add(RETRY).unwrap_or(now)).await;
            }
        }
    }
}

/// Runs that something was missing for are reconciled again when objects of that kind change.
fn retry_when_there<K>(cache: &Cache<K>, memory: &Arc<Memory>, queue: &Queue<ObjectKey>) {
    let (memory, queue) = (Arc::clone(memory), queue.clone());
    cache.subscribe(move |_| {
        for key in memory.take_blocked() {
            memory.wake_all(&key);
            queue.add(key);
        }
    });
}

struct Runs {
    hub: Hub,
    recorder: Recorder,
    engine: Engine,
    definitions: Arc<Definitions>,
    memory: Arc<Memory>,
    watches: Watches<ObjectKey>,
    approval: Option<Approval>,
}

/// Why a run could not be carried out this time.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Pass(#[from] PassError),
}

impl ReconcileError for RunError {
    fn retry(&self) -> Retry {
        match self {
            Self::Kube(error) => error.retry(),
            Self::Pass(_) => Retry::Backoff,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Kube(error) => error.label(),
            Self::Pass(_) => "history",
        }
    }
}

impl Reconcile for Runs {
    type Key = ObjectKey;
    type Error = RunError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, RunError> {
        let api: Api<WorkflowRun> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let Some(run) = api.get_opt(&key.name).await? else {
            self.watches.forget(key);
            self.memory.forget(key);
            return Ok(None);
        };
        if !observe::is_ours(&run) {
            return Ok(None);
        }
        let (woken, last_pass) = self.memory.take(key);
        let result = self.advance(&run, woken.clone(), last_pass).await;
        if result.is_err() && woken != Woken::Timer {
            self.memory.wake_all(key);
        }
        result
    }
}

impl Runs {
    async fn advance(
        &self,
        run: &WorkflowRun,
        woken: Woken,
        last_pass: Option<Timestamp>,
    ) -> Result<Next, RunError> {
        let key = ObjectKey::of(run);
        if run
            .status
            .as_ref()
            .is_some_and(|status| status.finished && observe::is_settled(status))
        {
            return Ok(None);
        }
        let mut workflow = match observe::steps(&self.hub.client, run).await? {
            Steps::Found(workflow) => *workflow,
            Steps::Missing(problem) => return self.cannot_generate(run, problem).await,
        };
        // The steps of a template were checked with its own mode.
        let is_own = run.spec.workflow_spec.is_some();
        if is_own && let Err(problem) = spec::check(&workflow.steps, &workflow.mode) {
            return self.cannot_generate(run, problem.to_string()).await;
        }
        workflow.approval.clone_from(&self.approval);
        if let Err(problem) = self.definitions.resolve(&mut workflow).await {
            return self.cannot_generate(run, problem.to_string()).await;
        }
        let owner = observe::owner(run);
        let seen = observe::seen(run);
        let now = self.hub.clock.now();
        let outcome = self
            .engine
            .pass(&owner, &workflow, &seen, woken, last_pass, &NoOwnActions)
            .await?;
        self.memory.passed(&key, now);
        self.watches
            .wait_for(&key, &outcome.looked, |step| outcome.is_open(step));
        self.publish(run, &owner, &workflow, &outcome).await?;
        Ok(outcome.wake_at)
    }
}
