//! Packs: what objects are sent in. Written plainly, without deltas; read under bounds.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use crate::object::{Kind, Object, Objects, Oid};
use crate::{Error, Result};

const MAGIC: &[u8; 4] = b"PACK";
const VERSION: u32 = 2;
const HEADER: usize = 12;
const TRAILER: usize = 20;
const OFS_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;
/// Deltas that refer to deltas: git itself writes at most 50, and never more than 4,095.
pub(crate) const MAX_CHAIN: u32 = 4096;

/// What is read of a pack at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the pack.
    pub packed: usize,
    /// Bytes of all objects together.
    pub unpacked: usize,
    /// Objects.
    pub objects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packed: 128 * 1024 * 1024,
            unpacked: 256 * 1024 * 1024,
            objects: 500_000,
        }
    }
}

/// Writes objects to a pack.
pub fn write<'a>(objects: impl ExactSizeIterator<Item = &'a Object>) -> Result<Vec<u8>> {
    let count = u32::try_from(objects.len())
        .map_err(|_| Error::TooLarge("a pack has too many objects".to_owned()))?;
    let mut pack = Vec::new();
    pack.extend_from_slice(MAGIC);
    pack.extend_from_slice(&VERSION.to_be_bytes());
    pack.extend_from_slice(&count.to_be_bytes());
    for object in objects {
        entry_header(&mut pack, object);
        let mut encoder = ZlibEncoder::new(pack, Compression::default());
        // Writes to memory do not fail.
        let written = encoder.write_all(&object.content);
        pack = written
            .and_then(|()| encoder.finish())
            .map_err(|error| Error::protocol(error.to_string()))?;
    }
    let checksum = Sha1::digest(&pack);
    pack.extend_from_slice(&checksum);
    Ok(pack)
}

fn entry_header(pack: &mut Vec<u8>, object: &Object) {
    let kind: u8 = match object.kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut size = object.content.len();
    let low = u8::try_from(size & 0x0f).unwrap_or_default();
    let mut byte = (kind << 4) | low;
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = u8::try_from(size & 0x7f).unwrap_or_default();
        size >>= 7;
    }
    pack.push(byte);
}

/// Reads the objects of a pack. Deltas may refer to objects of the pack, and to known ones.
pub fn read(pack: &[u8], known: &Objects, limits: Limits) -> Result<Objects> {
    if pack.len() > limits.packed {
        let message = format!("the repository sends more than {} bytes", limits.packed);
        return Err(Error::TooLarge(message));
    }
    let (body, checksum) = pack
        .split_at_checked(pack.len().wrapping_sub(TRAILER))
        .ok_or_else(|| Error::protocol("the pack is cut short"))?;
    if Sha1::digest(body).as_slice() != checksum {
        return Err(Error::protocol("the checksum of the pack is wrong"));
    }
    let header = body
        .get(..HEADER)
        .filter(|header| header.starts_with(MAGIC));
    let header = header.ok_or_else(|| Error::protocol("this is not a pack"))?;
    let number = |at: usize| {
        let bytes = header[at..at + 4].try_into().unwrap_or_default();
        u32::from_be_bytes(bytes)
    };
    if number(4) != VERSION {
        return Err(Error::protocol(format!(
            "packs of version {} are unknown",
            number(4)
        )));
    }
    let count = number(8) as usize;
    if count > limits.objects {
        let message = format!("the repository sends more than {} objects", limits.objects);
        return Err(Error::TooLarge(message));
    }
    let mut reader = Reader {
        body,
        position: HEADER,
        left: limits.unpacked,
        by_offset: HashMap::new(),
        objects: Objects::new(),
        known,
        waiting: Vec::new(),
    };
    for _ in 0..count {
        reader.entry()?;
    }
    reader.resolve_waiting()?;
    Ok(reader.objects)
}

struct Reader<'a> {
    body: &'a [u8],
    position: usize,
    /// How many bytes may still be unpacked.
    left: usize,
    /// Names by where they begin, with the length of their chain of deltas.
    by_offset: HashMap<usize, (Oid, u32)>,
    objects: Objects,
    known: &'a Objects,
    /// Deltas whose base has not been seen yet.
    waiting: Vec<Waiting>,
}

struct Waiting {
    offset: usize,
    base: Base,
    delta: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Base {
    Offset(usize),
    Name(Oid),
}

/// What an entry of a pack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// An object as it is.
    Object(Kind),
    /// A delta; its base begins this many bytes before it.
    Distance(u64),
    /// A delta; its base has this name.
    Name(Oid),
}

