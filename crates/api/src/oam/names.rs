//! Every string with a meaning in these kinds: labels, annotations, phases, conditions, events, policies.

/// Keys of labels.
pub mod label {
    pub use crate::workflow::names::label::{APP_NAME, APP_NAMESPACE};

    /// On an object: component, or custom policy, that it belongs to.
    pub const COMPONENT: &str = "app.oam.dev/component";
    /// On an object: revision of the application.
    pub const APP_REVISION: &str = "app.oam.dev/appRevision";
    /// On an object: what identifies the content of the revision.
    pub const APP_REVISION_HASH: &str = "app.oam.dev/app-revision-hash";
    /// On an object: [`WORKLOAD`] or [`TRAIT`].
    pub const RESOURCE_TYPE: &str = "app.oam.dev/resourceType";
    /// On an object: revision of its component.
    pub const REVISION: &str = "app.oam.dev/revision";
    /// On an object: cluster that it is on. A template that sets it pins the object to that cluster.
    pub const CLUSTER: &str = "app.oam.dev/cluster";
    /// On a workload: type of the component.
    pub const WORKLOAD_TYPE: &str = "workload.oam.dev/type";
    /// On an object of a trait: type of the trait, or [`AUXILIARY`].
    pub const TRAIT_TYPE: &str = "trait.oam.dev/type";
    /// On an object of a trait: name of the output.
    pub const TRAIT_RESOURCE: &str = "trait.oam.dev/resource";
    /// On an object of a trait that takes the place of the workload.
    pub const MANAGE_WORKLOAD: &str = "trait.oam.dev/manage-workload";
    /// On an object: what identifies the manifest that was applied.
    pub const RENDER_HASH: &str = "oam.dev/render-hash";
    /// On an Application: `true` leaves it alone.
    pub const PAUSE: &str = "controller.core.oam.dev/pause";
    /// On an Application that an addon made.
    pub const ADDON_NAME: &str = "addons.oam.dev/name";
    /// On a ResourceTracker: what identifies the application.
    pub const APP_UID: &str = "app.oam.dev/uid";
    /// On a revision of a component: its name.
    pub const CONTROLLER_COMPONENT: &str = "controller.oam.dev/component";
    /// On a cluster Secret: how the cluster is reached.
    pub const CLUSTER_CREDENTIAL_TYPE: &str = "cluster.core.oam.dev/cluster-credential-type";

    /// On a DefinitionRevision: the name of the definition of components.
    pub const COMPONENT_DEFINITION_NAME: &str = "componentdefinition.oam.dev/name";
    /// On a DefinitionRevision: the name of the definition of traits.
    pub const TRAIT_DEFINITION_NAME: &str = "trait.oam.dev/name";
    /// On a DefinitionRevision: the name of the definition of policies.
    pub const POLICY_DEFINITION_NAME: &str = "policydefinition.oam.dev/name";
    /// On a DefinitionRevision: the name of the definition of steps.
    pub const WORKFLOW_STEP_DEFINITION_NAME: &str = "workflowstepdefinition.oam.dev/name";
    /// The value of [`RESOURCE_TYPE`] on what a component is.
    pub const WORKLOAD: &str = "WORKLOAD";
    /// The value of [`RESOURCE_TYPE`] on everything else.
    pub const TRAIT: &str = "TRAIT";
    /// The value of [`TRAIT_TYPE`] on further outputs of a component.
    pub const AUXILIARY: &str = "AuxiliaryWorkload";
}

/// Keys of annotations.
pub mod annotation {
    pub use crate::workflow::names::annotation::{
        APP_LAST_APPLIED, APP_LAST_APPLIED_TIME, PUBLISH_VERSION, RECONCILE_INTERVAL,
        RESTART_WORKFLOW, WORKFLOW_NAME,
    };

