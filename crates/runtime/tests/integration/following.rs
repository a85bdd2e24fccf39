//! A controller on an embedded cluster: it sees what happens, and misses nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use bellwether_runtime::{
    Cache, CacheEntry, Clock, Controller, ControllerMetrics, Next, ObjectKey, Reconcile, Selection,
};
use bellwether_testkit::{Embedded, leaping_clock};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc;

async fn client() -> Client {
    Embedded::start(leaping_clock()).await.hub()
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cache_has_what_was_there_and_tells_what_comes_and_goes() {
    let client = client().await;
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let create = PostParams::default();
    api.create(&create, &config_map("first")).await.unwrap();
    let (told, mut seen) = mpsc::unbounded_channel();
    let cache = Cache::start(api.clone(), Selection::default(), move |change| {
        let states = (change.old.is_some(), change.new.is_some());
        told.send((change.key.to_string(), states)).unwrap();
    });
    cache.ready().await;
    assert!(cache.get(&ObjectKey::new("default", "first")).is_some());
    api.create(&create, &config_map("second")).await.unwrap();
    api.delete("first", &DeleteParams::default()).await.unwrap();
    let mut changes = Vec::new();
    while changes.last() != Some(&("default/first".to_owned(), (true, false))) {
        let change = seen.recv().await.unwrap();
        // The namespace has an object of its own.
        if !change.0.ends_with("kube-root-ca.crt") {
            changes.push(change);
        }
    }
    assert_eq!(
        changes[..2],
        [
            ("default/first".to_owned(), (false, true)),
            ("default/second".to_owned(), (false, true)),
        ]
    );
    let names: BTreeSet<_> = cache
        .in_namespace("default")
        .iter()
        .filter_map(|object| object.metadata.name.clone())
        .collect();
    assert!(names.contains("second") && !names.contains("first"));
}

struct Recorder(mpsc::UnboundedSender<ObjectKey>);

impl Reconcile for Recorder {
    type Key = ObjectKey;
    type Error = Infallible;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Infallible> {
        self.0.send(key.clone()).unwrap();
        Ok(None)
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_has_its_key_reconciled() {
    let api: Api<ConfigMap> = Api::namespaced(client().await, "default");
    let cache = Cache::start(api.clone(), Selection::default(), |_| {});
    let (told, mut seen) = mpsc::unbounded_channel();
    let controller = Controller::new("recorder", &Clock::system(), &ControllerMetrics::default())
        .on(&cache, |change| [change.key.clone()])
        .workers(2);
    let controller = tokio::spawn(controller.run(Arc::new(Recorder(told))));
    api.create(&PostParams::default(), &config_map("wanted"))
        .await
        .unwrap();
    while seen.recv().await.unwrap() != ObjectKey::new("default", "wanted") {}
    controller.abort();
}

/// What a server sent of an object.
struct Sent {
    key: ObjectKey,
    text: String,
}

impl CacheEntry for Sent {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let object: ConfigMap = serde_json::from_str::<serde_json::Value>(text)
            .and_then(|object| serde_json::from_value(json!({"metadata": object["metadata"]})))?;
        Ok(Self {
            key: ObjectKey::of(&object),
            text: text.to_owned(),
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[tokio::test(start_paused = true)]
async fn of_large_objects_only_metadata_may_be_followed() {
    let client = client().await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let large = |name: &str| -> ConfigMap {
        let object = json!({"metadata": {"name": name}, "data": {"text": "weight".repeat(9)}});
        serde_json::from_value(object).unwrap()
    };
    let create = PostParams::default();
    api.create(&create, &large("listed")).await.unwrap();
    let selection = Selection::default().metadata_only();
    let path = "/api/v1/namespaces/default/configmaps".to_owned();
    let (told, mut seen) = mpsc::unbounded_channel();
    let cache: Cache<Sent> = Cache::follow(client, path, selection, move |change| {
        told.send(change.key.clone()).unwrap();
    });
    cache.ready().await;
    api.create(&create, &large("watched")).await.unwrap();
    while seen.recv().await.unwrap() != ObjectKey::new("default", "watched") {}
    for name in ["listed", "watched"] {
        let sent = cache.get(&ObjectKey::new("default", name)).unwrap();
        assert!(sent.text.contains(name) && !sent.text.contains("weight"));
    }
}
