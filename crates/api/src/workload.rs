//! Condition types, reasons, labels and annotations of Kubernetes' own workloads.

/// `True` and `False` of a condition's status.
pub mod status {
    /// It holds.
    pub const TRUE: &str = "True";
    /// It does not hold.
    pub const FALSE: &str = "False";
    /// Nobody knows.
    pub const UNKNOWN: &str = "Unknown";
}

/// The certificate of the API server, which every namespace has.
pub mod certificate {
    /// Name of the ConfigMap.
    pub const NAME: &str = "kube-root-ca.crt";
    /// Key in the ConfigMap.
    pub const KEY: &str = "ca.crt";
    /// Annotation: what an object is for.
    pub const DESCRIPTION: &str = "kubernetes.io/description";
    /// Purpose of the ConfigMap.
    pub const PURPOSE: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
}

/// Deployments and their replica sets.
pub mod deployment {
    /// Condition: enough replicas are available.
    pub const AVAILABLE: &str = "Available";
    /// Condition: the rollout goes on, or has come to its end.
    pub const PROGRESSING: &str = "Progressing";
    /// Condition: a pod could not be created or deleted.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";

    /// Reason of [`AVAILABLE`].
    pub const MINIMUM_AVAILABLE: &str = "MinimumReplicasAvailable";
    /// Reason of [`AVAILABLE`].
    pub const MINIMUM_UNAVAILABLE: &str = "MinimumReplicasUnavailable";
    /// Reason of [`PROGRESSING`].
    pub const SET_UPDATED: &str = "ReplicaSetUpdated";
    /// Reason of [`PROGRESSING`].
    pub const SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
    /// Reason of [`PROGRESSING`].
    pub const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
    /// Reason of [`PROGRESSING`].
    pub const FOUND_NEW_SET: &str = "FoundNewReplicaSet";
    /// Reason of [`PROGRESSING`].
    pub const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
    /// Reason of [`PROGRESSING`].
    pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
    /// Reason of [`PROGRESSING`].
    pub const PAUSED: &str = "DeploymentPaused";
    /// Reason of [`PROGRESSING`].
    pub const RESUMED: &str = "DeploymentResumed";
    /// Reason of [`REPLICA_FAILURE`] and of events.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// Event: a replica set got another size.
    pub const SCALING: &str = "ScalingReplicaSet";
    /// Event: a pod was created.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// Event: a pod was deleted.
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";

    /// Annotation: which rollout of its deployment a replica set belongs to.
    pub const REVISION: &str = "deployment.kubernetes.io/revision";
    /// Annotation: the rollouts that a replica set belonged to before.
    pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
    /// Annotation: how many replicas the deployment wanted when the set was last scaled.
    pub const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
    /// Annotation: how many replicas the deployment could have had then.
    pub const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
    /// Annotation of old clients for going back.
    pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
    /// Annotation of `kubectl apply`.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// Label: which template of the deployment a pod was made of.
    pub const TEMPLATE_HASH: &str = "pod-template-hash";
    /// Annotation of a pod: how sad it would be to lose it.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
}

/// Stateful sets and daemon sets.
pub mod revision {
    /// Label of pods: the revision that they were made of.
    pub const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";
    /// Label of the pods of a daemon set: the generation of its template.
    pub const TEMPLATE_GENERATION: &str = "pod-template-generation";
    /// Label of controller revisions: the hash of what they hold.
    pub const REVISION_HASH: &str = "controller.kubernetes.io/hash";
    /// Annotation of a daemon set: the generation of its template.
    pub const DEPRECATED_TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
    /// Label of the pods of a stateful set: their name.
    pub const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
    /// Label of the pods of a stateful set: their number.
    pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
}

/// Jobs and cron jobs.
pub mod job {
    /// Condition: it has succeeded, and its pods have ended.
    pub const COMPLETE: &str = "Complete";
    /// Condition: it has failed, and its pods have ended.
    pub const FAILED: &str = "Failed";
    /// Condition: it waits to be resumed.
    pub const SUSPENDED: &str = "Suspended";
    /// Condition: it is about to fail, and its pods are being ended.
    pub const FAILURE_TARGET: &str = "FailureTarget";
    /// Condition: it is about to succeed, and its pods are being ended.
    pub const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";

    /// Reason of [`COMPLETE`].
    pub const COMPLETIONS_REACHED: &str = "CompletionsReached";
    /// Reason of [`SUCCESS_CRITERIA_MET`] and [`COMPLETE`]: a rule of the success policy holds.
    pub const SUCCESS_POLICY: &str = "SuccessPolicy";
    /// Reason of [`FAILED`].
    pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
    /// Reason of [`FAILED`].
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// Reason of [`FAILED`].
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    /// Reason of [`FAILED`].
    pub const MAX_FAILED_INDEXES_EXCEEDED: &str = "MaxFailedIndexesExceeded";
    /// Reason of [`FAILED`]: a rule of the pod failure policy says so.
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// Reason of [`SUSPENDED`].
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    /// Reason of [`SUSPENDED`].
    pub const JOB_RESUMED: &str = "JobResumed";
    /// Event: a job has come to its good end.
    pub const COMPLETED: &str = "Completed";
    /// Event: more pods have succeeded than were wanted.
    pub const TOO_MANY_SUCCEEDED_PODS: &str = "TooManySucceededPods";

