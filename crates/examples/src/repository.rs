//! Repositories of git on this machine, which a fleet pushes to and reads from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_git::{
    Address, Client, Credentials, Description, Direct, Error, Files, Push, local,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::library::Example;
use crate::script::{Commit, RepositorySpec};

/// The branch that everything is about.
const BRANCH: &str = "main";
/// Who makes commits that are not of the fleet.
const SOMEBODY: (&str, &str) = ("Somebody", "somebody@example.org");
/// How many commits are looked at.
const MOST_COMMITS: usize = 1000;

/// Repositories of an example, in a directory that is removed with them.
pub(crate) struct Repositories {
    directory: tempfile::TempDir,
    client: Client,
    /// What files of the example call them, by name.
    names: BTreeMap<String, String>,
}

impl Repositories {
    /// Creates them, with what they begin with.
    pub(crate) async fn create(
        specs: &BTreeMap<String, RepositorySpec>,
        example: &Example,
    ) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("bellwether-repositories-")
            .tempdir();
        let directory = directory.map_err(|error| format!("cannot make a directory: {error}"))?;
        let mut repositories = Self {
            directory,
            client: Client::new(Arc::new(Direct)),
            names: BTreeMap::new(),
        };
        for (name, spec) in specs {
            repositories
                .names
                .insert(name.clone(), spec.address.clone());
            local::create(&repositories.path(name)).map_err(|error| error.to_string())?;
            let Some(folder) = &spec.files else {
                continue;
            };
            let files = example.below(folder);
            let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
            repositories
                .push(name, "the beginning", files.collect())
                .await?;
        }
        Ok(repositories)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.git"))
    }

    /// Arguments of a hub that may use them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let directory = self.directory.path().to_string_lossy().into_owned();
        vec!["--git-directory".to_owned(), directory]
    }

    /// Replaces what files of the example call the repositories by where they are.
    pub(crate) fn fill(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (name, address)| {
            text.replace(address, &format!("file://{}", self.path(name).display()))
        })
    }

    /// Makes a commit as somebody who is not the fleet.
    pub(crate) async fn commit(&self, commit: &Commit, example: &Example) -> Result<(), String> {
        let mut files = self.files(&commit.repository).await?;
        for (path, source) in &commit.files {
            match source {
                Some(source) => {
                    let text = example.file(source).unwrap_or_default();
                    files.insert(path.clone(), text.as_bytes().to_vec());
                }
                None => {
                    files.remove(path);
                }
            }
        }
        self.push(&commit.repository, &commit.message, files).await
    }

    async fn push(&self, name: &str, message: &str, files: Files) -> Result<(), String> {
        let push = Push {
            address: Address::File(self.path(name)),
            credentials: Credentials::default(),
            branch: BRANCH.to_owned(),
            folder: String::new(),
            files,
            description: Description {
                author: (SOMEBODY.0.to_owned(), SOMEBODY.1.to_owned()),
                message: message.to_owned(),
                time: Timestamp::UNIX_EPOCH,
            },
            key: None,
        };
        let pushed = self.client.push(&push).await;
        pushed.map(drop).map_err(|error| error.to_string())
    }

    /// All files of a repository; none if it is empty.
    async fn files(&self, name: &str) -> Result<Files, String> {
        let address = Address::File(self.path(name));
        let nobody = Credentials::default();
        let read = self.client.read(&address, &nobody, Some(BRANCH), "");
        match read.await {
            Ok(folder) => Ok(folder
                .files
                .into_iter()
                .map(|(path, content)| (path, content.to_vec()))
                .collect()),
            Err(Error::NotFound(_)) => Ok(Files::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What a repository has: `commits`, the newest first, and the texts of `files` by path.
    pub(crate) async fn see(&self, name: &str) -> Result<Value, String> {
        let files = self.files(name).await?;
        let files: Map<String, Value> = files
            .into_iter()
            .map(|(path, content)| (path, json!(String::from_utf8_lossy(&content))))
            .collect();
        let log = local::log(&self.path(name), BRANCH, MOST_COMMITS);
        let log = log.map_err(|error| error.to_string())?;
        let commits: Vec<Value> = log
            .into_iter()
            .map(|entry| {
                json!({"id": entry.oid.to_string(), "author": entry.author, "message": entry.message})
            })
            .collect();
        Ok(json!({"commits": commits, "files": files}))
    }
}
