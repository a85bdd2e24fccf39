//! How a repository elsewhere is talked to.

pub mod file;
pub mod http;
pub mod smart;
pub mod ssh;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::object::{Object, Objects, Oid};
use crate::pack::{self, Limits};
use crate::protocol::{Update, Want};
use crate::{Address, Error, Result};
use http::HttpWire;
use smart::{SmartRemote, Wire};
use ssh::SshWire;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// Opens connections, to where that is allowed.
pub trait Connect: Send + Sync {
    /// Opens a connection to a host.
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, std::result::Result<TcpStream, String>>;

    /// True if repositories at a path of this machine may be used.
    fn allows_path(&self, path: &std::path::Path) -> bool;
}

/// Opens connections anywhere, and repositories at any path: for commands of a user, not for a hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl Connect for Direct {
    fn connect<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, std::result::Result<TcpStream, String>> {
        Box::pin(async move {
            let host = host.trim_matches(['[', ']']);
            let stream = TcpStream::connect((host, port)).await;
            stream.map_err(|error| error.to_string())
        })
    }

    fn allows_path(&self, _: &std::path::Path) -> bool {
        true
    }
}

/// How a client proves who it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user; `git` if only a password or token is given.
    pub username: Option<String>,
    /// The password, or an access token.
    pub password: Option<String>,
    /// A token that is sent as a bearer.
    pub bearer: Option<String>,
    /// Further certificates that a server may be signed by, as PEM.
    pub certificates: Option<String>,
    /// A private key for SSH, without a passphrase.
    pub ssh_key: Option<String>,
    /// Keys that SSH servers may have, as OpenSSH writes them: without one for its host, a server is refused.
    pub known_hosts: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What they are is nobody's business.
        formatter
            .debug_struct("Credentials")
            .finish_non_exhaustive()
    }
}

/// A repository that is being talked to.
#[derive(Debug)]
pub(crate) enum Remote {
    Smart(Box<SmartRemote>),
    File(file::FileRemote),
}

impl Remote {
    /// Begins to talk to a repository.
    pub(crate) fn open(
        address: &Address,
        credentials: &Credentials,
        connect: &Arc<dyn Connect>,
        limits: Limits,
    ) -> Result<Self> {
        match address {
            Address::Http { .. } => {
                let wire = HttpWire::new(address, credentials, connect)?;
                Ok(Self::smart(Wire::Http(Box::new(wire)), limits))
            }
            Address::File(path) => file::FileRemote::open(path, connect.as_ref()).map(Self::File),
            Address::Ssh { .. } => {
                let wire = SshWire::new(address, credentials, connect)?;
                Ok(Self::smart(Wire::Ssh(Box::new(wire)), limits))
            }
        }
    }

    fn smart(wire: Wire, limits: Limits) -> Self {
        Self::Smart(Box::new(SmartRemote::new(wire, limits)))
    }

    /// The commit of the first of these references that exists. `HEAD` is the branch that the repository shows first.
    pub(crate) async fn find(&mut self, references: &[String]) -> Result<Option<Oid>> {
        let found = match self {
            Self::Smart(remote) => remote.references(references).await?,
            Self::File(remote) => remote.references(references).await?,
        };
        let find = |name: &String| found.iter().find(|(known, _)| known == name);
        Ok(references.iter().find_map(find).map(|(_, oid)| *oid))
    }

    /// Objects that are wanted, with what they consist of. `known` are objects that the client has.
    pub(crate) async fn fetch(
        &mut self,
        want: &Want,
        known: Arc<Objects>,
        limits: Limits,
    ) -> Result<Objects> {
        match self {
            Self::Smart(remote) => {
                let pack = remote.fetch(want).await?;
                compute(move || pack::read(&pack, &known, limits)).await
            }
            Self::File(remote) => remote.fetch(want, limits).await,
        }
    }

    /// True if contents of files can be left out, and fetched later.
    pub(crate) fn has_filter(&self) -> bool {
        match self {
            Self::Smart(remote) => remote.has_filter(),
            Self::File(_) => true,
        }
    }

    /// Moves a branch. The error of the inner result is what the server said.
    pub(crate) async fn push(
        &mut self,
        update: Update<'_>,
        objects: Vec<Object>,
    ) -> Result<std::result::Result<(), String>> {
        match self {
            Self::Smart(remote) => {
                let pack = compute(move || pack::write(objects.iter())).await?;
                remote.push(update, &pack).await
            }
            Self::File(remote) => remote.push(update, objects).await,
        }
    }
}

/// Computes something on a thread that may block.
pub(crate) async fn compute<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::protocol(format!(
            "reading the repository ended early: {error}"
        ))),
    }
}
