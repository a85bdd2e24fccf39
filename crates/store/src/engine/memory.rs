//! Keeps nothing: what is in memory anyway is all there is.

use super::{Change, Engine};
use crate::error::{OpenError, StorageError};
use crate::space::Content;

/// The engine of a store that is gone with the process. Its commits take no time, so that writes
/// need no thread to wait for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory;

impl<V> Engine<V> for Memory {
    fn load_all(&mut self) -> Result<Vec<Content<V>>, OpenError> {
        Ok(Vec::new())
    }

    fn commit(&mut self, _: &[Change<'_, V>]) -> Result<(), StorageError> {
        Ok(())
    }

    fn recover(&mut self, _: &[Change<'_, V>]) -> Result<(), StorageError> {
        Ok(())
    }
}
