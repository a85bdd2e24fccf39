//! Evictions: a pod is deleted if its disruption budget can spare it.
//!
//! The budget's status is a controller's; an eviction takes one of the disruptions that it allows and
//! notes the pod, so that two evictions never take the same one.

use std::sync::Arc;

use bellwether_api::workload::scaling::{
    DISRUPTION_ALLOWED, DISRUPTION_BUDGET, DISRUPTION_TARGET, EVICTION_BY_EVICTION_API,
    INSUFFICIENT_PODS, SYNC_FAILED,
};
use bellwether_json::label::LabelSelector;
use bellwether_json::time::format_time;
use bellwether_kinds::Subresource;
use bellwether_store::Range;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::admission::dynamic::{self, Operation, Shown};
use crate::answer::{Answer, Reply};
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::handler::create::Written;
use crate::handler::delete::{check_preconditions, delete_object};
use crate::handler::get::not_found;
use crate::handler::subresource::sent;
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::Ownership;
use crate::params::{DeleteOptions, WriteOptions};
use crate::request::Verb;
use crate::resource::{Part, Resource, key_prefix};
use crate::status::{ApiError, Subject, success};

/// How many evicted pods a budget keeps note of before its controller has seen them gone.
const MOST_DISRUPTED: usize = 2000;
/// What a budget says if it cannot spare a pod.
const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Answers `POST` to the eviction of a pod.
pub(crate) async fn evict(
    cx: &RequestContext,
    part: &'static Subresource,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    if cx.verb != Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    let created = WriteOptions::parse(&cx.query, "CreateOptions")?;
    let mut eviction = sent(cx, part, body)?;
    forget_system_fields(&mut eviction);
    let (shown, operation) = (Shown::Sent(part), Operation::create(cx, &created, false));
    dynamic::mutate(cx, shown, &operation, Some(&mut eviction), None).await?;
    if metadata::text(&eviction, "name") != cx.name()? {
        let message = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(message));
    }
    let mut options = DeleteOptions::parse(&cx.query, &eviction["deleteOptions"])?;
    let own = &mut eviction["deleteOptions"];
    if created.dry_run && own.is_object() && own["dryRun"].is_null() {
        own["dryRun"] = json!(["All"]);
    }
    dynamic::validate(cx, shown, &operation, Some(&eviction), None).await?;
    let entry = cx.cluster.keyspace().get(&cx.key()?);
    let pod = cx.resource.read(&entry.ok_or_else(|| not_found(cx))?.value);
    let unhealthy = if is_out_of_service(&pod) {
        None
    } else {
        spare(cx, &pod, options.dry_run).await?
    };
    let pinned = unhealthy.is_some() && options.resource_version.is_none();
    if pinned {
        // Only if it has not become healthy since.
        options.resource_version = Some(metadata::text(&pod, "resourceVersion").to_owned());
    }
    if let Err(error) = remove(cx, &mut options).await {
        return Err(match unhealthy {
            Some(budget) if pinned && error.reason == "Conflict" => still_processed(&budget),
            _ => error,
        });
    }
    Ok(Answer::Value(StatusCode::CREATED, success(Some(201), None)).into())
}

/// Removes what only a server sets.
fn forget_system_fields(eviction: &mut Value) {
    let metadata = metadata::of(eviction);
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "uid",
    ] {
        metadata.remove(field);
    }
}

/// Whether no budget counts a pod: it has not started, it has ended, or it is going anyway.
fn is_out_of_service(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Pending" | "Succeeded" | "Failed")
        || pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|found| found["type"] == "Ready" && found["status"] == "True")
}

