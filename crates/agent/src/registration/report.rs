//! What a member tells its hub: that it is alive, whether its API server is, what it has, and what
//! it says about itself.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::about::ClusterProperty;
use bellwether_api::cluster::names::{condition, event, reason};
use bellwether_api::cluster::{
    ClusterClaim, ManagedCluster, ManagedClusterStatus, ManagedClusterVersion,
};
use bellwether_api::meta::{
    Condition, FALSE, TRUE, Time, condition as find, is_true, set_condition,
};
use bellwether_runtime::{
    Cache, CacheEntry, ClusterHandle, EventDraft, Recorder, Selection, written_by,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::sync::Notify;

use super::certificate::Certificate;
use super::heartbeat::Heartbeat;
use super::namespaces::Namespaces;
use super::roster::{Entry, Roster};
use super::{Agent, AgentError, CertificateSession};
use capacity::{NodeResources, Resources};
pub use claims::ClaimOptions;
use claims::Claims;

mod capacity;
mod claims;

/// How often an API server that answers is asked again.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// How often one that does not.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// For how long it may not before that is news.
const REPORT_TIMEOUT: SignedDuration = SignedDuration::from_secs(20);
/// How soon to check again for rights that are missing; doubled each time.
const FIRST_LOOK: SignedDuration = SignedDuration::from_millis(20);
/// However often they are not.
const LAST_LOOK: SignedDuration = SignedDuration::from_secs(10);
/// How long the hub's own list of clusters may lack one that has a certificate: it lags a little.
const MISSING: SignedDuration = SignedDuration::from_secs(5);
/// How long an agent waits for its rights before it logs that it has none.
const NO_RIGHTS: SignedDuration = SignedDuration::from_secs(60);
/// How long the first report waits for what the member has.
const FIRST_FACTS: Duration = Duration::from_secs(5);
/// How long the first report waits for the hub to say that it heard the cluster.
const FIRST_ECHO: SignedDuration = SignedDuration::from_millis(500);

/// Reports until something goes wrong.
pub(super) async fn report(
    agent: &Agent,
    hub: &ClusterHandle,
    session: &CertificateSession,
) -> Result<(), AgentError> {
    Box::pin(await_rights(agent, hub)).await?;
    let mut reporter = Reporter::start(agent, hub, session);
    loop {
        // In a box, what takes a moment and much room; and clients are there for that moment.
        let look = async {
            let _clients = (hub.hold(), agent.member.hold());
            reporter.reconcile().await
        };
        let wake = Box::pin(look).await?;
        let (report_at, renew_at) = (wake.report_at, wake.renew_at);
        tokio::select! {
            () = session.changed.notified() => {}
            () = agent.clock.until(report_at), if report_at < Timestamp::MAX => {}
            () = agent.clock.until_monotonic(renew_at), if renew_at < Duration::MAX => {}
        }
    }
}

/// Waits until the hub has given the agent its rights, which takes a moment, or a person who accepts
/// the cluster. A cluster that the hub let go while its agent was away gets none.
async fn await_rights(agent: &Agent, hub: &ClusterHandle) -> Result<(), AgentError> {
    let clusters: Api<ManagedCluster> = Api::all(hub.client());
    let roster = agent.connector.roster();
    let began = agent.clock.now();
    let mut wait = FIRST_LOOK;
    let mut is_warned = false;
    loop {
        match clusters.get_metadata(&agent.cluster).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 403 => {}
            Err(error) => return Err(AgentError::kube("read the cluster on the hub")(error)),
        }
        let now = agent.clock.now();
        let waited = now.duration_since(began);
        let is_missing = roster
            .as_ref()
            .is_some_and(|roster| roster.lacks(&agent.cluster));
        if is_missing && waited >= MISSING {
            return Err(AgentError::Detached);
        }
        if waited >= NO_RIGHTS && !is_warned {
            is_warned = true;
            tracing::warn!(
                cluster = agent.cluster,
                "the hub gives the cluster no rights: it is not accepted yet, was denied, or was detached; see bellwether cluster list there"
            );
        }
        agent
            .clock
            .until(now.checked_add(wait).unwrap_or(Timestamp::MAX))
            .await;
        wait = (wait * 2).min(LAST_LOOK);
    }
}

