//! Webhooks and policies that objects of the cluster configure, as kube-apiserver runs them.
//!
//! Mutating webhooks are called one after the other before an object is validated; policies are evaluated
//! and validating webhooks called, all at once, when it is valid. A cluster without configurations pays
//! for one lookup in its store.

mod call;
mod host;
mod subject;

use std::sync::Arc;

use bellwether_admission::condition::CostLimit;
use bellwether_admission::criteria::Failure;
use bellwether_admission::policy::{self, Binding, Policy};
use bellwether_admission::review::{self, Response};
use bellwether_admission::webhook::{Matched, Seen, Webhook};
use bellwether_admission::{Attributes, Target, is_exempt, is_hidden_from_policies};
use bellwether_patch::json_patch::JsonPatch;
use bellwether_store::{Range, Revision};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::Value;

use crate::apart::Effort;
use crate::body::{decode_sent, decode_value, decoding_cause};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::metadata;
use crate::params::FieldValidation;
use crate::repeats::Repeats;
use crate::resource::Part;
use crate::status::{ApiError, Subject as ErrorSubject};
use call::Callee;
use host::ClusterHost;
use subject::Subject;
pub(crate) use subject::{Operation, Shown};

/// Keys of configurations begin with this.
const PREFIX: &str = "admissionregistration.k8s.io/";

/// What the objects of a cluster configure, compiled; empty until there is something.
#[derive(Default)]
pub(crate) struct Configurations(Mutex<Option<Arc<Compiled>>>);

/// Everything that is configured at one moment.
struct Compiled {
    /// The keys that this was made from, with their revisions.
    stamp: Vec<(Arc<str>, Revision)>,
    mutating: Vec<Callee>,
    validating: Vec<Callee>,
    policies: Vec<Policy>,
    bindings: Vec<Binding>,
}

impl Configurations {
    /// What is configured now; none if nothing is.
    fn current(&self, cluster: &Cluster) -> Option<Arc<Compiled>> {
        let page = cluster.keyspace().range(Range::prefix(PREFIX)).ok()?;
        let mut known = self.0.lock();
        if page.entries.is_empty() {
            *known = None;
            return None;
        }
        let is_same = |compiled: &&mut Arc<Compiled>| {
            let stamp = compiled.stamp.iter().map(|(key, at)| (&**key, *at));
            stamp.eq(page.entries.iter().map(|it| (&*it.key, it.modified)))
        };
        if let Some(compiled) = known.as_mut().filter(is_same) {
            return Some(Arc::clone(compiled));
        }
        let mut compiled = Compiled {
            stamp: Vec::new(),
            mutating: Vec::new(),
            validating: Vec::new(),
            policies: Vec::new(),
            bindings: Vec::new(),
        };
        for entry in &page.entries {
            compiled.add(&entry.key, &entry.value.to_untyped_value());
            compiled.stamp.push((entry.key.clone(), entry.modified));
        }
        let compiled = Arc::new(compiled);
        *known = Some(Arc::clone(&compiled));
        Some(compiled)
    }
}

impl Compiled {
    fn add(&mut self, key: &str, object: &Value) {
        let plural = key
            .strip_prefix(PREFIX)
            .and_then(|key| key.split('/').next());
        let webhooks = || Webhook::list(object).into_iter().map(Callee::new);
        match plural.unwrap_or_default() {
            "mutatingwebhookconfigurations" => self.mutating.extend(webhooks()),
            "validatingwebhookconfigurations" => self.validating.extend(webhooks()),
            "validatingadmissionpolicies" => self.policies.push(Policy::compile(object)),
            "validatingadmissionpolicybindings" => self.bindings.push(Binding::read(object)),
            _ => {}
        }
    }
}

/// What is configured for a request, if anything is and it is subject to it.
fn configured(cx: &RequestContext, shown: Shown) -> Option<Arc<Compiled>> {
    // Our own housekeeping serves all clusters, and waits for nobody.
    if cx.is_internal
        || matches!(shown, Shown::Object(Part::Whole))
        || is_exempt(&cx.resource.group, &cx.resource.kind)
    {
        return None;
    }
    cx.cluster.configurations().current(&cx.cluster)
}

