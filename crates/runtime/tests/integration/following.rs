//! A controller on an embedded cluster: it sees what happens, and misses nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use bellwether_runtime::{
    Cache, Clock, Controller, ControllerMetrics, Next, ObjectKey, Reconcile, Selection,
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
