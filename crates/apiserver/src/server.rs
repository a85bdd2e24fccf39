//! The server: all clusters over one store, and the way of a request through it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::admission::Admission;
use bellwether_store::Store;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, header};
use jiff::SignedDuration;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::access::{Issuers, TokenKey, issuing_cluster};
use crate::answer::{Answer, Reply, Writer, failure};
use crate::apart::{Apart, Effort, Interrupt};
use crate::audit::{AuditLog, Record};
use crate::authenticate::{Authenticated, Caller, authenticate, bearer_token};
use crate::body::RequestBody;
use crate::cluster::{Cluster, Shared};
use crate::coding::Coding;
use crate::context::{Notes, RequestContext, Warnings};
use crate::limits::{InFlight, Limits, Load, Permit};
use crate::metrics::Metrics;
use crate::negotiate::{Representation, negotiate};
use crate::object::StoredObject;
use crate::outgoing::Body;
use crate::params::Query;
use crate::pki::{Authority, Certified, Credentials, PkiError};
use crate::request::{ResourcePath, Target, Verb};
use crate::resource::Resource;
use crate::status::ApiError;
use crate::table::IncludeObject;
use crate::{authorize, bootstrap, endpoint, handler, housekeeping, scope};
use bellwether_runtime::{Clock, MetricsRegistry, spawn_vital};

/// The cluster that is also served at the root path.
pub const HUB: &str = "hub";

/// Kubernetes API servers of many clusters in one. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store<StoredObject>,
    clusters: RwLock<BTreeMap<String, Arc<Cluster>>>,
    shared: Shared,
    in_flight: InFlight,
    apart: Apart,
    audit: Option<AuditLog>,
    metrics: Metrics,
    /// Tells of clusters where janitor is to be kept.
    arrivals: mpsc::UnboundedSender<Arc<Cluster>>,
    /// Forgets old history; ends with the server.
    sweeper: tokio::task::JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sweeper.abort();
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer")
            .field("clusters", &self.clusters())
            .finish_non_exhaustive()
    }
}

/// What a server is given besides its store and its clock.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Signs the certificates that CertificateSigningRequests ask for; without it none are signed.
    pub authority: Option<Arc<Authority>>,
    /// Signs the tokens of service accounts; without it they are good until the server ends.
    pub token_key: Option<TokenKey>,
    /// What one user may have under way at a time.
    pub limits: Limits,
    /// Where requests that may change something are noted; nowhere without it.
    pub audit: Option<AuditLog>,
    /// How long events are kept after they were last written (default: 1h).
    pub event_time_to_live: Option<SignedDuration>,
    /// Where the metrics of all components of the process are; `/metrics` shows them.
    pub metrics: MetricsRegistry,
    /// Rules that writes have to pass besides those of Kubernetes.
    pub admission: Vec<Arc<dyn Admission>>,
}

impl ApiServer {
    /// A server without clusters. Must be called within a tokio runtime.
    pub fn new(store: Store<StoredObject>, clock: Clock) -> Self {
        Self::with_options(store, clock, ServerOptions::default())
    }

