//! In whose name objects are applied: what has to be asked before a write.

use serde_json::{Value, json};

use crate::ObjectId;

/// How long a denial is taken as final, in seconds.
pub const RETRY_SECONDS: i64 = 60;

/// A service account of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// Who it is to the server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The questions whether it may apply an object; all have to be answered with yes.
    pub fn reviews(&self, object: &ObjectId, version: &str, owned: bool) -> Vec<Value> {
        let verbs = ["create", "update", "patch", "get"].into_iter();
        verbs
            .chain(owned.then_some("delete"))
            .map(|verb| {
                json!({
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": {
                        "user": self.user(),
                        "groups": [
                            "system:serviceaccounts",
                            "system:authenticated",
                            format!("system:serviceaccounts:{}", self.namespace),
                        ],
                        "resourceAttributes": {
                            "group": object.group,
                            "version": version,
                            "resource": object.resource,
                            "namespace": object.namespace,
                            "name": object.name,
                            "verb": verb,
                        },
                    },
                })
            })
            .collect()
    }
}

/// Whether an object gives rights, so that anyone who applies it must have them.
pub fn grants_rights(object: &ObjectId) -> bool {
    object.group == "rbac.authorization.k8s.io"
        && [
            "roles",
            "rolebindings",
            "clusterroles",
            "clusterrolebindings",
        ]
        .contains(&object.resource.as_str())
}

/// What is said when the account may not.
pub fn denial(object: &ObjectId, escalation: bool) -> String {
    let why = if escalation {
        ", error: permission escalation"
    } else {
        ""
    };
    format!(
        "not allowed to apply the resource {} {}, {} {}{why}, will try again in 1m0s",
        object.group, object.resource, object.namespace, object.name
    )
}
