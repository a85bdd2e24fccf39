//! What an operator has come to on the cluster: its version, its kinds, its deployments, its catalog.

use bellwether_api::policy::{OperatorPolicy, RelatedObject};
use serde_json::Value;

use super::approval::{installed, is_allowed};
use super::configured::{Allows as _, Configured};
use super::finding::{Finding, Part, related, unseen};
use super::look::{CATALOG, DEFINITION, DEPLOYMENT, Look, SERVICE_VERSION, Stop, text};
use super::removal;
use super::wanted::label;
use crate::config_policy::reason;

/// What the Operator Lifecycle Manager marks the objects of an operator with.
fn selector(subscription: &Value) -> String {
    format!("operators.coreos.com/{}", label(subscription))
}

/// The version that is installed, and what is found of it.
pub(super) fn service_version<'l>(
    policy: &OperatorPolicy,
    versions: &[String],
    subscription: Option<&Value>,
    look: &Look<'l>,
) -> Result<(Option<&'l Value>, Finding), Stop> {
    let part = Part::ServiceVersion;
    let Some(subscription) = subscription else {
        let text = "No relevant ClusterServiceVersion found";
        let object = unseen(SERVICE_VERSION, "", "-", None, text);
        let message = "a relevant installed ClusterServiceVersion could not be found".to_owned();
        let finding = Finding::new(part, false, "RelevantCSVNotFound", message);
        return Ok((None, finding.with(vec![object])));
    };
    let namespace = text(subscription, "namespace");
    let all = look.list(SERVICE_VERSION, namespace, &selector(subscription))?;
    let wanted = installed(subscription);
    let found = all.iter().find(|it| text(it, "name") == wanted);
    if policy.spec.compliance_type.is_must_not_have() {
        let finding = removal::service_versions(policy, all, namespace, look)?;
        return Ok((found, finding));
    }
    let listed = |it: &Value| {
        let is_good = it["status"]["phase"] == "Succeeded";
        let reason = it["status"]["reason"].as_str().unwrap_or_default();
        related(SERVICE_VERSION, it, Some(is_good), reason)
    };
    let Some(found) = found else {
        let mut objects: Vec<_> = all
            .iter()
            .filter(|_| wanted.is_empty())
            .map(listed)
            .collect();
        if objects.is_empty() {
            let name = text(subscription, "name");
            let reason = reason::NOT_FOUND;
            objects.push(unseen(
                SERVICE_VERSION,
                namespace,
                name,
                Some(false),
                reason,
            ));
        }
        return Ok((None, Finding::missing(part).with(objects)));
    };
    let name = text(found, "name");
    if !is_allowed(versions, subscription, name) {
        let message = format!("ClusterServiceVersion ({name}) is not an allowed version");
        let text = "The version is not allowed by the policy";
        let object = related(SERVICE_VERSION, found, Some(false), text);
        let finding = Finding::new(part, false, "ClusterServiceVersionNotAllowed", message);
        return Ok((Some(found), finding.with(vec![object])));
    }
    let of_status = |field: &str| found["status"][field].as_str().unwrap_or_default();
    let is_good = of_status("phase") == "Succeeded";
    let message = format!("ClusterServiceVersion ({name}) - {}", of_status("message"));
    let finding = Finding::new(part, is_good, of_status("reason"), message);
    Ok((Some(found), finding.with(vec![listed(found)])))
}

/// The kinds that the operator has defined.
pub(super) fn definitions(
    policy: &OperatorPolicy,
    subscription: Option<&Value>,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let part = Part::Definitions;
    let found = match subscription {
        Some(subscription) => look.list(DEFINITION, "", &selector(subscription))?,
        None => &[],
    };
    if found.is_empty() {
        let text = "No relevant CustomResourceDefinitions found";
        let object = unseen(DEFINITION, "", "-", Some(true), text);
        let message = "no CRDs were found for the operator".to_owned();
        let finding = Finding::new(part, true, "RelevantCRDNotFound", message);
        return Ok(finding.with(vec![object]));
    }
    if policy.spec.compliance_type.is_must_not_have() {
        return removal::definitions(policy, found, look);
    }
    let objects = found.iter();
    let objects = objects.map(|it| related(DEFINITION, it, Some(true), reason::FOUND));
    let message = "there are CRDs present for the operator".to_owned();
    Ok(Finding::new(part, true, "RelevantCRDFound", message).with(objects.collect()))
}

