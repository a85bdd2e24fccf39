//! What surrounds the message: a prefix, and an envelope that says what the message is.

use crate::error::{DecodeError, Reason};
use crate::scalar;
use crate::wire::{Reader, WireType};
use crate::{MEDIA_TYPE, PREFIX};

/// An opened envelope.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The object as a message of that kind.
    pub(crate) message: &'a [u8],
    content_type: String,
    content_encoding: String,
}

/// Opens the envelope of a body.
pub(crate) fn open(body: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    let bytes = body.strip_prefix(PREFIX).ok_or(DecodeError::NotProtobuf)?;
    let envelope = read(bytes).map_err(DecodeError::Envelope)?;
    let Envelope {
        content_type,
        content_encoding,
        ..
    } = &envelope;
    for (property, value, allowed) in [
        ("contentEncoding", content_encoding, ""),
        ("contentType", content_type, MEDIA_TYPE),
    ] {
        if !value.is_empty() && value != allowed {
            let value = value.clone();
            return Err(DecodeError::UnsupportedContent { property, value });
        }
    }
    if envelope.api_version.is_empty() || envelope.kind.is_empty() {
        return Err(DecodeError::Untyped);
    }
    Ok(envelope)
}

/// The fields of `runtime.Unknown`.
fn read(bytes: &[u8]) -> Result<Envelope<'_>, Reason> {
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        if tag.number > 4 {
            reader.skip(tag)?;
            continue;
        }
        tag.expect(WireType::Bytes)?;
        let value = reader.bytes()?;
        match tag.number {
            1 => read_type(value, &mut envelope)?,
            2 => envelope.message = value,
            3 => envelope.content_encoding = scalar::text(value),
            _ => envelope.content_type = scalar::text(value),
        }
    }
    Ok(envelope)
}

/// The fields of `runtime.TypeMeta`.
fn read_type(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), Reason> {
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        let field = match tag.number {
            1 => &mut envelope.api_version,
            2 => &mut envelope.kind,
            _ => {
                reader.skip(tag)?;
                continue;
            }
        };
        tag.expect(WireType::Bytes)?;
        *field = scalar::text(reader.bytes()?);
    }
    Ok(())
}
