//! The evaluator: an arena of nodes, conjuncts and environments, filled on demand.
//!
//! # The model
//!
//! A [`Node`] is a value in the tree, a field or an element. It collects [`Conjunct`]s: an expression
//! (or plain data, or another node), the [`Env`] in which its names mean something, and a [`CloseInfo`]
//! that says which closed struct it comes from and which references brought it here. All conjuncts of a
//! node hold at once; evaluating the node means unifying them.
//!
//! A reference does not copy a value. It adds the conjuncts of its target to the node it stands in
//! ([`share`]), so that what the target refers to is found again around the copy. If the reference is all
//! there is to a node, the node becomes another name of the target.
//!
//! # The course of an evaluation
//!
//! 1. [`start`](Evaluator::start) takes conjuncts apart ([`conjunct`]). What is static happens at once:
//!    scalars narrow the [`scalar`] state, struct literals make fields. References, comprehensions,
//!    computed labels and expressions become [`task`]s.
//! 2. [`settle`](Evaluator::settle) runs tasks until none makes progress. A task needs other values, which
//!    settles other nodes first; one that runs into a node at work is blocked, and tried again when
//!    something became known. Then [`disjunction`]s are resolved.
//! 3. [`finalize`](Evaluator::finalize) goes through the children, checks closedness ([`close`]), runs
//!    validators, and asks again the guards that had to assume a field absent.
//!
//! [`cycle`] tells values that contain themselves from recursion that ends. [`lazy`] leaves injected data
//! alone until something reads it. [`depend`] records who reads what, from
//! which [`refill`] knows what later data can change. [`export`], [`syntax`] and
//! [`show`] turn nodes into values, CUE text, and the words of messages.
//!
//! # Errors and limits
//!
//! An error is a value in the arena ([`error`]), final or temporary: more data can resolve the latter.
//! Every evaluation runs under a [`Budget`] ([`limit`]), and what a limit cuts short is never taken for a
//! value.

mod access;
mod call;
mod close;
mod composite;
mod comprehension;
mod conjunct;
mod cycle;
mod depend;
mod discriminate;
mod disjunction;
mod equal;
mod error;
mod export;
mod expression;
mod hosting;
mod identity;
mod lazy;
mod leaf;
mod limit;
mod list;
mod marks;
mod node;
mod operator;
mod order;
mod predeclared;
mod quick_path;
mod rare_vec;
mod refill;
mod resolve;
mod scalar;
mod scalar_disjunction;
mod settle;
mod share;
mod show;
mod syntax;
mod task;
mod tree;
mod validate;

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_go::regexp::Regex;

use crate::host::Deadline;
use crate::ir::{ExprId, LetId, PackageId, Program};
use crate::label::{Interner, Label};
use crate::quick::QuickMap;
use crate::value::{Opaque, Value};

pub(crate) use self::error::{ErrId, Error};
pub(crate) use self::node::{Base, CloseInfo, Conjunct, Node, NodeId, Source, Status};
pub use self::syntax::SyntaxOptions;
pub(crate) use self::validate::Strictness;

/// Bytes a node takes, with the environments, values and errors that come with it.
const NODE_BYTES: usize = 2 * size_of::<Node>();

/// Limits of one evaluation. Exceeding one is an ordinary error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Units of work: conjuncts added, expressions evaluated.
    pub steps: u64,
    /// Bytes of memory, by estimate: nodes, and the text and lists that expressions make.
    pub memory: usize,
    /// Nesting of evaluation.
    pub depth: u32,
    /// Bytes or elements a builtin or repetition may make.
    pub output: usize,
    /// Alternatives tried for one value.
    pub disjuncts: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            memory: 128 << 20,
            depth: 2_000,
            output: 16 << 20,
            disjuncts: 10_000,
        }
    }
}

/// Work done by an evaluation; a slow-down shows here first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Nodes made.
    pub nodes: u64,
    /// Conjuncts added to nodes.
    pub conjuncts: u64,
    /// Alternatives of disjunctions evaluated.
    pub disjuncts: u64,
    /// All steps counted against the budget.
    pub steps: u64,
}

/// Index of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EnvId(pub(crate) u32);

/// The environment outside every struct.
pub(crate) const NO_ENV: EnvId = EnvId(0);

/// What a name refers to at run time, innermost first.
#[derive(Debug, Clone)]
pub(crate) struct Env {
    pub(crate) up: EnvId,
    pub(crate) node: NodeId,
    pub(crate) binding: Binding,
}

/// What an environment binds besides the fields of its node.
#[derive(Debug, Clone)]
pub(crate) enum Binding {
    /// Nothing; the number tells the literals of one node apart.
    Fields(u32),
    For {
        key: Value,
        value: NodeId,
    },
    Let(NodeId),
    Label(Label),
}

/// The outcome of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Val {
    Atom(Value),
    Node(NodeId),
    Function(crate::ir::Callee),
}

