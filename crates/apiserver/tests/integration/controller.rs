//! A kube-rs controller with a watcher, a finalizer, server-side apply and status patches, once
//! without a socket and once over TLS: it cannot tell the difference, and neither can we.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{TestServer, eventually};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Resource as _};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Client, CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the controller of the test turns into a ConfigMap.
#[derive(CustomResource, Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "test.bellwether.dev",
    version = "v1",
    kind = "Greeting",
    namespaced
)]
#[kube(status = "GreetingStatus", shortname = "greet")]
struct GreetingSpec {
    text: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct GreetingStatus {
    copies: i64,
}

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, watcher::Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings: Api<Greeting> = Api::namespaced((*client).clone(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let result = finalizer(
        &greetings.clone(),
        "test.bellwether.dev/copy",
        greeting,
        |event| async {
            match event {
                Event::Apply(greeting) => {
                    let name = greeting.name_any();
                    let map = ConfigMap {
                        metadata: ObjectMeta {
                            name: Some(name.clone()),
                            owner_references: greeting
                                .controller_owner_ref(&())
                                .map(|owner| vec![owner]),
                            ..ObjectMeta::default()
                        },
                        data: Some(BTreeMap::from([(
                            "text".to_owned(),
                            greeting.spec.text.clone(),
                        )])),
                        ..ConfigMap::default()
                    };
                    let params = PatchParams::apply("copier").force();
                    maps.patch(&name, &params, &Patch::Apply(&map)).await?;
                    let status = json!({"status": {"copies": 1}});
                    greetings
                        .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                        .await?;
                }
                Event::Cleanup(greeting) => {
                    let record = ConfigMap {
                        metadata: ObjectMeta {
                            name: Some(format!("{}-was-here", greeting.name_any())),
                            ..ObjectMeta::default()
                        },
                        ..ConfigMap::default()
                    };
                    maps.create(&PostParams::default(), &record).await?;
                }
            }
            Ok::<_, kube::Error>(Action::await_change())
        },
    )
    .await;
    // A conflict with our own finalizer patch is the next round's business.
    Ok(result.unwrap_or_else(|_| Action::requeue(Duration::from_millis(20))))
}

async fn run(client: Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &Greeting::crd())
        .await
        .unwrap();
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());

    let config = watcher::Config::default().streaming_lists();
    let controller = Controller::new(greetings.clone(), config)
        .owns(maps.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_millis(50)),
            Arc::new(client.clone()),
        )
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);

    let hello = Greeting::new("hello", GreetingSpec { text: "hi".into() });
    greetings
        .create(&PostParams::default(), &hello)
        .await
        .unwrap();
    let text = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("text").cloned());
    eventually("the copy", || async {
        maps.get_opt("hello").await.unwrap().as_ref().and_then(text)
    })
    .await;
    eventually("the status", || async {
        let copies = greetings
            .get("hello")
            .await
            .unwrap()
            .status
            .map(|status| status.copies);
        copies.filter(|copies| *copies == 1)
    })
    .await;

    // What somebody else changes is repaired, because the controller watches what it owns.
    let drift = json!({"data": {"text": "drifted"}});
    maps.patch("hello", &PatchParams::default(), &Patch::Merge(drift))
        .await
        .unwrap();
    eventually("the repair", || async {
        text(&maps.get("hello").await.unwrap()).filter(|text| text == "hi")
    })
    .await;

    greetings
        .delete("hello", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the clean-up", || async {
        let gone = greetings.get_opt("hello").await.unwrap().is_none();
        let collected = maps.get_opt("hello").await.unwrap().is_none();
        let recorded = maps.get_opt("hello-was-here").await.unwrap().is_some();
        (gone && collected && recorded).then_some(())
    })
    .await;
    controller.abort();
}

#[tokio::test]
async fn a_controller_runs_without_a_socket_and_over_tls() {
    let server = TestServer::start().await;
    run(server.local("hub")).await;
    run(server.remote_admin("cluster1").await).await;
}
