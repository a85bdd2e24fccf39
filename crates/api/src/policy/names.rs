//! Every string with a meaning in this group: labels, annotations, finalizers, reasons.

/// Keys of labels.
pub mod label {
    /// Prefix of the keys of the framework: `copyPolicyMetadata: false` copies these alone.
    pub const PREFIX: &str = "policy.open-cluster-management.io/";
    /// On a replica: the cluster that it is for.
    pub const CLUSTER_NAME: &str = "policy.open-cluster-management.io/cluster-name";
    /// On a replica: the namespace of that cluster.
    pub const CLUSTER_NAMESPACE: &str = "policy.open-cluster-management.io/cluster-namespace";
    /// On a replica: namespace and name of its root policy, with a dot between them.
    pub const ROOT_POLICY: &str = "policy.open-cluster-management.io/root-policy";
    /// On a template on a cluster: the policy that it is part of.
    pub const POLICY: &str = "policy.open-cluster-management.io/policy";
    /// On a template on a cluster: the cluster, as older readers look for it.
    pub const OLD_CLUSTER_NAME: &str = "cluster-name";
    /// On a template on a cluster: its namespace, as older readers look for it.
    pub const OLD_CLUSTER_NAMESPACE: &str = "cluster-namespace";
    /// On a definition of a kind: what its objects are to policies.
    pub const POLICY_TYPE: &str = "policy.open-cluster-management.io/policy-type";
    /// On the Secret with the key of a cluster: what backs it up.
    pub const BACKUP: &str = "cluster.open-cluster-management.io/backup";
}

/// Keys of annotations.
pub mod annotation {
    /// On a replica: tells Argo CD that nobody has to have declared it.
    pub const ARGO_COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
    /// The value of [`ARGO_COMPARE_OPTIONS`].
    pub const IGNORE_EXTRANEOUS: &str = "IgnoreExtraneous";
    /// On a root policy: a value that changes when replicas have to be made again. Never copied.
    pub const TRIGGER_UPDATE: &str = "policy.open-cluster-management.io/trigger-update";
    /// On a policy or a template: `true` leaves templates as they are.
    pub const DISABLE_TEMPLATES: &str = "policy.open-cluster-management.io/disable-templates";
    /// On an object definition of a replica: why its hub templates have no value.
    pub const HUB_TEMPLATES_ERROR: &str = "policy.open-cluster-management.io/hub-templates-error";
    /// On a replica and its templates: the initialisation vector of encrypted values, in base64.
    pub const ENCRYPTION_IV: &str = "policy.open-cluster-management.io/encryption-iv";
    /// On the Secret with the key of a cluster: when the key was made.
    pub const LAST_ROTATED: &str = "policy.open-cluster-management.io/last-rotated";
    /// On the Secret with the key of a cluster: `true` keeps the key for good.
    pub const DISABLE_ROTATION: &str = "policy.open-cluster-management.io/disable-rotation";
    /// On a replica in a progressive rollout: a hash of what the cluster gets. Another hash is another
    /// version.
    pub const ROLLOUT_HASH: &str = "policy.open-cluster-management.io/rollout-hash";
    /// On a root policy: no further cluster enforces it until this is gone. Any value but `false`;
    /// `bellwether rollout pause` writes the time. Never copied.
    pub const ROLLOUT_PAUSED: &str = "policy.bellwether.dev/rollout-paused";
}

/// The Secret in the namespace of a cluster with the keys that hub templates encrypt with.
pub mod encryption {
    /// Name of the Secret.
    pub const SECRET: &str = "policy-encryption-key";
    /// The key.
    pub const KEY: &str = "key";
    /// The key before that.
    pub const PREVIOUS_KEY: &str = "previousKey";
    /// The key that versions are told apart with; the first key if the Secret does not have it.
    pub const VERSION_KEY: &str = "versionKey";
    /// The value of [`super::label::BACKUP`].
    pub const BACKUP: &str = "policy";
}

/// On the Subscription of an operator that a policy installs.
pub mod operator {
    /// As a label: a policy installs it. As an annotation: namespace and name of the policy.
    pub const MANAGED: &str = "operatorpolicy.policy.open-cluster-management.io/managed";
}

/// Gatekeeper, whose objects policies may have as templates.
pub mod gatekeeper {
    /// The group of ConstraintTemplates.
    pub const TEMPLATES: &str = "templates.gatekeeper.sh";
    /// The group of constraints.
    pub const CONSTRAINTS: &str = "constraints.gatekeeper.sh";
    /// `spec.enforcementAction` of a constraint: it reports.
    pub const WARN: &str = "warn";
    /// `spec.enforcementAction` of a constraint: it refuses.
    pub const DENY: &str = "deny";
}

/// Reasons of events.
pub mod reason {
    /// A replica was made, changed or removed.
    pub const POLICY_PROPAGATION: &str = "PolicyPropagation";
    /// A rollout went on, stopped, or cannot be understood.
    pub const POLICY_ROLLOUT: &str = "PolicyRollout";
    /// A PolicySet names a policy that does not exist.
    pub const POLICY_NOT_FOUND: &str = "PolicyNotFound";
    /// A template of a policy was created or changed, or cannot be.
    pub const POLICY_TEMPLATE_SYNC: &str = "PolicyTemplateSync";
}

/// The value of [`label::POLICY_TYPE`] for kinds that policies have as templates.
pub const POLICY_TYPE_TEMPLATE: &str = "template";

/// Finalizers.
pub mod finalizer {
    /// On a ConfigurationPolicy: objects of it are deleted before it is.
    pub const DELETE_RELATED_OBJECTS: &str =
        "policy.open-cluster-management.io/delete-related-objects";
    /// On a policy on a cluster: templates of it that have no namespace are deleted before it is.
    pub const CLEANUP_CLUSTER_SCOPED: &str =
        "policy.open-cluster-management.io/cleanup-cluster-scoped-policies";
}

/// Component that records the events of the hub.
pub const PROPAGATOR: &str = "policy-propagator";
/// Component that records the events of policy sets.
pub const POLICY_SET: &str = "policy-set";

/// The name of the replica of a root policy.
pub fn replica_name(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// The namespace and name of the root policy of a replica of this name: it is cut at the first dot.
pub fn root_of(replica: &str) -> Option<(&str, &str)> {
    replica.split_once('.')
}
