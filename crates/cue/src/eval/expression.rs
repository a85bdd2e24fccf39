//! Evaluating expressions to values.

use std::sync::Arc;

use bellwether_go::regexp::Regex;

use super::call::BYTES_PER_STEP;
use super::{Base, Binding, EnvId, ErrId, Evaluator, NodeId, Status, Val};
use crate::ast::{BinaryOp, UnaryOp};
use crate::diagnostic::Code;
use crate::ir::{BoundOp, Expr, ExprId, Run};
use crate::value::{Kind, Value};

/// Steps that a byte of a regular expression costs when it is compiled.
const STEPS_PER_PATTERN_BYTE: usize = 8;

impl Evaluator {
    /// Evaluates an expression; defaults stay open.
    pub(crate) fn eval(&mut self, expr: ExprId, env: EnvId) -> Result<Val, ErrId> {
        if !self.step() {
            return Err(self.exhaust("steps"));
        }
        self.nested(|this| this.eval_inner(expr, env))?
    }

    fn eval_inner(&mut self, expr: ExprId, env: EnvId) -> Result<Val, ErrId> {
        match self.program.expr(expr) {
            Expr::Value(value) => Ok(Val::Atom(self.program.constant(value).clone())),
            Expr::Function(callee) => Ok(Val::Function(callee)),
            Expr::ForKey { up } => {
                let env = self.up(env, up);
                match &self.envs[env.0 as usize].binding {
                    Binding::For { key, .. } => Ok(Val::Atom(key.clone())),
                    _ => Err(self.error_at(
                        Code::Eval,
                        self.program.pos(expr),
                        "internal: no loop key",
                    )),
                }
            }
            Expr::PatternLabel { up } => {
                let env = self.up(env, up);
                match self.envs[env.0 as usize].binding {
                    Binding::Label(label) => Ok(Val::Atom(Value::String(self.labels.text(label)))),
                    _ => {
                        Err(self.error_at(Code::Eval, self.program.pos(expr), "internal: no label"))
                    }
                }
            }
            Expr::Binary { op, left, right } => self.binary(expr, op, left, right, env),
            Expr::Unary(op, operand) => self.unary(expr, op, operand, env),
            Expr::Interpolation { bytes, parts } => self.interpolate(expr, bytes, parts, env),
            Expr::Call {
                function,
                arguments,
            } => self.call(expr, function, arguments, env),
            Expr::Slice { base, low, high } => self.slice(base, low, high, env),
            Expr::Bottom => {
                let message = "explicit error (_|_ literal) in source";
                Err(self.error_at(Code::User, self.program.pos(expr), message))
            }
            reference if reference.is_reference() => match self.resolve(expr, env)? {
                Val::Node(node) => {
                    self.note_whole(node);
                    self.value_of(node, expr)
                }
                value => Ok(value),
            },
            _ => {
                let node = self.anonymous(expr, env);
                self.settle(node, false);
                self.value_of(node, expr)
            }
        }
    }

    /// Evaluates an expression and takes the default.
    pub(crate) fn eval_default(&mut self, expr: ExprId, env: EnvId) -> Result<Val, ErrId> {
        match self.eval(expr, env)? {
            Val::Node(node) => {
                let pos = self.program.pos(expr);
                self.default_node(node, pos).map(Val::Node)
            }
            value => Ok(value),
        }
    }

    /// The scalar a value is, if it is known.
    pub(crate) fn atom(&self, value: &Val) -> Option<Value> {
        match value {
            Val::Atom(value) => Some(value.clone()),
            Val::Node(node) => self.node(self.deref(*node)).scalar.atom.clone(),
            Val::Function(_) => None,
        }
    }

    pub(crate) fn kind_of(&self, value: &Val) -> Kind {
        match value {
            Val::Atom(value) => value.kind(),
            Val::Node(node) => self.node_kind(*node),
            Val::Function(_) => Kind::FUNC,
        }
    }

