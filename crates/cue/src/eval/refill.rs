//! Filling in data after an evaluation: only what depends on the data is evaluated again.
//!
//! While evaluating, the evaluator records who reads what ([`depend`](super::depend)). Data that comes
//! later starts the nodes on its path again, then those who read what changed there, and so on. A node
//! starts again by itself: it goes through its own constraints once more, and its members are kept. A
//! member that gets the constraints it has already stays as it is, with everything below; one that gets
//! others starts again in turn; one that gets none is gone. A value bound by `let` is outside the tree
//! that is completed in the end: it keeps no members, and all who read one start again. Comprehensions
//! that read nothing new are not run again. That new constraints can be told from old ones is the work
//! of [`identity`](super::identity).
//!
//! What changes under the hands of a node at work waits for the next round. An evaluation that does
//! not come to rest in a few rounds, and one that holds or comes to an error that no data can resolve,
//! is done again from the beginning: its messages do not depend on the order in which data came.

use super::close::Group;
use super::depend::{Need, Read, Reader};
use super::identity::Identities;
use super::node::Node;
use super::{Binding, CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Status};
use crate::diagnostic::Code;
use crate::ir::{PackageId, StructId};
use crate::label::Label;
use crate::quick::{QuickMap, QuickSet};
use crate::value::{Kind, Value};

/// Rounds after which an evaluation starts from the beginning. Two are the rule where data decides
/// about fields that decide about others.
const MAX_ROUNDS: usize = 8;

/// What is kept while part of an evaluation starts again.
#[derive(Debug, Default)]
pub(crate) struct Refill {
    pub(super) identities: Identities,
    /// Nodes started again, until they are complete.
    kept: QuickMap<NodeId, Previous>,
    /// Members taken over whose constraints are being given again: which came so far.
    unconfirmed: QuickMap<NodeId, Vec<bool>>,
    /// Bodies of comprehensions whose yield no longer counts, by the node they added to.
    withdrawn: QuickMap<NodeId, Vec<StructId>>,
    /// Nodes whose constraints are being taken apart.
    starting: Vec<NodeId>,
    /// What could not start again at once.
    waiting: Vec<Change>,
    /// Whether there is anything to evaluate.
    stale: bool,
}

/// What a node had before it started again.
#[derive(Debug)]
struct Previous {
    members: QuickMap<Label, NodeId>,
    groups: Vec<Group>,
    nature: Nature,
}

/// What those who select from a node, or refer to it, rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Nature {
    /// Struct or list, if it is one as it stands.
    composite: Kind,
    closed_recursive: bool,
    closed_once: bool,
}

/// Something that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The node, for a reason of its own.
    Node(NodeId),
    /// The constraints of the node.
    Conjuncts(NodeId),
    /// Something below the node.
    Below(NodeId),
}

impl Evaluator {
    /// Adds data at a path below the root. Before the first evaluation this only lists one more
    /// conjunct.
    pub(crate) fn fill(&mut self, path: &[&str], data: Value) {
        let mut whole = data;
        for name in path.iter().rev() {
            whole = Value::structure([((*name).into(), whole)]);
        }
        let source = self.data(whole);
        let info = CloseInfo {
            key: u64::from(u32::MAX) + self.values.len() as u64,
            ..CloseInfo::default()
        };
        let conjunct = Conjunct {
            source,
            env: super::NO_ENV,
            info,
        };
        let root = self.root;
        self.node_mut(root).conjuncts.push(conjunct);
        if self.node(root).status == Status::New {
            return;
        }
        if self.node(root).status < Status::Final || self.is_broken() {
            self.start_over();
            return;
        }
        self.refill.get_or_insert_default().stale = true;
        self.learn();
        self.change(Change::Conjuncts(root));
    }

