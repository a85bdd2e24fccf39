//! The data directory: the store, the certificate authority, the key for tokens, the kubeconfig. Only
//! its owner reads it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bellwether_apiserver::{Authority, Clock, Credentials, StoredObject, TokenKey};
use bellwether_store::{Options, Store};

/// Where a server keeps what has to survive it.
#[derive(Debug)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Creates the directory if it is missing.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the data directory {}", path.display()))?;
        restrict(path, 0o700)?;
        Ok(Self(path.to_owned()))
    }

    /// Where the kubeconfig is written.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
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
        let path = self.0.join("store");
        Store::open(&path, options)
            .with_context(|| format!("cannot open the store in {}", path.display()))
    }

    /// The certificate authority: that of the last time, or a new one.
    pub(crate) fn authority(&self, in_memory: bool, clock: &Clock) -> anyhow::Result<Authority> {
        let (certificate, key) = (self.0.join("ca.crt"), self.0.join("ca.key"));
        if !in_memory && key.exists() {
            let credentials = Credentials {
                certificate: read(&certificate)?,
                key: read(&key)?,
            };
            return Authority::load(credentials)
                .with_context(|| format!("{} does not hold our authority", key.display()));
        }
        let authority = Authority::generate(clock.now())?;
        if !in_memory {
            let credentials = authority.credentials();
            write_private(&certificate, &credentials.certificate)?;
            write_private(&key, &credentials.key)?;
        }
        Ok(authority)
    }

    /// The key that signs tokens: that of the last time, or a new one.
    pub(crate) fn token_key(&self, in_memory: bool) -> anyhow::Result<TokenKey> {
        let path = self.0.join("tokens.key");
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
fn restrict(path: &Path, mode: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot restrict access to {}", path.display()))
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) -> anyhow::Result<()> {
    Ok(())
}
