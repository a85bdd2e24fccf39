//! Tar archives that are the same for the same files.
//!
//! [`Writer`] writes regular files and directories without times, owners' names or anything else that differs from one machine to the
//! next. [`Reader`] reads such archives under bounds: whatever is not a regular file or a directory is refused, and so are names that
//! lead elsewhere.

mod header;
mod read;
mod write;

pub use read::{Entry, ReadError, Reader};
pub use write::{Attributes, Kind, WriteError, Writer};

/// The size of a block: headers are one, contents are filled up to one.
pub const BLOCK: usize = 512;