    /// Evaluates what data filled in since has changed.
    pub(crate) fn refresh(&mut self) {
        if !self.refill.as_ref().is_some_and(|refill| refill.stale) {
            return;
        }
        for _ in 0..MAX_ROUNDS {
            self.finalize(self.root);
            let Some(refill) = &mut self.refill else {
                return;
            };
            let waiting = std::mem::take(&mut refill.waiting);
            if waiting.is_empty() && !self.is_broken() {
                if let Some(refill) = &mut self.refill {
                    refill.stale = false;
                    refill.kept.clear();
                    refill.unconfirmed.clear();
                }
                return;
            }
            if self.is_broken() {
                break;
            }
            for change in waiting {
                self.change(change);
            }
        }
        self.start_over();
    }

    /// Whether there is an error that no data can resolve, or a value that needs itself: where such
    /// a circle is cut decides what is found to be wrong with it.
    fn is_broken(&self) -> bool {
        let root = self.node(self.root);
        let is_bad = |error: ErrId| {
            let code = self.error(error).code;
            !code.is_temporary() || code == Code::Cycle
        };
        let mut errors = root.error.into_iter().chain(root.child_error);
        self.exhausted.is_some()
            || self.circular
            || errors.any(|error| is_bad(error) || self.leaves(error).into_iter().any(is_bad))
    }

    /// Works out what a change means for others, and starts them again.
    fn change(&mut self, first: Change) {
        let mut changes = vec![first];
        while let Some(change) = changes.pop() {
            let (Change::Node(node) | Change::Conjuncts(node) | Change::Below(node)) = change;
            if self.is_at_work(node) {
                self.wait(change);
            }
            if !self.step() {
                return;
            }
            match change {
                Change::Below(_) => self.change_below(node, &mut changes),
                _ if self.is_at_work(node) => {}
                Change::Node(_) => self.start_again(node, false, &mut changes),
                Change::Conjuncts(_) => self.start_again(node, true, &mut changes),
            }
        }
    }

    fn wait(&mut self, change: Change) {
        if let Some(refill) = &mut self.refill
            && !refill.waiting.contains(&change)
        {
            refill.waiting.push(change);
        }
    }

    fn is_at_work(&self, node: NodeId) -> bool {
        let slot = self.node(node);
        let starting = self.refill.as_ref().map(|refill| &refill.starting);
        slot.settling
            || slot.finalizing
            || slot.running > 0
            || starting.is_some_and(|starting| starting.contains(&node))
    }

    /// Those who relied on something read from a node.
    fn alarm(&mut self, reads: Vec<Read>, changes: &mut Vec<Change>) {
        for read in reads {
            match read.reader {
                Reader::Nobody => {}
                Reader::Node(reader) => {
                    if self.node(reader).epoch == read.epoch {
                        changes.push(Change::Node(reader));
                    }
                }
                Reader::Run(run) => {
                    let run = &mut self.reads.runs[run as usize];
                    let (node, id) = (run.node, run.comprehension);
                    changes.push(Change::Node(node));
                    if run.invalidate()
                        && let Some(refill) = &mut self.refill
                    {
                        let body = self.program.comprehension(id).value;
                        refill.withdrawn.entry(node).or_default().push(body);
                    }
                }
            }
        }
    }

    /// Something below a node changed: it has to be completed again, and all who read it as a whole.
    fn change_below(&mut self, node: NodeId, changes: &mut Vec<Change>) {
        let reads = self.take_reads(node, |need| need == Need::Whole);
        self.alarm(reads, changes);
        let slot = self.node_mut(node);
        if slot.anonymous && !slot.bound || slot.is_disjunct {
            return;
        }
        slot.child_error = None;
        if slot.status == Status::Final {
            slot.status = Status::Settled;
        }
        if slot.scalar.checks().is_empty() {
            self.change_above(node, changes);
        } else {
            changes.push(Change::Node(node));
        }
    }

    /// Tells the node above of a change, if the node is still part of it.
    fn change_above(&self, node: NodeId, changes: &mut Vec<Change>) {
        let slot = self.node(node);
        if slot.anonymous || slot.is_disjunct || slot.parent.is_none() {
            return;
        }
        let above = self.node(slot.parent);
        let kept = self.kept(slot.parent);
        let is_member = above.find(slot.label) == Some(node)
            || kept.is_some_and(|kept| kept.members.get(&slot.label) == Some(&node));
        if is_member {
            changes.push(Change::Below(slot.parent));
        }
    }

