//! A member's side of membership: it asks to join, keeps its certificate fresh, shows that it is
//! alive, and reports what it is.
//!
//! Entry point: [`run`]. The private key never leaves the member; it is kept there in a Secret
//! with the certificate (`keyring`). How the hub is reached is the [`HubConnector`]'s business.

mod bootstrap;
mod certificate;
mod connector;
mod heartbeat;
mod keyring;
mod namespaces;
mod report;
mod roster;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::agent_identity;
use bellwether_api::cluster::names::label::CLUSTER_NAME;
use bellwether_api::cluster::names::registration::SIGNER;
use bellwether_api::cluster::names::taint;
use bellwether_api::cluster::{
    ClientConfig, ManagedCluster, ManagedClusterSpec, Taint, TaintEffect,
};
use bellwether_api::meta::ObjectMeta;
use bellwether_runtime::{Clock, ClusterHandle, created_by};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use kube::api::ListParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

pub use bootstrap::{keep_bootstrap, kept_bootstrap, replaced_bootstrap};
pub use certificate::certificate_expiry;
use certificate::{Certificate, KeyRequest};
pub use connector::{ConnectError, HubConnector, KubeconfigConnector};
pub use keyring::Credentials;
use keyring::{Keyring, Pending, StoredKeys};
pub use report::ClaimOptions;
pub use roster::Roster;

/// With so many requests of a cluster on the hub, an agent does not add to them.
const MOST_REQUESTS: usize = 10;
/// A request that is answered within this time need not be remembered.
const PROMPT: Duration = Duration::from_secs(1);
/// After the first failure; doubled with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// However often it fails.
const LAST_RETRY: Duration = Duration::from_mins(1);

/// How long to wait for the answer to a renewal.
const RENEWAL_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// How often somebody who asks to join tries again what the hub does not allow, and how long it waits in between.
const RIGHTS_ATTEMPTS: usize = 10;
const RIGHTS_RETRY: Duration = Duration::from_millis(500);

/// How soon a renewal that failed is tried again, at first and at most.
const FIRST_RENEWAL_RETRY: SignedDuration = SignedDuration::from_secs(10);
const LAST_RENEWAL_RETRY: SignedDuration = SignedDuration::from_mins(10);

/// Everything that an agent has to know.
#[derive(Clone)]
pub struct Agent {
    /// The name of its cluster on the hub.
    pub cluster: String,
    /// How it reaches the hub.
    pub connector: Arc<dyn HubConnector>,
    /// Its own cluster.
    pub member: ClusterHandle,
    /// The time.
    pub clock: Clock,
    /// Labels that the cluster begins with on the hub.
    pub labels: BTreeMap<String, String>,
    /// Where the cluster can be reached, if it can be.
    pub client_configs: Vec<ClientConfig>,
    /// How long certificates are to be valid, in seconds; the hub's usual time if none.
    pub expiration_seconds: Option<i32>,
    /// What is reported of that which the cluster says about itself.
    pub claims: ClaimOptions,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("cluster", &self.cluster)
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

/// Why an agent has to start over.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A server refused something, or did not answer.
    #[error("cannot {attempt}: {}", in_words(.problem))]
    Kube {
        /// What was attempted.
        attempt: &'static str,
        /// What the server says.
        problem: Box<kube::Error>,
    },
    /// The hub does not know what the agent asks to join with.
    #[error(
        "the hub does not know the token: it has expired, or was removed; make another one there, with bellwether token create"
    )]
    Token,
    /// The hub cannot be reached that way.
    #[error(transparent)]
    HubConnector(#[from] ConnectError),
    /// What is kept on the member cannot be used with this hub.
    #[error("the credentials that are kept cannot be used: {0}")]
    Credentials(ConnectError),
    /// Something is wrong with a certificate or a request for one.
    #[error("{0}")]
    Certificate(String),
    /// The certificate that is kept has expired, and no other was to be had.
    #[error(
        "the certificate of {cluster} expired at {at}, and the hub does not let it join again: {cause}. To let it in, run on the hub: bellwether token create --cluster-name {cluster} --write FILE; then for the member: bellwether cluster join --cluster-name {cluster} --hub-kubeconfig FILE --kubeconfig MEMBER"
    )]
    Expired {
        /// The cluster.
        cluster: String,
        /// Until when it was good.
        at: Timestamp,
        /// Why joining again fails.
        cause: Box<AgentError>,
    },
    /// The cluster has been detached.
    #[error("the cluster has been detached")]
    Detached,
}

