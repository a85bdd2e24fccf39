//! From a message to JSON.
//!
//! A message is read in two steps: [`Decoder::gather`] collects what is on the wire for each of its
//! fields, in any order and repetition; [`Decoder::finish`] then turns each field into JSON, or
//! decides how its absence shows.

use std::borrow::Cow;
use std::mem;

use serde_json::{Map, Value};

use crate::envelope::Envelope;
use crate::error::{DecodeError, Fault, Reason};
use crate::table::{Field, Kind, Message, Presence, Shape, Table};
use crate::wire::{Reader, Tag, WireType};
use crate::{scalar, time};

/// Objects and lists that may be nested in each other. Real objects stay below 60, and the recursion
/// of a body at the limit takes no more than half of a thread's usual two megabytes, unoptimized.
pub const MAX_DEPTH: usize = 256;

/// Values that one object may have. Two bytes of protobuf can stand for a message with dozens of
/// zero values; this keeps a small body from becoming gigabytes of JSON, at several times what
/// the largest object that fits in a store has.
pub const MAX_VALUES: usize = 1_000_000;

/// The object in an envelope.
pub(crate) fn object(
    table: &Table,
    message: &Message,
    envelope: &Envelope<'_>,
) -> Result<Value, DecodeError> {
    let mut decoder = Decoder {
        table,
        values_left: MAX_VALUES,
    };
    let mut object = Map::new();
    object.insert(
        "apiVersion".to_owned(),
        envelope.api_version.as_str().into(),
    );
    object.insert("kind".to_owned(), envelope.kind.as_str().into());
    decoder
        .fields(message, envelope.message, 1, &mut object)
        .map_err(|fault| fault.into_error(&envelope.kind))?;
    Ok(Value::Object(object))
}

/// What is on the wire for one field.
#[derive(Debug)]
enum Slot<'a> {
    Absent,
    Value(Value),
    /// A message that is read when all its parts are there.
    Message(Cow<'a, [u8]>),
    List(Vec<Value>),
    Map(Map<String, Value>),
}

struct Decoder<'t> {
    table: &'t Table,
    values_left: usize,
}

impl<'t> Decoder<'t> {
    /// The JSON of a message at this depth.
    fn message(
        &mut self,
        message: &'t Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, Fault> {
        if message.is_choice {
            return self.choice(message, bytes, depth);
        }
        let depth = deeper(depth)?;
        let mut object = Map::new();
        self.fields(message, bytes, depth, &mut object)?;
        Ok(Value::Object(object))
    }

    /// Adds the fields of a message to the object at this depth.
    fn fields(
        &mut self,
        message: &'t Message,
        bytes: &[u8],
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        let slots = self.gather(message, bytes, depth)?;
        for (field, slot) in message.fields.iter().zip(slots) {
            if field.presence != Presence::Inline {
                let value = self
                    .finish(field, slot, depth)
                    .map_err(|fault| fault.within(field.name))?;
                if let Some(value) = value {
                    object.insert(field.name.to_owned(), value);
                }
            } else if let Kind::Message(index) = field.kind {
                let bytes = match slot {
                    Slot::Message(bytes) => bytes,
                    _ => Cow::default(),
                };
                self.fields(self.table.message(index), &bytes, depth, object)?;
            }
        }
        Ok(())
    }

    /// The first field of a message that has a value.
    fn choice(&mut self, message: &'t Message, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let slots = self.gather(message, bytes, depth)?;
        for (field, slot) in message.fields.iter().zip(slots) {
            if let Some(value) = self.finish(field, slot, depth)? {
                return Ok(value);
            }
        }
        Ok(Value::Null)
    }

