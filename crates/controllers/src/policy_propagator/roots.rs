//! Root policies as last seen.
//!
//! The status of a root policy has an entry for each cluster, and changes with each report. Who writes it knows what
//! it says, so that it is read only when somebody asks for it: what a report costs does not grow with what is said of
//! other clusters.

use std::sync::Arc;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::policy::Policy;
use bellwether_runtime::{CacheEntry, ObjectKey};
use parking_lot::Mutex;
use serde::Deserialize;

/// What a cache keeps of a root policy.
pub(super) struct RootEntry {
    pub(super) metadata: ObjectMeta,
    content: Mutex<Content>,
}

enum Content {
    /// As the server sent it.
    Text(Box<str>),
    Policy(Arc<Policy>),
    Unreadable,
}

#[derive(Deserialize)]
struct Head {
    metadata: ObjectMeta,
}

impl RootEntry {
    /// Returns the policy; nothing if it cannot be read.
    pub(super) fn policy(&self) -> Option<Arc<Policy>> {
        let mut content = self.content.lock();
        if let Content::Text(text) = &*content {
            *content = match <Policy as CacheEntry>::read(text) {
                Ok(policy) => Content::Policy(Arc::new(policy)),
                Err(error) => {
                    tracing::error!(policy = %self.key(), %error, "a policy cannot be read");
                    Content::Unreadable
                }
            };
        }
        match &*content {
            Content::Policy(policy) => Some(Arc::clone(policy)),
            Content::Text(_) | Content::Unreadable => None,
        }
    }
}

impl CacheEntry for RootEntry {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut head: Head = serde_json::from_str(text)?;
        head.metadata.managed_fields = None;
        Ok(Self {
            metadata: head.metadata,
            content: Mutex::new(Content::Text(text.into())),
        })
    }

    fn key(&self) -> ObjectKey {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let metadata = &self.metadata;
        ObjectKey::new(&text(&metadata.namespace), &text(&metadata.name))
    }

    fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.metadata, &other.metadata);
        one.uid == other.uid
            && one.resource_version.is_some()
            && one.resource_version == other.resource_version
    }
}