    /// On an Application: the version of the controller that handled it first.
    pub const VELA_VERSION: &str = "oam.dev/kubevela-version";
    /// On an Application: only the controller of this version handles it.
    pub const CONTROLLER_VERSION: &str = "app.oam.dev/controller-version-require";
    /// On an Application: `true` follows new revisions of definitions.
    pub const AUTO_UPDATE: &str = "app.oam.dev/autoUpdate";
    /// On an Application: keys of labels that its objects do not get.
    pub const FILTER_LABEL_KEYS: &str = "filter.oam.dev/label-keys";
    /// On an Application: keys of annotations that its objects do not get.
    pub const FILTER_ANNOTATION_KEYS: &str = "filter.oam.dev/annotation-keys";
    /// On an Application: an old setting of rollouts.
    pub const INPLACE_UPGRADE: &str = "app.oam.dev/inplace-upgrade";
    /// On an ApplicationConfiguration: an old setting of rollouts.
    pub const ROLLOUT_TEMPLATE: &str = "app.oam.dev/rollout-template";
    /// On an ApplicationConfiguration: an old setting of rollouts.
    pub const ROLLING_COMPONENTS: &str = "app.oam.dev/rolling-components";
    /// On an Application: service account whose rights its objects are applied with.
    pub const SERVICE_ACCOUNT: &str = "app.oam.dev/service-account-name";
    /// On an Application: name of the revision that it was rolled back to. While its spec is that of the revision, it is rendered by
    /// the definitions of the revision.
    pub const ROLLED_BACK_TO: &str = "app.bellwether.dev/rolled-back-to";
    /// On an Application: `true` lets parameters change that are marked as immutable.
    pub const FORCE_PARAM_MUTATIONS: &str = "app.oam.dev/force-param-mutations";
    /// On an object: applications that share it.
    pub const SHARED_BY: &str = "app.oam.dev/shared-by";
    /// On an Application: `true` leaves out policies that apply to every application.
    pub const SKIP_GLOBAL_POLICIES: &str = "policy.oam.dev/skip-global";
    /// On an object: the address that it was copied from.
    pub const RESOURCE_URL: &str = "app.oam.dev/resource-url";
    /// Annotation of kubectl with the last applied configuration.
    pub const KUBECTL_LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// On an object of an ApplicationConfiguration: generation that it was applied for.
    pub const GENERATION: &str = "app.oam.dev/generation";
    /// On a definition: what it is for.
    pub const DESCRIPTION: &str = "definition.oam.dev/description";
    /// On a definition: another name for people.
    pub const ALIAS: &str = "definition.oam.dev/alias";
    /// On a definition: how its next revision is called.
    pub const REVISION_NAME: &str = "definitionrevision.oam.dev/name";
    /// Prefix of keys of annotations and labels without a domain in a definition file.
    pub const CUSTOM_PREFIX: &str = "custom.definition.oam.dev/";
    /// On a cluster Secret: version of the cluster as JSON.
    pub const CLUSTER_VERSION: &str = "cluster.core.oam.dev/cluster-version";
}

/// Finalizers.
pub mod finalizer {
    /// On an Application: its objects are deleted first.
    pub const RESOURCE_TRACKER: &str = "app.oam.dev/resource-tracker-finalizer";
    /// On an Application: its objects stay when it is deleted.
    pub const ORPHAN_RESOURCE: &str = "app.oam.dev/orphan-resource";
    /// On an ApplicationConfiguration: objects that cannot refer to it as their owner are deleted first.
    pub const FOREIGN_OBJECTS: &str = "applicationconfiguration.core.oam.dev/foreign-objects";
    /// On a ResourceTracker: its objects are deleted first.
    pub const TRACKER: &str = "resourcetracker.core.oam.dev/finalizer";
}

/// Phases of an Application.
pub mod phase {
    /// Its components are being rendered.
    pub const RENDERING: &str = "rendering";
    /// Its policies are being applied.
    pub const GENERATING_POLICY: &str = "generatingPolicy";
    /// Its workflow is being carried out.
    pub const RUNNING_WORKFLOW: &str = "runningWorkflow";
    /// Its workflow waits for somebody.
    pub const WORKFLOW_SUSPENDING: &str = "workflowSuspending";
    /// Its workflow was ended.
    pub const WORKFLOW_TERMINATED: &str = "workflowTerminated";
    /// Its workflow failed.
    pub const WORKFLOW_FAILED: &str = "workflowFailed";
    /// Everything is applied and healthy.
    pub const RUNNING: &str = "running";
    /// Everything is applied, and something is not healthy.
    pub const UNHEALTHY: &str = "unhealthy";
    /// Its objects are being deleted.
    pub const DELETING: &str = "deleting";
}

/// Types and reasons of conditions.
pub mod condition {
    /// The application could be read, and its definitions found.
    pub const PARSED: &str = "Parsed";
    /// A revision of it is stored.
    pub const REVISION: &str = "Revision";
    /// Its policies are applied.
    pub const POLICY: &str = "Policy";
    /// Its components are rendered.
    pub const RENDER: &str = "Render";
    /// Its workflow succeeded.
    pub const WORKFLOW: &str = "Workflow";
    /// Everything is as the application says.
    pub const READY: &str = "Ready";
    /// Objects are not as the application says, and a policy leaves them so.
    pub const DRIFTED: &str = "Drifted";
    /// The reason if the policy is `apply-once`.
    pub const APPLY_ONCE: &str = "ApplyOnce";
    /// An ApplicationConfiguration is applied.
    pub const SYNCED: &str = "Synced";
    /// The reason if a step of the way is done.
    pub const AVAILABLE: &str = "Available";
    /// The reason if everything is done.
    pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
    /// The reason if something is wrong.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// The reason while components are not healthy yet.
    pub const PROGRESSING: &str = "Progressing";
    /// The reason while the workflow waits for somebody.
    pub const SUSPENDED: &str = "Suspended";
    /// The reason if somebody or a step ended the workflow.
    pub const TERMINATED: &str = "Terminated";
    /// The reason while objects are being deleted.
    pub const DELETING: &str = "Deleting";
}