    /// Finalizer of pods that have not been counted yet.
    pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
    /// Label and annotation of pods of an indexed job.
    pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
    /// Annotation of pods whose failures are counted by index.
    pub const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
    /// Annotation of pods of an index that failed in ways that do not count.
    pub const INDEX_IGNORED_FAILURE_COUNT: &str =
        "batch.kubernetes.io/job-index-ignored-failure-count";
    /// Annotation of a job: when it was to run.
    pub const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
}

/// Pods and nodes.
pub mod pod {
    /// Condition: it is on a node.
    pub const SCHEDULED: &str = "PodScheduled";
    /// Condition: it has a sandbox and an address.
    pub const READY_TO_START: &str = "PodReadyToStartContainers";
    /// Condition: its init containers have ended.
    pub const INITIALIZED: &str = "Initialized";
    /// Condition: all its containers are ready.
    pub const CONTAINERS_READY: &str = "ContainersReady";
    /// Condition of pods and nodes: they can be used.
    pub const READY: &str = "Ready";

    /// Reason: some containers are not ready.
    pub const CONTAINERS_NOT_READY: &str = "ContainersNotReady";
    /// Reason: some init containers have not ended.
    pub const CONTAINERS_NOT_INITIALIZED: &str = "ContainersNotInitialized";
    /// Reason: all containers have ended well.
    pub const POD_COMPLETED: &str = "PodCompleted";
    /// Reason: a container has ended badly.
    pub const POD_FAILED: &str = "PodFailed";
    /// Reason: some readiness gates do not hold.
    pub const READINESS_GATES_NOT_READY: &str = "ReadinessGatesNotReady";
    /// Reason: no node will have it.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// Reason: somebody asked for it to wait.
    pub const SCHEDULING_GATED: &str = "SchedulingGated";
    /// Reason of a waiting container.
    pub const CONTAINER_CREATING: &str = "ContainerCreating";
    /// Reason of a waiting container.
    pub const POD_INITIALIZING: &str = "PodInitializing";
    /// Reason of a waiting container.
    pub const IMAGE_PULL_ERROR: &str = "ErrImagePull";
    /// Reason of a waiting container.
    pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
    /// Reason of a waiting container.
    pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";
    /// Reason of a container that has ended well.
    pub const COMPLETED: &str = "Completed";
    /// Reason of a container that has ended badly.
    pub const ERROR: &str = "Error";

    /// Phase: it waits for its containers.
    pub const PENDING: &str = "Pending";
    /// Phase: it has containers that run.
    pub const RUNNING: &str = "Running";
    /// Phase: all containers have ended well.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Phase: a container has ended badly.
    pub const FAILED: &str = "Failed";
}

/// Endpoints of services.
pub mod service {
    /// Label of endpoint slices: whose they are.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// Label of endpoint slices: who writes them.
    pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
    /// The value of [`MANAGED_BY`] of Kubernetes' own controller.
    pub const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
    /// Label of endpoints and slices of a service without an address.
    pub const HEADLESS: &str = "service.kubernetes.io/headless";
}

/// Volumes.
pub mod volume {
    /// Annotation of a storage class: it is taken where none is named.
    pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
    /// Annotation of a claim: binding has been completed.
    pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
    /// Annotation of a claim or volume: a controller chose what it is bound to.
    pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
    /// Annotation of a claim: who makes its volume.
    pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
    /// Annotation of a volume: who made it.
    pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
}

/// Autoscalers and disruption budgets.
pub mod scaling {
    /// Condition of an autoscaler: it can change the size of its target.
    pub const ABLE_TO_SCALE: &str = "AbleToScale";
    /// Condition of an autoscaler: it knows what size would be right.
    pub const SCALING_ACTIVE: &str = "ScalingActive";
    /// Condition of a budget: pods may be evicted.
    pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
    /// Reason of [`DISRUPTION_ALLOWED`]: there are pods to spare.
    pub const SUFFICIENT_PODS: &str = "SufficientPods";
    /// Reason of [`DISRUPTION_ALLOWED`]: every pod is needed.
    pub const INSUFFICIENT_PODS: &str = "InsufficientPods";
    /// Reason of [`DISRUPTION_ALLOWED`]: nobody knows how many pods there should be.
    pub const SYNC_FAILED: &str = "SyncFailed";
    /// Condition of a pod: it is about to be deleted for the good of others.
    pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
    /// Reason of [`DISRUPTION_TARGET`].
    pub const EVICTION_BY_EVICTION_API: &str = "EvictionByEvictionAPI";
    /// Cause of a refused eviction.
    pub const DISRUPTION_BUDGET: &str = "DisruptionBudget";
}
