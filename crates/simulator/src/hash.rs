//! Hashes that are stable forever: they end up in names.

/// FNV-1a of 32 bits, which Kubernetes uses for the hashes in its names.
pub(crate) fn fnv32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// A number as Kubernetes writes it into names: no vowels, so that it makes no words.
pub(crate) fn safe_text(number: u32) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let digits = number.to_string();
    digits
        .bytes()
        .map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()]))
        .collect()
}

/// Sixty-four hexadecimal digits that look like a digest.
pub(crate) fn hexadecimal(seed: &str) -> String {
    let parts: Vec<String> = (0..8_u8)
        .map(|part| format!("{:08x}", fnv32(seed.bytes().chain([part]))))
        .collect();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kubernetes() {
        assert_eq!(fnv32(*b"foobar"), 0xbf9c_f968);
        assert_eq!(safe_text(0).len(), 1);
        assert_eq!(hexadecimal("x").len(), 64);
        assert_ne!(hexadecimal("x"), hexadecimal("y"));
    }
}