/// Reads the header of an entry: what it is, and its unpacked size.
pub(crate) fn entry_kind(reader: &mut impl std::io::Read) -> Result<(EntryKind, usize)> {
    let mut byte = || {
        let mut byte = [0];
        let read = reader.read_exact(&mut byte);
        read.map(|()| byte[0])
            .map_err(|_| Error::protocol("the pack is cut short"))
    };
    let first = byte()?;
    let mut size = usize::from(first & 0x0f);
    let (mut shift, mut next) = (4, first);
    while next & 0x80 != 0 {
        if shift > 53 {
            return Err(Error::protocol("an object of the pack is damaged"));
        }
        next = byte()?;
        size |= usize::from(next & 0x7f) << shift;
        shift += 7;
    }
    let kind = match (first >> 4) & 0x07 {
        1 => EntryKind::Object(Kind::Commit),
        2 => EntryKind::Object(Kind::Tree),
        3 => EntryKind::Object(Kind::Blob),
        4 => EntryKind::Object(Kind::Tag),
        OFS_DELTA => {
            let mut next = byte()?;
            let mut distance = u64::from(next & 0x7f);
            while next & 0x80 != 0 {
                if distance > u64::MAX >> 9 {
                    return Err(Error::protocol("a delta is damaged"));
                }
                next = byte()?;
                distance = ((distance + 1) << 7) | u64::from(next & 0x7f);
            }
            if distance == 0 {
                return Err(Error::protocol("a delta refers to itself"));
            }
            EntryKind::Distance(distance)
        }
        REF_DELTA => {
            let mut name = [0; 20];
            for place in &mut name {
                *place = byte()?;
            }
            EntryKind::Name(Oid::from_bytes(&name).unwrap_or(Oid::ZERO))
        }
        other => {
            return Err(Error::protocol(format!(
                "objects of type {other} are unknown"
            )));
        }
    };
    Ok((kind, size))
}

impl Reader<'_> {
    fn entry(&mut self) -> Result<()> {
        let offset = self.position;
        let mut rest = self.body.get(offset..).unwrap_or_default();
        let before = rest.len();
        let (kind, size) = entry_kind(&mut rest)?;
        self.position += before - rest.len();
        let content = self.inflate(size)?;
        let base = match kind {
            EntryKind::Object(kind) => {
                self.add(offset, Object::new(kind, content), 0);
                return Ok(());
            }
            EntryKind::Distance(distance) => {
                let distance = usize::try_from(distance).ok();
                let start = distance.and_then(|distance| offset.checked_sub(distance));
                Base::Offset(start.ok_or_else(|| Error::protocol("a delta refers to nothing"))?)
            }
            EntryKind::Name(oid) => Base::Name(oid),
        };
        let delta = content;
        self.delta(Waiting {
            offset,
            base,
            delta,
        })
    }

    /// Unpacks what begins at the position, and has exactly this size.
    fn inflate(&mut self, size: usize) -> Result<Vec<u8>> {
        self.spend(size)?;
        let rest = self.body.get(self.position..).unwrap_or_default();
        let mut decoder = ZlibDecoder::new(rest);
        let mut content = Vec::new();
        let read = decoder
            .by_ref()
            .take(size as u64 + 1)
            .read_to_end(&mut content);
        read.map_err(|error| Error::protocol(format!("an object cannot be unpacked: {error}")))?;
        if content.len() != size {
            return Err(Error::protocol("an object has another size than it says"));
        }
        self.position += usize::try_from(decoder.total_in()).unwrap_or(usize::MAX);
        Ok(content)
    }

    fn spend(&mut self, size: usize) -> Result<()> {
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::TooLarge(
                "the files of the repository are larger than what is read of one".to_owned(),
            )),
        }
    }

    fn add(&mut self, offset: usize, object: Object, chain: u32) {
        let oid = object.oid();
        self.by_offset.insert(offset, (oid, chain));
        self.objects.insert(oid, object);
    }

    /// Applies a delta, or keeps it until its base is there.
    fn delta(&mut self, waiting: Waiting) -> Result<()> {
        let base = match waiting.base {
            Base::Offset(offset) => self.by_offset.get(&offset).copied(),
            Base::Name(oid) => self.has(oid).then_some((oid, 0)),
        };
        let Some((oid, chain)) = base else {
            self.waiting.push(waiting);
            return Ok(());
        };
        if chain >= MAX_CHAIN {
            return Err(Error::protocol("a chain of deltas is too long"));
        }
        let object = self.objects.get(&oid).or_else(|| self.known.get(&oid));
        let object = object.cloned();
        let object = object.ok_or_else(|| Error::protocol("a delta refers to nothing"))?;
        let size = delta_result_size(&waiting.delta)?;
        self.spend(size)?;
        let content = apply_delta(&object.content, &waiting.delta)?;
        self.add(waiting.offset, Object::new(object.kind, content), chain + 1);
        Ok(())
    }

    fn has(&self, oid: Oid) -> bool {
        self.objects.contains_key(&oid) || self.known.contains_key(&oid)
    }

    /// Applies the deltas whose base came later. Each round has to resolve something: git sends bases first but for
    /// deltas by name, so that one or two rounds do.
    fn resolve_waiting(&mut self) -> Result<()> {
        const MAX_ROUNDS: usize = 64;
        for _ in 0..MAX_ROUNDS {
            let waiting = std::mem::take(&mut self.waiting);
            if waiting.is_empty() {
                return Ok(());
            }
            let before = waiting.len();
            for delta in waiting {
                self.delta(delta)?;
            }
            if self.waiting.len() == before {
                break;
            }
        }
        Err(Error::protocol(
            "a delta refers to an object that is not there",
        ))
    }
}

