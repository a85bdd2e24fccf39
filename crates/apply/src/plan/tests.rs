use serde_json::json;

use super::*;
use crate::fields::{FieldSelector, Place};
use crate::manifest::Manifest;
use crate::ownership::{Owner, Ownership};
use crate::target::ServerSide;

fn owner() -> Owner {
    Owner {
        api_version: "work.example/v1".into(),
        kind: "AppliedManifestWork".into(),
        name: "hub-w".into(),
        uid: "1".into(),
    }
}

fn manifest(object: Value) -> Manifest {
    Manifest::read(0, &object).unwrap()
}

fn live(manifest: &Manifest, more: Value) -> Value {
    let mut object = manifest.object.clone();
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["resourceVersion"] = json!("7");
    object["metadata"]["ownerReferences"] = json!([owner().reference()]);
    merge(&mut object, &more);
    object
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

fn server_side() -> Strategy<'static> {
    Strategy::ServerSide(ServerSide {
        manager: "work-agent",
        force: false,
        ignore: Vec::new(),
        hash_annotation: "example.com/hash",
    })
}

/// A manifest that is owned, and of which nothing is remembered.
fn target<'a>(
    manifest: &'a Manifest,
    strategy: &'a Strategy<'a>,
    owner: &'a Owner,
    applied_before: bool,
) -> Target<'a> {
    Target {
        manifest,
        strategy,
        drift: Drift::Undo,
        ownership: Ownership::Reference {
            owner,
            belongs: true,
        },
        baseline: None,
        applied_before,
    }
}

fn step(manifest: &Manifest, strategy: &Strategy<'_>, live: Live<'_>, before: bool) -> Step {
    let owner = owner();
    plan(&target(manifest, strategy, &owner, before), live).unwrap()
}

fn config_map() -> Manifest {
    manifest(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "n", "labels": {"a": "b", "old-": ""}}, "data": {"k": "v"}}))
}

#[test]
fn what_is_missing_is_created_with_its_owner_and_without_marks() {
    let Step::Create(object) = step(&config_map(), &Strategy::Update, Live::Absent, false) else {
        panic!();
    };
    assert_eq!(object["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(
        object["metadata"]["ownerReferences"],
        json!([owner().reference()])
    );
    assert_eq!(
        step(&config_map(), &Strategy::Update, Live::Unknown, true),
        Step::Read
    );
}

#[test]
fn a_config_map_is_repaired_and_keeps_what_others_added_to_its_metadata() {
    let manifest = config_map();
    let as_it_should = live(
        &manifest,
        json!({"metadata": {"labels": {"a": "b", "x": "y"}}}),
    );
    let mut as_it_should = as_it_should;
    as_it_should["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("old-");
    assert_eq!(
        step(
            &manifest,
            &Strategy::Update,
            Live::Present(&as_it_should),
            false
        ),
        Step::Leave
    );
    let mut drifted = as_it_should.clone();
    drifted["data"]["more"] = json!("1");
    drifted["metadata"]["labels"]["old"] = json!("1");
    let Step::Replace(object) = step(&manifest, &Strategy::Update, Live::Present(&drifted), true)
    else {
        panic!();
    };
    assert_eq!(object["data"], json!({"k": "v"}));
    assert_eq!(object["metadata"]["labels"], json!({"a": "b", "x": "y"}));
    assert_eq!(object["metadata"]["resourceVersion"], "7");
}

#[test]
fn of_pods_namespaces_and_accounts_only_metadata_is_changed() {
    for kind in ["Pod", "Namespace", "ServiceAccount"] {
        let manifest = manifest(
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": {"a": 1}}),
        );
        let other = live(&manifest, json!({"spec": {"a": 2}}));
        assert_eq!(
            step(&manifest, &Strategy::Update, Live::Present(&other), false),
            Step::Leave,
            "{kind}"
        );
    }
}

#[test]
fn texts_of_secrets_are_folded_and_another_type_is_a_new_secret() {
    let secret = manifest(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "type": "Opaque", "stringData": {"k": "v"}}),
    );
    let mut stored = live(&secret, json!({"data": {"k": "dg=="}}));
    stored.as_object_mut().unwrap().remove("stringData");
    assert_eq!(
        step(&secret, &Strategy::Update, Live::Present(&stored), false),
        Step::Leave
    );
    stored["type"] = json!("kubernetes.io/tls");
    let found = step(&secret, &Strategy::Update, Live::Present(&stored), false);
    assert!(matches!(found, Step::Recreate { uid, .. } if uid == "u"));
    let twice = manifest(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"k": "eA=="}, "stringData": {"k": "v"}}),
    );
    let owner = owner();
    let target = target(&twice, &Strategy::Update, &owner, false);
    assert_eq!(
        plan(&target, Live::Absent),
        Err(ApplyError::SecretKey("k".into()))
    );
}