impl AgentError {
    fn kube(attempt: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |problem| Self::Kube {
            attempt,
            problem: Box::new(problem),
        }
    }

    /// Of a request with a token instead of a certificate.
    fn bootstrapping(attempt: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |problem| match problem {
            kube::Error::Api(status) if status.code == 401 => Self::Token,
            problem => Self::kube(attempt)(problem),
        }
    }

    /// True if the agent lacks a right on the hub, in the words of authorization: `cannot create resource …`. Other
    /// refusals, such as of a token for another cluster, are final.
    fn lacks_a_right(&self) -> bool {
        let Self::Kube { problem, .. } = self else {
            return false;
        };
        matches!(&**problem, kube::Error::Api(status)
            if status.code == 403 && status.message.contains(" cannot "))
    }

    /// True if trying again changes nothing until somebody acts.
    fn needs_a_person(&self) -> bool {
        matches!(
            self,
            Self::Token | Self::Expired { .. } | Self::Certificate(_)
        )
    }

    /// Whether the hub does not believe the certificate.
    fn is_unauthorized(&self) -> bool {
        match self {
            Self::Credentials(_) => true,
            Self::Kube { problem, .. } => {
                matches!(&**problem, kube::Error::Api(status) if status.code == 401)
            }
            _ => false,
        }
    }
}

/// What a server says, without the form that it says it in.
fn in_words(problem: &kube::Error) -> String {
    match problem {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Is a member of the fleet until the hub lets it go. `hub` gets the way to the hub whenever there is
/// a new certificate: after joining, and after each renewal.
///
/// In the end nothing is left on the member of what it joined with: it does not ask again by itself.
///
/// Boxed, so that it is compiled with this crate, and not with each program that runs it.
pub fn run(agent: Agent, hub: watch::Sender<Option<ClusterHandle>>) -> BoxFuture<'static, ()> {
    membership(agent, hub).boxed()
}

async fn membership(agent: Agent, hub: watch::Sender<Option<ClusterHandle>>) {
    let mut wait = FIRST_RETRY;
    let mut reported = String::new();
    loop {
        let began = agent.clock.now();
        let error = match live(&agent, &hub).await {
            Ok(()) => {
                wait = FIRST_RETRY;
                continue;
            }
            Err(error) => error,
        };
        if matches!(error, AgentError::Detached) {
            hub.send_replace(None);
            tracing::info!(cluster = agent.cluster, "the cluster has been detached");
            agent.connector.on_detached().await;
            if let Err(error) = keyring(&agent).forget_hub().await {
                tracing::warn!(cluster = agent.cluster, %error, "credentials cannot be removed");
            }
            return;
        }
        // An error that waits for a person is logged once at the level that is shown without flags.
        let text = error.to_string();
        if error.needs_a_person() && text != reported {
            tracing::warn!(cluster = agent.cluster, %error, "will be tried again");
            reported = text;
        } else {
            tracing::debug!(cluster = agent.cluster, %error, "will be tried again");
        }
        if error.is_unauthorized()
            && let Err(error) = keyring(&agent).discard().await
        {
            tracing::debug!(cluster = agent.cluster, %error, "credentials cannot be removed");
        }
        let lasted = agent.clock.now().duration_since(began);
        if lasted > jiff::SignedDuration::from_mins(5) {
            wait = FIRST_RETRY;
        }
        let jittered = wait.mul_f64(1.0 + jitter(&agent.cluster));
        agent.clock.sleep(jittered).await;
        wait = (wait * 2).min(LAST_RETRY);
    }
}

/// Joins, if that has not been done, and returns when the certificate is kept.
pub async fn join(agent: &Agent) -> Result<(), AgentError> {
    let mut attempts = 0;
    loop {
        match credentials(agent).await {
            // Rights take effect at a real API server one after the other: the hub may have granted them just now.
            Err(error) if error.lacks_a_right() && attempts < RIGHTS_ATTEMPTS => {
                attempts += 1;
                agent.clock.sleep(RIGHTS_RETRY).await;
            }
            joined => return joined.map(drop),
        }
    }
}

/// Up to a quarter, always the same for one cluster, so that a fleet does not act all at once.
fn jitter(cluster: &str) -> f64 {
    let hash = cluster
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let part = u32::try_from(hash >> 40).unwrap_or(0);
    f64::from(part) / f64::from(1_u32 << 24) / 4.0
}

fn keyring(agent: &Agent) -> Keyring<'_> {
    Keyring {
        member: &agent.member,
        cluster: &agent.cluster,
        kubeconfig: agent.connector.kubeconfig(),
    }
}

