//! The directory of a store: what makes it one, and who may use it.
//!
//! It holds two files: `STORE`, which says what the directory is and carries the lock, and the
//! database. A new database is created under another name, and gets its own only after `STORE` has
//! been written; so after a crash in between it is known that nobody has stored anything, and a
//! missing or empty file at any other time is known to be damage.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// The version of everything that is in the directory. To be raised when older code must not
/// touch it.
const FORMAT: u32 = 1;

/// Says what the directory is, and carries the lock.
const MARKER: &str = "STORE";
const DATABASE: &str = "store.redb";
const NEW_DATABASE: &str = "store.redb.new";
/// Written and removed to find out whether there is space.
const PROBE: &str = "space.tmp";

/// What the marker begins with; the version follows.
const MAGIC: &str = "bellwether store, format ";

/// More than any marker holds.
const MARKER_LIMIT: u64 = 256;

/// A directory that this process has locked.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    /// Holds the lock; it ends with the file, also if the process is killed.
    marker: File,
    initialized: bool,
}

impl DataDirectory {
    /// Locks the directory, and creates it if need be. A directory that is not a store's, and that
    /// is not empty either, is left alone.
    pub(super) fn lock(path: &Path) -> Result<Self, OpenError> {
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_dir() => {
                let path = path.to_owned();
                return Err(OpenError::NotADirectory { path });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_directory(path).map_err(failed("create", path))?;
            }
            Err(error) => return Err(failed("open", path)(error)),
        }
        refuse_foreign(path)?;

        let marker_path = path.join(MARKER);
        let marker = private_file()
            .open(&marker_path)
            .map_err(failed("open", &marker_path))?;
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.to_owned();
                return Err(OpenError::Locked { path });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &marker_path)(error)),
        }
        let mut directory = Self {
            path: path.to_owned(),
            marker,
            initialized: false,
        };
        directory.initialized = directory.inspect()?;
        Ok(directory)
    }

    /// Whether there is a database.
    pub(super) fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// Where the database is.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Where a database is created.
    pub(super) fn new_database(&self) -> PathBuf {
        self.path.join(NEW_DATABASE)
    }

    /// Makes the new database the database.
    pub(super) fn initialize(&self) -> Result<(), OpenError> {
        let marker_path = self.path.join(MARKER);
        let write = || {
            self.marker.set_len(0)?;
            (&self.marker).rewind()?;
            (&self.marker).write_all(format!("{MAGIC}{FORMAT}\n").as_bytes())?;
            self.marker.sync_all()?;
            sync_directory(&self.path)
        };
        write().map_err(failed("write", &marker_path))?;
        let rename = || {
            fs::rename(self.new_database(), self.database())?;
            sync_directory(&self.path)
        };
        rename().map_err(failed("create", &self.database()))
    }

    /// Fails if the disk has no space for a little more than a commit usually takes.
    pub(super) fn try_space(&self) -> io::Result<()> {
        const SPACE: usize = 1 << 20;
        let path = self.path.join(PROBE);
        let write = || {
            let mut file = private_file().open(&path)?;
            file.write_all(&vec![0; SPACE])?;
            file.sync_all()
        };
        let written = write();
        // What cannot be removed is overwritten the next time.
        let _ = fs::remove_file(&path);
        written
    }

    /// Finds out which state the directory is in: complete, or to be initialized.
    fn inspect(&self) -> Result<bool, OpenError> {
        let marker_path = self.path.join(MARKER);
        let exists = |path: &Path| path.try_exists().map_err(failed("open", path));
        let has_database = exists(&self.database())?;
        let has_new_database = exists(&self.new_database())?;

        let mut content = Vec::new();
        let read = (&self.marker).take(MARKER_LIMIT).read_to_end(&mut content);
        read.map_err(failed("read", &marker_path))?;
        let corrupt = |reason: &str| OpenError::Corrupt {
            path: self.path.clone(),
            reason: reason.to_owned(),
        };
        let content = String::from_utf8_lossy(&content);
        let complete = format!("{MAGIC}{FORMAT}\n");
        if *content != complete {
            // Interrupted while it was written for the first time, or damaged.
            return match content.strip_prefix(MAGIC) {
                Some(version) if version.ends_with('\n') => Err(OpenError::Format {
                    path: self.path.clone(),
                    found: version.trim_end().to_owned(),
                    supported: FORMAT,
                }),
                _ if complete.starts_with(&*content) && !has_database => Ok(false),
                _ => Err(corrupt("the file STORE does not say what it should")),
            };
        }
        match (has_database, has_new_database) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => Err(corrupt("the database file is missing")),
        }
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is being started by another thread has a
        // copy of it for a moment. If this fails, closing has to do after all.
        let _ = self.marker.unlock();
    }
}

/// Refuses a directory that holds anything but no marker, before anything is created in it.
fn refuse_foreign(path: &Path) -> Result<(), OpenError> {
    let entries = fs::read_dir(path).map_err(failed("read", path))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed("read", path))?.file_name());
    }
    if names.iter().any(|name| name == MARKER) {
        return Ok(());
    }
    names.sort();
    match names.first() {
        None => Ok(()),
        Some(_) if names.iter().any(|name| name == DATABASE) => Err(OpenError::Corrupt {
            path: path.to_owned(),
            reason: "the file STORE is missing".to_owned(),
        }),
        Some(found) => Err(OpenError::Foreign {
            path: path.to_owned(),
            found: display(found),
        }),
    }
}

fn display(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> OpenError + use<'a> {
    move |source| OpenError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Creates a directory, with its parents, that is nobody else's business: what is stored may be
/// secret. It will be there after a power failure as well.
fn create_directory(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|path| !path.exists());
    let parents: Vec<_> = missing.filter_map(Path::parent).collect();
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)?;
    for parent in parents {
        sync_directory(parent)?;
    }
    Ok(())
}

/// How to open a file for reading and writing that, if it is new, only its owner can read.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes names in the directory durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a relative path of one component is the empty path.
    let here = path.as_os_str().is_empty();
    File::open(if here { Path::new(".") } else { path })?.sync_all()
}
