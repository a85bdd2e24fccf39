//! What an object is called within its kind.

use std::fmt;
use std::sync::Arc;

use kube::Resource;

/// Namespace and name of an object. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace; empty for an object of the whole cluster.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object of the whole cluster.
    pub fn cluster_scoped(name: &str) -> Self {
        Self::new("", name)
    }

    /// The key of an object as it came from the server.
    pub fn of<K: Resource>(object: &K) -> Self {
        let metadata = object.meta();
        Self::new(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        )
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(formatter, "{}/", self.namespace)?;
        }
        formatter.write_str(&self.name)
    }
}
