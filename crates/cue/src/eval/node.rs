//! Nodes of the value tree and the conjuncts they are made of.

use std::sync::Arc;

use smallvec::SmallVec;

use super::error::ErrId;
use super::rare_vec::RareVec;
use super::scalar::Scalar;
use super::task::Task;
use super::{EnvId, close};
use crate::ir::{ArcKind, Callee, ExprId, MetaId, StructId};
use crate::label::Label;
use crate::quick::QuickMap;
use crate::value::Value;

/// With more fields than this a map is kept; below it a scan is faster.
const INDEX_ABOVE: usize = 24;

/// Index of a node in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// No node.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// How far a node is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Conjuncts are only listed.
    New,
    /// Conjuncts are added; tasks may be pending.
    Started,
    /// Fields and value are known as far as they can be.
    Settled,
    /// Children are done too.
    Final,
}

/// Where a conjunct comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// An expression of the program.
    Expr(ExprId),
    /// A struct literal that is no expression: a file or a comprehension body.
    Struct(StructId),
    /// A plain value, by index.
    Data(u32),
    /// All conjuncts of another node.
    Node(NodeId),
    /// One of several nodes, by index: the result of `or`.
    Or(u32),
    /// A list or struct of other nodes, by index: what a builtin returned.
    Composite(u32),
}

/// How a conjunct takes part in cycles; may only grow for what it contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum CycleKind {
    #[default]
    None,
    /// Below an optional field, pattern or disjunction.
    Optional,
    /// A cycle was met in an optional place.
    Maybe,
    /// A structural cycle.
    Cyclic,
}

/// What travels with a conjunct: closedness, cycle detection, identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CloseInfo {
    /// The group that counts as evidence for fields of this conjunct.
    pub(crate) def: u32,
    /// The embedding the conjunct is part of.
    pub(crate) embed: u32,
    /// The enclosing struct literal with embeddings.
    pub(crate) outer: u32,
    pub(crate) from_def: bool,
    pub(crate) from_embed: bool,
    pub(crate) cycle: CycleKind,
    pub(crate) is_cyclic: bool,
    /// How often a cyclic reference was followed all the same, because other conjuncts gave
    /// structure.
    pub(crate) rounds: u8,
    /// Head of the list of references followed so far.
    pub(crate) refs: u32,
    /// Identity of the conjunct, stable across evaluations of alternatives.
    pub(crate) key: u64,
}

impl CloseInfo {
    /// The same info with an identity derived from its own and `part`.
    pub(crate) fn keyed(mut self, part: u64) -> Self {
        self.key = mix(self.key, part);
        self
    }

    pub(crate) fn optional(mut self) -> Self {
        if self.cycle == CycleKind::None {
            self.cycle = CycleKind::Optional;
        }
        self
    }
}

/// Mixes two numbers into one; collisions only cost precision of alternatives.
pub(crate) fn mix(left: u64, right: u64) -> u64 {
    let mut hash = left ^ right.wrapping_add(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 29)
}

/// A constraint on a node, with what its names refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conjunct {
    pub(crate) source: Source,
    pub(crate) env: EnvId,
    pub(crate) info: CloseInfo,
}

impl Conjunct {
    /// An expression as a constraint.
    pub(crate) fn of(expr: ExprId, env: EnvId, info: CloseInfo) -> Self {
        Self {
            source: Source::Expr(expr),
            env,
            info,
        }
    }
}

/// The evaluated value of a node.
#[derive(Debug, Clone)]
pub(crate) enum Base {
    /// Nothing is known yet.
    Unset,
    /// See [`Node::scalar`]: an atom, a type, bounds.
    Scalar,
    Struct,
    List,
    Disjunction(Arc<Disjunction>),
    Error(ErrId),
}

/// Alternatives, defaults first.
#[derive(Debug, Clone)]
pub(crate) struct Disjunction {
    pub(crate) values: Vec<NodeId>,
    pub(crate) defaults: usize,
}