/// Lives with one certificate until it is renewed.
///
/// What takes a moment and much room is in boxes, here and in [`report`]: a process may have thousands
/// of agents, which wait nearly all the time.
async fn live(agent: &Agent, hub: &watch::Sender<Option<ClusterHandle>>) -> Result<(), AgentError> {
    let (certificate, way) = Box::pin(enter(agent)).await?;
    hub.send_replace(Some(way.clone()));
    let session = CertificateSession::new(certificate);
    let renewed = tokio::select! {
        ended = report::report(agent, &way, &session) => return ended,
        renewed = renew_in_time(agent, &way, &session) => renewed,
    };
    Box::pin(keyring(agent).store(&renewed)).await
}

/// The time with one certificate.
struct CertificateSession {
    certificate: Certificate,
    /// Why the next one was not to be had, when it was last asked for.
    failure: Mutex<Option<String>>,
    /// Told when there is something new to report.
    changed: Arc<Notify>,
}

impl CertificateSession {
    fn new(certificate: Certificate) -> Self {
        Self {
            certificate,
            failure: Mutex::default(),
            changed: Arc::default(),
        }
    }
}

/// Has the certificate renewed when it is time. Failures are reported to the hub, as long as the present
/// certificate is good for that, and tried again.
async fn renew_in_time(
    agent: &Agent,
    way: &ClusterHandle,
    session: &CertificateSession,
) -> Credentials {
    let mut at = session.certificate.renew_at(jitter(&agent.cluster));
    let mut wait = FIRST_RENEWAL_RETRY;
    loop {
        agent.clock.until(at).await;
        match Box::pin(renew(agent, &way.client(), &session.certificate)).await {
            Ok(renewed) => return renewed,
            Err(error) => {
                tracing::warn!(cluster = agent.cluster, %error, "the certificate is not renewed yet");
                *session.failure.lock() = Some(error.to_string());
                session.changed.notify_one();
            }
        }
        let now = agent.clock.now();
        at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        wait = (wait * 2).min(LAST_RENEWAL_RETRY);
    }
}

/// The way to the hub, with the credentials that are kept or new ones.
async fn enter(agent: &Agent) -> Result<(Certificate, ClusterHandle), AgentError> {
    let _client = agent.member.hold();
    let credentials = credentials(agent).await?;
    let certificate = Certificate::read(&credentials.certificate)?;
    let hub = agent.connector.connect(&credentials);
    Ok((certificate, hub.map_err(AgentError::Credentials)?))
}

/// The credentials that are kept, or new ones.
async fn credentials(agent: &Agent) -> Result<Credentials, AgentError> {
    let keyring = keyring(agent);
    let expired = match keyring.load(agent.clock.now()).await? {
        StoredKeys::Good(credentials) => return Ok(credentials),
        StoredKeys::Expired(at) => Some(at),
        StoredKeys::Nothing => None,
    };
    if let Some(at) = expired {
        tracing::warn!(
            cluster = agent.cluster,
            expired = %at,
            "the certificate has expired: asking to join again with the bootstrap credentials"
        );
    }
    let asked = ask_to_join(agent).await;
    let credentials = asked.map_err(|error| match expired {
        Some(at) => AgentError::Expired {
            cluster: agent.cluster.clone(),
            at,
            cause: Box::new(error),
        },
        None => error,
    })?;
    keyring.store(&credentials).await?;
    Ok(credentials)
}

