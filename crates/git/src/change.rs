//! What has to change for a folder to be as wanted.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::{Kind, Mode, Object, Objects, Oid, Tree};
use crate::{Error, Result};

/// The deepest folder that is read or written.
const MAX_DEPTH: usize = 32;

/// Files that a folder shall have, by their path in it. What else is in the folder is removed.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What has to be sent for a folder to be as wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The new root.
    pub tree: Oid,
    /// Trees and blobs that the old root may lack.
    pub objects: Vec<Object>,
    /// Files that are new or different.
    pub written: usize,
    /// Files that are removed.
    pub removed: usize,
}

/// The parts of a path in a repository; none for the root. Paths that lead out of the repository are refused.
pub fn parts(path: &str) -> Result<Vec<&str>> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_wrong =
        |part: &&str| *part == ".." || part.eq_ignore_ascii_case(".git") || part.contains('\0');
    if let Some(part) = parts.iter().copied().find(is_wrong) {
        return Err(Error::Address(format!(
            "the path {path:?} must not contain {part:?}"
        )));
    }
    if parts.len() > MAX_DEPTH {
        return Err(Error::Address(format!(
            "the path {path:?} has more than {MAX_DEPTH} parts"
        )));
    }
    Ok(parts)
}

/// Compares a folder with what it shall be. None if there is no difference. `root` is the tree of the present commit, whose
/// trees are known; none in an empty repository.
pub fn change(
    known: &Objects,
    root: Option<Oid>,
    folder: &str,
    files: &Files,
) -> Result<Option<Change>> {
    let folder = parts(folder)?;
    let mut builder = Builder {
        objects: BTreeMap::new(),
    };
    let wanted = builder.folder(files)?;
    let mut chain = Vec::new();
    let mut present = root;
    for part in &folder {
        let tree = present
            .map(|oid| tree(known, oid))
            .transpose()?
            .unwrap_or_default();
        present = directory(&tree, part);
        chain.push(tree);
    }
    let is_absent = present.is_none_or(|oid| oid == Oid::EMPTY_TREE);
    if present == wanted || (wanted.is_none() && is_absent) {
        return Ok(None);
    }
    let before = match present {
        Some(oid) => list(known, oid)?,
        None => BTreeMap::new(),
    };
    let mut current = wanted;
    for (part, mut tree) in folder.iter().zip(chain).rev() {
        match current {
            Some(oid) => tree
                .entries
                .insert(part.as_bytes().to_vec(), (Mode::Directory, oid)),
            None => tree.entries.remove(part.as_bytes()),
        };
        current = if tree.entries.is_empty() {
            None
        } else {
            Some(builder.add(Object::new(Kind::Tree, tree.write())))
        };
    }
    // A commit has a tree, even if no file is left.
    let tree = current.unwrap_or_else(|| builder.add(Object::new(Kind::Tree, Vec::new())));
    let after: BTreeMap<&str, Oid> = files
        .iter()
        .map(|(path, content)| (path.as_str(), Oid::of(Kind::Blob, content)))
        .collect();
    let is_written = |(path, oid): &(&&str, &Oid)| before.get(**path) != Some(oid);
    Ok(Some(Change {
        tree,
        written: after.iter().filter(is_written).count(),
        removed: before
            .keys()
            .filter(|path| !after.contains_key(path.as_str()))
            .count(),
        objects: builder.new_objects(known, &before),
    }))
}

struct Builder {
    objects: BTreeMap<Oid, Object>,
}

/// A directory that is being put together.
#[derive(Default)]
struct Node<'a> {
    files: BTreeMap<&'a str, &'a [u8]>,
    directories: BTreeMap<&'a str, Node<'a>>,
}

impl Builder {
    fn add(&mut self, object: Object) -> Oid {
        let oid = object.oid();
        self.objects.insert(oid, object);
        oid
    }

    /// The tree of the wanted files; none if there are none.
    fn folder(&mut self, files: &Files) -> Result<Option<Oid>> {
        let mut root = Node::default();
        for (path, content) in files {
            let all = parts(path)?;
            let Some((name, directories)) = all.split_last() else {
                return Err(Error::Address("the path of a file is empty".to_owned()));
            };
            let mut node = &mut root;
            for directory in directories {
                node = node.directories.entry(directory).or_default();
            }
            node.files.insert(name, content);
        }
        self.node(&root)
    }

    fn node(&mut self, node: &Node<'_>) -> Result<Option<Oid>> {
        let mut tree = Tree::default();
        for (name, content) in &node.files {
            let oid = self.add(Object::new(Kind::Blob, content.to_vec()));
            tree.entries
                .insert(name.as_bytes().to_vec(), (Mode::File, oid));
        }
        for (name, directory) in &node.directories {
            if node.files.contains_key(name) {
                return Err(Error::Address(format!(
                    "{name:?} would be a file and a folder"
                )));
            }
            if let Some(oid) = self.node(directory)? {
                tree.entries
                    .insert(name.as_bytes().to_vec(), (Mode::Directory, oid));
            }
        }
        if tree.entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.add(Object::new(Kind::Tree, tree.write()))))
    }

    /// The objects without those that the repository is known to have.
    fn new_objects(self, known: &Objects, before: &BTreeMap<String, Oid>) -> Vec<Object> {
        let present: BTreeSet<&Oid> = before.values().collect();
        let objects = self.objects.into_iter();
        objects
            .filter(|(oid, _)| !known.contains_key(oid) && !present.contains(oid))
            .map(|(_, object)| object)
            .collect()
    }
}