/// A pattern constraint that applies to fields as they appear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) matcher: Matcher,
    pub(crate) conjunct: Conjunct,
    /// Whether the value names the label.
    pub(crate) alias: bool,
    pub(crate) meta: MetaId,
}

/// Which labels a pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matcher {
    AnyString,
    /// List elements from this index on.
    From(usize),
    /// Strings that unify with a value.
    Value(NodeId),
}

/// A disjunction waiting to be resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// A disjunction expression or [`Source::Or`].
    pub(crate) source: Source,
    pub(crate) env: EnvId,
    pub(crate) info: CloseInfo,
}

/// The length of a list node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListShape {
    pub(crate) length: usize,
    pub(crate) closed: bool,
}

/// Plain data whose fields are not made yet.
#[derive(Debug)]
pub(crate) struct Lazy {
    /// A list or struct.
    pub(crate) value: Value,
    pub(crate) info: CloseInfo,
}

/// A place that receives every conjunct added to a node later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receiver {
    pub(crate) node: NodeId,
    pub(crate) info: CloseInfo,
}

/// A value in the tree.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each named and documented"
)]
pub(crate) struct Node {
    pub(crate) parent: NodeId,
    pub(crate) label: Label,
    pub(crate) arc: ArcKind,
    pub(crate) depth: u32,
    pub(crate) status: Status,
    pub(crate) conjuncts: SmallVec<[Conjunct; 1]>,
    pub(crate) metas: SmallVec<[MetaId; 2]>,
    pub(crate) arcs: Vec<(Label, NodeId)>,
    /// Where to find a field among many.
    pub(crate) index: Option<Box<QuickMap<Label, NodeId>>>,
    /// Data that makes up the node, as long as nothing else does.
    pub(crate) lazy: Option<Box<Lazy>>,
    /// Struct literals in the order they were added, for the order of fields.
    pub(crate) literals: SmallVec<[StructId; 2]>,
    pub(crate) base: Base,
    pub(crate) scalar: Scalar,
    pub(crate) list: Option<ListShape>,
    pub(crate) patterns: RareVec<Pattern>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) disjunctions: RareVec<Pending>,
    /// The alternative taken for disjunctions met while evaluating an alternative.
    pub(crate) choices: RareVec<(u64, u32)>,
    pub(crate) notify: RareVec<Receiver>,
    pub(crate) error: Option<ErrId>,
    pub(crate) child_error: Option<ErrId>,
    /// The function this node is, when it is used as a value.
    pub(crate) function: Option<Callee>,
    /// The node this one is the same as, by reference.
    pub(crate) shared: NodeId,
    /// The conjunct that made it shared, to undo it.
    pub(crate) shared_by: Option<Box<Conjunct>>,
    /// The alternative this one resolved to, or that is being tried.
    pub(crate) disjunct: NodeId,
    pub(crate) close: close::State,
    /// References already followed, so that each is added once.
    pub(crate) followed: SmallVec<[NodeId; 2]>,
    /// Conjuncts postponed because they are cyclic so far.
    pub(crate) postponed: RareVec<(Conjunct, NodeId)>,
    /// Guards answered by assuming a field absent: expression, environment, answer.
    pub(crate) assumptions: RareVec<(ExprId, EnvId, bool)>,
    /// The last of those who read it, see [`depend`](super::depend).
    pub(crate) readers: u32,
    /// How often it was started again.
    pub(crate) epoch: u32,
    pub(crate) eval_depth: u32,
    pub(crate) running: u32,
    pub(crate) settling: bool,
    pub(crate) finalizing: bool,
    /// Outside the tree: the value of an expression.
    pub(crate) anonymous: bool,
    /// Outside the tree and bound by `let`.
    pub(crate) bound: bool,
    /// At or below a node outside the tree.
    pub(crate) rootless: bool,
    /// At or below an alternative: data is taken apart at once, to be compared.
    pub(crate) eager: bool,
    pub(crate) is_disjunct: bool,
    /// Loops went over its members: more must not come.
    pub(crate) is_counted: bool,
    pub(crate) has_struct: bool,
    /// Has a regular field or is a plain literal: must be a struct.
    pub(crate) is_struct: bool,
    pub(crate) has_top: bool,
    pub(crate) has_ellipsis: bool,
    pub(crate) has_open_validator: bool,
    pub(crate) is_definition: bool,
    pub(crate) closed_recursive: bool,
    pub(crate) closed_once: bool,
    pub(crate) drop_parent_requirements: bool,
    pub(crate) no_sharing: bool,
    pub(crate) has_cyclic: bool,
    pub(crate) has_ancestor_cycle: bool,
    pub(crate) has_non_cycle: bool,
    pub(crate) has_non_cyclic: bool,
}

