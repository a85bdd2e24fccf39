//! A small fleet to choose from.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::schedule::{
    Choices, Cluster, ClusterSet, Outcome, Placement, ScoreBoard, Verdict, View, affects, schedule,
    why,
};

/// Everything a decision looks at; `global` is bound and holds every cluster.
pub(super) struct World {
    pub(super) placement: Value,
    pub(super) bindings: BTreeSet<String>,
    pub(super) sets: Vec<ClusterSet>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) scores: ScoreBoard,
    pub(super) decided: BTreeSet<Arc<str>>,
    pub(super) elsewhere: Choices,
    pub(super) now: Timestamp,
}

pub(super) fn set(name: &str, selector: &Value) -> ClusterSet {
    let object = json!({"metadata": {"name": name}, "spec": {"clusterSelector": selector}});
    ClusterSet::from_json(&object)
}

impl World {
    /// A placement with this `spec` over clusters `name label=value …`.
    pub(super) fn new(spec: &Value, clusters: &[&str]) -> Self {
        let everything = json!({"selectorType": "LabelSelector", "labelSelector": {}});
        let mut world = Self {
            placement: json!({"metadata": {"name": "p"}, "spec": spec}),
            bindings: ["global".to_owned()].into(),
            sets: vec![set("global", &everything), set("eu", &json!({}))],
            clusters: Vec::new(),
            scores: ScoreBoard::default(),
            decided: BTreeSet::new(),
            elsewhere: Choices::default(),
            now: "2026-01-01T00:01:00Z".parse().unwrap(),
        };
        for cluster in clusters {
            let mut words = cluster.split(' ');
            let name = words.next().unwrap();
            let labels: serde_json::Map<String, Value> = words
                .filter_map(|word| word.split_once('='))
                .map(|(key, value)| (key.to_owned(), json!(value)))
                .collect();
            world.add(json!({"metadata": {"name": name, "labels": labels}}));
        }
        world
    }

    pub(super) fn add(&mut self, cluster: Value) {
        self.clusters
            .push(Cluster::from_json(Arc::new(cluster)).unwrap());
    }

    pub(super) fn decided(mut self, clusters: &[&str]) -> Self {
        self.decided = clusters.iter().map(|name| Arc::from(*name)).collect();
        self
    }

    fn look<T>(&self, ask: impl Fn(&View<'_>) -> T) -> T {
        ask(&View {
            placement: &Placement::from_json(&self.placement),
            bindings: &self.bindings,
            sets: &self.sets,
            clusters: &self.clusters,
            candidates: None,
            scores: &self.scores,
            decided: &self.decided,
            chosen_elsewhere: &self.elsewhere.without([]),
            now: self.now,
        })
    }

    pub(super) fn schedule(&self) -> Outcome {
        self.look(schedule)
    }

    pub(super) fn affects(&self, before: Option<&Cluster>, after: Option<&Cluster>) -> bool {
        self.look(|view| affects(view, before, after))
    }

    pub(super) fn why(&self, cluster: &str) -> String {
        self.look(|view| why(view, cluster)).to_string()
    }

    pub(super) fn verdict(&self, cluster: &str) -> Verdict {
        self.look(|view| why(view, cluster))
    }

    /// `cluster:score …` of all decisions in order.
    pub(super) fn chosen(&self) -> String {
        let groups = self.schedule().groups.unwrap();
        let decisions = groups.iter().flat_map(|group| &group.decisions);
        let decisions: Vec<String> = decisions
            .map(|decision| format!("{}:{}", decision.cluster, decision.score))
            .collect();
        decisions.join(" ")
    }
}
