//! Every string with a meaning in this group: labels, annotations, finalizers, conditions...

/// Keys of labels.
pub mod label {
    /// On a namespace of a member, followed by the hash of a hub: whether sets of that hub manage it.
    pub const MANAGED_NAMESPACE_PREFIX: &str = "clusterset.open-cluster-management.io/";
    /// On a ManagedCluster: the exclusive set that it is a member of.
    pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
    /// On what belongs to a cluster, such as its namespace: the name of the cluster.
    pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
    /// On a PlacementDecision: the Placement that it answers.
    pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
    /// On a PlacementDecision: the number of its group, from 0.
    pub const DECISION_GROUP_INDEX: &str =
        "cluster.open-cluster-management.io/decision-group-index";
    /// On a PlacementDecision: the name of its group; empty for groups without one.
    pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
    /// On a ClusterClaim that is not reported to the hub.
    pub const SPOKE_ONLY: &str = "open-cluster-management.io/spoke-only";
}

/// Keys of annotations.
pub mod annotation {
    /// On a ManagedCluster: when it was accepted without a person.
    pub const AUTOMATICALLY_ACCEPTED_ON: &str =
        "open-cluster-management.io/automatically-accepted-on";
    /// On what is removed with a cluster: its turn, from 0 (early) to 100 (late).
    pub const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";
    /// On a ManagedCluster whose clock is not compared with the hub's.
    pub const SKIP_CLOCK_SYNC_CHECK: &str =
        "registration.open-cluster-management.io/skip-clock-sync-check";
    /// On a Placement that is left alone while it is `true`.
    pub const SCHEDULING_DISABLED: &str =
        "cluster.open-cluster-management.io/experimental-scheduling-disable";
    /// On a built-in ManagedClusterSet whose selector is not repaired if it is `false`.
    pub const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";
    /// On the Secret of a bootstrap token: the set that a cluster begins in which joins with it.
    pub const TOKEN_CLUSTER_SET: &str = "cluster.bellwether.dev/token-cluster-set";
    /// On the Secret of a bootstrap token: the labels that a cluster begins with which joins with it,
    /// as a JSON object.
    pub const TOKEN_LABELS: &str = "cluster.bellwether.dev/token-labels";
    /// On the namespace `kube-system` of an embedded member: when the hub let the cluster go. It does
    /// not join again by itself.
    pub const DETACHED: &str = "cluster.bellwether.dev/detached";
    /// Prefix of annotations that an agent may set on its own cluster.
    pub const AGENT_PREFIX: &str = "agent.open-cluster-management.io/";
}

/// Finalizers.
pub mod finalizer {
    /// On a ManagedCluster until its access rights are gone.
    pub const API_RESOURCE_CLEANUP: &str =
        "cluster.open-cluster-management.io/api-resource-cleanup";
    /// On a ManagedCluster until what is in its namespace is gone.
    pub const RESOURCE_CLEANUP: &str = "cluster.open-cluster-management.io/resource-cleanup";
}

/// Keys of taints that the hub sets itself.
pub mod taint {
    /// The cluster says that it is not available.
    pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
    /// The cluster says nothing.
    pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
}

/// Names of claims that are reported however many others there are.
pub mod claim {
    /// A unique identifier of the cluster.
    pub const ID: &str = "id.k8s.io";
    /// The version of Kubernetes.
    pub const KUBE_VERSION: &str = "kubeversion.open-cluster-management.io";
    /// Platform of the cluster.
    pub const PLATFORM: &str = "platform.open-cluster-management.io";
    /// Distribution of Kubernetes.
    pub const PRODUCT: &str = "product.open-cluster-management.io";
    /// All of these.
    pub const RESERVED: [&str; 4] = [ID, KUBE_VERSION, PLATFORM, PRODUCT];
}

/// Names of objects.
pub mod object {
    /// The set that clusters without a set are put in.
    pub const DEFAULT_CLUSTER_SET: &str = "default";
    /// The set of all clusters.
    pub const GLOBAL_CLUSTER_SET: &str = "global";
    /// The Lease in a cluster's namespace that its agent renews.
    pub const LEASE: &str = "managed-cluster-lease";
}

