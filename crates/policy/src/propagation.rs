//! What a cluster gets: the replica of a root policy in the namespace of the cluster.
//!
//! A [`Blueprint`] is a root policy made ready: what all replicas have in common. A [`Version`] is what some
//! clusters get of it, in two forms: as it is meant, and as inform while a rollout has not reached them.
//! [`Replica`] is what has to be known of a replica that exists.

mod dependencies;
mod hub_templates;
mod replica;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::policy::names::{annotation, label, replica_name};
use bellwether_api::policy::{
    Policy, PolicySpec, PolicyTemplate, RemediationAction, RolloutStatus,
};
use bellwether_api::workload::deployment::LAST_APPLIED;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use dependencies::{SetMembers, awaited_sets};
pub use hub_templates::{
    ClusterKeys, HubTemplates, Resolved, has_hub_templates, needs_keys, resolve, unresolved,
};
pub use replica::{Evaluation, Replica, Report};

/// A short digest of something that can be compared instead of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Computes the fingerprint of a value by its JSON.
    pub fn of(value: &impl Serialize) -> Self {
        // Values of our types always have a JSON form; one that had none would only seem to have changed.
        let text = serde_json::to_vec(value).unwrap_or_default();
        let mut first = [0; 16];
        first.copy_from_slice(&Sha256::digest(text)[..16]);
        Self(first)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// How a cluster has a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the root policy says.
    Released,
    /// As inform, until a rollout releases it.
    Informed,
}

/// A root policy made ready: what all replicas have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Blueprint {
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    spec: PolicySpec,
    /// What hub templates see of the root policy.
    root_labels: BTreeMap<String, String>,
    root_annotations: BTreeMap<String, String>,
    labels_print: Fingerprint,
    annotations_print: Fingerprint,
}

/// What some clusters get of a root policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    released: Arc<PolicySpec>,
    informed: Arc<PolicySpec>,
    released_print: Fingerprint,
    informed_print: Fingerprint,
    /// Identifies the version: everything but the strategy that it is rolled out with.
    pub id: Fingerprint,
    /// The same as replicas name it.
    name: String,
    /// The initialisation vector of encrypted values.
    vector: Option<String>,
    /// Why hub templates have no value.
    pub template_error: Option<String>,
}

/// What a template says that informs even where its policy enforces.
pub(crate) const INFORM_ONLY: &str = "informonly";

/// Kinds of templates that change nothing, or have no other mode.
const WITHOUT_REMEDIATION: [&str; 2] = ["CertificatePolicy", "ConstraintTemplate"];

/// True if a policy changes clusters: it says so, or it says nothing and one of its templates does.
pub fn is_enforced(spec: &PolicySpec) -> bool {
    match spec.remediation_action.as_ref().filter(|it| !it.is_empty()) {
        Some(action) => action.is_enforce(),
        None => spec.policy_templates.iter().any(|template| {
            let action = &template.object_definition["spec"]["remediationAction"];
            let action = action.as_str().unwrap_or_default();
            action.eq_ignore_ascii_case("enforce")
        }),
    }
}

/// True if a policy does something else on a cluster as inform than as it is meant. Some templates are the same in
/// both forms: those that only inform, and kinds that have no remediation.
pub fn has_two_forms(spec: &PolicySpec) -> bool {
    is_enforced(spec)
        && spec.policy_templates.iter().any(|template| {
            let definition = &template.object_definition;
            let kind = definition["kind"].as_str().unwrap_or_default();
            let action = definition["spec"]["remediationAction"].as_str();
            let informs = action.is_some_and(|it| it.eq_ignore_ascii_case(INFORM_ONLY));
            !informs && !WITHOUT_REMEDIATION.contains(&kind)
        })
}

impl Blueprint {
    /// Reads a root policy. `sets` answers which policies a set has, for dependencies on it.
    pub fn new(root: &Policy, sets: &SetMembers<'_>) -> Self {
        let namespace = root.metadata.namespace.clone().unwrap_or_default();
        let name = root.metadata.name.clone().unwrap_or_default();
        let is_copied = root.spec.copy_policy_metadata != Some(false);
        let copied = |map: &Option<BTreeMap<String, String>>| -> BTreeMap<String, String> {
            let mut map = map.clone().unwrap_or_default();
            map.retain(|key, _| is_copied || key.starts_with(label::PREFIX));
            map
        };
        let mut labels = copied(&root.metadata.labels);
        labels.insert(
            label::ROOT_POLICY.to_owned(),
            replica_name(&namespace, &name),
        );
        let mut annotations = copied(&root.metadata.annotations);
        for key in [
            LAST_APPLIED,
            annotation::TRIGGER_UPDATE,
            annotation::ROLLOUT_HASH,
            annotation::ROLLOUT_PAUSED,
        ] {
            annotations.remove(key);
        }
        annotations.insert(
            annotation::ARGO_COMPARE_OPTIONS.to_owned(),
            annotation::IGNORE_EXTRANEOUS.to_owned(),
        );
        let mut spec = root.spec.clone();
        dependencies::canonicalise(&mut spec, &namespace, sets);
        Self {
            labels_print: replica::labels_print(&labels),
            annotations_print: replica::annotations_print(&annotations),
            root_labels: root.metadata.labels.clone().unwrap_or_default(),
            root_annotations: root.metadata.annotations.clone().unwrap_or_default(),
            namespace,
            name,
            labels,
            annotations,
            spec,
        }
    }

