//! Changing with kubectl: apply in all its forms, edit, patch, replace, delete.

use std::fs;
use std::process::Command;

use crate::fleet::Fleet;

fn value(fleet: &Fleet, path: &str) -> String {
    fleet.shell(&format!("kubectl get configmap m -o jsonpath={path}"))
}

#[test]
fn patches_of_all_types_change_what_they_say() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create configmap m --from-literal=a=1 --from-literal=b=2");
    let patch = |kind: &str, patch: &str| {
        fleet.shell(&format!(
            "kubectl patch configmap m --type={kind} -p {patch}"
        ))
    };
    patch("merge", "{\"data\":{\"a\":\"2\"}}");
    patch("strategic", "{\"data\":{\"b\":null}}");
    patch(
        "json",
        "[{\"op\":\"add\",\"path\":\"/data/c\",\"value\":\"3\"}]",
    );
    assert_eq!(value(&fleet, "{.data}"), r#"{"a":"2","c":"3"}"#);
    let again = patch("merge", "{\"data\":{\"a\":\"2\"}}");
    assert_eq!(again.trim(), "configmap/m patched (no change)");
    let bad = fleet.fails(
        "kubectl patch configmap m --type=json -p [{\"op\":\"remove\",\"path\":\"/data/x\"}]",
    );
    assert!(bad.contains("the server rejected our request"), "{bad}");
}

#[test]
fn labels_and_annotations_come_and_go() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create configmap m");
    fleet.shell("kubectl label configmap m a=1 b=2");
    let taken = fleet.fails("kubectl label configmap m a=3");
    assert!(taken.contains("already has a value"), "{taken}");
    fleet.shell("kubectl label configmap m a=3 --overwrite");
    fleet.shell("kubectl label configmap m b-");
    fleet.shell("kubectl annotate configmap m note=x");
    assert_eq!(value(&fleet, "{.metadata.labels}"), r#"{"a":"3"}"#);
    assert_eq!(value(&fleet, "{.metadata.annotations.note}"), "x");
}

#[test]
fn an_object_is_edited_and_replaced() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create configmap m --from-literal=k=before");
    let edited = Command::new("kubectl")
        .args(["edit", "configmap", "m"])
        .env("KUBECONFIG", fleet.kubeconfig())
        .env("HOME", fleet.directory())
        .env("KUBE_EDITOR", "sed -i s/before/after/")
        .output()
        .unwrap();
    assert!(edited.status.success(), "{edited:?}");
    assert_eq!(value(&fleet, "{.data.k}"), "after");
    let file = fleet.directory().join("m.yaml");
    let text = fleet.shell("kubectl get configmap m -o yaml");
    fs::write(&file, text.replace("after", "replaced")).unwrap();
    fleet.shell(&format!("kubectl replace -f {}", file.display()));
    assert_eq!(value(&fleet, "{.data.k}"), "replaced");
    let stale = fleet.fails(&format!("kubectl replace -f {}", file.display()));
    assert!(stale.contains("the object has been modified"), "{stale}");
    fleet.shell(&format!(
        "kubectl replace --force -f {} --timeout=20s",
        file.display()
    ));
}

#[test]
fn a_directory_is_applied_with_its_kustomization_and_pruned() {
    let fleet = Fleet::start();
    let base = fleet.directory().join("base");
    fs::create_dir(&base).unwrap();
    let map = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels: {{app: shop}}\ndata: {{k: v}}\n"
        )
    };
    fs::write(base.join("one.yaml"), map("one")).unwrap();
    fs::write(base.join("two.yaml"), map("two")).unwrap();
    fs::write(
        base.join("kustomization.yaml"),
        "resources: [one.yaml, two.yaml]\nnamePrefix: shop-\n",
    )
    .unwrap();
    let applied = fleet.shell(&format!("kubectl apply -k {}", base.display()));
    assert_eq!(
        applied,
        "configmap/shop-one created\nconfigmap/shop-two created\n"
    );
    fs::remove_file(base.join("kustomization.yaml")).unwrap();
    fleet.shell(&format!("kubectl apply -f {}", base.display()));
    fs::remove_file(base.join("two.yaml")).unwrap();
    let pruned = fleet.shell(&format!(
        "kubectl apply -f {} --prune -l app=shop --prune-allowlist=core/v1/ConfigMap",
        base.display()
    ));
    assert!(pruned.contains("configmap/two pruned"), "{pruned}");
    assert_eq!(
        fleet.shell("kubectl get cm -l app=shop -o name"),
        "configmap/one\n"
    );
    fs::write(
        base.join("one.yaml"),
        map("one").replace("k: v", "k: other"),
    )
    .unwrap();
    let difference = fleet.run(&format!("kubectl diff -f {}", base.display())).1;
    assert!(difference.contains("-  k: v\n+  k: other"), "{difference}");
    let dry = fleet.shell(&format!(
        "kubectl apply -f {} --dry-run=server",
        base.display()
    ));
    assert!(
        dry.contains("configmap/one configured (server dry run)"),
        "{dry}"
    );
}

#[test]
fn strict_validation_names_the_field() {
    let fleet = Fleet::start();
    let file = fleet.directory().join("bad.yaml");
    fs::write(
        &file,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndta: {k: v}\n",
    )
    .unwrap();
    let strict = fleet.fails(&format!("kubectl apply -f {}", file.display()));
    assert!(strict.contains("unknown field \"dta\""), "{strict}");
    let (succeeded, _, warning) = fleet.run(&format!(
        "kubectl create -f {} --validate=warn",
        file.display()
    ));
    assert!(
        succeeded && warning.contains("unknown field \"dta\""),
        "{warning}"
    );
}

#[test]
fn everything_that_create_makes_is_made() {
    let fleet = Fleet::start();
    for command in [
        "kubectl create namespace shop",
        "kubectl create serviceaccount robot -n shop",
        "kubectl create secret generic s --from-literal=k=v -n shop",
        "kubectl create role reader --verb=get --resource=pods -n shop",
        "kubectl create rolebinding readers --role=reader --serviceaccount=shop:robot -n shop",
        "kubectl create clusterrole all-readers --verb=get --resource=pods",
        "kubectl create clusterrolebinding all --clusterrole=all-readers --user=jane",
        "kubectl create service clusterip web --tcp=80:8080 -n shop",
        "kubectl create ingress web --rule=shop.example.com/*=web:80 -n shop",
        "kubectl create job once --image=busybox -n shop",
        "kubectl create cronjob often --image=busybox --schedule=*/5_*_*_*_* -n shop",
        "kubectl create quota q --hard=pods=5 -n shop",
        "kubectl create poddisruptionbudget p --selector=app=web --min-available=1 -n shop",
        "kubectl create priorityclass high --value=1000",
        "kubectl create deployment web --image=nginx -n shop",
        "kubectl autoscale deployment web --min=2 --max=5 --cpu-percent=80 -n shop",
        "kubectl expose deployment web --port=80 --name=exposed -n shop",
    ] {
        // Words are separated by spaces; a schedule has spaces of its own.
        if command.contains("_*") {
            let bad = fleet.fails(command);
            assert!(bad.contains("spec.schedule: Invalid value"), "{bad}");
            continue;
        }
        fleet.shell(command);
    }
    let all = fleet.shell("kubectl get all,ingress,pdb,quota,sa,role -n shop -o name");
    assert!(
        all.contains("horizontalpodautoscaler.autoscaling/web"),
        "{all}"
    );
}
