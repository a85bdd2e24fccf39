//! Fetches sources of templates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_git::web::{self, Get, Got};
use bellwether_git::{Client, Connect, Credentials};
use bellwether_helm::index::Index;
use bytes::Bytes;
use http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::cache::Cache;
use super::source::Source;
use super::{oci, unpack};

/// The largest archive that is read.
pub(crate) const MAX_ARCHIVE: usize = 64 * 1024 * 1024;
/// The largest index of a Helm repository that is read.
const MAX_INDEX: usize = 32 * 1024 * 1024;
/// The largest manifests that are read.
const MAX_MANIFESTS: usize = 4 * 1024 * 1024;
/// How long a source may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Files by path.
pub(crate) type Files = BTreeMap<String, Bytes>;

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    /// A commit, or `sha256:…`.
    pub(crate) digest: String,
    /// All files of the source, or those of the folder if only that was asked for.
    pub(crate) files: Files,
}

/// Why a source could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    /// True if a later attempt may succeed without anybody changing anything.
    pub(crate) is_temporary: bool,
}

impl Problem {
    /// What is wrong stays wrong.
    pub(crate) fn lasting(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_temporary: false,
        }
    }

    /// What is wrong may pass.
    pub(crate) fn temporary(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_temporary: true,
        }
    }
}

impl From<bellwether_git::Error> for Problem {
    fn from(error: bellwether_git::Error) -> Self {
        Self {
            is_temporary: error.is_temporary(),
            message: error.to_string(),
        }
    }
}

/// What fetches sources.
#[derive(Clone)]
pub(crate) struct Sources {
    git: Arc<Client>,
    connect: Arc<dyn Connect>,
    cache: Cache,
}

/// Which part of a source is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// All of it: bases refer to each other.
    Everything,
    /// A folder, which stands for itself.
    Folder(&'a str),
}

impl Sources {
    pub(crate) fn new(connect: Arc<dyn Connect>, cache: Cache) -> Self {
        Self {
            git: Arc::new(Client::new(Arc::clone(&connect))),
            connect,
            cache,
        }
    }

    /// Fetches a source. `pinned` is what its digest has to be; empty if any will do.
    pub(crate) async fn fetch(
        &self,
        source: &Source,
        part: Part<'_>,
        pinned: &str,
        credentials: &Credentials,
    ) -> Result<Fetched, Problem> {
        let fetch = async {
            match source {
                Source::Git { .. } => self.git(source, part, credentials).await,
                Source::Archive { url } => self.archive(url, pinned, part, credentials).await,
                Source::Oci {
                    host,
                    name,
                    reference,
                } => {
                    let digest = self
                        .artifact(host, name, reference, pinned, credentials)
                        .await?;
                    unpack::fetched(digest, part).await
                }
                Source::Repository { url, chart, range } => {
                    self.chart(url, chart, range, pinned, part, credentials)
                        .await
                }
            }
        };
        match tokio::time::timeout(TIMEOUT, fetch).await {
            Ok(fetched) => fetched,
            Err(_) => Err(late()),
        }
    }

    async fn git(
        &self,
        source: &Source,
        part: Part<'_>,
        credentials: &Credentials,
    ) -> Result<Fetched, Problem> {
        let Source::Git { address, revision } = source else {
            return Err(Problem::lasting("the source is not a git repository"));
        };
        let folder = match part {
            Part::Everything => "",
            Part::Folder(folder) => folder,
        };
        let commit = self
            .git
            .resolve(address, credentials, revision.as_deref())
            .await?;
        let key = format!("git {address} {commit} {folder}");
        if let Some(files) = self.cached(&key).await {
            let digest = commit.to_string();
            return Ok(Fetched { digest, files });
        }
        let revision = commit.to_string();
        let read = self
            .git
            .read(address, credentials, Some(&revision), folder)
            .await?;
        self.keep(&key, unpack::encode(&read.files)).await;
        Ok(Fetched {
            digest: read.commit.to_string(),
            files: read.files,
        })
    }

    async fn cached(&self, key: &str) -> Option<Files> {
        let content = self.cached_bytes(key).await?;
        unpack::decode(&content)
    }

