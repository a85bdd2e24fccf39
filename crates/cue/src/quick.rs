//! Hash maps for keys that are small numbers of our own making.
//!
//! Such keys cannot be chosen by an attacker, so a multiplication is hash enough; text from outside
//! belongs in the maps of the standard library.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from identifiers.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// A set of identifiers.
pub(crate) type QuickSet<K> = HashSet<K, BuildHasherDefault<QuickHasher>>;

/// Mixes each number into the state by one multiplication.
#[derive(Debug, Default, Clone)]
pub(crate) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        // The table takes its buckets from the low bits and its tags from the high ones.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::QuickMap;

    #[test]
    fn every_key_finds_its_value_again() {
        let map: QuickMap<(u32, u32), u32> =
            (0..10_000_u32).map(|key| ((key, key * 64), key)).collect();
        assert_eq!(map.len(), 10_000);
        assert!((0..10_000).all(|key| map.get(&(key, key * 64)) == Some(&key)));
    }
}
