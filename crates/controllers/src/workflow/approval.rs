//! Approvals over HTTP: any client that has the token of a suspended step resumes it with `POST /resume/TOKEN`.
//!
//! The key that tokens are signed with is in a Secret of the hub. What happened is recorded in the history of
//! the workflow first; then its status is changed as `workflow resume` does, which wakes its controller. What is sent
//! along as JSON becomes the output of the step.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bellwether_api::oam::Application;
use bellwether_api::workflow::{HistoryEntry, WorkflowHistory, WorkflowRun};
use bellwether_runtime::{Clock, created_by};
use bellwether_workflow::action::SUSPEND;
use bellwether_workflow::event::Actor;
use bellwether_workflow::operation::{self, Controls};
use bellwether_workflow::spec::Approval;
use bellwether_workflow::state::StepState;
use bellwether_workflow::token::{Claim, ResumeKey};
use bellwether_workflow::{Entry, Event, State};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::hub_key::hub_key;

/// The name of the Secret with the key.
const KEY_NAME: &str = "bellwether-resume-key";
/// What requests begin with.
const PATH: &str = "/resume/";
/// The largest payload, in bytes.
const LARGEST_PAYLOAD: usize = 64 * 1024;
/// How long a connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// The wait after a connection could not be accepted, or an address could not be used.
const RETRY: Duration = Duration::from_secs(1);
/// Writes that meet another writer are tried again this often.
const ATTEMPTS: u32 = 10;
/// The kinds of workflows in tokens.
const RUN: &str = "run";
/// The workflow of an Application.
const APP: &str = "app";

/// Where approvals are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalOptions {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// What people and programs call it by, such as `https://hub.example`.
    pub url: String,
}

impl ApprovalOptions {
    /// How steps of a workflow are resumed.
    fn approval(&self, key: ResumeKey, kind: &'static str) -> Approval {
        Approval {
            key,
            address: format!("{}{PATH}", self.url.trim_end_matches('/')),
            kind,
        }
    }

    /// How steps of WorkflowRuns are resumed.
    pub async fn of_runs(&self, client: &Client) -> Result<Approval, kube::Error> {
        Ok(self.approval(key(client).await?, RUN))
    }

    /// How steps of Applications are resumed.
    pub async fn of_applications(&self, client: &Client) -> Result<Approval, kube::Error> {
        Ok(self.approval(key(client).await?, APP))
    }
}

/// The key of the hub; it is made the first time.
pub async fn key(client: &Client) -> Result<ResumeKey, kube::Error> {
    let key = ResumeKey::new(hub_key(client, KEY_NAME).await?);
    key.ok_or_else(|| kube::Error::Service("the key of approvals is too short".into()))
}

/// Why a step is not resumed.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The token is not one of this hub.
    #[error("the token is not valid")]
    Invalid,
    /// Nothing waits for the token any more.
    #[error("nothing waits for this token: the step was resumed, restarted or ended")]
    Used,
    /// The server refuses.
    #[error("{0}")]
    Kube(#[from] kube::Error),
    /// The history cannot be read or written.
    #[error("{0}")]
    History(String),
}

/// What resumes steps by their tokens.
#[derive(Clone)]
pub struct Approvals {
    client: Client,
    clock: Clock,
    key: ResumeKey,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Approvals").finish_non_exhaustive()
    }
}

impl Approvals {
    /// With the key of the hub.
    pub fn new(client: &Client, clock: &Clock, key: ResumeKey) -> Self {
        Self {
            client: client.clone(),
            clock: clock.clone(),
            key,
        }
    }

    /// Resumes the step that a token is for; returns its name.
    pub async fn resume(&self, token: &str, payload: &Value) -> Result<String, ApprovalError> {
        let claim = self.key.verify(token).ok_or(ApprovalError::Invalid)?;
        let mut attempt = 0;
        let step = loop {
            attempt += 1;
            match self.record(&claim, payload).await {
                Err(ApprovalError::Kube(kube::Error::Api(status)))
                    if status.code == 409 && attempt < ATTEMPTS => {}
                other => break other?,
            }
        };
        self.wake(&claim, &step).await?;
        Ok(step)
    }