/// Asks the hub to be let in, and waits for the answer.
async fn ask_to_join(agent: &Agent) -> Result<Credentials, AgentError> {
    let client = agent.connector.bootstrap_client()?;
    let is_known = create_cluster(agent, &client).await?;
    let asked = Box::pin(ask_for_certificate(agent, &client));
    if is_known {
        return asked.await;
    }
    // A hub that has just begun may give the one right before the other, and answers nobody whom it
    // does not know.
    tokio::select! {
        credentials = asked => credentials,
        problem = make_known(agent, &client) => Err(problem),
    }
}

/// Tries again to make the cluster known for as long as that is refused. Ends only if it goes wrong.
async fn make_known(agent: &Agent, client: &Client) -> AgentError {
    let mut wait = FIRST_RETRY;
    loop {
        let jittered = wait.mul_f64(1.0 + jitter(&agent.cluster));
        agent.clock.sleep(jittered).await;
        match create_cluster(agent, client).await {
            Ok(true) => return std::future::pending().await,
            Ok(false) => wait = (wait * 2).min(LAST_RETRY),
            Err(error) => return error,
        }
    }
}

/// Asks for a certificate, and waits for the answer.
async fn ask_for_certificate(agent: &Agent, client: &Client) -> Result<Credentials, AgentError> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    if let Some(credentials) = carry_on(agent, &requests).await? {
        return Ok(credentials);
    }
    let own = ListParams::default().labels(&format!("{CLUSTER_NAME}={}", agent.cluster));
    let known = requests.list_metadata(&own).await;
    let known = known.map_err(AgentError::bootstrapping("look for earlier requests"))?;
    if known.items.len() >= MOST_REQUESTS {
        let count = known.items.len();
        return Err(AgentError::Certificate(format!(
            "the hub has {count} unanswered requests of this cluster: accept or delete them"
        )));
    }
    let agent_name = uuid::Uuid::new_v4().simple().to_string();
    let user = agent_identity::user(&agent.cluster, &agent_name[..12]);
    let key = KeyRequest::generate(&agent.cluster, &user)?;
    let mut request = signing_request(agent, &key);
    request.metadata.generate_name = Some(format!("{}-", agent.cluster));
    let request = requests.create(&created_by(), &request).await;
    let request = request.map_err(AgentError::bootstrapping("ask for a certificate"))?;
    let name = request.name_any();
    let answer = await_certificate(&requests, &name);
    tokio::pin!(answer);
    let prompt = tokio::time::timeout(PROMPT, &mut answer).await;
    let certificate = if let Ok(certificate) = prompt {
        certificate?
    } else {
        // A person decides, and may take longer than this process lives.
        let pending = Pending {
            request: name.clone(),
            uid: request.metadata.uid.unwrap_or_default(),
            key: key.private_key(),
        };
        keyring(agent).keep_pending(&pending).await?;
        answer.await?
    };
    Ok(key.with_certificate(certificate))
}

/// Waits for the answer to a request that an earlier process of this agent made, if there is one
/// that may still be answered.
async fn carry_on(
    agent: &Agent,
    requests: &Api<CertificateSigningRequest>,
) -> Result<Option<Credentials>, AgentError> {
    let keyring = keyring(agent);
    let Some(pending) = keyring.pending().await? else {
        return Ok(None);
    };
    let known = requests.get_opt(&pending.request).await;
    let known = known.map_err(AgentError::bootstrapping("look for an earlier request"))?;
    let is_open = known.is_some_and(|request| {
        request.metadata.uid.as_deref() == Some(&pending.uid) && refusal(&request).is_none()
    });
    if !is_open {
        keyring.forget_pending().await?;
        return Ok(None);
    }
    let answer = await_certificate(requests, &pending.request).await;
    if answer.is_err() {
        keyring.forget_pending().await?;
    }
    Ok(Some(Credentials {
        certificate: answer?,
        key: pending.key,
    }))
}

