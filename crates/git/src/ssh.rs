//! A client of SSH, as far as programs of git on a server need it: one channel at a time, on which a command runs.
//!
//! Entry point: [`Session::connect`]. It has one way to agree on keys (curve25519-sha256), one family of ciphers (AES-GCM),
//! and public keys as the only proof of who the client is. Everything cryptographic is done by `ring`. Servers are trusted
//! only by a list of known hosts. It deliberately has no forwarding, no passwords, no certificates, no compression, and no
//! exchange of new keys in the middle: a connection is for one operation, and servers ask for that after gigabytes.
//!
//! | module | what it is |
//! |---|---|
//! | [`encoding`] | strings, numbers and lists, as bytes and as values |
//! | [`known_hosts`] | which keys a server may have |
//! | [`host_key`] | signatures of servers |
//! | [`private_key`] | keys of clients, and their signatures |
//! | [`packet`] | packets, plain and sealed |
//! | [`exchange`] | how both sides agree on keys |
//! | [`session`] | connects, logs in, runs a command |

pub mod encoding;
pub mod exchange;
pub mod host_key;
pub mod known_hosts;
pub mod packet;
pub mod private_key;
pub mod session;

pub use known_hosts::{HostKeys, Verdict};
pub use private_key::PrivateKey;
pub use session::{Received, Session};

/// Numbers of messages, as RFC 4250 and its successors have them.
mod message {
    pub(super) const DISCONNECT: u8 = 1;
    pub(super) const IGNORE: u8 = 2;
    pub(super) const UNIMPLEMENTED: u8 = 3;
    pub(super) const DEBUG: u8 = 4;
    pub(super) const SERVICE_REQUEST: u8 = 5;
    pub(super) const SERVICE_ACCEPT: u8 = 6;
    pub(super) const EXT_INFO: u8 = 7;
    pub(super) const KEXINIT: u8 = 20;
    pub(super) const NEWKEYS: u8 = 21;
    pub(super) const ECDH_INIT: u8 = 30;
    pub(super) const ECDH_REPLY: u8 = 31;
    pub(super) const USERAUTH_REQUEST: u8 = 50;
    pub(super) const USERAUTH_FAILURE: u8 = 51;
    pub(super) const USERAUTH_SUCCESS: u8 = 52;
    pub(super) const USERAUTH_BANNER: u8 = 53;
    pub(super) const GLOBAL_REQUEST: u8 = 80;
    pub(super) const REQUEST_FAILURE: u8 = 82;
    pub(super) const CHANNEL_OPEN: u8 = 90;
    pub(super) const CHANNEL_OPEN_CONFIRMATION: u8 = 91;
    pub(super) const CHANNEL_OPEN_FAILURE: u8 = 92;
    pub(super) const CHANNEL_WINDOW_ADJUST: u8 = 93;
    pub(super) const CHANNEL_DATA: u8 = 94;
    pub(super) const CHANNEL_EXTENDED_DATA: u8 = 95;
    pub(super) const CHANNEL_EOF: u8 = 96;
    pub(super) const CHANNEL_CLOSE: u8 = 97;
    pub(super) const CHANNEL_REQUEST: u8 = 98;
    pub(super) const CHANNEL_SUCCESS: u8 = 99;
    pub(super) const CHANNEL_FAILURE: u8 = 100;
}

/// Why a conversation with a server failed.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The key of the server is not accepted.
    #[error("the key of the server is not accepted")]
    Host(Verdict),
    /// The server does not accept the key of the client.
    #[error("the key is not accepted")]
    Denied,
    /// The connection ended or could not be used.
    #[error("{0}")]
    Connection(#[from] std::io::Error),
    /// The server said something that is not in the protocol, or that is not supported.
    #[error("{0}")]
    Protocol(String),
}

impl SshError {
    /// A message about the protocol.
    fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol(message.into())
    }
}

/// A message that ends too early.
fn cut_short() -> SshError {
    SshError::protocol("a message of the server is cut short")
}