/// When to reconcile again if nothing changes before.
struct Wake {
    /// For what is reported.
    report_at: Timestamp,
    /// For the lease, by the monotonic clock.
    renew_at: Duration,
}

impl Wake {
    const NEVER: Self = Self {
        report_at: Timestamp::MAX,
        renew_at: Duration::MAX,
    };
}

/// How the member's API server is.
#[derive(Debug)]
struct Health {
    check_at: Timestamp,
    /// Since when it does not answer, and what it said last.
    failing: Option<(Timestamp, String)>,
    version: Option<String>,
    now: Timestamp,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            check_at: Timestamp::MIN,
            failing: None,
            version: None,
            now: Timestamp::MIN,
        }
    }
}

impl Health {
    /// Asks, if it is time.
    async fn check(&mut self, member: &ClusterHandle, now: Timestamp) {
        self.now = now;
        if now < self.check_at {
            return;
        }
        let member = member.client();
        let interval = match ask(&member).await {
            Ok(()) => {
                self.failing = None;
                if let Ok(version) = member.apiserver_version().await {
                    self.version = Some(version.git_version);
                }
                CHECK_INTERVAL
            }
            Err(answer) => {
                let since = self.failing.take().map_or(now, |(since, _)| since);
                self.failing = Some((since, answer));
                RETRY_INTERVAL
            }
        };
        self.check_at = now.checked_add(interval).unwrap_or(Timestamp::MAX);
    }

    /// What there is to say; nothing while it is too early to be sure.
    fn condition(&self) -> Option<Condition> {
        let (status, reason, message) = match &self.failing {
            None => (
                TRUE,
                reason::MANAGED_CLUSTER_AVAILABLE,
                "Managed cluster is available".to_owned(),
            ),
            Some((since, _)) if self.now.duration_since(*since) < REPORT_TIMEOUT => return None,
            Some((_, answer)) => (
                FALSE,
                reason::KUBE_API_SERVER_UNAVAILABLE,
                format!("The kube-apiserver is not ok, {answer}"),
            ),
        };
        Some(new_condition(
            condition::AVAILABLE,
            status,
            reason,
            &message,
            self.now,
        ))
    }
}

/// Whether an API server says that it is alive.
async fn ask(member: &Client) -> Result<(), String> {
    for path in ["/livez", "/healthz"] {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        match member.request_text(request).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 403 => {}
            Err(kube::Error::Api(status)) => {
                return Err(format!("status code: {}, {}", status.code, status.message));
            }
            Err(error) => return Err(format!("status code: 0, {error}")),
        }
    }
    Err("status code: 404, it has no health endpoint".to_owned())
}

fn new_condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

struct Reporter<'a> {
    agent: &'a Agent,
    hub: &'a ClusterHandle,
    session: &'a CertificateSession,
    cluster: Entry,
    nodes: Cache<NodeResources>,
    claims: Cache<ClusterClaim>,
    /// Watched only where they are reported.
    properties: Option<Cache<ClusterProperty>>,
    /// What was last said about claims that are left out.
    warned: Option<String>,
    heartbeat: Heartbeat,
    health: Health,
    namespaces: Namespaces,
    /// When the hub first got a heartbeat.
    first_heartbeat_at: Option<Timestamp>,
    /// Whether the cluster has been seen: it is gone, then, when it is seen no more.
    is_known: bool,
}

