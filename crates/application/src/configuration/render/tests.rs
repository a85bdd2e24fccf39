//! What ApplicationConfigurations are rendered to.

#![allow(clippy::needless_pass_by_value, reason = "tables are written in place")]

use super::*;

/// An ApplicationConfiguration of generation 3.
fn configuration(components: Value, status: Value) -> ApplicationConfiguration {
    serde_json::from_value(json!({
        "metadata": {"name": "shop", "namespace": "market", "generation": 3,
            "labels": {"team": "blue", "tier": "front"},
            "annotations": {"note": "x", annotation::KUBECTL_LAST_APPLIED: "{}",
                annotation::ROLLING_COMPONENTS: "web"}},
        "spec": {"components": components},
        "status": status,
    }))
    .unwrap()
}

fn source(workload: Value) -> Source {
    Source {
        name: "web".into(),
        revision: "web-v2".into(),
        spec: serde_json::from_value(json!({"workload": workload})).unwrap(),
    }
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"labels": {"tier": "back"}}, "spec": {"replicas": 1}})
}

fn scaler(count: i32) -> Value {
    json!({"trait": {"apiVersion": "core.oam.dev/v1alpha2", "kind": "ManualScalerTrait",
        "spec": {"replicaCount": count}}})
}

fn rendered(components: Value, status: Value, workload: Value) -> Result<Vec<Value>, String> {
    let configuration = configuration(components, status);
    let sources = vec![source(workload); configuration.spec.components.len()];
    let rendered = render(&configuration, &sources, TraitSettings::without_definition);
    let rendered = rendered.map_err(|error| error.to_string())?;
    Ok(rendered.objects.into_iter().map(|it| it.object).collect())
}

#[test]
fn workloads_carry_what_they_were_applied_for() {
    let objects = rendered(json!([{"componentName": "web"}]), Value::Null, deployment()).unwrap();
    let expected = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "market",
            "labels": {
                "app.oam.dev/name": "shop",
                "app.oam.dev/component": "web",
                "app.oam.dev/resourceType": "WORKLOAD",
                "app.oam.dev/revision": "web-v2",
                "team": "blue",
                "tier": "back",
            },
            "annotations": {"app.oam.dev/generation": "3", "note": "x"},
        },
        "spec": {"replicas": 1},
    });
    assert_eq!(objects, [expected]);
}

#[test]
fn traits_refer_to_their_workload() {
    let components = json!([{"componentName": "web", "traits": [scaler(2)]}]);
    let objects = rendered(components, Value::Null, deployment()).unwrap();
    let scaler = &objects[1];
    let name = scaler["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-manualscaler-"), "{name}");
    assert_eq!(
        scaler["metadata"]["labels"]["app.oam.dev/resourceType"],
        "TRAIT"
    );
    assert_eq!(
        scaler["metadata"]["labels"]["app.oam.dev/revision"],
        "web-v2"
    );
    assert_eq!(
        scaler["spec"],
        json!({"replicaCount": 2,
            "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}})
    );
}

#[test]
fn traits_keep_the_name_that_is_on_record() {
    let status = json!({"workloads": [{"componentName": "web", "traits": [
        {"traitRef": {"apiVersion": "core.oam.dev/v1alpha2", "kind": "ManualScalerTrait", "name": "known"}}]}]});
    let names = |traits: Value, status: Value| -> Vec<String> {
        let components = json!([{"componentName": "web", "traits": traits}]);
        let objects = rendered(components, status, deployment()).unwrap();
        let names = objects[1..]
            .iter()
            .map(|it| text(&it["metadata"]["name"]).to_owned());
        names.collect()
    };
    assert_eq!(names(json!([scaler(2)]), status.clone()), ["known"]);
    let both = names(json!([scaler(2), scaler(2)]), status);
    assert_eq!(both[0], "known");
    assert_ne!(both[1], "known");
    let same = names(json!([scaler(2), scaler(2)]), Value::Null);
    assert_ne!(same[0], same[1]);
    // A name depends on nothing but the component and the trait.
    assert_eq!(same, names(json!([scaler(2), scaler(2)]), Value::Null));
}

#[test]
fn workloads_are_named_after_their_revision_if_a_trait_says_so() {
    let name = |status: Value, workload: Value| {
        let configuration = configuration(
            json!([{"componentName": "web", "traits": [scaler(2)]}]),
            status,
        );
        let settings = |_: &Value| TraitSettings {
            is_revision_enabled: true,
            ..TraitSettings::default()
        };
        let rendered = render(&configuration, &[source(workload)], settings).unwrap();
        assert!(rendered.components[0].is_revision_enabled);
        text(&rendered.objects[0].object["metadata"]["name"]).to_owned()
    };
    assert_eq!(name(Value::Null, deployment()), "web-v2");
    let known = |revision: &str| {
        json!({"workloads": [{"componentName": "web", "componentRevisionName": revision,
            "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}]})
    };
    assert_eq!(name(known("web-v2"), deployment()), "web");
    assert_eq!(name(known("web-v1"), deployment()), "web-v2");
    let mut named = deployment();
    named["metadata"]["name"] = "own".into();
    assert_eq!(name(Value::Null, named), "own");
}

#[track_caller]
fn check_refused(components: Value, workload: Value, expected: &str) {
    assert_eq!(
        rendered(components, Value::Null, workload),
        Err(expected.to_owned())
    );
}

#[test]
fn what_cannot_be_rendered_is_said() {
    check_refused(
        json!([{"componentName": "web", "parameterValues": [{"name": "x", "value": 1}]}]),
        deployment(),
        "component \"web\": unsupported parameter \"x\"",
    );
    check_refused(
        json!([{"componentName": "web"}]),
        json!({"kind": "Deployment"}),
        "component \"web\": the workload has no apiVersion",
    );
    check_refused(
        json!([{"componentName": "web", "traits": [{"trait": {"apiVersion": "v1"}}]}]),
        deployment(),
        "component \"web\": a trait has no kind",
    );
    check_refused(
        json!([{"componentName": "web"}, {"componentName": "web"}]),
        deployment(),
        "components \"web\" and \"web\" both have Deployment web",
    );
    check_refused(
        json!([{"componentName": "web", "dataInputs": [{"inputStore": {}}]}]),
        deployment(),
        "component \"web\": dataInputs.inputStore is not supported",
    );
}

#[test]
fn a_component_is_named_by_itself_or_by_a_revision() {
    let check = |component: Value, expected: Result<Reference<'_>, &str>| {
        let configuration = configuration(json!([component]), Value::Null);
        let found = references(&configuration).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(|it| vec![it]).map_err(str::to_owned));
    };
    let error = "spec.components[0]: give either componentName or revisionName";
    check(
        json!({"componentName": "web"}),
        Ok(Reference::Latest("web")),
    );
    check(
        json!({"revisionName": "web-v1"}),
        Ok(Reference::Revision("web-v1")),
    );
    check(json!({}), Err(error));
    check(
        json!({"componentName": "web", "revisionName": "web-v1"}),
        Err(error),
    );
}