impl Val {
    /// The atom, if it is one; a node that holds an atom is still a node.
    pub(crate) fn literal(&self) -> Option<&Value> {
        match self {
            Self::Atom(value) => Some(value),
            Self::Node(_) | Self::Function(_) => None,
        }
    }
}

/// One evaluation of one program.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each named and documented"
)]
pub(crate) struct Evaluator {
    pub(crate) program: Arc<Program>,
    pub(crate) labels: Interner,
    pub(crate) nodes: Vec<Node>,
    pub(crate) envs: Vec<Env>,
    pub(crate) errors: Vec<Error>,
    pub(crate) values: Vec<Value>,
    pub(crate) refs: Vec<cycle::Reference>,
    pub(crate) root: NodeId,
    /// The roots of evaluations given up for one from the beginning.
    former_roots: Vec<NodeId>,
    pub(crate) budget: Budget,
    pub(crate) counters: Counters,
    /// Parents of close identifiers; see [`close`].
    containments: Vec<u32>,
    /// Small operations done by reading only, such as walking up the tree.
    effort: Cell<u64>,
    /// Bytes taken so far.
    memory: usize,
    /// Whether any close identifier has a second parent.
    replaced: bool,
    lets: QuickMap<(EnvId, LetId), NodeId>,
    packages: QuickMap<u32, NodeId>,
    regexes: HashMap<Arc<str>, Result<Arc<Regex>, String>>,
    /// Grows whenever something becomes known; blocked tasks wait for it.
    progress: u64,
    /// The node errors are attributed to.
    current: NodeId,
    /// Cycle information of the conjunct being evaluated.
    cycle: CloseInfo,
    /// Nesting of child evaluation; tells ancestors from peers.
    eval_depth: u32,
    /// Nesting of native calls.
    depth: u32,
    /// Whether absent fields may be taken as absent for good.
    forced: bool,
    /// Whether the value of a node was needed to find that value.
    circular: bool,
    /// Set once a limit is exceeded: the message of every further error.
    exhausted: Option<ErrId>,
    /// Whether arithmetic on lists is rejected, as the reference does.
    pub(crate) strict: bool,
    /// The number of steps at which limits are looked at next.
    checkpoint: u64,
    deadline: Option<Deadline>,
    /// The alternatives of [`Source::Or`].
    alternatives: Vec<Vec<NodeId>>,
    /// The members of [`Source::Composite`].
    composites: Vec<(Vec<Label>, Vec<NodeId>)>,
    /// Orders of fields found so far, by what decides about them; see [`order`].
    orders: QuickMap<Vec<u32>, Vec<usize>>,
    /// Packages that the source text being written names.
    named_packages: BTreeSet<&'static str>,
    /// Nodes handed to builtins as opaque values.
    opaque: Vec<NodeId>,
    /// What was read by whom.
    reads: depend::Reads,
    /// What the comprehensions at work range over.
    ranged_over: Vec<NodeId>,
    /// What is kept while part of the evaluation starts again; nothing before the first time.
    refill: Option<Box<refill::Refill>>,
}

impl Evaluator {
    /// An evaluation whose root holds the files of the main package.
    pub(crate) fn new(program: Arc<Program>, budget: Budget) -> Self {
        let labels = Interner::over(program.labels.clone());
        let size = program.exprs.len().clamp(16, 1024);
        let mut evaluator = Self {
            labels,
            nodes: Vec::with_capacity(size),
            envs: with_first(
                Env {
                    up: NO_ENV,
                    node: NodeId(0),
                    binding: Binding::Fields(0),
                },
                size / 2,
            ),
            errors: Vec::with_capacity(size / 16),
            values: Vec::with_capacity(size / 4),
            refs: with_first(cycle::Reference::default(), size / 4),
            root: NodeId(0),
            former_roots: Vec::new(),
            budget,
            counters: Counters::default(),
            containments: with_first(0, size / 4),
            effort: Cell::new(0),
            memory: 0,
            replaced: false,
            lets: QuickMap::default(),
            packages: QuickMap::default(),
            regexes: HashMap::new(),
            progress: 1,
            current: NodeId(0),
            cycle: CloseInfo::default(),
            eval_depth: 1,
            depth: 0,
            forced: false,
            circular: false,
            exhausted: None,
            strict: false,
            checkpoint: 0,
            deadline: None,
            alternatives: Vec::new(),
            composites: Vec::new(),
            orders: QuickMap::default(),
            named_packages: BTreeSet::new(),
            opaque: Vec::new(),
            reads: depend::Reads::with_capacity(size),
            ranged_over: Vec::new(),
            refill: None,
            program,
        };
        evaluator.root = evaluator.package_node(PackageId(0));
        evaluator
    }

