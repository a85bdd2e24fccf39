//! The files of a repository: loose objects, packs with their indexes, references.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::object::{Kind, Object, Oid};
use crate::pack;
use crate::{Error, Result};

/// References that refer to references.
const MAX_SYMBOLIC: usize = 5;
/// The largest file of packed references that is read.
const MAX_PACKED_REFERENCES: u64 = 64 * 1024 * 1024;
/// The header of an index of version 2.
const INDEX_MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FAN_OUT: usize = 8 + 256 * 4;

/// A repository on disk. Everything here blocks.
#[derive(Debug)]
pub(crate) struct Repository {
    directory: PathBuf,
    /// Packs and their indexes.
    packs: Vec<Pack>,
}

#[derive(Debug)]
struct Pack {
    path: PathBuf,
    index: Vec<u8>,
}

impl Repository {
    /// Opens a bare repository, or the one of a working tree.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let inner = path.join(".git");
        let directory = if inner.is_dir() {
            inner
        } else {
            path.to_owned()
        };
        if !directory.join("HEAD").is_file() || !directory.join("objects").is_dir() {
            return Err(Error::NotFound(format!(
                "there is no repository at {}",
                path.display()
            )));
        }
        let config = fs::read_to_string(directory.join("config"))
            .unwrap_or_default()
            .to_lowercase();
        if config.contains("objectformat") || config.contains("refstorage") {
            return Err(Error::NotFound(format!(
                "the repository at {} has a format that is not supported: only sha1 and plain references are",
                path.display()
            )));
        }
        Ok(Self {
            packs: packs(&directory),
            directory,
        })
    }

    fn problem(&self, error: &std::io::Error) -> Error {
        Error::Unreachable {
            address: self.directory.display().to_string(),
            problem: error.to_string(),
        }
    }

    /// The commit that a reference names, if there is one.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<Oid>> {
        let mut name = name.to_owned();
        for _ in 0..MAX_SYMBOLIC {
            if name.split('/').any(|part| part == ".." || part.is_empty()) {
                return Ok(None);
            }
            let Ok(text) = fs::read_to_string(self.directory.join(&name)) else {
                // A reference may be a directory of references, too.
                return self.packed_reference(&name);
            };
            match text.trim().strip_prefix("ref: ") {
                Some(next) => next.trim().clone_into(&mut name),
                None => return text.trim().parse().map(Some),
            }
        }
        Ok(None)
    }

    fn packed_reference(&self, name: &str) -> Result<Option<Oid>> {
        let Ok(file) = File::open(self.directory.join("packed-refs")) else {
            return Ok(None);
        };
        let mut text = String::new();
        let read = file.take(MAX_PACKED_REFERENCES).read_to_string(&mut text);
        read.map_err(|error| self.problem(&error))?;
        let line = text.lines().find_map(|line| match line.split_once(' ') {
            Some((oid, known)) if known == name => Some(oid),
            _ => None,
        });
        line.map(str::parse).transpose()
    }

    /// Moves a reference, if it is where it was. Otherwise says why not.
    ///
    /// The name of the lock is that of git: the two exclude each other. Unlike git's, it is never empty: a lock that names
    /// the same commit is one that a process left behind when it was killed, and is taken over.
    pub(crate) fn move_reference(
        &self,
        name: &str,
        old: Oid,
        new: Oid,
    ) -> Result<std::result::Result<(), String>> {
        let path = self.directory.join(name);
        let lock_path = with_suffix(&path, ".lock");
        let line = format!("{new}\n");
        let locked = take_lock(&path, &lock_path, &line);
        if !locked.map_err(|error| self.problem(&error))? {
            return Ok(Err(format!(
                "{} exists: another process is moving the branch",
                lock_path.display()
            )));
        }
        let moved = self.reference(name).and_then(|present| {
            if present.unwrap_or(Oid::ZERO) != old {
                return Ok(Err("the branch has moved".to_owned()));
            }
            let renamed = fs::rename(&lock_path, &path);
            renamed.map(Ok).map_err(|error| self.problem(&error))
        });
        if !matches!(moved, Ok(Ok(()))) {
            let _ = fs::remove_file(&lock_path);
        }
        moved
    }

    fn loose_path(&self, oid: Oid) -> PathBuf {
        let name = oid.to_string();
        self.directory
            .join("objects")
            .join(&name[..2])
            .join(&name[2..])
    }

    /// Writes an object, unless it is there.
    pub(crate) fn write(&self, object: &Object) -> Result<()> {
        let oid = object.oid();
        let path = self.loose_path(oid);
        if path.exists() {
            return Ok(());
        }
        let write = || -> std::io::Result<()> {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let part = path.with_extension(format!("tmp-{}", std::process::id()));
            let mut encoder = ZlibEncoder::new(File::create(&part)?, Compression::default());
            write!(
                encoder,
                "{} {}\0",
                object.kind.as_str(),
                object.content.len()
            )?;
            encoder.write_all(&object.content)?;
            encoder.finish()?.sync_all()?;
            fs::rename(part, &path)
        };
        write().map_err(|error| self.problem(&error))
    }

    /// Reads an object. None if it is larger than the limit.
    pub(crate) fn read(&self, oid: Oid, limit: usize) -> Result<Option<Object>> {
        let read = match File::open(self.loose_path(oid)) {
            Ok(file) => loose(oid, file, limit),
            Err(_) => self.packed(oid, limit, 0),
        };
        match read {
            Ok(object) => Ok(Some(object)),
            Err(Error::TooLarge(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn packed(&self, oid: Oid, limit: usize, depth: u32) -> Result<Object> {
        let found = self
            .packs
            .iter()
            .find_map(|pack| Some((pack, pack.offset(oid)?)));
        let Some((pack, offset)) = found else {
            return Err(Error::Object(
                oid,
                "the repository does not have it".to_owned(),
            ));
        };
        let file = File::open(&pack.path).map_err(|error| self.problem(&error))?;
        let object = self.entry(&file, offset, limit, depth)?;
        if object.oid() == oid {
            Ok(object)
        } else {
            Err(Error::Object(oid, "it is damaged".to_owned()))
        }
    }

    /// Reads the object at a place in a pack, with what it is made from.
    fn entry(&self, file: &File, offset: u64, limit: usize, depth: u32) -> Result<Object> {
        if depth > pack::MAX_CHAIN {
            return Err(Error::protocol("a chain of deltas is too long"));
        }
        let mut reader = BufReader::new(file);
        let sought = reader.seek(SeekFrom::Start(offset));
        sought.map_err(|error| self.problem(&error))?;
        let (kind, size) = pack::entry_kind(&mut reader)?;
        if size > limit {
            return Err(Error::TooLarge("an object is too large".to_owned()));
        }
        let base = match kind {
            pack::EntryKind::Object(kind) => {
                let content = inflate(&mut reader, size)?;
                return Ok(Object::new(kind, content));
            }
            pack::EntryKind::Distance(distance) => {
                let delta = inflate(&mut reader, size)?;
                let start = offset.checked_sub(distance);
                let start = start.ok_or_else(|| Error::protocol("a delta refers to nothing"))?;
                (self.entry(file, start, limit, depth + 1)?, delta)
            }
            pack::EntryKind::Name(oid) => {
                let delta = inflate(&mut reader, size)?;
                (self.packed(oid, limit, depth + 1)?, delta)
            }
        };
        let (base, delta) = base;
        if pack::delta_result_size(&delta)? > limit {
            return Err(Error::TooLarge("an object is too large".to_owned()));
        }
        Ok(Object::new(
            base.kind,
            pack::apply_delta(&base.content, &delta)?,
        ))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates a lock with its content at once, or takes over one that has the same content. False if it belongs to somebody else.
fn take_lock(path: &Path, lock: &Path, content: &str) -> std::io::Result<bool> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let part = with_suffix(path, &format!(".tmp-{}.lock", std::process::id()));
    let mut file = File::create(&part)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&part, lock);
    fs::remove_file(&part)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(fs::read_to_string(lock).is_ok_and(|found| found == content))
        }
        Err(error) => Err(error),
    }
}

fn packs(directory: &Path) -> Vec<Pack> {
    let Ok(entries) = fs::read_dir(directory.join("objects/pack")) else {
        return Vec::new();
    };
    let indexes = entries.flatten().map(|entry| entry.path());
    let indexes =
        indexes.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
    indexes
        .filter_map(|path| {
            let index = fs::read(&path)
                .ok()
                .filter(|index| index.starts_with(&INDEX_MAGIC))?;
            let path = path.with_extension("pack");
            Some(Pack { path, index })
        })
        .collect()
}

impl Pack {
    fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.index.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    /// Where an object begins in the pack.
    fn offset(&self, oid: Oid) -> Option<u64> {
        let first = usize::from(oid.as_bytes()[0]);
        let until = |byte: usize| self.number(8 + byte * 4).map(|count| count as usize);
        let total = until(255)?;
        let mut low = if first == 0 { 0 } else { until(first - 1)? };
        let mut high = until(first)?.min(total);
        while low < high {
            let middle = usize::midpoint(low, high);
            let start = FAN_OUT + middle * 20;
            match self.index.get(start..start + 20)?.cmp(oid.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let offsets = FAN_OUT + total * 24;
                    let offset = self.number(offsets + middle * 4)?;
                    let Some(large) = offset.checked_sub(1 << 31) else {
                        return Some(offset.into());
                    };
                    let at = offsets + total * 4 + large as usize * 8;
                    let bytes = self.index.get(at..at + 8)?.try_into().ok()?;
                    return Some(u64::from_be_bytes(bytes));
                }
            }
        }
        None
    }
}