/// Whether the deployments of the installed version are available.
pub(super) fn deployments(
    policy: &OperatorPolicy,
    version: Option<&Value>,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let part = Part::Deployments;
    let must_not = policy.spec.compliance_type.is_must_not_have();
    let Some(version) = version else {
        if must_not {
            return Ok(Finding::not_applicable(part));
        }
        let object = unseen(DEPLOYMENT, "", "-", None, "No relevant deployments found");
        let message =
            "there are no relevant deployments because the ClusterServiceVersion is missing";
        let finding = Finding::new(part, true, "NoRelevantDeployments", message.to_owned());
        return Ok(finding.with(vec![object]));
    };
    let is_allowed = policy.allows(Configured::DeploymentsUnavailable);
    let namespace = text(version, "namespace");
    let specs = version["spec"]["install"]["spec"]["deployments"].as_array();
    let (mut objects, mut unavailable, mut count) = (Vec::new(), Vec::new(), 0);
    for spec in specs.into_iter().flatten() {
        let name = spec["name"].as_str().unwrap_or_default();
        let found = look.object(DEPLOYMENT, namespace, name)?;
        objects.push(match found {
            None if must_not => unseen(DEPLOYMENT, namespace, name, Some(true), reason::ABSENT),
            None => unseen(DEPLOYMENT, namespace, name, Some(false), reason::NOT_FOUND),
            Some(found) if must_not => {
                related(DEPLOYMENT, found, Some(true), reason::NOT_APPLICABLE)
            }
            Some(found) => {
                count += 1;
                if !is_available(found) {
                    unavailable.push(name);
                }
                deployment(found, is_allowed)
            }
        });
    }
    let finding = if must_not {
        Finding::not_applicable(part)
    } else if !unavailable.is_empty() {
        let names = unavailable.join(", ");
        let message = format!("the deployments {names} do not have their minimum availability");
        Finding::new(part, is_allowed, "DeploymentsUnavailable", message)
    } else if count == 0 {
        let message = "no existing operator Deployments".to_owned();
        Finding::new(part, true, "NoExistingDeployments", message)
    } else {
        let message = "all operator Deployments have their minimum availability".to_owned();
        Finding::new(part, true, "DeploymentsAvailable", message)
    };
    Ok(finding.with(objects))
}

fn is_available(deployment: &Value) -> bool {
    let unavailable = deployment["status"]["unavailableReplicas"].as_i64();
    unavailable.unwrap_or(0) == 0
}

/// A deployment of the operator, as it is listed.
fn deployment(found: &Value, is_allowed: bool) -> RelatedObject {
    let is_available = is_available(found);
    let text = match (is_available, is_allowed) {
        (true, _) => "Deployment Available",
        (false, false) => "Deployment Unavailable",
        (false, true) => {
            "Deployment Unavailable (policy compliance is not impacted due to spec.complianceConfig.deploymentsUnavailable)"
        }
    };
    related(DEPLOYMENT, found, Some(is_available || is_allowed), text)
}

/// Whether the catalog that the operator comes from answers.
pub(super) fn catalog(
    policy: &OperatorPolicy,
    subscription: Option<&Value>,
    look: &Look<'_>,
) -> Result<Finding, Stop> {
    let part = Part::Catalog;
    let must_not = policy.spec.compliance_type.is_must_not_have();
    let Some(subscription) = subscription else {
        return Ok(if must_not {
            Finding::not_applicable(part)
        } else {
            Finding::invalid(part)
        });
    };
    let of_spec = |field: &str| subscription["spec"][field].as_str().unwrap_or_default();
    let (name, namespace) = (of_spec("source"), of_spec("sourceNamespace"));
    let found = look.object(CATALOG, namespace, name)?;
    if must_not {
        let object = match found {
            None => unseen(CATALOG, namespace, name, Some(true), reason::ABSENT),
            Some(found) => related(CATALOG, found, Some(true), reason::NOT_APPLICABLE),
        };
        return Ok(Finding::not_applicable(part).with(vec![object]));
    }
    let is_allowed = policy.allows(Configured::CatalogUnhealthy);
    let listed =
        |is_good: bool, text: &str| vec![unseen(CATALOG, namespace, name, Some(is_good), text)];
    let Some(found) = found else {
        let message = format!("CatalogSource '{name}' was not found");
        let finding = Finding::new(part, is_allowed, "CatalogSourcesNotFound", message);
        return Ok(finding.with(listed(is_allowed, reason::NOT_FOUND)));
    };
    let state = found["status"]["connectionState"]["lastObservedState"].as_str();
    Ok(match state {
        Some("READY") => {
            let message = "CatalogSource was found".to_owned();
            let finding = Finding::new(part, true, "CatalogSourcesFound", message);
            finding.with(listed(true, reason::FOUND))
        }
        Some(_) => {
            let message = "CatalogSource was found but is unhealthy".to_owned();
            let finding = Finding::new(part, is_allowed, "CatalogSourcesFoundUnhealthy", message);
            let text = format!("{} but is unhealthy", reason::FOUND);
            finding.with(listed(is_allowed, &text))
        }
        None => {
            let message = "could not determine last observed state of CatalogSource".to_owned();
            let finding = Finding::new(part, is_allowed, "LastObservedUnknown", message);
            finding.with(listed(
                is_allowed,
                "Resource found but current state is unknown",
            ))
        }
    })
}
