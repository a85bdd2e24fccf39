//! What a scheduler does: find a node for a pod, or say why there is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::pod::{SCHEDULED, SCHEDULING_GATED, UNSCHEDULABLE};
use bellwether_api::workload::status::FALSE;
use bellwether_json::quantity::Quantity;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaim, Pod, PodCondition,
    PodSpec, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::kind::{Reference, key_of};
use crate::plan::{Action, Event, Plan};
use crate::pods;

const COMPONENT: &str = "default-scheduler";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// A pod that is on no node.
    pub(crate) pod: &'a Pod,
    pub(crate) nodes: &'a [Arc<Node>],
    /// All pods of the cluster that are on nodes.
    pub(crate) placed: &'a [Arc<Pod>],
    /// The claims of the pod's namespace.
    pub(crate) claims: &'a [Arc<PersistentVolumeClaim>],
    pub(crate) now: Timestamp,
}

/// What has to be done for a pod that is on no node.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.pod.spec else {
        return plan;
    };
    let named = spec
        .scheduler_name
        .as_deref()
        .unwrap_or("default-scheduler");
    if named != "default-scheduler" {
        // Somebody else's.
        return plan;
    }
    if spec
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty())
    {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        note(view, &mut plan, SCHEDULING_GATED, message.to_owned());
        return plan;
    }
    let problems = match missing_volume(view, spec) {
        Some(problem) => {
            let count = view.nodes.len();
            Err(format!(
                "{problem}. preemption: {}",
                none_of(count, HOPELESS)
            ))
        }
        None => choose(view, spec),
    };
    match problems {
        Ok(node) => place(view, node, &mut plan),
        Err(problem) => refuse(view, &problem, &mut plan),
    }
    plan
}

/// The pod goes on that node.
fn place(view: &View<'_>, node: String, plan: &mut Plan) {
    let message = format!("Successfully assigned {} to {node}", key_of(view.pod));
    let pod = Reference::to(view.pod);
    plan.actions.push(Action::Bind {
        pod: pod.clone(),
        node,
    });
    plan.record_event(Event::normal(pod, COMPONENT, "Scheduled", message));
}

/// No node will have the pod.
fn refuse(view: &View<'_>, problem: &str, plan: &mut Plan) {
    let count = view.nodes.len();
    let message = if count == 0 {
        "no nodes available to schedule pods".to_owned()
    } else {
        format!("0/{count} nodes are available: {problem}")
    };
    if note(view, plan, UNSCHEDULABLE, message.clone()) {
        let subject = Reference::to(view.pod);
        plan.record_event(Event::warning(
            subject,
            COMPONENT,
            "FailedScheduling",
            message,
        ));
    }
}

/// Writes why a pod is on no node; returns whether that is news.
fn note(view: &View<'_>, plan: &mut Plan, reason: &str, message: String) -> bool {
    let old = view.pod.status.clone().unwrap_or_default();
    let mut status = old.clone();
    let conditions = status.conditions.get_or_insert_default();
    let before = conditions.iter().find(|found| found.type_ == SCHEDULED);
    let known = before.is_some_and(|found| {
        found.reason.as_deref() == Some(reason) && found.message.as_deref() == Some(&message)
    });
    if known {
        return false;
    }
    let since = before
        .filter(|found| found.status == FALSE)
        .and_then(|found| found.last_transition_time.clone());
    conditions.retain(|found| found.type_ != SCHEDULED);
    conditions.push(PodCondition {
        type_: SCHEDULED.to_owned(),
        status: FALSE.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(since.unwrap_or(Time(view.now))),
        last_probe_time: None,
        observed_generation: view.pod.metadata.generation,
    });
    plan.status(view.pod, &old, &status);
    true
}

/// A claim that the pod needs and cannot have yet.
fn missing_volume(view: &View<'_>, spec: &PodSpec) -> Option<String> {
    let volumes = spec.volumes.iter().flatten();
    for source in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
        let name = &source.claim_name;
        let claim = view
            .claims
            .iter()
            .find(|claim| claim.metadata.name.as_ref() == Some(name));
        let Some(claim) = claim else {
            return Some(format!("persistentvolumeclaim {name:?} not found"));
        };
        let bound = claim
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref())
            == Some("Bound");
        if !bound {
            return Some("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
    }
    None
}

