//! ServiceAccounts.

use k8s_openapi::api::core::v1::ServiceAccount;

use serde_json::Value;

use crate::Resource;
use crate::resource::{CREATE, Subresource};
use crate::value::items;

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["sa"],
    returns_deleted: true,
    subresources: &[Subresource {
        name: "token",
        kind: Some(("authentication.k8s.io", "v1", "TokenRequest")),
        verbs: CREATE,
    }],
    prepare_create: |object, _| keep_names(object),
    prepare_update: |new, _| keep_names(new),
    ..Resource::namespaced::<ServiceAccount>("", "v1", "ServiceAccount", "serviceaccounts")
};

/// Secrets are in the namespace of the account: only their names count.
fn keep_names(object: &mut Value) {
    for secret in items(object, &["secrets"]) {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|field, _| field == "name");
        }
    }
}
