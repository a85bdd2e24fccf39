//! What a decision about a placement looks at, read from a hub or from files.

use std::fmt::Debug;

use anyhow::Context as _;
use bellwether_api::Kind;
use bellwether_api::cluster::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding,
    PlacementDecision,
};
use bellwether_placement::schedule::{Objects, Scene};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

/// Objects by kind, as a server lists them.
#[derive(Debug, Default)]
pub(crate) struct FleetSnapshot {
    pub(crate) clusters: Vec<Value>,
    sets: Vec<Value>,
    bindings: Vec<Value>,
    scores: Vec<Value>,
    pub(crate) decisions: Vec<Value>,
}

impl FleetSnapshot {
    /// Everything that a hub has.
    pub(crate) async fn of_hub(client: &Client) -> anyhow::Result<Self> {
        Ok(Self {
            clusters: list::<ManagedCluster>(client).await?,
            sets: list::<ManagedClusterSet>(client).await?,
            bindings: list::<ManagedClusterSetBinding>(client).await?,
            scores: list::<AddOnPlacementScore>(client).await?,
            decisions: list::<PlacementDecision>(client).await?,
        })
    }

    /// Adds what files have; a file's object takes the place of the hub's.
    pub(crate) fn add(&mut self, objects: &[Value]) {
        for object in objects {
            let list = match object["kind"].as_str().unwrap_or_default() {
                "ManagedCluster" => &mut self.clusters,
                "ManagedClusterSet" => &mut self.sets,
                "ManagedClusterSetBinding" => &mut self.bindings,
                "AddOnPlacementScore" => &mut self.scores,
                "PlacementDecision" => &mut self.decisions,
                _ => continue,
            };
            let is_same = |known: &Value| {
                known["metadata"]["name"] == object["metadata"]["name"]
                    && known["metadata"]["namespace"] == object["metadata"]["namespace"]
            };
            list.retain(|known| !is_same(known));
            list.push(object.clone());
        }
    }

    /// Where files say nothing of sets, every cluster may be chosen.
    pub(crate) fn bind_everything(&mut self) {
        if !self.sets.is_empty() || !self.bindings.is_empty() {
            return;
        }
        let everything = json!({"metadata": {"name": "global"}, "spec": {"clusterSelector":
            {"selectorType": "LabelSelector", "labelSelector": {}}}});
        self.sets.push(everything.clone());
        self.bindings.push(everything);
    }

    /// A question about a placement.
    pub(crate) fn scene(&self, placement: &Value, now: Timestamp) -> Scene {
        let namespace = &placement["metadata"]["namespace"];
        let is_near = |binding: &&Value| {
            let own = &binding["metadata"]["namespace"];
            own.is_null() || own == namespace
        };
        let bindings: Vec<Value> = self.bindings.iter().filter(is_near).cloned().collect();
        let objects = Objects {
            placement: Some(placement),
            clusters: &self.clusters,
            sets: &self.sets,
            bindings: &bindings,
            scores: &self.scores,
            decisions: &self.decisions,
        };
        Scene::new(&objects, now)
    }
}

/// All objects of a kind.
async fn list<K>(client: &Client) -> anyhow::Result<Vec<Value>>
where
    K: Kind + Resource<DynamicType = ()> + Clone + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed =
        listed.with_context(|| format!("cannot list {}: is this a hub?", K::NAMES.plural))?;
    let objects = listed.items.iter().map(serde_json::to_value);
    Ok(objects.collect::<Result<_, _>>()?)
}
