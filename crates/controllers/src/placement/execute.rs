//! Carrying out what has been decided for a placement.

use bellwether_api::cluster::{Placement, PlacementDecision, PlacementStatus};
use bellwether_api::meta::ObjectMeta;
use bellwether_placement::schedule::{Decision, DecisionObject, Write};
use bellwether_runtime::{
    ObjectKey, ReconcileError, Retry, created_by, delete_if_exists, write_status, written_by,
};
use futures::future::try_join_all;
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use super::decide::Plan;
use super::fleet::Written;
use super::shared::SharedFleet;

/// Why a plan could not be carried out. What was written stands; the rest is decided again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A decision could not be written.
    #[error("cannot write the decision {name}: {source}")]
    Decision {
        /// Its name.
        name: String,
        /// What the server says.
        source: Box<kube::Error>,
    },
    /// The status could not be written.
    #[error("cannot write the status: {0}")]
    Status(Box<kube::Error>),
}

impl ReconcileError for Error {
    fn retry(&self) -> Retry {
        self.cause().retry()
    }

    fn label(&self) -> &'static str {
        self.cause().label()
    }
}

impl Error {
    fn cause(&self) -> &kube::Error {
        match self {
            Self::Decision { source, .. } | Self::Status(source) => source,
        }
    }
}

/// Carries a plan out, and has the fleet know at once what has been written.
pub(super) async fn execute(
    client: &Client,
    fleet: &SharedFleet,
    key: &ObjectKey,
    plan: &Plan,
) -> Result<(), Error> {
    let writer = Writer {
        decisions: Api::namespaced(client.clone(), &key.namespace),
        fleet,
        key,
        placement: &plan.placement,
    };
    for step in &plan.steps {
        try_join_all(step.iter().map(|write| writer.write(write))).await?;
    }
    if let Some(status) = &plan.status {
        // Decisions of other placements go first: those are what is waited for.
        tokio::task::yield_now().await;
        let placements: Api<Placement> = Api::namespaced(client.clone(), &key.namespace);
        let written = write_status(&placements, &plan.placement, &whole(status))
            .await
            .map_err(|source| Error::Status(Box::new(source)))?;
        if let Some(written) = written {
            fleet.change(|fleet| fleet.update(key, written));
        }
    }
    Ok(())
}

/// A status with all its fields: those that are empty replace what was there.
fn whole(status: &PlacementStatus) -> Value {
    json!({
        "numberOfSelectedClusters": status.number_of_selected_clusters,
        "decisionGroups": status.decision_groups,
        "conditions": status.conditions,
        "lastScoreUpdateTime": status.last_score_update_time,
    })
}

struct Writer<'a> {
    decisions: Api<PlacementDecision>,
    fleet: &'a SharedFleet,
    key: &'a ObjectKey,
    placement: &'a Placement,
}

impl Writer<'_> {
    async fn write(&self, write: &Write) -> Result<(), Error> {
        let (name, done) = match write {
            Write::Create(object) => (&object.name, self.create(object).await),
            Write::Update(object) => (&object.name, self.fill(object, &object.decisions).await),
            Write::Relabel(object) => (&object.name, self.relabel(object).await),
            Write::Delete(name) => (name, self.delete(name).await),
        };
        done.map_err(|source| Error::Decision {
            name: name.clone(),
            source: Box::new(source),
        })
    }

    async fn create(&self, object: &DecisionObject) -> Result<(), kube::Error> {
        let labels = object.labels.iter();
        let metadata = ObjectMeta {
            name: Some(object.name.clone()),
            namespace: Some(self.key.namespace.to_string()),
            labels: Some(labels.map(|it| (it.0.to_owned(), it.1.clone())).collect()),
            owner_references: self.placement.controller_owner_ref(&()).map(|it| vec![it]),
            ..ObjectMeta::default()
        };
        let decision = PlacementDecision {
            metadata,
            ..PlacementDecision::default()
        };
        let params = created_by();
        let created = self.decisions.create(&params, &decision).await?;
        self.record(&created);
        self.fill(object, &object.decisions).await
    }

    async fn relabel(&self, object: &DecisionObject) -> Result<(), kube::Error> {
        self.fill(object, &[]).await?;
        let labels: serde_json::Map<String, Value> = object
            .labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), json!(value)))
            .collect();
        let patch = json!({"metadata": {
            "resourceVersion": self.resource_version(&object.name), "labels": labels,
        }});
        let written = self
            .decisions
            .patch(&object.name, &written_by(), &Patch::Merge(patch))
            .await?;
        self.record(&written);
        self.fill(object, &object.decisions).await
    }

    /// Writes decisions into an object, whatever its labels are.
    async fn fill(
        &self,
        object: &DecisionObject,
        decisions: &[Decision],
    ) -> Result<(), kube::Error> {
        let patch = json!({
            "metadata": {"resourceVersion": self.resource_version(&object.name)},
            "status": DecisionObject::status_of(decisions),
        });
        let written = self
            .decisions
            .patch_status(&object.name, &written_by(), &Patch::Merge(patch))
            .await?;
        self.record(&written);
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<(), kube::Error> {
        let params = DeleteParams {
            preconditions: self.known_as(name),
            ..DeleteParams::default()
        };
        delete_if_exists(&self.decisions, name, &params).await?;
        self.fleet.change(|fleet| fleet.remove(self.key, name));
        Ok(())
    }

    fn record(&self, written: &PlacementDecision) {
        let written = Written::read(written);
        self.fleet.change(|fleet| fleet.record(self.key, written));
    }

    fn resource_version(&self, name: &str) -> Option<String> {
        self.known_as(name)?.resource_version
    }

    /// Which object it is, and which state of it, that was decided about.
    fn known_as(&self, name: &str) -> Option<Preconditions> {
        let precondition = |known: &Written| Preconditions {
            uid: Some(known.uid.clone()),
            resource_version: Some(known.resource_version.clone()),
        };
        self.fleet
            .read(|fleet| fleet.written_as(self.key, name).map(precondition))
    }
}