/// Users, groups, roles and objects with which clusters register.
pub mod registration {
    /// Prefix of the user of an agent; the cluster, a colon and the agent follow.
    pub const USER_PREFIX: &str = "system:open-cluster-management:";
    /// The group of all agents.
    pub const CLUSTERS_GROUP: &str = "system:open-cluster-management:managed-clusters";
    /// Prefix of further subjects of the roles of a cluster; its name follows.
    pub const EXTERNAL_GROUP_PREFIX: &str = "open-cluster-management:";
    /// The signer of agents' certificates.
    pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    /// Between the name of a cluster and a number, in names of certificate requests that only agents of
    /// that cluster may use.
    pub const RENEWAL_INFIX: &str = "-renewal-";
    /// The namespace of the Secrets of bootstrap tokens, as in Kubernetes.
    pub const TOKEN_NAMESPACE: &str = "kube-system";
    /// Prefix of the names of these Secrets; the id of the token follows.
    pub const TOKEN_SECRET_PREFIX: &str = "bootstrap-token-";
    /// Prefix of the users of bootstrap tokens; the id of the token follows.
    pub const TOKEN_USER_PREFIX: &str = "system:bootstrap:";
    /// The group of those who ask to join.
    pub const BOOTSTRAP_GROUP: &str = "system:bootstrappers:managedcluster";
    /// Permissions of agents that request to join.
    pub const BOOTSTRAP_ROLE: &str = "open-cluster-management:bootstrap";
    /// Permissions of an agent in the namespace of its cluster, for itself.
    pub const REGISTRATION_ROLE: &str = "open-cluster-management:managedcluster:registration";
    /// Permissions of an agent in the namespace of its cluster, for works.
    pub const WORK_ROLE: &str = "open-cluster-management:managedcluster:work";
    /// Permissions added to the role `view` of every namespace.
    pub const VIEW_ROLE: &str = "bellwether:aggregate-to-view";
    /// Permissions added to the roles `edit` and `admin` of every namespace.
    pub const EDIT_ROLE: &str = "bellwether:aggregate-to-edit";
    /// Prefix of the names of roles and bindings of one cluster; its name follows.
    pub const CLUSTER_ROLE_PREFIX: &str = "open-cluster-management:managedcluster:";
    /// Suffix of role bindings for the agent itself.
    pub const REGISTRATION_SUFFIX: &str = ":registration";
    /// Suffix of role bindings for works.
    pub const WORK_SUFFIX: &str = ":work";
    /// The group of the rights to accept clusters and to renew certificates.
    pub const REGISTER_GROUP: &str = "register.open-cluster-management.io";
    /// On a certificate request that the hub approved by itself: why.
    pub const AUTO_APPROVED_REASON: &str = "AutoApprovedByHubCSRApprovingController";
    /// The namespace of the agent on a member.
    pub const AGENT_NAMESPACE: &str = "open-cluster-management-agent";
    /// The Secret with an agent's certificate, on a member.
    pub const HUB_KUBECONFIG_SECRET: &str = "hub-kubeconfig-secret";
    /// The Secret on a member with a request to join that has not been answered.
    pub const JOIN_REQUEST_SECRET: &str = "hub-join-request";
    /// The Secret with which an agent asks to join, on a member.
    pub const BOOTSTRAP_SECRET: &str = "bootstrap-hub-kubeconfig";
}

/// Operators of selectors beyond those of Kubernetes.
pub mod operator {}

/// Names of built-in prioritizers.
pub mod prioritizer {
    /// Prefers clusters with few decisions.
    pub const BALANCE: &str = "Balance";
    /// Prefers clusters that are already selected.
    pub const STEADY: &str = "Steady";
    /// Prefers clusters with much CPU to give.
    pub const RESOURCE_ALLOCATABLE_CPU: &str = "ResourceAllocatableCPU";
    /// Prefers clusters with much memory to give.
    pub const RESOURCE_ALLOCATABLE_MEMORY: &str = "ResourceAllocatableMemory";
}

