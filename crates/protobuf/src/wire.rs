//! The wire format: tags, numbers, and runs of bytes.

use std::fmt;

use crate::error::Reason;

/// The largest field number that the format allows.
const MAX_NUMBER: u64 = (1 << 29) - 1;

/// How a value is encoded, which its tag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireType {
    /// A number of one to ten bytes.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// A length and so many bytes.
    Bytes,
    /// The start of a group, which Kubernetes never uses.
    GroupStart,
    /// The end of a group.
    GroupEnd,
    /// Four bytes.
    Fixed32,
}

impl fmt::Display for WireType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Varint => "varint",
            Self::Fixed64 => "fixed64",
            Self::Bytes => "bytes",
            Self::GroupStart => "group start",
            Self::GroupEnd => "group end",
            Self::Fixed32 => "fixed32",
        })
    }
}

/// What precedes every value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire_type: WireType,
}

impl Tag {
    /// Refuses a value that is encoded as another type than its field has.
    pub(crate) fn expect(self, expected: WireType) -> Result<(), Reason> {
        if self.wire_type == expected {
            return Ok(());
        }
        Err(Reason::WrongWireType {
            number: self.number,
            found: self.wire_type,
            expected,
        })
    }
}

/// Reads values one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next tag, or nothing at the end.
    pub(crate) fn tag(&mut self) -> Result<Option<Tag>, Reason> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::GroupStart,
            4 => WireType::GroupEnd,
            5 => WireType::Fixed32,
            _ => return Err(Reason::InvalidTag),
        };
        let number = key >> 3;
        if number == 0 || number > MAX_NUMBER {
            return Err(Reason::InvalidTag);
        }
        let number = u32::try_from(number).map_err(|_| Reason::InvalidTag)?;
        Ok(Some(Tag { number, wire_type }))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Reason> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Reason::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Reason::Overflow)
    }

    pub(crate) fn fixed64(&mut self) -> Result<[u8; 8], Reason> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Reason::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// A length, and so many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Reason> {
        let length = self.varint()?;
        // A length beyond the address space is beyond the body as well.
        let length = usize::try_from(length).map_err(|_| Reason::Truncated)?;
        self.take(length)
    }

    /// Passes over the value of a tag.
    pub(crate) fn skip(&mut self, tag: Tag) -> Result<(), Reason> {
        match tag.wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.take(8).map(drop),
            WireType::Fixed32 => self.take(4).map(drop),
            WireType::Bytes => self.bytes().map(drop),
            WireType::GroupStart => self.skip_group(),
            WireType::GroupEnd => Err(Reason::InvalidTag),
        }
    }

    /// Passes over a group and the groups in it, counting them so that no depth can hurt.
    fn skip_group(&mut self) -> Result<(), Reason> {
        let mut open = 1_usize;
        while open > 0 {
            let tag = self.tag()?.ok_or(Reason::Truncated)?;
            match tag.wire_type {
                WireType::GroupStart => open += 1,
                WireType::GroupEnd => open -= 1,
                _ => self.skip(tag)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Reason::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}
