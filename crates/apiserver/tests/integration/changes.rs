//! Following a whole cluster: everything that is there, then everything that happens.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_apiserver::{ApiServer, Change, Clock, HUB, Identity};
use bellwether_store::{Options, Store};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

#[tokio::test]
async fn all_objects_are_told_and_then_every_change() {
    let server = ApiServer::new(Store::in_memory(Options::default()), Clock::system());
    let cluster = server.add_cluster(HUB).await.unwrap();
    let mut changes = cluster.changes();
    assert!(matches!(changes.next().await, Some(Change::Relisted)));
    let mut seen = Vec::new();
    loop {
        match changes.next().await.unwrap() {
            Change::Put(subject, object) => {
                let (group, resource, namespace, name) = subject.parts();
                seen.push(format!("{group}/{resource} {namespace}/{name}"));
                assert!(object.untyped_json().starts_with(b"{"));
            }
            Change::Complete => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        seen.contains(&"core/namespaces /default".to_owned()),
        "{seen:?}"
    );
    assert!(
        seen.contains(&"core/services default/kubernetes".to_owned()),
        "{seen:?}"
    );

    let client = server.client(HUB, Identity::administrator("test"));
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    let mut of_map = Vec::new();
    let mut revision = 0;
    while of_map.len() < 2 {
        let (what, subject) = match changes.next().await.unwrap() {
            Change::Put(subject, _) => ("put", subject),
            Change::Gone(subject) => ("gone", subject),
            other => panic!("{other:?}"),
        };
        assert!(subject.revision > revision, "revisions grow");
        revision = subject.revision;
        if subject.parts() == ("core", "configmaps", "default", "m") {
            of_map.push(what);
        }
    }
    assert_eq!(of_map, ["put", "gone"]);
}
