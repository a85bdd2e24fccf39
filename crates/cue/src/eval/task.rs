//! Tasks: the parts of conjuncts that need other values.
//!
//! A task either completes, fails for good, or is blocked by something that is not
//! known yet; blocked tasks are tried again whenever anything became known.

use super::close::Mark;
use super::cycle::Followed;
use super::depend::{Need, Reader};
use super::node::{Matcher, Pattern};
use super::scalar::{Bound, Check, Described};
use super::{CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source, Val};
use crate::diagnostic::Code;
use crate::ir::{Callee, ComprehensionId, Decl, Expr, ExprId, StructId};
use crate::label::Label;
use crate::token::Pos;
use crate::value::{Kind, Value};

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskKind {
    Reference(ExprId),
    Expr(ExprId),
    Dynamic(StructId, u32),
    Pattern(StructId, u32),
    Comprehension(ComprehensionId),
    List(ExprId),
}

/// A queued task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) kind: TaskKind,
    pub(crate) env: EnvId,
    pub(crate) info: CloseInfo,
    pub(crate) running: bool,
    pub(crate) done: bool,
    /// The state of knowledge at the last try.
    pub(crate) stamp: u64,
    /// Why it is blocked.
    pub(crate) error: Option<ErrId>,
}

impl Task {
    pub(crate) fn new(kind: TaskKind, env: EnvId, info: CloseInfo) -> Self {
        Self {
            kind,
            env,
            info,
            running: false,
            done: false,
            stamp: 0,
            error: None,
        }
    }
}

impl Evaluator {
    /// Runs the tasks of a node until none makes progress.
    pub(crate) fn run_tasks(&mut self, node: NodeId) {
        self.node_mut(node).running += 1;
        loop {
            let mut progressed = false;
            let mut index = 0;
            while index < self.node(node).tasks.len() {
                progressed |= self.try_task(node, index);
                index += 1;
            }
            if !progressed || self.exhausted.is_some() {
                break;
            }
        }
        let slot = self.node_mut(node);
        slot.running -= 1;
        if slot.running == 0 {
            slot.tasks.retain(|task| !task.done);
        }
    }

    /// Tries one task; true if it completed.
    pub(crate) fn try_task(&mut self, node: NodeId, index: usize) -> bool {
        let stamp = self.progress * 2 + u64::from(self.forced);
        let Some(task) = self.node(node).tasks.get(index).copied() else {
            return false;
        };
        if task.done || task.running || task.stamp == stamp {
            return false;
        }
        {
            let slot = &mut self.node_mut(node).tasks[index];
            slot.running = true;
            slot.stamp = stamp;
        }
        let current = std::mem::replace(&mut self.current, node);
        let cycle = std::mem::replace(&mut self.cycle, task.info);
        let reader = std::mem::replace(&mut self.reads.reader, Reader::Node(node));
        let outcome = match self.nested(|this| this.run_task(node, task)) {
            Ok(outcome) => outcome,
            Err(error) => Err(error),
        };
        self.current = current;
        self.cycle = cycle;
        self.reads.reader = reader;
        let passing = outcome.is_err_and(|error| self.error(error).code.is_temporary());
        // When a limit is exceeded meanwhile, the tasks of the node are gone.
        if let Some(slot) = self.node_mut(node).tasks.get_mut(index) {
            slot.running = false;
            slot.done = !passing;
            slot.error = outcome.err();
        }
        if let Err(error) = outcome
            && !passing
        {
            self.add_error(node, error);
        }
        !passing
    }

    fn run_task(&mut self, node: NodeId, task: Task) -> Result<(), ErrId> {
        if !self.step() {
            return Err(self.exhaust("steps"));
        }
        match task.kind {
            TaskKind::Reference(expr) => self.run_reference(node, expr, task),
            TaskKind::Expr(expr) => self.run_expr(node, expr, task),
            TaskKind::Dynamic(literal, index) => self.run_dynamic(node, literal, index, task),
            TaskKind::Pattern(literal, index) => self.run_pattern(node, literal, index, task),
            TaskKind::Comprehension(id) => self.run_comprehension(node, id, task.env, task.info),
            TaskKind::List(expr) => self.run_list(node, expr, task.env, task.info),
        }
    }

