//! One reconcile of one policy: copy it to the member, evaluate its templates, report.

use std::collections::BTreeSet;

use bellwether_api::Kind as _;
use bellwether_api::policy::Policy;
use bellwether_policy::compliance::{
    Message, TemplateReport, details, latest, newest, overall, replica_status,
};
use bellwether_policy::template_sync::{
    Gatekeeper, Parsed, copied, is_own_kind, kinds, parse, template_error,
};
use bellwether_runtime::{Next, RequestError};
use serde_json::{Value, json};

use super::answers::Answers;
use super::evaluate::{Evaluator, RETRY, later, microseconds};
use super::member::{Member, Request, TemplateObject, id_of, resource_of};
use super::templates::TemplateSync;
use super::{PolicyKey, Shared, removal};

/// How often templates are evaluated in one reconcile because they change the objects of each other. Before that,
/// those who repair too much only look.
const MAX_PASSES: usize = 8;

/// What came of the templates of a policy.
#[derive(Default)]
struct Pass {
    reports: Vec<TemplateReport>,
    kept: BTreeSet<TemplateObject>,
    next: Next,
    failure: Option<RequestError>,
}

impl Pass {
    /// Syncs all templates in their order. What they reported in a pass before stays.
    async fn run(&mut self, sync: &TemplateSync<'_>) {
        let (policy, answers) = (sync.evaluator.policy, sync.evaluator.answers);
        let mut before = std::mem::take(self).reports.into_iter();
        answers.begin_pass();
        for (place, template) in parse(policy, &answers.key.cluster).iter().enumerate() {
            answers.begin_part(place + 1);
            let mut report = match sync.sync(template).await {
                Ok(synced) => {
                    self.kept.extend(synced.object);
                    self.next = self.next.into_iter().chain(synced.next).min();
                    synced.report
                }
                Err(error) => {
                    // Others go on; what failed is tried again.
                    self.failure = Some(error);
                    TemplateReport {
                        name: template.name().to_owned(),
                        messages: Vec::new(),
                        is_current: false,
                    }
                }
            };
            let messages = before.next().map(|report| report.messages);
            report.messages.extend(messages.into_iter().flatten());
            self.reports.push(report);
        }
    }
}

/// Reconciles a policy of a member.
pub(super) async fn reconcile(
    shared: &Shared,
    member: &Member,
    key: &PolicyKey,
) -> Result<Next, RequestError> {
    let Some(replica) = shared.replicas.get(key).await? else {
        return removal::remove(shared, member, key).await;
    };
    match member.begin().await {
        Err(error) if error.is_forbidden() => return refuse(shared, key, &replica, &error).await,
        begun => begun?,
    }
    let answers = Answers::new(member, key);
    let live = copy(&answers, &replica).await?;
    let policy: Policy = serde_json::from_value(live.clone())
        .map_err(|error| RequestError::Unreached(format!("unreadable policy: {error}")))?;
    let now = microseconds(shared.clock.now());
    let evaluator = Evaluator {
        shared,
        answers: &answers,
        policy: &policy,
        now,
    };
    evaluator.set_latest(newest(&replica.status_or_default().details));
    let Pass {
        reports,
        next,
        failure,
        ..
    } = sync_templates(&evaluator, &replica).await?;
    // Where the hub is its own member, the replica is the copy.
    if policy.metadata.uid != replica.metadata.uid {
        write_status(&answers, &policy, live, &reports).await?;
    }
    let status = replica_status(&replica, &reports, now);
    if replica.status.as_ref() != Some(&status) {
        shared.replicas.report(key, &replica, &status).await?;
    }
    answers.finish();
    match failure {
        Some(error) => Err(error),
        None => Ok(next),
    }
}

/// Makes the templates of a policy objects, and evaluates them until none has changed what another has looked at.
async fn sync_templates(evaluator: &Evaluator<'_>, replica: &Policy) -> Result<Pass, RequestError> {
    let mut pass = Pass::default();
    let mut known = replica.clone();
    for round in 1.. {
        let sync = TemplateSync {
            evaluator,
            replica: &known,
        };
        pass.run(&sync).await;
        if evaluator.answers.is_disturbed() && round < MAX_PASSES {
            known.status = Some(replica_status(replica, &pass.reports, evaluator.now));
            continue;
        }
        if evaluator.answers.is_disturbed() {
            let retry = evaluator.now.checked_add(RETRY).ok();
            pass.next = pass.next.into_iter().chain(retry).min();
        }
        if pass.failure.is_none() {
            let answers = evaluator.answers;
            answers.end_pass();
            sync.remove_others(&pass.kept).await?;
            if answers.is_disturbed() {
                // A template depends on one that is gone now.
                evaluator.shared.queue.add(answers.key.clone());
            }
        }
        break;
    }
    Ok(pass)
}

