//! Calls: predeclared functions, builtin packages, validators.

use std::sync::Arc;

use super::{Base, CloseInfo, Conjunct, EnvId, ErrId, Evaluator, NodeId, Source, Val};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Callee, Expr, ExprId, Predeclared};
use crate::label::Label;
use crate::number::Number;
use crate::token::Pos;
use crate::value::{Builtin, Failure, Host, Kind, Param, Value};

impl Evaluator {
    pub(crate) fn call(
        &mut self,
        expr: ExprId,
        function: ExprId,
        arguments: &[ExprId],
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let pos = self.program.pos(expr);
        match self.eval(function, env)? {
            Val::Function(Callee::Predeclared(name)) => {
                self.call_predeclared(name, expr, arguments, env)
            }
            Val::Function(callee @ Callee::Builtin(_, builtin)) => {
                if self.is_validator_call(callee, arguments.len()) {
                    // Reached only where a validator is used as an operand.
                    return self.validator_node(expr, env).map(Val::Node);
                }
                let values = self.arguments(callee, builtin, arguments, env, pos)?;
                self.call_builtin(callee, builtin, &values, pos)
            }
            value => {
                let text = self.program.text(function).to_owned();
                let kind = self.kind_of(&value);
                let message = format!("cannot call non-function {text} (type {kind})");
                Err(self.error_at(Code::Eval, pos, message))
            }
        }
    }

    fn is_validator_call(&self, callee: Callee, count: usize) -> bool {
        match callee {
            Callee::Builtin(_, builtin) => {
                builtin.result == Kind::BOOL
                    && count + 1 == builtin.params.len()
                    && builtin.params.get(count).is_some_and(|param| param.default.is_none())
            }
            Callee::Predeclared(Predeclared::MatchN) => count == 2,
            Callee::Predeclared(Predeclared::MatchIf) => count == 3,
            Callee::Predeclared(_) => false,
        }
    }