#[test]
fn defaults_of_the_server_are_no_changes_of_others() {
    let manifest = manifest(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": 2}}));
    let defaulted = live(
        &manifest,
        json!({"spec": {"revisionHistoryLimit": 10}, "status": {"replicas": 2}}),
    );
    assert_eq!(
        step(
            &manifest,
            &Strategy::Update,
            Live::Present(&defaulted),
            true
        ),
        Step::Leave
    );
    let owner = owner();
    let mut target = target(&manifest, &Strategy::Update, &owner, true);
    let baseline = remember(&target, &defaulted);
    target.baseline = Some(&baseline);
    assert!(is_repair(&target));
    let mut news = defaulted.clone();
    news["status"]["replicas"] = json!(1);
    news["metadata"]["resourceVersion"] = json!("8");
    news["metadata"]["annotations"] = json!({"theirs": "1"});
    assert_eq!(plan(&target, Live::Present(&news)), Ok(Step::Leave));
    news["spec"]["revisionHistoryLimit"] = json!(3);
    assert!(matches!(
        plan(&target, Live::Present(&news)),
        Ok(Step::Replace(_))
    ));
}

#[test]
fn services_and_jobs_keep_what_only_the_server_knows() {
    let service = manifest(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    );
    let stored = live(
        &service,
        json!({"spec": {"clusterIP": "10.0.0.1", "selector": {"a": "c"},
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}]}}),
    );
    let Step::Replace(object) = step(&service, &Strategy::Update, Live::Present(&stored), false)
    else {
        panic!();
    };
    assert_eq!(object["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(object["spec"]["ports"][0]["nodePort"], 30000);
    let job = manifest(
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"parallelism": 2, "template": {"spec": {}}}}),
    );
    let stored = live(
        &job,
        json!({"spec": {"parallelism": 1, "selector": {"matchLabels": {"u": "1"}},
        "template": {"metadata": {"labels": {"u": "1"}}}}}),
    );
    let Step::Replace(object) = step(&job, &Strategy::Update, Live::Present(&stored), false) else {
        panic!();
    };
    assert_eq!(object["spec"]["selector"]["matchLabels"]["u"], "1");
    assert_eq!(object["spec"]["template"]["metadata"]["labels"]["u"], "1");
    assert_eq!(object["spec"]["parallelism"], 2);
}

#[test]
fn what_the_server_applies_has_no_owners_and_no_empty_times() {
    let manifest = manifest(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "ownerReferences": [{}]},
        "spec": {"template": {"metadata": {"creationTimestamp": null, "labels": {"a": "b"}}}}}));
    let found = step(&manifest, &server_side(), Live::Absent, false);
    let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
    assert_eq!(
        found,
        Step::Apply {
            configuration: expected,
            manager: "work-agent".into(),
            force: false
        }
    );
}

#[test]
fn what_others_are_asked_to_fill_in_stays() {
    let check = |object: Value, filled_in: Value| {
        let manifest = manifest(object);
        let present = live(&manifest, filled_in);
        assert_eq!(
            step(&manifest, &Strategy::Update, Live::Present(&present), true),
            Step::Leave,
            "{present}"
        );
    };
    let aggregation = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    check(
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r"}, "aggregationRule": aggregation, "rules": []}),
        json!({"rules": [{"verbs": ["get"]}]}),
    );
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
            "labels": {"config.openshift.io/inject-trusted-cabundle": "true"}}, "data": {"a": "b"}}),
        json!({"data": {"ca-bundle.crt": "CA"}}),
    );
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m",
            "annotations": {"service.beta.openshift.io/inject-cabundle": "true"}}}),
        json!({"data": {"service-ca.crt": "CA"}}),
    );
    check(
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
        json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "false"}}}),
    );
}

