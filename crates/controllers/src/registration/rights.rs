//! What agents may do on a hub, as roles and bindings.

use bellwether_api::addon::{self, ManagedClusterAddOn};
use bellwether_api::cluster::names::{label, registration as names};
use bellwether_api::cluster::{
    AddOnPlacementScore, GROUP, ManagedCluster, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};
use bellwether_api::multicluster::{Work, WorkManifestConfig};
use bellwether_api::policy::{PlacementBinding, Policy, PolicyAutomation, PolicySet};
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_api::{Kind as _, multicluster, policy, work};
use serde_json::{Value, json};

use bellwether_api::cluster::agent_identity::{
    cluster_role, group, registration_binding, work_binding,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// How much of its rights a cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAccess {
    /// It is accepted.
    Accepted,
    /// It was accepted once. It may still see that it is not, and remove what it runs.
    Denied,
}

/// Roles that all clusters of a hub share, and the one for those who ask to join.
pub fn shared() -> Vec<Value> {
    let read = ["get", "list", "watch"];
    let clusters = ManagedCluster::NAMES.plural;
    let works = ManifestWork::NAMES.plural;
    let policies = Policy::NAMES.plural;
    let add_ons = ManagedClusterAddOn::NAMES.plural;
    let bootstrap = json!([
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
         "verbs": ["create", "get", "list", "watch"]},
        {"apiGroups": [GROUP], "resources": [clusters],
         "verbs": ["create", "get", "list", "watch"]},
        {"apiGroups": [GROUP], "resources": ["managedclustersets/join"], "verbs": ["create"]},
    ]);
    let registration = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
         "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": [addon::GROUP], "resources": [add_ons], "verbs": read},
        {"apiGroups": [addon::GROUP], "resources": [format!("{add_ons}/status")],
         "verbs": ["patch", "update"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"],
         "verbs": ["create", "patch", "update"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["list", "watch"]},
    ]);
    // Works that are done and whose time has come are deleted by the agent.
    let of_works = json!([
        {"apiGroups": [work::GROUP], "resources": [works],
         "verbs": ["get", "list", "watch", "update", "patch", "delete"]},
        {"apiGroups": [work::GROUP], "resources": [format!("{works}/status")],
         "verbs": ["patch", "update"]},
        {"apiGroups": [multicluster::GROUP], "resources": [Work::NAMES.plural],
         "verbs": ["get", "list", "watch", "update", "patch", "delete"]},
        {"apiGroups": [multicluster::GROUP], "resources": [format!("{}/status", Work::NAMES.plural)],
         "verbs": ["patch", "update"]},
        // Policies of the cluster, and the key with which texts in them are encrypted.
        {"apiGroups": [policy::GROUP], "resources": [policies], "verbs": read},
        {"apiGroups": [policy::GROUP], "resources": [format!("{policies}/status")],
         "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
         "resourceNames": [policy::names::encryption::SECRET]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"],
         "verbs": ["create", "patch", "update"]},
    ]);
    vec![
        role(names::BOOTSTRAP_ROLE, &bootstrap, None),
        role(names::REGISTRATION_ROLE, &registration, None),
        role(names::WORK_ROLE, &of_works, None),
        aggregated(names::VIEW_ROLE, "view", &read),
        aggregated(
            names::EDIT_ROLE,
            "edit",
            &["create", "update", "patch", "delete", "deletecollection"],
        ),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": names::BOOTSTRAP_ROLE},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": names::BOOTSTRAP_ROLE},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": names::BOOTSTRAP_GROUP}],
        }),
    ]
}