    fn run_reference(&mut self, node: NodeId, expr: ExprId, task: Task) -> Result<(), ErrId> {
        let target = match self.resolve(expr, task.env)? {
            Val::Node(target) => {
                self.note(target, Need::Conjuncts);
                self.deref_shared(target)
            }
            value => {
                self.insert(node, value, self.program.pos(expr), task.info);
                return Ok(());
            }
        };
        // The environment of a conjunct copied into an alternative still names the original.
        let conjunct = Conjunct {
            source: Source::Expr(expr),
            env: task.env,
            info: task.info,
        };
        let checked = self.detect_cycle(node, target, expr, conjunct);
        let Followed::Go(info) = checked else {
            self.unshare(node);
            return Ok(());
        };
        if let Some(error) = self.node(self.deref(target)).error
            && self.error(error).code == Code::StructuralCycle
        {
            return Err(error);
        }
        let info = info.keyed(u64::from(expr.0));
        self.add_target(node, target, Conjunct { info, ..conjunct });
        self.progress += 1;
        Ok(())
    }

    fn run_expr(&mut self, node: NodeId, expr: ExprId, task: Task) -> Result<(), ErrId> {
        let pos = self.program.pos(expr);
        if let Expr::Bound(op, operand) = self.program.expr(expr) {
            let value = self.bound_operand(expr, op, operand, task.env)?;
            let bound = Bound { op, value, pos };
            self.insert_bound(node, bound, task.info);
            self.progress += 1;
            return Ok(());
        }
        if let Some((callee, arguments)) = self.validator_call(expr, task.env)? {
            self.insert_check(node, callee, arguments, pos, task.info);
            return Ok(());
        }
        let value = self.eval(expr, task.env)?;
        self.insert(node, value, pos, task.info.keyed(u64::from(expr.0)));
        Ok(())
    }

    /// Adds the outcome of an expression to a node.
    pub(crate) fn insert(&mut self, node: NodeId, value: Val, pos: Pos, info: CloseInfo) {
        match value {
            Val::Atom(value) => self.insert_owned(node, value, pos, info),
            Val::Node(target) => {
                let conjunct = Conjunct {
                    source: Source::Node(target),
                    env: super::NO_ENV,
                    info,
                };
                if self.node(target).closed_once {
                    self.node_mut(node).closed_once = true;
                    let info = self.enter_reference(node, target, info, false);
                    self.add_target(node, target, Conjunct { info, ..conjunct });
                } else {
                    self.add_target(node, target, conjunct);
                }
            }
            Val::Function(callee) => self.insert_function(node, callee, pos, info),
        }
        self.progress += 1;
    }

    /// A function used as a constraint, such as `time.Time`, or bound to a name.
    fn insert_function(&mut self, node: NodeId, callee: Callee, pos: Pos, info: CloseInfo) {
        match callee {
            Callee::Builtin(_, builtin)
                if builtin.params.len() == 1 && builtin.result == Kind::BOOL =>
            {
                self.insert_check(node, callee, Vec::new(), pos, info);
            }
            _ => self.node_mut(node).function = Some(callee),
        }
    }