#[test]
fn certificates_that_others_filled_in_are_not_taken_away() {
    let check = |manifest: Value, filled_in: Value, place: &str| {
        let manifest = self::manifest(manifest);
        let mut present = live(&manifest, filled_in);
        present["metadata"]["ownerReferences"] = json!([]);
        let Step::Replace(object) =
            step(&manifest, &Strategy::Update, Live::Present(&present), false)
        else {
            panic!("{present}");
        };
        assert_eq!(object.pointer(place), Some(&json!("CA")), "{object}");
    };
    check(
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "w"}, "webhooks": [{"name": "a", "clientConfig": {"url": "u"}}]}),
        json!({"webhooks": [{"name": "a", "clientConfig": {"url": "u", "caBundle": "CA"}}]}),
        "/webhooks/0/clientConfig/caBundle",
    );
    check(
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "w"}, "spec": {"conversion": {"webhook": {"clientConfig": {"url": "u"}}}}}),
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "CA"}}}}}),
        "/spec/conversion/webhook/clientConfig/caBundle",
    );
    check(
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "w"}, "spec": {"group": "g", "caBundle": ""}}),
        json!({"spec": {"caBundle": "CA"}}),
        "/spec/caBundle",
    );
}

#[test]
fn what_others_do_to_their_own_fields_is_not_applied_again() {
    let manifest = config_map();
    let strategy = server_side();
    let ours = json!([{"manager": "work-agent", "operation": "Apply", "fieldsV1": {"f:data": {"f:k": {}}}}]);
    let mut applied = live(&manifest, json!({"metadata": {"managedFields": ours}}));
    let labels = applied["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("old-");
    let owner = owner();
    let mut target = target(&manifest, &strategy, &owner, true);
    let baseline = remember(&target, &applied);
    target.baseline = Some(&baseline);
    let mut theirs = applied.clone();
    theirs["data"]["theirs"] = json!("x");
    assert_eq!(plan(&target, Live::Present(&theirs)), Ok(Step::Leave));
    let check = |live: &Value| {
        let step = plan(&target, Live::Present(live)).unwrap();
        assert!(matches!(step, Step::Apply { .. }), "{step:?}");
    };
    let mut changed = theirs.clone();
    changed["data"]["k"] = json!("x");
    check(&changed);
    let mut taken = theirs;
    taken["metadata"]["managedFields"][0]["fieldsV1"] = json!({});
    check(&taken);
}

#[test]
fn ignored_fields_are_found_however_they_are_written() {
    let object = json!({"spec": {"replicas": 1, "list": [{"name": "a", "image": "x"}, {"name": "b"}]},
        "metadata": {"annotations": {"example.com/x.y": "1"}}});
    let check = |path: &str, expected: &[&str]| {
        let selector = FieldSelector {
            json_paths: &[path.to_owned()],
            ..FieldSelector::default()
        };
        let found = selector.locations(&object).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|location| format!("{:?}", location.last()))
            .collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|name| format!("{:?}", Some(Place::Field((*name).to_owned()))))
            .collect();
        assert_eq!(shown, expected, "{path}");
    };
    check(".spec.replicas", &["replicas"]);
    check("{.spec.replicas}", &["replicas"]);
    check("$.spec.replicas", &["replicas"]);
    check(".spec['replicas']", &["replicas"]);
    check(
        ".metadata.annotations.example\\.com/x\\.y",
        &["example.com/x.y"],
    );
    check(".spec.list[*].image", &["image"]);
    check(".spec.list[?(@.name==\"a\")].image", &["image"]);
    check(".spec.list[0]", &[]);
    check(".spec.missing.deep", &[]);
}

