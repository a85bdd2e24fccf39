//! Objects of Gatekeeper as templates of a policy. Gatekeeper itself is played: its kinds, and what its audits find.

use kube::Api;
use kube::api::ListParams;

use super::*;

const TEMPLATES: &str = "templates.gatekeeper.sh/v1";
const CONSTRAINTS: &str = "constraints.gatekeeper.sh/v1beta1";

fn kind_of(group: &str, version: &str, kind: &str) -> Value {
    let plural = if kind == "ConstraintTemplate" {
        "constrainttemplates".to_owned()
    } else {
        kind.to_lowercase()
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List"),
                "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

impl Bed {
    fn cluster_scoped(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        let mut resource = ApiResource::from_gvk(&kind);
        if group == "constraints.gatekeeper.sh" {
            resource.plural = kind.kind.to_lowercase();
        }
        Api::all_with(self.member.clone(), &resource)
    }

    async fn define(&self, definition: Value) {
        let definitions =
            self.cluster_scoped("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let definition = serde_json::from_value(definition).unwrap();
        let params = PostParams::default();
        definitions.create(&params, &definition).await.unwrap();
    }

    async fn count(&self, api_version: &str, kind: &str) -> usize {
        let list = self.cluster_scoped(api_version, kind);
        list.list(&ListParams::default()).await.unwrap().items.len()
    }
}

#[tokio::test(start_paused = true)]
async fn templates_without_a_namespace_are_made_report_and_go_with_the_policy() {
    const API: &str = "rules.example.com/v1";
    let bed = Bed::start().await;
    let mut definition = kind_of("rules.example.com", "v1", "Fence");
    definition["metadata"]["name"] = json!("fences.rules.example.com");
    definition["spec"]["names"]["plural"] = json!("fences");
    definition["metadata"]["labels"] =
        json!({"policy.open-cluster-management.io/policy-type": "template"});
    bed.define(definition).await;
    let template = |name: &str| {
        json!({"objectDefinition": {"apiVersion": API, "kind": "Fence",
        "metadata": {"name": name, "namespace": "ignored"}, "spec": {"remediationAction": "inform", "height": 2}}})
    };
    let templates = [template("garden"), template("field")];
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
        .await;
    let fences = bed.cluster_scoped(API, "Fence");
    let until_there = async |name: &str, is_there: bool| {
        bed.world
            .until(format!("{name} is there: {is_there}"), async || {
                let found = fences.get_opt(name).await.unwrap();
                (found.is_some() == is_there)
                    .then_some(())
                    .ok_or(format!("{found:?}"))
            })
            .await;
    };
    until_there("garden", true).await;
    until_there("field", true).await;
    let garden = fences.get("garden").await.unwrap();
    let labels = garden.metadata.labels.clone().unwrap();
    assert_eq!(labels["policy.open-cluster-management.io/policy"], REPLICA);
    assert_eq!(garden.metadata.owner_references, None);
    assert_eq!(garden.data["spec"]["remediationAction"], "enforce");
    let copies = bed.on_member(POLICY_API, "Policy", MEMBER);
    let copy = copies.get(REPLICA).await.unwrap();
    let finalizer = "policy.open-cluster-management.io/cleanup-cluster-scoped-policies";
    assert_eq!(copy.metadata.finalizers, Some(vec![finalizer.to_owned()]));
    // The controller of the kind reports.
    let params = PatchParams::default();
    let history = json!([{"lastTimestamp": "2026-01-01T00:00:00.000001Z", "message": "NonCompliant; too low"}]);
    let patch = Patch::Merge(json!({"status": {"compliant": "NonCompliant", "history": history}}));
    fences
        .patch_status("garden", &params, &patch)
        .await
        .unwrap();
    bed.until_message(0, "NonCompliant; too low").await;
    // One that the policy does not have any more goes, and all with the policy.
    bed.change(json!({"spec": {"policy-templates": [template("garden")]}}))
        .await;
    until_there("field", false).await;
    until_there("garden", true).await;
    let replicas = bed.replicas();
    replicas
        .delete(REPLICA, &DeleteParams::default())
        .await
        .unwrap();
    until_there("garden", false).await;
    bed.world
        .until("the copy is gone".to_owned(), async || {
            let found = copies.get_opt(REPLICA).await.unwrap();
            found.is_none().then_some(()).ok_or(format!("{found:?}"))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn constraints_are_made_report_their_audits_and_go_with_the_policy() {
    let bed = Bed::start().await;
    let policy = include_str!("../../../../../examples/policy/gatekeeper.yaml");
    bed.replicate(example(policy)).await;
    let prefix = "NonCompliant; template-error; Mapping not found, check if";
    let suffix = "the resource version was not found: no matching kind was found";
    let missing =
        format!("{prefix} Gatekeeper is installed: {suffix}: {TEMPLATES}, Kind=ConstraintTemplate");
    bed.until_message(0, &missing).await;
    let missing = format!(
        "{prefix} the required ConstraintTemplate has been deployed: {suffix}: {CONSTRAINTS}, Kind=Labelled"
    );
    bed.until_message(1, &missing).await;
    bed.define(kind_of(
        "templates.gatekeeper.sh",
        "v1",
        "ConstraintTemplate",
    ))
    .await;
    let made = "Compliant; ConstraintTemplate labelled was created successfully";
    bed.until_message(0, made).await;
    bed.define(kind_of("constraints.gatekeeper.sh", "v1beta1", "Labelled"))
        .await;
    let constraints = bed.cluster_scoped(CONSTRAINTS, "Labelled");
    let until_action = async |action: &str| {
        bed.world
            .until(format!("the constraint is to {action}"), async || {
                let found = constraints.get_opt("every-map").await.unwrap();
                let found = found.map(|it| it.data["spec"]["enforcementAction"].clone());
                let is_it = found == Some(json!(action));
                is_it.then_some(()).ok_or(format!("{found:?}"))
            })
            .await;
    };
    until_action("warn").await;
    let violation = json!({"enforcementAction": "warn", "kind": "ConfigMap", "name": "a",
        "namespace": "default", "message": "no owner"});
    let audit = async |status: Value| {
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({ "status": status }));
        constraints
            .patch_status("every-map", &params, &patch)
            .await
            .unwrap();
    };
    audit(json!({"totalViolations": 1, "violations": [violation]})).await;
    bed.until_message(1, "NonCompliant; warn - no owner (on ConfigMap default/a)")
        .await;
    audit(json!({"totalViolations": 0, "violations": null})).await;
    let replica = bed
        .until_message(1, "Compliant; The constraint has no violations")
        .await;
    assert_eq!(replica["status"]["compliant"], "Compliant");
    bed.change(json!({"spec": {"remediationAction": "enforce"}}))
        .await;
    until_action("deny").await;
    // What others delete comes back, also the copy, which waits for what it has made.
    let copies = bed.on_member(POLICY_API, "Policy", MEMBER);
    copies
        .delete(REPLICA, &DeleteParams::default())
        .await
        .unwrap();
    bed.world
        .until("the copy is there again".to_owned(), async || {
            let found = copies.get_opt(REPLICA).await.unwrap();
            let is_there = found
                .as_ref()
                .is_some_and(|it| it.metadata.deletion_timestamp.is_none());
            is_there.then_some(()).ok_or(format!("{found:?}"))
        })
        .await;
    let replicas = bed.replicas();
    replicas
        .delete(REPLICA, &DeleteParams::default())
        .await
        .unwrap();
    bed.world
        .until("nothing is left".to_owned(), async || {
            let left = bed.count(CONSTRAINTS, "Labelled").await
                + bed.count(TEMPLATES, "ConstraintTemplate").await
                + usize::from(copies.get_opt(REPLICA).await.unwrap().is_some());
            (left == 0).then_some(()).ok_or(left.to_string())
        })
        .await;
}