    /// A server without clusters, with these options. Must be called within a tokio runtime.
    pub fn with_options(store: Store<StoredObject>, clock: Clock, options: ServerOptions) -> Self {
        let token_key = options
            .token_key
            .or_else(|| TokenKey::generate().ok())
            .map(Arc::new);
        let (arrivals, arriving) = mpsc::unbounded_channel();
        drop(spawn_vital(
            "housekeeping of the API server",
            housekeeping::run_housekeeping(arriving),
        ));
        let apart = Apart::new();
        let in_flight = InFlight::new(options.limits, apart.places_per_user());
        options.metrics.register(|registry| {
            registry.register(
                "apiserver_held_bytes",
                "Bytes held for clients: bodies of requests, and parts of answers not taken",
                in_flight.held_bytes().clone(),
            );
        });
        let inner = Inner {
            arrivals,
            sweeper: spawn_vital(
                "the history of the API server",
                forget_history(store.clone()),
            ),
            store,
            clusters: RwLock::default(),
            shared: Shared {
                admissions: options.admission.into(),
                definitions: Arc::default(),
                issuers: Arc::new(Issuers::new(options.authority, token_key)),
                clock,
                event_time_to_live: options
                    .event_time_to_live
                    .unwrap_or(housekeeping::TIME_TO_LIVE),
            },
            in_flight,
            apart,
            audit: options.audit,
            metrics: Metrics::new(options.metrics),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Makes a cluster available, with what every cluster begins with. Does nothing if it is available already.
    pub async fn add_cluster(&self, name: &str) -> Result<Arc<Cluster>, ApiError> {
        if let Some(cluster) = self.cluster(name) {
            return Ok(cluster);
        }
        let keyspace = self.inner.store.keyspace(name);
        let cluster = Cluster::new(name, keyspace, self.inner.shared.clone());
        let is_new = cluster.keyspace().is_empty();
        bootstrap::prepare(&cluster).await?;
        if is_new {
            // Nobody has seen it come into being, and nobody will ask.
            cluster.keyspace().compact(cluster.keyspace().revision());
        }
        self.inner
            .clusters
            .write()
            .insert(name.to_owned(), cluster.clone());
        // An error means that the runtime is being shut down.
        let _ = self.inner.arrivals.send(cluster.clone());
        Ok(cluster)
    }

    /// Makes sure that a cluster has an object; one of that name stays as it is.
    pub async fn ensure(&self, cluster: &str, object: Value) -> Result<(), ApiError> {
        let cluster = self.cluster(cluster).ok_or_else(ApiError::no_such_path)?;
        bootstrap::create_if_absent(&cluster, object).await
    }

    /// Whom a certificate names, if this server's authority has signed it and the key is its own.
    pub(crate) fn identify(&self, credentials: &Credentials) -> Result<Certified, PkiError> {
        match &self.inner.shared.issuers.authority {
            Some(authority) => authority.verify(credentials),
            None => Err(PkiError::new(
                "check a certificate",
                &"this server has no authority",
            )),
        }
    }

    /// The certificate of the authority that signs for all clusters, in PEM; nothing if there is none.
    pub fn certificate(&self) -> Option<&str> {
        let authority = self.inner.shared.issuers.authority.as_ref()?;
        Some(&authority.credentials().certificate)
    }

    /// The cluster of that name.
    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.inner.clusters.read().get(name).cloned()
    }

    /// The names of all clusters.
    pub fn clusters(&self) -> Vec<String> {
        self.inner.clusters.read().keys().cloned().collect()
    }

    /// What one user may have under way at a time.
    pub(crate) fn limits(&self) -> &Limits {
        self.inner.in_flight.limits()
    }

    /// Answers a request. Who sent it is in its [`Caller`] extension.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let head = request.method() == http::Method::HEAD;
        let coding = Coding::of(&request);
        let started = self.inner.shared.clock.now();
        let mut trace = Trace::default();
        let mut response = match self.answer(request, &mut trace).await {
            Ok(response) => response,
            Err(error) => {
                if let Some(record) = &mut trace.record {
                    record.set_error(&error);
                }
                failure(&error)
            }
        };
        // What a watch sends goes out at once, a line at a time.
        if trace.verb != Verb::Watch.as_str() {
            response = coding.apply(response).await;
        }
        let now = self.inner.shared.clock.now();
        let status = response.status();
        self.inner
            .metrics
            .count(trace.verb, status, now.duration_since(started));
        if let (Some(log), Some(mut record)) = (&self.inner.audit, trace.record) {
            record.annotate(trace.notes.take());
            log.write(&record.finish(status, now)).await;
        }
        if head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn answer<B>(
        &self,
        request: Request<B>,
        trace: &mut Trace,
    ) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let caller = parts
            .extensions
            .get::<Caller>()
            .cloned()
            .unwrap_or_default();
        let whole_path = parts.uri.path();
        let (cluster, path) = self.route(&caller, &parts.headers, whole_path)?;
        let base = &whole_path[..whole_path.len() - path.len()];
        let log = self.inner.audit.as_ref();
        if log.is_some_and(|log| log.covers(&parts.method)) {
            let now = self.inner.shared.clock.now();
            trace.record = Some(Record::new(&parts, &caller, cluster.name(), now));
        }
        let known = authenticate(&cluster, &caller, &parts.headers)?;
        if let Some(record) = &mut trace.record {
            record.set_user(&known);
        }
        let query = Query::parse(parts.uri.query())?;
        match Target::parse(path) {
            Target::Resource(target) => {
                let asked = ResourceRequest {
                    cluster,
                    known,
                    target,
                    query,
                };
                self.answer_resource(asked, &parts, body, trace).await
            }
            Target::Path(path) => {
                trace.verb = "path";
                let verb = parts.method.as_str().to_ascii_lowercase();
                authorize::path(&cluster, &known.identity, &verb, &path)?;
                // Health is reported even while other requests wait for a permit.
                let permit = if endpoint::is_health(&path) {
                    None
                } else {
                    let in_flight = &self.inner.in_flight;
                    Some(in_flight.admit(cluster.name(), known.sender(), Load::Request)?)
                };
                let request = endpoint::PathRequest {
                    cluster: &cluster,
                    base,
                    path: &path,
                    accept: text(&parts, header::ACCEPT),
                    query: &query,
                };
                let mut response = endpoint::handle(&request, &self.inner.metrics)?;
                if let Some(permit) = permit {
                    response.body_mut().hold(permit);
                }
                Ok(response)
            }
        }
    }

