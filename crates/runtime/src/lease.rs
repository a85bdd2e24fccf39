//! Leadership: of several processes with one task, one acts.
//!
//! A [`Candidate`] follows a Lease and takes it as soon as nobody holds it: at once if there is none or if it
//! was given back, otherwise when its holder has not renewed it for as long as it lasts. Silence
//! is measured by this process' timer from the renewals that it saw, so that clocks need not agree.
//! [`Leadership`] renews the lease and keeps a [`Fence`] open; the fence closes by itself well before
//! another process can take the lease over.

mod decide;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::cache::Cache;
use crate::clock::Clock;
use crate::feed::Selection;
use crate::fence::Fence;
use crate::key::ObjectKey;
use decide::{Sighting, Step, next_step};

/// The wait after a request about the lease failed.
const RETRY: Duration = Duration::from_millis(500);

/// How leadership is kept.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Lease, which has to exist.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The name of this process among the candidates.
    pub identity: String,
    /// How long a holder may be silent before another takes over.
    pub duration: Duration,
}

impl LeaseOptions {
    /// Selects the Lease among those of its namespace.
    fn field_selector(&self) -> String {
        format!("metadata.name={}", self.name)
    }

    /// How often a holder renews it.
    fn renewal(&self) -> Duration {
        self.duration / 4
    }

    /// How long after the last renewal writes may be sent. The rest is for requests on their way.
    fn validity(&self) -> Duration {
        self.duration * 5 / 8
    }
}

/// A process that would lead.
#[derive(Debug)]
pub struct Candidate {
    api: Api<Lease>,
    clock: Clock,
    options: LeaseOptions,
    fence: Fence,
    leases: Cache<Lease>,
    changes: mpsc::UnboundedReceiver<()>,
}

/// Why a lease cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The server refuses requests about the lease.
    #[error(
        "cannot take the lease {namespace}/{name}: {source}; grant get, list, watch, create and update of leases there, or run a single process with --leader-elect=false"
    )]
    Refused {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
        /// What the server said.
        source: Box<kube::Error>,
    },
}

impl Candidate {
    /// Begins to follow the lease. `client` must not be fenced itself. Must be called within a tokio
    /// runtime.
    pub fn new(client: &Client, clock: &Clock, options: LeaseOptions) -> Self {
        let (sender, changes) = mpsc::unbounded_channel();
        let leases = Cache::follow(
            client,
            Lease::url_path(&(), Some(&options.namespace)),
            Selection::fields(&options.field_selector()),
            move |_| {
                // Nobody listens any more when the candidate is gone.
                let _ = sender.send(());
            },
        );
        Self {
            api: Api::namespaced(client.clone(), &options.namespace),
            fence: Fence::closed(clock),
            clock: clock.clone(),
            options,
            leases,
            changes,
        }
    }