/// The node with the fewest pods that will have it, or why none will.
fn choose(view: &View<'_>, spec: &PodSpec) -> Result<String, String> {
    let mut problems: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(usize, String)> = None;
    for node in view.nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let on_node: Vec<&Pod> = view
            .placed
            .iter()
            .map(AsRef::as_ref)
            .filter(|pod| node_of(pod) == Some(name.as_str()) && !pods::has_ended(pod))
            .collect();
        match refusal(node, &on_node, spec) {
            Some(problem) => *problems.entry(problem).or_default() += 1,
            None if best
                .as_ref()
                .is_none_or(|(count, _)| on_node.len() < *count) =>
            {
                best = Some((on_node.len(), name));
            }
            None => {}
        }
    }
    if let Some((_, name)) = best {
        return Ok(name);
    }
    let count = view.nodes.len();
    let texts: Vec<String> = problems
        .into_iter()
        .map(|(problem, count)| format!("{count} {problem}"))
        .collect();
    let why = texts.join(", ");
    let lacks = why.contains("Insufficient") || why.contains("Too many pods");
    let preemption = none_of(count, if lacks { NO_VICTIMS } else { HOPELESS });
    Err(format!("{why}. preemption: {preemption}"))
}

/// Why others need not make room.
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const HOPELESS: &str = "Preemption is not helpful for scheduling";

fn none_of(count: usize, why: &str) -> String {
    format!("0/{count} nodes are available: {count} {why}.")
}

/// The node that a pod is on.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Why a node will not have a pod.
fn refusal(node: &Node, on_node: &[&Pod], spec: &PodSpec) -> Option<String> {
    if !fits_selector(node, spec) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    if let Some(problem) = taint_problem(node, spec) {
        return Some(problem);
    }
    lacking(node, on_node, spec)
}

