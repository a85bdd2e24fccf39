//! The bytes of one record in the log.

use bytes::Bytes;

use crate::value::{DecodeError, Revision, Value};

/// One record, as far as it is stored; the revision is part of the row's key.
///
/// Layout, integers little-endian: kind (1 byte: 0 put, 1 delete), created (8), time (8), length of
/// the key (4), key, value.
pub(super) struct Row<'a> {
    pub(super) is_delete: bool,
    pub(super) created: Revision,
    /// Milliseconds since 1970.
    pub(super) time: i64,
    pub(super) key: &'a str,
    pub(super) value: &'a [u8],
}

const HEADER: usize = 1 + 8 + 8 + 4;

impl<'a> Row<'a> {
    pub(super) fn encoded_length(&self) -> usize {
        HEADER + self.key.len() + self.value.len()
    }

    /// Writes the row to a buffer of [`Self::encoded_length`].
    pub(super) fn encode(&self, buffer: &mut [u8]) {
        // A key of 4 GiB does not fit into a value of the database, which refuses it before.
        let key_length = u32::try_from(self.key.len()).unwrap_or(u32::MAX);
        let mut rest = buffer;
        for part in [
            &[u8::from(self.is_delete)][..],
            &self.created.to_le_bytes(),
            &self.time.to_le_bytes(),
            &key_length.to_le_bytes(),
            self.key.as_bytes(),
            self.value,
        ] {
            let (to, after) = rest.split_at_mut(part.len());
            to.copy_from_slice(part);
            rest = after;
        }
    }

    /// Reads a row; nothing if the bytes are none.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (created, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (key_length, rest) = rest.split_first_chunk()?;
        let key_length = usize::try_from(u32::from_le_bytes(*key_length)).ok()?;
        let (key, value) = rest.split_at_checked(key_length)?;
        Some(Self {
            is_delete: match kind {
                0 => false,
                1 => true,
                _ => return None,
            },
            created: Revision::from_le_bytes(*created),
            time: i64::from_le_bytes(*time),
            key: str::from_utf8(key).ok()?,
            value,
        })
    }

    /// The value itself.
    pub(super) fn value<V: Value>(&self) -> Result<V, DecodeError> {
        V::decode(Bytes::copy_from_slice(self.value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_is_read_as_it_was_written(
            is_delete in any::<bool>(),
            created in any::<Revision>(),
            time in any::<i64>(),
            key in ".{0,20}",
            value in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let (key, value) = (key.as_str(), value.as_slice());
            let row = Row { is_delete, created, time, key, value };
            let mut bytes = vec![0; row.encoded_length()];
            row.encode(&mut bytes);
            let read = Row::decode(&bytes).unwrap();
            prop_assert_eq!(
                (read.is_delete, read.created, read.time, read.key, read.value),
                (is_delete, created, time, key, value)
            );
            // A row that has lost its end is still one if only the value is shorter.
            let shortest = HEADER + key.len();
            for length in 0..shortest {
                prop_assert!(Row::decode(&bytes[..length]).is_none());
            }
        }

        #[test]
        fn any_bytes_can_be_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(row) = Row::decode(&bytes) {
                let mut again = vec![0; row.encoded_length()];
                row.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
