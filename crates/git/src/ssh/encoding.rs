//! The encoding of SSH: strings with their length before them, numbers, lists of names.

/// Appends a string.
pub fn put_string(message: &mut Vec<u8>, content: &[u8]) {
    // Everything that is written here is shorter than a packet.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    put_u32(message, length);
    message.extend_from_slice(content);
}

/// Appends a number of 32 bits.
pub fn put_u32(message: &mut Vec<u8>, number: u32) {
    message.extend_from_slice(&number.to_be_bytes());
}

/// Appends a positive number of any size, given by its bytes, the highest first.
pub fn put_mpint(message: &mut Vec<u8>, bytes: &[u8]) {
    let first = bytes.iter().position(|byte| *byte != 0);
    let bytes = first.map_or(&[][..], |first| &bytes[first..]);
    let mut number = Vec::with_capacity(bytes.len() + 1);
    if bytes.first().is_some_and(|byte| *byte >= 0x80) {
        number.push(0);
    }
    number.extend_from_slice(bytes);
    put_string(message, &number);
}

/// Reads values from the front of bytes. Each method returns none if there are too few of them.
#[derive(Debug, Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// So many bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A string.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// A string that is text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A positive number of any size, without leading zeros. Negative ones are refused.
    pub fn mpint(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        if bytes.first().is_some_and(|byte| *byte >= 0x80) {
            return None;
        }
        let first = bytes.iter().position(|byte| *byte != 0);
        Some(first.map_or(&[], |first| &bytes[first..]))
    }

    /// A number as so many bytes.
    pub fn padded(&mut self, length: usize) -> Option<Vec<u8>> {
        let number = self.mpint()?;
        let missing = length.checked_sub(number.len())?;
        let mut bytes = vec![0; missing];
        bytes.extend_from_slice(number);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be_and_positive() {
        let encoded = |bytes: &[u8]| {
            let mut message = Vec::new();
            put_mpint(&mut message, bytes);
            message
        };
        assert_eq!(encoded(&[]), [0, 0, 0, 0]);
        assert_eq!(encoded(&[0, 0]), [0, 0, 0, 0]);
        assert_eq!(encoded(&[0, 0x80]), [0, 0, 0, 2, 0, 0x80]);
        assert_eq!(encoded(&[0x12, 0x34]), [0, 0, 0, 2, 0x12, 0x34]);
        let message = encoded(&[0x80]);
        assert_eq!(Reader::new(&message).padded(2), Some(vec![0, 0x80]));
        assert_eq!(Reader::new(&message).padded(0), None);
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0x80]).mpint(), None);
    }

    #[test]
    fn what_is_cut_short_is_not_read() {
        assert_eq!(Reader::new(&[0, 0, 0, 2, 1]).string(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 1]).string(), None);
        assert_eq!(Reader::new(&[0, 0, 0]).u32(), None);
        assert_eq!(Reader::new(&[]).byte(), None);
    }
}
