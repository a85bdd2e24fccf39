//! ServiceAccounts.

use k8s_openapi::api::core::v1::ServiceAccount;

use crate::Resource;
use crate::resource::{CREATE, Subresource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["sa"],
    subresources: &[Subresource {
        name: "token",
        kind: Some(("authentication.k8s.io", "v1", "TokenRequest")),
        verbs: CREATE,
    }],
    ..Resource::namespaced::<ServiceAccount>("", "v1", "ServiceAccount", "serviceaccounts")
};