/// Types of conditions.
pub mod condition {
    /// ManagedCluster: the hub accepted it.
    pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
    /// ManagedCluster: its agent has joined.
    pub const JOINED: &str = "ManagedClusterJoined";
    /// ManagedCluster: it is alive and its API server answers.
    pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
    /// ManagedCluster: its clock agrees with the hub's.
    pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
    /// ManagedCluster: its certificate was renewed.
    pub const CERTIFICATE_ROTATED: &str = "ClusterCertificateRotated";
    /// ManagedCluster: it is being removed.
    pub const DELETING: &str = "Deleting";
    /// ManagedClusterSet: it has no members.
    pub const CLUSTER_SET_EMPTY: &str = "ClusterSetEmpty";
    /// ManagedClusterSet of all clusters: so many stopped renewing their leases that none is tainted for it.
    pub const HEARTBEAT_LOSS: &str = "HeartbeatLoss";
    /// ManagedClusterSetBinding: its set exists.
    pub const BOUND: &str = "Bound";
    /// A namespace that a set manages on a cluster: it is there.
    pub const NAMESPACE_AVAILABLE: &str = "NamespaceAvailable";
    /// Placement: as many clusters are selected as were asked for.
    pub const PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
    /// Placement: it cannot be understood.
    pub const PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";
}

/// Reasons of conditions, by what they belong to.
pub mod reason {
    /// `HUB_ACCEPTED` is true.
    pub const HUB_CLUSTER_ADMIN_ACCEPTED: &str = "HubClusterAdminAccepted";
    /// `HUB_ACCEPTED` is false: somebody said so.
    pub const HUB_CLUSTER_ADMIN_DENIED: &str = "HubClusterAdminDenied";
    /// `HUB_ACCEPTED` is false: rights could not be given.
    pub const ERROR: &str = "Error";
    /// `AVAILABLE` is true.
    pub const MANAGED_CLUSTER_AVAILABLE: &str = "ManagedClusterAvailable";
    /// `AVAILABLE` is false: the API server of the cluster does not answer.
    pub const KUBE_API_SERVER_UNAVAILABLE: &str = "ManagedClusterKubeAPIServerUnavailable";
    /// `AVAILABLE` is unknown: the agent is silent.
    pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
    /// `CLOCK_SYNCED` is true.
    pub const CLOCK_SYNCED: &str = "ManagedClusterClockSynced";
    /// `CLOCK_SYNCED` is false.
    pub const CLOCK_OUT_OF_SYNC: &str = "ManagedClusterClockOutOfSync";
    /// `CERTIFICATE_ROTATED` is true.
    pub const CLIENT_CERTIFICATE_UPDATED: &str = "ClientCertificateUpdated";
    /// `CERTIFICATE_ROTATED` is false.
    pub const CLIENT_CERTIFICATE_UPDATE_FAILED: &str = "ClientCertificateUpdateFailed";
    /// `DELETING` is false: something is left.
    pub const RESOURCE_REMAINING: &str = "ResourceRemaining";
    /// `DELETING` is false: something cannot be removed.
    pub const DELETING_ERROR: &str = "DeletingError";
    /// `DELETING` is true: nothing is left.
    pub const NO_RESOURCE: &str = "NoResource";
    /// `CLUSTER_SET_EMPTY` is true.
    pub const NO_CLUSTER_MATCHED: &str = "NoClusterMatched";
    /// `CLUSTER_SET_EMPTY` is true: the selector is invalid.
    pub const INVALID_CLUSTER_SELECTOR: &str = "InvalidClusterSelector";
    /// `CLUSTER_SET_EMPTY` is false.
    pub const CLUSTERS_SELECTED: &str = "ClustersSelected";
    /// `HEARTBEAT_LOSS` is true.
    pub const TOO_MANY_CLUSTERS_SILENT: &str = "TooManyClustersSilent";
    /// `HEARTBEAT_LOSS` is false.
    pub const CLUSTERS_RENEW: &str = "ClustersRenew";
    /// `BOUND` is true.
    pub const CLUSTER_SET_BOUND: &str = "ClusterSetBound";
    /// `BOUND` is false.
    pub const CLUSTER_SET_NOT_FOUND: &str = "ClusterSetNotFound";
    /// `NAMESPACE_AVAILABLE` is true.
    pub const NAMESPACE_APPLIED: &str = "NamespaceApplied";
    /// `NAMESPACE_AVAILABLE` is false.
    pub const NAMESPACE_APPLY_FAILED: &str = "NamespaceApplyFailed";
    /// `PLACEMENT_SATISFIED` is false: the namespace is bound to no set.
    pub const NO_MANAGED_CLUSTER_SET_BINDINGS: &str = "NoManagedClusterSetBindings";
    /// `PLACEMENT_SATISFIED` is false: none of the sets wanted is bound.
    pub const NO_INTERSECTION: &str = "NoIntersection";
    /// `PLACEMENT_SATISFIED` is false: the sets have no members.
    pub const ALL_MANAGED_CLUSTER_SETS_EMPTY: &str = "AllManagedClusterSetsEmpty";
    /// `PLACEMENT_SATISFIED` is false: no cluster fits.
    pub const NO_MANAGED_CLUSTER_MATCHED: &str = "NoManagedClusterMatched";
    /// `PLACEMENT_SATISFIED` is true.
    pub const ALL_DECISIONS_SCHEDULED: &str = "AllDecisionsScheduled";
    /// `PLACEMENT_SATISFIED` is false: too few clusters fit.
    pub const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";
    /// `PLACEMENT_MISCONFIGURED` is true.
    pub const MISCONFIGURED: &str = "Misconfigured";
    /// `PLACEMENT_MISCONFIGURED` is false. The word is the peer's.
    pub const SUCCEED_CONFIGURED: &str = "Succeedconfigured";
}

