//! Closedness: which fields a node may have.
//!
//! Every use of a definition or of `close()` opens a group with an identifier; the
//! conjuncts that come from it carry the identifier as evidence. Once a node is
//! complete, each of its fields must have evidence for every closed group. Embedding
//! widens a group, `...` lifts it for one level, a reference to a definition inside
//! another one narrows it. The bookkeeping follows the reference implementation
//! (cue: internal/core/adt/typocheck.go), because its corner cases are observable.

mod requirement;

use std::sync::Arc;

use smallvec::SmallVec;

use self::requirement::Requirement;
use super::rare_vec::RareVec;
use super::{CloseInfo, Evaluator, NodeId};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Expr, ExprId};
use crate::label::Label;
use crate::value::Kind;

/// What a group stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupKind {
    Embedding,
    Reference,
    Struct,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    target: NodeId,
    id: u32,
    parent: u32,
    embed: u32,
    ignore: bool,
    kind: GroupKind,
    recursive: bool,
}

impl Group {
    /// The identifier that evidence names.
    pub(super) fn id(&self) -> u32 {
        self.id
    }
}

/// Evidence left on a node by the conjuncts of one group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence {
    id: u32,
    embed: u32,
    flags: u8,
}

const HAS_ELLIPSIS: u8 = 1;
const HAS_TOP: u8 = 1 << 1;
const HAS_STRUCT: u8 = 1 << 2;
const HAS_OPEN_VALIDATOR: u8 = 1 << 3;

/// A conjunct's mark in the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    Ellipsis,
    Top,
    Struct,
    OpenValidator,
}

/// The requirements of a node, once they are known.
#[derive(Debug, Default)]
enum Closedness {
    #[default]
    Nothing,
    /// That there are none.
    None,
    Some(Arc<[Requirement]>),
}

/// The closedness part of a node.
#[derive(Debug, Default)]
pub(crate) struct State {
    groups: RareVec<Group>,
    evidence: SmallVec<[Evidence; 2]>,
    /// Pairs (from, to): evidence for `to` also counts for `from`.
    replacements: RareVec<(u32, u32)>,
    requirements: Closedness,
    /// Whether one of the groups restricts fields, as only those of definitions and of `close()` do.
    restricts: bool,
}

impl State {
    /// Makes the struct literals around an embedded definition restrict fields as well.
    fn activate(&mut self, mut outer: u32, recursive: bool) {
        for group in self.groups.iter_mut().rev() {
            if group.id == outer && outer != 0 {
                group.ignore = false;
                group.recursive |= recursive;
                self.restricts = true;
                outer = group.parent;
            }
        }
    }

    /// The groups opened on the node.
    pub(super) fn groups(&self) -> Vec<Group> {
        self.groups.to_vec()
    }
}

impl Evaluator {
    fn next_group(&mut self) -> u32 {
        self.containments.push(0);
        u32::try_from(self.containments.len() - 1).unwrap_or(u32::MAX)
    }

    /// The group that a node made for the same purpose before it was started again, or a new one.
    fn group_again(
        &mut self,
        node: NodeId,
        target: NodeId,
        info: CloseInfo,
        kind: GroupKind,
    ) -> u32 {
        let is_reference = kind == GroupKind::Reference;
        let parent = if is_reference { info.outer } else { info.def };
        let is_same = |group: &Group| {
            group.target == target
                && group.kind == kind
                && group.parent == parent
                && (!is_reference || group.embed == info.embed)
        };
        let before = self.groups_before(node);
        let known = before.and_then(|before| {
            let position = before.iter().position(is_same)?;
            Some(before.remove(position).id)
        });
        known.unwrap_or_else(|| self.next_group())
    }

    fn add_replacement(&mut self, node: NodeId, from: u32, to: u32) {
        if from == to || from != 0 && self.containments[to as usize] == from {
            return;
        }
        if from < to && self.containments[to as usize] == 0 {
            self.containments[to as usize] = from;
            return;
        }
        let close = &mut self.node_mut(node).close;
        close.requirements = Closedness::Nothing;
        if !close.replacements.contains(&(from, to)) {
            close.replacements.push((from, to));
        }
        self.replaced = true;
    }

    /// Leaves evidence of a conjunct.
    pub(crate) fn evidence(&mut self, node: NodeId, info: CloseInfo, mark: Mark) {
        let flags = match mark {
            Mark::None => 0,
            Mark::Ellipsis => HAS_ELLIPSIS,
            Mark::Top => HAS_TOP,
            Mark::Struct => HAS_STRUCT,
            Mark::OpenValidator => HAS_OPEN_VALIDATOR | HAS_TOP,
        };
        self.charge_small(self.node(node).close.evidence.len());
        let evidence = &mut self.node_mut(node).close.evidence;
        // Conjuncts that belong together come one after the other.
        let mut latest_first = evidence.iter_mut().rev();
        if let Some(known) = latest_first.find(|known| known.id == info.def) {
            known.flags |= flags;
            return;
        }
        evidence.push(Evidence {
            id: info.def,
            embed: info.embed,
            flags,
        });
    }

