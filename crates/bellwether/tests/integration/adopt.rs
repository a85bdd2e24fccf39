//! A hub as the controllers of Open Cluster Management and KubeVela leave it becomes ours, and theirs again.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::Value;

use crate::fleet::{Background, Fleet};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

fn json(fleet: &Fleet, what: &str) -> Value {
    let text = fleet.shell(&format!("{BELLWETHER} get {what} -o json"));
    serde_json::from_str(&text).unwrap()
}

/// A hub with what other controllers have left, of which those parts of the status are set that a server keeps apart.
fn hub(file: &str) -> Fleet {
    let fleet = Fleet::only_server();
    let definitions = fleet.scratch().join("definitions.yaml");
    let text = fleet.shell(&format!("{BELLWETHER} crds"));
    std::fs::write(&definitions, text).unwrap();
    fleet.shell(&format!(
        "{BELLWETHER} apply --server-side -f {}",
        definitions.display()
    ));
    fleet.shell(&format!(
        "{BELLWETHER} apply -f crates/bellwether/testdata/adopt/{file}"
    ));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(set_statuses(&fleet, file));
    fleet
}

/// Writes the status of every object that has one.
async fn set_statuses(fleet: &Fleet, file: &str) {
    let path = crate::fleet::root()
        .join("crates/bellwether/testdata/adopt")
        .join(file);
    let objects = bellwether_json::yaml::from_yaml(&std::fs::read_to_string(path).unwrap());
    let client = fleet.client().await;
    for object in objects.unwrap() {
        if object.get("status").is_none() {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let plural = format!("{}s", text(&object["kind"]).to_lowercase());
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/namespaces/{namespace}"),
            None => String::new(),
        };
        let path = format!(
            "/apis/{}{namespace}/{plural}/{}/status",
            text(&object["apiVersion"]),
            text(&object["metadata"]["name"])
        );
        let body = serde_json::json!({"status": object["status"]});
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&body).unwrap());
        client.request::<Value>(request.unwrap()).await.unwrap();
    }
}

/// Runs our controllers until they lead, and then for as long as it takes to see an object of their own.
fn run_ours(fleet: &Fleet) -> Background {
    let ours = fleet.spawn(&format!(
        "{BELLWETHER} hub --leader-elect-lease-duration 2s"
    ));
    while !ours.line().starts_with("the hub is ready") {}
    ours
}

#[test]
fn a_hub_of_ocm_is_taken_over_and_given_back() {
    let fleet = hub("ocm.yaml");
    let works = || json(&fleet, "manifestworks -A");
    let before = works();
    let output = fleet.shell(&format!("{BELLWETHER} adopt --from ocm --dry-run"));
    assert!(!output.contains("in the way"), "{output}");
    assert!(!output.contains("/manifestworks/"), "{output}");
    let stop = "would stop Deployment open-cluster-management/cluster-manager (3 replicas)";
    assert!(output.contains(stop), "{output}");
    let deployment = "deployment cluster-manager -n open-cluster-management";
    assert_eq!(json(&fleet, deployment)["spec"]["replicas"], 3);

    fleet.shell(&format!("{BELLWETHER} adopt --from ocm"));
    assert_eq!(json(&fleet, deployment)["spec"]["replicas"], 0);
    let ours = run_ours(&fleet);
    // A new work by our controllers shows that they have been through everything.
    fleet.shell(&format!(
        "{BELLWETHER} apply -f crates/bellwether/testdata/adopt/another.yaml"
    ));
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.summary.total}}=1 --timeout=60s mwrs/another"
    ));
    let work = |list: &Value| {
        let items = list["items"].as_array().unwrap().clone();
        let mut items = items.into_iter();
        items
            .find(|it| it["metadata"]["name"] == "shopx7k2p")
            .unwrap()
    };
    let (now, then) = (work(&works()), work(&before));
    for part in ["uid", "generation", "labels", "finalizers"] {
        assert_eq!(now["metadata"][part], then["metadata"][part], "{part}");
    }
    assert_eq!(now["spec"], then["spec"], "agents have nothing to do");
    assert_eq!(works()["items"].as_array().unwrap().len(), 2);
    drop(ours);

    let output = fleet.shell(&format!("{BELLWETHER} adopt --from ocm --undo"));
    assert!(output.contains("start Deployment"), "{output}");
    assert_eq!(json(&fleet, deployment)["spec"]["replicas"], 3);
    let hook = "manifestworkvalidators.admission.work.open-cluster-management.io";
    let hooks = json(&fleet, &format!("validatingwebhookconfiguration {hook}"));
    assert_eq!(hooks["webhooks"][0]["failurePolicy"], "Fail");
}

#[test]
fn objects_of_kubevela_are_not_touched() {
    let fleet = hub("kubevela.yaml");
    let object = || json(&fleet, "configmap fleet-one -n scen");
    let before = object();
    fleet.shell(&format!("{BELLWETHER} adopt --from kubevela"));
    let core = json(&fleet, "deployment kubevela-vela-core -n vela-system");
    assert_eq!(core["spec"]["replicas"], 0);
    let ours = run_ours(&fleet);
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.status}}=running --timeout=60s application/fleet -n scen"
    ));
    let after = object();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["data"], before["data"]);
    let owner = |object: &Value| object["metadata"]["labels"]["app.oam.dev/name"].clone();
    assert_eq!(owner(&after), owner(&before));
    drop(ours);
}