/// A role that adds verbs on what people deliver to the roles `view`, or `edit` and `admin`, of every
/// namespace.
fn aggregated(name: &str, to: &str, verbs: &[&str]) -> Value {
    let rules = json!([
        {"apiGroups": [GROUP], "resources": [Placement::NAMES.plural], "verbs": verbs},
        {"apiGroups": [work::GROUP],
         "resources": [ManifestWork::NAMES.plural, ManifestWorkReplicaSet::NAMES.plural],
         "verbs": verbs},
        {"apiGroups": [multicluster::GROUP], "resources": [Work::NAMES.plural], "verbs": verbs},
        {"apiGroups": [policy::GROUP],
         "resources": [Policy::NAMES.plural, PlacementBinding::NAMES.plural, PolicySet::NAMES.plural,
             PolicyAutomation::NAMES.plural],
         "verbs": verbs},
    ]);
    let mut role = role(name, &rules, None);
    role["metadata"]["labels"] =
        json!({format!("rbac.authorization.k8s.io/aggregate-to-{to}"): "true"});
    if to == "view" {
        // Decisions are the scheduler's to write, scores an add-on's, and to bind a set takes a right
        // of its own.
        let read_only = [
            PlacementDecision::NAMES.plural,
            AddOnPlacementScore::NAMES.plural,
            ManagedClusterSetBinding::NAMES.plural,
        ];
        if let Some(rules) = role["rules"].as_array_mut() {
            rules.push(json!({"apiGroups": [GROUP], "resources": read_only, "verbs": verbs}));
        }
    }
    role
}

/// The namespace in which the hub keeps what belongs to a cluster.
pub fn namespace(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": cluster, "labels": {label::CLUSTER_NAME: cluster}},
    })
}

/// What a cluster has of its own beside its namespace.
pub fn of_cluster(cluster: &str, standing: ClusterAccess) -> Vec<Value> {
    let own = cluster_role(cluster);
    let mut rights = vec![
        role(&own, &rules(cluster, standing), Some(cluster)),
        binding(cluster, None, &own, &own),
    ];
    let bindings = [
        (registration_binding(cluster), names::REGISTRATION_ROLE),
        (work_binding(cluster), names::WORK_ROLE),
    ];
    if standing == ClusterAccess::Accepted {
        let bind = |(name, role): &(String, &str)| binding(cluster, Some(cluster), name, role);
        rights.extend(bindings.iter().map(bind));
    }
    rights
}

fn rules(cluster: &str, standing: ClusterAccess) -> Value {
    let clusters = ManagedCluster::NAMES.plural;
    if standing == ClusterAccess::Denied {
        return json!([{
            "apiGroups": [GROUP], "resources": [clusters], "resourceNames": [cluster],
            "verbs": ["get", "list", "watch"],
        }]);
    }
    json!([
        // What it may update is for admission to say: how it is reached, and annotations of its own.
        {"apiGroups": [GROUP], "resources": [clusters], "resourceNames": [cluster],
         "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": [GROUP], "resources": [format!("{clusters}/status")],
         "resourceNames": [cluster], "verbs": ["patch", "update"]},
        // An embedded hub shows everybody their own requests only.
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
         "verbs": ["create", "get", "list", "watch"]},
        // How the hub wants status synced, whichever cluster it is of.
        {"apiGroups": [multicluster::GROUP], "resources": [WorkManifestConfig::NAMES.plural],
         "verbs": ["get", "list", "watch"]},
        {"apiGroups": [names::REGISTER_GROUP],
         "resources": [format!("{clusters}/clientcertificates")],
         "resourceNames": [cluster], "verbs": ["renew"]},
    ])
}

fn role(name: &str, rules: &Value, cluster: Option<&str>) -> Value {
    let mut role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    });
    if let Some(cluster) = cluster {
        role["metadata"]["labels"] = json!({label::CLUSTER_NAME: cluster});
    }
    role
}

fn binding(cluster: &str, namespace: Option<&str>, name: &str, role: &str) -> Value {
    let external = format!("{}{cluster}", names::EXTERNAL_GROUP_PREFIX);
    let subject = |group: String| json!({"apiGroup": RBAC, "kind": "Group", "name": group});
    let mut binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
        "metadata": {"name": name, "labels": {label::CLUSTER_NAME: cluster}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject(group(cluster)), subject(external)],
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = json!(namespace);
    }
    binding
}