    /// Registers the reference of `node` to `target`; `ignore` when the target is no definition.
    pub(crate) fn enter_reference(
        &mut self,
        node: NodeId,
        target: NodeId,
        mut info: CloseInfo,
        force_ignore: bool,
    ) -> CloseInfo {
        let (closed_once, closed_recursive) = {
            let slot = self.node(target);
            (slot.closed_once, slot.closed_recursive)
        };
        let close_outer = (info.from_def && info.from_embed) || closed_once;
        if close_outer && !force_ignore {
            let close = &mut self.node_mut(node).close;
            close.activate(info.outer, closed_recursive);
        }
        let ignore = if force_ignore {
            true
        } else if info.embed != 0 || info.outer == 0 {
            !(info.from_def || closed_once)
        } else {
            info.from_embed
        };
        let known = self
            .node(node)
            .close
            .groups
            .iter()
            .find(|group| group.target == target);
        let mut id = known.map_or(0, |group| group.id);
        if id == 0 || info.embed != 0 {
            let next = self.group_again(node, target, info, GroupKind::Reference);
            if id != 0 {
                self.add_replacement(node, next, id);
            }
            id = next;
            let close = &mut self.node_mut(node).close;
            close.restricts |= !ignore;
            close.groups.push(Group {
                target,
                id,
                parent: info.outer,
                embed: info.embed,
                ignore,
                kind: GroupKind::Reference,
                recursive: closed_recursive,
            });
        }
        let from = info.def;
        info.def = id;
        self.add_replacement(node, from, id);
        info
    }

    fn new_group(&mut self, node: NodeId, mut info: CloseInfo, kind: GroupKind) -> CloseInfo {
        let id = self.group_again(node, NodeId::NONE, info, kind);
        self.add_replacement(node, info.def, id);
        let parent = info.def;
        info.def = id;
        match kind {
            GroupKind::Embedding => info.embed = id,
            GroupKind::Struct | GroupKind::Reference => info.outer = id,
        }
        self.node_mut(node).close.groups.push(Group {
            target: NodeId::NONE,
            id,
            parent,
            embed: info.embed,
            ignore: true,
            kind,
            recursive: info.from_def,
        });
        info
    }

    /// The info of an embedded expression.
    pub(crate) fn embed_info(
        &mut self,
        node: NodeId,
        embedded: Option<ExprId>,
        mut info: CloseInfo,
    ) -> CloseInfo {
        info.from_embed = true;
        let binary =
            embedded.is_some_and(|id| matches!(self.program.expr(id), Expr::Binary { .. }));
        if binary {
            return info;
        }
        self.new_group(node, info, GroupKind::Embedding)
    }

    /// The info of a struct literal that has embeddings.
    pub(crate) fn struct_info(
        &mut self,
        node: NodeId,
        is_file: bool,
        info: CloseInfo,
    ) -> CloseInfo {
        if info.outer != 0 || info.from_embed || is_file {
            return info;
        }
        self.new_group(node, info, GroupKind::Struct)
    }

    /// Whether some closed group restricts the fields of a node.
    pub(crate) fn is_restricted(&mut self, node: NodeId) -> bool {
        self.is_below_restriction(node) && self.requirements(node).is_some()
    }

    /// Whether some group at a node or above it restricts fields. Most values have none, which is
    /// found out sooner than what the others amount to.
    fn is_below_restriction(&self, node: NodeId) -> bool {
        let mut cursor = node;
        while !cursor.is_none() {
            let slot = self.node(cursor);
            if slot.close.restricts {
                return true;
            }
            if slot.drop_parent_requirements {
                return false;
            }
            cursor = slot.parent;
        }
        false
    }

    /// Reports the fields of a complete node that some closed group does not allow.
    pub(crate) fn check_closed(&mut self, node: NodeId) {
        let node = self.deref(node);
        if self.node(node).arcs.is_empty() {
            return;
        }
        if self
            .node(node)
            .error
            .is_some_and(|error| !self.error(error).not_allowed)
        {
            return;
        }
        if !self.is_below_restriction(node) {
            return;
        }
        let Some(base) = self.requirements(node) else {
            return;
        };
        if self.is_spent() {
            self.exhaust("steps");
        }
        if !self.spend(self.node(node).arcs.len() * base.len()) {
            return;
        }
        let mut required = base.to_vec();
        for requirement in &mut required {
            requirement.removed |= self.parent_ellipsis(node, requirement.id, node) != 0;
        }
        for index in 0..self.node(node).arcs.len() {
            let (label, arc) = self.node(node).arcs[index];
            if !label.is_regular() {
                continue;
            }
            let arc_node = self.deref_disjunct(arc);
            if self.node(arc_node).arc == ArcKind::Optional {
                continue;
            }
            let failed = self.node(arc_node).error;
            if failed.is_some_and(|error| !self.error(error).not_allowed) {
                continue;
            }
            if !self.has_evidence_for_all(arc_node, &required) {
                self.report_not_allowed(node, arc_node, label);
            }
        }
    }

