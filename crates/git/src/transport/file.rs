//! Repositories on this machine: what a server would do, done on its files.

use std::path::{Path, PathBuf};

use super::{Connect, compute};
use crate::object::{Commit, Kind, Mode, Object, Objects, Oid, Tree, tagged};
use crate::pack::Limits;
use crate::protocol::{Update, Want};
use crate::repository::Repository;
use crate::{Error, Result};

/// A repository on this machine.
#[derive(Debug)]
pub(crate) struct FileRemote {
    path: PathBuf,
}

impl FileRemote {
    /// Uses the repository at a path, if that is allowed.
    pub(crate) fn open(path: &Path, connect: &dyn Connect) -> Result<Self> {
        if !connect.allows_path(path) {
            return Err(Error::Address(format!(
                "the hub does not allow repositories at {} (see --git-directory)",
                path.display()
            )));
        }
        let path = path.to_owned();
        Ok(Self { path })
    }

    pub(crate) async fn references(&self, names: &[String]) -> Result<Vec<(String, Oid)>> {
        let (path, names) = (self.path.clone(), names.to_vec());
        compute(move || {
            let repository = Repository::open(&path)?;
            let mut found = Vec::new();
            for name in names {
                let oid = repository.reference(&name)?;
                found.extend(oid.map(|oid| (name, oid)));
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn fetch(&self, want: &Want, limits: Limits) -> Result<Objects> {
        let (path, want) = (self.path.clone(), want.clone());
        compute(move || {
            let mut reader = Reader {
                repository: Repository::open(&path)?,
                left: limits.unpacked,
                objects: Objects::new(),
                limits,
            };
            reader.read(&want)?;
            Ok(reader.objects)
        })
        .await
    }

    pub(crate) async fn push(
        &self,
        update: Update<'_>,
        objects: Vec<Object>,
    ) -> Result<std::result::Result<(), String>> {
        let path = self.path.clone();
        let (reference, old, new) = (update.reference.to_owned(), update.old, update.new);
        compute(move || {
            let repository = Repository::open(&path)?;
            for object in &objects {
                repository.write(object)?;
            }
            repository.move_reference(&reference, old, new)
        })
        .await
    }
}

/// Reads what a server would send.
struct Reader {
    repository: Repository,
    left: usize,
    objects: Objects,
    limits: Limits,
}

impl Reader {
    fn read(&mut self, want: &Want) -> Result<()> {
        let mut open: Vec<Oid> = want.objects.clone();
        while let Some(oid) = open.pop() {
            if self.objects.contains_key(&oid) || oid == Oid::EMPTY_TREE {
                continue;
            }
            let object = self.object(oid)?;
            match object.kind {
                Kind::Commit => open.push(Commit::read(oid, &object.content)?.tree),
                Kind::Tag => open.push(tagged(oid, &object.content)?),
                Kind::Tree => {
                    let entries = Tree::read(oid, &object.content)?.entries.into_values();
                    open.extend(entries.filter_map(|(mode, oid)| match mode {
                        Mode::Directory => Some(oid),
                        Mode::File | Mode::Executable if !want.without_blobs => Some(oid),
                        _ => None,
                    }));
                }
                Kind::Blob => {}
            }
            self.objects.insert(oid, object);
        }
        Ok(())
    }

    fn object(&mut self, oid: Oid) -> Result<Object> {
        let object = if self.objects.len() < self.limits.objects {
            self.repository.read(oid, self.left)?
        } else {
            None
        };
        let object = object.ok_or_else(|| {
            Error::TooLarge("the repository is larger than what is read of one".to_owned())
        })?;
        self.left -= object.content.len();
        Ok(object)
    }
}
