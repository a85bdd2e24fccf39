//! Fetch, decide, push, and again if somebody else was faster.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::change::{self, Change, Files};
use crate::commit::{self, Description};
use crate::object::{self, Commit, Kind, Object, Objects, Oid};
use crate::pack::Limits;
use crate::protocol::{Update, Want};
use crate::signature::SigningKey;
use crate::transport::{Connect, Credentials, Remote, compute};
use crate::{Address, Error, Result};

/// How often a push is made again because somebody else was faster.
const ATTEMPTS: u32 = 5;
/// How long an operation may take, with all its attempts.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Branches whose trees are remembered.
const MAX_REMEMBERED: usize = 64;
/// Bytes of trees that are remembered of one branch.
const MAX_REMEMBERED_BYTES: usize = 16 * 1024 * 1024;
/// Blobs that are asked for in one request.
const BATCH: usize = 1000;

/// A folder that shall have certain files, and no others.
#[derive(Debug, Clone)]
pub struct Push {
    /// Where the repository is.
    pub address: Address,
    /// How the client proves who it is.
    pub credentials: Credentials,
    /// The branch; one that does not exist begins empty.
    pub branch: String,
    /// The folder, from the root of the repository.
    pub folder: String,
    /// What it shall have.
    pub files: Files,
    /// What the commit says.
    pub description: Description,
    /// What the commit is signed with.
    pub key: Option<Arc<SigningKey>>,
}

/// What came of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Where the branch is now; none if there was nothing to push to a branch that does not exist.
    pub commit: Option<Oid>,
    /// True if a commit was pushed.
    pub is_changed: bool,
    /// Files that are new or different.
    pub written: usize,
    /// Files that were removed.
    pub removed: usize,
}

/// The files of a folder at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The commit.
    pub commit: Oid,
    /// Contents by path in the folder.
    pub files: BTreeMap<String, Bytes>,
}

/// Talks to repositories. It remembers the trees of branches that it pushed to, so that only what changed is
/// fetched, and pushes to a branch one after the other.
pub struct Client {
    connect: Arc<dyn Connect>,
    limits: Limits,
    timeout: Duration,
    branches: Mutex<HashMap<(Address, String), Remembered>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Remembered {
    branch: Arc<tokio::sync::Mutex<Branch>>,
    /// When it was used last: higher is later.
    used: u64,
}

/// What is known of a branch.
#[derive(Debug, Default)]
struct Branch {
    head: Option<Oid>,
    /// The commit and its trees.
    objects: Objects,
}

impl Client {
    /// A client that connects to where it may.
    pub fn new(connect: Arc<dyn Connect>) -> Self {
        Self {
            connect,
            limits: Limits::default(),
            timeout: TIMEOUT,
            branches: Mutex::default(),
        }
    }

    /// Reads no more than this of a repository.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes a folder of a branch what it shall be. Nothing is pushed if it is so already.
    pub async fn push(&self, push: &Push) -> Result<Outcome> {
        check_branch(&push.branch)?;
        let branch = self.branch(&push.address, &push.branch);
        let attempt = async {
            let mut branch = branch.lock().await;
            let result = self.push_to(push, &mut branch).await;
            if result.is_err() {
                // What is known may be the cause.
                *branch = Branch::default();
            }
            result
        };
        self.within(&push.address, attempt).await
    }

