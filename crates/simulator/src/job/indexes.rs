//! Sets of completion indexes, written as `1,3-5,7`.

use std::collections::BTreeSet;
use std::fmt;

/// Indexes that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<u32>);

impl Indexes {
    /// Reads a set of indexes below that number; what makes no sense is left out.
    pub(super) fn parse(text: &str, total: u32) -> Self {
        let mut indexes = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
                indexes.extend(first..total.min(last.saturating_add(1)));
            }
        }
        Self(indexes)
    }

    pub(super) fn insert(&mut self, index: u32) {
        self.0.insert(index);
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are in both sets.
    pub(super) fn overlap(&self, other: &Self) -> usize {
        self.0.intersection(&other.0).count()
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for index in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                _ => runs.push((*index, *index)),
            }
        }
        let parts: Vec<String> = runs
            .into_iter()
            .map(|(first, last)| match last - first {
                0 => first.to_string(),
                // Two neighbours are listed, more are a range.
                1 => format!("{first},{last}"),
                _ => format!("{first}-{last}"),
            })
            .collect();
        formatter.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_are_written_as_ranges() {
        assert_eq!(Indexes::parse("1,3,4,5,7,8", 9).to_string(), "1,3-5,7,8");
        assert_eq!(Indexes::parse("", 9).to_string(), "");
        assert_eq!(Indexes::parse("x,-,2", 9).to_string(), "2");
        assert_eq!(Indexes::parse("1-4000000000,12", 3).to_string(), "1,2");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(set in prop::collection::btree_set(0_u32..200, 0..50)) {
            let indexes = Indexes(set);
            prop_assert_eq!(Indexes::parse(&indexes.to_string(), 200), indexes);
        }
    }
}