/// True if webhooks or policies are configured that may want to see a request.
pub(crate) fn is_configured(cx: &RequestContext, shown: impl Into<Shown>) -> bool {
    configured(cx, shown.into()).is_some()
}

/// Lets mutating webhooks change an object; true if they did. For a deletion there is none.
pub(crate) async fn mutate(
    cx: &RequestContext,
    shown: impl Into<Shown>,
    operation: &Operation,
    object: Option<&mut Value>,
    old: Option<&Value>,
) -> Result<bool, ApiError> {
    let shown = shown.into();
    let Some(compiled) = configured(cx, shown).filter(|it| !it.mutating.is_empty()) else {
        return Ok(false);
    };
    let Some(subject) = Subject::new(cx, shown, operation) else {
        return Ok(false);
    };
    let mutation = Mutation {
        cx,
        shown,
        subject,
        host: ClusterHost(cx),
        old,
    };
    let Some(object) = object else {
        mutation.round(&compiled, None, None).await?;
        return Ok(false);
    };
    let is_sent = matches!(shown, Shown::Sent(_));
    let hidden = (!is_sent).then(|| operation.hide(object));
    let managed = object["metadata"]["managedFields"].clone();
    let before = object.clone();
    let invoked = mutation.round(&compiled, Some(object), None).await?;
    // Those that asked for it see what others have made of the object, once.
    if invoked.iter().any(|it| it.is_due) {
        mutation
            .round(&compiled, Some(object), Some(&invoked))
            .await?;
    }
    let is_changed = *object != before;
    if let Some(hidden) = hidden {
        hidden.restore(object);
    }
    // What subresources take, they compare with the path themselves.
    if is_changed && !is_sent {
        if !managed.is_null() {
            object["metadata"]["managedFields"] = managed;
        }
        metadata::match_path(cx, object)?;
    }
    Ok(is_changed)
}

/// What is remembered of a webhook after the first round.
struct Invoked {
    /// Its place among all.
    index: usize,
    /// True if something has changed since, and it wants to know.
    is_due: bool,
}

/// A request on its way through mutating webhooks.
struct Mutation<'a> {
    cx: &'a RequestContext,
    shown: Shown,
    subject: Subject,
    host: ClusterHost<'a>,
    old: Option<&'a Value>,
}

impl Mutation<'_> {
    /// Calls the webhooks that match, in their order. In the second round only those of the first that
    /// are due.
    async fn round(
        &self,
        compiled: &Compiled,
        mut object: Option<&mut Value>,
        again: Option<&[Invoked]>,
    ) -> Result<Vec<Invoked>, ApiError> {
        let mut invoked: Vec<Invoked> = Vec::new();
        for (index, callee) in compiled.mutating.iter().enumerate() {
            let is_due = |it: &Invoked| it.index == index && it.is_due;
            if again.is_some_and(|again| !again.iter().any(is_due)) {
                continue;
            }
            let patched = {
                let attributes = self.subject.attributes(object.as_deref(), self.old);
                let Some(target) = matched(self.cx, callee, &attributes, self.host)? else {
                    continue;
                };
                self.call(callee, &attributes, target).await?
            };
            let is_changed = match (&mut object, patched) {
                (Some(object), Some(patched)) => {
                    let is_changed = **object != patched;
                    **object = patched;
                    is_changed
                }
                _ => false,
            };
            if is_changed {
                for it in &mut invoked {
                    it.is_due = true;
                }
            }
            if callee.webhook.is_reinvoked {
                invoked.push(Invoked {
                    index,
                    is_due: false,
                });
            }
        }
        Ok(invoked)
    }

    /// The object as one webhook changes it; none if it does not.
    async fn call(
        &self,
        callee: &Callee,
        attributes: &Attributes<'_>,
        target: &Target,
    ) -> Result<Option<Value>, ApiError> {
        let seen = Seen::new(attributes, target, &self.host);
        let Some(response) = consult(self.cx, callee, attributes, target, &seen, true).await?
        else {
            return Ok(None);
        };
        let name = &callee.webhook.name;
        let patched = match patched(name, &response, attributes.object.map(|_| seen.object())) {
            Ok(None) => return Ok(None),
            Ok(Some(patched)) => patched,
            Err(Unpatched::Call(why)) => return failed(self.cx, callee, &why).map(|()| None),
            Err(Unpatched::Refuse(error)) => return Err(*error),
        };
        if let Shown::Sent(part) = self.shown {
            let decoded = decode_sent(part, patched);
            return decoded
                .map(Some)
                .map_err(|why| ApiError::internal_cause(&why));
        }
        let resource = self.host.resource(target);
        let resource = resource.as_ref().unwrap_or(&self.cx.resource);
        let (mut patched, _) =
            decode_value(resource, patched, &Repeats::none(), FieldValidation::Ignore)
                .map_err(|error| ApiError::internal_cause(decoding_cause(resource, &error)))?;
        if target != attributes.target {
            patched = self.host.convert_back(&patched, target);
        }
        Ok(Some(patched))
    }
}