    async fn within<T>(
        &self,
        address: &Address,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::Unreachable {
                address: address.to_string(),
                problem: format!("no result within {:?}", self.timeout),
            }),
        }
    }

    async fn push_to(&self, push: &Push, branch: &mut Branch) -> Result<Outcome> {
        let reference = format!("refs/heads/{}", push.branch);
        let names = [reference.clone()];
        let mut remote =
            Remote::open(&push.address, &push.credentials, &self.connect, self.limits)?;
        let mut head = remote.find(&names).await?;
        for _ in 0..ATTEMPTS {
            let root = self.learn(&mut remote, branch, head).await?;
            let Some(change) = decide(branch, root, push).await? else {
                return Ok(Outcome {
                    commit: head,
                    is_changed: false,
                    written: 0,
                    removed: 0,
                });
            };
            let commit = commit::commit(change.tree, head, &push.description, push.key.as_deref());
            let new = commit.oid();
            let update = Update {
                reference: &reference,
                old: head.unwrap_or(Oid::ZERO),
                new,
            };
            let mut objects = change.objects.clone();
            objects.push(commit.clone());
            let pushed = remote.push(update, objects).await?;
            let now = match &pushed {
                Ok(()) => Some(new),
                Err(_) => remote.find(&names).await?,
            };
            match pushed {
                Err(reason) if now == head => {
                    let branch = push.branch.clone();
                    return Err(Error::Rejected { branch, reason });
                }
                Err(_) if now != Some(new) => head = now,
                // Pushed, by this attempt or by another process that made the same commit.
                _ => {
                    branch.remember(commit, &change);
                    return Ok(Outcome {
                        commit: Some(new),
                        is_changed: true,
                        written: change.written,
                        removed: change.removed,
                    });
                }
            }
        }
        Err(Error::Contended {
            branch: push.branch.clone(),
            attempts: ATTEMPTS,
        })
    }

    /// Fetches the trees of a commit that are not known yet. Returns the root.
    async fn learn(
        &self,
        remote: &mut Remote,
        branch: &mut Branch,
        head: Option<Oid>,
    ) -> Result<Option<Oid>> {
        let Some(oid) = head else {
            *branch = Branch::default();
            return Ok(None);
        };
        if branch.head != head {
            let known = Arc::new(std::mem::take(&mut branch.objects));
            let want = Want {
                objects: vec![oid],
                have: branch.head,
                without_blobs: remote.has_filter(),
                is_shallow: true,
            };
            let fetched = remote.fetch(&want, Arc::clone(&known), self.limits).await?;
            let mut objects = Arc::unwrap_or_clone(known);
            let trees = fetched
                .into_iter()
                .filter(|(_, object)| object.kind != Kind::Blob);
            objects.extend(trees);
            branch.objects = objects;
            branch.head = head;
        }
        root_of(&branch.objects, oid).map(Some)
    }

    /// Reads the files of a folder. The revision is a commit, a branch or a tag; without one, what the repository
    /// shows first. Symbolic links and submodules are left out.
    pub async fn read(
        &self,
        address: &Address,
        credentials: &Credentials,
        revision: Option<&str>,
        folder: &str,
    ) -> Result<Folder> {
        let read = async {
            let mut remote = Remote::open(address, credentials, &self.connect, self.limits)?;
            let commit = find_revision(&mut remote, address, revision).await?;
            self.read_at(&mut remote, commit, folder).await
        };
        self.within(address, read).await
    }

    /// The commit that a revision names at present.
    pub async fn resolve(
        &self,
        address: &Address,
        credentials: &Credentials,
        revision: Option<&str>,
    ) -> Result<Oid> {
        let find = async {
            let mut remote = Remote::open(address, credentials, &self.connect, self.limits)?;
            find_revision(&mut remote, address, revision).await
        };
        self.within(address, find).await
    }

    async fn read_at(&self, remote: &mut Remote, commit: Oid, folder: &str) -> Result<Folder> {
        let want = Want {
            objects: vec![commit],
            have: None,
            without_blobs: remote.has_filter(),
            is_shallow: true,
        };
        let mut objects = remote.fetch(&want, Arc::default(), self.limits).await?;
        let commit = peel(&objects, commit)?;
        let root = root_of(&objects, commit)?;
        let found = change::find(&objects, root, folder)?;
        let found = found
            .ok_or_else(|| Error::NotFound(format!("there is no folder {folder:?} at {commit}")))?;
        let listed = change::list(&objects, found)?;
        let missing: Vec<Oid> = listed
            .values()
            .filter(|oid| !objects.contains_key(oid))
            .copied()
            .collect();
        for batch in missing.chunks(BATCH) {
            let want = Want {
                objects: batch.to_vec(),
                ..Want::default()
            };
            let size: usize = objects.values().map(|object| object.content.len()).sum();
            let limits = Limits {
                unpacked: self.limits.unpacked.saturating_sub(size),
                ..self.limits
            };
            objects.extend(remote.fetch(&want, Arc::default(), limits).await?);
        }
        let mut files = BTreeMap::new();
        for (path, oid) in listed {
            let object = objects.get(&oid);
            let object = object
                .ok_or_else(|| Error::Object(oid, "the repository did not send it".to_owned()))?;
            files.insert(path, object.content.clone());
        }
        Ok(Folder { commit, files })
    }

    /// What is remembered of a branch. The ones that were not used for longest are forgotten.
    fn branch(&self, address: &Address, name: &str) -> Arc<tokio::sync::Mutex<Branch>> {
        let mut branches = self.branches.lock();
        let used = branches
            .values()
            .map(|known| known.used)
            .max()
            .unwrap_or_default()
            + 1;
        let key = (address.clone(), name.to_owned());
        if !branches.contains_key(&key) && branches.len() >= MAX_REMEMBERED {
            let oldest = branches.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                branches.remove(&oldest);
            }
        }
        let remembered = branches.entry(key).or_default();
        remembered.used = used;
        Arc::clone(&remembered.branch)
    }
}

