//! Which closed groups the fields of a node have to answer to: those above it and its own, as far as
//! nothing lifts them.

use std::sync::Arc;

use super::{Closedness, Evidence, GroupKind, HAS_OPEN_VALIDATOR, HAS_STRUCT, HAS_TOP};
use crate::eval::{Evaluator, NodeId};

/// A group that the fields of a node need evidence for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requirement {
    pub(super) id: u32,
    pub(super) parent: u32,
    pub(super) embed: u32,
    kind: GroupKind,
    /// Closes one level only.
    once: bool,
    pub(super) ignored: bool,
    pub(super) removed: bool,
}

type Requirements = Vec<Requirement>;

impl Evaluator {
    /// The closed groups that apply to the fields of a node.
    pub(super) fn requirements(&mut self, node: NodeId) -> Option<Arc<[Requirement]>> {
        match &self.node(node).close.requirements {
            Closedness::Nothing => {}
            Closedness::None => return None,
            Closedness::Some(known) => return Some(known.clone()),
        }
        let parent = self.node(node).parent;
        let mut sets = Requirements::new();
        if !parent.is_none() && !self.node(node).drop_parent_requirements {
            if let Some(above) = self.requirements(parent) {
                sets = above.to_vec();
            }
            for set in &mut sets {
                set.ignored |= set.once;
            }
        }
        self.add_own_groups(node, &mut sets);
        if sets.is_empty() {
            self.node_mut(node).close.requirements = Closedness::None;
            return None;
        }
        if !self.node(node).label.is_regular() && !self.node(node).label.is_index() {
            let evidence = self.node(node).close.evidence.clone();
            sets.retain(|set| {
                evidence
                    .iter()
                    .any(|known| self.contains(node, set.id, known.id))
            });
        }
        self.filter_top(node, &mut sets);
        let known = (!sets.is_empty()).then(|| Arc::from(sets));
        self.node_mut(node).close.requirements = match &known {
            Some(sets) => Closedness::Some(Arc::clone(sets)),
            None => Closedness::None,
        };
        known
    }

    fn add_own_groups(&mut self, node: NodeId, sets: &mut Requirements) {
        let inherited = sets.len();
        for index in 0..self.node(node).close.groups.len() {
            let group = self.node(node).close.groups[index];
            if group.ignore && group.kind == GroupKind::Reference {
                continue;
            }
            // The groups of one node are different ones.
            self.charge_small(inherited);
            if sets[..inherited].iter().any(|set| set.id == group.id) {
                continue;
            }
            let mut once = false;
            if group.kind != GroupKind::Embedding {
                once = !group.target.is_none() && self.node(group.target).closed_once;
                if !group.ignore && !group.recursive {
                    once = true;
                }
            }
            sets.push(Requirement {
                id: group.id,
                parent: group.parent,
                embed: group.embed,
                kind: group.kind,
                once,
                ignored: group.ignore,
                removed: false,
            });
            if group.parent == 0 || group.ignore {
                continue;
            }
            let mut outer = group.parent;
            for set in sets[..inherited].iter_mut().rev() {
                if outer != 0 && set.id == outer {
                    set.once = if set.ignored {
                        !group.recursive
                    } else {
                        set.once && !group.recursive
                    };
                    set.ignored = false;
                    outer = set.parent;
                }
            }
        }
    }

    /// Drops groups that a bare `_` or a validator opens, and marks those lifted by `...` above.
    fn filter_top(&mut self, node: NodeId, sets: &mut Requirements) {
        let evidence = self.node(node).close.evidence.clone();
        if !self.spend(sets.len() * evidence.len()) {
            return;
        }
        let parent = self.node(node).parent;
        let mut kept = Requirements::with_capacity(sets.len());
        for mut set in sets.drain(..) {
            let mut flags = 0;
            let mut any = false;
            for known in &evidence {
                if self.contains(node, set.id, known.id) {
                    any = true;
                    let own = if known.id < set.id {
                        known.flags & !HAS_STRUCT
                    } else {
                        known.flags
                    };
                    flags |= own;
                }
            }
            let top = flags & HAS_TOP != 0 && flags & HAS_STRUCT == 0;
            if top || flags & HAS_OPEN_VALIDATOR != 0 {
                continue;
            }
            if any && set.kind != GroupKind::Struct {
                kept.push(set);
                continue;
            }
            let lifted = if parent.is_none() {
                0
            } else {
                self.parent_ellipsis(node, set.id, parent)
            };
            if lifted != 0 {
                let supported = |known: &Evidence| self.contains(node, lifted, known.id);
                set.removed |=
                    !any || set.kind == GroupKind::Struct && !evidence.iter().any(supported);
            }
            kept.push(set);
        }
        *sets = kept;
    }
}
