//! The state of a moment, written to another directory while the store goes on.

use std::fmt;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::database::{self, KEYSPACES, LOG};
use super::directory::DataDirectory;
use crate::error::OpenError;

/// Everything that had been committed at a moment. What it needs is kept until it is dropped, so it should not be held for long.
pub(crate) struct Snapshot(ReadTransaction);

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction) -> Self {
        Self(transaction)
    }

    /// Makes a directory of a store, which must be missing or empty. Blocks meanwhile.
    pub(crate) fn write_to(&self, path: &Path) -> Result<(), OpenError> {
        let directory = DataDirectory::lock(path)?;
        if directory.is_initialized() {
            return Err(OpenError::Foreign {
                path: path.to_owned(),
                found: "another store".to_owned(),
            });
        }
        database::create(&directory.new_database(), |to| self.copy(to))?;
        directory.initialize()
    }

    fn copy(&self, to: &WriteTransaction) -> Result<(), redb::Error> {
        let mut log = to.open_table(LOG)?;
        for row in self.0.open_table(LOG)?.iter()? {
            let (id, record) = row?;
            log.insert(id.value(), record.value())?;
        }
        let mut keyspaces = to.open_table(KEYSPACES)?;
        for row in self.0.open_table(KEYSPACES)?.iter()? {
            let (name, about) = row?;
            keyspaces.insert(name.value(), about.value())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
