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

/// Returns bytes in hexadecimal digits, as digests of files are written.
pub fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15];
    let digits = bytes.iter().flat_map(digits);
    let digits = digits.filter_map(|digit| char::from_digit(u32::from(digit), 16));
    digits.collect()
}

/// The size of a block: headers are one, contents are filled up to one.
pub const BLOCK: usize = 512;