/// Reasons of events.
pub mod event {
    /// The application was read.
    pub const PARSED: &str = "Parsed";
    /// A revision was stored.
    pub const REVISIONED: &str = "Revisioned";
    /// Policies were rendered.
    pub const POLICY_GENERATED: &str = "PolicyGenerated";
    /// Components were rendered.
    pub const RENDERED: &str = "Rendered";
    /// The workflow is finished.
    pub const APPLIED: &str = "Applied";
    /// Everything is applied and healthy.
    pub const DEPLOYED: &str = "Deployed";
    /// An object that others had changed is as it should be again.
    pub const DRIFT_REPAIRED: &str = "DriftRepaired";
    /// The application cannot be read.
    pub const FAILED_PARSE: &str = "FailedParse";
    /// Components cannot be rendered.
    pub const FAILED_RENDER: &str = "FailedRender";
    /// The workflow cannot be carried out, or failed.
    pub const FAILED_WORKFLOW: &str = "FailedWorkflow";
    /// Objects cannot be applied.
    pub const FAILED_APPLY: &str = "FailedApply";
    /// Components of an ApplicationConfiguration were rendered.
    pub const RENDERED_COMPONENTS: &str = "RenderedComponents";
    /// Components of an ApplicationConfiguration were applied.
    pub const APPLIED_COMPONENTS: &str = "AppliedComponents";
    /// An object that an ApplicationConfiguration no longer has was deleted.
    pub const GARBAGE_COLLECTED_COMPONENT: &str = "GarbageCollectedComponent";
    /// Components of an ApplicationConfiguration cannot be rendered.
    pub const CANNOT_RENDER_COMPONENTS: &str = "CannotRenderComponents";
    /// Components of an ApplicationConfiguration cannot be applied.
    pub const CANNOT_APPLY_COMPONENTS: &str = "CannotApplyComponents";
    /// Objects that an ApplicationConfiguration no longer has cannot be deleted.
    pub const CANNOT_GARBAGE_COLLECT_COMPONENTS: &str = "CannotGarbageCollectComponents";
    /// A revision of a component was stored.
    pub const COMPONENT_REVISION: &str = "ComponentRevision";
}

/// Origin of a policy that changes an application.
pub mod policy_source {
    /// Its definition: it is for all applications.
    pub const GLOBAL: &str = "global";
    /// The application.
    pub const EXPLICIT: &str = "explicit";
}

/// Types of policies that need no definition.
pub mod policy {
    /// Changes by others are kept.
    pub const APPLY_ONCE: &str = "apply-once";
    /// On deletion of objects.
    pub const GARBAGE_COLLECT: &str = "garbage-collect";
    /// Objects that several applications have.
    pub const SHARED_RESOURCE: &str = "shared-resource";
    /// Objects that exist already.
    pub const TAKE_OVER: &str = "take-over";
    /// Objects that are never written.
    pub const READ_ONLY: &str = "read-only";
    /// Update strategy of objects.
    pub const RESOURCE_UPDATE: &str = "resource-update";
    /// Selection of clusters for components.
    pub const TOPOLOGY: &str = "topology";
    /// Overrides of components there.
    pub const OVERRIDE: &str = "override";
    /// Copies of components.
    pub const REPLICATION: &str = "replication";
    /// Keeps evaluated templates of steps.
    pub const DEBUG: &str = "debug";
    /// Target clusters of components, in old applications.
    pub const ENV_BINDING: &str = "env-binding";
    /// Health of components, in old applications.
    pub const HEALTH: &str = "health";

    /// All of them.
    pub const BUILT_IN: &[&str] = &[
        APPLY_ONCE,
        GARBAGE_COLLECT,
        SHARED_RESOURCE,
        TAKE_OVER,
        READ_ONLY,
        RESOURCE_UPDATE,
        TOPOLOGY,
        OVERRIDE,
        REPLICATION,
        DEBUG,
        ENV_BINDING,
        HEALTH,
    ];
}

/// Types of components that controllers know.
pub mod component_type {
    /// Copies of objects that exist on the hub.
    pub const REF_OBJECTS: &str = "ref-objects";
    /// Objects rendered from a Helm chart.
    pub const HELM_CHART: &str = "helmchart";
}

/// The type of the step that deploys components to the clusters of policies.
pub const DEPLOY_STEP: &str = "deploy";
/// The type of the step that deploys components to an environment of an env-binding policy.
pub const DEPLOY_TO_ENV_STEP: &str = "deploy2env";
/// The name of the hub among clusters.
pub const LOCAL_CLUSTER: &str = "local";
