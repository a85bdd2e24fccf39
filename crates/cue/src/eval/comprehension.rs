//! Comprehensions: clauses yield environments, each adds the value struct once.

use smallvec::SmallVec;

use super::depend::{Need, Reader};
use super::task::Task;
use super::{
    Base, Binding, CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source, Status, Val,
};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Clause, ComprehensionId, ExprId};
use crate::label::Label;
use crate::number::Number;
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    /// Runs a comprehension that stands in a struct.
    pub(crate) fn run_comprehension(
        &mut self,
        node: NodeId,
        id: ComprehensionId,
        env: EnvId,
        info: CloseInfo,
    ) -> Result<(), ErrId> {
        let envs = self.yields(id, env)?;
        let value = self.program.comprehension(id).value;
        for (index, env) in envs.into_iter().enumerate() {
            let info = info.keyed(index as u64);
            self.schedule(
                node,
                Conjunct {
                    source: Source::Struct(value),
                    env,
                    info,
                },
            );
            self.progress += 1;
        }
        Ok(())
    }

    /// The environments a comprehension yields.
    pub(crate) fn yields(&mut self, id: ComprehensionId, env: EnvId) -> Result<Vec<EnvId>, ErrId> {
        if let Some(known) = self.known_yield(id, env) {
            return Ok(known);
        }
        let mut envs = Vec::new();
        let run = self.begin_run(id, env);
        let outer = self.ranged_over.len();
        let outcome = self.reading_as(Reader::Run(run), |this| this.clauses(id, 0, env, &mut envs));
        if outcome.is_ok() {
            for index in outer..self.ranged_over.len() {
                let node = self.ranged_over[index];
                self.node_mut(node).is_counted = true;
            }
        }
        self.ranged_over.truncate(outer);
        outcome?;
        self.end_run(run, &envs);
        Ok(envs)
    }

    /// Refuses a field that comes after a loop has gone over the members of its struct: what the loop
    /// yields would depend on which of the two came first.
    pub(crate) fn is_too_late(
        &mut self,
        node: NodeId,
        label: Label,
        pos: Pos,
        is_computed: bool,
    ) -> bool {
        if !self.node(node).is_counted || self.arc(node, label).is_some() {
            return false;
        }
        let name = self.labels.show(label);
        let (code, message) = if is_computed {
            let message =
                format!("adding field {name} not allowed as field set was already referenced");
            (Code::Eval, message)
        } else {
            (Code::Cycle, format!("cyclic reference to field {name}"))
        };
        let saved = std::mem::replace(&mut self.current, node);
        let error = self.error_at(code, pos, message);
        self.current = saved;
        self.add_error(node, error);
        true
    }

    /// Runs the clauses from one on.
    fn clauses(
        &mut self,
        id: ComprehensionId,
        position: usize,
        env: EnvId,
        envs: &mut Vec<EnvId>,
    ) -> Result<(), ErrId> {
        if !self.step() {
            return Err(self.exhaust("steps"));
        }
        let clauses = &self.program.comprehension(id).clauses;
        let Some(clause) = clauses.get(position).copied() else {
            envs.push(env);
            return Ok(());
        };
        let rest = position + 1;
        match clause {
            Clause::If { condition } => {
                if self.condition(condition, env)? {
                    self.clauses(id, rest, env, envs)?;
                }
                Ok(())
            }
            Clause::Let { value } => {
                let node = self.anonymous(value, env);
                let owner = self.envs[env.0 as usize].node;
                let env = self.new_env(env, owner, Binding::Let(node));
                self.clauses(id, rest, env, envs)
            }
            Clause::For { source } => {
                let owner = self.envs[env.0 as usize].node;
                for (key, value) in self.range(source, env)? {
                    let env = self.new_env(env, owner, Binding::For { key, value });
                    self.clauses(id, rest, env, envs)?;
                }
                Ok(())
            }
        }
    }

    fn condition(&mut self, condition: ExprId, env: EnvId) -> Result<bool, ErrId> {
        if let Some(Value::Bool(answer)) = self.known_atom(condition, env) {
            return Ok(answer);
        }
        let value = self.eval_default(condition, env)?;
        let pos = self.program.pos(condition);
        if let Some(Value::Bool(answer)) = self.atom(&value) {
            Ok(answer)
        } else {
            let kind = self.kind_of(&value);
            let text = self.show(&value);
            if kind.intersects(Kind::BOOL) {
                let message = format!("incomplete bool: {text}");
                return Err(self.error_at(Code::Incomplete, pos, message));
            }
            let message = format!("cannot use {text} (type {kind}) as type bool");
            Err(self.error_at(Code::Eval, pos, message))
        }
    }

    /// Keys and values of what a `for` ranges over.
    fn range(&mut self, source: ExprId, env: EnvId) -> Result<Vec<(Value, NodeId)>, ErrId> {
        let pos = self.program.pos(source);
        let value = match self.known_range(source, env) {
            Some(node) => Val::Node(node),
            None => self.ranged_over(source, env)?,
        };
        let node = match value {
            Val::Node(node) => self.default_node(node, pos)?,
            Val::Atom(value @ (Value::List(_) | Value::Struct(_))) => {
                let node = self.data_node(value);
                self.settle(node, false);
                node
            }
            value => {
                let kind = self.kind_of(&value);
                let text = self.program.text(source).to_owned();
                let message =
                    format!("cannot range over {text} (found {kind}, want list or struct)");
                return Err(self.error_at(Code::Eval, pos, message));
            }
        };
        self.settle(node, false);
        self.count_members(node, source)?;
        if let Some(error) = self.node(node).error {
            return Err(error);
        }
        let slot = self.node(node);
        let composite = slot.is_composite() || slot.has_struct && matches!(slot.base, Base::Unset);
        if !composite {
            let text = self.program.text(source).to_owned();
            let kind = slot.scalar.kind;
            let (code, message) = if kind.intersects(Kind(Kind::STRUCT.0 | Kind::LIST.0)) {
                let message = format!("cannot range over {text} (incomplete type {kind})");
                (Code::Incomplete, message)
            } else {
                let message =
                    format!("cannot range over {text} (found {kind}, want list or struct)");
                (Code::Eval, message)
            };
            return Err(self.error_at(code, pos, message));
        }
        if slot.status < Status::Settled
            && let Some(error) = self.blocking_error(node)
            && !(self.forced && self.error(error).pending)
        {
            return Err(error);
        }
        self.members(node, source)
    }

    /// Evaluates what a `for` ranges over: it depends on which members there are, and leaves it
    /// to the body to depend on what they are.
    fn ranged_over(&mut self, source: ExprId, env: EnvId) -> Result<Val, ErrId> {
        if !self.program.expr(source).is_reference() {
            return self.eval(source, env);
        }
        if !self.step() {
            return Err(self.exhaust("steps"));
        }
        match self.nested(|this| this.resolve(source, env))?? {
            Val::Node(node) => {
                self.note(node, Need::Members);
                self.value_of(node, source)
            }
            value => Ok(value),
        }
    }

    /// Waits until all members of a node are there, as far as that can be waited for, and notes that a
    /// comprehension relies on it.
    pub(crate) fn count_members(&mut self, node: NodeId, source: ExprId) -> Result<(), ErrId> {
        if !self.forced && self.is_growing(node) {
            let text = self.program.text(source).to_owned();
            let message = format!("cannot range over {text} (incomplete)");
            let pos = self.program.pos(source);
            return Err(self.pending_error(Code::Incomplete, pos, message));
        }
        self.ranged_over.push(node);
        Ok(())
    }

    fn members(&mut self, node: NodeId, source: ExprId) -> Result<Vec<(Value, NodeId)>, ErrId> {
        // Iteration follows the order in which fields were added, as in the reference; only
        // exports sort them.
        self.expand(node);
        let mut arcs: SmallVec<[_; 16]> = SmallVec::from_slice(&self.node(node).arcs);
        let mut members = Vec::with_capacity(arcs.len());
        if self.node(node).list.is_some() {
            arcs.sort_by_key(|(label, _)| label.as_index());
        }
        self.spend(arcs.len() / 8);
        for (label, arc) in arcs {
            if let Some(index) = label.as_index() {
                let number = Number::from(i64::try_from(index).unwrap_or(i64::MAX));
                members.push((Value::Number(number), arc));
                continue;
            }
            if !label.is_regular() {
                continue;
            }
            match self.node(arc).arc {
                ArcKind::Member => members.push((Value::String(self.labels.text(label)), arc)),
                ArcKind::Required => {
                    let pos = self.program.pos(source);
                    let text = self.labels.show(label);
                    let message = format!("missing required field in for comprehension: {text}");
                    return Err(self.error_at(Code::Incomplete, pos, message));
                }
                ArcKind::Optional => {}
            }
        }
        Ok(members)
    }

    /// Whether some task of the node, or of one above it, may still add fields to it.
    fn is_growing(&self, node: NodeId) -> bool {
        let slot = self.node(node);
        let is_open = |task: &Task| {
            !task.done && (task.running || task.error.is_none_or(|e| self.error(e).pending))
        };
        slot.status < Status::Settled && slot.tasks.iter().any(is_open) || self.may_learn(node)
    }
}
