//! What was fetched, on disk. Only what cannot change is kept: files of a commit, archives by their digest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Bytes of all entries together.
const MAX_BYTES: u64 = 512 * 1024 * 1024;
const CHECKSUM: usize = 32;

/// A directory of entries by name. Without a directory nothing is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cache {
    directory: Option<Arc<PathBuf>>,
    max_bytes: u64,
}

impl Cache {
    /// A cache in a directory, which is created when something is kept.
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self {
            directory: directory.map(|path| Arc::new(path.to_owned())),
            max_bytes: MAX_BYTES,
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(format!("{:x}", Sha256::digest(key))))
    }

    /// An entry, if it is there and as it was written. Blocks.
    pub(crate) fn get(&self, key: &str) -> Option<Bytes> {
        let path = self.path(key)?;
        let content = Bytes::from(fs::read(&path).ok()?);
        let body = content.slice(CHECKSUM.min(content.len())..);
        if content.len() < CHECKSUM || content[..CHECKSUM] != checksum(key, &body)[..] {
            // Half written, or damaged.
            let _ = fs::remove_file(&path);
            return None;
        }
        // What is used is kept longest. A file system that does not allow it forgets earlier.
        if let Ok(file) = fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(now());
        }
        Some(body)
    }

    /// Keeps an entry. A disk that is full is as good as no cache. Blocks.
    pub(crate) fn put(&self, key: &str, content: &[u8]) {
        let (Some(path), Some(directory)) = (self.path(key), &self.directory) else {
            return;
        };
        if content.len() as u64 > self.max_bytes / 4
            || fs::create_dir_all(directory.as_path()).is_err()
        {
            return;
        }
        let written = [&checksum(key, content)[..], content].concat();
        let part = path.with_extension(format!("part-{}", std::process::id()));
        let done = fs::write(&part, written).and_then(|()| fs::rename(&part, &path));
        if let Err(error) = done {
            tracing::warn!(%error, "a source could not be cached");
            let _ = fs::remove_file(&part);
        }
        self.evict(directory);
    }

    /// Removes what was not used for longest, until the rest is small enough.
    fn evict(&self, directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files {
            if total <= self.max_bytes {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "times of files are those of the machine; nothing is decided by them but what is forgotten first"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn checksum(key: &str, content: &[u8]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_be_bytes());
    hash.update(key);
    hash.update(content);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_fetched_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        cache.put("key", b"content");
        assert_eq!(cache.get("key").as_deref(), Some(&b"content"[..]));
        assert_eq!(cache.get("another"), None);
        fs::write(cache.path("key").unwrap(), b"half").unwrap();
        assert_eq!(cache.get("key"), None);
        assert!(!cache.path("key").unwrap().exists());
    }

    #[test]
    fn the_oldest_goes_when_the_disk_would_fill() {
        let directory = tempfile::tempdir().unwrap();
        let mut cache = Cache::new(Some(directory.path()));
        cache.max_bytes = 1000;
        for (number, key) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            cache.put(key, &[7; 200]);
            let file = fs::File::options()
                .append(true)
                .open(cache.path(key).unwrap())
                .unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            file.set_modified(time).unwrap();
        }
        assert_eq!(cache.get("a"), None);
        assert!(cache.get("e").is_some());
        // Larger than its share.
        cache.put("large", &[7; 500]);
        assert_eq!(cache.get("large"), None);
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        let cache = Cache::new(None);
        cache.put("key", b"content");
        assert_eq!(cache.get("key"), None);
    }
}
