//! Where the hub connects to on behalf of its users: one list of allowed hosts for requests, repositories and sources.

use std::path::{Path, PathBuf};

use bellwether_git::Connect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpStream;

use crate::workflow::{HttpPolicy, WorkflowOptions};

/// Opens connections to where users of a hub may connect to.
#[derive(Debug, Clone)]
pub struct Egress {
    policy: HttpPolicy,
    /// Directories with repositories that may be used.
    directories: Vec<PathBuf>,
}

impl Egress {
    /// What the options of a hub allow.
    pub fn new(options: &WorkflowOptions) -> Self {
        Self {
            policy: options.http.clone(),
            directories: options.git_directories.clone(),
        }
    }
}

impl Connect for Egress {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<TcpStream, String>> {
        self.policy.connect(host, port).boxed()
    }

    fn allows_path(&self, path: &Path) -> bool {
        // Links are followed first: one inside of a directory may lead out of it.
        let Ok(path) = path.canonicalize() else {
            return false;
        };
        self.directories
            .iter()
            .filter_map(|directory| directory.canonicalize().ok())
            .any(|directory| path.starts_with(directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repositories_in_allowed_directories_are_used() {
        let root = tempfile::tempdir().unwrap();
        let (inside, outside) = (root.path().join("git/apps.git"), root.path().join("secret"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.path().join("git/link")).unwrap();
        let options = WorkflowOptions {
            git_directories: vec![root.path().join("git")],
            ..WorkflowOptions::default()
        };
        let egress = Egress::new(&options);
        assert!(egress.allows_path(&inside));
        for path in [
            outside,
            root.path().join("git/link"),
            root.path().join("git/../secret"),
        ] {
            assert!(!egress.allows_path(&path), "{path:?}");
        }
        assert!(!Egress::new(&WorkflowOptions::default()).allows_path(&inside));
    }
}
