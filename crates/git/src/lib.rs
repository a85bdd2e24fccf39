//! A git client for one purpose: to read a folder at a commit, and to push one commit that makes a folder what it
//! should be. No `git` process is started, and no working tree is checked out.
//!
//! Entry points: [`Client::push`] and [`Client::read`]. What they do is decided by pure modules; [`transport`] is the only
//! one that talks to somebody.
//!
//! | module | what it is |
//! |---|---|
//! | [`object`] | names, trees and commits, as bytes and as values |
//! | [`pack`] | packs: written plainly, read under bounds |
//! | [`packet`], [`protocol`] | what clients and servers say to each other |
//! | [`change`] | what has to change for a folder to be as wanted: nothing, or trees and blobs |
//! | [`commit`] | the commit that is pushed, always the same for the same content |
//! | [`signature`] | signatures of commits in the format of OpenSSH |
//! | [`address`] | addresses of repositories |
//! | [`ssh`] | a client of SSH, as far as git needs it |
//! | [`transport`] | HTTP, SSH, and repositories on this machine |
//! | [`local`] | repositories on this machine: created, and listed |
//! | [`web`] | files that are fetched by HTTP |
//! | [`client`] | fetch, decide, push, and again if somebody else was faster |
//!
//! It deliberately has no merges, no history beyond one commit, no submodules, and no SHA-256 repositories: all of
//! them are refused with an error.

pub mod address;
pub mod change;
pub mod client;
pub mod commit;
mod error;
pub mod local;
pub mod object;
pub mod pack;
pub mod packet;
pub mod protocol;
mod repository;
pub mod signature;
pub mod ssh;
pub mod transport;
pub mod web;

pub use address::Address;
pub use change::Files;
pub use client::{Client, Folder, Outcome, Push};
pub use commit::Description;
pub use error::{Error, Result};
pub use object::{Kind, Oid};
pub use transport::{Connect, Credentials, Direct, Stream};