/// Why a patch was not applied.
enum Unpatched {
    /// As if the webhook could not be called.
    Call(String),
    /// The request fails.
    Refuse(Box<ApiError>),
}

fn patched(
    webhook: &str,
    response: &Response,
    object: Option<&Value>,
) -> Result<Option<Value>, Unpatched> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: &dyn std::fmt::Display| {
        Unpatched::Call(format!(
            "received undecodable patch in webhook response: {why}"
        ))
    };
    let patch: Value =
        serde_json::from_slice(&response.patch).map_err(|error| undecodable(&error))?;
    let is_empty = patch.as_array().is_some_and(Vec::is_empty);
    let patch = JsonPatch::parse(&patch).map_err(|error| undecodable(&error))?;
    if is_empty {
        return Ok(None);
    }
    let refuse = |why: &str| Unpatched::Refuse(Box::new(ApiError::internal_cause(why)));
    let Some(object) = object else {
        return Err(refuse(&format!(
            "admission webhook {webhook:?} attempted to modify the object, which is not supported for this operation"
        )));
    };
    if response.patch_type != "JSONPatch" {
        let kind = &response.patch_type;
        return Err(Unpatched::Call(format!("unsupported patch type {kind:?}")));
    }
    let patched = patch.apply(object.clone());
    patched
        .map(Some)
        .map_err(|error| refuse(&error.to_string()))
}

/// Lets policies and validating webhooks refuse a request.
pub(crate) async fn validate(
    cx: &RequestContext,
    shown: impl Into<Shown>,
    operation: &Operation,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let shown = shown.into();
    let Some(compiled) = configured(cx, shown) else {
        return Ok(());
    };
    let Some(subject) = Subject::new(cx, shown, operation) else {
        return Ok(());
    };
    let host = ClusterHost(cx);
    let attributes = subject.attributes(object, old);
    judge(cx, &compiled, &attributes, host)?;
    let mut called = Vec::new();
    for callee in &compiled.validating {
        if let Some(target) = matched(cx, callee, &attributes, host)? {
            called.push((callee, target));
        }
    }
    let (attributes, host) = (&attributes, &host);
    let mut calls: FuturesUnordered<_> = called
        .into_iter()
        .map(|(callee, target)| async move {
            let seen = Seen::new(attributes, target, host);
            let response = consult(cx, callee, attributes, target, &seen, false).await;
            response.map(|_| ())
        })
        .collect();
    // All are waited for: each may have something to say to the audit log.
    let mut refusal = Ok(());
    while let Some(answer) = calls.next().await {
        refusal = refusal.and(answer);
    }
    refusal
}

