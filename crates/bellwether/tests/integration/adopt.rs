//! A hub as the controllers of Open Cluster Management and KubeVela leave it becomes ours, and theirs again.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bellwether_json::yaml::from_yaml;
use serde_json::Value;

use crate::fleet::{Background, Fleet};
use crate::site::Site as _;

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
    let completed = async {
        set_statuses(&fleet, file).await;
        set_owner(&fleet).await;
    };
    runtime.unwrap().block_on(completed);
    fleet
}

/// Names the Application as the owner of its revision and of its tracker, as KubeVela does: by its uid.
async fn set_owner(fleet: &Fleet) {
    let client = fleet.client().await;
    let root = "/apis/core.oam.dev/v1beta1";
    let get = http::Request::get(format!("{root}/namespaces/scen/applications/fleet"));
    let found = client.request::<Value>(get.body(Vec::new()).unwrap()).await;
    let Ok(application) = found else {
        return;
    };
    let uid = &application["metadata"]["uid"];
    let owner = serde_json::json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "name": "fleet",
        "uid": uid, "controller": true});
    for (path, metadata) in [
        (
            "namespaces/scen/applicationrevisions/fleet-v1",
            serde_json::json!({"ownerReferences": [owner]}),
        ),
        (
            "resourcetrackers/fleet-v1-scen",
            serde_json::json!({"labels": {"app.oam.dev/uid": uid}}),
        ),
    ] {
        let body = serde_json::json!({"metadata": metadata});
        let request = http::Request::patch(format!("{root}/{path}"))
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&body).unwrap());
        client.request::<Value>(request.unwrap()).await.unwrap();
    }
}

/// Writes the status of every object that has one.
async fn set_statuses(fleet: &Fleet, file: &str) {
    let path = crate::fleet::root()
        .join("crates/bellwether/testdata/adopt")
        .join(file);
    let objects = from_yaml(&std::fs::read_to_string(path).unwrap());
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
    let read = || {
        [
            "configmap fleet-one -n scen",
            "resourcetracker fleet-v1-scen",
        ]
        .map(|it| json(&fleet, it))
    };
    let before = read();
    let output = fleet.shell(&format!("{BELLWETHER} adopt --from kubevela --dry-run"));
    for unwanted in [
        "in the way",
        "applicationrevisions/fleet-v2",
        "configmaps/fleet-one",
    ] {
        assert!(!output.contains(unwanted), "{output}");
    }
    fleet.shell(&format!("{BELLWETHER} adopt --from kubevela"));
    let core = json(&fleet, "deployment kubevela-vela-core -n vela-system");
    assert_eq!(core["spec"]["replicas"], 0);
    let ours = run_ours(&fleet);
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.status}}=running --timeout=60s application/fleet -n scen"
    ));
    // An application that comes later shows that ours have been through everything.
    fleet.shell(&format!(
        "{BELLWETHER} apply -f crates/bellwether/testdata/adopt/another-application.yaml"
    ));
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.status}}=running --timeout=60s application/another -n scen"
    ));
    for (after, before) in read().iter().zip(&before) {
        let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
        assert_eq!(version(after), version(before), "{after:#}");
    }
    let revisions = json(
        &fleet,
        "applicationrevisions -n scen -l app.oam.dev/name=fleet",
    );
    assert_eq!(revisions["items"].as_array().unwrap().len(), 1);
    let application = json(&fleet, "application fleet -n scen");
    let workflow = &application["status"]["workflow"];
    assert_eq!(workflow["endTime"], "2026-01-01T00:00:01Z", "{workflow:#}");
    drop(ours);
}

/// A hub of KubeVela without the kinds that only ours has, and with a workflow that is under way: nothing is sent, nothing is created.
#[test]
fn a_dry_run_sends_nothing_outside_of_the_hub() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let fleet = Fleet::only_server();
    let definitions = from_yaml(&fleet.shell(&format!("{BELLWETHER} crds"))).unwrap();
    let theirs: Vec<Value> = definitions
        .into_iter()
        .filter(|it| it["spec"]["group"] == "core.oam.dev")
        .collect();
    fleet.apply_objects("definitions.json", &theirs);
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let step = serde_json::json!({"name": "tell", "type": "request",
        "properties": {"url": url, "method": "POST"}});
    let application = serde_json::json!({
        "apiVersion": "core.oam.dev/v1beta1", "kind": "Application",
        "metadata": {"name": "teller", "namespace": "default",
            "finalizers": ["app.oam.dev/resource-tracker-finalizer"]},
        "spec": {"components": [], "workflow": {"steps": [step]}},
    });
    fleet.apply_objects("application.json", &[application]);
    let output = fleet.shell(&format!("{BELLWETHER} adopt --from kubevela --dry-run"));
    assert!(
        output.contains(&format!("would send POST {url}")),
        "{output}"
    );
    let definition = "would create definition manifestworks.work.open-cluster-management.io";
    assert!(output.contains(definition), "{output}");
    let arrived = listener.accept();
    assert!(arrived.is_err(), "a connection arrived: {output}");
}