    fn report_not_allowed(&mut self, parent: NodeId, arc: NodeId, label: Label) {
        let saved = std::mem::replace(&mut self.current, arc);
        let pos = self.node_pos(arc);
        let error = self.error_at(Code::Eval, pos, "field not allowed");
        self.current = saved;
        let related: Vec<_> = self
            .node(arc)
            .conjuncts
            .iter()
            .map(|c| self.source_pos(c.source))
            .collect();
        let slot = self.error_mut(error);
        slot.related = related;
        slot.not_allowed = true;
        let _ = label;
        self.add_error(arc, error);
        let child = self.node(parent).child_error;
        let combined = self.combine(child, error);
        self.node_mut(parent).child_error = Some(combined);
    }

    fn has_evidence_for_all(&self, arc: NodeId, required: &[Requirement]) -> bool {
        (0..required.len()).all(|index| {
            let requirement = &required[index];
            requirement.ignored || requirement.removed || self.has_evidence(arc, required, index)
        })
    }

    fn has_evidence(&self, arc: NodeId, all: &[Requirement], index: usize) -> bool {
        let wanted = all[index];
        let evidence = &self.node(arc).close.evidence;
        if evidence
            .iter()
            .any(|known| self.contains(arc, wanted.id, known.id))
        {
            return true;
        }
        let find = |id: u32| all.iter().find(|set| id != 0 && set.id == id).copied();
        let Some(embed_scope) = find(wanted.embed) else {
            return false;
        };
        let outer_scope = find(wanted.parent);
        if outer_scope.is_some_and(|outer| outer.removed) {
            return true;
        }
        for known in evidence {
            if self.contains(arc, embed_scope.id, known.embed) {
                continue;
            }
            let Some(outer) = outer_scope.filter(|_| wanted.parent != 0) else {
                return true;
            };
            if self.contains(arc, outer.id, known.id) {
                return true;
            }
        }
        false
    }

    /// Whether evidence for `child` counts for `group` at `node`.
    fn contains(&self, node: NodeId, group: u32, child: u32) -> bool {
        if self.is_spent() {
            // Answer anything: the caller reports that the budget is used up.
            return true;
        }
        let mut cursor = child;
        let mut hops = 1;
        while cursor != 0 && cursor != group {
            cursor = self.containments[cursor as usize];
            hops += 1;
        }
        self.charge_small(hops);
        if cursor != 0 {
            return true;
        }
        if !self.replaced {
            return child == group;
        }
        let mut redirects: SmallVec<[(u32, u32); 8]> = SmallVec::new();
        let mut cursor = node;
        let mut levels = 0;
        while !cursor.is_none() {
            let slot = self.node(cursor);
            redirects.extend(slot.close.replacements.iter().copied());
            cursor = slot.parent;
            levels += 1;
        }
        self.charge_small(levels);
        // Groups reachable from the child through its parents and the replacements.
        let mut reached: SmallVec<[u32; 16]> = SmallVec::new();
        reached.push(child);
        let mut next = 0;
        while let Some(cursor) = reached.get(next).copied() {
            next += 1;
            self.charge_small(1 + redirects.len() + reached.len());
            if cursor == group {
                return true;
            }
            let parent = self.containments[cursor as usize];
            let others = redirects
                .iter()
                .filter(|(_, to)| *to == cursor)
                .map(|(from, _)| *from);
            for found in others.chain([parent]) {
                if found != 0 && !reached.contains(&found) {
                    reached.push(found);
                }
            }
        }
        false
    }

    fn parent_ellipsis(&self, node: NodeId, group: u32, evidence_of: NodeId) -> u32 {
        let evidence = &self.node(evidence_of).close.evidence;
        evidence
            .iter()
            .find(|known| known.flags & HAS_ELLIPSIS != 0 && self.contains(node, group, known.id))
            .map_or(0, |known| known.id)
    }

    /// Whether a field could be added to the node without an error.
    pub(crate) fn is_open_struct(&mut self, node: NodeId) -> bool {
        let node = self.deref(node);
        if self.node(node).has_ellipsis {
            return true;
        }
        !(self.node(node).closed_recursive || self.node(node).closed_once)
    }
}

/// Previous beside the marks it belongs to: the kinds for which a validator may open a struct.
pub(crate) const OPENING_KINDS: Kind = Kind(Kind::LIST.0 | Kind::STRUCT.0);