fn judge(
    cx: &RequestContext,
    compiled: &Compiled,
    attributes: &Attributes<'_>,
    host: ClusterHost<'_>,
) -> Result<(), ApiError> {
    let target = attributes.target;
    if compiled.policies.is_empty()
        || compiled.bindings.is_empty()
        || is_hidden_from_policies(&target.group, &target.resource)
    {
        return Ok(());
    }
    let limit = limit(cx);
    let judgement = policy::judge(
        &compiled.policies,
        &compiled.bindings,
        attributes,
        &host,
        limit,
    );
    let judgement = judgement.map_err(|_| cx.effort.exceeded())?;
    for warning in judgement.warnings {
        cx.warn(warning);
    }
    for (key, note) in judgement.annotations {
        cx.notes.add(key, note);
    }
    match judgement.refusal {
        None => Ok(()),
        Some(refusal) => Err(ApiError::refused_by_policy(
            cx.resource.subject(),
            attributes.shown_name(),
            &refusal,
        )),
    }
}

fn limit(cx: &RequestContext) -> CostLimit {
    match &cx.effort {
        Effort::Light(_) => CostLimit(crate::apart::LIGHT_COST),
        Effort::Full(_) => CostLimit::NONE,
    }
}

/// The version as which a webhook sees the request; none if it is not called.
fn matched<'a>(
    cx: &RequestContext,
    callee: &Callee,
    attributes: &Attributes<'a>,
    host: ClusterHost<'_>,
) -> Result<Option<&'a Target>, ApiError> {
    let matched = callee.webhook.matches(attributes, &host, limit(cx));
    match matched.map_err(|_| cx.effort.exceeded())? {
        Ok(Matched::Call(target)) => Ok(Some(target)),
        Ok(Matched::Skip) => Ok(None),
        Ok(Matched::Refuse(why)) => {
            let name = attributes.name;
            Err(ApiError::forbidden(cx.resource.subject(), name, &why))
        }
        Err(Failure::NoNamespace(name)) => {
            let namespaces = ErrorSubject {
                group: "",
                resource: "namespaces",
            };
            Err(ApiError::not_found(namespaces, &name))
        }
        Err(Failure::Selector(why)) => Err(ApiError::internal_cause(&why)),
    }
}

/// Calls a webhook. None if it cannot be called and that does not matter; an error if it refuses.
async fn consult(
    cx: &RequestContext,
    callee: &Callee,
    attributes: &Attributes<'_>,
    target: &Target,
    seen: &Seen<'_>,
    is_mutating: bool,
) -> Result<Option<Response>, ApiError> {
    let webhook = &callee.webhook;
    if attributes.dry_run && !webhook.allows_dry_run {
        return Err(ApiError::bad_request(format!(
            "admission webhook {:?} does not support dry run",
            webhook.name
        )));
    }
    let asked = async {
        let version = review::version(&webhook.review_versions)
            .map_err(|why| format!("could not create admission objects: {why}"))?;
        let uid = metadata::new_uid();
        let request = review::request(attributes, target, seen, version, &uid);
        let answer = cx.effort.wait(callee.call(&cx.cluster, &request)).await;
        let answer = answer.map_err(|why| format!("failed to call webhook: {why}"))?;
        review::response(&answer, version, &uid, is_mutating)
            .map_err(|why| format!("received invalid webhook response: {why}"))
    };
    let response = match asked.await {
        Ok(response) => response,
        Err(why) => return failed(cx, callee, &why).map(|()| None),
    };
    for (key, note) in &response.annotations {
        let note = note.as_str().unwrap_or_default();
        cx.notes
            .add(format!("{}/{key}", webhook.name), note.to_owned());
    }
    for warning in &response.warnings {
        cx.warn(warning.clone());
    }
    if response.allowed {
        return Ok(Some(response));
    }
    let status = review::refusal(&webhook.name, response.status.as_ref());
    Err(ApiError::from_status(&status))
}

/// What becomes of a request whose webhook cannot be called.
fn failed(cx: &RequestContext, callee: &Callee, why: &str) -> Result<(), ApiError> {
    let name = &callee.webhook.name;
    let (cluster, ignored) = (cx.cluster.name(), callee.webhook.ignores_failures);
    tracing::warn!(
        cluster,
        webhook = name,
        ignored,
        error = why,
        "cannot call a webhook"
    );
    if ignored {
        return Ok(());
    }
    let message = format!("failed calling webhook {name:?}: {why}");
    Err(ApiError::internal_cause(&message))
}
