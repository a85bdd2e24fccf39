//! Creating, opening and verifying the database file.

use std::fmt;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Builder, Database, StorageBackend, TableDefinition, WriteTransaction};

use super::directory::private_file;
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

/// Creates a database with what is put into its tables, in place of whatever is there.
pub(super) fn create(
    path: &Path,
    fill: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
) -> Result<(), OpenError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            return Err(OpenError::Io {
                action: "replace",
                path: path.to_owned(),
                source,
            });
        }
        _ => {}
    }
    let create = || -> Result<(), redb::Error> {
        let database = builder().create_file(private_file().open(path)?)?;
        let transaction = database.begin_write()?;
        transaction.open_table(LOG)?;
        transaction.open_table(KEYSPACES)?;
        fill(&transaction)?;
        Ok(transaction.commit()?)
    };
    create().map_err(unreadable(path))
}

/// Opens the database, and verifies all of it. Changes nothing on disk.
pub(super) fn open(path: &Path, file: &GuardedFile) -> Result<Database, OpenError> {
    let corrupt = |reason: &str| OpenError::Corrupt {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    // To the database, an empty file is a new one.
    if file.is_empty() {
        return Err(corrupt("the file is empty"));
    }
    demand_verification(file).map_err(|source| OpenError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let mut builder = builder();
    builder.set_repair_callback(|session| {
        if session.progress() > 0.0 && session.progress() < VERIFIED {
            tracing::warn!("the latest commit is incomplete, going back to the one before");
        }
    });
    catch(path, || {
        let opened = builder.create_with_backend(file.clone());
        opened.map_err(unreadable(path))
    })
}

/// The progress that the database reports when the commit it opens has been verified. Before, it
/// reports that it begins, and then only that it has to go back to the commit before.
const VERIFIED: f64 = 0.6;

/// Makes the database verify all checksums when it is opened.
///
/// A file left by a crash it verifies, and goes back by one commit if the latest is incomplete:
/// nobody has been told of that one. A file that was closed it trusts, and asserts what it then
/// finds. It tells them apart by a flag in its header (redb: docs/design.md, "god byte"), which says
/// that the latest commit was written in two phases. Only the commits at closing and after a repair
/// are, and those change no data, so that nothing is lost if the flag is not believed.
fn demand_verification(file: &GuardedFile) -> io::Result<()> {
    const FLAGS_OFFSET: u64 = 9;
    const TWO_PHASE_COMMIT: u8 = 4;
    let mut flags = [0];
    match file.read(FLAGS_OFFSET, &mut flags) {
        Ok(()) => file.write(FLAGS_OFFSET, &[flags[0] & !TWO_PHASE_COMMIT]),
        // The database says better what is wrong with such a file.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// For use with `map_err`: what a failed read means, trouble with the disk or damage.
pub(super) fn unreadable<E: Into<redb::Error>>(
    path: &Path,
) -> impl Fn(E) -> OpenError + use<'_, E> {
    move |error| {
        let path = path.to_owned();
        let reason = match error.into() {
            // The database's own words for a file that is none, and for one that ends too early.
            redb::Error::Io(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::UnexpectedEof
                ) =>
            {
                error.to_string()
            }
            redb::Error::Io(source) => {
                return OpenError::Io {
                    action: "read",
                    path,
                    source,
                };
            }
            error => error.to_string(),
        };
        OpenError::Corrupt { path, reason }
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
