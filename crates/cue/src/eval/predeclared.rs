//! The functions known without an import.

use super::{CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source, Val};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, ExprId, Predeclared};
use crate::label::Label;
use crate::number::Number;
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    pub(super) fn call_predeclared(
        &mut self,
        function: Predeclared,
        expr: ExprId,
        arguments: &[ExprId],
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let pos = self.program.pos(expr);
        let wanted = match function {
            Predeclared::Len
            | Predeclared::Close
            | Predeclared::And
            | Predeclared::Or
            | Predeclared::Error => 1,
            Predeclared::Div | Predeclared::Mod | Predeclared::Quo | Predeclared::Rem => 2,
            Predeclared::MatchN | Predeclared::MatchIf => {
                return self.validator_node(expr, env).map(Val::Node);
            }
        };
        self.check_count(function.name(), arguments.len(), (wanted, wanted), pos)?;
        let Some(first) = arguments.first().copied() else {
            return Err(self.error_at(Code::Eval, pos, "missing argument"));
        };
        match function {
            Predeclared::Len => self.length(first, env),
            Predeclared::Close => self.close(first, env),
            Predeclared::And => self.conjunction(first, env),
            Predeclared::Or => self.alternatives(first, env, pos),
            Predeclared::Error => self.user_error(first, env, pos),
            _ => self.integer_division(function, first, arguments[1], env, pos),
        }
    }

    fn length(&mut self, argument: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let pos = self.program.pos(argument);
        let value = self.eval_default(argument, env)?;
        let count = |count: usize| {
            Ok(Val::Atom(Value::Number(Number::from(
                i64::try_from(count).unwrap_or(i64::MAX),
            ))))
        };
        match self.atom(&value) {
            Some(Value::String(text)) => return count(text.len()),
            Some(Value::Bytes(bytes)) => return count(bytes.len()),
            Some(Value::List(items)) => return count(items.len()),
            Some(Value::Struct(fields)) => return count(fields.len()),
            _ => {}
        }
        if let Val::Node(node) = &value {
            self.expand(*node);
            let slot = self.node(*node);
            if let Some(list) = slot.list {
                return count(list.length);
            }
            if slot.is_composite() {
                self.count_members(*node, argument)?;
                let slot = self.node(*node);
                let regular = slot.arcs.iter().filter(|(label, arc)| {
                    label.is_regular() && self.node(*arc).arc == ArcKind::Member
                });
                return count(regular.count());
            }
        }
        let (text, kind) = (self.show(&value), self.kind_of(&value));
        let supported = Kind::STRING | Kind::BYTES | Kind::LIST | Kind::STRUCT;
        if kind.intersects(supported) {
            let message = format!("incomplete argument {text} (type {kind})");
            return Err(self.error_at(Code::Incomplete, pos, message));
        }
        let message =
            format!("cannot use {text} (type {kind}) as {supported} in argument 1 to len");
        Err(self.error_at(Code::Eval, pos, message))
    }

    fn close(&mut self, argument: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let pos = self.program.pos(argument);
        let value = self.eval_default(argument, env)?;
        let kind = self.kind_of(&value);
        let target = match value {
            Val::Node(node) => node,
            Val::Atom(value @ Value::Struct(_)) => self.data_node(value),
            Val::Atom(_) | Val::Function(_) => NodeId::NONE,
        };
        if target.is_none() || !kind.intersects(Kind::STRUCT) {
            let text = self.program.text(argument).to_owned();
            let message =
                format!("cannot use {text} (type {kind}) as struct in argument 1 to close");
            return Err(self.error_at(Code::Eval, pos, message));
        }
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.closed_once = true;
        slot.no_sharing = true;
        let info = CloseInfo::default();
        let conjunct = Conjunct {
            source: Source::Node(target),
            env: super::NO_ENV,
            info,
        };
        slot.conjuncts.push(conjunct);
        self.settle(node, false);
        Ok(Val::Node(node))
    }

    fn conjunction(&mut self, argument: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let items = self.elements_of(argument, env)?;
        let node = self.detached();
        for (index, item) in items.into_iter().enumerate() {
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct {
                source: Source::Node(item),
                env: super::NO_ENV,
                info,
            };
            self.node_mut(node).conjuncts.push(conjunct);
        }
        self.settle(node, false);
        Ok(Val::Node(node))
    }

    fn alternatives(&mut self, argument: ExprId, env: EnvId, pos: Pos) -> Result<Val, ErrId> {
        let items = self.elements_of(argument, env)?;
        if items.is_empty() {
            return Err(self.error_at(Code::Incomplete, pos, "empty list in call to or"));
        }
        self.alternatives.push(items);
        let index = u32::try_from(self.alternatives.len() - 1).unwrap_or(u32::MAX);
        let node = self.detached();
        let slot = self.node_mut(node);
        let info = CloseInfo::default();
        let conjunct = Conjunct {
            source: Source::Or(index),
            env: super::NO_ENV,
            info,
        };
        slot.conjuncts.push(conjunct);
        self.settle(node, false);
        Ok(Val::Node(node))
    }

    fn elements_of(&mut self, argument: ExprId, env: EnvId) -> Result<Vec<NodeId>, ErrId> {
        let pos = self.program.pos(argument);
        let value = self.eval_default(argument, env)?;
        let node = match value {
            Val::Node(node) => node,
            Val::Atom(value @ Value::List(_)) => {
                let node = self.data_node(value);
                self.settle(node, false);
                node
            }
            _ => NodeId::NONE,
        };
        let shape = if node.is_none() {
            None
        } else {
            self.node(node).list
        };
        let Some(list) = shape else {
            let text = self.program.text(argument).to_owned();
            let message = format!("cannot use {text} as list in argument 1");
            return Err(self.error_at(Code::Incomplete, pos, message));
        };
        self.expand(node);
        let labels = (0..list.length).map(Label::index);
        Ok(labels
            .filter_map(|label| self.node(node).find(label))
            .collect())
    }

    fn user_error(&mut self, argument: ExprId, env: EnvId, pos: Pos) -> Result<Val, ErrId> {
        let value = self.eval_default(argument, env);
        let text = match value {
            Ok(value) => match self.atom(&value) {
                Some(Value::String(text)) => text.to_string(),
                _ => self.show(&value),
            },
            Err(_) => self.program.text(argument).to_owned(),
        };
        Err(self.error_at(Code::User, pos, text))
    }

    fn integer_division(
        &mut self,
        function: Predeclared,
        left: ExprId,
        right: ExprId,
        env: EnvId,
        pos: Pos,
    ) -> Result<Val, ErrId> {
        let mut numbers = Vec::with_capacity(2);
        for (index, argument) in [left, right].into_iter().enumerate() {
            let value = self.concrete(argument, env, function.name())?;
            match self.atom(&value) {
                Some(Value::Number(number)) if number.is_int() => numbers.push(number),
                _ => {
                    let (text, kind) = (self.show(&value), self.kind_of(&value));
                    let message = format!(
                        "cannot use {text} (type {kind}) as int in argument {} to {}",
                        index + 1,
                        function.name()
                    );
                    return Err(self.error_at(Code::Eval, pos, message));
                }
            }
        }
        let (a, b) = (&numbers[0], &numbers[1]);
        let result = match function {
            Predeclared::Div => a.div_euclid(b),
            Predeclared::Mod => a.mod_euclid(b),
            Predeclared::Quo => a.quo_truncated(b),
            _ => a.rem_truncated(b),
        };
        match result {
            Ok(number) => Ok(Val::Atom(Value::Number(number))),
            Err(error) => Err(self.error_at(Code::Eval, pos, error.to_string())),
        }
    }
}
