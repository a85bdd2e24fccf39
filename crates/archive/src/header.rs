//! A header: where its fields are, and how numbers are written.

use crate::BLOCK;

/// A header as it is stored.
pub(crate) type Header = [u8; BLOCK];

/// A field of a header: its first byte and its length.
#[derive(Clone, Copy)]
pub(crate) struct Field(usize, usize);

pub(crate) const NAME: Field = Field(0, 100);
pub(crate) const MODE: Field = Field(100, 8);
pub(crate) const OWNER: Field = Field(108, 8);
pub(crate) const GROUP: Field = Field(116, 8);
pub(crate) const SIZE: Field = Field(124, 12);
pub(crate) const TIME: Field = Field(136, 12);
pub(crate) const CHECKSUM: Field = Field(148, 8);
pub(crate) const MAGIC: Field = Field(257, 8);
pub(crate) const PREFIX: Field = Field(345, 155);

/// Where the type of an entry is.
pub(crate) const TYPE: usize = 156;

impl Field {
    pub(crate) fn of(self, header: &Header) -> &[u8] {
        &header[self.0..self.0 + self.1]
    }

    /// The text of a field, up to its first zero.
    pub(crate) fn text(self, header: &Header) -> Option<&str> {
        let bytes = self.of(header);
        let end = bytes.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()
    }

    /// The number of a field.
    pub(crate) fn number(self, header: &Header) -> Option<u64> {
        u64::from_str_radix(self.text(header)?.trim(), 8).ok()
    }

    /// Sets a field to a text, which fits.
    pub(crate) fn set(self, header: &mut Header, text: &[u8]) {
        let length = text.len().min(self.1);
        header[self.0..self.0 + length].copy_from_slice(&text[..length]);
    }

    /// Sets a field to an octal number with a zero behind it; false if it does not fit.
    pub(crate) fn set_number(self, header: &mut Header, number: u64) -> bool {
        let digits = self.1 - 1;
        let text = format!("{number:0digits$o}");
        self.set(header, text.as_bytes());
        text.len() == digits
    }
}

/// The sum of all bytes of a header, with blanks where the sum is.
pub(crate) fn checksum(header: &Header) -> u64 {
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = CHECKSUM
        .of(header)
        .iter()
        .map(|byte| u64::from(*byte))
        .sum();
    sum - own + 8 * u64::from(b' ')
}