    /// Returns the fence that is open while this process leads.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until this process leads. `on_wait` is called with the name of the holder when one has to be
    /// waited for, and without a name when nobody holds the lease any more and it could not be taken.
    pub async fn lead(
        &mut self,
        on_wait: impl Fn(Option<&str>),
    ) -> Result<Leadership<'_>, LeaseError> {
        self.leases.answered().await;
        let key = ObjectKey::new(&self.options.namespace, &self.options.name);
        let mut sighting: Option<Sighting> = None;
        let mut announced = false;
        loop {
            while self.changes.try_recv().is_ok() {}
            let lease = self.leases.get(&key);
            let now = Instant::now();
            Sighting::update(&mut sighting, lease.as_deref(), now);
            match next_step(sighting.as_ref(), &self.options.identity, now) {
                Step::Take => match self.take(lease.as_deref()).await {
                    Ok(held) => {
                        tracing::info!(lease = self.options.name, "leading");
                        return Ok(Leadership {
                            candidate: self,
                            held: Box::new(held),
                        });
                    }
                    Err(error) => {
                        if std::mem::take(&mut announced) {
                            on_wait(None);
                        }
                        self.after_failure(error).await?;
                    }
                },
                Step::WaitUntil(time) => {
                    if !announced {
                        let spec = lease.as_ref().and_then(|lease| lease.spec.as_ref());
                        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
                        on_wait(Some(holder.unwrap_or_default()));
                        announced = true;
                    }
                    tokio::select! {
                        () = sleep_until(time) => {}
                        _ = self.changes.recv() => {}
                    }
                }
            }
        }
    }

    /// A conflict means that another candidate was faster, or that the cache has yet to learn of it. A cache that cannot follow the
    /// lease would never learn of it: if that is for lack of rights, it is an error.
    async fn after_failure(&mut self, error: kube::Error) -> Result<(), LeaseError> {
        if is_refusal(&error) {
            return Err(self.refused(error));
        }
        if self.leases.is_interrupted() {
            let params = ListParams::default().fields(&self.options.field_selector());
            match self.api.list_metadata(&params).await {
                Err(error) if is_refusal(&error) => return Err(self.refused(error)),
                _ => {}
            }
        }
        tracing::debug!(%error, "the lease was not taken");
        tokio::select! {
            () = sleep(RETRY) => {}
            _ = self.changes.recv() => {}
        }
        Ok(())
    }

    fn refused(&self, error: kube::Error) -> LeaseError {
        LeaseError::Refused {
            namespace: self.options.namespace.clone(),
            name: self.options.name.clone(),
            source: Box::new(error),
        }
    }

    /// Takes the lease, if it is still the one that was seen.
    async fn take(&self, seen: Option<&Lease>) -> Result<Lease, kube::Error> {
        let began = self.moment();
        let mut lease = seen.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let spec = lease.spec.get_or_insert_default();
        let is_ours = spec.holder_identity.as_ref() == Some(&self.options.identity);
        if !is_ours {
            let before = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(match seen {
                Some(_) => before.saturating_add(1),
                None => 0,
            });
            spec.acquire_time = Some(MicroTime(began.1));
        }
        self.hold(spec, began.1);
        let written = if lease.resource_version().is_some() {
            self.replace(&lease).await
        } else {
            self.api.create(&PostParams::default(), &lease).await
        }?;
        self.fence.open(began, self.options.validity());
        Ok(written)
    }

    fn hold(&self, spec: &mut LeaseSpec, now: Timestamp) {
        spec.holder_identity = Some(self.options.identity.clone());
        let seconds = self.options.duration.as_secs().max(1);
        spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        spec.renew_time = Some(MicroTime(now));
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let (name, params) = (&self.options.name, PostParams::default());
        self.api.replace(name, &params, lease).await
    }

    fn moment(&self) -> (Instant, Timestamp) {
        (Instant::now(), self.clock.now())
    }
}

/// True if the server will not let this process have the lease, however often it asks.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403, 404, 422].contains(&status.code))
}

/// The right to act, which lasts while it is renewed.
#[derive(Debug)]
pub struct Leadership<'a> {
    candidate: &'a Candidate,
    /// The lease as it was last written.
    held: Box<Lease>,
}

impl Leadership<'_> {
    /// Renews the lease for as long as that is possible; returns why it is lost. The fence is closed
    /// then.
    pub async fn keep(&mut self) -> String {
        loop {
            sleep(self.candidate.options.renewal()).await;
            if let Err(why) = self.renew().await {
                self.candidate.fence.close();
                tracing::warn!(
                    lease = self.candidate.options.name,
                    why,
                    "no longer leading"
                );
                return why;
            }
        }
    }

    /// Renews the lease once, trying until the last renewal has run out.
    async fn renew(&mut self) -> Result<(), String> {
        let candidate = self.candidate;
        let (options, fence) = (&candidate.options, &candidate.fence);
        loop {
            if !fence.is_open() {
                return Err("the lease could not be renewed in time".to_owned());
            }
            let began = candidate.moment();
            if let Some(spec) = &mut self.held.spec {
                candidate.hold(spec, began.1);
            }
            match timeout(options.renewal(), candidate.replace(&self.held)).await {
                Ok(Ok(written)) => {
                    *self.held = written;
                    fence.open(began, options.validity());
                    return Ok(());
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => self.read().await?,
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                    return Err("the lease was deleted".to_owned());
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the lease was not renewed; will be retried");
                    sleep(RETRY).await;
                }
                Err(_) => tracing::warn!("no answer to the renewal of the lease; will be retried"),
            }
        }
    }

    /// Reads the lease after a conflict: it may be that an answer was lost, or that another took it.
    async fn read(&mut self) -> Result<(), String> {
        let options = &self.candidate.options;
        let found = self.candidate.api.get(&options.name).await;
        let found = found.map_err(|error| format!("the lease cannot be read: {error}"))?;
        let spec = found.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
        if holder != Some(options.identity.as_str()) {
            let holder = holder.unwrap_or("nobody");
            return Err(format!("the lease was taken by {holder}"));
        }
        *self.held = found;
        Ok(())
    }

    /// Gives the lease back, so that another process can lead at once.
    pub async fn release(mut self) {
        self.candidate.fence.close();
        if let Some(spec) = &mut self.held.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        }
        // If it fails, the others wait until the lease runs out.
        let _ = timeout(
            self.candidate.options.renewal(),
            self.candidate.replace(&self.held),
        )
        .await;
    }
}
