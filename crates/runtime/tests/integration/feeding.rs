//! A feed of an embedded cluster whose connection is not what it should be.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_apiserver::{ApiServer, HUB, Identity, ServerOptions};
use bellwether_runtime::{FeedEvent, Selection, follow};
use bellwether_store::{Options, Store};
use bellwether_testkit::{Embedded, leaping_clock};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tower::{Service as _, ServiceExt as _};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

struct Scene {
    /// A client that always works.
    api: Api<ConfigMap>,
    /// Whether the feed's own client is cut off.
    cut: Arc<AtomicBool>,
    /// How many more requests of the feed are sent on; others wait.
    permits: Arc<Semaphore>,
    told: mpsc::UnboundedReceiver<String>,
}

impl Scene {
    /// A cluster that remembers so many events, and a feed of its config maps that are labelled.
    async fn new(history_events: usize) -> Self {
        let options = Options {
            history_events,
            ..Options::default()
        };
        let store = Store::in_memory(options);
        let embedded = Embedded::on(store, leaping_clock(), ServerOptions::default()).await;
        let client = embedded.hub();
        let (tell, told) = mpsc::unbounded_channel();
        let cut = Arc::new(AtomicBool::new(false));
        let permits = Arc::new(Semaphore::new(1));
        let flaky = flaky_client(&embedded.server, Arc::clone(&cut), Arc::clone(&permits));
        tokio::spawn(async move {
            let selection = Selection::labels("fed");
            follow(flaky, PATH, &selection, &mut |news| {
                let _ = tell.send(words(&news));
            })
            .await;
        });
        Self {
            api: Api::namespaced(client, "default"),
            cut,
            permits,
            told,
        }
    }

    /// Lets the feed go on, after its first list.
    fn go_on(&self) {
        self.permits.add_permits(1000);
    }

    async fn create(&self, name: &str) {
        let object = json!({"metadata": {"name": name, "labels": {"fed": "yes"}}});
        let object: ConfigMap = serde_json::from_value(object).unwrap();
        let params = PostParams::default();
        self.api.create(&params, &object).await.unwrap();
    }

    async fn expect(&mut self, want: &[&str]) {
        for want in want {
            assert_eq!(self.told.recv().await.unwrap(), *want);
        }
    }
}

fn words(news: &FeedEvent<'_>) -> String {
    let name = |text: &str| {
        let object: Value = serde_json::from_str(text).unwrap();
        object["metadata"]["name"].as_str().unwrap().to_owned()
    };
    match news {
        FeedEvent::ListStarted => "begin".to_owned(),
        FeedEvent::Listed(text) => format!("listed {}", name(text)),
        FeedEvent::ListDone(_) => "complete".to_owned(),
        FeedEvent::Applied(text) => format!("put {}", name(text)),
        FeedEvent::Deleted(text) => format!("gone {}", name(text)),
        FeedEvent::Disconnected(error) => format!("interrupted: {error}"),
    }
}

/// A client that reaches the server while it is not cut off. A cut ends what is under way.
fn flaky_client(server: &ApiServer, cut: Arc<AtomicBool>, permits: Arc<Semaphore>) -> Client {
    let service = server.service(HUB, Identity::administrator("feed"));
    let service = tower::service_fn(move |request| {
        let (mut service, cut) = (service.clone(), Arc::clone(&cut));
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            if cut.load(Ordering::Acquire) {
                return Err(std::io::Error::other("cut off"));
            }
            let answer = service.ready().await.unwrap().call(request).await;
            Ok(answer.unwrap())
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_goes_on_where_it_was() {
    let mut scene = Scene::new(1000).await;
    scene.expect(&["begin", "complete"]).await;
    scene.go_on();
    for name in ["second", "third"] {
        // Longer than any watch lasts.
        tokio::time::sleep(Duration::from_mins(10)).await;
        scene.create(name).await;
        scene.expect(&[&format!("put {name}")]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_asked_until_it_can() {
    let mut scene = Scene::new(1000).await;
    scene.expect(&["begin", "complete"]).await;
    scene.go_on();
    scene.cut.store(true, Ordering::Release);
    // The watch that is under way ends by itself, and the next one cannot begin.
    let cut = "interrupted: ServiceError: cut off";
    scene.expect(&[cut, "begin", cut, "begin"]).await;
    scene.create("meanwhile").await;
    scene.cut.store(false, Ordering::Release);
    let mut told = String::new();
    while told != "listed meanwhile" {
        told = scene.told.recv().await.unwrap();
    }
    scene.expect(&["complete"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_forgotten_is_listed_anew() {
    let mut scene = Scene::new(2).await;
    scene.expect(&["begin", "complete"]).await;
    for name in ["a", "b", "c"] {
        scene.create(name).await;
    }
    scene.go_on();
    let listed = ["begin", "listed a", "listed b", "listed c", "complete"];
    scene.expect(&listed).await;
    scene.create("d").await;
    scene.expect(&["put d"]).await;
}
