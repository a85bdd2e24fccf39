//! Connects to a server, logs in, and runs commands, one after the other.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::encoding::{Reader, put_string, put_u32};
use super::exchange::{Greetings, Keys, Offer};
use super::known_hosts::{HostKeys, Verdict};
use super::packet::{self, Seal};
use super::private_key::PrivateKey;
use super::{SshError, cut_short, host_key, message};

/// What the client calls itself.
const VERSION: &str = concat!("SSH-2.0-bellwether_", env!("CARGO_PKG_VERSION"));
/// The longest line that a server may send before packets, and how many.
const MAX_LINE: usize = 255;
const MAX_LINES: usize = 50;
/// Bytes that a server may send before it is allowed more.
const WINDOW: u32 = 2 * 1024 * 1024;
/// The most bytes of data in a packet, of both sides.
const MAX_DATA: u32 = 32 * 1024;
const CONNECTION: &[u8] = b"ssh-connection";
const AUTHENTICATION: &[u8] = b"ssh-userauth";

/// A connection on which the client has proven who it is.
pub struct Session {
    stream: TcpStream,
    /// What was received and not read yet.
    received: Vec<u8>,
    outgoing: Option<Seal>,
    incoming: Option<Seal>,
    /// The number of the present channel.
    channel: u32,
    /// The number that the server has for it.
    remote: u32,
    /// How much may be sent, in all and in a packet.
    window: u32,
    packet: u32,
    /// How much was received since the server was allowed more.
    consumed: u32,
    is_closed: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").finish_non_exhaustive()
    }
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It writes to standard output.
    Output(Vec<u8>),
    /// It writes to standard error.
    Complaint(Vec<u8>),
    /// It ends with an exit code.
    Status(u32),
    /// Nothing more comes.
    End,
}

impl Session {
    /// Logs in at the other end of a stream, if its key is known.
    pub async fn connect(
        stream: TcpStream,
        hosts: &HostKeys,
        user: &str,
        key: &PrivateKey,
    ) -> Result<Self, SshError> {
        let mut session = Self {
            stream,
            received: Vec::new(),
            outgoing: None,
            incoming: None,
            channel: 0,
            remote: 0,
            window: 0,
            packet: MAX_DATA,
            consumed: 0,
            is_closed: true,
        };
        let id = session.exchange_keys(hosts).await?;
        session.log_in(&id, user, key).await?;
        Ok(session)
    }

    /// Agrees on keys. Returns what names the connection.
    async fn exchange_keys(&mut self, hosts: &HostKeys) -> Result<Vec<u8>, SshError> {
        let offer = Offer::new(host_key::algorithms(hosts))?;
        let greeting = format!("{VERSION}\r\n");
        self.stream.write_all(greeting.as_bytes()).await?;
        let server = self.read_version().await?;
        self.send(&offer.init).await?;
        // Nothing else may come before there are keys: it would not be protected.
        let server_init = self.receive_packet().await?;
        if server_init.first() != Some(&message::KEXINIT) {
            return Err(unexpected(&server_init));
        }
        let agreed = offer.agree(&server_init)?;
        self.send(&offer.second()).await?;
        let reply = self.receive_packet().await?;
        if reply.first() != Some(&message::ECDH_REPLY) {
            return Err(unexpected(&reply));
        }
        let greetings = Greetings {
            client: VERSION.as_bytes(),
            server: &server,
            server_init: &server_init,
        };
        let keys = offer.finish(&agreed, greetings, &reply, |key| match hosts.judge(key) {
            Verdict::Known => Ok(()),
            verdict => Err(SshError::Host(verdict)),
        })?;
        let Keys {
            session,
            outgoing,
            incoming,
        } = keys;
        self.send(&[message::NEWKEYS]).await?;
        self.outgoing = Some(outgoing);
        let done = self.receive_packet().await?;
        if done != [message::NEWKEYS] {
            return Err(unexpected(&done));
        }
        self.incoming = Some(incoming);
        Ok(session)
    }

