//! Applications on a fleet of the binary: deliver, show, plan, log, roll back, delete.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use crate::fleet::{self, Fleet, pause};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

fn until_running(fleet: &Fleet, app: &str) -> String {
    let mut status = String::new();
    for _ in 0..150 {
        status = fleet.shell(&format!("{BELLWETHER} status app/{app}"));
        let title = status.lines().next().unwrap_or_default();
        if title.contains("   running   ") {
            return status;
        }
        pause();
    }
    panic!("{app} is not running: {status}");
}

fn apply(fleet: &Fleet, text: &str) {
    let file = fleet.scratch().join("app.yaml");
    std::fs::write(&file, text).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
}

#[test]
fn an_application_is_delivered_shown_planned_rolled_back_and_deleted() {
    let fleet = Fleet::start_with(&["--clusters", "2"]);
    let root = fleet::root();
    let example = root.join("examples/application/fleet.yaml");
    let first = std::fs::read_to_string(&example).unwrap();
    let plan = fleet.shell(&format!("{BELLWETHER} plan -f {}", example.display()));
    assert!(
        plan.contains("application default/storefront: 4 to create")
            && plan.contains("cluster2:\n  create    Deployment default/front"),
        "{plan}"
    );
    apply(&fleet, &first);
    let status = until_running(&fleet, "storefront");
    assert!(
        status.contains("on cluster1   healthy   Ready:1/1"),
        "{status}"
    );
    assert!(
        status.contains("Service default/front   on cluster2"),
        "{status}"
    );
    let list = fleet.shell(&format!("{BELLWETHER} app list"));
    assert!(
        list.contains("storefront") && list.contains("healthy"),
        "{list}"
    );

    let second = first
        .replace("nginx:1.27", "nginx:1.28")
        .replace("[cluster1, cluster2]", "[cluster1]");
    let file = fleet.scratch().join("second.yaml");
    std::fs::write(&file, &second).unwrap();
    let plan = fleet.shell(&format!("{BELLWETHER} plan -f {} -o json", file.display()));
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let clusters = &plan["applications"][0]["clusters"];
    assert_eq!(clusters["cluster2"][0]["change"], "delete", "{plan}");
    let fields = &clusters["cluster1"][0]["fields"];
    assert_eq!(fields[0]["after"], "nginx:1.28", "{plan}");
    apply(&fleet, &second);
    for _ in 0..100 {
        let status = fleet.shell(&format!("{BELLWETHER} app status storefront -o json"));
        let status: Value = serde_json::from_str(&status).unwrap();
        if status["revision"] == "storefront-v2" && status["phase"] == "running" {
            break;
        }
        pause();
    }
    let plan = fleet.shell(&format!("{BELLWETHER} plan -f {}", file.display()));
    assert!(
        plan.contains("0 to create, 0 to update, 0 to recreate, 0 to delete"),
        "{plan}"
    );

    let said = fleet.shell(&format!("{BELLWETHER} app rollback storefront"));
    assert!(said.contains("goes back to storefront-v1"), "{said}");
    let status = until_running(&fleet, "storefront");
    assert!(status.contains("on cluster2   healthy"), "{status}");
    let revisions = fleet.shell(&format!("{BELLWETHER} app revisions storefront"));
    assert!(
        revisions.contains("storefront-v1") && revisions.contains("storefront-v2"),
        "{revisions}"
    );
    let logs = fleet.run(&format!(
        "{BELLWETHER} app logs storefront --cluster cluster1"
    ));
    assert!(logs.1.contains("cluster1 front-"), "{logs:?}");
    let wrong = fleet.fails(&format!(
        "{BELLWETHER} app logs storefront --component frnt"
    ));
    assert!(wrong.contains("front"), "{wrong}");

    let said = fleet.shell(&format!("{BELLWETHER} app delete storefront"));
    assert!(said.contains("application storefront is deleted"), "{said}");
    let left = fleet.shell(&format!(
        "{BELLWETHER} get deployments --context cluster1 -o name"
    ));
    assert!(!left.contains("front"), "{left}");
    let unknown = fleet.fails(&format!("{BELLWETHER} status app/storefront"));
    assert!(
        unknown.contains("there is no application storefront"),
        "{unknown}"
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_is_stored() {
    let fleet = Fleet::start_with(&["--clusters", "0"]);
    let app = |image: &str| {
        format!(
            "apiVersion: core.oam.dev/v1beta1\nkind: Application\nmetadata: {{name: a}}\nspec:\n  components:\n  - name: web\n    type: webservice\n    properties: {{image: {image}}}\n"
        )
    };
    let file = fleet.scratch().join("wrong.yaml");
    std::fs::write(&file, app("1")).unwrap();
    let refused = fleet.fails(&format!("{BELLWETHER} apply -f {}", file.display()));
    assert!(
        refused.contains("component web") && refused.contains("parameter.image"),
        "{refused}"
    );
    std::fs::write(&file, app("nginx")).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
    until_running(&fleet, "a");
    let said = fleet.shell(&format!("{BELLWETHER} app delete a --orphan"));
    assert!(said.contains("is deleted"), "{said}");
    let left = fleet.shell(&format!("{BELLWETHER} get deployments -o name"));
    assert!(left.contains("deployment.apps/web"), "{left}");
}
