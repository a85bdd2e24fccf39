//! Taking over a hub from other controllers, and giving it back.
//!
//! The kinds are the same, and so are labels, finalizers and records: what is on a hub can be carried on as it is. So taking over means to
//! stop the controllers that were there, and nothing else. [`plan`] is pure: it reads what is there and says what to stop and what
//! stands in the way.

mod effects;

pub use effects::obstacle_of;

use bellwether_api::adoption::{FAILURE_POLICIES, REPLICAS};
use bellwether_api::oam::ResourceTracker;
use serde_json::{Value, json};

use crate::registry::{Entry, HUB};

/// Whose hub it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Open Cluster Management.
    Ocm,
    /// KubeVela.
    Kubevela,
}

/// What is on a hub, as far as it matters.
#[derive(Debug, Default)]
pub struct Found {
    /// All Deployments.
    pub deployments: Vec<Value>,
    /// All webhook configurations, of both kinds, with `apiVersion` and `kind`.
    pub webhooks: Vec<Value>,
    /// All ResourceTrackers.
    pub trackers: Vec<ResourceTracker>,
}

/// A change of an object that is not of the fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happens, for people.
    pub what: String,
    /// The path of the object.
    pub path: String,
    /// What is done to it.
    pub change: Change,
}

/// What is done to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A merge patch.
    Patch(Value),
    /// A merge patch that stops a Deployment. Its pods have to be gone before the next step: until then they act on what that step
    /// changes.
    Stop(Value),
    /// It is deleted.
    Delete,
}

/// What taking over, or giving back, takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Steps in their order.
    pub steps: Vec<Step>,
    /// Why it should not be done.
    pub obstacles: Vec<String>,
}

/// The controllers of Open Cluster Management that ours replace, as their operator names them. Add-ons are managed by their own
/// managers, which go on.
const OCM_CONTROLLERS: [&str; 5] = [
    "placement-controller",
    "registration-controller",
    "registration-webhook",
    "work-controller",
    "work-webhook",
];

/// The rank of what keeps other controllers in order.
const OPERATOR: u8 = 0;

/// The groups of Open Cluster Management that have webhooks.
const OCM_GROUPS: [&str; 2] = [bellwether_api::cluster::GROUP, bellwether_api::work::GROUP];

impl Origin {
    /// Returns the controllers that carry on what was there.
    pub fn controllers(self) -> Vec<Entry> {
        let names: &[&str] = match self {
            Self::Ocm => &[
                "cluster-set",
                "placement",
                "policy-propagator",
                "registration",
                "replica-set",
                "work-config",
                "work-ttl",
            ],
            Self::Kubevela => &[
                "application",
                "application-configuration",
                "component",
                "definition",
                "workflow-run",
            ],
        };
        let chosen = HUB.iter().filter(|entry| names.contains(&entry.name));
        chosen.copied().collect()
    }

    /// Whether a Deployment runs its controllers; those that keep others in order come first.
    fn rank(self, deployment: &Value) -> Option<u8> {
        let metadata = &deployment["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        match self {
            Self::Ocm => match name {
                "cluster-manager" => Some(OPERATOR),
                "governance-policy-propagator" => Some(1),
                _ => {
                    let part = name.strip_prefix("cluster-manager-")?;
                    OCM_CONTROLLERS.contains(&part).then_some(1)
                }
            },
            Self::Kubevela => {
                let label = metadata["labels"]["app.kubernetes.io/name"].as_str();
                let is_core = ["vela-core", "vela-workflow"].contains(&label.unwrap_or_default());
                is_core.then_some(1)
            }
        }
    }

    /// Whether a webhook configuration calls its controllers.
    fn calls(self, configuration: &Value) -> bool {
        let name = configuration["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        match self {
            Self::Ocm => {
                let group = name.split_once(".admission.").map(|(_, group)| group);
                group.is_some_and(|group| OCM_GROUPS.contains(&group))
            }
            Self::Kubevela => name.ends_with("vela-core-admission"),
        }
    }
}

/// Returns what taking over takes.
pub fn plan(origin: Origin, found: &Found) -> Plan {
    let mut running: Vec<(u8, &Value)> = found
        .deployments
        .iter()
        .filter_map(|deployment| Some((origin.rank(deployment)?, deployment)))
        .filter(|(_, deployment)| replicas(deployment) > 0)
        .collect();
    running.sort_by_key(|(rank, deployment)| (*rank, path_of(deployment)));
    let mut operators: Vec<Step> = Vec::new();
    let mut others: Vec<Step> = Vec::new();
    for (rank, deployment) in running {
        let replicas = replicas(deployment);
        let steps = if rank == OPERATOR {
            &mut operators
        } else {
            &mut others
        };
        steps.push(Step {
            what: format!("stop {} ({replicas} replicas)", shown(deployment)),
            path: path_of(deployment),
            change: Change::Stop(json!({
                "metadata": {"annotations": {REPLICAS: replicas.to_string()}},
                "spec": {"replicas": 0},
            })),
        });
    }
    // Soon nobody answers them any more: writes that ask them would fail. An operator would change them back.
    let calls = found.webhooks.iter().filter(|it| origin.calls(it));
    let calls = calls.filter_map(|configuration| {
        let policies = policies(configuration);
        policies
            .iter()
            .any(|policy| policy == "Fail")
            .then(|| Step {
                what: format!("let writes pass {}", shown(configuration)),
                path: path_of(configuration),
                change: Change::Patch(json!({
                    "metadata": {"annotations": {FAILURE_POLICIES: policies.join(",")}},
                    "webhooks": with_policies(configuration, |_| Some("Ignore".to_owned())),
                })),
            })
    });
    Plan {
        steps: operators.into_iter().chain(calls).chain(others).collect(),
        obstacles: match origin {
            Origin::Ocm => Vec::new(),
            Origin::Kubevela => found.trackers.iter().filter_map(obstacle).collect(),
        },
    }
}