impl<'a> Reporter<'a> {
    /// Starts the watches that reports are made from; `session` is notified about every change.
    fn start(agent: &'a Agent, hub: &'a ClusterHandle, session: &'a CertificateSession) -> Self {
        let changed = &session.changed;
        let roster = agent.connector.roster().unwrap_or_else(|| {
            let path = ManagedCluster::url_path(&(), None);
            let own = Selection::fields(&format!("metadata.name={}", agent.cluster));
            Roster::new(Cache::follow(hub.clone(), path, own, |_| {}))
        });
        Self {
            agent,
            hub,
            session,
            cluster: roster.entry(&agent.cluster, changed),
            nodes: follow(agent, Node::url_path(&(), None), changed),
            claims: follow(agent, ClusterClaim::url_path(&(), None), changed),
            properties: agent
                .claims
                .properties
                .then(|| follow(agent, ClusterProperty::url_path(&(), None), changed)),
            warned: None,
            heartbeat: Heartbeat::default(),
            health: Health::default(),
            namespaces: Namespaces::new(agent.member.clone(), &agent.connector.address()),
            first_heartbeat_at: None,
            is_known: false,
        }
    }

    /// Does what there is to do, and returns when to reconcile again if nothing changes before.
    async fn reconcile(&mut self) -> Result<Wake, AgentError> {
        let Some(cluster) = self.cluster.get() else {
            if self.is_known {
                self.namespaces.let_go().await;
                return Err(AgentError::Detached);
            }
            // Not seen yet: there is nobody to report about.
            self.cluster.ready().await;
            return Ok(Wake::NEVER);
        };
        self.is_known = true;
        let status = cluster.status.as_ref();
        if !status.is_some_and(|status| is_true(&status.conditions, condition::HUB_ACCEPTED)) {
            return Ok(Wake::NEVER);
        }
        let now = self.agent.clock.now();
        let (clock, name) = (&self.agent.clock, &self.agent.cluster);
        if self.heartbeat.due(&cluster, name) <= clock.monotonic() {
            let duration = cluster.lease_duration();
            if self
                .heartbeat
                .renew(self.hub, clock, name, duration)
                .await?
            {
                self.first_heartbeat_at.get_or_insert(now);
            }
        }
        let renew_at = self.heartbeat.due(&cluster, name);
        if let Some(report_at) = self.echo_until(&cluster, now) {
            return Ok(Wake {
                report_at,
                renew_at,
            });
        }
        self.health.check(&self.agent.member, now).await;
        if self.health.failing.is_none() {
            // What there is to say is said at once, not bit by bit.
            let _ = tokio::time::timeout(FIRST_FACTS, self.facts()).await;
        }
        self.write_status(&cluster, now).await?;
        Ok(Wake {
            report_at: self.health.check_at,
            renew_at,
        })
    }

    /// Waits until the member has answered about everything that is reported.
    async fn facts(&self) {
        tokio::join!(self.nodes.answered(), self.claims.answered());
        if let Some(properties) = &self.properties {
            properties.answered().await;
        }
    }

    /// Until when there may be word from the hub that it hears the cluster. A report that is written
    /// before that would be in vain, or be written over at once.
    fn echo_until(&self, cluster: &ManagedCluster, now: Timestamp) -> Option<Timestamp> {
        let status = cluster.status.as_ref()?;
        if find(&status.conditions, condition::CLOCK_SYNCED).is_some() {
            return None;
        }
        let until = self.first_heartbeat_at?.checked_add(FIRST_ECHO).ok()?;
        Some(until).filter(|until| now < *until)
    }

