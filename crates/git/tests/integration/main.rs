//! Pushes and reads against git's own server, and against repositories on this machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod file;
mod push;
mod read;
mod sign;
mod ssh;
mod ssh_keys;

use std::sync::Arc;

use bellwether_git::{Address, Client, Credentials, Description, Direct, Files, Push};
use bellwether_testkit::{GitServer, skip};
use tempfile::TempDir;

/// A server with an empty repository `apps.git`.
struct Fixture {
    server: Arc<GitServer>,
    client: Client,
    directory: TempDir,
}

impl Fixture {
    /// None if git is not installed.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let Some(server) = GitServer::start(directory.path()) else {
            skip("git is not installed");
            return None;
        };
        server.create("apps.git");
        Some(Self {
            server: Arc::new(server),
            client: Client::new(Arc::new(Direct)),
            directory,
        })
    }

    fn address(&self) -> Address {
        self.server.url("apps.git").parse().unwrap()
    }

    /// A push of files to `web` on `main`.
    fn push(&self, files: &[(&str, &str)]) -> Push {
        Push {
            address: self.address(),
            credentials: Credentials::default(),
            branch: "main".to_owned(),
            folder: "web".to_owned(),
            files: files_of(files),
            description: Description {
                author: ("Bellwether".to_owned(), "bellwether@example.org".to_owned()),
                message: "web v1".to_owned(),
                time: "2026-01-02T03:04:05Z".parse().unwrap(),
            },
            key: None,
        }
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.server.git("apps.git", arguments)
    }

    /// Names of all files on a branch.
    fn files(&self, branch: &str) -> Vec<String> {
        let listed = self.git(&["ls-tree", "-r", "--name-only", branch]);
        listed.lines().map(str::to_owned).collect()
    }
}

fn files_of(files: &[(&str, &str)]) -> Files {
    let files = files.iter();
    files
        .map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec()))
        .collect()
}
