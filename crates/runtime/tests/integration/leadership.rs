//! Several processes, one leader: leases on an embedded server, with time that leaps.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Duration;

use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_runtime::{Candidate, Clock, LeaseError, LeaseOptions};
use bellwether_testkit::{Embedded, leaping_clock};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

const DURATION: Duration = Duration::from_secs(8);

async fn server() -> ApiServer {
    Embedded::start(Clock::system()).await.server
}

fn client(server: &ApiServer, user: &str) -> Client {
    server.client(HUB, Identity::administrator(user))
}

fn clock() -> Clock {
    leaping_clock()
}

fn candidate(client: &Client, identity: &str) -> Candidate {
    let options = LeaseOptions {
        namespace: "kube-system".to_owned(),
        name: "leader".to_owned(),
        identity: identity.to_owned(),
        duration: DURATION,
    };
    Candidate::new(client, &clock(), options)
}

async fn transitions(client: &Client) -> Option<i32> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = leases.get("leader").await.unwrap();
    lease.spec.unwrap().lease_transitions
}

async fn write(client: &Client, name: &str) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    api.create(&PostParams::default(), &object).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_lone_candidate_leads_at_once_and_stays_leader() {
    let server = server().await;
    let client = client(&server, "first");
    let mut first = candidate(&client, "first");
    let began = Instant::now();
    let mut leading = first.lead(|_| panic!("nobody to wait for")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    let kept = timeout(DURATION * 10, leading.keep()).await;
    assert!(kept.is_err(), "{kept:?}");
    assert_eq!(transitions(&client).await, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_taken_at_once() {
    let server = server().await;
    let client = client(&server, "test");
    let mut first = candidate(&client, "first");
    let leading = first.lead(|_| {}).await.unwrap();
    leading.release().await;
    assert!(!first.fence().is_open());
    let mut second = candidate(&client, "second");
    let began = Instant::now();
    second.lead(|_| {}).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(transitions(&client).await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_followed_by_another_and_may_write_no_more() {
    let server = server().await;
    let client = client(&server, "test");
    let mut first = candidate(&client, "first");
    let guarded = first.fence().guard(client.clone());
    assert!(write(&guarded, "too-early").await.is_err());
    let mut leading = first.lead(|_| {}).await.unwrap();
    write(&guarded, "in-time").await.unwrap();
    // It is paused here: nothing renews the lease.
    let holder: Arc<Mutex<String>> = Arc::default();
    let seen = Arc::clone(&holder);
    let mut second = candidate(&client, "second");
    let began = Instant::now();
    let _second = second
        .lead(move |name| name.unwrap_or_default().clone_into(&mut seen.lock()))
        .await
        .unwrap();
    assert_eq!(*holder.lock(), "first");
    let waited = began.elapsed();
    assert!(waited >= DURATION && waited < DURATION * 2, "{waited:?}");
    // It goes on: what it was about to write is held back, and it learns why.
    let refused = write(&guarded, "too-late").await.unwrap_err();
    assert!(refused.to_string().contains("lease"), "{refused}");
    assert_eq!(
        leading.keep().await,
        "the lease could not be renewed in time"
    );
    let api: Api<ConfigMap> = Api::namespaced(guarded, "default");
    assert!(
        api.get_opt("in-time").await.unwrap().is_some(),
        "reads pass"
    );
    assert!(api.get_opt("too-late").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_an_error_that_names_them() {
    let server = server().await;
    let nobody = server.client(HUB, Identity::authenticated("nobody", Vec::new()));
    let mut candidate = candidate(&nobody, "nobody");
    let error = candidate.lead(|_| {}).await.map(drop).unwrap_err();
    let LeaseError::Refused { namespace, .. } = &error;
    assert_eq!(namespace, "kube-system");
    assert!(
        error.to_string().contains("--leader-elect=false"),
        "{error}"
    );
}

/// A process that may not read the lease of another would wait for it without end.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_follow_the_lease_says_so() {
    let server = server().await;
    let administrator = client(&server, "first");
    let mut first = candidate(&administrator, "first");
    let leading = first.lead(|_| {}).await.unwrap();
    let create = async |path: &str, body: serde_json::Value| {
        let request = http::Request::post(format!("/apis/rbac.authorization.k8s.io/v1/{path}"))
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&body).unwrap());
        let answer = administrator.request::<serde_json::Value>(request.unwrap());
        answer.await.unwrap();
    };
    let few_verbs = serde_json::json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["get", "create", "update"]});
    let role = serde_json::json!({"metadata": {"name": "few"}, "rules": [few_verbs]});
    create("namespaces/kube-system/roles", role).await;
    let group = "rbac.authorization.k8s.io";
    let binding = serde_json::json!({"metadata": {"name": "few"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "few"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "few"}]});
    create("namespaces/kube-system/rolebindings", binding).await;
    let few = server.client(HUB, Identity::authenticated("few", Vec::new()));
    let mut second = candidate(&few, "second");
    let error = second.lead(|_| {}).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("cannot list resource"), "{error}");
    drop(leading);
}