    /// What is on the wire for each field of a message.
    fn gather<'a>(
        &mut self,
        message: &'t Message,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<Vec<Slot<'a>>, Fault> {
        let mut slots = Vec::new();
        slots.resize_with(message.fields.len(), || Slot::Absent);
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            let mut known = message.fields.iter().zip(&mut slots);
            match known.find(|(field, _)| field.number == tag.number) {
                Some((field, slot)) => self
                    .fill(slot, field, tag, &mut reader, depth)
                    .map_err(|fault| outside(fault, message, field))?,
                None => reader.skip(tag)?,
            }
        }
        Ok(slots)
    }

    /// Reads one occurrence of a field.
    fn fill<'a>(
        &mut self,
        slot: &mut Slot<'a>,
        field: &'t Field,
        tag: Tag,
        reader: &mut Reader<'a>,
        depth: usize,
    ) -> Result<(), Fault> {
        match field.shape {
            Shape::One if is_message(field.kind) => {
                tag.expect(WireType::Bytes)?;
                let part = reader.bytes()?;
                match slot {
                    // Parts of a message are merged, which is reading them in a row. A time is
                    // replaced as a whole.
                    Slot::Message(parts) if !matches!(field.kind, Kind::Time | Kind::MicroTime) => {
                        parts.to_mut().extend_from_slice(part);
                    }
                    _ => *slot = Slot::Message(Cow::Borrowed(part)),
                }
            }
            Shape::One => *slot = Slot::Value(self.value(field.kind, tag, reader, depth)?),
            Shape::List => {
                let mut items = match mem::replace(slot, Slot::Absent) {
                    Slot::List(items) => items,
                    _ => Vec::new(),
                };
                self.append(&mut items, field.kind, tag, reader, depth)?;
                *slot = Slot::List(items);
            }
            Shape::Map => {
                tag.expect(WireType::Bytes)?;
                let entry = reader.bytes()?;
                let mut entries = match mem::replace(slot, Slot::Absent) {
                    Slot::Map(entries) => entries,
                    _ => Map::new(),
                };
                let (key, value) = self.entry(field.kind, entry, depth)?;
                entries.insert(key, value);
                *slot = Slot::Map(entries);
            }
        }
        Ok(())
    }

    /// Reads one item of a list, or a run of numbers.
    fn append(
        &mut self,
        items: &mut Vec<Value>,
        kind: Kind,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        let depth = deeper(depth)?;
        let expected = wire_type(kind);
        if expected == WireType::Bytes || tag.wire_type != WireType::Bytes {
            items.push(self.value(kind, tag, reader, depth)?);
            return Ok(());
        }
        let mut run = Reader::new(reader.bytes()?);
        let tag = Tag {
            wire_type: expected,
            ..tag
        };
        while !run.is_empty() {
            items.push(self.value(kind, tag, &mut run, depth)?);
        }
        Ok(())
    }

    /// Reads one entry of a map: a message of a key and a value.
    fn entry(&mut self, kind: Kind, bytes: &[u8], depth: usize) -> Result<(String, Value), Fault> {
        let depth = deeper(depth)?;
        let mut key = String::new();
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => {
                    tag.expect(WireType::Bytes)?;
                    key = scalar::text(reader.bytes()?);
                }
                2 => {
                    let read = self.value(kind, tag, &mut reader, depth);
                    value = Some(read.map_err(|fault| fault.within(&key))?);
                }
                _ => reader.skip(tag)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None if kind == Kind::Bytes => scalar::base64(&[]),
            None => self.zero(kind, depth)?,
        };
        Ok((key, value))
    }

    /// Reads one value.
    fn value(
        &mut self,
        kind: Kind,
        tag: Tag,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Value, Fault> {
        tag.expect(wire_type(kind))?;
        if is_message(kind) {
            return self.nested(kind, reader.bytes()?, depth);
        }
        self.plain(kind, reader, depth)
    }

    /// Reads one value that is no message.
    fn plain(&mut self, kind: Kind, reader: &mut Reader<'_>, depth: usize) -> Result<Value, Fault> {
        self.spend()?;
        Ok(match kind {
            Kind::Bool => Value::Bool(reader.varint()? != 0),
            Kind::Int32 => Value::from(scalar::int32(reader.varint()?)),
            Kind::Int64 => Value::from(reader.varint()?.cast_signed()),
            Kind::Double => scalar::double(reader.fixed64()?)?,
            Kind::Bytes => scalar::base64(reader.bytes()?),
            Kind::Json => {
                let value = scalar::json(reader.bytes()?)?;
                if depth + scalar::height(&value) > MAX_DEPTH {
                    return Err(Reason::TooDeep.into());
                }
                value
            }
            _ => Value::String(scalar::text(reader.bytes()?)),
        })
    }

    /// The JSON of what is a message on the wire.
    fn nested(&mut self, kind: Kind, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        self.spend()?;
        match kind {
            Kind::Message(index) => self.message(self.table.message(index), bytes, depth),
            Kind::Strings => self.strings(bytes, depth),
            _ => small_message(kind, bytes).map_err(Fault::from),
        }
    }

    /// The JSON of a message that is a list of texts: never `null`, since it is the value of maps,
    /// where Go starts from an empty list.
    fn strings(&mut self, bytes: &[u8], depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag()? {
            if tag.number == 1 {
                self.append(&mut items, Kind::String, tag, &mut reader, depth)?;
            } else {
                reader.skip(tag)?;
            }
        }
        Ok(Value::Array(items))
    }

    /// The JSON of a field, if it has any.
    fn finish(
        &mut self,
        field: &'t Field,
        slot: Slot<'_>,
        depth: usize,
    ) -> Result<Option<Value>, Fault> {
        let value = match slot {
            Slot::Absent => {
                return match field.presence {
                    Presence::NotZero | Presence::Given | Presence::Inline => Ok(None),
                    Presence::GivenOrNull => Ok(Some(Value::Null)),
                    Presence::Always if field.shape != Shape::One => Ok(Some(Value::Null)),
                    Presence::Always => self.zero(field.kind, depth).map(Some),
                };
            }
            Slot::Value(value) => value,
            Slot::Message(bytes) => self.nested(field.kind, &bytes, depth)?,
            // Nothing but an empty run of numbers makes an empty list.
            Slot::List(items) if items.is_empty() => {
                return self.finish(field, Slot::Absent, depth);
            }
            Slot::List(items) => Value::Array(items),
            Slot::Map(entries) => Value::Object(entries),
        };
        let is_left_out = field.presence == Presence::NotZero && is_zero(&value);
        Ok((!is_left_out).then_some(value))
    }

    /// What Go has where nothing was given.
    fn zero(&mut self, kind: Kind, depth: usize) -> Result<Value, Fault> {
        self.spend()?;
        Ok(match kind {
            Kind::String => Value::String(String::new()),
            Kind::Bool => Value::Bool(false),
            Kind::Int32 | Kind::Int64 | Kind::Double => Value::from(0),
            Kind::Bytes | Kind::Json => Value::Null,
            _ => return self.nested(kind, &[], depth),
        })
    }

    fn spend(&mut self) -> Result<(), Reason> {
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or(Reason::TooManyValues)?;
        Ok(())
    }
}