    /// The root node of a package, made on first use.
    pub(crate) fn package_node(&mut self, package: PackageId) -> NodeId {
        if let Some(node) = self.packages.get(&package.0) {
            return *node;
        }
        let node = self.new_node(NodeId::NONE, Label::index(0));
        self.packages.insert(package.0, node);
        let program = self.program.clone();
        if let Some(ir) = program.packages.get(package.0 as usize) {
            for file in &ir.files {
                let conjunct = Conjunct {
                    source: Source::Struct(*file),
                    env: NO_ENV,
                    info: CloseInfo {
                        key: u64::from(file.0),
                        ..CloseInfo::default()
                    },
                };
                self.nodes[node.index()].conjuncts.push(conjunct);
            }
        }
        node
    }

    pub(crate) fn new_node(&mut self, parent: NodeId, label: Label) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX - 1));
        let mut node = Node::new(parent, label, 0);
        if !parent.is_none() {
            let above = self.node(parent);
            node.depth = above.depth + 1;
            node.rootless = above.rootless;
            node.eager = above.eager;
            node.closed_recursive = self.is_closed_from_birth(parent, label);
        }
        self.nodes.push(node);
        self.counters.nodes += 1;
        self.use_memory(NODE_BYTES);
        id
    }

    /// Whether a field is closed at every level for where it stands. That is known before it is
    /// started, because anyone who refers to it closes what it takes from it.
    fn is_closed_from_birth(&self, parent: NodeId, label: Label) -> bool {
        label.is_definition() || !parent.is_none() && self.node(parent).closed_recursive
    }

    /// A node outside the tree, still without conjuncts. Its parent only serves messages.
    pub(crate) fn detached(&mut self) -> NodeId {
        let node = self.new_node(self.current, Label::index(0));
        let slot = &mut self.nodes[node.index()];
        slot.anonymous = true;
        slot.rootless = true;
        slot.drop_parent_requirements = true;
        slot.closed_recursive = false;
        slot.depth = 0;
        self.note(node, depend::Need::Whole);
        node
    }

    /// A node outside the tree, for the value of an expression.
    pub(crate) fn anonymous(&mut self, expr: ExprId, env: EnvId) -> NodeId {
        let node = self.detached();
        let info = CloseInfo {
            refs: self.cycle.refs,
            rounds: self.cycle.rounds,
            key: u64::from(expr.0),
            ..CloseInfo::default()
        };
        let slot = &mut self.nodes[node.index()];
        slot.conjuncts.push(Conjunct {
            source: Source::Expr(expr),
            env,
            info,
        });
        node
    }

    /// An anonymous node that holds a plain value.
    pub(crate) fn data_node(&mut self, value: Value) -> NodeId {
        let node = self.detached();
        let source = self.data(value);
        let slot = &mut self.nodes[node.index()];
        slot.conjuncts.push(Conjunct {
            source,
            env: NO_ENV,
            info: CloseInfo::default(),
        });
        node
    }

    pub(crate) fn data(&mut self, value: Value) -> Source {
        self.values.push(value);
        Source::Data(u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX))
    }

    pub(crate) fn new_env(&mut self, up: EnvId, node: NodeId, binding: Binding) -> EnvId {
        let id = EnvId(u32::try_from(self.envs.len()).unwrap_or(u32::MAX));
        let env = Env { up, node, binding };
        if let Some(known) = self.known_env(&env) {
            return known;
        }
        self.envs.push(env);
        id
    }

    pub(crate) fn up(&self, env: EnvId, count: u32) -> EnvId {
        let mut env = env;
        for _ in 0..count {
            env = self.envs[env.0 as usize].up;
        }
        env
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// Follows structure sharing and resolved disjunctions.
    pub(crate) fn deref(&self, id: NodeId) -> NodeId {
        let mut id = id;
        loop {
            let node = self.node(id);
            let next = if node.shared.is_none() {
                node.disjunct
            } else {
                node.shared
            };
            if next.is_none() || next == id {
                return id;
            }
            id = next;
        }
    }

    /// Follows structure sharing only.
    pub(crate) fn deref_shared(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while !self.node(id).shared.is_none() {
            id = self.node(id).shared;
        }
        id
    }

    /// Follows resolved disjunctions only.
    pub(crate) fn deref_disjunct(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while !self.node(id).disjunct.is_none() {
            id = self.node(id).disjunct;
        }
        id
    }

    pub(crate) fn opaque(&mut self, node: NodeId) -> Value {
        self.opaque.push(node);
        Value::Opaque(Opaque(
            u32::try_from(self.opaque.len() - 1).unwrap_or(u32::MAX),
        ))
    }

    pub(crate) fn path(&self, id: NodeId) -> Vec<String> {
        let mut path = Vec::new();
        let mut id = id;
        while !id.is_none() && !self.node(id).parent.is_none() && path.len() < 256 {
            if !self.node(id).anonymous {
                path.push(self.labels.show(self.node(id).label));
            }
            id = self.node(id).parent;
        }
        path.reverse();
        path
    }
}

/// A list with room for some more.
fn with_first<T>(first: T, more: usize) -> Vec<T> {
    let mut list = Vec::with_capacity(more + 1);
    list.push(first);
    list
}
