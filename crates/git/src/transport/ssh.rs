//! Repositories at SSH servers. Each request is a channel of its own, on which the server runs git's program for it.
//!
//! The key comes from a Secret, and so does the list of known hosts: a server whose key is not in it is refused.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::smart::{MAX_REFERENCES, Service};
use super::{Connect, Credentials};
use crate::packet::{self, Packet};
use crate::protocol::Advertisement;
use crate::ssh::{HostKeys, PrivateKey, Received, Session, SshError, Verdict, host_key};
use crate::{Address, Error, Result};

/// How much of a server's complaints is read.
const MAX_COMPLAINT: usize = 1024;
/// What asks a server for version 2 of git's protocol. Servers may ignore it.
const PROTOCOL: (&str, &str) = ("GIT_PROTOCOL", "version=2");

/// A connection to an SSH server.
pub(crate) struct SshWire {
    address: Address,
    key: PrivateKey,
    hosts: HostKeys,
    connect: Arc<dyn Connect>,
    session: Option<Session>,
    /// A program that has begun, and waits for a request.
    open: Option<Conversation>,
}

impl fmt::Debug for SshWire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SshWire").finish_non_exhaustive()
    }
}

/// What came of a program of git on the server so far.
struct Conversation {
    service: Service,
    /// What was received and not used yet.
    received: Vec<u8>,
    complaint: Vec<u8>,
    status: Option<u32>,
    is_over: bool,
}

impl SshWire {
    /// Reads the key and the known hosts; nothing is connected yet.
    pub(crate) fn new(
        address: &Address,
        credentials: &Credentials,
        connect: &Arc<dyn Connect>,
    ) -> Result<Self> {
        let Address::Ssh { host, port, .. } = address else {
            return Err(Error::Address(format!(
                "{address} is not an address of SSH"
            )));
        };
        let (Some(key), Some(list)) = (&credentials.ssh_key, &credentials.known_hosts) else {
            return Err(Error::Key(format!(
                "{address} needs a private key and known_hosts (the lines that ssh-keyscan prints for {host})"
            )));
        };
        let hosts = HostKeys::find(list, host, *port);
        if host_key::algorithms(&hosts).is_empty() {
            return Err(refused(address, Verdict::Unknown));
        }
        Ok(Self {
            address: address.clone(),
            key: read_key(key)?,
            hosts,
            connect: Arc::clone(connect),
            session: None,
            open: None,
        })
    }

    /// Asks what the server can do.
    pub(super) async fn advertisement(&mut self, service: Service) -> Result<Advertisement> {
        let mut conversation = self.begin(service).await?;
        let mut read = 0;
        let end = loop {
            let (end, is_complete) = end_of_message(&conversation.received, read)?;
            if is_complete {
                break end;
            }
            read = end;
            if conversation.received.len() > MAX_REFERENCES {
                return Err(self.too_large(MAX_REFERENCES));
            }
            if conversation.is_over {
                return Err(self.complain(&conversation));
            }
            self.receive(&mut conversation).await?;
        };
        let rest = conversation.received.split_off(end);
        let message = std::mem::replace(&mut conversation.received, rest);
        self.open = Some(conversation);
        Advertisement::read(&message)
    }

    /// Sends a request to a program that has begun, or to another one.
    pub(super) async fn post(
        &mut self,
        service: Service,
        body: Vec<u8>,
        limit: usize,
    ) -> Result<Bytes> {
        let is_open = self
            .open
            .as_ref()
            .is_some_and(|open| open.service == service);
        if !is_open {
            self.advertisement(service).await?;
        }
        let (Some(mut conversation), Some(session)) = (self.open.take(), &mut self.session) else {
            return Err(self.unreachable("the program of git did not begin"));
        };
        let mut early = Vec::new();
        let written = session.write(&body, &mut early).await;
        written.map_err(|error| self.problem(error))?;
        for received in early {
            conversation.take(received);
        }
        while !conversation.is_over {
            if conversation.received.len() > limit {
                return Err(self.too_large(limit));
            }
            self.receive(&mut conversation).await?;
        }
        if conversation.received.is_empty() {
            return Err(self.complain(&conversation));
        }
        Ok(conversation.received.into())
    }