    /// If the expression is a validator, what it is and its arguments.
    pub(crate) fn validator_call(
        &mut self,
        expr: ExprId,
        env: EnvId,
    ) -> Result<Option<(Callee, Vec<Val>)>, ErrId> {
        let program = self.program.clone();
        let Expr::Call { function, arguments } = program.expr(expr) else { return Ok(None) };
        let Expr::Function(callee) = program.expr(*function) else { return Ok(None) };
        if !self.is_validator_call(*callee, arguments.len()) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match callee {
                Callee::Predeclared(_) => Val::Node(self.anonymous(*argument, env)),
                Callee::Builtin(..) => self.eval(*argument, env)?,
            });
        }
        Ok(Some((*callee, values)))
    }

    fn validator_node(&mut self, expr: ExprId, env: EnvId) -> Result<NodeId, ErrId> {
        let node = self.anonymous(expr, env);
        self.settle(node, false);
        match self.blocking_error(node) {
            Some(error) => Err(error),
            None => Ok(node),
        }
    }

    fn check_count(
        &mut self,
        name: &str,
        given: usize,
        wanted: (usize, usize),
        pos: Pos,
    ) -> Result<(), ErrId> {
        let which = if given > wanted.1 {
            "too many"
        } else if given < wanted.0 {
            "not enough"
        } else {
            return Ok(());
        };
        let message =
            format!("{which} arguments in call to {name} (have {given}, want {})", wanted.1);
        Err(self.error_at(Code::Eval, pos, message))
    }

    fn arguments(
        &mut self,
        callee: Callee,
        builtin: &'static Builtin,
        arguments: &[ExprId],
        env: EnvId,
        pos: Pos,
    ) -> Result<Vec<Value>, ErrId> {
        let name = qualified(callee);
        let required = builtin.params.iter().filter(|param| param.default.is_none()).count();
        self.check_count(&name, arguments.len(), (required, builtin.params.len()), pos)?;
        let mut values = Vec::with_capacity(builtin.params.len());
        let mut failed = None;
        for (index, param) in builtin.params.iter().enumerate() {
            let value = match arguments.get(index) {
                Some(argument) => {
                    let evaluated = self.eval(*argument, env);
                    evaluated.and_then(|value| {
                        let pos = self.program.pos(*argument);
                        self.argument(&name, index, param, value, pos)
                    })
                }
                None => Ok(Value::string(param.default.unwrap_or(""))),
            };
            match value {
                Ok(value) => values.push(value),
                Err(error) => failed = Some(self.combine(failed, error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(values),
        }
    }

    fn argument(
        &mut self,
        name: &str,
        index: usize,
        param: &Param,
        value: Val,
        pos: Pos,
    ) -> Result<Value, ErrId> {
        let kind = self.kind_of(&value);
        if param.schema && param.kind == Kind::TOP {
            return Ok(match value {
                Val::Atom(value) => value,
                Val::Node(node) => self.opaque(node),
                Val::Function(_) => {
                    return Err(self.error_at(Code::Eval, pos, "functions cannot be arguments"));
                }
            });
        }
        let value = match value {
            Val::Node(node) => Val::Node(self.default_node(node, pos)?),
            value => value,
        };
        let kind = if kind.intersects(param.kind) { self.kind_of(&value) } else { kind };
        if !kind.intersects(param.kind) {
            let text = self.show(&value);
            let message = format!(
                "cannot use {text} (type {kind}) as {} in argument {} to {name}",
                param.kind,
                index + 1
            );
            return Err(self.error_at(Code::Eval, pos, message));
        }
        match (param.schema, &value) {
            (true, Val::Node(node)) => {
                let atom = self.atom(&value);
                Ok(atom.unwrap_or_else(|| self.opaque(*node)))
            }
            _ => self.plain_argument(name, index, param, &value, pos),
        }
    }

    fn plain_argument(
        &mut self,
        name: &str,
        index: usize,
        param: &Param,
        value: &Val,
        pos: Pos,
    ) -> Result<Value, ErrId> {
        if let Some(atom) = self.atom(value) {
            return Ok(atom);
        }
        let composite = match value {
            Val::Node(node) => self.node(*node).is_composite(),
            _ => true,
        };
        if !composite {
            let text = self.show(value);
            let _ = (name, index, param);
            let message = format!("non-concrete argument {index}: {text}");
            return Err(self.error_at(Code::Incomplete, pos, message));
        }
        self.plain_value(value)
    }

    fn call_builtin(
        &mut self,
        callee: Callee,
        builtin: &'static Builtin,
        arguments: &[Value],
        pos: Pos,
    ) -> Result<Val, ErrId> {
        let name = qualified(callee);
        match (builtin.call)(self, arguments) {
            Ok(value) => Ok(self.returned(value)),
            Err(Failure::Error(message)) => {
                let message = format!("error in call to {name}: {message}");
                Err(self.error_at(Code::Eval, pos, message))
            }
            Err(Failure::Incomplete(message)) => {
                let message = format!("error in call to {name}: {message}");
                Err(self.error_at(Code::Incomplete, pos, message))
            }
            Err(Failure::Unsatisfied(_) | Failure::UnsatisfiedYet(_)) => {
                Ok(Val::Atom(Value::Bool(false)))
            }
        }
    }

    /// A builtin's result, with the handles in it turned back into nodes.
    pub(crate) fn returned(&mut self, value: Value) -> Val {
        if !contains_opaque(&value) {
            return Val::Atom(value);
        }
        let node = self.detached();
        self.fill_opaque(node, value, CloseInfo::default());
        self.settle(node, false);
        Val::Node(node)
    }

    fn fill_opaque(&mut self, node: NodeId, value: Value, info: CloseInfo) {
        let source = match value {
            Value::Opaque(handle) => {
                let target = self.opaque.get(handle.0 as usize).copied();
                Source::Node(target.unwrap_or(node))
            }
            Value::List(items) if items.iter().any(contains_opaque) => {
                // The list itself first, so that the node knows its length.
                let items: Vec<Value> = items.to_vec();
                self.start(node);
                let by = super::scalar::Described::Kind(Kind::LIST);
                self.update_kind(node, Kind::LIST, by, Pos::NONE, info);
                let length = items.len();
                for (index, item) in items.into_iter().enumerate() {
                    let label = Label::index(index);
                    let arc = self.new_node(node, label);
                    self.node_mut(node).arcs.push((label, arc));
                    self.fill_opaque(arc, item, info.keyed(index as u64));
                }
                self.node_mut(node).list = Some(super::node::ListShape { length, closed: true });
                self.node_mut(node).has_non_cyclic = true;
                self.node_mut(node).has_non_cycle = true;
                self.keep_list(node);
                return;
            }
            Value::Struct(fields) if fields.iter().any(|(_, value)| contains_opaque(value)) => {
                self.start(node);
                let slot = self.node_mut(node);
                slot.has_struct = true;
                slot.is_struct = true;
                slot.has_non_cyclic = true;
                slot.has_non_cycle = true;
                for (label, value) in fields.iter() {
                    let label = self.labels.string(label);
                    let arc = self.new_node(node, label);
                    self.node_mut(node).arcs.push((label, arc));
                    self.fill_opaque(arc, value.clone(), info);
                }
                self.keep_list(node);
                return;
            }
            plain => self.data(plain),
        };
        self.add_conjunct(node, Conjunct { source, env: super::NO_ENV, info });
    }

    /// Makes a node built from handles referable: its conjunct is itself, element by element.
    fn keep_list(&mut self, node: NodeId) {
        let elements: Vec<NodeId> = self.node(node).arcs.iter().map(|(_, arc)| *arc).collect();
        let labels: Vec<Label> = self.node(node).arcs.iter().map(|(label, _)| *label).collect();
        self.composites.push((labels, elements));
        let index = u32::try_from(self.composites.len() - 1).unwrap_or(u32::MAX);
        let conjunct = Conjunct {
            source: Source::Composite(index),
            env: super::NO_ENV,
            info: CloseInfo::default(),
        };
        self.node_mut(node).conjuncts.push(conjunct);
    }

    /// Adds the elements or fields of a composite to another node.
    pub(crate) fn insert_composite(&mut self, node: NodeId, index: u32, info: CloseInfo) {
        let Some((labels, elements)) = self.composites.get(index as usize).cloned() else { return };
        self.update_cyclic_status(node, info);
        let list = labels.first().is_none_or(|label| label.is_index());
        let kind = if list { Kind::LIST } else { Kind::STRUCT };
        let by = super::scalar::Described::Kind(kind);
        self.update_kind(node, kind, by, Pos::NONE, info);
        if !list {
            let slot = self.node_mut(node);
            slot.has_struct = true;
            slot.is_struct = true;
        }
        let length = labels.len();
        for (position, (label, element)) in labels.into_iter().zip(elements).enumerate() {
            let info = CloseInfo { from_embed: false, ..info }.keyed(position as u64);
            let conjunct = Conjunct { source: Source::Node(element), env: super::NO_ENV, info };
            self.insert_arc(node, label, ArcKind::Member, conjunct, crate::ir::MetaId(0));
        }
        if list {
            if let Some(error) = self.set_length(node, length, true) {
                self.add_error(node, error);
            }
        }
    }

    fn call_predeclared(
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
            Ok(Val::Atom(Value::Number(Number::from(i64::try_from(count).unwrap_or(i64::MAX)))))
        };
        match self.atom(&value) {
            Some(Value::String(text)) => return count(text.len()),
            Some(Value::Bytes(bytes)) => return count(bytes.len()),
            Some(Value::List(items)) => return count(items.len()),
            Some(Value::Struct(fields)) => return count(fields.len()),
            _ => {}
        }
        if let Val::Node(node) = &value {
            let slot = self.node(*node);
            if let Some(list) = slot.list {
                return count(list.length);
            }
            if slot.is_composite() {
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
        let message = format!("cannot use {text} (type {kind}) as {supported} in argument 1 to len");
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
            let message = format!("cannot use {text} (type {kind}) as struct in argument 1 to close");
            return Err(self.error_at(Code::Eval, pos, message));
        }
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.closed_once = true;
        slot.no_sharing = true;
        let info = CloseInfo::default();
        let conjunct = Conjunct { source: Source::Node(target), env: super::NO_ENV, info };
        slot.conjuncts.push(conjunct);
        self.settle(node, false);
        Ok(Val::Node(node))
    }

    fn conjunction(&mut self, argument: ExprId, env: EnvId) -> Result<Val, ErrId> {
        let items = self.elements_of(argument, env)?;
        let node = self.detached();
        for (index, item) in items.into_iter().enumerate() {
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct { source: Source::Node(item), env: super::NO_ENV, info };
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
        let conjunct = Conjunct { source: Source::Or(index), env: super::NO_ENV, info };
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
        let shape = if node.is_none() { None } else { self.node(node).list };
        let Some(list) = shape else {
            let text = self.program.text(argument).to_owned();
            let message = format!("cannot use {text} as list in argument 1");
            return Err(self.error_at(Code::Incomplete, pos, message));
        };
        let labels = (0..list.length).map(Label::index);
        Ok(labels.filter_map(|label| self.node(node).find(label)).collect())
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

    /// Runs a validator on a node.
    pub(crate) fn run_validator(
        &mut self,
        node: NodeId,
        callee: Callee,
        arguments: &[Val],
        pos: Pos,
    ) -> Result<(), ErrId> {
        let Callee::Builtin(_, builtin) = callee else {
            return self.match_schemas(node, callee, arguments, pos);
        };
        let name = qualified(callee);
        let mut values = Vec::with_capacity(builtin.params.len());
        let subject = Val::Node(node);
        for (index, param) in builtin.params.iter().enumerate() {
            let value = match index.checked_sub(1) {
                None => subject.clone(),
                Some(given) => match arguments.get(given) {
                    Some(value) => value.clone(),
                    None => Val::Atom(Value::string(param.default.unwrap_or(""))),
                },
            };
            values.push(self.argument(&name, index, param, value, pos)?);
        }
        let outcome = (builtin.call)(self, &values);
        let (code, detail) = match outcome {
            Ok(Value::Bool(true)) => return Ok(()),
            Ok(_) => (Code::Eval, String::new()),
            Err(Failure::Error(text) | Failure::Unsatisfied(text)) => (Code::Eval, text),
            Err(Failure::Incomplete(text) | Failure::UnsatisfiedYet(text)) => {
                (Code::Incomplete, text)
            }
        };
        let mut shown = String::new();
        if values.len() > 1 {
            let texts: Vec<String> =
                values[1..].iter().map(|value| Host::show(self, value)).collect();
            shown = format!("({})", texts.join(", "));
        }
        let text = self.show_node(node);
        let mut message = format!("invalid value {text} (does not satisfy {name}{shown})");
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(&detail);
        }
        Err(self.error_at(code, pos, message))
    }

    /// `matchN` and `matchIf`.
    fn match_schemas(
        &mut self,
        node: NodeId,
        callee: Callee,
        arguments: &[Val],
        pos: Pos,
    ) -> Result<(), ErrId> {
        // The value without its constraints: a validator must not meet itself again.
        let handle = self.bare(node, 0);
        let schema = |this: &mut Self, index: usize| match arguments.get(index) {
            Some(Val::Node(schema)) => this.opaque(*schema),
            Some(Val::Atom(value)) => value.clone(),
            _ => Value::Null,
        };
        let text = self.show_node(node);
        if let Callee::Predeclared(Predeclared::MatchIf) = callee {
            let condition = schema(self, 0);
            let branch = if self.matches(&handle, &condition).is_ok() { 1 } else { 2 };
            let chosen = schema(self, branch);
            return match self.matches(&handle, &chosen) {
                Ok(()) => Ok(()),
                Err(detail) => {
                    let message = format!("invalid value {text} (does not satisfy matchIf): {detail}");
                    Err(self.error_at(Code::Eval, pos, message))
                }
            };
        }
        let list = match arguments.get(1) {
            Some(Val::Node(list)) => *list,
            _ => NodeId::NONE,
        };
        if !list.is_none() {
            self.settle(list, true);
        }
        let items = if list.is_none() { None } else { self.list_items(&Val::Node(self.deref(list))) };
        let Some(items) = items else {
            return Err(self.error_at(Code::Eval, pos, "matchN: second argument must be a list"));
        };
        let matched = items.iter().filter(|item| self.matches(&handle, item).is_ok()).count();
        let count = Value::Number(Number::from(i64::try_from(matched).unwrap_or(i64::MAX)));
        let wanted = schema(self, 0);
        if self.matches(&count, &wanted).is_ok() {
            return Ok(());
        }
        let wanted = Host::show(self, &wanted);
        let message = format!(
            "invalid value {text} (does not satisfy matchN): {matched} matched, expected {wanted}"
        );
        Err(self.error_at(Code::Eval, pos, message))
    }

    /// The value of a node as plain data; what is not concrete stays a handle.
    fn bare(&mut self, node: NodeId, depth: u32) -> Value {
        let original = node;
        let Ok(node) = self.default_node(node, Pos::NONE) else { return self.opaque(original) };
        let slot = self.node(node);
        if let Some(atom) = &slot.scalar.atom {
            return atom.clone();
        }
        if depth > 100 || slot.error.is_some() {
            return self.opaque(node);
        }
        match slot.base {
            Base::Struct => {
                let mut fields = Vec::new();
                for (label, arc) in self.ordered_arcs(node) {
                    if label.is_regular() && self.node(arc).arc == ArcKind::Member {
                        fields.push((self.labels.text(label), self.bare(arc, depth + 1)));
                    }
                }
                Value::Struct(fields.into())
            }
            Base::List => {
                let arcs = self.ordered_arcs(node);
                Value::list(arcs.into_iter().map(|(_, arc)| self.bare(arc, depth + 1)).collect::<Vec<_>>())
            }
            _ => self.opaque(node),
        }
    }

    fn node_for(&mut self, value: &Value) -> NodeId {
        match value {
            Value::Opaque(handle) => {
                self.opaque.get(handle.0 as usize).copied().unwrap_or(self.root)
            }
            composite if contains_opaque(composite) => match self.returned(composite.clone()) {
                Val::Node(node) => node,
                Val::Atom(_) | Val::Function(_) => self.root,
            },
            plain => self.data_node(plain.clone()),
        }
    }

    /// A fresh node that unifies the given ones.
    fn unified(&mut self, parts: &[NodeId]) -> NodeId {
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.no_sharing = true;
        for (index, part) in parts.iter().enumerate() {
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct { source: Source::Node(*part), env: super::NO_ENV, info };
            self.node_mut(node).conjuncts.push(conjunct);
        }
        self.finalize(node);
        node
    }

    fn match_error(&mut self, data: &Value, schema: &Value, concrete: bool) -> Option<String> {
        let (data, schema) = (self.node_for(data), self.node_for(schema));
        let unified = self.unified(&[data, schema]);
        let value = self.deref(unified);
        let slot = self.node(value);
        if let Some(error) = slot.error.or(slot.child_error) {
            if concrete || !self.error(error).code.is_temporary() {
                return Some(self.message(error));
            }
        }
        if concrete {
            let options = super::ValidateOptions { concrete: true, ..Default::default() };
            let found = self.validate(unified, options);
            return found.first().map(|diagnostic| diagnostic.message.clone());
        }
        None
    }
}

impl Host for Evaluator {
    fn matches(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        match self.match_error(data, schema, true) {
            Some(message) => Err(message),
            None => Ok(()),
        }
    }

    fn matches_partially(&mut self, data: &Value, schema: &Value) -> Result<(), String> {
        match self.match_error(data, schema, false) {
            Some(message) => Err(message),
            None => Ok(()),
        }
    }

    fn apply(
        &mut self,
        template: &Value,
        fields: &[(&str, &Value)],
        result: &str,
    ) -> Result<Value, Failure> {
        let template = self.node_for(template);
        let node = self.detached();
        let slot = self.node_mut(node);
        slot.no_sharing = true;
        let info = CloseInfo::default();
        slot.conjuncts.push(Conjunct { source: Source::Node(template), env: super::NO_ENV, info });
        self.start(node);
        for (index, (label, value)) in fields.iter().enumerate() {
            let part = self.node_for(value);
            let label = self.labels.string(label);
            let info = CloseInfo::default().keyed(index as u64);
            let conjunct = Conjunct { source: Source::Node(part), env: super::NO_ENV, info };
            self.insert_arc(node, label, ArcKind::Member, conjunct, crate::ir::MetaId(0));
        }
        self.finalize(node);
        let node = self.deref(node);
        let label = self.labels.string(result);
        let failed = |this: &Self, error: ErrId| Failure::Error(this.message(error));
        if let Some(error) = self.node(node).error.or(self.node(node).child_error) {
            return Err(failed(self, error));
        }
        let Some(field) = self.node(node).find(label) else {
            return Err(Failure::error(format!("undefined field: {result}")));
        };
        match self.default_node(field, Pos::NONE) {
            Ok(field) => match self.plain(field) {
                Ok(value) => Ok(value),
                Err(error) => Err(failed(self, error)),
            },
            Err(error) => Err(failed(self, error)),
        }
    }

    fn output_limit(&self) -> usize {
        self.budget.output
    }

    fn elements(&mut self, list: &Value) -> Option<Vec<Value>> {
        if let Value::List(items) = list {
            return Some(items.to_vec());
        }
        let node = self.node_for(list);
        self.settle(node, false);
        let node = self.default_node(node, Pos::NONE).ok()?;
        let length = self.node(node).list?.length;
        let elements: Vec<NodeId> =
            (0..length).filter_map(|index| self.node(node).find(Label::index(index))).collect();
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            self.settle(element, false);
            let atom = self.atom(&Val::Node(element));
            values.push(atom.unwrap_or_else(|| self.opaque(element)));
        }
        Some(values)
    }

    fn fields(&mut self, structure: &Value) -> Option<Vec<(Arc<str>, Value)>> {
        if let Value::Struct(fields) = structure {
            return Some(fields.to_vec());
        }
        let node = self.node_for(structure);
        self.settle(node, false);
        let node = self.default_node(node, Pos::NONE).ok()?;
        if !self.node(node).has_struct {
            return None;
        }
        let mut fields = Vec::new();
        for (label, arc) in self.ordered_arcs(node) {
            if label.is_regular() && self.node(arc).arc == ArcKind::Member {
                fields.push((self.labels.text(label), self.opaque(arc)));
            }
        }
        Some(fields)
    }

    fn concrete(&mut self, value: &Value) -> Result<Value, Failure> {
        let Value::Opaque(_) = value else { return Ok(value.clone()) };
        let node = self.node_for(value);
        match self.plain(node) {
            Ok(value) => Ok(value),
            Err(error) => {
                let message = self.message(error);
                if self.error(error).code.is_temporary() {
                    Err(Failure::Incomplete(message))
                } else {
                    Err(Failure::Error(message))
                }
            }
        }
    }

    fn is_open(&mut self, value: &Value) -> bool {
        let Value::Opaque(_) = value else { return false };
        let node = self.node_for(value);
        self.settle(node, false);
        let node = self.deref(node);
        if let Some(list) = self.node(node).list {
            return !list.closed;
        }
        let optional = self.node(node).arcs.iter().any(|(_, arc)| {
            self.node(*arc).arc == ArcKind::Optional
        });
        optional || self.is_open_struct(node)
    }

    fn show(&mut self, value: &Value) -> String {
        match value {
            Value::Opaque(_) => {
                let node = self.node_for(value);
                self.show_node(node)
            }
            plain => self.show_value(plain),
        }
    }
}

fn contains_opaque(value: &Value) -> bool {
    match value {
        Value::Opaque(_) => true,
        Value::List(items) => items.iter().any(contains_opaque),
        Value::Struct(fields) => fields.iter().any(|(_, value)| contains_opaque(value)),
        _ => false,
    }
}

/// The name of a function as messages print it.
fn qualified(callee: Callee) -> String {
    match callee {
        Callee::Predeclared(function) => function.name().to_owned(),
        Callee::Builtin(package, builtin) => {
            let package = package.rsplit('/').next().unwrap_or(package);
            format!("{package}.{}", builtin.name)
        }
    }
}