/// Reasons of events.
pub mod event {
    /// On a placement: decisions have been created.
    pub const DECISION_CREATE: &str = "DecisionCreate";
    /// On a placement: decisions have been changed.
    pub const DECISION_UPDATE: &str = "DecisionUpdate";
    /// On a placement: decisions have been deleted.
    pub const DECISION_DELETE: &str = "DecisionDelete";
    /// On a placement: the scores by which decisions have been written.
    pub const SCORE_UPDATE: &str = "ScoreUpdate";
    /// On a placement: it cannot be understood, and keeps the decisions it has.
    pub const MISCONFIGURED: &str = "Misconfigured";
    /// On a cluster: it is accepted.
    pub const ACCEPTED: &str = "Accepted";
    /// On a cluster: it is accepted, but cannot be given its rights.
    pub const ACCEPT_FAILED: &str = "AcceptFailed";
    /// On a cluster: it is accepted no more.
    pub const DENIED: &str = "Denied";
    /// On a cluster: its agent has joined.
    pub const JOINED: &str = "Joined";
    /// On a cluster: it is available, or is again.
    pub const AVAILABLE: &str = "Available";
    /// On a cluster: its API server does not answer.
    pub const UNAVAILABLE: &str = "Unavailable";
    /// On a cluster: its agent is no longer renewing its lease.
    pub const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";
    /// On a cluster: its clock is off.
    pub const CLOCK_OUT_OF_SYNC: &str = "ClockOutOfSync";
    /// On a cluster: it has more claims than are reported.
    pub const CUSTOM_CLAIMS_TRUNCATED: &str = "CustomClusterClaimsTruncated";
    /// On a cluster: its certificate has been renewed.
    pub const CERTIFICATE_ROTATED: &str = "CertificateRotated";
    /// On a cluster: its certificate could not be renewed.
    pub const CERTIFICATE_ROTATION_FAILED: &str = "CertificateRotationFailed";
    /// On a cluster: what it runs is being removed before it leaves.
    pub const DETACHING: &str = "Detaching";
    /// On the set of all clusters: so many stopped renewing their leases that none is tainted for it.
    pub const HEARTBEAT_LOSS: &str = "HeartbeatLoss";
    /// On the set of all clusters: a loss of heartbeats is over.
    pub const HEARTBEATS_BACK: &str = "HeartbeatsBack";
    /// On a cluster: rights that somebody took away have been given back.
    pub const RIGHTS_RESTORED: &str = "RightsRestored";
}
