//! A set of objects on an embedded cluster, delivered as an application does: three-way patches, labels,
//! a record in memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bellwether_apply::pass::{Effect, Object, Outcome, Pass, Problem, Pruning, Slot};
use bellwether_apply::record::{Entry, Record};
use bellwether_apply::three_way::ThreeWay;
use bellwether_apply::{Drift, Manifest, ObjectId, Ownership, ResourceType, Strategy, Target};
use bellwether_runtime::{ClusterHandle, Delivery, Keeper, Objects, Queue, Watches};
use bellwether_testkit::{Embedded, leaping_clock};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};

struct Memory(Record);

impl Keeper for Memory {
    type Error = Infallible;

    async fn intend(&mut self, intent: Vec<Entry>) -> Result<Record, Infallible> {
        self.0.intended = intent;
        Ok(self.0.clone())
    }
}

struct Bed {
    delivery: Delivery<u32>,
    queue: Queue<u32>,
    labels: BTreeMap<String, String>,
    memory: Memory,
}

impl Bed {
    async fn new() -> Self {
        let clock = leaping_clock();
        let client = Embedded::start(clock.clone()).await.hub();
        let objects = Objects::new(ClusterHandle::from(client), "test");
        let queue = Queue::new(clock.clone());
        Self {
            delivery: Delivery::new(
                objects,
                Arc::default(),
                queue.clone(),
                Gauge::default(),
                clock,
            ),
            queue,
            labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            memory: Memory(Record::default()),
        }
    }

    /// Delivers config maps with a value each; returns what became of them.
    async fn deliver(
        &mut self,
        strategy: &Strategy<'_>,
        wanted: &[(&str, &str)],
    ) -> Vec<Option<Outcome>> {
        let mut manifests = Vec::new();
        for (name, value) in wanted {
            let object = config_map(name, value);
            let manifest = Manifest::read(0, &object).unwrap();
            let (discovery, objects) = (&self.delivery.discovery, &self.delivery.objects);
            let resource = discovery.find(objects, "", "v1", "ConfigMap").await;
            manifests.push((id(name), resource.unwrap().unwrap(), manifest));
        }
        let ownership = Ownership::Labels {
            labels: &self.labels,
            adopt: false,
        };
        let slots = manifests.iter().map(|(id, resource, manifest)| {
            let target = Target {
                manifest,
                strategy,
                drift: Drift::Undo,
                ownership,
                baseline: None,
                applied_before: false,
            };
            Slot::Open(Object::new(id.clone(), Arc::clone(resource), target))
        });
        let pruning = Pruning {
            ownership,
            rivals: &[],
            is_left: None,
            is_allowed: true,
        };
        let known = |id: &ObjectId| self.delivery.watches.known(id);
        let pass = Pass::new(slots.collect(), self.memory.0.clone(), pruning, known);
        let carried_out = self.delivery.carry_out(&7, pass, &mut self.memory).await;
        let settled = carried_out.unwrap();
        let record = &mut self.memory.0;
        if let Some(applied) = settled.change.applied {
            record.applied = applied;
        }
        if let Some(intended) = settled.change.intended {
            record.intended = intended;
        }
        settled.outcomes
    }

    async fn live(&self, name: &str) -> Option<Value> {
        let (discovery, objects) = (&self.delivery.discovery, &self.delivery.objects);
        let resource = discovery.find(objects, "", "v1", "ConfigMap").await;
        let resource = resource.unwrap().unwrap();
        objects.get(&resource, &id(name)).await.unwrap()
    }

    fn recorded(&self) -> Vec<&str> {
        let applied = self.memory.0.applied.iter();
        applied.map(|entry| &*entry.id.name).collect()
    }
}

fn id(name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        resource: "configmaps".into(),
        namespace: "default".into(),
        name: name.into(),
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"k": value}})
}

fn effects(outcomes: &[Option<Outcome>]) -> Vec<Result<Effect, String>> {
    let effect = |outcome: &Option<Outcome>| match &outcome.as_ref().unwrap().result {
        Ok(effect) => Ok(*effect),
        Err(Problem::Plan(error)) => Err(error.to_string()),
        Err(other) => Err(format!("{other:?}")),
    };
    outcomes.iter().map(effect).collect()
}

const THREE_WAY: Strategy<'_> = Strategy::ThreeWay(ThreeWay {
    annotation: Some("example.com/last-applied"),
    recorded: None,
    fallback: None,
    recreate: &[],
    replace: false,
});