/// Whether a Deployment runs a hub of ours.
fn is_our_hub(deployment: &Value) -> bool {
    let labels = &deployment["metadata"]["labels"];
    labels["app.kubernetes.io/name"] == "bellwether"
        && labels["app.kubernetes.io/component"] == "hub"
}

/// Returns what giving back takes: our hub ends, its webhooks, which are called that name, go, and everything that was stopped runs
/// again.
pub fn undo(origin: Origin, found: &Found, our_webhooks: &str) -> Plan {
    let annotation = |object: &Value, name: &str| {
        let value = object["metadata"]["annotations"][name].as_str();
        value.map(str::to_owned)
    };
    let ours = found.deployments.iter();
    let ours = ours.filter(|it| is_our_hub(it) && replicas(it) > 0);
    let stops = ours.map(|deployment| Step {
        what: format!("stop {}", shown(deployment)),
        path: path_of(deployment),
        change: Change::Stop(json!({"spec": {"replicas": 0}})),
    });
    // Nobody answers them any more, and nobody creates them again: all writes to the hub would be refused.
    let ours = found.webhooks.iter();
    let ours = ours.filter(|it| it["metadata"]["name"] == our_webhooks);
    let silenced = ours.map(|configuration| Step {
        what: format!("delete {}", shown(configuration)),
        path: path_of(configuration),
        change: Change::Delete,
    });
    let starts = found.deployments.iter().filter_map(|deployment| {
        origin.rank(deployment)?;
        let replicas: u32 = annotation(deployment, REPLICAS)?.parse().ok()?;
        Some(Step {
            what: format!("start {} ({replicas} replicas)", shown(deployment)),
            path: path_of(deployment),
            change: Change::Patch(json!({
                "metadata": {"annotations": {REPLICAS: null}},
                "spec": {"replicas": replicas},
            })),
        })
    });
    let calls = found.webhooks.iter().filter_map(|configuration| {
        let kept = annotation(configuration, FAILURE_POLICIES)?;
        let kept: Vec<&str> = kept.split(',').collect();
        let policy = |index: usize| kept.get(index).map(|policy| (*policy).to_owned());
        origin.calls(configuration).then(|| Step {
            what: format!("let writes ask {}", shown(configuration)),
            path: path_of(configuration),
            change: Change::Patch(json!({
                "metadata": {"annotations": {FAILURE_POLICIES: null}},
                "webhooks": with_policies(configuration, policy),
            })),
        })
    });
    Plan {
        steps: stops.chain(silenced).chain(starts).chain(calls).collect(),
        obstacles: Vec::new(),
    }
}

/// Why what a tracker records cannot be carried on as it is.
fn obstacle(tracker: &ResourceTracker) -> Option<String> {
    let name = tracker.metadata.name.as_deref().unwrap_or_default();
    // What can be read is not compressed any more: the type has taken it for its own.
    let compression = tracker.spec.compression.as_ref();
    if let Some(compression) = compression.filter(|it| !it.data.is_empty()) {
        return Some(format!(
            "ResourceTracker {name} has content of the type {:?} that cannot be read: switch compression off in KubeVela (feature gates \
             GzipResourceTracker and ZstdResourceTracker) and let it write its trackers again",
            compression.compression_type
        ));
    }
    let resources = tracker.spec.managed_resources.iter();
    let mut clusters: Vec<&str> = resources
        .map(|resource| resource.cluster.as_str())
        .filter(|cluster| !["", "local"].contains(cluster))
        .collect();
    clusters.sort_unstable();
    clusters.dedup();
    (!clusters.is_empty()).then(|| {
        format!(
            "ResourceTracker {name} has objects on {}: KubeVela writes there by its cluster gateway, this hub by works of agents, which add \
             themselves to the owners of these objects",
            clusters.join(", ")
        )
    })
}

fn replicas(deployment: &Value) -> u64 {
    deployment["spec"]["replicas"].as_u64().unwrap_or(1)
}

fn policies(configuration: &Value) -> Vec<String> {
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    let policies = webhooks.map(|it| it["failurePolicy"].as_str().unwrap_or("Fail").to_owned());
    policies.collect()
}

fn with_policies(configuration: &Value, policy: impl Fn(usize) -> Option<String>) -> Value {
    let mut webhooks = configuration["webhooks"].clone();
    for (index, webhook) in webhooks.as_array_mut().into_iter().flatten().enumerate() {
        if let Some(policy) = policy(index) {
            webhook["failurePolicy"] = policy.into();
        }
    }
    webhooks
}

fn shown(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let plural = format!("{}s", text(&object["kind"]).to_lowercase());
    let name = text(&object["metadata"]["name"]);
    let root = format!("/apis/{}", text(&object["apiVersion"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("{root}/{plural}/{name}"),
    }
}

#[cfg(test)]
mod tests;
