//! A list that is nearly always empty and then takes the space of a pointer.
//!
//! Nodes have many lists of which most nodes use none; the size of a node is what a render costs.

use std::ops::Deref;

/// See the module.
#[derive(Debug, Clone)]
#[expect(
    clippy::box_collection,
    reason = "a box is a third of the size of a vector"
)]
pub(crate) struct RareVec<T>(Option<Box<Vec<T>>>);

impl<T> RareVec<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

impl<T> Default for RareVec<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for RareVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T> std::ops::DerefMut for RareVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<T> From<Vec<T>> for RareVec<T> {
    fn from(items: Vec<T>) -> Self {
        Self((!items.is_empty()).then(|| Box::new(items)))
    }
}

impl<T> IntoIterator for RareVec<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map_or_else(Vec::new, |items| *items).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a RareVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::RareVec;

    #[test]
    fn an_empty_list_is_as_small_as_a_pointer_and_reads_as_empty() {
        let list: RareVec<[u64; 8]> = RareVec::default();
        assert!(list.is_empty());
        assert_eq!(size_of_val(&list), size_of::<usize>());
    }

    #[test]
    fn items_come_back_in_the_order_they_were_pushed() {
        let mut list = RareVec::from(vec![1]);
        list.push(2);
        assert_eq!(list[..], [1, 2]);
        assert_eq!(list.clone().into_iter().collect::<Vec<_>>(), [1, 2]);
        list.clear();
        assert!(list.is_empty());
    }
}
