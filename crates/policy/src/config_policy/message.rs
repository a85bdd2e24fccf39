//! What is reported of an object template, as texts and as a list of objects.

use std::collections::BTreeMap;

use bellwether_api::policy::{
    ComplianceState, ObjectName, ObjectProperties, ObjectReference, RelatedObject,
};

use super::desired::TargetKind;
use super::object::ObjectResult;
use super::{Finding, reason};

/// An object with its state, as a status lists it.
pub(super) fn related(
    kind: &TargetKind,
    namespace: &str,
    name: &str,
    finding: &Finding,
    properties: Option<ObjectProperties>,
) -> RelatedObject {
    let state = if finding.is_compliant {
        ComplianceState::Compliant
    } else {
        ComplianceState::NonCompliant
    };
    let namespace = if kind.is_namespaced { namespace } else { "" };
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    RelatedObject {
        object: ObjectReference {
            kind: text(&kind.kind),
            api_version: text(&kind.api_version),
            metadata: ObjectName {
                name: text(name),
                namespace: text(namespace),
                ..ObjectName::default()
            },
            ..ObjectReference::default()
        },
        compliant: Some(state.as_str().to_owned()),
        reason: text(&finding.reason),
        properties,
        ..RelatedObject::default()
    }
}

/// Adds an object to a list, or replaces it there if its state is another.
pub(super) fn add_related(list: &mut Vec<RelatedObject>, new: RelatedObject) {
    match list.iter_mut().find(|known| known.object == new.object) {
        None => list.push(new),
        Some(known) if known.compliant != new.compliant => *known = new,
        Some(_) => {}
    }
}

/// What is true of an object template at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) is_compliant: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

/// What was true of an object template one after the other: before a repair, and after it.
pub(super) fn summaries(plural: &str, results: &[ObjectResult]) -> Vec<Summary> {
    let batches = results.iter().map(|result| result.findings.len()).max();
    let batches = batches.unwrap_or_default();
    (0..batches)
        .map(|batch| {
            // What has fewer findings takes part in the later ones.
            let at_batch = results.iter().filter_map(|result| {
                let index = (batch + result.findings.len()).checked_sub(batches)?;
                Some((result, result.findings.get(index)?))
            });
            summary(plural, &at_batch.collect::<Vec<_>>())
        })
        .collect()
}

/// The order in which reasons are told; others follow by name.
const ORDER: [&str; 8] = [
    reason::FOUND,
    reason::CREATED,
    reason::UPDATED,
    reason::DELETED,
    reason::NOT_FOUND,
    reason::NO_MATCH,
    reason::ABSENT,
    reason::FORBIDDEN,
];

/// The reason of a condition, and what a message says of objects, for reasons that have one text.
fn texts(reason: &str) -> Option<(&'static str, &'static str)> {
    Some(match reason {
        reason::FOUND => (
            "K8s `must have` object already exists",
            "found as specified",
        ),
        reason::CREATED => (reason::CREATED, "was created successfully"),
        reason::UPDATED => (reason::UPDATED, "was updated successfully"),
        reason::DELETED => (reason::DELETED, "was deleted successfully"),
        reason::NOT_FOUND => ("K8s does not have a `must have` object", "not found"),
        reason::NO_MATCH => (
            "K8s does not have a `must have` object",
            "found but not as specified",
        ),
        reason::FORBIDDEN => ("K8s has a `must not have` object", "found"),
        reason::ABSENT => (
            "K8s `must not have` object already missing",
            "missing as expected",
        ),
        _ => return None,
    })
}

/// Puts findings into words. Where something is wrong, only that is told.
fn summary(plural: &str, findings: &[(&ObjectResult, &Finding)]) -> Summary {
    let is_compliant = findings.iter().all(|(_, finding)| finding.is_compliant);
    let mut by_reason: BTreeMap<(usize, &str), Vec<(&ObjectResult, &Finding)>> = BTreeMap::new();
    for (result, finding) in findings {
        if finding.is_compliant != is_compliant {
            continue;
        }
        let order = ORDER.iter().position(|known| *known == finding.reason);
        let key = (order.unwrap_or(ORDER.len()), finding.reason.as_str());
        by_reason.entry(key).or_default().push((result, finding));
    }
    let mut reasons = Vec::new();
    let mut messages = Vec::new();
    for ((_, reason), findings) in by_reason {
        if let Some((condition, verb)) = texts(reason) {
            reasons.push(condition);
            messages.extend(joined(plural, verb, &findings));
        } else {
            reasons.push(reason);
            messages.extend(findings.iter().map(|(_, finding)| finding.message.clone()));
        }
    }
    Summary {
        is_compliant,
        reason: reasons.join("; "),
        message: messages.join("; "),
    }
}

/// One text for all namespaces in which the names are the same.
fn joined(plural: &str, verb: &str, findings: &[(&ObjectResult, &Finding)]) -> Vec<String> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (result, _) in findings {
        let names = names.entry(&result.namespace).or_default();
        names.extend(result.names.iter().map(String::as_str));
    }
    let mut namespaces: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (namespace, mut names) in names {
        names.sort_unstable();
        let names = if names.is_empty() {
            String::new()
        } else {
            format!(" [{}]", names.join(", "))
        };
        namespaces.entry(names).or_default().push(namespace);
    }
    let texts = namespaces.into_iter().map(|(names, namespaces)| {
        let place = match namespaces.as_slice() {
            [""] => String::new(),
            [namespace] => format!(" in namespace {namespace}"),
            namespaces => format!(" in namespaces: {}", namespaces.join(", ")),
        };
        format!("{plural}{names} {verb}{place}")
    });
    texts.collect()
}
