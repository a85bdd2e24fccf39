//! The certificate by which pods know their API server: every namespace has it.

use std::collections::BTreeMap;

use bellwether_api::workload::certificate::{DESCRIPTION, KEY, NAME, PURPOSE};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use crate::kind::{annotation, is_deleting};
use crate::plan::{Plan, to_json};

/// What has to be done for a namespace whose certificate is to be this one.
pub(crate) fn decide(
    namespace: &Namespace,
    published: Option<&ConfigMap>,
    certificate: &str,
    plan: &mut Plan,
) {
    if is_deleting(&namespace.metadata) {
        return;
    }
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let Some(published) = published else {
        plan.create(&map(name, certificate), None, None, None);
        return;
    };
    let data = published.data.iter().flatten();
    let texts = data
        .clone()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let is_right = texts.eq([(KEY, certificate)]);
    let is_described =
        annotation(&published.metadata, DESCRIPTION).is_some_and(|it| !it.is_empty());
    if is_right && is_described {
        return;
    }
    // Whatever somebody has added goes.
    let mut wanted: Map<String, Value> = data.map(|(key, _)| (key.clone(), Value::Null)).collect();
    wanted.insert(KEY.to_owned(), certificate.into());
    let annotations = json!({DESCRIPTION: PURPOSE});
    let patch = json!({"data": wanted, "metadata": {"annotations": annotations}});
    plan.patch(published, patch);
}

/// The certificate for a namespace that a new cluster has.
pub(crate) fn new_map(namespace: &str, certificate: &str) -> Value {
    let mut object = to_json(&map(namespace, certificate));
    object["apiVersion"] = "v1".into();
    object["kind"] = "ConfigMap".into();
    object
}

fn map(namespace: &str, certificate: &str) -> ConfigMap {
    let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            annotations: Some(one(DESCRIPTION, PURPOSE)),
            ..ObjectMeta::default()
        },
        data: Some(one(KEY, certificate)),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Action;

    #[track_caller]
    fn check(namespace: Value, published: Option<&ConfigMap>, expected: Option<Value>) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": namespace})).unwrap();
        let mut plan = Plan::default();
        decide(&namespace, published, "pem", &mut plan);
        let found = plan.actions.into_iter().next().map(|action| match action {
            Action::Create(create) => create.object["data"].clone(),
            Action::Patch { patch, .. } => patch["data"].clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_namespace_has_the_certificate_and_nothing_else_beside_it() {
        let there = json!({"name": "a"});
        let wanted = json!({KEY: "pem"});
        check(there.clone(), None, Some(wanted.clone()));
        check(there.clone(), Some(&map("a", "pem")), None);
        check(there.clone(), Some(&map("a", "old")), Some(wanted.clone()));
        let mut more = map("a", "pem");
        more.data
            .get_or_insert_default()
            .insert("own".into(), "x".into());
        check(
            there.clone(),
            Some(&more),
            Some(json!({KEY: "pem", "own": null})),
        );
        let mut bare = map("a", "pem");
        bare.metadata.annotations = None;
        check(there, Some(&bare), Some(wanted));
        let going = json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        check(going, None, None);
    }
}
