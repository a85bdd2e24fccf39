//! Creating, opening and verifying the database file.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database, TableDefinition};

use super::guarded::GuardedFile;
use crate::error::OpenError;
use crate::value::Revision;

/// Records by [`RowId`].
pub(super) const LOG: TableDefinition<'_, &[u8; 12], &[u8]> = TableDefinition::new("log");

/// For each keyspace its number, and the revision up to which its history is gone.
pub(super) const KEYSPACES: TableDefinition<'_, &str, (u32, Revision)> =
    TableDefinition::new("keyspaces");

/// Everything is read once and then served from memory, so the database needs to cache no more
/// than the rims of its trees.
const CACHE_BYTES: usize = 8 << 20;

/// Where a record is: its keyspace and its revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowId {
    pub(super) keyspace: u32,
    pub(super) revision: Revision,
}

impl RowId {
    pub(super) fn new(keyspace: u32, revision: Revision) -> Self {
        Self { keyspace, revision }
    }

    /// Big-endian, so that rows sort by keyspace, then by revision.
    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.keyspace.to_be_bytes());
        bytes[4..].copy_from_slice(&self.revision.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; 12]) -> Self {
        let [a, b, c, d, revision @ ..] = *bytes;
        Self {
            keyspace: u32::from_be_bytes([a, b, c, d]),
            revision: Revision::from_be_bytes(revision),
        }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "revision {} of keyspace {}",
            self.revision, self.keyspace
        )
    }
}

/// Creates a database with empty tables, in place of whatever is there.
pub(super) fn create(path: &Path) -> Result<(), OpenError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(OpenError::Io {
                action: "replace",
                path: path.to_owned(),
                source,
            });
        }
        _ => {}
    }
    let create = || -> Result<(), redb::Error> {
        let database = builder().create(path)?;
        let transaction = database.begin_write()?;
        transaction.open_table(LOG)?;
        transaction.open_table(KEYSPACES)?;
        Ok(transaction.commit()?)
    };
    create().map_err(|error| unreadable(path, error))
}

/// Opens the database, and verifies all of it. Changes nothing on disk.
pub(super) fn open(path: &Path, file: &GuardedFile) -> Result<Database, OpenError> {
    let corrupt = |reason: &str| OpenError::Corrupt {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    catch(path, || {
        // To the database, an empty file is a new one.
        if file.is_empty() {
            return Err(corrupt("the file is empty"));
        }
        let verified = Arc::new(AtomicBool::new(false));
        let mut builder = builder();
        let flag = Arc::clone(&verified);
        // After a crash the database verifies itself; it takes back an incomplete last commit,
        // which nobody has been told of.
        builder.set_repair_callback(move |_| flag.store(true, Ordering::Relaxed));
        let mut database = builder
            .create_with_backend(file.clone())
            .map_err(|error| unreadable(path, error.into()))?;
        if !verified.load(Ordering::Relaxed) {
            let sound = database
                .check_integrity()
                .map_err(|error| unreadable(path, error.into()))?;
            // Not sound means that it could take back the last commit. After a clean end there is
            // no incomplete one, so that would lose data.
            if !sound {
                return Err(corrupt("its checksums do not match"));
            }
        }
        Ok(database)
    })
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// What a failed read means: trouble with the disk, or damage.
pub(super) fn unreadable(path: &Path, error: redb::Error) -> OpenError {
    let path = path.to_owned();
    match error {
        // A file that ends too early is no trouble with the disk.
        redb::Error::Io(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
            OpenError::Io {
                action: "read",
                path,
                source,
            }
        }
        error => OpenError::Corrupt {
            path,
            reason: error.to_string(),
        },
    }
}

/// Runs code that may stumble over damage: the database asserts some of its invariants.
pub(super) fn catch<T>(
    path: &Path,
    run: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    // Nothing that has been unwound through is used afterwards.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("it cannot be read");
        Err(OpenError::Corrupt {
            path: path.to_owned(),
            reason: reason.to_owned(),
        })
    })
}