impl Node {
    pub(crate) fn new(parent: NodeId, label: Label, depth: u32) -> Self {
        Self {
            parent,
            label,
            arc: ArcKind::Member,
            depth,
            status: Status::New,
            conjuncts: SmallVec::new(),
            metas: SmallVec::new(),
            arcs: Vec::new(),
            index: None,
            lazy: None,
            literals: SmallVec::new(),
            base: Base::Unset,
            scalar: Scalar::default(),
            list: None,
            patterns: RareVec::default(),
            tasks: Vec::new(),
            disjunctions: RareVec::default(),
            choices: RareVec::default(),
            notify: RareVec::default(),
            error: None,
            child_error: None,
            function: None,
            shared: NodeId::NONE,
            shared_by: None,
            disjunct: NodeId::NONE,
            close: close::State::default(),
            followed: SmallVec::new(),
            postponed: RareVec::default(),
            assumptions: RareVec::default(),
            readers: 0,
            epoch: 0,
            eval_depth: 0,
            running: 0,
            settling: false,
            finalizing: false,
            anonymous: false,
            bound: false,
            rootless: false,
            eager: false,
            is_disjunct: false,
            is_counted: false,
            has_struct: false,
            is_struct: false,
            has_top: false,
            has_ellipsis: false,
            has_open_validator: false,
            is_definition: false,
            closed_recursive: false,
            closed_once: false,
            drop_parent_requirements: false,
            no_sharing: false,
            has_cyclic: false,
            has_ancestor_cycle: false,
            has_non_cycle: false,
            has_non_cyclic: false,
        }
    }

    /// Whether the value is a struct or list, as far as is known.
    pub(crate) fn is_composite(&self) -> bool {
        match self.base {
            Base::Struct | Base::List => true,
            Base::Unset | Base::Error(_) => self.is_struct || self.list.is_some(),
            Base::Scalar | Base::Disjunction(_) => false,
        }
    }

    pub(crate) fn find(&self, label: Label) -> Option<NodeId> {
        if let Some(position) = label.as_index() {
            match self.arcs.get(position) {
                Some((known, node)) if *known == label => return Some(*node),
                None if self.arcs.last().is_none_or(|(last, _)| last.is_index()) => return None,
                _ => {}
            }
        }
        if let Some(index) = &self.index {
            return index.get(&label).copied();
        }
        self.arcs
            .iter()
            .find(|(known, _)| *known == label)
            .map(|(_, node)| *node)
    }

    /// Adds a field that is not there yet.
    pub(crate) fn push_arc(&mut self, label: Label, node: NodeId) {
        self.arcs.push((label, node));
        if let Some(index) = &mut self.index {
            index.insert(label, node);
        } else if self.arcs.len() > INDEX_ABOVE {
            self.index = Some(Box::new(self.arcs.iter().copied().collect()));
        }
    }

    /// Removes all fields.
    pub(crate) fn clear_arcs(&mut self) {
        self.lazy = None;
        self.arcs.clear();
        self.index = None;
    }
}
