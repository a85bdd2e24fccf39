//! What a report of one cluster costs: the same for any number of clusters.

use std::task::{Context, Poll};

use bellwether_apiserver::{ClusterService, Identity};
use http::{Method, Request};
use http_body::Body as _;
use kube::Client;
use kube::client::Body;

use super::*;

/// A hub that remembers which requests it gets, and how many bytes they have.
#[derive(Clone)]
struct Weighed {
    inner: ClusterService,
    requests: Arc<Mutex<Vec<(Method, u64)>>>,
}

type Inner = <ClusterService as tower::Service<Request<Body>>>::Future;

impl tower::Service<Request<Body>> for Weighed {
    type Response = <ClusterService as tower::Service<Request<Body>>>::Response;
    type Error = std::convert::Infallible;
    type Future = Inner;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let size = request.body().size_hint().exact().unwrap_or(u64::MAX);
        let method = request.method().clone();
        self.requests.lock().push((method, size));
        self.inner.call(request)
    }
}

/// What the hub reads and writes when one of so many clusters does not comply any more.
async fn cost_of_a_report(clusters: usize) -> Vec<(Method, u64)> {
    let names: Vec<String> = (0..clusters).map(|it| format!("cluster{it:03}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bed = Bed::start(&members, |_| json!({})).await;
    bed.create([
        placement_of("all", json!({})),
        binding("all", "all", "limits"),
        policy("limits", json!({"type": "All"})),
    ])
    .await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    bed.propagator.abort();
    let requests: Arc<Mutex<Vec<(Method, u64)>>> = Arc::default();
    let weighed = Weighed {
        inner: bed
            .fleet
            .server
            .service(HUB, Identity::administrator("hub")),
        requests: Arc::clone(&requests),
    };
    let hub = Hub::new(Client::new(weighed, "default"), bed.fleet.clock.clone());
    bed.propagator = tokio::spawn(policy_propagator::run(hub));
    bed.fleet.pass(10_000).await;
    requests.lock().clear();
    bed.broken.lock().insert("cluster001".to_owned());
    bed.evaluate_again("cluster001", "limits").await;
    bed.fleet.pass(10_000).await;
    let status = bed.root("limits").await.status.unwrap();
    assert_eq!(status.compliant, Some(ComplianceState::NonCompliant));
    let found = status.status[1].compliant.clone();
    assert_eq!(found, Some(ComplianceState::NonCompliant));
    // A rollout that is complete stays complete.
    assert_eq!(status.rollout_status, Some(RolloutStatus::Succeeded));
    let cost = requests.lock().clone();
    // And back.
    bed.broken.lock().clear();
    bed.evaluate_again("cluster001", "limits").await;
    bed.fleet.pass(10_000).await;
    let status = bed.root("limits").await.status.unwrap();
    assert_eq!(status.compliant, Some(ComplianceState::Compliant));
    cost
}

#[tokio::test(start_paused = true)]
async fn a_report_of_one_cluster_is_one_small_write_for_few_clusters_and_for_many() {
    let few = cost_of_a_report(3).await;
    assert_eq!(few.len(), 1, "{few:?}");
    let (method, size) = &few[0];
    assert!(*method == Method::PATCH && *size < 400, "{few:?}");
    assert_eq!(cost_of_a_report(120).await, few);
}