    /// Puts a node back to where it was before evaluation, and keeps its members aside.
    fn start_again(&mut self, node: NodeId, conjuncts: bool, changes: &mut Vec<Change>) {
        let slot = self.node(node);
        if slot.is_disjunct || slot.eager || slot.rootless && !self.is_bound(node) {
            // Anyone who made it makes another one.
            changes.push(Change::Below(self.made_by_itself(node)));
            return;
        }
        let before = Nature::of(slot);
        let (fresh, rootless) = (slot.status == Status::New, slot.rootless);
        let copied = conjuncts || !slot.shared.is_none();
        let reads = self.take_reads(node, |need| match need {
            Need::Conjuncts => copied,
            Need::Nature => !fresh && (rootless || before.composite.is_empty()),
            Need::Members | Need::Whole => !fresh,
        });
        self.alarm(reads, changes);
        if !fresh {
            self.put_back(node, before);
        }
        if rootless {
            // Nothing completes a value outside the tree, so that its members are never compared.
            for member in self.take_kept_members(node) {
                self.discard(member, changes);
            }
        }
        self.withdraw(node, changes);
        self.change_above(node, changes);
    }

    /// The outermost value that is made as one: that of an expression, or an alternative.
    fn made_by_itself(&self, node: NodeId) -> NodeId {
        let mut made = node;
        loop {
            let slot = self.node(made);
            if slot.anonymous || slot.is_disjunct || slot.parent.is_none() {
                return made;
            }
            made = slot.parent;
        }
    }

    /// Whether a node outside the tree is bound by `let`, or below one that is.
    fn is_bound(&self, node: NodeId) -> bool {
        self.node(self.made_by_itself(node)).bound
    }

    fn put_back(&mut self, node: NodeId, nature: Nature) {
        let slot = self.node(node);
        let mut fresh = Node::new(slot.parent, slot.label, slot.depth);
        fresh.arc = slot.arc;
        fresh.anonymous = slot.anonymous;
        fresh.bound = slot.bound;
        fresh.rootless = slot.rootless;
        fresh.closed_recursive =
            !slot.anonymous && self.is_closed_from_birth(slot.parent, slot.label);
        fresh.drop_parent_requirements = slot.drop_parent_requirements;
        fresh.readers = slot.readers;
        fresh.epoch = slot.epoch + 1;
        let mut old = std::mem::replace(self.node_mut(node), fresh);
        let slot = self.node_mut(node);
        slot.conjuncts = std::mem::take(&mut old.conjuncts);
        slot.metas = std::mem::take(&mut old.metas);
        let Some(refill) = &mut self.refill else {
            return;
        };
        let kept = refill.kept.entry(node).or_insert_with(|| Previous {
            members: QuickMap::default(),
            groups: Vec::new(),
            nature,
        });
        kept.members.extend(old.arcs.iter().copied());
        let known: QuickSet<_> = kept.groups.iter().map(Group::id).collect();
        let more = old.close.groups();
        kept.groups.extend(
            more.into_iter()
                .filter(|group| !known.contains(&group.id())),
        );
    }

    /// Takes from the members of a node what comprehensions gave that have to run again. A field must
    /// not be found there only because it was there before.
    fn withdraw(&mut self, node: NodeId, changes: &mut Vec<Change>) {
        let withdrawn = self
            .refill
            .as_mut()
            .and_then(|refill| refill.withdrawn.remove(&node));
        let Some(bodies) = withdrawn else {
            return;
        };
        let kept = self
            .kept(node)
            .into_iter()
            .flat_map(|kept| kept.members.values());
        let members: Vec<NodeId> = kept.copied().collect();
        for member in members {
            let mut conjuncts = std::mem::take(&mut self.node_mut(member).conjuncts);
            let count = conjuncts.len();
            conjuncts.retain(|conjunct| !self.is_made_by(conjunct.env, node, &bodies));
            let is_less = conjuncts.len() < count;
            self.node_mut(member).conjuncts = conjuncts;
            if is_less {
                changes.push(Change::Conjuncts(member));
            }
        }
    }