impl Branch {
    /// Takes in what was pushed.
    fn remember(&mut self, commit: Object, change: &Change) {
        let trees = change
            .objects
            .iter()
            .filter(|object| object.kind == Kind::Tree);
        self.head = Some(commit.oid());
        for object in trees.cloned().chain([commit]) {
            self.objects.insert(object.oid(), object);
        }
        let size: usize = self
            .objects
            .values()
            .map(|object| object.content.len())
            .sum();
        if size > MAX_REMEMBERED_BYTES {
            // Older trees have piled up, or the repository is large: fetch again next time.
            *self = Self::default();
        }
    }
}

/// Compares the folder with what it shall be, on a thread of its own.
async fn decide(branch: &mut Branch, root: Option<Oid>, push: &Push) -> Result<Option<Change>> {
    let objects = std::mem::take(&mut branch.objects);
    let (folder, files) = (push.folder.clone(), push.files.clone());
    let compared = compute(move || {
        let change = change::change(&objects, root, &folder, &files)?;
        Ok((change, objects))
    });
    let (change, objects) = compared.await?;
    branch.objects = objects;
    Ok(change)
}

/// The commit that a tag names, or the commit itself.
fn peel(objects: &Objects, oid: Oid) -> Result<Oid> {
    match objects.get(&oid) {
        Some(object) if object.kind == Kind::Tag => object::tagged(oid, &object.content),
        _ => Ok(oid),
    }
}

/// The root of a commit.
fn root_of(objects: &Objects, commit: Oid) -> Result<Oid> {
    match objects.get(&commit) {
        Some(object) if object.kind == Kind::Commit => {
            Ok(Commit::read(commit, &object.content)?.tree)
        }
        Some(_) => Err(Error::Object(commit, "it is not a commit".to_owned())),
        None => Err(Error::Object(
            commit,
            "the repository did not send it".to_owned(),
        )),
    }
}

async fn find_revision(
    remote: &mut Remote,
    address: &Address,
    revision: Option<&str>,
) -> Result<Oid> {
    let names: Vec<String> = match revision.filter(|revision| !revision.is_empty()) {
        None => vec!["HEAD".to_owned()],
        Some(revision) => {
            if let Ok(oid) = revision.parse() {
                // The server has to be asked what it can do, whatever it answers.
                remote.find(&["HEAD".to_owned()]).await?;
                return Ok(oid);
            }
            check_branch(revision)?;
            vec![
                format!("refs/heads/{revision}"),
                format!("refs/tags/{revision}"),
                revision.to_owned(),
            ]
        }
    };
    let found = remote.find(&names).await?;
    found.ok_or_else(|| {
        let wanted = revision.unwrap_or("a default branch");
        Error::NotFound(format!("{address} has no branch or tag {wanted:?}"))
    })
}

/// Refuses names that git refuses.
fn check_branch(name: &str) -> Result<()> {
    let is_wrong = name.is_empty()
        || name.len() > 255
        || name.starts_with(['/', '-', '.'])
        || name.ends_with(['/', '.'])
        || name.strip_suffix(".lock").is_some()
        || name.contains("..")
        || name.contains("//")
        || name.contains("/.")
        || name.contains("@{")
        || name
            .chars()
            .any(|letter| letter.is_control() || " ~^:?*[\\".contains(letter));
    if is_wrong {
        return Err(Error::Address(format!(
            "{name:?} is not the name of a branch"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_refuses_are_refused() {
        for name in ["main", "release/1.2", "a-b_c"] {
            assert!(check_branch(name).is_ok(), "{name}");
        }
        for name in [
            "", "-x", "a..b", "a b", "/a", "a/", "x.lock", "a/.b", "a~1", "a\n",
        ] {
            assert!(check_branch(name).is_err(), "{name:?}");
        }
    }
}