/// Reports that the agent is not allowed to keep policies on its member, for every template. It tries again later.
async fn refuse(
    shared: &Shared,
    key: &PolicyKey,
    replica: &Policy,
    error: &RequestError,
) -> Result<Next, RequestError> {
    let now = microseconds(shared.clock.now());
    let why = format!(
        "the agent of cluster {} cannot evaluate policies: {error}",
        key.cluster
    );
    let text = template_error(&why);
    let before = replica.status_or_default();
    let at = later(now, newest(&before.details));
    let report = |template: Parsed| {
        let is_known = latest(&before, template.name()) == Some(text.as_str());
        let message = Message {
            at,
            text: text.clone(),
        };
        TemplateReport {
            name: template.name().to_owned(),
            messages: if is_known { Vec::new() } else { vec![message] },
            is_current: true,
        }
    };
    let reports: Vec<TemplateReport> = parse(replica, &key.cluster)
        .into_iter()
        .map(report)
        .collect();
    let status = replica_status(replica, &reports, now);
    if replica.status.as_ref() != Some(&status) {
        shared.replicas.report(key, replica, &status).await?;
    }
    Ok(now.checked_add(RETRY).ok())
}

/// True if templates of a policy are of kinds without a namespace, as far as the member serves them.
async fn has_cluster_scoped(member: &Member, replica: &Policy) -> Result<bool, RequestError> {
    for (api_version, kind) in kinds(replica) {
        if Gatekeeper::of(api_version).is_some() {
            return Ok(true);
        }
        if is_own_kind((api_version, kind)) {
            continue;
        }
        let resource = member.find(api_version, kind).await?;
        if resource.is_some_and(|resource| !resource.namespaced) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The copy of a replica on the member, written if it differs.
async fn copy(answers: &Answers<'_>, replica: &Policy) -> Result<Value, RequestError> {
    let key = answers.key;
    let resource = std::sync::Arc::new(resource_of(Policy::NAMES));
    let mut live = answers.object(&resource, &key.cluster, &key.policy).await?;
    if let Some(deleted) = live.take_if(|live| live["metadata"]["deletionTimestamp"].is_string()) {
        // Somebody deleted it, and it waits for templates that stay.
        let deleted: Policy = serde_json::from_value(deleted).unwrap_or_default();
        removal::let_go(answers.member, key, &deleted).await?;
    }
    let has_cluster_scoped = has_cluster_scoped(answers.member, replica).await?;
    let Some(copy) = copied(replica, live.as_ref(), &key.cluster, has_cluster_scoped) else {
        // There is nothing to write only if there is a copy.
        return Ok(live.unwrap_or_default());
    };
    let id = id_of(&resource, &key.cluster, &key.policy);
    let request = if live.is_some() {
        Request::Replace
    } else {
        Request::Create
    };
    answers.put(request, &resource, &id, &copy).await
}

/// Writes the status of the copy, which other policies may depend on.
async fn write_status(
    answers: &Answers<'_>,
    policy: &Policy,
    mut live: Value,
    reports: &[TemplateReport],
) -> Result<(), RequestError> {
    let before = policy.status_or_default();
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let details = details(name, reports, &before.details);
    let compliant = overall(&details, before.compliant.clone());
    if details == before.details && compliant == before.compliant {
        return Ok(());
    }
    let mut status = json!({ "details": details });
    if let Some(compliant) = compliant {
        status["compliant"] = json!(compliant);
    }
    live["status"] = status;
    let resource = resource_of(Policy::NAMES);
    let id = id_of(&resource, &answers.key.cluster, name);
    let request = Request::ReplaceStatus;
    answers.begin_part(0);
    answers.put(request, &resource, &id, &live).await?;
    Ok(())
}
