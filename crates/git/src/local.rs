//! Repositories on this machine that belong to the user of the program: created, and listed.

use std::fs;
use std::path::Path;

use crate::object::{Commit, Kind, Oid};
use crate::repository::Repository;
use crate::{Error, Result};

/// The largest commit that is read.
const MAX_COMMIT: usize = 1024 * 1024;

/// A commit of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its name.
    pub oid: Oid,
    /// Who made it, without the address of mail.
    pub author: String,
    /// What it says, without the line feed at its end.
    pub message: String,
}

/// Creates an empty bare repository whose first branch is `main`. One that exists is left as it is.
pub fn create(path: &Path) -> Result<()> {
    let write = || -> std::io::Result<()> {
        for folder in ["objects/pack", "objects/info", "refs/heads", "refs/tags"] {
            fs::create_dir_all(path.join(folder))?;
        }
        let head = path.join("HEAD");
        if !head.exists() {
            fs::write(
                path.join("config"),
                "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            )?;
            fs::write(head, "ref: refs/heads/main\n")?;
        }
        Ok(())
    };
    write().map_err(|error| Error::Unreachable {
        address: path.display().to_string(),
        problem: error.to_string(),
    })
}

/// The commits of a branch along first parents, the newest first. A branch that does not exist has none.
pub fn log(path: &Path, branch: &str, limit: usize) -> Result<Vec<LogEntry>> {
    let repository = Repository::open(path)?;
    let mut next = repository.reference(&format!("refs/heads/{branch}"))?;
    let mut entries = Vec::new();
    while let Some(oid) = next.filter(|_| entries.len() < limit) {
        let object = repository.read(oid, MAX_COMMIT)?;
        let object = object.filter(|object| object.kind == Kind::Commit);
        let object = object
            .ok_or_else(|| Error::Object(oid, "it is not a commit, or too large".to_owned()))?;
        let text = String::from_utf8_lossy(&object.content);
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let author = head.lines().find_map(|line| line.strip_prefix("author "));
        let author = author.and_then(|line| line.split_once(" <"));
        entries.push(LogEntry {
            oid,
            author: author.map_or_else(String::new, |(name, _)| name.to_owned()),
            message: message.trim_end().to_owned(),
        });
        let commit = Commit::read(oid, &object.content)?;
        next = commit.parents.first().copied();
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Description, commit};

    #[test]
    fn commits_are_listed_from_the_newest_to_the_oldest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("apps.git");
        create(&path).unwrap();
        create(&path).unwrap();
        assert_eq!(log(&path, "main", 10).unwrap(), []);
        let repository = Repository::open(&path).unwrap();
        let mut parent = None;
        for number in 1..=3 {
            let description = Description {
                author: ("A U Thor".to_owned(), "a@example.org".to_owned()),
                message: format!("number {number}"),
                time: jiff::Timestamp::UNIX_EPOCH,
            };
            let made = commit(Oid::EMPTY_TREE, parent, &description, None);
            repository.write(&made).unwrap();
            let old = parent.unwrap_or(Oid::ZERO);
            let moved = repository.move_reference("refs/heads/main", old, made.oid());
            moved.unwrap().unwrap();
            parent = Some(made.oid());
        }
        let listed = log(&path, "main", 2).unwrap();
        let messages: Vec<&str> = listed.iter().map(|entry| &*entry.message).collect();
        assert_eq!(messages, ["number 3", "number 2"]);
        assert_eq!(listed[0].author, "A U Thor");
    }

    #[test]
    fn a_lock_that_a_killed_process_left_behind_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        create(directory.path()).unwrap();
        let repository = Repository::open(directory.path()).unwrap();
        let lock = directory.path().join("refs/heads/main.lock");
        let (mine, other) = (Oid::of(Kind::Blob, b"1"), Oid::of(Kind::Blob, b"2"));
        let move_to = |new| repository.move_reference("refs/heads/main", Oid::ZERO, new);
        fs::write(&lock, format!("{other}\n")).unwrap();
        assert!(move_to(mine).unwrap().unwrap_err().contains("main.lock"));
        fs::write(&lock, format!("{mine}\n")).unwrap();
        assert_eq!(move_to(mine).unwrap(), Ok(()));
        assert!(!lock.exists());
        assert_eq!(repository.reference("refs/heads/main").unwrap(), Some(mine));
        assert_eq!(
            move_to(other).unwrap(),
            Err("the branch has moved".to_owned())
        );
        assert_eq!(
            fs::read_dir(directory.path().join("refs/heads"))
                .unwrap()
                .count(),
            1
        );
    }
}