#[tokio::test(start_paused = true)]
async fn a_set_is_delivered_kept_and_pruned() {
    let mut bed = Bed::new().await;
    let outcomes = bed.deliver(&THREE_WAY, &[("a", "1"), ("b", "1")]).await;
    assert_eq!(effects(&outcomes), [Ok(Effect::Wrote), Ok(Effect::Wrote)]);
    assert_eq!(bed.recorded(), ["a", "b"]);
    assert_eq!(
        bed.live("a").await.unwrap()["metadata"]["labels"]["app"],
        "web"
    );
    let outcomes = bed.deliver(&THREE_WAY, &[("a", "1"), ("b", "1")]).await;
    assert_eq!(effects(&outcomes), [Ok(Effect::Left), Ok(Effect::Left)]);
    // What others add stays, what is no longer wanted goes.
    let resource = &bed.delivery.discovery;
    let resource = resource
        .find(&bed.delivery.objects, "", "v1", "ConfigMap")
        .await;
    let resource = resource.unwrap().unwrap();
    let theirs = json!({"data": {"theirs": "x", "k": "changed"}});
    let objects = &bed.delivery.objects;
    objects.merge(&resource, &id("a"), &theirs).await.unwrap();
    let key = bed.queue.next().await;
    assert_eq!(key, 7, "the change of somebody else is seen");
    let outcomes = bed.deliver(&THREE_WAY, &[("a", "1")]).await;
    assert_eq!(effects(&outcomes), [Ok(Effect::Wrote)]);
    let data = bed.live("a").await.unwrap()["data"].clone();
    assert_eq!(data, json!({"k": "1", "theirs": "x"}));
    assert_eq!(bed.live("b").await, None);
    assert_eq!(bed.recorded(), ["a"]);
    bed.deliver(&THREE_WAY, &[]).await;
    assert_eq!(bed.live("a").await, None);
    assert_eq!(bed.memory.0, Record::default());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_left_alone() {
    let mut bed = Bed::new().await;
    let (discovery, objects) = (&bed.delivery.discovery, &bed.delivery.objects);
    let resource = discovery.find(objects, "", "v1", "ConfigMap").await;
    let resource = resource.unwrap().unwrap();
    let theirs = config_map("a", "theirs");
    objects.create(&resource, "default", &theirs).await.unwrap();
    let outcomes = bed.deliver(&THREE_WAY, &[("a", "1"), ("b", "1")]).await;
    let refused = "ConfigMap default/a exists, but has no owner".to_owned();
    assert_eq!(effects(&outcomes), [Err(refused), Ok(Effect::Wrote)]);
    bed.deliver(&THREE_WAY, &[]).await;
    let live = bed.live("a").await.unwrap();
    assert_eq!(live["data"]["k"], "theirs");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_a_list_is_enqueued_when_it_is_there() {
    let bed = Bed::new().await;
    let Delivery {
        discovery,
        objects,
        watches,
        ..
    } = &bed.delivery;
    let resource = discovery.find(objects, "", "v1", "ConfigMap").await;
    let resource = resource.unwrap().unwrap();
    watches.track(&id("absent"), &7);
    assert_eq!(watches.settles_by(&id("absent")), None, "nobody watches");
    watches.ensure(&resource);
    assert!(watches.settles_by(&id("absent")).is_some());
    assert_eq!(bed.queue.next().await, 7);
    assert_eq!(watches.settles_by(&id("absent")), None);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_come_is_not_waited_for_twice() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
    });
    let clock = leaping_clock();
    let client = kube::Client::new(silent, "default");
    let objects = Objects::new(ClusterHandle::from(client), "test");
    let watches = Watches::new(objects, Queue::new(clock.clone()), Gauge::default());
    let resource = Arc::new(ResourceType {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
    });
    watches.track(&id("a"), &7);
    watches.ensure(&resource);
    let began = clock.monotonic();
    let by = watches.settles_by(&id("a")).unwrap();
    assert_eq!(by.duration_since(clock.now()).as_secs(), 10);
    watches.settled(&id("a")).await;
    let waited = clock.monotonic().saturating_sub(began);
    assert!(waited.as_secs() >= 10, "{waited:?}");
    assert_eq!(watches.settles_by(&id("a")), None);
    watches.settled(&id("a")).await;
    assert_eq!(clock.monotonic().saturating_sub(began), waited, "at once");
}
