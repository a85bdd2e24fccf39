//! The data directory: the store, the certificate authority, the key for tokens, the kubeconfig. Only
//! its owner reads it, and only one process uses it at a time.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bellwether_apiserver::{Authority, Clock, Credentials, StoredObject, TokenKey};
use bellwether_store::{Options, Store};

/// Where a server keeps what has to survive it.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// Holds the lock; it ends with the process, also if that is killed.
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it. With `--in-memory` it is locked as well,
    /// because two servers would overwrite each other's kubeconfig.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the data directory {}", path.display()))?;
        restrict(path, 0o700)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock(path)?,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the kubeconfig is written.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// Opens the store: on disk, or in memory only.
    pub(crate) fn open_store(
        &self,
        in_memory: bool,
        clock: &Clock,
    ) -> anyhow::Result<Store<StoredObject>> {
        let now = clock.clone();
        let options = Options::new(std::sync::Arc::new(move || now.now()));
        if in_memory {
            return Ok(Store::in_memory(options));
        }
        let path = self.path.join("store");
        Store::open(&path, options)
            .with_context(|| format!("cannot open the store in {}", path.display()))
    }

    /// Returns true if the certificate authority was lost: certificates of the last time are void.
    pub(crate) fn has_lost_authority(&self, in_memory: bool, is_new: bool) -> bool {
        !in_memory && !is_new && !self.path.join("ca.crt").exists()
    }

    /// The certificate authority: that of the last time, or a new one if there was none.
    ///
    /// `is_new` says that the store is empty: nobody can have a certificate yet, and files of a
    /// first start that was interrupted are replaced.
    pub(crate) fn authority(
        &self,
        in_memory: bool,
        is_new: bool,
        clock: &Clock,
    ) -> anyhow::Result<Authority> {
        let (certificate, key) = (self.path.join("ca.crt"), self.path.join("ca.key"));
        let found = (certificate.exists(), key.exists());
        if in_memory || found == (false, false) || (is_new && found != (true, true)) {
            let authority = Authority::generate(clock.now())?;
            if !in_memory {
                let credentials = authority.credentials();
                write_private(&certificate, &credentials.certificate)?;
                write_private(&key, &credentials.key)?;
                if !is_new {
                    tracing::warn!(
                        directory = %self.path.display(),
                        "ca.crt and ca.key were missing: a new certificate authority was made, agents of other processes have to join again"
                    );
                }
            }
            return Ok(authority);
        }
        let missing = match found {
            (true, true) => None,
            (true, false) => Some((&key, &certificate)),
            (false, _) => Some((&certificate, &key)),
        };
        if let Some((missing, other)) = missing {
            anyhow::bail!(
                "{} is missing, and {} is there: restore it from a backup; or remove {} to begin with a new certificate authority, after which every certificate is invalid and agents of other processes have to join again",
                missing.display(),
                other.display(),
                other.display(),
            );
        }
        let credentials = Credentials {
            certificate: read(&certificate)?,
            key: read(&key)?,
        };
        Authority::load(credentials).with_context(|| {
            format!(
                "{} and {} are not a certificate authority: restore both from one backup",
                certificate.display(),
                key.display()
            )
        })
    }

    /// The key that signs tokens: that of the last time, or a new one.
    pub(crate) fn token_key(&self, in_memory: bool) -> anyhow::Result<TokenKey> {
        let path = self.path.join("tokens.key");
        if !in_memory && path.exists() {
            return TokenKey::load(&read(&path)?)
                .with_context(|| format!("{} does not hold our key", path.display()));
        }
        let key = TokenKey::generate()?;
        if !in_memory {
            write_private(&path, key.pem())?;
        }
        Ok(key)
    }
}

/// Locks a directory for this process.
fn lock(path: &Path) -> anyhow::Result<File> {
    let name = path.join("lock");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let attempt = || format!("cannot lock {}", name.display());
    let file = options.open(&name).with_context(attempt)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another bellwether runs on the data directory {}: stop it first, or choose another directory with --data-dir",
            path.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(attempt),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file that only its owner reads, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &str) -> anyhow::Result<()> {
    let attempt = || format!("cannot write {}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary).with_context(attempt)?;
    file.write_all(content.as_bytes()).with_context(attempt)?;
    file.sync_all().with_context(attempt)?;
    fs::rename(&temporary, path).with_context(attempt)
}

#[cfg(unix)]
pub(crate) fn restrict(path: &Path, mode: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set mode {mode:04o} on {}", path.display()))
}

#[cfg(not(unix))]
pub(crate) fn restrict(_: &Path, _: u32) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(data: &DataDir, is_new: bool) -> anyhow::Result<String> {
        let authority = data.authority(false, is_new, &Clock::system())?;
        Ok(authority.credentials().certificate.clone())
    }

    #[test]
    fn an_authority_is_never_replaced_silently() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::create(directory.path()).unwrap();
        let (certificate, key) = (
            directory.path().join("ca.crt"),
            directory.path().join("ca.key"),
        );
        let first = authority(&data, true).unwrap();
        assert_eq!(authority(&data, false).unwrap(), first);
        for lost in [&key, &certificate] {
            let kept = fs::read(lost).unwrap();
            fs::remove_file(lost).unwrap();
            let error = authority(&data, false).unwrap_err().to_string();
            let missing = format!("{} is missing", lost.display());
            assert!(
                error.contains(&missing) && error.contains("restore"),
                "{error}"
            );
            assert!(!lost.exists(), "nothing may be written");
            fs::write(lost, kept).unwrap();
        }
        assert_eq!(authority(&data, false).unwrap(), first);
        // A first start that was interrupted is completed.
        fs::remove_file(&key).unwrap();
        assert_ne!(authority(&data, true).unwrap(), first);
    }

    #[test]
    fn a_directory_is_used_by_one_process() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDir::create(directory.path()).unwrap();
        let error = DataDir::create(directory.path()).unwrap_err().to_string();
        assert!(error.contains("another bellwether runs"), "{error}");
        drop(first);
        DataDir::create(directory.path()).unwrap();
    }
}
