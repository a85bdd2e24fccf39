//! Pod Security: what namespaces allow their pods, by their labels.

use std::collections::BTreeMap;

use bellwether_kinds::security::{self, Level, LevelVersion, Policy, describe, violations};
use bellwether_store::Range;
use serde_json::Value;

use crate::context::RequestContext;
use crate::metadata;
use crate::status::ApiError;

/// What a label that concerns this begins with.
const LABELS: &str = "pod-security.kubernetes.io/";

/// How many pods of a namespace are checked when its level changes.
const MOST_PODS: usize = 3_000;

/// Checks the labels of a namespace, and warns of pods that violate a level that is new.
pub(super) fn check_namespace(
    cx: &RequestContext,
    namespace: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let (policy, errors) = Policy::of_namespace(namespace);
    let name = metadata::text(namespace, "name");
    let (before, known) = live.map(Policy::of_namespace).unwrap_or_default();
    if !errors.is_empty() && errors != known {
        return Err(ApiError::invalid(cx.resource.kind_subject(), name, &errors));
    }
    let (new, old) = (policy.enforce, before.enforce);
    let is_relaxed = new.is_of_same_version(old) && new.level <= old.level;
    if live.is_some() && new != old && new.level != Level::Privileged && !is_relaxed {
        warn_of_pods(cx, name, new);
    }
    Ok(())
}

fn warn_of_pods(cx: &RequestContext, namespace: &str, level: LevelVersion) {
    let prefix = format!("core/pods/{namespace}/");
    let range = Range {
        limit: Some(MOST_PODS),
        ..Range::prefix(&prefix)
    };
    let Ok(page) = cx.cluster.keyspace().range(range) else {
        return;
    };
    // By what they violate: the first of them, and how many there are.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for entry in &page.entries {
        let pod = entry.value.to_untyped_value();
        let broken = violations(level, &pod);
        if broken.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = broken.iter().map(|it| it.reason.as_str()).collect();
        let first = || (metadata::text(&pod, "name").to_owned(), 0);
        let (_, count) = found.entry(reasons.join(", ")).or_insert_with(first);
        *count += 1;
    }
    if page.remaining > 0 {
        let total = MOST_PODS + page.remaining;
        cx.warn(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        cx.warn(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(reasons, (pod, count))| match count {
            1 => format!("{pod}: {reasons}"),
            2 => format!("{pod} (and 1 other pod): {reasons}"),
            count => format!("{pod} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    lines.sort_unstable();
    for line in lines {
        cx.warn(line);
    }
}

/// Refuses a pod that violates the enforced level of its namespace; warns of pods and workloads that
/// violate the level of warnings.
pub(super) fn check(
    cx: &RequestContext,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let (group, plural) = super::resource(cx);
    let Some(pod) = security::pod_of(group, plural, object) else {
        return Ok(());
    };
    let is_pod = plural == "pods";
    if is_pod && live.is_some_and(|live| !is_significant(object, live)) {
        return Ok(());
    }
    let key = format!("core/namespaces/{}", cx.namespace());
    let namespace = cx.cluster.keyspace().get(&key);
    let labelled = namespace.filter(|entry| entry.value.mentions(LABELS));
    let Some(namespace) = labelled else {
        return Ok(());
    };
    let (policy, _) = Policy::of_namespace(&namespace.value.to_untyped_value());
    if is_pod {
        let broken = violations(policy.enforce, pod);
        if !broken.is_empty() {
            let why = format!(
                "violates PodSecurity \"{}\": {}",
                policy.enforce,
                describe(&broken)
            );
            let name = metadata::text(object, "name");
            return Err(ApiError::forbidden(cx.resource.subject(), name, &why));
        }
    }
    let broken = violations(policy.warn, pod);
    if !broken.is_empty() {
        cx.warn(format!(
            "would violate PodSecurity \"{}\": {}",
            policy.warn,
            describe(&broken)
        ));
    }
    Ok(())
}

/// Whether a change of a pod brings in other containers or images.
fn is_significant(pod: &Value, live: &Value) -> bool {
    ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .any(|containers| images(pod, containers) != images(live, containers))
}

fn images<'a>(pod: &'a Value, containers: &str) -> Vec<(&'a Value, &'a Value)> {
    let containers = pod["spec"][containers].as_array().into_iter().flatten();
    containers
        .map(|container| (&container["name"], &container["image"]))
        .collect()
}