/// Takes a pod out of its budget. The name of the budget if the pod is unhealthy and its loss is
/// none; nothing if there is no budget, or it has been charged.
async fn spare(
    cx: &RequestContext,
    pod: &Value,
    dry_run: bool,
) -> Result<Option<String>, ApiError> {
    let resources = cx.cluster.resources();
    let resource = resources.find("policy", "v1", "poddisruptionbudgets");
    let resource = resource.ok_or_else(|| ApiError::internal("there are no budgets"))?;
    let budgets = budgets_of(cx, resource, pod)?;
    let budget = match budgets.as_slice() {
        [] => return Ok(None),
        [budget] => budget,
        _ => {
            return Err(ApiError::unexplained(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let name = metadata::text(budget, "name").to_owned();
    if !is_ready(pod) {
        let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
        let healthy = number("currentHealthy") >= number("desiredHealthy");
        if budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
            || (healthy && number("desiredHealthy") > 0)
        {
            return Ok(Some(name));
        }
    }
    let key = resource.key(cx.namespace.as_deref(), &name);
    let mut writer = RequestContext::internal(&cx.cluster, resource, &key, "kube-apiserver");
    writer.now = cx.now;
    let pod = cx.name()?.to_owned();
    let options = WriteOptions {
        dry_run,
        ..WriteOptions::default()
    };
    let charged = change(&writer, Part::Status, &options, |live| {
        Ok(Proposal {
            object: charge(live, &pod, cx.now)?,
            ownership: Ownership::Update(writer.manager("")),
        })
    });
    charged.await.map(|_| None)
}

/// The budgets that select a pod.
fn budgets_of(
    cx: &RequestContext,
    resource: &Arc<Resource>,
    pod: &Value,
) -> Result<Vec<Value>, ApiError> {
    let prefix = format!(
        "{}{}/",
        key_prefix("policy", "poddisruptionbudgets"),
        cx.namespace()
    );
    let page = cx.cluster.keyspace().range(Range::prefix(&prefix));
    let page = page.map_err(|error| ApiError::internal(error.to_string()))?;
    let budgets = page.entries.iter().map(|entry| resource.read(&entry.value));
    let selects = |budget: &Value| {
        let selector = LabelSelector::from_object(budget["spec"].get("selector"));
        selector.is_ok_and(|selector| selector.matches_object(pod))
    };
    Ok(budgets.filter(selects).collect())
}

/// The budget with one disruption less; refused if it allows none.
fn charge(budget: &Value, pod: &str, now: Timestamp) -> Result<Value, ApiError> {
    let name = metadata::text(budget, "name");
    let status = &budget["status"];
    let observed = status["observedGeneration"].as_i64().unwrap_or(0);
    if observed < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        return Err(still_processed(name));
    }
    let subject = Subject {
        group: "policy",
        resource: "poddisruptionbudget",
    };
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden(subject, name, why));
    }
    let noted = status["disruptedPods"].as_object().map_or(0, Map::len);
    if noted > MOST_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(subject, name, why));
    }
    if allowed == 0 {
        return Err(refused(0, why_not(budget)));
    }
    let mut budget = budget.clone();
    let status = &mut budget["status"];
    status["disruptionsAllowed"] = (allowed - 1).into();
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = format_time(now).into();
    if allowed == 1 {
        disallow(status, now);
    }
    Ok(budget)
}

/// Says in the conditions of a budget that it allows nothing more.
fn disallow(status: &mut Value, now: Timestamp) {
    let observed = status["observedGeneration"].clone();
    let conditions = status["conditions"].as_array_mut();
    let mut conditions = conditions.into_iter().flatten();
    if let Some(condition) = conditions.find(|found| found["type"] == DISRUPTION_ALLOWED) {
        condition["status"] = "False".into();
        condition["reason"] = INSUFFICIENT_PODS.into();
        condition["lastTransitionTime"] = format_time(now).into();
        condition["observedGeneration"] = observed;
    }
}

/// Why a budget allows nothing.
fn why_not(budget: &Value) -> String {
    let name = metadata::text(budget, "name");
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let condition =
        conditions.find(|found| found["type"] == DISRUPTION_ALLOWED && found["status"] == "False");
    let said = |field: &str| {
        condition
            .and_then(|found| found[field].as_str())
            .unwrap_or("")
    };
    let (reason, message) = (said("reason"), said("message"));
    let (desired, healthy) = (number("desiredHealthy"), number("currentHealthy"));
    if reason == SYNC_FAILED && !message.is_empty() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if !message.is_empty() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn still_processed(budget: &str) -> ApiError {
    refused(
        10,
        format!("The disruption budget {budget} is still being processed by the server."),
    )
}

fn refused(retry_after_seconds: u32, why: String) -> ApiError {
    ApiError::too_many_requests(REFUSAL, retry_after_seconds).because(DISRUPTION_BUDGET, why)
}

/// Says on the pod why it goes, and deletes it.
async fn remove(cx: &RequestContext, options: &mut DeleteOptions) -> Result<(), ApiError> {
    if !options.dry_run {
        let mut writer =
            RequestContext::internal(&cx.cluster, &cx.resource, &cx.key()?, "kube-apiserver");
        writer.now = cx.now;
        let plain = WriteOptions::default();
        let written = change(&writer, Part::Whole, &plain, |live| {
            check_preconditions(cx, options, live)?;
            let mut object = live.clone();
            note(&mut object, cx.now);
            Ok(Proposal {
                object,
                ownership: Ownership::Update(writer.manager("")),
            })
        });
        if let Written::Stored(stored) = written.await?
            && options.resource_version.is_some()
        {
            // The change is our own.
            let pod = cx.resource.read(&stored);
            options.resource_version = Some(metadata::text(&pod, "resourceVersion").to_owned());
        }
    }
    delete_object(cx, options).await.map(drop)
}

/// Says on a pod that it is being evicted.
fn note(pod: &mut Value, now: Timestamp) {
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let conditions = pod["status"]["conditions"].as_array_mut();
    let Some(conditions) = conditions else { return };
    let is_target = |found: &Value| found["type"] == DISRUPTION_TARGET;
    if conditions
        .iter()
        .any(|found| is_target(found) && found["status"] == "True")
    {
        return;
    }
    conditions.retain(|found| !is_target(found));
    conditions.push(json!({
        "type": DISRUPTION_TARGET, "status": "True", "reason": EVICTION_BY_EVICTION_API,
        "message": "Eviction API: evicting", "lastProbeTime": null,
        "lastTransitionTime": format_time(now),
    }));
}