/// Unpacks exactly this many bytes.
fn inflate(reader: &mut impl std::io::BufRead, size: usize) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = ZlibDecoder::new(reader)
        .take(size as u64 + 1)
        .read_to_end(&mut content);
    match read {
        Ok(_) if content.len() == size => Ok(content),
        _ => Err(Error::protocol("an object of the repository is damaged")),
    }
}

fn loose(oid: Oid, file: File, limit: usize) -> Result<Object> {
    let damaged = || Error::Object(oid, "it is damaged".to_owned());
    let mut content = Vec::new();
    let most = limit as u64 + 64;
    let read = ZlibDecoder::new(BufReader::new(file))
        .take(most)
        .read_to_end(&mut content);
    read.map_err(|_| damaged())?;
    let end = content
        .iter()
        .take(32)
        .position(|byte| *byte == 0)
        .ok_or_else(damaged)?;
    let header = std::str::from_utf8(&content[..end]).map_err(|_| damaged())?;
    let (kind, size) = header.split_once(' ').ok_or_else(damaged)?;
    let kind = match kind {
        "commit" => Kind::Commit,
        "tree" => Kind::Tree,
        "blob" => Kind::Blob,
        "tag" => Kind::Tag,
        _ => return Err(damaged()),
    };
    let size: usize = size.parse().map_err(|_| damaged())?;
    if size > limit {
        return Err(Error::TooLarge("an object is too large".to_owned()));
    }
    let object = Object::new(kind, content.split_off(end + 1));
    if object.oid() == oid {
        Ok(object)
    } else {
        Err(damaged())
    }
}
