//! OperatorPolicies on a member that serves the kinds of the Operator Lifecycle Manager.

use super::*;

const ALPHA: &str = "operators.coreos.com/v1alpha1";

fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(),
                "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

async fn create(bed: &Bed, namespace: &str, object: Value) {
    let version = object["apiVersion"].as_str().unwrap().to_owned();
    let kind = object["kind"].as_str().unwrap().to_owned();
    let objects = match namespace {
        "" => {
            let (group, version) = version.split_once('/').unwrap_or(("", &version));
            let kind = GroupVersionKind::gvk(group, version, &kind);
            Api::all_with(bed.member.clone(), &ApiResource::from_gvk(&kind))
        }
        namespace => bed.on_member(&version, &kind, namespace),
    };
    let params = PostParams::default();
    let status = object["status"].clone();
    let made: DynamicObject = serde_json::from_value(object).unwrap();
    let name = made.metadata.name.clone().unwrap();
    objects.create(&params, &made).await.unwrap();
    if !status.is_null() {
        let patch = Patch::Merge(json!({ "status": status }));
        let params = PatchParams::default();
        objects.patch_status(&name, &params, &patch).await.unwrap();
    }
}

/// The kinds of the Operator Lifecycle Manager, a catalog, and a package in it.
async fn install_manager(bed: &Bed) {
    let group = "operators.coreos.com";
    for (version, kind, plural) in [
        ("v1alpha1", "Subscription", "subscriptions"),
        ("v1", "OperatorGroup", "operatorgroups"),
        ("v1alpha1", "InstallPlan", "installplans"),
        (
            "v1alpha1",
            "ClusterServiceVersion",
            "clusterserviceversions",
        ),
        ("v1alpha1", "CatalogSource", "catalogsources"),
    ] {
        create(bed, "", definition(group, version, kind, plural)).await;
    }
    let packages = "packages.operators.coreos.com";
    let package = definition(packages, "v1", "PackageManifest", "packagemanifests");
    create(bed, "", package).await;
    create(
        bed,
        "default",
        json!({
        "apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest",
        "metadata": {"name": "lamp", "namespace": "default"},
        "status": {"catalogSource": "shelf", "catalogSourceNamespace": "lamps",
            "defaultChannel": "stable", "channels": []}}),
    )
    .await;
    create(
        bed,
        "lamps",
        json!({
        "apiVersion": ALPHA, "kind": "CatalogSource",
        "metadata": {"name": "shelf", "namespace": "lamps"},
        "status": {"connectionState": {"lastObservedState": "READY"}}}),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_installed_and_watched() {
    let bed = Bed::start().await;
    let policy = include_str!("../../../../../examples/policy/operator.yaml");
    bed.replicate(example(policy)).await;
    // What was said once stays in the history.
    let said = async |part: &str| {
        bed.world
            .until(format!("it says {part}"), async || {
                let replica = bed.replicas().get(REPLICA).await.unwrap();
                let status = replica.data["status"].clone();
                let history = status["details"][1]["history"].as_array().cloned();
                let messages = history.unwrap_or_default().into_iter();
                let mut messages = messages.map(|entry| entry["message"].to_string());
                let is_said = messages.any(|it| it.contains(part));
                is_said.then_some(status.clone()).ok_or(status.to_string())
            })
            .await
    };
    said("NonCompliant; the subscription defaults could not be determined because the PackageManifest was not found").await;
    // The manager comes later, and is noticed. Packages cannot be watched: they are asked for again.
    install_manager(&bed).await;
    bed.world.pass(60).await;
    said("the Subscription required by the policy was created").await;
    let subscriptions = bed.on_member(ALPHA, "Subscription", "lamps");
    let subscription = subscriptions.get("lamp").await.unwrap();
    assert_eq!(
        subscription.data["spec"],
        json!({"name": "lamp", "channel": "stable", "source": "shelf", "sourceNamespace": "lamps",
            "installPlanApproval": "Manual"})
    );
    said("the ClusterServiceVersion required by the policy was not found").await;
    let status = Patch::Merge(
        json!({"status": {"currentCSV": "lamp.v1.2.0", "installedCSV": "lamp.v1.2.0"}}),
    );
    let params = PatchParams::default();
    subscriptions
        .patch_status("lamp", &params, &status)
        .await
        .unwrap();
    create(
        &bed,
        "lamps",
        json!({
        "apiVersion": ALPHA, "kind": "ClusterServiceVersion",
        "metadata": {"name": "lamp.v1.2.0", "namespace": "lamps",
            "labels": {"operators.coreos.com/lamp.lamps": ""}},
        "spec": {},
        "status": {"phase": "Succeeded", "reason": "InstallSucceeded", "message": "all is well"}}),
    )
    .await;
    let status = said("Compliant; the policy spec is valid, the OperatorGroup matches what is required by the policy, the Subscription matches what is required by the policy, there are no relevant InstallPlans in the namespace, ClusterServiceVersion (lamp.v1.2.0) - all is well,").await;
    assert_eq!(status["compliant"], "Compliant");
    assert_eq!(status["observedGeneration"], 1);
    // Somebody deletes the Subscription.
    let params = DeleteParams::default();
    subscriptions.delete("lamp", &params).await.unwrap();
    bed.world
        .until("it is there again".to_owned(), async || {
            let found = subscriptions.get_opt("lamp").await.unwrap();
            found.map(|_| ()).ok_or("it is missing".to_owned())
        })
        .await;
}
