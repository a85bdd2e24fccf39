//! Packet lines: four hexadecimal digits of length, then a payload.

use crate::{Error, Result};

/// The longest payload.
pub const MAX_PAYLOAD: usize = 65_516;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A payload.
    Line(&'a [u8]),
    /// The end of a message.
    Flush,
    /// The end of a section.
    Delimiter,
    /// The end of an answer on a connection that stays open.
    End,
}

impl<'a> Packet<'a> {
    /// The payload as text, without the line feed at its end.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Self::Line(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                Some(text.strip_suffix('\n').unwrap_or(text))
            }
            _ => None,
        }
    }
}

/// Appends a line. It has to be shorter than [`MAX_PAYLOAD`], as all lines are that are written here.
pub fn line(message: &mut Vec<u8>, payload: &str) {
    message.extend_from_slice(format!("{:04x}", payload.len() + 4).as_bytes());
    message.extend_from_slice(payload.as_bytes());
}

/// Appends the end of a message.
pub fn flush(message: &mut Vec<u8>) {
    message.extend_from_slice(b"0000");
}

/// Appends the end of a section.
pub fn delimiter(message: &mut Vec<u8>) {
    message.extend_from_slice(b"0001");
}

/// The packets of a message.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// Reads a message.
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What follows the packets that were taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next packet; none at the end of the message.
    pub fn take(&mut self) -> Result<Option<Packet<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        match split(self.rest)? {
            Some((packet, size)) => {
                self.rest = &self.rest[size..];
                Ok(Some(packet))
            }
            None => Err(Error::protocol("the answer ends within a packet")),
        }
    }

    /// Takes lines up to the next packet that is none, which is taken as well.
    pub fn lines(&mut self) -> Result<Vec<&'a str>> {
        let mut lines = Vec::new();
        while let Some(packet) = self.take()? {
            if !matches!(packet, Packet::Line(_)) {
                break;
            }
            let text = packet.text();
            lines.push(text.ok_or_else(|| Error::protocol("a line is not text"))?);
        }
        Ok(lines)
    }
}

/// The first packet of bytes and its size, if all of it is there.
pub fn split(bytes: &[u8]) -> Result<Option<(Packet<'_>, usize)>> {
    let Some(header) = bytes.get(..4) else {
        return Ok(None);
    };
    let size = std::str::from_utf8(header)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .and_then(|text| usize::from_str_radix(text, 16).ok());
    match size {
        Some(0) => Ok(Some((Packet::Flush, 4))),
        Some(1) => Ok(Some((Packet::Delimiter, 4))),
        Some(2) => Ok(Some((Packet::End, 4))),
        Some(size) if (4..=MAX_PAYLOAD + 4).contains(&size) => Ok(bytes
            .get(4..size)
            .map(|payload| (Packet::Line(payload), size))),
        _ => {
            let shown = String::from_utf8_lossy(header).into_owned();
            Err(Error::protocol(format!(
                "{shown:?} is not the length of a packet"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let mut message = Vec::new();
        line(&mut message, "command=ls-refs\n");
        delimiter(&mut message);
        line(&mut message, "peel\n");
        flush(&mut message);
        assert_eq!(message, b"0014command=ls-refs\n00010009peel\n0000");
        let mut packets = Packets::new(&message);
        assert_eq!(packets.lines().unwrap(), ["command=ls-refs"]);
        assert_eq!(packets.lines().unwrap(), ["peel"]);
        assert_eq!(packets.take().unwrap(), None);
    }

    #[test]
    fn damaged_packets_are_refused() {
        for message in ["zz", "00zz", "0003", "0009peel", "fffff", "+00a"] {
            assert!(
                Packets::new(message.as_bytes()).lines().is_err(),
                "{message:?}"
            );
        }
    }
}