    async fn answer_resource<B>(
        &self,
        asked: ResourceRequest,
        parts: &Parts,
        body: B,
        trace: &mut Trace,
    ) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let ResourceRequest {
            cluster,
            known,
            target,
            query,
        } = &asked;
        let watch =
            target.watch || (target.name.is_none() && query.flag("watch")?.unwrap_or(false));
        let verb = verb_of(&parts.method, target, watch)?;
        trace.begin(target, verb);
        authorize::resource(cluster, &known.identity, verb, target, query)?;
        let load = if verb == Verb::Watch {
            Load::Watch
        } else {
            Load::Request
        };
        let in_flight = &self.inner.in_flight;
        let permit = in_flight.admit(cluster.name(), known.sender(), load)?;
        let resource = find_resource(cluster, target)?;
        check_target(&resource, verb, target)?;
        if resource.is_virtual() {
            // A question changes nothing.
            trace.record = None;
        }
        let has_protobuf = verb != Verb::Watch && resource.has_protobuf();
        let representation = negotiate(text(parts, header::ACCEPT), has_protobuf)?;
        let writer = Writer {
            representation,
            include_object: IncludeObject::parse(query.get("includeObject")),
            now: self.inner.shared.clock.now(),
        };
        let timeout = in_flight.limits().body_time;
        let hold = permit.account().hold(0);
        let body = RequestBody::read(&parts.headers, body, timeout, hold).await?;
        let agent = text(parts, header::USER_AGENT).unwrap_or_default();
        let notes = trace.notes.clone();
        let context = |asked: ResourceRequest, effort: Effort| {
            let mut cx = asked.into_context(resource.clone(), verb, agent, &writer, effort);
            cx.notes = notes.clone();
            scope::narrow(&mut cx)?;
            Ok(cx)
        };
        let mut reply = self.work(asked, Arc::new(body), &permit, context).await?;
        trace.answered(&reply);
        reply
            .warnings
            .extend(resource.deprecation().map(str::to_owned));
        let mut response = writer.respond(Some(&resource), reply);
        response.body_mut().hold(permit);
        Ok(response)
    }

    /// Does what is asked: here if it takes little work, else apart.
    async fn work(
        &self,
        asked: ResourceRequest,
        body: Arc<RequestBody>,
        permit: &Permit,
        context: impl Fn(ResourceRequest, Effort) -> Result<RequestContext, ApiError>,
    ) -> Result<Reply, ApiError> {
        let light = Effort::light();
        let fits = light.admit(body.bytes.len()).is_ok();
        if fits {
            let cx = context(asked.clone(), light.clone())?;
            let warnings = cx.warnings.clone();
            let done = Box::pin(handler::handle(cx, &body)).await;
            if !light.is_exceeded() {
                return done.map(|reply| reply.with(warnings.take()));
            }
        }
        let interrupt = Interrupt::default();
        let cx = context(asked, Effort::Full(interrupt.clone()))?;
        let warnings = cx.warnings.clone();
        let work = async move { handler::handle(cx, &body).await };
        let time = self.inner.in_flight.limits().request_time;
        let apart = &self.inner.apart;
        let done = Box::pin(apart.run(permit.account(), interrupt, time, work)).await;
        done.map(|reply| reply.with(warnings.take()))
    }

    /// Finds the cluster that is meant, and the path within it.
    fn route<'a>(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        path: &'a str,
    ) -> Result<(Arc<Cluster>, &'a str), ApiError> {
        let (name, path) = match (&caller.only_cluster, path.strip_prefix("/clusters/")) {
            // A client in this process talks to one cluster and knows no others.
            (Some(name), _) if caller.in_process => (name.as_str(), path),
            (_, Some(rest)) => match rest.find('/') {
                Some(end) => (&rest[..end], &rest[end..]),
                None => (rest, ""),
            },
            (_, None) => return Ok((self.home(caller, headers)?, path)),
        };
        let cluster = self.cluster(name).ok_or_else(ApiError::no_such_path)?;
        Ok((cluster, path))
    }

    /// The cluster that a path without a cluster means: the one that the credential is for, since
    /// `kubectl get --raw` drops the path of the server; the hub for everybody else.
    fn home(&self, caller: &Caller, headers: &HeaderMap) -> Result<Arc<Cluster>, ApiError> {
        let of_token = || {
            let claims = self.inner.shared.issuers.verified(bearer_token(headers)?)?;
            issuing_cluster(&claims).map(str::to_owned)
        };
        let name = match &caller.only_cluster {
            Some(name) => Some(name.clone()),
            None => of_token(),
        };
        name.and_then(|name| self.cluster(&name))
            .or_else(|| self.cluster(HUB))
            .ok_or_else(ApiError::no_such_path)
    }
}

