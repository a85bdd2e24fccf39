//! Daemon sets: one pod on every node that will have it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::deployment::{FAILED_CREATE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE};
use bellwether_api::workload::revision::{
    CONTROLLER_REVISION_HASH, DEPRECATED_TEMPLATE_GENERATION, TEMPLATE_GENERATION,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
    PodSpec, Toleration,
};

use crate::kind::{Reference, annotation, is_deleting, label};
use crate::plan::{Event, Plan};
use crate::pods::{self, nonzero, number};
use crate::revision::{self, History};
use crate::scale::{Round, resolve};
use crate::scheduler::{fits_selector, node_of, taint_problem};
use crate::select::matches;

const COMPONENT: &str = "daemonset-controller";
/// Where a pod says for which node it was made.
const NODE_NAME_FIELD: &str = "metadata.name";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) set: &'a DaemonSet,
    /// Its pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// Pods in its namespace that nobody controls.
    pub(crate) orphans: &'a [Arc<Pod>],
    /// Its revisions.
    pub(crate) revisions: &'a [Arc<ControllerRevision>],
    pub(crate) nodes: &'a [Arc<Node>],
    pub(crate) now: Timestamp,
}

/// What has to be done for a daemon set.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.set.spec else {
        return plan;
    };
    let owner = Reference::to(view.set);
    let deleting = is_deleting(&view.set.metadata);
    if !deleting {
        for pod in view.orphans {
            if matches(&spec.selector, pod.metadata.labels.as_ref()) && pods::is_active(pod) {
                plan.adopt(pod.as_ref(), &owner);
            }
        }
        if !plan.actions.is_empty() {
            return plan;
        }
    }
    let history = History::new(view.revisions, &spec.template);
    let current = history.current(
        &view.set.metadata,
        &owner,
        CONTROLLER_REVISION_HASH,
        &mut plan,
    );
    let Some(current) = current else {
        return plan;
    };
    let hash = revision::hash(current, CONTROLLER_REVISION_HASH).to_owned();
    let mut turn = Turn {
        view,
        spec,
        owner,
        hash,
        by_node: by_node(view.pods),
        plan,
    };
    if !deleting {
        turn.keep();
        turn.roll();
    }
    turn.write_status();
    let in_use = |found: &ControllerRevision| {
        let own = revision::hash(found, CONTROLLER_REVISION_HASH);
        revision::name(found) == revision::name(current)
            || view
                .pods
                .iter()
                .any(|pod| label(&pod.metadata, CONTROLLER_REVISION_HASH) == Some(own))
    };
    history.clean_up(spec.revision_history_limit, in_use, &mut turn.plan);
    turn.plan
}

/// A decision in the making.
struct Turn<'a> {
    view: &'a View<'a>,
    spec: &'a DaemonSetSpec,
    owner: Reference,
    /// The hash of the current template.
    hash: String,
    by_node: BTreeMap<&'a str, Vec<&'a Pod>>,
    plan: Plan,
}

fn by_node(pods: &[Arc<Pod>]) -> BTreeMap<&str, Vec<&Pod>> {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        if let Some(node) = node_of(pod).or_else(|| made_for(pod)) {
            by_node.entry(node).or_default().push(pod.as_ref());
        }
    }
    by_node
}

/// The node that a pod was made for, whether it is there already or not.
fn made_for(pod: &Pod) -> Option<&str> {
    let affinity = pod
        .spec
        .as_ref()?
        .affinity
        .as_ref()?
        .node_affinity
        .as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == NODE_NAME_FIELD)?;
    field.values.as_ref()?.first().map(String::as_str)
}

impl<'a> Turn<'a> {
    /// Whether a node shall have a pod.
    fn is_wanted(&self, node: &Node) -> bool {
        let spec = self.pod_spec(node);
        fits_selector(node, &spec) && taint_problem(node, &spec).is_none()
    }