    /// Whether an environment is inside one of some struct literals of a node.
    fn is_made_by(&self, env: EnvId, node: NodeId, bodies: &[StructId]) -> bool {
        let mut cursor = env;
        while cursor != super::NO_ENV {
            let env = &self.envs[cursor.0 as usize];
            if let Binding::Fields(literal) = env.binding
                && env.node == node
                && bodies.iter().any(|body| body.0 == literal)
            {
                return true;
            }
            cursor = env.up;
        }
        false
    }

    /// Marks a node as one whose constraints are being taken apart.
    pub(super) fn begin_start(&mut self, node: NodeId) {
        if let Some(refill) = &mut self.refill {
            refill.starting.push(node);
        }
    }

    /// Takes the mark off again.
    pub(super) fn end_start(&mut self) {
        if let Some(refill) = &mut self.refill {
            refill.starting.pop();
        }
    }

    fn kept(&self, node: NodeId) -> Option<&Previous> {
        self.refill.as_ref()?.kept.get(&node)
    }

    /// The groups a node had before it started again and has not asked for since.
    pub(super) fn groups_before(&mut self, node: NodeId) -> Option<&mut Vec<Group>> {
        let kept = self.refill.as_mut()?.kept.get_mut(&node)?;
        Some(&mut kept.groups)
    }

    /// The member a node had before it started again.
    pub(super) fn retrieve(&mut self, node: NodeId, label: Label) -> Option<NodeId> {
        let refill = self.refill.as_mut()?;
        let member = refill.kept.get_mut(&node)?.members.remove(&label)?;
        let count = self.nodes[member.index()].conjuncts.len();
        refill.unconfirmed.insert(member, vec![false; count]);
        Some(member)
    }

    /// Takes a conjunct that a member has already as given; true if there is nothing to add.
    pub(super) fn confirm(&mut self, node: NodeId, conjunct: Conjunct) -> bool {
        let Some(refill) = &self.refill else {
            return false;
        };
        let Some(confirmed) = refill.unconfirmed.get(&node) else {
            return false;
        };
        let known = self.node(node).conjuncts.iter().zip(confirmed);
        let position = known
            .enumerate()
            .filter(|(_, (_, confirmed))| !**confirmed)
            .find(|(_, (known, _))| self.is_same_conjunct(known, &conjunct))
            .map(|(position, _)| position);
        if position.is_none() {
            self.node_mut(node).conjuncts.push(conjunct);
        }
        if let Some(refill) = &mut self.refill
            && let Some(confirmed) = refill.unconfirmed.get_mut(&node)
        {
            match position {
                Some(position) => confirmed[position] = true,
                None => confirmed.push(true),
            }
        }
        if position.is_none() {
            self.change(Change::Conjuncts(node));
        }
        true
    }

    /// Compares a node that started again, and has all its constraints by now, with what it was.
    pub(super) fn reconcile(&mut self, node: NodeId) {
        let Some(refill) = &mut self.refill else {
            return;
        };
        let Some(kept) = refill.kept.remove(&node) else {
            return;
        };
        let mut changes = Vec::new();
        for gone in kept.members.into_values() {
            self.discard(gone, &mut changes);
        }
        let nature = Nature::of(self.node(node));
        let is_closed_anew = (nature.closed_once, nature.closed_recursive)
            != (kept.nature.closed_once, kept.nature.closed_recursive)
            || !kept.groups.is_empty();
        let is_other = !kept.nature.composite.is_empty() && nature != kept.nature;
        if is_other || is_closed_anew {
            let reads = self.take_reads(node, |need| need < Need::Members);
            self.alarm(reads, &mut changes);
        }
        for change in changes {
            self.change(change);
        }
        for index in 0..self.node(node).arcs.len() {
            let Some((_, member)) = self.node(node).arcs.get(index).copied() else {
                break;
            };
            self.settle_member(member, is_closed_anew);
        }
    }