    /// Reads lines up to the one with the version of the server.
    async fn read_version(&mut self) -> Result<Vec<u8>, SshError> {
        for _ in 0..MAX_LINES {
            let end = loop {
                if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                    break end;
                }
                if self.received.len() > MAX_LINE {
                    return Err(SshError::protocol("this is not an SSH server"));
                }
                self.fill().await?;
            };
            let mut line: Vec<u8> = self.received.drain(..=end).collect();
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if line.starts_with(b"SSH-2.0-") || line.starts_with(b"SSH-1.99-") {
                return Ok(line);
            }
            if line.starts_with(b"SSH-") {
                break;
            }
        }
        Err(SshError::protocol("this is not a server of SSH 2.0"))
    }

    /// Proves who the client is.
    async fn log_in(&mut self, id: &[u8], user: &str, key: &PrivateKey) -> Result<(), SshError> {
        let mut request = vec![message::SERVICE_REQUEST];
        put_string(&mut request, AUTHENTICATION);
        self.send(&request).await?;
        let answer = self.next().await?;
        if answer.first() != Some(&message::SERVICE_ACCEPT) {
            return Err(unexpected(&answer));
        }
        let mut request = vec![message::USERAUTH_REQUEST];
        put_string(&mut request, user.as_bytes());
        put_string(&mut request, CONNECTION);
        put_string(&mut request, b"publickey");
        request.push(1);
        put_string(&mut request, key.algorithm().as_bytes());
        put_string(&mut request, &key.public_blob());
        let mut signed = Vec::new();
        put_string(&mut signed, id);
        signed.extend_from_slice(&request);
        let signature = key.sign(&signed).map_err(SshError::Protocol)?;
        put_string(&mut request, &signature);
        self.send(&request).await?;
        loop {
            let answer = self.next().await?;
            match answer.first() {
                Some(&message::USERAUTH_SUCCESS) => return Ok(()),
                Some(&message::USERAUTH_FAILURE) => return Err(SshError::Denied),
                Some(&message::USERAUTH_BANNER) => {}
                _ => return Err(unexpected(&answer)),
            }
        }
    }

    /// Runs a command, with a variable that the server may ignore. The command before it is given up.
    pub async fn run(&mut self, variable: (&str, &str), command: &str) -> Result<(), SshError> {
        self.close().await?;
        self.channel = self.channel.wrapping_add(1);
        self.consumed = 0;
        let mut open = vec![message::CHANNEL_OPEN];
        put_string(&mut open, b"session");
        put_u32(&mut open, self.channel);
        put_u32(&mut open, WINDOW);
        put_u32(&mut open, MAX_DATA);
        self.send(&open).await?;
        let answer = self.answer().await?;
        let mut reader = Reader::new(&answer);
        let kind = reader.byte();
        let mut number = || reader.u32().ok_or_else(cut_short);
        match kind {
            Some(message::CHANNEL_OPEN_CONFIRMATION) => {
                number()?;
                (self.remote, self.window, self.packet) = (number()?, number()?, number()?);
                self.is_closed = false;
            }
            Some(message::CHANNEL_OPEN_FAILURE) => {
                return Err(SshError::protocol("the server opens no channel"));
            }
            _ => return Err(unexpected(&answer)),
        }
        let mut set = self.request("env", false);
        put_string(&mut set, variable.0.as_bytes());
        put_string(&mut set, variable.1.as_bytes());
        self.send(&set).await?;
        let mut execute = self.request("exec", true);
        put_string(&mut execute, command.as_bytes());
        self.send(&execute).await?;
        let answer = self.answer().await?;
        match answer.first() {
            Some(&message::CHANNEL_SUCCESS) => Ok(()),
            Some(&message::CHANNEL_FAILURE) => {
                Err(SshError::protocol("the server does not run commands"))
            }
            _ => Err(unexpected(&answer)),
        }
    }

    fn request(&self, kind: &str, wants_answer: bool) -> Vec<u8> {
        let mut request = vec![message::CHANNEL_REQUEST];
        put_u32(&mut request, self.remote);
        put_string(&mut request, kind.as_bytes());
        request.push(wants_answer.into());
        request
    }

    /// The next message that answers a request of the present channel.
    async fn answer(&mut self) -> Result<Vec<u8>, SshError> {
        loop {
            let found = self.next().await?;
            let is_about_channel =
                Reader::new(found.get(1..).unwrap_or_default()).u32() == Some(self.channel);
            match found.first() {
                Some(&message::CHANNEL_WINDOW_ADJUST) => self.adjust(&found)?,
                _ if is_about_channel => return Ok(found),
                // A channel that was given up.
                Some(message::CHANNEL_OPEN_CONFIRMATION..=message::CHANNEL_FAILURE) => {}
                _ => return Err(unexpected(&found)),
            }
        }
    }

    /// Gives the command up.
    async fn close(&mut self) -> Result<(), SshError> {
        if self.is_closed {
            return Ok(());
        }
        self.is_closed = true;
        let mut close = vec![message::CHANNEL_CLOSE];
        put_u32(&mut close, self.remote);
        self.send(&close).await
    }

    /// Writes to standard input of the command, and closes it. What the command writes meanwhile is appended to `early`.
    pub async fn write(&mut self, data: &[u8], early: &mut Vec<Received>) -> Result<(), SshError> {
        let mut rest = data;
        while !rest.is_empty() {
            let most = self.window.min(self.packet).min(MAX_DATA) as usize;
            if most == 0 {
                let received = self.read().await?;
                let is_end = received == Some(Received::End);
                early.extend(received);
                if is_end {
                    return Ok(());
                }
                continue;
            }
            let (part, after) = rest.split_at(rest.len().min(most));
            let mut message = vec![message::CHANNEL_DATA];
            put_u32(&mut message, self.remote);
            put_string(&mut message, part);
            self.send(&message).await?;
            // The part is not longer than the window.
            self.window -= u32::try_from(part.len()).unwrap_or(self.window);
            rest = after;
        }
        let mut end = vec![message::CHANNEL_EOF];
        put_u32(&mut end, self.remote);
        self.send(&end).await
    }

    /// What the command does next.
    pub async fn receive(&mut self) -> Result<Received, SshError> {
        loop {
            if let Some(received) = self.read().await? {
                return Ok(received);
            }
        }
    }

    /// Reads one message; none if it is not about what the command does.
    async fn read(&mut self) -> Result<Option<Received>, SshError> {
        if self.is_closed {
            return Ok(Some(Received::End));
        }
        let found = self.next().await?;
        let mut reader = Reader::new(&found);
        let (kind, channel) = (reader.byte(), reader.u32());
        if channel != Some(self.channel) {
            return Ok(None);
        }
        Ok(match kind {
            Some(message::CHANNEL_WINDOW_ADJUST) => {
                self.adjust(&found)?;
                None
            }
            Some(message::CHANNEL_DATA) => {
                let data = reader.string().ok_or_else(cut_short)?.to_vec();
                self.consume(data.len()).await?;
                Some(Received::Output(data))
            }
            Some(message::CHANNEL_EXTENDED_DATA) => {
                reader.u32().ok_or_else(cut_short)?;
                let data = reader.string().ok_or_else(cut_short)?.to_vec();
                self.consume(data.len()).await?;
                Some(Received::Complaint(data))
            }
            Some(message::CHANNEL_REQUEST) => match reader.text() {
                Some("exit-status") => {
                    reader.byte();
                    reader.u32().map(Received::Status)
                }
                _ => None,
            },
            Some(message::CHANNEL_CLOSE) => {
                self.close().await?;
                Some(Received::End)
            }
            Some(message::CHANNEL_EOF) => None,
            _ => return Err(unexpected(&found)),
        })
    }

    /// Counts what the server sent, and allows it more.
    async fn consume(&mut self, length: usize) -> Result<(), SshError> {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.consumed = self.consumed.saturating_add(length);
        if self.consumed > WINDOW {
            return Err(SshError::protocol("the server sends more than it may"));
        }
        if self.consumed > WINDOW / 2 {
            let mut more = vec![message::CHANNEL_WINDOW_ADJUST];
            put_u32(&mut more, self.remote);
            put_u32(&mut more, self.consumed);
            self.send(&more).await?;
            self.consumed = 0;
        }
        Ok(())
    }

    fn adjust(&mut self, found: &[u8]) -> Result<(), SshError> {
        let mut reader = Reader::new(found);
        reader.byte();
        let (channel, more) = (reader.u32(), reader.u32().ok_or_else(cut_short)?);
        if channel == Some(self.channel) {
            self.window = self.window.saturating_add(more);
        }
        Ok(())
    }

    /// The next message that is not for the connection as such.
    async fn next(&mut self) -> Result<Vec<u8>, SshError> {
        loop {
            let found = self.receive_packet().await?;
            match found.first() {
                Some(
                    &message::IGNORE
                    | &message::DEBUG
                    | &message::UNIMPLEMENTED
                    | &message::EXT_INFO,
                ) => {}
                Some(&message::DISCONNECT) => {
                    let mut reader = Reader::new(found.get(5..).unwrap_or_default());
                    let why = reader.text().unwrap_or_default();
                    return Err(SshError::Protocol(format!("the server disconnects: {why}")));
                }
                Some(&message::GLOBAL_REQUEST) => {
                    let mut reader = Reader::new(found.get(1..).unwrap_or_default());
                    let wants_answer = reader.string().and_then(|_| reader.byte());
                    if wants_answer.is_some_and(|wants| wants != 0) {
                        self.send(&[message::REQUEST_FAILURE]).await?;
                    }
                }
                Some(&message::KEXINIT) => {
                    return Err(SshError::protocol(
                        "the server asks for new keys, which is not supported",
                    ));
                }
                _ => return Ok(found),
            }
        }
    }

    async fn send(&mut self, payload: &[u8]) -> Result<(), SshError> {
        let packet = packet::write(payload, self.outgoing.as_mut())?;
        self.stream.write_all(&packet).await?;
        Ok(self.stream.flush().await?)
    }

    async fn receive_packet(&mut self) -> Result<Vec<u8>, SshError> {
        let is_sealed = self.incoming.is_some();
        loop {
            if let Some(size) = packet::size(&self.received, is_sealed)?
                && self.received.len() >= size
            {
                let rest = self.received.split_off(size);
                let packet = std::mem::replace(&mut self.received, rest);
                return packet::read(packet, self.incoming.as_mut());
            }
            self.fill().await?;
        }
    }

    /// Waits for more bytes.
    async fn fill(&mut self) -> Result<(), SshError> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }
}

fn unexpected(found: &[u8]) -> SshError {
    let kind = found.first().copied().unwrap_or_default();
    SshError::Protocol(format!("the server sent an unexpected message ({kind})"))
}