    fn pods_on(&self, node: &Node) -> Vec<&'a Pod> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.by_node.get(name).cloned().unwrap_or_default()
    }

    fn is_current(&self, pod: &Pod) -> bool {
        label(&pod.metadata, CONTROLLER_REVISION_HASH) == Some(&self.hash)
    }

    fn available_at(&self, pod: &Pod) -> Option<Timestamp> {
        pods::available_at(pod, self.spec.min_ready_seconds.unwrap_or(0))
    }

    fn is_available(&self, pod: &Pod) -> bool {
        self.available_at(pod)
            .is_some_and(|time| time <= self.view.now)
    }

    /// One pod on each node that shall have one, none elsewhere.
    fn keep(&mut self) {
        let surge = self.max_surge() > 0;
        for node in self.view.nodes {
            let mut alive: Vec<&Pod> = self
                .pods_on(node)
                .into_iter()
                .filter(|pod| !is_deleting(&pod.metadata))
                .collect();
            if !self.is_wanted(node) {
                for pod in alive {
                    self.delete(pod);
                }
                continue;
            }
            for pod in alive
                .extract_if(.., |pod| pods::has_ended(pod))
                .collect::<Vec<_>>()
            {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let node = node.metadata.name.as_deref().unwrap_or_default();
                let message = format!(
                    "Found failed daemon pod {}/{name} on node {node}, will try to kill it",
                    self.owner.key.namespace
                );
                self.plan.record_event(Event::warning(
                    self.owner.clone(),
                    COMPONENT,
                    "FailedDaemonPod",
                    message,
                ));
                self.delete(pod);
            }
            let leaving = self
                .pods_on(node)
                .iter()
                .any(|pod| is_deleting(&pod.metadata));
            if alive.is_empty() && !leaving {
                self.create(node);
            }
            // The oldest stays; while surging one of each template may.
            alive.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
            let mut kept: Vec<bool> = Vec::new();
            for pod in alive {
                let current = self.is_current(pod);
                let surplus = if surge {
                    kept.contains(&current)
                } else {
                    !kept.is_empty()
                };
                if surplus {
                    self.delete(pod);
                } else {
                    kept.push(current);
                }
            }
        }
    }

    fn max_surge(&self) -> i32 {
        let rolling = self
            .spec
            .update_strategy
            .as_ref()
            .and_then(|strategy| strategy.rolling_update.as_ref());
        let wanted = self.wanted_nodes();
        resolve(
            rolling.and_then(|rolling| rolling.max_surge.as_ref()),
            wanted,
            Round::Up,
        )
    }

    fn max_unavailable(&self) -> i32 {
        let rolling = self
            .spec
            .update_strategy
            .as_ref()
            .and_then(|strategy| strategy.rolling_update.as_ref());
        let wanted = self.wanted_nodes();
        resolve(
            rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
            wanted,
            Round::Up,
        )
    }

    fn wanted_nodes(&self) -> i32 {
        number(
            self.view
                .nodes
                .iter()
                .filter(|node| self.is_wanted(node))
                .count(),
        )
    }

    /// Replaces pods of other templates, as many at a time as allowed.
    fn roll(&mut self) {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return;
        }
        if self.max_surge() > 0 {
            self.roll_with_surge();
            return;
        }
        let nodes: Vec<_> = self
            .view
            .nodes
            .iter()
            .filter(|node| self.is_wanted(node))
            .collect();
        let mut unavailable = 0;
        let mut candidates = Vec::new();
        for node in nodes {
            let alive: Vec<_> = self
                .pods_on(node)
                .into_iter()
                .filter(|pod| pods::is_active(pod))
                .collect();
            match alive.as_slice() {
                [pod] if self.is_current(pod) => unavailable += i32::from(!self.is_available(pod)),
                [pod] if !self.is_available(pod) => {
                    self.delete(pod);
                    unavailable += 1;
                }
                [pod] => candidates.push(*pod),
                _ => unavailable += 1,
            }
        }
        let allowed = usize::try_from(self.max_unavailable() - unavailable).unwrap_or(0);
        for pod in candidates.into_iter().take(allowed) {
            self.delete(pod);
        }
    }

    /// A new pod comes before the old one of its node goes.
    fn roll_with_surge(&mut self) {
        let mut allowed = self.max_surge();
        let nodes: Vec<_> = self
            .view
            .nodes
            .iter()
            .filter(|node| self.is_wanted(node))
            .collect();
        for node in nodes {
            let alive: Vec<_> = self
                .pods_on(node)
                .into_iter()
                .filter(|pod| pods::is_active(pod))
                .collect();
            let old = alive.iter().find(|pod| !self.is_current(pod)).copied();
            let new = alive.iter().find(|pod| self.is_current(pod)).copied();
            match (old, new) {
                (Some(old), Some(new)) if self.is_available(new) => self.delete(old),
                (Some(_), Some(_)) => allowed -= 1,
                (Some(old), None) if allowed > 0 || !self.is_available(old) => {
                    allowed -= 1;
                    self.create(node);
                }
                _ => {}
            }
        }
    }

    /// The spec of a pod for a node: it goes there, whatever the node's condition.
    fn pod_spec(&self, node: &Node) -> PodSpec {
        let mut spec = self.spec.template.spec.clone().unwrap_or_default();
        let toleration = |key: &str, effect: &str| Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        let tolerations = spec.tolerations.get_or_insert_default();
        for key in ["not-ready", "unreachable"] {
            tolerations.push(toleration(
                &format!("node.kubernetes.io/{key}"),
                "NoExecute",
            ));
        }
        for key in [
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
        ] {
            tolerations.push(toleration(
                &format!("node.kubernetes.io/{key}"),
                "NoSchedule",
            ));
        }
        if spec.host_network == Some(true) {
            tolerations.push(toleration(
                "node.kubernetes.io/network-unavailable",
                "NoSchedule",
            ));
        }
        let field = NodeSelectorRequirement {
            key: NODE_NAME_FIELD.to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.metadata.name.clone().unwrap_or_default()]),
        };
        let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
        let affinity: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
        let required = affinity
            .required_during_scheduling_ignored_during_execution
            .get_or_insert_with(|| NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm::default()],
            });
        for term in &mut required.node_selector_terms {
            term.match_fields = Some(vec![field.clone()]);
        }
        spec
    }

    fn create(&mut self, node: &Node) {
        let mut pod = pods::from_template(&self.spec.template, &self.owner);
        pod.spec = Some(self.pod_spec(node));
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(CONTROLLER_REVISION_HASH.to_owned(), self.hash.clone());
        let generation =
            annotation(&self.view.set.metadata, DEPRECATED_TEMPLATE_GENERATION).unwrap_or("1");
        labels.insert(TEMPLATE_GENERATION.to_owned(), generation.to_owned());
        let event = Event::normal(
            self.owner.clone(),
            COMPONENT,
            SUCCESSFUL_CREATE,
            "Created pod: {}",
        );
        let failed = Event::warning(
            self.owner.clone(),
            COMPONENT,
            FAILED_CREATE,
            "Error creating: {}",
        );
        self.plan
            .create(&pod, Some(self.owner.clone()), Some(event), Some(failed));
    }

    fn delete(&mut self, pod: &Pod) {
        self.plan.delete(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Deleted pod: {name}");
        self.plan.record_event(Event::normal(
            self.owner.clone(),
            COMPONENT,
            SUCCESSFUL_DELETE,
            message,
        ));
    }

    fn write_status(&mut self) {
        let old = self.view.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: self.view.set.metadata.generation,
            collision_count: old.collision_count,
            conditions: old.conditions.clone(),
            ..DaemonSetStatus::default()
        };
        let (mut updated, mut available) = (0, 0);
        for node in self.view.nodes {
            let on_node = self.pods_on(node);
            if !self.is_wanted(node) {
                status.number_misscheduled += i32::from(!on_node.is_empty());
                continue;
            }
            status.desired_number_scheduled += 1;
            let oldest = on_node
                .iter()
                .min_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
            let Some(pod) = oldest else { continue };
            status.current_number_scheduled += 1;
            updated += i32::from(self.is_current(pod));
            if !pods::is_ready(pod) {
                continue;
            }
            status.number_ready += 1;
            match self.available_at(pod) {
                Some(time) if time > self.view.now => self.plan.wake_at(time),
                _ => available += 1,
            }
        }
        status.updated_number_scheduled = nonzero(updated);
        status.number_available = nonzero(available);
        status.number_unavailable = nonzero(status.desired_number_scheduled - available);
        self.plan.status(self.view.set, &old, &status);
    }
}