fn deeper(depth: usize) -> Result<usize, Reason> {
    if depth >= MAX_DEPTH {
        return Err(Reason::TooDeep);
    }
    Ok(depth + 1)
}

/// The fault as seen from outside of a field, if the field is one in JSON as well.
fn outside(fault: Fault, message: &Message, field: &Field) -> Fault {
    if message.is_choice || field.presence == Presence::Inline {
        return fault;
    }
    fault.within(field.name)
}

/// The JSON of a message that is a single value in JSON.
fn small_message(kind: Kind, bytes: &[u8]) -> Result<Value, Reason> {
    match kind {
        Kind::Time => time::time(bytes),
        Kind::MicroTime => time::micro_time(bytes),
        Kind::Quantity => scalar::quantity(bytes),
        Kind::IntOrString => scalar::int_or_string(bytes),
        _ => Ok(Value::Null),
    }
}

/// Whether values of the type are messages on the wire.
fn is_message(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Message(_)
            | Kind::Time
            | Kind::MicroTime
            | Kind::Quantity
            | Kind::IntOrString
            | Kind::Strings
    )
}

/// How values of the type are encoded.
fn wire_type(kind: Kind) -> WireType {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => WireType::Varint,
        Kind::Double => WireType::Fixed64,
        _ => WireType::Bytes,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
