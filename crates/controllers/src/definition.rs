//! Definitions: their revisions, and what can be said of them.
//!
//! Which revision a definition needs, and which are deleted, is decided by `bellwether_application::definition_revision`.
//! Entry point: [`run`].

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::meta::{self, Condition, TRUE, Time};
use bellwether_api::oam::names::condition;
use bellwether_api::oam::{
    Application, ComponentDefinition, DefinitionRevision, DefinitionStatus, GROUP,
    PolicyDefinition, RevisionReference, TraitDefinition, WorkflowStepDefinition,
};
use bellwether_application::definition::DefinitionKind;
use bellwether_application::definition_revision::{Needed, RevisionInfo, needed, surplus};
use bellwether_runtime::{
    Cache, Change, Controller, Next, ObjectKey, Reconcile, api_of, created_by, delete_if_exists,
    unless_exists, unless_gone, written_by,
};
use futures::FutureExt as _;
use kube::Api;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};

/// How many revisions of a definition are kept besides the current one and those in use.
const HISTORY_LIMIT: usize = 20;

/// The controller of definitions.
pub const ENTRY: Entry = Entry {
    name: "definition",
    about: "keeps revisions of definitions, so that applications can name them",
    watches: &[
        Watched::kind::<Application>(),
        Watched::kind::<ComponentDefinition>(),
        Watched::kind::<TraitDefinition>(),
        Watched::kind::<PolicyDefinition>(),
        Watched::kind::<WorkflowStepDefinition>(),
        Watched::kind::<DefinitionRevision>(),
    ],
    rights: &[
        Rule {
            group: GROUP,
            resources: &["definitionrevisions"],
            verbs: &["create", "delete"],
        },
        Rule {
            group: GROUP,
            resources: &[
                "componentdefinitions/status",
                "traitdefinitions/status",
                "policydefinitions/status",
                "workflowstepdefinitions/status",
            ],
            verbs: &["patch"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// A definition: its kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key(DefinitionKind, ObjectKey);

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.0.word(), self.1)
    }
}

/// Keeps revisions of all definitions, until it is dropped.
pub async fn run(hub: Hub) {
    let reconciler = Definitions {
        components: hub.cache(),
        traits: hub.cache(),
        policies: hub.cache(),
        steps: hub.cache(),
        revisions: hub.cache(),
        applications: hub.cache(),
        hub: hub.clone(),
    };
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&reconciler.components, of(DefinitionKind::Component))
        .on(&reconciler.traits, of(DefinitionKind::Trait))
        .on(&reconciler.policies, of(DefinitionKind::Policy))
        .on(&reconciler.steps, of(DefinitionKind::WorkflowStep))
        .after(&reconciler.revisions)
        .after(&reconciler.applications)
        .run(Arc::new(reconciler))
        .await;
}

/// Names a definition that changed.
fn of<K>(kind: DefinitionKind) -> impl Fn(&Change<'_, K>) -> [Key; 1] {
    move |change| [Key(kind, change.key.clone())]
}

struct Definitions {
    hub: Hub,
    components: Cache<ComponentDefinition>,
    traits: Cache<TraitDefinition>,
    policies: Cache<PolicyDefinition>,
    steps: Cache<WorkflowStepDefinition>,
    revisions: Cache<DefinitionRevision>,
    applications: Cache<Application>,
}

fn to_json(object: Option<impl serde::Serialize>) -> Option<Value> {
    serde_json::to_value(object?).ok()
}

impl Definitions {
    fn get(&self, Key(kind, key): &Key) -> Option<Value> {
        match kind {
            DefinitionKind::Component => to_json(self.components.get(key).as_deref()),
            DefinitionKind::Trait => to_json(self.traits.get(key).as_deref()),
            DefinitionKind::Policy => to_json(self.policies.get(key).as_deref()),
            DefinitionKind::WorkflowStep => to_json(self.steps.get(key).as_deref()),
        }
    }

    /// The revisions of a definition.
    fn revisions_of(&self, definition: &Value, namespace: &str) -> Vec<RevisionInfo> {
        let uid = definition["metadata"]["uid"].as_str().unwrap_or_default();
        let revisions = self.revisions.in_namespace(namespace);
        let own = revisions.iter().filter(|revision| {
            let owners = revision.metadata.owner_references.as_deref();
            owners
                .unwrap_or_default()
                .iter()
                .any(|owner| owner.uid == uid)
        });
        own.map(|revision| RevisionInfo {
            name: revision.metadata.name.clone().unwrap_or_default(),
            number: revision.spec.revision,
            hash: revision.spec.revision_hash.clone(),
        })
        .collect()
    }

    /// Names of revisions that applications ask for.
    fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for application in self.applications.list() {
            for component in &application.spec.components {
                let traits = component.traits.iter().map(|applied| &applied.trait_type);
                for type_name in traits.chain([&component.component_type]) {
                    if let Some((name, version)) = type_name.split_once('@') {
                        used.insert(format!("{name}-{version}"));
                    }
                }
            }
        }
        used
    }

    async fn write_status(
        &self,
        definition: &Value,
        latest: &RevisionInfo,
    ) -> Result<(), kube::Error> {
        let status: DefinitionStatus =
            serde_json::from_value(definition["status"].clone()).unwrap_or_default();
        let mut told = status.clone();
        told.latest_revision = Some(RevisionReference {
            name: latest.name.clone(),
            revision: latest.number,
            revision_hash: latest.hash.clone(),
            ..RevisionReference::default()
        });
        let synced = Condition {
            type_: condition::SYNCED.to_owned(),
            status: TRUE.to_owned(),
            reason: condition::RECONCILE_SUCCESS.to_owned(),
            message: String::new(),
            last_transition_time: Time(self.hub.clock.now()),
            observed_generation: definition["metadata"]["generation"].as_i64(),
        };
        meta::set_condition(&mut told.conditions, synced);
        if told == status {
            return Ok(());
        }
        let api = api_of(&self.hub.client, definition);
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let patch = Patch::Merge(json!({"status": told}));
        unless_gone(api.patch_status(name, &written_by(), &patch).await).map(drop)
    }
}

impl Reconcile for Definitions {
    type Key = Key;
    type Error = kube::Error;

    async fn reconcile(&self, key: &Key) -> Result<Next, kube::Error> {
        let Some(definition) = self.get(key) else {
            return Ok(None);
        };
        if definition["metadata"]["deletionTimestamp"].is_string() {
            return Ok(None);
        }
        let namespace = &key.1.namespace;
        let known = self.revisions_of(&definition, namespace);
        let api: Api<DefinitionRevision> = Api::namespaced(self.hub.client.clone(), namespace);
        let latest = match needed(key.0, &definition, &known) {
            Needed::Existing(latest) => latest,
            Needed::New(latest, object) => {
                let revision: DefinitionRevision =
                    serde_json::from_value(*object).map_err(kube::Error::SerdeError)?;
                unless_exists(api.create(&created_by(), &revision).await)?;
                latest
            }
        };
        for old in surplus(&known, &latest.name, &self.used(), HISTORY_LIMIT) {
            delete_if_exists(&api, &old.name, &DeleteParams::default()).await?;
        }
        self.write_status(&definition, &latest).await?;
        Ok(None)
    }
}