    /// The kinds a node may still have.
    pub(crate) fn node_kind(&self, node: NodeId) -> Kind {
        let node = self.deref(node);
        let slot = self.node(node);
        match &slot.base {
            Base::Struct => Kind::STRUCT,
            Base::List => Kind::LIST,
            Base::Error(_) => Kind::BOTTOM,
            Base::Disjunction(disjunction) => disjunction
                .values
                .iter()
                .fold(Kind::BOTTOM, |kind, value| kind | self.node_kind(*value)),
            Base::Unset if slot.is_struct => Kind::STRUCT,
            Base::Unset if slot.list.is_some() => Kind::LIST,
            Base::Scalar | Base::Unset => slot.scalar.kind,
        }
    }

    /// An operand that must be concrete: an atom, or a struct or list as a node.
    pub(crate) fn concrete(&mut self, expr: ExprId, env: EnvId, op: &str) -> Result<Val, ErrId> {
        if let Some(atom) = self.known_atom(expr, env) {
            return Ok(Val::Atom(atom));
        }
        let value = self.eval_default(expr, env)?;
        let Val::Node(node) = &value else {
            return Ok(value);
        };
        let slot = self.node(self.deref(*node));
        if let Some(atom) = &slot.scalar.atom {
            return Ok(Val::Atom(atom.clone()));
        }
        let slot = self.node(*node);
        if slot.is_composite() {
            return Ok(value);
        }
        let pending = slot.status < Status::Settled || self.may_learn(*node);
        let text = self.show(&value);
        let pos = self.program.pos(expr);
        let message = format!("non-concrete value {text} in operand to {op}");
        let error = self.error_at(Code::Incomplete, pos, message);
        self.error_mut(error).pending = pending;
        Err(error)
    }