    /// Writes what is news.
    async fn write_status(
        &mut self,
        cluster: &ManagedCluster,
        now: Timestamp,
    ) -> Result<(), AgentError> {
        let before = cluster.status.clone().unwrap_or_default();
        // Times of a clock that is off would mislead.
        let clock = find(&before.conditions, condition::CLOCK_SYNCED);
        if clock.is_some_and(|it| it.status == FALSE) {
            return Ok(());
        }
        let mut after = before.clone();
        let joined = ["ManagedClusterJoined", "Managed cluster joined"];
        let joined = new_condition(condition::JOINED, TRUE, joined[0], joined[1], now);
        set_condition(&mut after.conditions, joined);
        self.report_rotation(&mut after, now);
        if let Some(available) = self.health.condition() {
            set_condition(&mut after.conditions, available);
        }
        if self.health.failing.is_none() {
            self.describe(&mut after);
            self.report_claims(cluster, &mut after);
            self.namespaces.see_to(&mut after, now).await;
        }
        if after == before {
            return Ok(());
        }
        let mut patch = json!({
            "metadata": {"resourceVersion": cluster.resource_version()},
            "status": after,
        });
        // Written even if there are none left.
        patch["status"]["clusterClaims"] = json!(after.cluster_claims);
        let name = &self.agent.cluster;
        let clusters: Api<ManagedCluster> = Api::all(self.hub.client());
        match clusters
            .patch_status(name, &written_by(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => Ok(()),
            // The hub wrote meanwhile; the watch brings it, and another look with it.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(()),
            Err(error) => Err(AgentError::kube("report the status")(error)),
        }
    }

    /// Says from when to when the certificate counts, or why there is no new one.
    fn report_rotation(&self, status: &mut ManagedClusterStatus, now: Timestamp) {
        let Certificate {
            not_before,
            not_after,
            ..
        } = &self.session.certificate;
        let (holds, reason, message) = match &*self.session.failure.lock() {
            None => (
                TRUE,
                reason::CLIENT_CERTIFICATE_UPDATED,
                format!("client certificate rotated starting from {not_before} to {not_after}"),
            ),
            Some(failure) => (
                FALSE,
                reason::CLIENT_CERTIFICATE_UPDATE_FAILED,
                format!("Failed to rotate client certificate: {failure}"),
            ),
        };
        let rotated = new_condition(condition::CERTIFICATE_ROTATED, holds, reason, &message, now);
        set_condition(&mut status.conditions, rotated);
    }

    /// Reports what the member says about itself, and warns if there is too much of it.
    fn report_claims(&mut self, cluster: &ManagedCluster, status: &mut ManagedClusterStatus) {
        // A kind that the member does not know is an answer, too.
        let properties = self.properties.as_ref();
        if !self.claims.is_ready() || properties.is_some_and(|it| !it.has_answered()) {
            return;
        }
        let properties = properties.map(Cache::list).unwrap_or_default();
        let claims = Claims::of(&self.claims.list(), &properties, &self.agent.claims);
        let warning = claims.warning();
        if let Some(message) = &warning
            && self.warned != warning
        {
            let recorder =
                Recorder::new(&self.hub.client(), &self.agent.clock, "registration-agent");
            let mut about = cluster.object_ref(&());
            // An agent may write events only beside its own leases and works.
            about.namespace = Some(self.agent.cluster.clone());
            let happening = EventDraft::warning(event::CUSTOM_CLAIMS_TRUNCATED, message.clone());
            recorder.record_about(about, happening);
        }
        self.warned = warning;
        status.cluster_claims = claims.reported;
    }

    /// Version and resources.
    fn describe(&self, status: &mut ManagedClusterStatus) {
        if let Some(version) = &self.health.version {
            status.version = Some(ManagedClusterVersion {
                kubernetes: Some(version.clone()),
                ..status.version.clone().unwrap_or_default()
            });
        }
        if self.nodes.is_ready() {
            let resources = Resources::of(&self.nodes.list());
            status.capacity.extend(resources.capacity);
            status.allocatable.extend(resources.allocatable);
        }
    }
}

/// Follows a kind of the member; `changed` is notified about every change.
fn follow<K: CacheEntry>(agent: &Agent, path: String, changed: &Arc<Notify>) -> Cache<K> {
    let changed = Arc::clone(changed);
    Cache::follow(
        agent.member.clone(),
        path,
        Selection::default(),
        move |_| {
            changed.notify_one();
        },
    )
}