    async fn cached_bytes(&self, key: &str) -> Option<Bytes> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        let found = tokio::task::spawn_blocking(move || cache.get(&key)).await;
        found.ok().flatten()
    }

    async fn keep(&self, key: &str, content: Vec<u8>) {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        // A cache that cannot be written to is as good as none.
        let _ = tokio::task::spawn_blocking(move || cache.put(&key, &content)).await;
    }

    async fn archive(
        &self,
        url: &str,
        pinned: &str,
        part: Part<'_>,
        credentials: &Credentials,
    ) -> Result<Fetched, Problem> {
        let headers = oci::basic(credentials)?;
        let archive = self
            .download(url, pinned, headers, credentials, MAX_ARCHIVE)
            .await?;
        unpack::fetched(archive, part).await
    }

    /// Fetches bytes, from the cache if their digest is known. Returns them with their digest.
    pub(crate) async fn download(
        &self,
        url: &str,
        pinned: &str,
        headers: Vec<oci::Header>,
        credentials: &Credentials,
        limit: usize,
    ) -> Result<(String, Bytes), Problem> {
        if !pinned.is_empty()
            && let Some(content) = self.cached_bytes(pinned).await
        {
            return Ok((pinned.to_owned(), content));
        }
        let got = self.get(url, headers, credentials, limit).await?;
        let digest = digest(&got.body);
        check_pinned(url, pinned, &digest)?;
        if !pinned.is_empty() {
            self.keep(&digest, got.body.to_vec()).await;
        }
        Ok((digest, got.body))
    }

    /// Fetches manifests.
    pub(crate) async fn manifests(&self, url: &str) -> Result<Bytes, Problem> {
        let nobody = Credentials::default();
        let fetch = self.get(url, Vec::new(), &nobody, MAX_MANIFESTS);
        match tokio::time::timeout(TIMEOUT, fetch).await {
            Ok(got) => Ok(got?.body),
            Err(_) => Err(late()),
        }
    }

    async fn get(
        &self,
        url: &str,
        headers: Vec<oci::Header>,
        credentials: &Credentials,
        limit: usize,
    ) -> Result<Got, Problem> {
        let got = self.ask(url, headers, credentials, limit).await?;
        succeeded(url, got)
    }

    /// Sends a request, whatever the answer is.
    pub(crate) async fn ask(
        &self,
        url: &str,
        headers: Vec<oci::Header>,
        credentials: &Credentials,
        limit: usize,
    ) -> Result<Got, Problem> {
        let get = Get {
            url,
            headers,
            certificates: credentials.certificates.as_deref(),
            limit,
        };
        web::get(&self.connect, get)
            .await
            .map_err(Problem::temporary)
    }

    async fn chart(
        &self,
        url: &str,
        chart: &str,
        range: &str,
        pinned: &str,
        part: Part<'_>,
        credentials: &Credentials,
    ) -> Result<Fetched, Problem> {
        let address = format!("{url}/index.yaml");
        let got = self
            .get(&address, oci::basic(credentials)?, credentials, MAX_INDEX)
            .await?;
        let (name, wanted) = (chart.to_owned(), range.to_owned());
        let found = unpack::blocking(move || {
            let text =
                std::str::from_utf8(&got.body).map_err(|_| "index.yaml is not text".to_owned())?;
            let index = Index::read(text).map_err(|error| error.to_string())?;
            let entry = index
                .find(&name, &wanted)
                .map_err(|error| error.to_string())?;
            Ok(entry.clone())
        })
        .await?;
        let file = found
            .urls
            .first()
            .ok_or_else(|| Problem::lasting(format!("{address}: chart {chart} has no address")))?;
        let file = if file.contains("://") {
            file.clone()
        } else {
            format!("{url}/{}", file.trim_start_matches('/'))
        };
        // What the index says goes for what it names.
        let listed = match found.digest.as_str() {
            "" => String::new(),
            digest if digest.starts_with("sha256:") => digest.to_owned(),
            digest => format!("sha256:{digest}"),
        };
        if !pinned.is_empty() && !listed.is_empty() {
            check_pinned(&file, pinned, &listed)?;
        }
        let expected = if listed.is_empty() { pinned } else { &listed };
        // Credentials are for the repository, not for the hosts that its index names.
        let headers = if file.starts_with(url) {
            oci::basic(credentials)?
        } else {
            Vec::new()
        };
        let archive = self
            .download(&file, expected, headers, credentials, MAX_ARCHIVE)
            .await?;
        unpack::fetched(archive, part).await
    }
}

fn late() -> Problem {
    Problem::temporary(format!("the source did not arrive within {TIMEOUT:?}"))
}

/// Turns answers that are no success into problems.
pub(crate) fn succeeded(url: &str, got: Got) -> Result<Got, Problem> {
    match got.status {
        status if status.is_success() => Ok(got),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Problem::lasting(format!(
            "{url} refuses access ({}); check the credentials",
            got.status
        ))),
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            Err(Problem::lasting(format!("there is nothing at {url}")))
        }
        status => Err(Problem::temporary(format!("{url} answered {status}"))),
    }
}

/// The digest of bytes.
pub(crate) fn digest(content: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(content))
}

/// Refuses what is something else than what was pinned.
pub(crate) fn check_pinned(what: &str, pinned: &str, found: &str) -> Result<(), Problem> {
    if pinned.is_empty() || pinned == found {
        return Ok(());
    }
    Err(Problem::lasting(format!(
        "{what} is {found}, but {pinned} is wanted"
    )))
}
