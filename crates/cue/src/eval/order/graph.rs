//! A graph of labels, sorted so that edges point forwards; cycles and ties go by name.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::label::Label;
use crate::quick::{QuickMap, QuickSet};

/// Labels and the edges between them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    labels: Vec<Label>,
    index: QuickMap<Label, usize>,
    outgoing: Vec<Vec<usize>>,
    edges: QuickSet<(usize, usize)>,
}

impl Graph {
    /// The node of a label, made on first use.
    pub(super) fn node(&mut self, label: Label) -> usize {
        if let Some(node) = self.index.get(&label) {
            return *node;
        }
        let node = self.labels.len();
        self.index.insert(label, node);
        self.labels.push(label);
        self.outgoing.push(Vec::new());
        node
    }

    /// Says that one label comes before another.
    pub(super) fn edge(&mut self, from: Label, to: Label) {
        let (from, to) = (self.node(from), self.node(to));
        if from != to && self.edges.insert((from, to)) {
            self.outgoing[from].push(to);
        }
    }

    /// All labels in order: of those that nothing unsorted precedes, always the one first by name.
    /// Labels on a cycle stay together, sorted by name.
    pub(super) fn sort(&self, compare: impl Fn(Label, Label) -> Ordering) -> Vec<Label> {
        let mut by_name: Vec<usize> = (0..self.labels.len()).collect();
        by_name.sort_by(|left, right| compare(self.labels[*left], self.labels[*right]));
        let mut rank = vec![0; self.labels.len()];
        for (position, node) in by_name.iter().enumerate() {
            rank[*node] = position;
        }
        let mut components = self.components();
        let mut component_of = vec![0; self.labels.len()];
        for (index, component) in components.iter_mut().enumerate() {
            component.sort_by_key(|node| rank[*node]);
            for node in component {
                component_of[*node] = index;
            }
        }
        let mut blockers = vec![0usize; components.len()];
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); components.len()];
        for (from, to) in &self.edges {
            let (from, to) = (component_of[*from], component_of[*to]);
            if from != to {
                next[from].push(to);
                blockers[to] += 1;
            }
        }
        let entry = |component: usize| Reverse((rank[components[component][0]], component));
        let mut ready: BinaryHeap<Reverse<(usize, usize)>> = (0..components.len())
            .filter(|index| blockers[*index] == 0)
            .map(entry)
            .collect();
        let mut sorted = Vec::with_capacity(self.labels.len());
        while let Some(Reverse((_, component))) = ready.pop() {
            sorted.extend(components[component].iter().map(|node| self.labels[*node]));
            for follower in &next[component] {
                blockers[*follower] -= 1;
                if blockers[*follower] == 0 {
                    ready.push(entry(*follower));
                }
            }
        }
        sorted
    }

    /// The strongly connected components, found by two searches: one for the order in which nodes
    /// are finished, one against the edges in the reverse of that order. Both use a stack of their
    /// own, since the number of fields comes from the input.
    fn components(&self) -> Vec<Vec<usize>> {
        let count = self.labels.len();
        let mut incoming = vec![Vec::new(); count];
        for (from, to) in &self.edges {
            incoming[*to].push(*from);
        }
        let mut finished = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        for start in 0..count {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut stack = vec![(start, 0)];
            while let Some((node, position)) = stack.last_mut() {
                if let Some(follower) = self.outgoing[*node].get(*position).copied() {
                    *position += 1;
                    if !std::mem::replace(&mut seen[follower], true) {
                        stack.push((follower, 0));
                    }
                } else {
                    finished.push(*node);
                    stack.pop();
                }
            }
        }
        let mut components = Vec::new();
        let mut taken = vec![false; count];
        for start in finished.into_iter().rev() {
            if std::mem::replace(&mut taken[start], true) {
                continue;
            }
            let mut component = Vec::new();
            let mut stack = vec![start];
            while let Some(node) = stack.pop() {
                component.push(node);
                for before in &incoming[node] {
                    if !std::mem::replace(&mut taken[*before], true) {
                        stack.push(*before);
                    }
                }
            }
            components.push(component);
        }
        components
    }
}

#[cfg(test)]
mod tests {
    use super::Graph;
    use crate::label::Label;

    /// Sorts numbers under the given edges; ties go by size.
    fn sorted(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
        let mut graph = Graph::default();
        for number in 0..count {
            graph.node(Label::index(number));
        }
        for (from, to) in edges {
            graph.edge(Label::index(*from), Label::index(*to));
        }
        let order = graph.sort(|left, right| left.as_index().cmp(&right.as_index()));
        order.into_iter().filter_map(Label::as_index).collect()
    }

    #[test]
    fn edges_point_forwards_and_ties_go_by_name() {
        assert_eq!(sorted(3, &[]), [0, 1, 2]);
        assert_eq!(sorted(3, &[(2, 0)]), [1, 2, 0]);
        assert_eq!(sorted(4, &[(3, 1), (1, 0)]), [2, 3, 1, 0]);
    }

    #[test]
    fn labels_on_a_cycle_stay_together_sorted_by_name() {
        assert_eq!(sorted(4, &[(3, 2), (2, 3), (3, 0)]), [1, 2, 3, 0]);
    }
}
