//! Sets of fields: who owns what, as `managedFields` records it.
//!
//! A set is a tree of path elements; a path belongs to the set when its last node is a member.
//! Owning a field says nothing about owning its parent or its children.
//! [`FieldSet::from_json`] and [`FieldSet::to_json`] read and write the `FieldsV1` form.

use std::cmp::Ordering;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::MAX_DEPTH;
use crate::path::{Path, PathElement, PathElementError};

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, each once; a node is a member, has children, or both.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    element: PathElement,
    member: bool,
    children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

/// Why a `fieldsV1` value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FieldSetError {
    /// A level of the tree is not an object.
    #[error("error decoding set: expect {{ or n, but found {0}")]
    NotAnObject(String),
    /// A name is not a path element.
    #[error("error decoding set: parsing key as path element: {0}")]
    Element(#[from] PathElementError),
    /// Nested deeper than any object may be.
    #[error("error decoding set: nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of paths made of object members only; the usual way to write one down.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&Path::fields(path.iter().copied()).0);
        }
        set
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.children.len())
            .sum()
    }

    /// Adds a path; its parents are not added. The empty path is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.node_mut(first);
        if rest.is_empty() {
            node.member = true;
        } else {
            node.children.insert(rest);
        }
    }

    fn node_mut(&mut self, element: &PathElement) -> &mut Node {
        let index = match self.position(element) {
            Ok(index) => index,
            Err(index) => {
                self.nodes.insert(
                    index,
                    Node {
                        element: element.clone(),
                        member: false,
                        children: Self::new(),
                    },
                );
                index
            }
        };
        &mut self.nodes[index]
    }

    fn position(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Whether the path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        let Some((member, children)) = self.get(first) else {
            return false;
        };
        if rest.is_empty() {
            member
        } else {
            children.contains(rest)
        }
    }

    /// Whether one step is a member, and the set below it.
    pub(crate) fn get(&self, element: &PathElement) -> Option<(bool, &FieldSet)> {
        let node = &self.nodes[self.position(element).ok()?];
        Some((node.member, &node.children))
    }

    /// Adds a node to a set under construction; [`FieldSet::finish`] restores the order.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if member || !children.is_empty() {
            self.nodes.push(Node {
                element,
                member,
                children,
            });
        }
    }

    /// Sorts what was pushed and joins what was pushed twice.
    pub(crate) fn finish(mut self) -> Self {
        if self
            .nodes
            .is_sorted_by(|left, right| left.element < right.element)
        {
            return self;
        }
        self.nodes
            .sort_by(|left, right| left.element.cmp(&right.element));
        let mut joined: Vec<Node> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            match joined.last_mut() {
                Some(last) if last.element == node.element => {
                    last.member |= node.member;
                    last.children = std::mem::take(&mut last.children).union(node.children);
                }
                _ => joined.push(node),
            }
        }
        Self { nodes: joined }
    }

    /// Every node of the top level: its element, whether it is a member, and what is below.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.nodes
            .iter()
            .map(|node| (&node.element, node.member, &node.children))
    }

    /// All paths of any of the sets; pairs of sets are joined first, so that many cost no more than
    /// their paths.
    pub(crate) fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            let mut joined = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(left) = rest.next() {
                joined.push(left.union(rest.next().unwrap_or_default()));
            }
            sets = joined;
        }
        sets.pop().unwrap_or_default()
    }

    /// All paths of either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut left = self.nodes.into_iter().peekable();
        let mut right = other.nodes.into_iter().peekable();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(l), Some(r)) => l.element.cmp(&r.element),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match order {
                Ordering::Less => nodes.extend(left.next()),
                Ordering::Greater => nodes.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(l), Some(r)) = (left.next(), right.next()) {
                        nodes.push(Node {
                            element: l.element,
                            member: l.member || r.member,
                            children: l.children.union(r.children),
                        });
                    }
                }
            }
        }
        Self { nodes }
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::new();
        self.join(other, |node, matched| {
            if let Some(matched) = matched {
                out.push_from(
                    node,
                    node.member && matched.member,
                    node.children.intersection(&matched.children),
                );
            }
        });
        out
    }

    /// The paths of this set that are not in the other one; children stay when only their parent is
    /// taken away.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut out = Self::new();
        self.join(other, |node, matched| match matched {
            None => out.nodes.push(node.clone()),
            Some(matched) => out.push_from(
                node,
                node.member && !matched.member,
                node.children.difference(&matched.children),
            ),
        });
        out
    }

    /// The paths of this set that are neither in the other one nor below a path of it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut out = Self::new();
        self.join(other, |node, matched| match matched {
            None => out.nodes.push(node.clone()),
            Some(matched) if matched.member => {}
            Some(matched) => out.push_from(
                node,
                node.member,
                node.children.recursive_difference(&matched.children),
            ),
        });
        out
    }

    /// The paths below which no other path of the set lies.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let mut out = Self::new();
        for node in &self.nodes {
            let children = node.children.leaves();
            out.push_from(node, node.member && children.is_empty(), children);
        }
        out
    }

    /// Whether every path of this set is in the other one.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut subset = true;
        self.join(other, |node, matched| {
            subset &= matched.is_some_and(|matched| {
                (!node.member || matched.member) && node.children.is_subset(&matched.children)
            });
        });
        subset
    }

    fn push_from(&mut self, node: &Node, member: bool, children: FieldSet) {
        if member || !children.is_empty() {
            self.nodes.push(Node {
                element: node.element.clone(),
                member,
                children,
            });
        }
    }

    /// Calls `visit` for every node of this set, in order, with the node of `other` at the same
    /// place.
    fn join<'a>(&'a self, other: &'a Self, mut visit: impl FnMut(&'a Node, Option<&'a Node>)) {
        let mut partners = Partners::new(&other.nodes, self.nodes.len());
        for node in &self.nodes {
            visit(node, partners.next(&node.element));
        }
    }

    /// Removes paths in place, returning whether any was there.
    pub(crate) fn subtract(&mut self, other: &Self) -> bool {
        if other.is_empty() {
            return false;
        }
        let mut changed = false;
        let mut partners = Partners::new(&other.nodes, self.nodes.len());
        self.nodes.retain_mut(|node| {
            if let Some(matched) = partners.next(&node.element) {
                if matched.member && node.member {
                    node.member = false;
                    changed = true;
                }
                changed |= node.children.subtract(&matched.children);
            }
            !node.is_empty()
        });
        changed
    }

    /// Calls `visit` for each path: all members of a level first, then what is below each of them.
    pub fn for_each(&self, visit: &mut impl FnMut(&[PathElement])) {
        let mut prefix = Vec::new();
        self.for_each_below(&mut prefix, visit);
    }

    fn for_each_below(
        &self,
        prefix: &mut Vec<PathElement>,
        visit: &mut impl FnMut(&[PathElement]),
    ) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.push(node.element.clone());
            visit(prefix);
            prefix.pop();
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.for_each_below(prefix, visit);
            prefix.pop();
        }
    }

    /// All paths, in the order of [`FieldSet::for_each`].
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.for_each(&mut |path| paths.push(Path(path.to_vec())));
        paths
    }

    /// Reads the `FieldsV1` form. Path elements of an unknown type are skipped, as Kubernetes does.
    pub fn from_json(fields: &Value) -> Result<Self, FieldSetError> {
        Self::read(fields, 0).map(|(set, _)| set)
    }

    /// The set below, and whether the place itself is a member.
    fn read(fields: &Value, depth: usize) -> Result<(Self, bool), FieldSetError> {
        if depth > MAX_DEPTH {
            return Err(FieldSetError::TooDeep);
        }
        let members = match fields {
            Value::Null => return Ok((Self::new(), true)),
            Value::Object(members) => members,
            other => {
                let found = other.to_string().chars().take(1).collect();
                return Err(FieldSetError::NotAnObject(found));
            }
        };
        let mut set = Self {
            nodes: Vec::with_capacity(members.len()),
        };
        let mut member = false;
        for (name, below) in members {
            if name == "." {
                member = true;
                continue;
            }
            match PathElement::parse(name) {
                Ok(element) => {
                    let (children, member) = Self::read(below, depth + 1)?;
                    set.push(element, member, children);
                }
                Err(PathElementError::UnknownType) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let set = set.finish();
        let member = member || set.is_empty();
        Ok((set, member))
    }

    /// The `FieldsV1` form.
    ///
    /// A JSON object of this crate has no order; [`FieldSet::to_json_text`] has Kubernetes' order.
    pub fn to_json(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, include_self: bool) -> Map<String, Value> {
        let mut map = Map::new();
        if include_self && !self.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in &self.nodes {
            let mut name = String::new();
            node.element.write(&mut name);
            map.insert(name, Value::Object(node.children.to_map(node.member)));
        }
        map
    }

    /// The `FieldsV1` form as text, byte for byte as Kubernetes writes it.
    pub fn to_json_text(&self) -> String {
        let mut out = String::new();
        self.write_text(false, &mut out);
        out
    }

    fn write_text(&self, include_self: bool, out: &mut String) {
        out.push('{');
        let mut first = true;
        let mut separate = |out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
        };
        if include_self && !self.is_empty() {
            separate(out);
            out.push_str("\".\":{}");
        }
        for node in &self.nodes {
            separate(out);
            let mut name = String::new();
            node.element.write(&mut name);
            crate::path::write_json_text(&name, out);
            out.push(':');
            node.children.write_text(node.member, out);
        }
        out.push('}');
    }
}

/// Finds the nodes of a set that are at the same places as those of another, in order.
struct Partners<'a> {
    rest: &'a [Node],
    /// True if there are so many more of them that each is better searched for.
    searches: bool,
}

impl<'a> Partners<'a> {
    fn new(nodes: &'a [Node], wanted: usize) -> Self {
        Self {
            rest: nodes,
            searches: wanted < nodes.len() / 16,
        }
    }

    /// The node at a place that is behind all that were asked for before.
    fn next(&mut self, element: &PathElement) -> Option<&'a Node> {
        let before = |node: &Node| node.element < *element;
        let skipped = if self.searches {
            self.rest.partition_point(before)
        } else {
            self.rest.iter().take_while(|node| before(node)).count()
        };
        self.rest = &self.rest[skipped..];
        let (first, rest) = self.rest.split_first()?;
        if first.element != *element {
            return None;
        }
        self.rest = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests;
