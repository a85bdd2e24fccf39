//! A document while a patch is applied to it.
//!
//! Containers that operations pass through are opened, and lists that are open are kept in chunks: an
//! operation costs what it names, not what stands behind it in a list. What no operation touches
//! stays as it was.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::MAX_DEPTH;

/// A part of a document.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// As it was.
    Closed(Value),
    Object(BTreeMap<String, Node>),
    List(Items),
}

impl Node {
    /// Opens a container; false if this is none.
    pub(super) fn open(&mut self) -> bool {
        let Self::Closed(value) = self else {
            return true;
        };
        *self = match std::mem::take(value) {
            Value::Object(members) => {
                let members = members.into_iter();
                Self::Object(members.map(|(name, value)| (name, value.into())).collect())
            }
            Value::Array(items) => Self::List(items.into_iter().map(Node::from).collect()),
            other => {
                *value = other;
                return false;
            }
        };
        true
    }

    /// The same as a JSON value.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Closed(value) => value,
            Self::Object(members) => {
                let members = members.into_iter();
                members
                    .map(|(name, node)| (name, node.into_value()))
                    .collect()
            }
            Self::List(items) => {
                let items = items.chunks.into_iter().flatten();
                items.map(Node::into_value).collect()
            }
        }
    }

    /// True if this is that value.
    pub(super) fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Closed(own), value) => own == value,
            (Self::Object(own), Value::Object(members)) => {
                own.len() == members.len()
                    && own
                        .iter()
                        .zip(members)
                        .all(|((name, node), (other, value))| name == other && node.is(value))
            }
            (Self::List(own), Value::Array(items)) => {
                own.length == items.len()
                    && own
                        .chunks
                        .iter()
                        .flatten()
                        .zip(items)
                        .all(|(node, value)| node.is(value))
            }
            _ => false,
        }
    }

    /// How deep this is nested; no deeper than just beyond what is allowed.
    pub(super) fn depth(&self) -> usize {
        self.depth_below(MAX_DEPTH + 1)
    }

    fn depth_below(&self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        let below = match self {
            Self::Closed(value) => return depth_of(value, most),
            Self::Object(members) => {
                let members = members.values();
                members.map(|node| node.depth_below(most - 1)).max()
            }
            Self::List(items) => {
                let items = items.chunks.iter().flatten();
                items.map(|node| node.depth_below(most - 1)).max()
            }
        };
        1 + below.unwrap_or(0)
    }
}

fn depth_of(value: &Value, most: usize) -> usize {
    if most == 0 {
        return 0;
    }
    let below = match value {
        Value::Object(members) => members
            .values()
            .map(|value| depth_of(value, most - 1))
            .max(),
        Value::Array(items) => items.iter().map(|value| depth_of(value, most - 1)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self::Closed(value)
    }
}

/// The items of a list, in chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Items {
    /// None of them is empty.
    chunks: Vec<Vec<Node>>,
    length: usize,
}

impl Items {
    /// A chunk that has more items is cut in two.
    const CHUNK: usize = 512;

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The chunk of an item, and its place in there; the end of the last chunk for what is beyond.
    fn locate(&self, index: usize) -> (usize, usize) {
        let mut rest = index;
        for (number, chunk) in self.chunks.iter().enumerate() {
            if rest < chunk.len() || number + 1 == self.chunks.len() {
                return (number, rest.min(chunk.len()));
            }
            rest -= chunk.len();
        }
        (0, 0)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Node> {
        let (chunk, place) = self.locate(index);
        self.chunks.get(chunk)?.get(place)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Node> {
        let (chunk, place) = self.locate(index);
        self.chunks.get_mut(chunk)?.get_mut(place)
    }

    /// Inserts before an item, or at the end.
    pub(super) fn insert(&mut self, index: usize, node: Node) {
        let (number, place) = self.locate(index);
        self.length += 1;
        let Some(chunk) = self.chunks.get_mut(number) else {
            self.chunks.push(vec![node]);
            return;
        };
        chunk.insert(place, node);
        if chunk.len() > Self::CHUNK {
            let second = chunk.split_off(Self::CHUNK / 2);
            self.chunks.insert(number + 1, second);
        }
    }

    /// Takes an item out.
    pub(super) fn remove(&mut self, index: usize) -> Option<Node> {
        if index >= self.length {
            return None;
        }
        let (number, place) = self.locate(index);
        let chunk = self.chunks.get_mut(number)?;
        let node = chunk.remove(place);
        if chunk.is_empty() {
            self.chunks.remove(number);
        }
        self.length -= 1;
        Some(node)
    }
}

impl FromIterator<Node> for Items {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> Self {
        let mut items = Self::default();
        let mut chunk = Vec::new();
        for node in nodes {
            chunk.push(node);
            items.length += 1;
            if chunk.len() == Self::CHUNK {
                items.chunks.push(std::mem::take(&mut chunk));
            }
        }
        if !chunk.is_empty() {
            items.chunks.push(chunk);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_lists_are_edited_as_short_ones() {
        let mut wanted: Vec<Value> = (0..3_000).map(Value::from).collect();
        let mut node = Node::from(Value::from(wanted.clone()));
        assert!(node.open());
        let Node::List(items) = &mut node else {
            panic!("not a list");
        };
        let mut place = 7;
        for step in 0..4_000_usize {
            place = (place * 31 + step) % (wanted.len() + 1);
            if step % 3 == 0 && place < wanted.len() {
                let removed = items.remove(place).unwrap();
                assert!(removed.is(&wanted.remove(place)));
            } else {
                items.insert(place, json!(-1).into());
                wanted.insert(place, json!(-1));
            }
        }
        assert_eq!(items.len(), wanted.len());
        assert!(items.remove(wanted.len()).is_none() && items.get(wanted.len()).is_none());
        let wanted = Value::from(wanted);
        assert!(node.is(&wanted));
        assert_eq!(node.into_value(), wanted);
    }

    #[test]
    fn depth_counts_containers() {
        let cases = [(json!(1), 0), (json!({}), 1), (json!({"a": [1, {}]}), 3)];
        for (value, depth) in cases {
            let mut node = Node::from(value);
            assert_eq!(node.depth(), depth);
            node.open();
            assert_eq!(node.depth(), depth);
        }
        let deep = (0..2 * MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(Node::from(deep).depth(), MAX_DEPTH + 1);
    }
}