    /// Takes from a member the constraints that it did not get again.
    fn settle_member(&mut self, member: NodeId, is_closed_anew: bool) {
        let Some(refill) = &mut self.refill else {
            return;
        };
        let confirmed = refill.unconfirmed.remove(&member);
        if let Some(confirmed) = confirmed
            && confirmed.contains(&false)
        {
            let mut flags = confirmed.into_iter();
            self.node_mut(member)
                .conjuncts
                .retain(|_| flags.next().unwrap_or(true));
            self.change(Change::Conjuncts(member));
        }
        if is_closed_anew && self.node(member).status != Status::New {
            self.change(Change::Node(member));
            let mut changes = Vec::new();
            for gone in self.take_kept_members(member) {
                self.discard(gone, &mut changes);
            }
            for change in changes {
                self.change(change);
            }
        }
    }

    /// The members that a node had before it started again, which it is not to get back.
    fn take_kept_members(&mut self, node: NodeId) -> Vec<NodeId> {
        let kept = self.refill.as_mut();
        kept.and_then(|refill| refill.kept.get_mut(&node))
            .map(|kept| std::mem::take(&mut kept.members))
            .into_iter()
            .flat_map(QuickMap::into_values)
            .collect()
    }

    /// Lets go of a node and all below it: anyone who read anything of it starts again.
    fn discard(&mut self, node: NodeId, changes: &mut Vec<Change>) {
        let mut gone = vec![node];
        while let Some(node) = gone.pop() {
            let reads = self.take_reads(node, |_| true);
            self.alarm(reads, changes);
            gone.extend(self.node(node).arcs.iter().map(|(_, member)| *member));
            if let Some(refill) = &mut self.refill {
                refill.unconfirmed.remove(&node);
                if let Some(kept) = refill.kept.remove(&node) {
                    gone.extend(kept.members.into_values());
                }
            }
        }
    }

    /// Begins again with nothing but the program and the data. What was evaluated stays for those
    /// who hold it.
    fn start_over(&mut self) {
        let former = self.root;
        self.former_roots.push(former);
        self.lets.clear();
        self.packages.clear();
        self.refill = None;
        self.exhausted = None;
        self.forced = false;
        self.circular = false;
        self.checkpoint = 0;
        self.root = self.package_node(PackageId(0));
        self.current = self.root;
        let conjuncts = self.node(former).conjuncts.clone();
        self.node_mut(self.root).conjuncts = conjuncts;
    }

    /// The node that stands now where a node stood before the evaluation began again.
    pub(crate) fn relocate(&mut self, node: NodeId) -> NodeId {
        if self.former_roots.is_empty() {
            return node;
        }
        let mut labels = Vec::new();
        let mut top = node;
        while !self.node(top).parent.is_none() {
            if self.node(top).anonymous {
                return node;
            }
            labels.push(self.node(top).label);
            top = self.node(top).parent;
        }
        if !self.former_roots.contains(&top) {
            return node;
        }
        let mut now = self.root;
        while let Some(label) = labels.pop() {
            self.finalize(now);
            let inner = self.deref(now);
            match self.arc(inner, label) {
                Some(member) => now = member,
                None => return node,
            }
        }
        now
    }
}

impl Nature {
    fn of(node: &Node) -> Self {
        let plain = node.shared.is_none() && node.disjunct.is_none();
        let composite = match (plain && node.is_composite(), node.list.is_some()) {
            (false, _) => Kind::BOTTOM,
            (true, true) => Kind::LIST,
            (true, false) => Kind::STRUCT,
        };
        Self {
            composite,
            closed_recursive: node.closed_recursive,
            closed_once: node.closed_once,
        }
    }
}
