//! One reconcile of one policy: copy it to the member, evaluate its templates, report.

use std::collections::BTreeSet;

use bellwether_api::Kind as _;
use bellwether_api::policy::Policy;
use bellwether_policy::compliance::{
    Message, TemplateReport, details, latest, overall, replica_status,
};
use bellwether_policy::template_sync::{Parsed, copied, parse, template_error};
use bellwether_runtime::{Next, RequestError};
use serde_json::{Value, json};

use super::answers::Answers;
use super::evaluate::{Evaluator, RETRY, microseconds};
use super::member::{Member, Request, id_of, resource_of};
use super::templates::TemplateSync;
use super::{PolicyKey, Shared, removal};

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
    let sync = TemplateSync {
        evaluator: &evaluator,
        replica: &replica,
    };
    let mut reports: Vec<TemplateReport> = Vec::new();
    let mut kept = BTreeSet::new();
    let mut next: Next = None;
    let mut failure = None;
    for template in parse(&policy, &key.cluster) {
        match sync.sync(&template).await {
            Ok(synced) => {
                kept.extend(synced.object);
                reports.push(synced.report);
                next = next.into_iter().chain(synced.next).min();
            }
            Err(error) => {
                // Others go on; what failed is tried again.
                reports.push(TemplateReport {
                    name: template.name().to_owned(),
                    messages: Vec::new(),
                    is_current: false,
                });
                failure = Some(error);
            }
        }
    }
    if failure.is_none() {
        sync.remove_others(&kept).await?;
    }
    // Where the hub is its own member, the replica is the copy.
    if policy.metadata.uid != replica.metadata.uid {
        write_status(member, &policy, live, &reports).await?;
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
    let report = |template: Parsed| {
        let is_known = latest(&before, template.name()) == Some(text.as_str());
        let message = Message {
            at: now,
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

/// The copy of a replica on the member, written if it differs.
async fn copy(answers: &Answers<'_>, replica: &Policy) -> Result<Value, RequestError> {
    let (member, key) = (answers.member, answers.key);
    let resource = std::sync::Arc::new(resource_of(Policy::NAMES));
    let live = answers.object(&resource, &key.cluster, &key.policy).await?;
    let Some(copy) = copied(replica, live.as_ref(), &key.cluster) else {
        // There is nothing to write only if there is a copy.
        return Ok(live.unwrap_or_default());
    };
    let id = id_of(&resource, &key.cluster, &key.policy);
    let request = if live.is_some() {
        Request::Replace
    } else {
        Request::Create
    };
    member.write(request, &resource, &id, &copy).await
}

/// Writes the status of the copy, which other policies may depend on.
async fn write_status(
    member: &Member,
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
    let id = id_of(&resource, &member.cluster, name);
    let request = Request::ReplaceStatus;
    member.write(request, &resource, &id, &live).await?;
    Ok(())
}
