//! What is known of an object on the cluster, with the object.

use std::sync::Arc;

use serde_json::Value;

use crate::target::Live;

/// What is known of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum LiveState {
    /// Nothing.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(Arc<Value>),
}

impl LiveState {
    /// Returns the state after an object was read.
    pub fn of(found: Option<Value>) -> Self {
        found.map_or(Self::Absent, |object| Self::Present(Arc::new(object)))
    }

    /// Returns it as decisions look at it.
    pub fn as_live(&self) -> Live<'_> {
        match self {
            Self::Unknown => Live::Unknown,
            Self::Absent => Live::Absent,
            Self::Present(object) => Live::Present(object),
        }
    }

    /// Returns the object, if it is known to exist.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Self::Present(object) => Some(object),
            Self::Unknown | Self::Absent => None,
        }
    }
}