    /// Begins a program of git on the server.
    async fn begin(&mut self, service: Service) -> Result<Conversation> {
        self.open = None;
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.log_in().await?,
        };
        let begun = session
            .run(PROTOCOL, &command(service, &self.address))
            .await;
        begun.map_err(|error| self.problem(error))?;
        self.session = Some(session);
        Ok(Conversation {
            service,
            received: Vec::new(),
            complaint: Vec::new(),
            status: None,
            is_over: false,
        })
    }

    /// Takes in what the program does next.
    async fn receive(&mut self, conversation: &mut Conversation) -> Result<()> {
        let received = match &mut self.session {
            Some(session) => session.receive().await,
            None => Ok(Received::End),
        };
        conversation.take(received.map_err(|error| self.problem(error))?);
        Ok(())
    }

    /// Connects, checks the key of the server, and proves who the client is.
    async fn log_in(&self) -> Result<Session> {
        let Address::Ssh {
            user, host, port, ..
        } = &self.address
        else {
            return Err(self.unreachable("it is not an address of SSH"));
        };
        let stream = self.connect.connect(host, *port).await;
        let stream = stream.map_err(|problem| self.unreachable(&problem))?;
        let session = Session::connect(stream, &self.hosts, user, &self.key).await;
        session.map_err(|error| self.problem(error))
    }

    fn problem(&self, error: SshError) -> Error {
        match error {
            SshError::Host(verdict) => refused(&self.address, verdict),
            SshError::Denied => Error::Denied {
                address: self.address.to_string(),
                problem: error.to_string(),
            },
            SshError::Protocol(problem) => Error::Protocol(problem),
            SshError::Connection(error) => self.unreachable(&error.to_string()),
        }
    }

    /// What a program that ended early complained about.
    fn complain(&self, conversation: &Conversation) -> Error {
        let text = String::from_utf8_lossy(&conversation.complaint);
        let text = text.split(['\n', '\r']).map(str::trim);
        let text = text.filter(|line| !line.is_empty()).collect::<Vec<_>>();
        match (conversation.status, text.join(" ")) {
            (None | Some(0), _) => self.unreachable("the connection ended"),
            (Some(status), text) => Error::NotFound(format!(
                "{}: {} ended with {status}: {text}",
                self.address,
                conversation.service.name()
            )),
        }
    }

    fn too_large(&self, limit: usize) -> Error {
        Error::TooLarge(format!(
            "{} sends more than {limit} bytes, which is more than what is read of one",
            self.address
        ))
    }

    fn unreachable(&self, problem: &str) -> Error {
        Error::Unreachable {
            address: self.address.to_string(),
            problem: problem.to_owned(),
        }
    }
}

impl Conversation {
    fn take(&mut self, received: Received) {
        match received {
            Received::Output(data) => self.received.extend_from_slice(&data),
            Received::Complaint(data) => {
                let left = MAX_COMPLAINT.saturating_sub(self.complaint.len());
                self.complaint
                    .extend_from_slice(&data[..data.len().min(left)]);
            }
            Received::Status(status) => self.status = Some(status),
            Received::End => self.is_over = true,
        }
    }
}

/// Follows packets from a place up to the end of the message. Returns the place after the last packet that is whole, and
/// true if that one ended the message.
fn end_of_message(received: &[u8], from: usize) -> Result<(usize, bool)> {
    let mut place = from;
    while let Some((packet, size)) = packet::split(received.get(place..).unwrap_or_default())? {
        place += size;
        if packet == Packet::Flush {
            return Ok((place, true));
        }
    }
    Ok((place, false))
}

/// The command that runs a program of git for a repository, quoted for a shell.
fn command(service: Service, address: &Address) -> String {
    let path = match address {
        Address::Ssh { path, .. } => path.as_str(),
        _ => "",
    };
    // Paths of users begin with a tilde, which a slash would hide.
    let path = path
        .strip_prefix('/')
        .filter(|path| path.starts_with('~'))
        .unwrap_or(path);
    format!(
        "{} '{}'",
        service.name(),
        path.replace('\'', "'\\''").replace('!', "'\\!'")
    )
}

fn read_key(pem: &str) -> Result<PrivateKey> {
    PrivateKey::read(pem).map_err(|why| {
        Error::Key(format!(
            "the key of SSH cannot be used: {why}; use a key of type ed25519, ecdsa or rsa without a passphrase"
        ))
    })
}

/// Why the key of a server is not accepted.
fn refused(address: &Address, verdict: Verdict) -> Error {
    let why = match verdict {
        Verdict::Revoked => "known_hosts has its key as revoked",
        Verdict::Different => {
            "its key is not the one in known_hosts: somebody may pretend to be this server, or its key has changed"
        }
        Verdict::Unknown | Verdict::Known => {
            "known_hosts has no key for it that can be used: add the line that ssh-keyscan prints, after you have checked it"
        }
    };
    Error::Key(format!("{address} is not trusted: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell_of_the_server() {
        let check = |address: &str, expected: &str| {
            let address = address.parse().unwrap();
            assert_eq!(command(Service::Read, &address), expected);
        };
        check("git@host:team/apps.git", "git-upload-pack 'team/apps.git'");
        check("ssh://host/srv/a b.git", "git-upload-pack '/srv/a b.git'");
        check("ssh://host/~me/a.git", "git-upload-pack '~me/a.git'");
        check(
            "git@host:a'; rm x!.git",
            "git-upload-pack 'a'\\''; rm x'\\!'.git'",
        );
    }

    #[test]
    fn keys_that_cannot_be_used_are_refused_with_a_reason() {
        for (pem, why) in [
            ("text", "cannot be used"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n",
                "passphrase",
            ),
        ] {
            let error = read_key(pem).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_message_ends_with_a_flush() {
        assert_eq!(end_of_message(b"0006a\n0000rest", 0).unwrap(), (10, true));
        assert_eq!(end_of_message(b"0006a\n00", 0).unwrap(), (6, false));
        assert_eq!(end_of_message(b"0006a\n0000", 6).unwrap(), (10, true));
        assert_eq!(end_of_message(b"", 0).unwrap(), (0, false));
        assert!(end_of_message(b"zzzz", 0).is_err());
    }
}
