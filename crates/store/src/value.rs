//! What the store keeps: the [`Value`] trait, and an [`Entry`] as reads return it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Counts the writes of one keyspace. Never goes backwards, not even across a crash.
pub type Revision = u64;

/// The revision of a keyspace that has never been written to; its first write gets the next one.
///
/// It is not zero because Kubernetes clients read the resource version `0` as "any".
pub const FIRST_REVISION: Revision = 1;

/// A value: kept in memory as itself, on disk as bytes.
///
/// [`encode`](Value::encode) runs on the one thread that writes to disk, so it should be quick.
pub trait Value: Send + Sync + Sized + 'static {
    /// The bytes that [`decode`](Value::decode) turns back into an equal value.
    fn encode(&self) -> Bytes;

    /// Reads what [`encode`](Value::encode) wrote.
    fn decode(bytes: Bytes) -> Result<Self, DecodeError>;

    /// About how many bytes it takes in memory.
    fn weight(&self) -> usize;
}

impl Value for Bytes {
    fn encode(&self) -> Bytes {
        self.clone()
    }

    fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        Ok(bytes)
    }

    fn weight(&self) -> usize {
        self.len()
    }
}

impl Value for String {
    fn encode(&self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }

    fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        String::from_utf8(bytes.into()).map_err(DecodeError::new)
    }

    fn weight(&self) -> usize {
        self.len()
    }
}

/// Stored bytes that are not a value.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DecodeError(Box<dyn Error + Send + Sync>);

impl DecodeError {
    /// Wraps the reason, which may be an error or a message.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// A key with its value, and the revisions of its first and of its latest write.
pub struct Entry<V> {
    /// The key, shared with the store.
    pub key: Arc<str>,
    /// The value, shared with the store.
    pub value: Arc<V>,
    /// The write that created the key, since it was last absent.
    pub created: Revision,
    /// The write that gave the key this value.
    pub modified: Revision,
}

impl<V> Clone for Entry<V> {
    fn clone(&self) -> Self {
        Self {
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            created: self.created,
            modified: self.modified,
        }
    }
}

impl<V> fmt::Debug for Entry<V> {
    // Without the value: it may be a secret, and need not be printable.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Entry")
            .field("key", &self.key)
            .field("created", &self.created)
            .field("modified", &self.modified)
            .finish_non_exhaustive()
    }
}