    /// Records in the history that a step was resumed. The version of the history decides between two who try.
    async fn record(&self, claim: &Claim, payload: &Value) -> Result<String, ApprovalError> {
        let api: Api<WorkflowHistory> = Api::namespaced(self.client.clone(), &claim.namespace);
        let prefix = if claim.kind == APP {
            "application"
        } else {
            "workflowrun"
        };
        let name = format!("{prefix}-{}", claim.name);
        let mut stored = api.get_opt(&name).await?.ok_or(ApprovalError::Used)?;
        let entries: Result<Vec<Entry>, _> = stored.entries.iter().map(Entry::read).collect();
        let entries = entries.map_err(|error| ApprovalError::History(error.to_string()))?;
        let state = State::of(&entries);
        let waits = |step: &&StepState| step.id == claim.step_id && step.is_suspended();
        let step = state.steps.iter().find(waits).ok_or(ApprovalError::Used)?;
        let prefix = format!("{}/", step.id);
        let suspended = state.actions.iter().filter(|(key, action)| {
            key.starts_with(&prefix) && action.action == SUSPEND && action.result.is_none()
        });
        let mut events: Vec<Event> = suspended
            .map(|(key, _)| Event::ActionDone {
                id: step.id.clone(),
                path: key[prefix.len()..].to_owned(),
                result: Some(json!({"payload": payload})),
                error: None,
            })
            .collect();
        if events.is_empty() {
            return Err(ApprovalError::Used);
        }
        events.push(Event::Resumed {
            by: Actor::Token,
            step: Some(step.name.clone()),
        });
        let time = self.clock.now();
        for (seq, event) in (state.seq + 1..).zip(events) {
            let entry: Result<HistoryEntry, _> = Entry { seq, time, event }.write();
            let entry = entry.map_err(|error| ApprovalError::History(error.to_string()))?;
            stored.entries.push(entry);
        }
        stored.metadata.managed_fields = None;
        api.replace(&name, &created_by(), &stored).await?;
        Ok(step.name.clone())
    }

    /// Changes the status, so that the controller looks at the workflow.
    async fn wake(&self, claim: &Claim, step: &str) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        for _ in 0..ATTEMPTS {
            let written = if claim.kind == APP {
                let api: Api<Application> = Api::namespaced(self.client.clone(), &claim.namespace);
                let mut application = api.get(&claim.name).await?;
                let status = application.status.as_mut();
                let Some(workflow) = status.and_then(|status| status.workflow.as_mut()) else {
                    return Ok(());
                };
                resume(
                    Controls {
                        suspend: &mut workflow.suspend,
                        terminated: &mut workflow.terminated,
                        finished: &mut workflow.finished,
                        steps: &mut workflow.steps,
                    },
                    step,
                );
                application.metadata.managed_fields = None;
                let written = api
                    .replace_status(&claim.name, &parameters, &application)
                    .await;
                written.map(drop)
            } else {
                let api: Api<WorkflowRun> = Api::namespaced(self.client.clone(), &claim.namespace);
                let mut run = api.get(&claim.name).await?;
                let Some(status) = run.status.as_mut() else {
                    return Ok(());
                };
                resume(
                    Controls {
                        suspend: &mut status.suspend,
                        terminated: &mut status.terminated,
                        finished: &mut status.finished,
                        steps: &mut status.steps,
                    },
                    step,
                );
                run.metadata.managed_fields = None;
                let written = api.replace_status(&claim.name, &parameters, &run).await;
                written.map(drop)
            };
            match written {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                other => return other,
            }
        }
        Ok(())
    }
}

/// What is not suspended any more needs no change.
fn resume(mut controls: Controls<'_>, step: &str) {
    let _ = operation::resume(&mut controls, Some(step));
}

/// Serves approvals until it is dropped.
pub async fn serve(options: ApprovalOptions, approvals: Approvals) {
    let listener = loop {
        match TcpListener::bind(options.listen).await {
            Ok(listener) => break listener,
            Err(error) => {
                // The process that led before may still have it.
                tracing::warn!(%error, address = %options.listen, "cannot listen for approvals");
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    tracing::info!(address = %options.listen, "approvals are served");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connection(stream, approvals.clone());
                tokio::spawn(tokio::time::timeout(CONNECTION_TIMEOUT, connection));
            }
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

async fn connection(stream: TcpStream, approvals: Approvals) {
    let service = service_fn(move |request: Request<Incoming>| {
        let approvals = approvals.clone();
        async move { Ok::<_, Infallible>(answer(&approvals, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection for approvals ended");
    }
}

async fn answer(approvals: &Approvals, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let token = request.uri().path().strip_prefix(PATH).map(str::to_owned);
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return say(
            StatusCode::NOT_FOUND,
            "not found: there is POST /resume/TOKEN",
        );
    };
    if *request.method() != Method::POST {
        // A chat that looks at a link must not approve.
        return say(StatusCode::METHOD_NOT_ALLOWED, "only POST resumes a step");
    }
    let body = Limited::new(request.into_body(), LARGEST_PAYLOAD)
        .collect()
        .await;
    let Ok(body) = body else {
        return say(StatusCode::PAYLOAD_TOO_LARGE, "the payload is too large");
    };
    let body = body.to_bytes();
    let payload = if body.is_empty() {
        Ok(json!({}))
    } else {
        serde_json::from_slice(&body)
    };
    let Ok(payload) = payload else {
        return say(StatusCode::BAD_REQUEST, "the payload is not JSON");
    };
    match approvals.resume(&token, &payload).await {
        Ok(step) => say(StatusCode::OK, &format!("step {step} is resumed")),
        Err(error) => {
            let status = match &error {
                ApprovalError::Invalid => StatusCode::FORBIDDEN,
                ApprovalError::Used => StatusCode::GONE,
                ApprovalError::Kube(_) | ApprovalError::History(_) => StatusCode::BAD_GATEWAY,
            };
            say(status, &error.to_string())
        }
    }
}

fn say(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response
}