    fn binary(
        &mut self,
        expr: ExprId,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        if let Some(tested) = self.tested_for_existence(op, left, right) {
            let exists = self.exists(tested, env)?;
            return Ok(Val::Atom(Value::Bool(exists == (op == BinaryOp::NotEqual))));
        }
        // Both sides are evaluated even if one decides: an error on either is an error.
        let left = self.concrete(left, env, op.text());
        let right = self.concrete(right, env, op.text());
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(left), Err(right)) => return Err(self.combine(Some(left), right)),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        self.operate(op, &left, &right, self.program.pos(expr))
    }

    /// Answers `x != _|_`.
    pub(crate) fn exists(&mut self, expr: ExprId, env: EnvId) -> Result<bool, ErrId> {
        if let Some(known) = self.is_known_to_exist(expr, env) {
            return Ok(known);
        }
        let value = match self.eval(expr, env) {
            Ok(value) => value,
            Err(error) => return self.exists_error(expr, env, error),
        };
        let Val::Node(node) = value else {
            return Ok(true);
        };
        let pos = self.program.pos(expr);
        // Several alternatives without a default: there is a value, only not which.
        let Ok(node) = self.default_node(node, pos) else {
            return Ok(true);
        };
        if self.has_depth_cycle(node) {
            self.assume(expr, env, false);
            return Ok(false);
        }
        let slot = self.node(node);
        if slot.scalar.atom.is_some() && slot.error.is_none() {
            return Ok(true);
        }
        self.finalize(node);
        let Ok(node) = self.default_node(node, pos) else {
            return Ok(true);
        };
        let slot = self.node(node);
        if let Some(error) = slot.error {
            if !self.error(error).code.is_temporary() {
                return Ok(false);
            }
            if !slot.is_composite() {
                return self.exists_error(expr, env, error);
            }
        }
        if let Some(error) = slot.child_error
            && !self.error(error).code.is_temporary()
        {
            return Ok(false);
        }
        let composite = slot.is_composite() || slot.has_struct && matches!(slot.base, Base::Unset);
        if slot.scalar.atom.is_none() && !composite && slot.status < Status::Settled && !self.forced
        {
            let text = self.program.text(expr).to_owned();
            return Err(self.pending_error(Code::Cycle, pos, format!("cycle with field: {text}")));
        }
        let known = composite || slot.scalar.atom.is_some();
        if !known && self.may_learn(node) {
            if !self.forced {
                let text = self.program.text(expr).to_owned();
                let message = format!("non-concrete value {text}");
                return Err(self.pending_error(Code::Incomplete, pos, message));
            }
            self.assume(expr, env, false);
        }
        Ok(known)
    }

    fn exists_error(&mut self, expr: ExprId, env: EnvId, error: ErrId) -> Result<bool, ErrId> {
        if self.exhausted.is_some() {
            return Err(error);
        }
        let (code, pending) = {
            let error = self.error(error);
            (error.code, error.pending)
        };
        if !code.is_temporary() {
            return Ok(false);
        }
        if pending && !self.forced {
            return Err(error);
        }
        if code == Code::Cycle {
            return Err(error);
        }
        // Where nothing is unfinished, the answer cannot change.
        if pending {
            self.assume(expr, env, false);
        }
        Ok(false)
    }

    /// Notes an answer that must still hold once the node is complete.
    fn assume(&mut self, expr: ExprId, env: EnvId, answer: bool) {
        let node = self.current;
        let assumptions = &mut self.node_mut(node).assumptions;
        if assumptions.len() < 64 && !assumptions.contains(&(expr, env, answer)) {
            assumptions.push((expr, env, answer));
        }
    }

    fn unary(
        &mut self,
        expr: ExprId,
        op: UnaryOp,
        operand: ExprId,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let value = self.eval_default(operand, env)?;
        let wanted = match (op, self.atom(&value)) {
            (UnaryOp::Minus, Some(Value::Number(number))) => {
                return Ok(Val::Atom(Value::Number(number.negated())));
            }
            (UnaryOp::Plus, Some(Value::Number(number))) => {
                return Ok(Val::Atom(Value::Number(number)));
            }
            (UnaryOp::Not, Some(Value::Bool(value))) => return Ok(Val::Atom(Value::Bool(!value))),
            (UnaryOp::Not, _) => Kind::BOOL,
            _ => Kind::NUMBER,
        };
        let kind = self.kind_of(&value);
        if kind.intersects(wanted) {
            let text = self.program.text(operand).to_owned();
            let pos = self.program.pos(operand);
            let message = format!(
                "operand {text} of '{}' not concrete (was {kind})",
                op.text()
            );
            return Err(self.error_at(Code::Incomplete, pos, message));
        }
        let text = self.program.text(expr).to_owned();
        let message = format!("invalid operation {text} ({} {kind})", op.text());
        Err(self.error_at(Code::Eval, self.program.pos(expr), message))
    }

    fn interpolate(
        &mut self,
        expr: ExprId,
        bytes: bool,
        parts: Run,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let mut out: Vec<u8> = Vec::new();
        let mut failed: Option<ErrId> = None;
        for index in 0..parts.len() {
            let part = self.program.operands(parts)[index];
            match self.interpolated(part, env) {
                Ok(text) => out.extend_from_slice(&text),
                Err(error) => failed = Some(self.combine(failed, error)),
            }
            if out.len() > self.budget.output {
                return Err(self.exhaust("output"));
            }
        }
        if let Some(error) = failed {
            let message = format!("invalid interpolation: {}", self.message(error));
            let (code, pending) = {
                let error = self.error(error);
                (error.code, error.pending)
            };
            let wrapped = self.error_at(code, self.program.pos(expr), message);
            self.error_mut(wrapped).pending = pending;
            return Err(wrapped);
        }
        self.check_output(out.len())?;
        Ok(Val::Atom(if bytes {
            Value::Bytes(out.into())
        } else {
            Value::string(String::from_utf8_lossy(&out).into_owned())
        }))
    }

    fn interpolated(&mut self, part: ExprId, env: EnvId) -> Result<Vec<u8>, ErrId> {
        let value = self.eval_default(part, env)?;
        match self.atom(&value) {
            Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
            Some(Value::Bytes(bytes)) => Ok(bytes.to_vec()),
            Some(Value::Number(number)) => Ok(number.to_string().into_bytes()),
            Some(Value::Bool(value)) => Ok(value.to_string().into_bytes()),
            _ => {
                let kind = self.kind_of(&value);
                let text = self.show(&value);
                let pos = self.program.pos(part);
                let accepted = Kind::STRING | Kind::NUMBER | Kind::BYTES | Kind::BOOL;
                if kind.intersects(accepted) {
                    let message = format!("non-concrete value {text} (type {kind})");
                    return Err(self.error_at(Code::Incomplete, pos, message));
                }
                let message = format!("cannot use {text} (type {kind}) as type {accepted}");
                Err(self.error_at(Code::Eval, pos, message))
            }
        }
    }

    /// The concrete operand of a comparison used as a constraint.
    pub(crate) fn bound_operand(
        &mut self,
        expr: ExprId,
        op: BoundOp,
        operand: ExprId,
        env: EnvId,
    ) -> Result<Value, ErrId> {
        let value = self.eval_default(operand, env)?;
        let kind = self.kind_of(&value);
        let pos = self.program.pos(operand);
        let (text, symbol) = (self.program.text(operand).to_owned(), op.text());
        let simple = Kind::NUMBER | Kind::STRING | Kind::BYTES;
        let composite = Kind::NULL | Kind::STRUCT | Kind::LIST;
        let atom = match (self.atom(&value), &value) {
            (Some(atom), _) => Some(atom),
            (None, Val::Node(node)) if op == BoundOp::NotEqual => self.plain(*node).ok(),
            _ => None,
        };
        let Some(atom) = atom else {
            if kind.intersects(simple) || op == BoundOp::NotEqual && kind.intersects(composite) {
                let message = format!("non-concrete value {text} for bound {symbol}");
                return Err(self.error_at(Code::Incomplete, pos, message));
            }
            let message = format!("cannot use {kind} for bound {symbol}");
            return Err(self.error_at(Code::Eval, pos, message));
        };
        if matches!(op, BoundOp::Match | BoundOp::NotMatch)
            && let Value::String(pattern) = &atom
            && let Err(message) = self.regex(pattern)
        {
            let message = format!("invalid regexp: {message}");
            return Err(self.error_at(Code::Eval, pos, message));
        }
        if simple.contains(kind) || op == BoundOp::NotEqual && composite.contains(kind) {
            return Ok(atom);
        }
        if composite.contains(kind) {
            let message = format!("cannot use {kind} for bound {symbol}");
            return Err(self.error_at(Code::Eval, pos, message));
        }
        let shown = self.show_value(&atom);
        let message = format!("invalid value {shown} (type {kind}) for bound {symbol}");
        let _ = expr;
        Err(self.error_at(Code::Eval, pos, message))
    }

    pub(crate) fn matches_regex(&mut self, value: &Value, pattern: &Value) -> Result<bool, String> {
        let pattern = match pattern {
            Value::String(text) => text.clone(),
            Value::Bytes(bytes) => Arc::from(String::from_utf8_lossy(bytes).as_ref()),
            other => return Err(format!("cannot use {} as regular expression", other.kind())),
        };
        let regex = self.regex(&pattern)?;
        Ok(match value {
            Value::String(text) => {
                self.spend(text.len() / BYTES_PER_STEP);
                regex.is_match(text)
            }
            Value::Bytes(bytes) => {
                self.spend(bytes.len() / BYTES_PER_STEP);
                regex.is_match_bytes(bytes)
            }
            _ => false,
        })
    }

    pub(crate) fn regex(&mut self, pattern: &Arc<str>) -> Result<Arc<Regex>, String> {
        if let Some(known) = self.regexes.get(pattern) {
            return known.clone();
        }
        self.spend(pattern.len() * STEPS_PER_PATTERN_BYTE);
        let compiled = Regex::new(pattern)
            .map(Arc::new)
            .map_err(|error| format!("error parsing regexp: {error}"));
        self.regexes.insert(pattern.clone(), compiled.clone());
        compiled
    }

    /// Whether a label matches the value of a pattern.
    pub(crate) fn label_matches(&mut self, label: crate::label::Label, pattern: NodeId) -> bool {
        let text = Value::String(self.labels.text(label));
        self.value_matches(&text, pattern, 0)
    }

    fn value_matches(&mut self, value: &Value, pattern: NodeId, depth: u32) -> bool {
        let pattern = self.deref(pattern);
        if let Base::Disjunction(disjunction) = self.node(pattern).base.clone() {
            return depth < 64
                && disjunction
                    .values
                    .iter()
                    .any(|p| self.value_matches(value, *p, depth + 1));
        }
        let scalar = self.node(pattern).scalar.clone();
        if !scalar.kind.contains(value.kind()) || self.node(pattern).error.is_some() {
            return false;
        }
        if let Some(atom) = &scalar.atom {
            return super::scalar::equal_values(atom, value);
        }
        for bound in scalar.bounds() {
            if self.satisfies(value, bound) != Ok(true) {
                return false;
            }
        }
        for check in scalar.checks() {
            let ok = match check {
                super::scalar::Check::Bound(bound) => self.satisfies(value, bound) == Ok(true),
                super::scalar::Check::Call {
                    callee,
                    arguments,
                    pos,
                } => {
                    let node = self.data_node(value.clone());
                    self.settle(node, true);
                    self.run_validator(node, *callee, arguments, *pos).is_ok()
                }
            };
            if !ok {
                return false;
            }
        }
        true
    }

    fn slice_index(&mut self, expr: ExprId, env: EnvId) -> Result<usize, ErrId> {
        let value = self.concrete(expr, env, "slice index")?;
        let number = match value.literal() {
            Some(Value::Number(number)) => number.to_i64(),
            _ => None,
        };
        let index = number.and_then(|number| usize::try_from(number).ok());
        index.ok_or_else(|| {
            let pos = self.program.pos(expr);
            let message = "slice index must be a non-negative integer";
            self.error_at(Code::Eval, pos, message)
        })
    }

    fn slice(
        &mut self,
        base: ExprId,
        low: Option<ExprId>,
        high: Option<ExprId>,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let pos = self.program.pos(base);
        let value = self.eval_default(base, env)?;
        let node = match value {
            Val::Node(node) => node,
            Val::Atom(value) => {
                let node = self.data_node(value);
                self.settle(node, false);
                node
            }
            Val::Function(_) => {
                return Err(self.error_at(Code::Eval, pos, "cannot slice a function"));
            }
        };
        let Some(list) = self.node(node).list else {
            let kind = self.node_kind(node);
            let text = self.show_node(node);
            let code = if kind.intersects(Kind::LIST) {
                Code::Incomplete
            } else {
                Code::Eval
            };
            let message = format!("cannot slice {text} (type {kind})");
            return Err(self.error_at(code, pos, message));
        };
        let low = low.map_or(Ok(0), |low| self.slice_index(low, env))?;
        let high = high.map_or(Ok(list.length), |high| self.slice_index(high, env))?;
        if low > high || high > list.length {
            let message = if low > high {
                format!("invalid slice index: {low} > {high}")
            } else {
                format!(
                    "slice bounds out of range [:{high}] with length {}",
                    list.length
                )
            };
            return Err(self.error_at(Code::Eval, pos, message));
        }
        self.expand(node);
        let items: Vec<Value> = (low..high)
            .filter_map(|index| self.node(node).find(crate::label::Label::index(index)))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|element| self.opaque(element))
            .collect();
        Ok(self.returned(Value::List(items.into())))
    }
}