#[test]
fn a_manifest_without_replicas_leaves_them_to_an_autoscaler() {
    let manifest = manifest(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n"}, "spec": {"paused": false}}));
    let created = live(
        &manifest,
        json!({"spec": {"replicas": 1, "revisionHistoryLimit": 10}}),
    );
    let owner = owner();
    let mut target = target(&manifest, &Strategy::Update, &owner, true);
    let baseline = remember(&target, &created);
    target.baseline = Some(&baseline);
    let mut scaled = created.clone();
    scaled["spec"]["replicas"] = json!(7);
    assert_eq!(plan(&target, Live::Present(&scaled)), Ok(Step::Leave));
    scaled["spec"]["paused"] = json!(true);
    let Ok(Step::Replace(object)) = plan(&target, Live::Present(&scaled)) else {
        panic!();
    };
    assert_eq!(object["spec"], json!({"paused": false, "replicas": 7}));
}

/// A deployment that others scaled, and the target of its manifest.
fn scaled() -> (Manifest, Value) {
    let manifest = manifest(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": 1, "paused": true}}));
    let live = live(&manifest, json!({"spec": {"replicas": 7, "paused": false}}));
    (manifest, live)
}

#[test]
fn changes_of_others_are_undone_or_kept() {
    let (manifest, changed) = scaled();
    let owner = owner();
    let check = |drift: Drift<'_>, before: bool, live: Live<'_>, expected: &str| {
        let target = Target {
            drift,
            ..target(&manifest, &Strategy::Update, &owner, before)
        };
        let found = match plan(&target, live).unwrap() {
            Step::Leave => "leave".to_owned(),
            Step::Read => "read".to_owned(),
            Step::Create(_) => "create".to_owned(),
            Step::Replace(object) => {
                format!(
                    "replace {} {}",
                    object["spec"]["replicas"], object["spec"]["paused"]
                )
            }
            other => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{drift:?} {before} {live:?}");
    };
    let present = Live::Present(&changed);
    let undone = "replace 1 true";
    check(Drift::Undo, true, present, undone);
    check(Drift::Keep, true, present, "leave");
    check(Drift::Keep, false, present, undone);
    check(Drift::Keep, true, Live::Unknown, "read");
    check(Drift::Keep, true, Live::Absent, "create");
    check(Drift::KeepDeleted, true, present, "leave");
    check(Drift::KeepDeleted, true, Live::Absent, "leave");
    check(Drift::KeepDeleted, false, Live::Absent, "create");
    let replicas = ["spec.replicas".to_owned()];
    let kept = "replace 7 true";
    check(Drift::KeepFields(&replicas), true, present, kept);
    check(Drift::KeepFields(&replicas), true, Live::Absent, "leave");
    check(Drift::KeepFields(&[]), true, Live::Unknown, "read");
    check(Drift::KeepFields(&[]), true, Live::Absent, "leave");
    check(Drift::KeepFields(&replicas), false, Live::Absent, "create");
    let everything = ["*".to_owned()];
    check(Drift::KeepFields(&everything), true, present, "leave");
}

#[test]
fn a_field_that_others_removed_stays_removed() {
    let (manifest, mut changed) = scaled();
    bellwether_json::path::remove(&mut changed, &["spec", "replicas"]);
    let (owner, paths) = (owner(), ["spec.replicas".to_owned()]);
    let replicas = |applied_before: bool| {
        let target = Target {
            drift: Drift::KeepFields(&paths),
            applied_before,
            ..target(&manifest, &Strategy::Update, &owner, true)
        };
        match plan(&target, Live::Present(&changed)) {
            Ok(Step::Replace(object)) => object["spec"].get("replicas").is_some(),
            Ok(Step::Leave) => false,
            other => panic!("{other:?}"),
        }
    };
    assert!(!replicas(true));
    assert!(replicas(false), "a new manifest may add it");
}

#[test]
fn what_is_only_created_or_read_is_left_alone() {
    let (manifest, changed) = scaled();
    let check = |strategy: &Strategy<'_>, live: Live<'_>, expected: &Step| {
        assert_eq!(step(&manifest, strategy, live, false), *expected);
    };
    let present = Live::Present(&changed);
    check(&Strategy::CreateOnly, present, &Step::Leave);
    check(&Strategy::ReadOnly, present, &Step::Leave);
    check(&Strategy::ReadOnly, Live::Absent, &Step::Leave);
    check(&Strategy::ReadOnly, Live::Unknown, &Step::Read);
    let mut unowned = changed.clone();
    unowned["metadata"]["ownerReferences"] = json!([]);
    let found = step(
        &manifest,
        &Strategy::CreateOnly,
        Live::Present(&unowned),
        false,
    );
    assert!(matches!(found, Step::Own(_)), "{found:?}");
}
