//! The alternatives that survive, and which of them are defaults.
//!
//! Alternatives are tried one complete choice of terms after the other, whereas marks combine one
//! disjunction after the other ([`marks`](super::marks)). So each survivor remembers the disjunctions it
//! passed, and the stages are gone through afterwards.

use super::marks::{Branch, Mode, Stage};
use super::{Evaluator, NodeId};

/// A disjunction by its key, and in how many terms of others it is nested.
pub(super) type Level = (u64, u32);

/// A disjunction passed on the way to an alternative, and the mark of the term chosen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) key: u64,
    pub(super) choice: u32,
    pub(super) mode: Mode,
    pub(super) level: u32,
}

/// An alternative that survived, with the disjunctions it passed.
pub(super) struct Leaf {
    /// None if it fell victim to a later disjunction: its marks have counted until then.
    pub(super) node: NodeId,
    pub(super) passed: Vec<Passed>,
}

/// Leaves that took the same terms so far, and the number of disjunctions they passed.
#[derive(Debug, Clone)]
struct Prefix {
    leaves: Vec<usize>,
    passed: usize,
}

impl Prefix {
    /// The level of the next disjunction, if there is one.
    fn next_level(&self, leaves: &[Leaf]) -> Option<u32> {
        let mut next = self
            .leaves
            .iter()
            .filter_map(|leaf| leaves[*leaf].passed.get(self.passed));
        next.next().map(|next| next.level)
    }
}

impl Evaluator {
    /// Works out which of the surviving alternatives are defaults, and merges equal ones.
    pub(super) fn combine_leaves(&mut self, leaves: Vec<Leaf>) -> Vec<(NodeId, Mode)> {
        let all = Branch {
            value: Prefix {
                leaves: (0..leaves.len()).collect(),
                passed: 0,
            },
            mode: Mode::Maybe,
            own: Mode::Maybe,
        };
        let mut modes = vec![Mode::Maybe; leaves.len()];
        for branch in self.pass_all(&leaves, all, 0) {
            for leaf in branch.value.leaves {
                modes[leaf] = branch.mode;
            }
        }
        let mut unique: Vec<(NodeId, Mode)> = Vec::new();
        for (leaf, mode) in leaves.into_iter().zip(modes) {
            if leaf.node.is_none() {
                continue;
            }
            let known = unique
                .iter()
                .position(|(other, _)| self.nodes_equal(*other, leaf.node));
            match known {
                Some(index) if mode == Mode::Default => unique[index].1 = Mode::Default,
                Some(_) => {}
                None => unique.push((leaf.node, mode)),
            }
        }
        unique
    }

    /// Takes a branch through all disjunctions of a level.
    fn pass_all(
        &mut self,
        leaves: &[Leaf],
        branch: Branch<Prefix>,
        level: u32,
    ) -> Vec<Branch<Prefix>> {
        let mut branches = vec![branch];
        let is_next = |branch: &Branch<Prefix>| {
            let next = branch.value.next_level(leaves);
            next.is_some_and(|next| next >= level)
        };
        while branches.iter().any(is_next) {
            branches = self.pass(leaves, branches, level);
        }
        branches
    }

    /// Takes all branches through their next disjunction.
    fn pass(
        &mut self,
        leaves: &[Leaf],
        branches: Vec<Branch<Prefix>>,
        level: u32,
    ) -> Vec<Branch<Prefix>> {
        let mut stage = Stage::new();
        for branch in branches {
            let Prefix {
                leaves: members,
                passed,
            } = &branch.value;
            let mut taken: Vec<(Passed, Vec<usize>)> = Vec::new();
            for member in members {
                let Some(term) = leaves[*member].passed.get(*passed) else {
                    continue;
                };
                match taken.iter_mut().find(|(known, _)| known == term) {
                    Some((_, same)) => same.push(*member),
                    None => taken.push((*term, vec![*member])),
                }
            }
            let is_left = members.iter().any(|leaf| !leaves[*leaf].node.is_none());
            if taken.is_empty() && is_left {
                stage.plain(&branch, branch.value.clone(), branch.own);
            }
            for (term, members) in taken {
                let prefix = Prefix {
                    leaves: members,
                    passed: passed + 1,
                };
                if prefix.next_level(leaves).is_some_and(|next| next > level) {
                    let inner = Branch {
                        value: prefix,
                        mode: branch.mode,
                        own: term.mode,
                    };
                    let left = self.pass_all(leaves, inner, level + 1);
                    stage.nested(&branch, left, term.mode);
                } else {
                    stage.plain(&branch, prefix, term.mode);
                }
            }
        }
        stage.finish(|all, branch| {
            let known = all
                .iter_mut()
                .find(|known| self.is_same_prefix(leaves, &known.value, &branch.value));
            match known {
                Some(known) => {
                    known.value.leaves.extend(branch.value.leaves);
                    if branch.mode == Mode::Default {
                        known.mode = Mode::Default;
                    }
                }
                None => all.push(branch),
            }
        })
    }

    /// Whether two branches are the same value reached in two ways.
    fn is_same_prefix(&mut self, leaves: &[Leaf], left: &Prefix, right: &Prefix) -> bool {
        let nodes = |prefix: &Prefix| -> Vec<NodeId> {
            let all = prefix.leaves.iter().map(|leaf| leaves[*leaf].node);
            all.filter(|node| !node.is_none()).collect()
        };
        let (left, right) = (nodes(left), nodes(right));
        !left.is_empty()
            && left.len() == right.len()
            && left
                .iter()
                .zip(&right)
                .all(|(left, right)| self.nodes_equal(*left, *right))
    }
}