/// A number at the beginning of a delta, and what follows.
fn delta_number(delta: &[u8]) -> Result<(usize, &[u8])> {
    let mut number = 0_usize;
    for (index, byte) in delta.iter().enumerate().take(8) {
        let shift = u32::try_from(index * 7).unwrap_or(u32::MAX);
        number |= usize::from(byte & 0x7f)
            .checked_shl(shift)
            .unwrap_or_default();
        if byte & 0x80 == 0 {
            return Ok((number, &delta[index + 1..]));
        }
    }
    Err(Error::protocol("a delta is damaged"))
}

pub(crate) fn delta_result_size(delta: &[u8]) -> Result<usize> {
    let (_, rest) = delta_number(delta)?;
    Ok(delta_number(rest)?.0)
}

/// Makes an object from another one and a delta.
pub(crate) fn apply_delta(base: &[u8], delta: &[u8]) -> Result<Bytes> {
    let damaged = || Error::protocol("a delta is damaged");
    let (base_size, rest) = delta_number(delta)?;
    let (size, mut rest) = delta_number(rest)?;
    if base_size != base.len() {
        return Err(damaged());
    }
    let mut result = Vec::new();
    while let Some((&code, after)) = rest.split_first() {
        rest = after;
        let piece = if code & 0x80 == 0 {
            let (literal, after) = rest
                .split_at_checked(usize::from(code))
                .ok_or_else(damaged)?;
            if literal.is_empty() {
                return Err(damaged());
            }
            rest = after;
            literal
        } else {
            let mut number = |bits: std::ops::Range<u8>| -> Result<usize> {
                let mut value = 0;
                for (index, bit) in bits.enumerate() {
                    if code & (1 << bit) != 0 {
                        let (&byte, after) = rest.split_first().ok_or_else(damaged)?;
                        rest = after;
                        value |= usize::from(byte) << (8 * index);
                    }
                }
                Ok(value)
            };
            let start = number(0..4)?;
            let length = match number(4..7)? {
                0 => 0x10000,
                length => length,
            };
            base.get(start..start + length).ok_or_else(damaged)?
        };
        if result.len() + piece.len() > size {
            return Err(damaged());
        }
        result.extend_from_slice(piece);
    }
    if result.len() == size {
        Ok(result.into())
    } else {
        Err(damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(content: &[u8]) -> Object {
        Object::new(Kind::Blob, content.to_vec())
    }

    #[test]
    fn what_is_written_is_read() {
        let objects = [blob(b"one"), blob(&vec![7; 100_000]), blob(b"")];
        let pack = write(objects.iter()).unwrap();
        let read = read(&pack, &Objects::new(), Limits::default()).unwrap();
        assert_eq!(read.len(), 3);
        for object in objects {
            assert_eq!(read[&object.oid()], object);
        }
    }

    #[test]
    fn a_pack_that_unpacks_to_too_much_is_refused() {
        let pack = write([blob(&vec![0; 10_000_000])].iter()).unwrap();
        let limits = Limits {
            unpacked: 1_000_000,
            ..Limits::default()
        };
        let error = read(&pack, &Objects::new(), limits).unwrap_err();
        assert!(matches!(error, Error::TooLarge(_)), "{error}");
    }

    #[test]
    fn damaged_packs_are_refused() {
        let pack = write([blob(b"content")].iter()).unwrap();
        for end in 0..pack.len() {
            assert!(read(&pack[..end], &Objects::new(), Limits::default()).is_err());
        }
        let mut wrong = pack;
        wrong[20] ^= 1;
        assert!(read(&wrong, &Objects::new(), Limits::default()).is_err());
    }

    #[test]
    fn deltas_are_applied() {
        // Copy 5 bytes from 0, insert " you", copy 1 byte from 5.
        let delta = [
            6,
            10,
            0b1001_0000,
            5,
            4,
            b' ',
            b'y',
            b'o',
            b'u',
            0b1001_0001,
            5,
            1,
        ];
        assert_eq!(apply_delta(b"hello!", &delta).unwrap(), "hello you!");
        assert!(apply_delta(b"hello", &delta).is_err());
        assert!(apply_delta(b"hello!", &delta[..5]).is_err());
        // It says that the result is shorter than what it makes.
        let bomb = [6, 2, 0b1001_0000, 5];
        assert!(apply_delta(b"hello!", &bomb).is_err());
    }
}