/// A tree among known objects.
pub fn tree(known: &Objects, oid: Oid) -> Result<Tree> {
    if oid == Oid::EMPTY_TREE {
        return Ok(Tree::default());
    }
    match known.get(&oid) {
        Some(object) if object.kind == Kind::Tree => Tree::read(oid, &object.content),
        Some(_) => Err(Error::Object(oid, "it is not a tree".to_owned())),
        None => Err(Error::Object(
            oid,
            "the repository did not send it".to_owned(),
        )),
    }
}

/// The directory of a name; a file of that name gives way to it.
fn directory(tree: &Tree, name: &str) -> Option<Oid> {
    match tree.entries.get(name.as_bytes()) {
        Some((Mode::Directory, oid)) => Some(*oid),
        _ => None,
    }
}

/// The tree of a folder; none if it does not exist.
pub fn find(known: &Objects, root: Oid, folder: &str) -> Result<Option<Oid>> {
    let mut present = root;
    for part in parts(folder)? {
        match directory(&tree(known, present)?, part) {
            Some(oid) => present = oid,
            None => return Ok(None),
        }
    }
    Ok(Some(present))
}

/// The files below a tree by path. Links and submodules are left out: they lead elsewhere.
pub fn list(known: &Objects, root: Oid) -> Result<BTreeMap<String, Oid>> {
    let mut files = BTreeMap::new();
    let mut open = vec![(String::new(), root, 0)];
    while let Some((prefix, oid, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::TooLarge(format!(
                "folders are nested more than {MAX_DEPTH} deep"
            )));
        }
        for (name, (mode, oid)) in tree(known, oid)?.entries {
            let path = format!("{prefix}{}", String::from_utf8_lossy(&name));
            match mode {
                Mode::Directory => open.push((format!("{path}/"), oid, depth + 1)),
                Mode::File | Mode::Executable => {
                    files.insert(path, oid);
                }
                // Counted by the code that replaces the folder, never followed.
                Mode::Link | Mode::Submodule | Mode::Other(_) => {}
            }
        }
        if files.len() + open.len() > MAX_FILES {
            return Err(Error::TooLarge(format!(
                "the folder has more than {MAX_FILES} files"
            )));
        }
    }
    Ok(files)
}

/// Files in a folder that is read or replaced.
const MAX_FILES: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        let entries = entries.iter();
        entries
            .map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec()))
            .collect()
    }

    /// A repository after a change.
    fn after(known: &Objects, change: &Change) -> Objects {
        let mut known = known.clone();
        for object in &change.objects {
            known.insert(object.oid(), object.clone());
        }
        known
    }

    #[test]
    fn a_folder_that_is_as_wanted_needs_nothing() {
        let wanted = files(&[("a.yaml", "a"), ("sub/b.yaml", "b")]);
        let first = change(&Objects::new(), None, "apps/web", &wanted)
            .unwrap()
            .unwrap();
        let known = after(&Objects::new(), &first);
        assert_eq!((first.written, first.removed), (2, 0));
        assert_eq!(
            change(&known, Some(first.tree), "apps/web", &wanted).unwrap(),
            None
        );
        assert_eq!(
            change(&known, Some(first.tree), "other", &Files::new()).unwrap(),
            None
        );
    }

    #[test]
    fn stale_files_go_and_neighbours_stay() {
        let none = Objects::new();
        let first = change(&none, None, "apps/web", &files(&[("a", "1"), ("b", "2")]))
            .unwrap()
            .unwrap();
        let known = after(&none, &first);
        let second = change(&known, Some(first.tree), "apps/db", &files(&[("c", "3")]))
            .unwrap()
            .unwrap();
        let known = after(&known, &second);
        let third = change(&known, Some(second.tree), "apps/web", &files(&[("a", "1")]))
            .unwrap()
            .unwrap();
        let known = after(&known, &third);
        assert_eq!((third.written, third.removed), (0, 1));
        let left: Vec<String> = list(&known, third.tree).unwrap().into_keys().collect();
        assert_eq!(left, ["apps/db/c", "apps/web/a"]);
        // Only the trees on the way are new.
        assert_eq!(third.objects.len(), 3);
        let fourth = change(&known, Some(third.tree), "apps/web", &Files::new())
            .unwrap()
            .unwrap();
        let known = after(&known, &fourth);
        let left: Vec<String> = list(&known, fourth.tree).unwrap().into_keys().collect();
        assert_eq!(left, ["apps/db/c"]);
    }

    #[test]
    fn the_last_file_leaves_an_empty_tree() {
        let first = change(&Objects::new(), None, "", &files(&[("a", "1")]))
            .unwrap()
            .unwrap();
        let known = after(&Objects::new(), &first);
        let second = change(&known, Some(first.tree), "", &Files::new())
            .unwrap()
            .unwrap();
        assert_eq!(second.tree, Oid::EMPTY_TREE);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in ["../x", "a/../b", ".git/hooks", "a/.GIT/config"] {
            assert!(parts(path).is_err(), "{path}");
            assert!(change(&Objects::new(), None, "x", &files(&[(path, "")])).is_err());
        }
        assert_eq!(parts("./a//b/").unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_name_cannot_be_a_file_and_a_folder() {
        let wanted = files(&[("a", "1"), ("a/b", "2")]);
        assert!(change(&Objects::new(), None, "", &wanted).is_err());
    }
}