    /// Adds a validator.
    pub(crate) fn insert_check(
        &mut self,
        node: NodeId,
        callee: Callee,
        arguments: Vec<Val>,
        pos: Pos,
        info: CloseInfo,
    ) {
        let (kind, non_concrete) = match callee {
            Callee::Builtin(_, builtin) => {
                let first = builtin.params.first();
                (first.map_or(Kind::TOP, |param| param.kind), false)
            }
            Callee::Predeclared(_) => (Kind::TOP, true),
        };
        if kind.intersects(super::close::OPENING_KINDS) {
            let mark = if non_concrete {
                Mark::OpenValidator
            } else {
                Mark::Top
            };
            self.evidence(node, info, mark);
        }
        self.evidence(node, info, Mark::None);
        self.update_cyclic_status(node, info);
        if kind == Kind::TOP {
            self.node_mut(node).has_top = true;
        }
        self.node_mut(node).has_open_validator |= non_concrete;
        self.update_kind(node, kind, Described::Text(callee_name(callee)), pos, info);
        let check = Check::Call {
            callee,
            arguments,
            pos,
        };
        self.node_mut(node).scalar.push_check(check);
        self.progress += 1;
    }

    /// The declaration of that number in a struct literal.
    fn declaration(&self, literal: StructId, index: u32) -> Option<Decl> {
        let decls = &self.program.structure(literal).decls;
        decls.get(index as usize).copied()
    }

    fn run_dynamic(
        &mut self,
        node: NodeId,
        literal: StructId,
        index: u32,
        task: Task,
    ) -> Result<(), ErrId> {
        let Some(Decl::Dynamic {
            key,
            kind,
            value,
            meta,
        }) = self.declaration(literal, index)
        else {
            return Ok(());
        };
        let label = self.dynamic_label(key, task.env)?;
        if self.is_too_late(node, label, self.program.pos(key), true) {
            return Ok(());
        }
        let info = task.info.keyed(u64::from(value.0));
        let conjunct = Conjunct {
            source: Source::Expr(value),
            env: task.env,
            info,
        };
        self.insert_arc(node, label, kind, conjunct, meta);
        Ok(())
    }

    /// The label a computed key stands for.
    pub(crate) fn dynamic_label(&mut self, key: ExprId, env: EnvId) -> Result<Label, ErrId> {
        let pos = self.program.pos(key);
        let value = self.eval_default(key, env)?;
        match self.atom(&value) {
            Some(Value::String(text)) => Ok(self.labels.string(&text)),
            Some(Value::Number(number)) if number.is_int() => {
                Err(self.error_at(Code::Eval, pos, "integer fields not supported"))
            }
            Some(other) => {
                let text = self.show_value(&other);
                let message = format!("invalid index {text} (invalid type {})", other.kind());
                Err(self.error_at(Code::Eval, pos, message))
            }
            None => {
                let text = self.show(&value);
                let kind = self.kind_of(&value);
                if !kind.intersects(Kind::STRING) {
                    let message = format!("invalid index {text} (invalid type {kind})");
                    return Err(self.error_at(Code::Eval, pos, message));
                }
                let message = format!("key value of dynamic field must be concrete, found {text}");
                Err(self.error_at(Code::Incomplete, pos, message))
            }
        }
    }

    fn run_pattern(
        &mut self,
        node: NodeId,
        literal: StructId,
        index: u32,
        task: Task,
    ) -> Result<(), ErrId> {
        let Some(Decl::Pattern {
            pattern,
            value,
            alias,
            meta,
        }) = self.declaration(literal, index)
        else {
            return Ok(());
        };
        let matcher = self.anonymous(pattern, task.env);
        self.settle(matcher, false);
        let settled = self.deref(matcher);
        if let Some(error) = self.blocking_error(settled) {
            return Err(error);
        }
        let conjunct = Conjunct {
            source: Source::Expr(value),
            env: task.env,
            info: task.info,
        };
        let pattern = Pattern {
            matcher: Matcher::Value(settled),
            conjunct,
            alias,
            meta,
        };
        self.insert_pattern(node, pattern);
        self.progress += 1;
        Ok(())
    }
}

pub(crate) fn callee_name(callee: Callee) -> &'static str {
    match callee {
        Callee::Predeclared(function) => function.name(),
        Callee::Builtin(_, builtin) => builtin.name,
    }
}