/// A request for a resource, by somebody who is known.
#[derive(Clone)]
struct ResourceRequest {
    cluster: Arc<Cluster>,
    known: Authenticated,
    target: ResourcePath,
    query: Query,
}

impl ResourceRequest {
    fn into_context(
        mut self,
        resource: Arc<Resource>,
        verb: Verb,
        user_agent: &str,
        writer: &Writer,
        effort: Effort,
    ) -> RequestContext {
        if verb == Verb::Watch
            && let Some(name) = self.target.name.take()
        {
            self.query.select_name(&name);
        }
        RequestContext {
            cluster: self.cluster,
            resource,
            verb,
            namespace: self.target.namespace,
            name: self.target.name,
            subresource: self.target.subresource,
            query: self.query,
            identity: self.known.identity,
            user_agent: user_agent.to_owned(),
            writer: writer.clone(),
            now: writer.now,
            effort,
            warnings: Warnings::default(),
            notes: Notes::default(),
            is_internal: false,
        }
    }
}

/// What is noted of a request while it is answered.
#[derive(Debug, Default)]
struct Trace {
    /// For metrics; empty until it is known.
    verb: &'static str,
    /// For the audit log, if there is one and it concerns it.
    record: Option<Record>,
    /// What admission notes for it.
    notes: Notes,
}

impl Trace {
    fn begin(&mut self, target: &ResourcePath, verb: Verb) {
        self.verb = verb.as_str();
        if let Some(record) = &mut self.record {
            record.set_target(target, verb);
        }
    }

    fn answered(&mut self, reply: &Reply) {
        if let (Some(record), Answer::Stored(_, object)) = (&mut self.record, &reply.answer) {
            let object = object.to_untyped_value();
            record.set_name(crate::metadata::text(&object, "name"));
        }
    }
}

/// A header, if it is text.
fn text(parts: &Parts, name: header::HeaderName) -> Option<&str> {
    parts
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
}

/// History that is too old is dropped even where nobody writes.
async fn forget_history(store: Store<StoredObject>) {
    const INTERVAL: Duration = Duration::from_mins(1);
    loop {
        tokio::time::sleep(INTERVAL).await;
        store.compact();
    }
}

fn verb_of(method: &http::Method, target: &ResourcePath, watch: bool) -> Result<Verb, ApiError> {
    if target.watch {
        let reads = matches!(*method, http::Method::GET | http::Method::HEAD);
        let whole = target.subresource.is_none();
        return (reads && whole)
            .then_some(Verb::Watch)
            .ok_or_else(ApiError::method_not_allowed);
    }
    let on_item = target.name.is_some();
    // Some subresources are created: bindings, evictions, tokens.
    if target.subresource.is_some() && method == http::Method::POST {
        return Ok(Verb::Create);
    }
    Verb::of(method, on_item, watch).ok_or_else(ApiError::method_not_allowed)
}

fn find_resource(cluster: &Cluster, target: &ResourcePath) -> Result<Arc<Resource>, ApiError> {
    let resources = cluster.resources();
    if let Some(found) = resources.find(&target.group, &target.version, &target.resource) {
        return Ok(found.clone());
    }
    let group_exists = resources.iter().any(|known| *known.group == *target.group);
    Err(if group_exists {
        ApiError::no_such_resource()
    } else {
        ApiError::no_such_path()
    })
}

/// Whether the resource can be addressed and treated like that.
fn check_target(resource: &Resource, verb: Verb, target: &ResourcePath) -> Result<(), ApiError> {
    let anywhere = resource.namespaced && target.namespace.is_none() && !resource.is_virtual();
    if anywhere && target.name.is_some() {
        return Err(ApiError::no_such_resource());
    }
    if anywhere && verb == Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    if !resource.namespaced && target.namespace.is_some() {
        return Err(ApiError::no_such_resource());
    }
    if target.subresource.is_none() && !resource.verbs.contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    Ok(())
}

/// A response of 200 with this text.
pub(crate) fn plain_text(content_type: &'static str, text: String) -> Response<Body> {
    plain_text_with(StatusCode::OK, content_type, text)
}

/// The same, with a status code.
pub(crate) fn plain_text_with(
    status: StatusCode,
    content_type: &'static str,
    text: String,
) -> Response<Body> {
    let writer = Writer {
        representation: Representation::default(),
        include_object: IncludeObject::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    writer.respond(None, Reply::from(Answer::Text(status, content_type, text)))
}