/// Whether the node is one of those that a pod asks for.
pub(crate) fn fits_selector(node: &Node, spec: &PodSpec) -> bool {
    let labels = node.metadata.labels.as_ref();
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let wanted = spec.node_selector.iter().flatten();
    if !wanted
        .into_iter()
        .all(|(key, wanted)| value(key) == Some(wanted))
    {
        return false;
    }
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|node| {
        node.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    required.is_none_or(|required| {
        required
            .node_selector_terms
            .iter()
            .any(|term| fits_term(node, term))
    })
}

fn fits_term(node: &Node, term: &NodeSelectorTerm) -> bool {
    let labels = node.metadata.labels.as_ref();
    let name = node.metadata.name.as_ref();
    let expressions = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let is_empty = term.match_expressions.is_none() && term.match_fields.is_none();
    !is_empty
        && expressions.into_iter().all(|expression| {
            fits(expression, labels.and_then(|labels| labels.get(&expression.key)))
        })
        // The only field that there is.
        && fields.into_iter().all(|field| fits(field, name.filter(|_| field.key == "metadata.name")))
}

fn fits(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = || requirement.values.iter().flatten();
    let listed = |value: &String| values().any(|listed| listed == value);
    let compared = |value: &String| {
        let wanted = values().next()?.parse::<i64>().ok()?;
        Some(value.parse::<i64>().ok()?.cmp(&wanted))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value.and_then(compared) == Some(std::cmp::Ordering::Greater),
        "Lt" => value.and_then(compared) == Some(std::cmp::Ordering::Less),
        _ => false,
    }
}

/// Whether a pod can go on a node although that keeps others away.
pub(crate) fn taint_problem(node: &Node, spec: &PodSpec) -> Option<String> {
    let node_spec = node.spec.as_ref();
    let unschedulable = node_spec
        .and_then(|spec| spec.unschedulable)
        .unwrap_or(false);
    let own = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    if unschedulable && !tolerates(spec, &own) {
        return Some("node(s) were unschedulable".to_owned());
    }
    let taints = node_spec
        .into_iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    let untolerated = taints
        .filter(|taint| taint.effect != "PreferNoSchedule" && **taint != own)
        .any(|taint| !tolerates(spec, taint));
    if untolerated {
        return Some("node(s) had untolerated taint(s)".to_owned());
    }
    (!crate::node::is_ready(node)).then(|| "node(s) were not ready".to_owned())
}

fn tolerates(spec: &PodSpec, taint: &Taint) -> bool {
    let mut tolerations = spec.tolerations.iter().flatten();
    tolerations.any(|toleration| {
        let key = toleration.key.as_deref().unwrap_or_default();
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let value = toleration.value.as_deref().unwrap_or_default();
        let exists = toleration.operator.as_deref() == Some("Exists");
        (effect.is_empty() || effect == taint.effect)
            && (key == taint.key || (key.is_empty() && exists))
            && (exists || value == taint.value.as_deref().unwrap_or_default())
    })
}

/// What the node has too little of.
fn lacking(node: &Node, on_node: &[&Pod], spec: &PodSpec) -> Option<String> {
    let has = node.status.as_ref()?.allocatable.as_ref()?;
    let amount = |name: &str| has.get(name).and_then(|quantity| milli(&quantity.0));
    if amount("pods")
        .is_some_and(|most| i128::try_from(on_node.len()).unwrap_or(i128::MAX) >= most / 1000)
    {
        return Some("Too many pods".to_owned());
    }
    ["cpu", "memory"].into_iter().find_map(|name| {
        let wanted = requested(spec, name);
        let taken: i128 = on_node
            .iter()
            .filter_map(|pod| pod.spec.as_ref())
            .map(|spec| requested(spec, name))
            .sum();
        let short = wanted > 0 && amount(name).is_some_and(|most| taken + wanted > most);
        short.then(|| format!("Insufficient {name}"))
    })
}

/// What the containers of a pod ask for, in thousandths.
fn requested(spec: &PodSpec, name: &str) -> i128 {
    let requests = spec.containers.iter().filter_map(|container| {
        let requests = container.resources.as_ref()?.requests.as_ref()?;
        milli(&requests.get(name)?.0)
    });
    requests.sum()
}

fn milli(text: &str) -> Option<i128> {
    let quantity: Quantity = text.parse().ok()?;
    Some(i128::from(quantity.milli_value()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(spec: Value, node_spec: Value, expected: Result<&str, &str>) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec, "status": {"phase": "Pending"},
        }))
        .unwrap();
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": {"zone": "a", "size": "4"}}, "spec": node_spec,
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"}, "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap();
        let view = View {
            pod: &pod,
            nodes: &[Arc::new(node)],
            placed: &[],
            claims: &[],
            now: Timestamp::UNIX_EPOCH,
        };
        let plan = decide(&view);
        let shown = plan.actions.iter().find_map(|action| match action {
            Action::RecordEvent(event) => Some(event.message.as_str()),
            _ => None,
        });
        let bound = plan.actions.iter().find_map(|action| match action {
            Action::Bind { node, .. } => Some(node.as_str()),
            _ => None,
        });
        match expected {
            Ok(node) => assert_eq!(bound, Some(node), "{shown:?}"),
            Err(message) => assert_eq!(shown, Some(message)),
        }
    }

    fn container(requests: Value) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
    }

    #[test]
    fn a_pod_goes_where_it_fits_or_hears_why_not() {
        check(
            container(json!({"cpu": "2", "memory": "512Mi"})),
            json!({}),
            Ok("n"),
        );
        check(
            container(json!({"cpu": "2100m"})),
            json!({}),
            Err(
                "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            ),
        );
        let mut picky = container(json!({}));
        picky["nodeSelector"] = json!({"zone": "b"});
        check(
            picky,
            json!({}),
            Err(
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            ),
        );
        let tainted = json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]});
        check(
            container(json!({})),
            tainted.clone(),
            Err(
                "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            ),
        );
        let mut tolerant = container(json!({}));
        tolerant["tolerations"] = json!([{"key": "team", "operator": "Equal", "value": "x"}]);
        check(tolerant, tainted, Ok("n"));
        check(
            container(json!({})),
            json!({"unschedulable": true}),
            Err(
                "0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            ),
        );
    }

    #[test]
    fn node_affinity_is_understood() {
        let wants = |key: &str, operator: &str, values: Value| {
            let mut spec = container(json!({}));
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]}}});
            spec
        };
        let refusal = Err(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        );
        check(wants("zone", "In", json!(["a", "b"])), json!({}), Ok("n"));
        check(wants("zone", "NotIn", json!(["a"])), json!({}), refusal);
        check(wants("size", "Gt", json!(["3"])), json!({}), Ok("n"));
        check(wants("size", "Lt", json!(["3"])), json!({}), refusal);
        check(wants("gpu", "Exists", json!([])), json!({}), refusal);
    }

    #[test]
    fn claims_are_waited_for() {
        let mut spec = container(json!({}));
        spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        check(
            spec,
            json!({}),
            Err(
                "0/1 nodes are available: persistentvolumeclaim \"data\" not found. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            ),
        );
    }
}
