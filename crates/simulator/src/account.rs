//! Service accounts: every namespace has one for those who name none.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::kind::is_deleting;
use crate::plan::Plan;

/// The name of the account that a pod has if it names none.
pub(crate) const DEFAULT: &str = "default";

/// What has to be done for a namespace.
pub(crate) fn decide(namespace: &Namespace, has_account: bool) -> Plan {
    let mut plan = Plan::default();
    if !has_account && !is_deleting(&namespace.metadata) {
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(DEFAULT.to_owned()),
                namespace: namespace.metadata.name.clone(),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        plan.create(&account, None, None, None);
    }
    plan
}

/// The account of a namespace that a new cluster has.
pub(crate) fn new_account(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": DEFAULT, "namespace": namespace},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_gets_its_account_once() {
        let namespace = |metadata: Value| -> Namespace {
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let there = namespace(json!({"name": "a"}));
        assert_eq!(decide(&there, false).actions.len(), 1);
        assert_eq!(decide(&there, true), Plan::default());
        let going = namespace(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(decide(&going, false), Plan::default());
    }
}
