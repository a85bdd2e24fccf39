//! Adding conjuncts to nodes: what is static is inserted, the rest becomes a task.

use super::close::Mark;
use super::node::{CycleKind, Matcher, Pattern, Pending, Receiver};
use super::scalar::{Bound, Conflict, Described};
use super::task::{Task, TaskKind};
use super::{Binding, CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source, Status};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Decl, Expr, ExprId, MetaId, StructId};
use crate::label::Label;
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    /// Adds a conjunct to a node that may already be under evaluation.
    pub(crate) fn add_conjunct(&mut self, node: NodeId, conjunct: Conjunct) {
        if self.refill.is_some() && self.confirm(node, conjunct) {
            return;
        }
        self.node_mut(node).conjuncts.push(conjunct);
        self.progress += 1;
        if self.node(node).status != Status::New {
            self.reopen(node);
            self.schedule(node, conjunct);
        }
        for index in 0..self.node(node).notify.len() {
            let Receiver {
                node: receiver,
                info,
            } = self.node(node).notify[index];
            if self.node(receiver).status == Status::Final {
                continue;
            }
            let info = CloseInfo {
                key: super::node::mix(info.key, conjunct.info.key),
                ..info
            };
            self.reopen(receiver);
            self.schedule(receiver, Conjunct { info, ..conjunct });
        }
    }

    /// A settled node that learns something new is no longer settled.
    fn reopen(&mut self, node: NodeId) {
        if !self.node(node).shared.is_none() {
            self.unshare(node);
        }
        let slot = self.node_mut(node);
        if matches!(slot.status, Status::Settled | Status::Final) {
            slot.status = Status::Started;
            slot.base = super::Base::Unset;
            slot.disjunct = NodeId::NONE;
        }
    }

    /// Starts the evaluation of a node: adds the conjuncts listed so far.
    pub(crate) fn start(&mut self, node: NodeId) {
        if self.node(node).status != Status::New {
            return;
        }
        let parent = self.node(node).parent;
        let inherited =
            !parent.is_none() && !self.node(node).anonymous && self.node(parent).closed_recursive;
        let slot = self.node_mut(node);
        slot.status = Status::Started;
        if slot.label.is_definition() || inherited {
            slot.closed_recursive = true;
        }
        self.begin_start(node);
        let mut index = 0;
        while let Some(conjunct) = self.node(node).conjuncts.get(index).copied() {
            self.schedule(node, conjunct);
            index += 1;
        }
        self.end_start();
    }

    /// Takes a conjunct apart.
    pub(crate) fn schedule(&mut self, node: NodeId, conjunct: Conjunct) {
        if !self.step() {
            return;
        }
        self.counters.conjuncts += 1;
        if conjunct.info.from_def {
            self.node_mut(node).closed_recursive = true;
        }
        self.mark_non_cyclic(node, conjunct.info);
        if let Err(error) = self.nested(|this| this.schedule_source(node, conjunct)) {
            self.add_error(node, error);
        }
    }

    fn schedule_source(&mut self, node: NodeId, conjunct: Conjunct) {
        match conjunct.source {
            Source::Expr(expr) => self.schedule_expr(node, expr, conjunct),
            Source::Struct(literal) => self.schedule_struct(node, literal, conjunct),
            Source::Data(value) => {
                self.unshare(node);
                let value = self.values[value as usize].clone();
                self.insert_owned(node, value, Pos::NONE, conjunct.info);
            }
            Source::Node(target) => self.add_target(node, target, conjunct),
            Source::Composite(index) => {
                self.unshare(node);
                self.insert_composite(node, index, conjunct.info);
            }
            Source::Or(_) => {
                self.unshare(node);
                self.schedule_disjunction(node, conjunct.source, conjunct.env, conjunct.info);
            }
        }
    }

    fn schedule_expr(&mut self, node: NodeId, id: ExprId, conjunct: Conjunct) {
        let Conjunct { env, info, .. } = conjunct;
        match self.program.expr(id) {
            Expr::And(left, right) => {
                for (part, expr) in [left, right].into_iter().enumerate() {
                    let info = info.keyed(part as u64);
                    self.schedule(node, Conjunct::of(expr, env, info));
                }
            }
            Expr::WithSelf(inner) => {
                let env = self.new_env(env, node, Binding::Fields(u32::MAX));
                self.schedule(node, Conjunct::of(inner, env, info));
            }
            Expr::Struct(literal) => self.schedule_struct(node, literal, conjunct),
            Expr::List(_) => {
                self.unshare(node);
                self.update_cyclic_status(node, info);
                let pos = self.program.pos(id);
                self.update_kind(node, Kind::LIST, Described::Expr(id), pos, info);
                self.push_task(node, TaskKind::List(id), env, info);
            }
            Expr::Disjunction { .. } => {
                self.unshare(node);
                self.schedule_disjunction(node, Source::Expr(id), env, info);
            }
            Expr::Value(_) | Expr::Top | Expr::Type(_) | Expr::Range(..) | Expr::Bottom => {
                self.unshare(node);
                self.insert_constant(node, id, info);
            }
            expr if expr.is_reference() => {
                self.push_task(node, TaskKind::Reference(id), env, info);
            }
            expr => {
                self.unshare(node);
                // A call could go on forever on what a cycle brings, unless something else is there;
                // an operator wants operands that are known, and ends.
                let slot = self.node(node);
                let may_recur = !matches!(expr, Expr::Binary { .. });
                if may_recur
                    && info.cycle == CycleKind::Cyclic
                    && !slot.has_non_cycle
                    && !slot.has_non_cyclic
                {
                    let slot = self.node_mut(node);
                    slot.has_ancestor_cycle = true;
                    slot.postponed.push((conjunct, NodeId::NONE));
                    return;
                }
                self.push_task(node, TaskKind::Expr(id), env, info);
            }
        }
    }

    /// Adds what needs no evaluation: a literal value, a type, `_`, `_|_`.
    fn insert_constant(&mut self, node: NodeId, id: ExprId, info: CloseInfo) {
        let pos = self.program.pos(id);
        match self.program.expr(id) {
            Expr::Value(value) => {
                let value = self.program.constant(value).clone();
                self.insert_owned(node, value, pos, info);
            }
            Expr::Top => {
                self.update_cyclic_status(node, info);
                self.node_mut(node).has_top = true;
                self.evidence(node, info, Mark::Top);
            }
            Expr::Type(kind) => {
                self.update_cyclic_status(node, info);
                self.update_kind(node, kind, Described::Kind(kind), pos, info);
                self.evidence(node, info, Mark::Top);
            }
            Expr::Range(kind, bounds) => {
                self.update_cyclic_status(node, info);
                self.update_kind(node, kind, Described::Kind(kind), pos, info);
                for index in 0..bounds.len() {
                    let (op, value) = self.program.bounds(bounds)[index].clone();
                    self.insert_bound(node, Bound { op, value, pos }, info);
                }
            }
            _ => {
                let saved = std::mem::replace(&mut self.current, node);
                let message = "explicit error (_|_ literal) in source";
                let error = self.error_at(Code::User, pos, message);
                self.current = saved;
                self.add_error(node, error);
            }
        }
    }

    /// Adds a finished value that is handed over. What threads share is better counted only once.
    pub(crate) fn insert_owned(&mut self, node: NodeId, value: Value, pos: Pos, info: CloseInfo) {
        if matches!(value, Value::List(_) | Value::Struct(_) | Value::Opaque(_)) {
            self.insert_value(node, &value, pos, info);
            return;
        }
        self.evidence(node, info, Mark::None);
        self.update_cyclic_status(node, info);
        let result = self.node_mut(node).scalar.add_atom(value, pos);
        self.report(node, result, pos);
        self.progress += 1;
    }

    pub(crate) fn push_task(&mut self, node: NodeId, kind: TaskKind, env: EnvId, info: CloseInfo) {
        self.node_mut(node).tasks.push(Task::new(kind, env, info));
    }

    /// Queues a disjunction, or takes the alternative already chosen for it.
    pub(crate) fn schedule_disjunction(
        &mut self,
        node: NodeId,
        source: Source,
        env: EnvId,
        info: CloseInfo,
    ) {
        let part = if let Source::Expr(expr) = source {
            u64::from(expr.0)
        } else {
            u64::MAX
        };
        let info = info.keyed(part).optional();
        let pending = Pending { source, env, info };
        let chosen = self
            .node(node)
            .choices
            .iter()
            .find(|(key, _)| *key == info.key)
            .copied();
        let Some((_, choice)) = chosen else {
            self.node_mut(node).disjunctions.push(pending);
            self.evidence(node, info, Mark::None);
            return;
        };
        if let Some((source, _)) = self.term(pending, choice) {
            let info = info.keyed(u64::from(choice) + 1);
            self.schedule(node, Conjunct { source, env, info });
        }
    }

    fn schedule_struct(&mut self, node: NodeId, id: StructId, conjunct: Conjunct) {
        self.unshare(node);
        let Conjunct { env, mut info, .. } = conjunct;
        self.update_cyclic_status(node, info);
        self.evidence(node, info, Mark::Struct);
        let env = self.new_env(env, node, Binding::Fields(id.0));
        let literal = self.program.structure(id);
        let (is_file, has_embedding) = (literal.is_file, literal.has_embedding);
        let (has_ellipsis, members) = (literal.has_ellipsis, literal.decls.len());
        let slot = self.node_mut(node);
        slot.has_struct = true;
        slot.literals.push(id);
        slot.arcs.reserve(members);
        if has_embedding {
            info = self.struct_info(node, is_file, info);
        } else {
            self.must_be_struct(node, id);
        }
        for index in 0..members {
            self.schedule_member(node, (id, index), env, info);
        }
        if has_ellipsis {
            self.node_mut(node).has_ellipsis = true;
            self.evidence(node, info, Mark::Ellipsis);
        }
    }

    /// Adds one declaration of a struct literal; `info` is that of the literal.
    fn schedule_member(
        &mut self,
        node: NodeId,
        (id, index): (StructId, usize),
        env: EnvId,
        info: CloseInfo,
    ) {
        let field_info = CloseInfo {
            from_embed: false,
            ..info
        };
        let (position, key) = (u32::try_from(index).unwrap_or(0), index as u64);
        match self.program.structure(id).decls[index] {
            Decl::Field {
                label,
                kind,
                value,
                meta,
            } => {
                if self.is_too_late(node, label, self.program.pos(value), false) {
                    return;
                }
                if label.is_regular() && kind == ArcKind::Member {
                    self.must_be_struct(node, id);
                }
                let mut info = field_info.keyed(u64::from(value.0));
                if kind == ArcKind::Optional {
                    info = info.optional();
                }
                self.insert_arc(node, label, kind, Conjunct::of(value, env, info), meta);
            }
            Decl::Dynamic { kind, .. } => {
                if kind == ArcKind::Member {
                    self.must_be_struct(node, id);
                }
                let task = TaskKind::Dynamic(id, position);
                self.push_task(node, task, env, field_info.keyed(key));
            }
            Decl::Pattern {
                pattern,
                value,
                alias,
                meta,
            } => {
                let conjunct = Conjunct::of(value, env, field_info.keyed(key).optional());
                self.schedule_pattern(node, pattern, conjunct, alias, meta, (id, index));
            }
            Decl::Comprehension(comprehension) => {
                let info = self.embed_info(node, None, info).keyed(key).optional();
                self.push_task(node, TaskKind::Comprehension(comprehension), env, info);
            }
            Decl::Embed(expr) => {
                let info = self.embed_info(node, Some(expr), info).keyed(key);
                self.schedule(node, Conjunct::of(expr, env, info));
            }
            Decl::Ellipsis => {}
        }
    }

    fn must_be_struct(&mut self, node: NodeId, literal: StructId) {
        if self.node(node).is_struct {
            return;
        }
        self.node_mut(node).is_struct = true;
        let pos = self.program.structure(literal).pos;
        // Restricting the kind waits until embedded scalars had their say; see `settle`.
        let slot = self.node_mut(node);
        if slot.scalar.kind_text.is_none() && slot.scalar.kind == Kind::TOP {
            slot.scalar.kind_text = Some(Described::Literal(literal));
            slot.scalar.atom_pos = pos;
        }
    }

    fn schedule_pattern(
        &mut self,
        node: NodeId,
        pattern: ExprId,
        conjunct: Conjunct,
        alias: bool,
        meta: MetaId,
        decl: (StructId, usize),
    ) {
        let any = matches!(
            self.program.expr(pattern),
            Expr::Type(Kind::STRING) | Expr::Top
        );
        if any {
            let pattern = Pattern {
                matcher: Matcher::AnyString,
                conjunct,
                alias,
                meta,
            };
            self.insert_pattern(node, pattern);
        } else {
            let task = TaskKind::Pattern(decl.0, u32::try_from(decl.1).unwrap_or(0));
            self.push_task(node, task, conjunct.env, conjunct.info);
        }
    }

    /// Adds a pattern and applies it to the fields already there.
    pub(crate) fn insert_pattern(&mut self, node: NodeId, pattern: Pattern) {
        self.expand(node);
        self.node_mut(node).patterns.push(pattern);
        for index in 0..self.node(node).arcs.len() {
            let (label, arc) = self.node(node).arcs[index];
            self.apply_pattern(arc, label, pattern);
        }
    }

    fn apply_pattern(&mut self, arc: NodeId, label: Label, pattern: Pattern) {
        let matched = match pattern.matcher {
            Matcher::AnyString => label.is_regular(),
            Matcher::From(first) => label.as_index().is_some_and(|index| index >= first),
            Matcher::Value(value) => label.is_regular() && self.label_matches(label, value),
        };
        if !matched {
            return;
        }
        let mut conjunct = pattern.conjunct;
        if pattern.alias {
            let node = self.envs[conjunct.env.0 as usize].node;
            conjunct.env = self.new_env(conjunct.env, node, Binding::Label(label));
        }
        if pattern.meta != MetaId(0) && !self.node(arc).metas.contains(&pattern.meta) {
            self.node_mut(arc).metas.push(pattern.meta);
        }
        self.add_conjunct(arc, conjunct);
    }

    /// Adds a conjunct to the field `label`, making the field if needed.
    pub(crate) fn insert_arc(
        &mut self,
        node: NodeId,
        label: Label,
        kind: ArcKind,
        conjunct: Conjunct,
        meta: MetaId,
    ) -> NodeId {
        self.expand(node);
        let (arc, new) = if let Some(arc) = self.node(node).find(label) {
            (arc, false)
        } else {
            let kept = self.retrieve(node, label);
            let arc = kept.unwrap_or_else(|| self.new_node(node, label));
            self.node_mut(arc).arc = kind;
            self.node_mut(node).push_arc(label, arc);
            (arc, true)
        };
        let slot = self.node_mut(arc);
        slot.arc = slot.arc.min(kind);
        if meta != MetaId(0) && !slot.metas.contains(&meta) {
            slot.metas.push(meta);
        }
        self.add_conjunct(arc, conjunct);
        if new {
            for index in 0..self.node(node).patterns.len() {
                let pattern = self.node(node).patterns[index];
                self.apply_pattern(arc, label, pattern);
            }
        }
        arc
    }

    /// Adds a finished value.
    pub(crate) fn insert_value(&mut self, node: NodeId, value: &Value, pos: Pos, info: CloseInfo) {
        self.evidence(node, info, Mark::None);
        self.update_cyclic_status(node, info);
        match value {
            Value::List(items) => {
                self.update_kind(node, Kind::LIST, Described::Value(value.clone()), pos, info);
                if items.is_empty() || !self.set_aside(node, value, info) {
                    self.insert_list(node, items, info);
                } else {
                    self.set_length(node, items.len(), true);
                }
            }
            Value::Struct(fields) => {
                self.update_kind(
                    node,
                    Kind::STRUCT,
                    Described::Value(value.clone()),
                    pos,
                    info,
                );
                self.evidence(node, info, Mark::Struct);
                let slot = self.node_mut(node);
                slot.has_struct = true;
                slot.is_struct = true;
                if fields.is_empty() || !self.set_aside(node, value, info) {
                    for (index, (label, field)) in fields.iter().enumerate() {
                        let label = self.labels.string(label);
                        self.insert_data(node, label, index, field, info);
                    }
                }
            }
            Value::Opaque(_) => {}
            atom => {
                let result = self.node_mut(node).scalar.add_atom(atom.clone(), pos);
                self.report(node, result, pos);
            }
        }
        self.progress += 1;
    }

    pub(crate) fn insert_bound(&mut self, node: NodeId, bound: Bound, info: CloseInfo) {
        self.evidence(node, info, Mark::None);
        self.update_cyclic_status(node, info);
        let pos = bound.pos;
        let mut scalar = std::mem::take(&mut self.node_mut(node).scalar);
        let result = self.add_bound(&mut scalar, bound);
        self.node_mut(node).scalar = scalar;
        self.report(node, result, pos);
    }

    pub(crate) fn update_kind(
        &mut self,
        node: NodeId,
        kind: Kind,
        by: Described,
        pos: Pos,
        info: CloseInfo,
    ) {
        self.evidence(node, info, Mark::None);
        let result = self.node_mut(node).scalar.restrict_kind(kind, by, pos);
        self.report(node, result, pos);
    }

    fn report(&mut self, node: NodeId, result: Result<(), Conflict>, pos: Pos) {
        if let Err(conflict) = result {
            let error = self.conflict(node, conflict, pos);
            self.add_error(node, error);
        }
    }

    pub(crate) fn conflict(&mut self, node: NodeId, conflict: Conflict, pos: Pos) -> ErrId {
        let saved = std::mem::replace(&mut self.current, node);
        let error = self.error_at(Code::Eval, pos, conflict.message);
        self.current = saved;
        self.error_mut(error).related = conflict.related;
        error
    }

    /// A place in the source for a conjunct.
    pub(crate) fn source_pos(&self, source: Source) -> Pos {
        match source {
            Source::Expr(expr) => self.program.pos(expr),
            Source::Struct(literal) => self.program.structure(literal).pos,
            Source::Data(_) | Source::Node(_) | Source::Or(_) | Source::Composite(_) => Pos::NONE,
        }
    }
}