    /// Returns what a cluster gets. `action` is what a binding overrides; `templates` is what hub templates
    /// were resolved to, if there are any.
    pub fn version(
        &self,
        action: Option<&RemediationAction>,
        templates: Option<HubTemplates>,
    ) -> Version {
        let mut released = self.spec.clone();
        let own = released.remediation_action.as_ref();
        if let Some(action) = action
            && !own.is_some_and(RemediationAction::is_enforce)
        {
            released.remediation_action = Some(action.clone());
        }
        let HubTemplates {
            templates,
            vector,
            identity,
            error,
        } = templates.unwrap_or_else(|| HubTemplates {
            templates: std::mem::take(&mut released.policy_templates),
            ..HubTemplates::default()
        });
        released.policy_templates = templates;
        let informed = PolicySpec {
            remediation_action: Some(RemediationAction::inform()),
            ..released.clone()
        };
        let id = match identity {
            Some(policy_templates) => version_id(&PolicySpec {
                policy_templates,
                ..released.clone()
            }),
            None => version_id(&released),
        };
        Version {
            id,
            name: id.to_string(),
            released_print: Fingerprint::of(&released),
            informed_print: Fingerprint::of(&informed),
            released: Arc::new(released),
            informed: Arc::new(informed),
            vector,
            template_error: error,
        }
    }

    /// Makes the replica of a cluster. It names its version if it is rolled out step by step.
    pub fn replica(
        &self,
        cluster: &str,
        version: &Version,
        form: Form,
        is_progressive: bool,
    ) -> Policy {
        let mut labels = self.labels.clone();
        for key in [label::CLUSTER_NAME, label::CLUSTER_NAMESPACE] {
            labels.insert(key.to_owned(), cluster.to_owned());
        }
        let mut annotations = self.annotations.clone();
        if is_progressive {
            annotations.insert(annotation::ROLLOUT_HASH.to_owned(), version.name.clone());
        }
        if let Some(vector) = &version.vector {
            annotations.insert(annotation::ENCRYPTION_IV.to_owned(), vector.clone());
        }
        Policy {
            metadata: ObjectMeta {
                name: Some(replica_name(&self.namespace, &self.name)),
                namespace: Some(cluster.to_owned()),
                labels: Some(labels),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: version.spec(form).clone(),
            ..Policy::default()
        }
    }

    /// True if a replica is exactly what [`replica`](Self::replica) makes.
    pub fn is_same(
        &self,
        replica: &Replica,
        version: &Version,
        form: Form,
        is_progressive: bool,
    ) -> bool {
        let name = is_progressive.then_some(version.name.as_str());
        replica.is_addressed
            && replica.labels == self.labels_print
            && replica.annotations == self.annotations_print
            && replica.version_named.as_deref() == name
            && replica.vector == version.vector
            && replica.spec == version.print(form)
    }

    /// True if what clusters get depends on more than the root policy and overrides.
    pub fn has_hub_templates(&self) -> bool {
        has_hub_templates(self)
    }

    /// Returns the templates as the root policy has them.
    pub fn templates(&self) -> &[PolicyTemplate] {
        &self.spec.policy_templates
    }

    /// Returns the service account that looks up what hub templates ask for.
    pub fn service_account(&self) -> Option<&str> {
        let options = self.spec.hub_template_options.as_ref()?;
        let name = options.service_account_name.as_deref()?;
        (!name.is_empty()).then_some(name)
    }
}

impl Version {
    /// Returns the spec of replicas in that form.
    pub fn spec(&self, form: Form) -> &PolicySpec {
        match form {
            Form::Released => &self.released,
            Form::Informed => &self.informed,
        }
    }

    fn print(&self, form: Form) -> Fingerprint {
        match form {
            Form::Released => self.released_print,
            Form::Informed => self.informed_print,
        }
    }

    /// True if a replica has the spec of that form.
    pub fn is_spec_of(&self, replica: &Replica, form: Form) -> bool {
        replica.spec == self.print(form)
    }

    /// True if a replica names this version.
    pub fn is_named_by(&self, replica: &Replica) -> bool {
        replica.version_named.as_ref() == Some(&self.name)
    }
}

/// Identifies a version by its spec, without the strategy that it is rolled out with.
fn version_id(spec: &PolicySpec) -> Fingerprint {
    if spec.rollout_strategy.is_none() {
        return Fingerprint::of(spec);
    }
    Fingerprint::of(&PolicySpec {
        rollout_strategy: None,
        ..spec.clone()
    })
}

/// True if the cluster has been told to enforce: it is past waiting.
pub fn is_released(status: &RolloutStatus) -> bool {
    matches!(
        status,
        RolloutStatus::Progressing
            | RolloutStatus::Succeeded
            | RolloutStatus::Failed
            | RolloutStatus::TimeOut
    )
}

#[cfg(test)]
mod tests;