/// Makes the cluster known to the hub, and tells whether it is. Where the hub refuses, somebody else
/// may have made it known, and that is not for the agent to see.
async fn create_cluster(agent: &Agent, client: &Client) -> Result<bool, AgentError> {
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    // The hub would say so as soon as it looks; until then placements would choose the cluster.
    let unreachable = Taint {
        key: taint::UNREACHABLE.to_owned(),
        effect: TaintEffect::NoSelect,
        ..Taint::default()
    };
    let spec = ManagedClusterSpec {
        managed_cluster_client_configs: agent.client_configs.clone(),
        taints: vec![unreachable],
        ..ManagedClusterSpec::default()
    };
    let mut cluster = ManagedCluster::new(&agent.cluster, spec);
    cluster.metadata.labels = Some(agent.labels.clone()).filter(|labels| !labels.is_empty());
    match clusters.create(&created_by(), &cluster).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
        Err(error) => Err(AgentError::bootstrapping("make the cluster known")(error)),
    }
}

fn signing_request(agent: &Agent, key: &KeyRequest) -> CertificateSigningRequest {
    let usages = ["digital signature", "key encipherment", "client auth"];
    CertificateSigningRequest {
        metadata: ObjectMeta {
            labels: Some([(CLUSTER_NAME.to_owned(), agent.cluster.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            signer_name: SIGNER.to_owned(),
            usages: Some(usages.map(str::to_owned).to_vec()),
            request: ByteString(key.request.clone().into_bytes()),
            expiration_seconds: agent.expiration_seconds,
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

/// Waits until a request has been answered.
async fn await_certificate(
    requests: &Api<CertificateSigningRequest>,
    name: &str,
) -> Result<String, AgentError> {
    let is_answered = |request: Option<&CertificateSigningRequest>| {
        request.is_none_or(|request| refusal(request).is_some() || issued(request).is_some())
    };
    let answered = await_condition(requests.clone(), name, is_answered).await;
    let answered = answered.map_err(|error| AgentError::Certificate(error.to_string()))?;
    let Some(request) = answered else {
        return Err(AgentError::Certificate(format!(
            "the request {name} was deleted"
        )));
    };
    if let Some(why) = refusal(&request) {
        return Err(AgentError::Certificate(format!(
            "the request {name} was refused: {why}"
        )));
    }
    let certificate = issued(&request).unwrap_or_default();
    String::from_utf8(certificate.to_vec())
        .map_err(|_| AgentError::Certificate(format!("the certificate of {name} is not text")))
}

fn issued(request: &CertificateSigningRequest) -> Option<&[u8]> {
    let certificate = &request.status.as_ref()?.certificate.as_ref()?.0;
    Some(certificate.as_slice()).filter(|certificate| !certificate.is_empty())
}

fn refusal(request: &CertificateSigningRequest) -> Option<String> {
    let conditions = request.status.as_ref()?.conditions.as_ref()?;
    let refused = conditions
        .iter()
        .find(|it| ["Denied", "Failed"].contains(&it.type_.as_str()))?;
    Some(
        refused
            .message
            .clone()
            .unwrap_or_else(|| refused.type_.clone()),
    )
}

/// Has the certificate renewed, with a new key. The hub chooses the name of the request, so that nobody
/// can take it first.
async fn renew(
    agent: &Agent,
    client: &Client,
    certificate: &Certificate,
) -> Result<Credentials, AgentError> {
    let key = KeyRequest::generate(&agent.cluster, &certificate.user)?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let mut request = signing_request(agent, &key);
    request.metadata.generate_name = Some(format!("{}-", agent.cluster));
    let request = requests.create(&created_by(), &request).await;
    let request = request.map_err(AgentError::kube("ask for a new certificate"))?;
    let name = request.name_any();
    let now = agent.clock.now();
    let deadline = now.checked_add(RENEWAL_TIMEOUT).unwrap_or(Timestamp::MAX);
    tokio::select! {
        certificate = await_certificate(&requests, &name) => {
            Ok(key.with_certificate(certificate?))
        }
        () = agent.clock.until(deadline) => Err(AgentError::Certificate(format!(
            "the hub has not answered the request {name} within {} minutes: is its controller certificate-approval running?",
            RENEWAL_TIMEOUT.as_mins()
        ))),
    }
}
