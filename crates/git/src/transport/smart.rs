//! What is asked of a repository at a server, over HTTP or SSH: git's smart protocol.

use bytes::Bytes;

use super::http::HttpWire;
use super::ssh::SshWire;
use crate::Result;
use crate::object::Oid;
use crate::pack::Limits;
use crate::protocol::{self, Advertisement, Update, Want};

/// The largest list of references that is read.
pub(super) const MAX_REFERENCES: usize = 32 * 1024 * 1024;
/// What an answer has besides the pack: lengths of packets, and messages.
const OVERHEAD: usize = 1024 * 1024;

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// References and objects.
    Read,
    /// A branch to be moved.
    Write,
}

impl Service {
    /// The name of the program that serves it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "git-upload-pack",
            Self::Write => "git-receive-pack",
        }
    }
}

/// How bytes come to a server and back.
#[derive(Debug)]
pub(super) enum Wire {
    Http(Box<HttpWire>),
    Ssh(Box<SshWire>),
}

impl Wire {
    /// Asks what the server can do.
    async fn advertisement(&mut self, service: Service) -> Result<Advertisement> {
        match self {
            Self::Http(wire) => wire.advertisement(service).await,
            Self::Ssh(wire) => wire.advertisement(service).await,
        }
    }

    /// Sends a request, and returns the answer, if it is not larger than the limit.
    async fn post(&mut self, service: Service, body: Vec<u8>, limit: usize) -> Result<Bytes> {
        match self {
            Self::Http(wire) => wire.post(service, body, limit).await,
            Self::Ssh(wire) => wire.post(service, body, limit).await,
        }
    }
}

/// A repository at a server.
#[derive(Debug)]
pub(crate) struct SmartRemote {
    wire: Wire,
    limits: Limits,
    /// What the server can do for readers, once it has been asked.
    reading: Option<Advertisement>,
}

impl SmartRemote {
    pub(super) fn new(wire: Wire, limits: Limits) -> Self {
        Self {
            wire,
            limits,
            reading: None,
        }
    }

    pub(crate) fn has_filter(&self) -> bool {
        // Contents can be asked for by name in version 2 only.
        let reading = self.reading.as_ref();
        reading.is_some_and(|known| known.is_version_2 && known.has_filter())
    }

    fn is_version_2(&self) -> bool {
        let reading = self.reading.as_ref();
        reading.is_some_and(|known| known.is_version_2)
    }

    pub(crate) async fn references(&mut self, names: &[String]) -> Result<Vec<(String, Oid)>> {
        // References move: version 0 lists them at the beginning only.
        if !self.is_version_2() {
            self.reading = Some(self.wire.advertisement(Service::Read).await?);
        }
        match &self.reading {
            Some(advertisement) if !advertisement.is_version_2 => {
                // A tag is followed to its commit by the name with ^{}.
                let find = |name: &String| {
                    let peeled = advertisement.reference(&format!("{name}^{{}}"));
                    let oid = peeled.or_else(|| advertisement.reference(name))?;
                    Some((name.clone(), oid))
                };
                Ok(names.iter().filter_map(find).collect())
            }
            _ => {
                let prefixes: Vec<&str> = names.iter().map(String::as_str).collect();
                let request = protocol::list_references(&prefixes);
                let answer = self.wire.post(Service::Read, request, MAX_REFERENCES);
                protocol::read_references(&answer.await?)
            }
        }
    }

    pub(crate) async fn fetch(&mut self, want: &Want) -> Result<Vec<u8>> {
        if self.reading.is_none() {
            self.reading = Some(self.wire.advertisement(Service::Read).await?);
        }
        let request = if self.is_version_2() {
            protocol::fetch(want)
        } else {
            protocol::fetch_version_0(want)
        };
        let limit = self.limits.packed + OVERHEAD;
        let answer = self.wire.post(Service::Read, request, limit).await?;
        protocol::read_pack(&answer)
    }

    pub(crate) async fn push(
        &mut self,
        update: Update<'_>,
        pack: &[u8],
    ) -> Result<std::result::Result<(), String>> {
        let advertisement = self.wire.advertisement(Service::Write).await?;
        let present = advertisement
            .reference(update.reference)
            .unwrap_or(Oid::ZERO);
        if present != update.old {
            return Ok(Err("the branch has moved".to_owned()));
        }
        let request = protocol::push(update, pack);
        let answer = self.wire.post(Service::Write, request, OVERHEAD).await?;
        protocol::read_report(&answer)
    }
}
