//! Calls: predeclared functions, builtin packages, validators.

use super::{EnvId, ErrId, Evaluator, NodeId, Val};
use crate::diagnostic::Code;
use crate::ir::{Callee, Expr, ExprId, Predeclared, Run};
use crate::token::Pos;
use crate::value::{Builtin, Failure, Host, Kind, Param, Value};

/// Bytes of text that can be looked through in the time of a step.
pub(super) const BYTES_PER_STEP: usize = 256;

impl Evaluator {
    pub(crate) fn call(
        &mut self,
        expr: ExprId,
        function: ExprId,
        arguments: Run,
        env: EnvId,
    ) -> Result<Val, ErrId> {
        let program = self.program.clone();
        let arguments = program.operands(arguments);
        let pos = program.pos(expr);
        let callee = match self.eval(function, env) {
            Err(_) if self.is_package_member(function) => {
                let text = program.text(function);
                let message = format!("cannot call non-function {text} (type _|_)");
                return Err(self.error_at(Code::Eval, pos, message));
            }
            callee => callee?,
        };
        match callee {
            Val::Function(Callee::Predeclared(name)) => {
                self.call_predeclared(name, expr, arguments, env)
            }
            Val::Function(callee @ Callee::Builtin(_, builtin)) => {
                if Self::is_validator_call(callee, arguments.len()) {
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

    /// Whether an expression names a member of a package, which cannot gain one later.
    fn is_package_member(&self, expr: ExprId) -> bool {
        let Expr::Selector { base, .. } = self.program.expr(expr) else {
            return false;
        };
        matches!(self.program.expr(base), Expr::Import(_))
    }

    fn is_validator_call(callee: Callee, count: usize) -> bool {
        match callee {
            Callee::Builtin(_, builtin) => {
                builtin.result == Kind::BOOL
                    && count + 1 == builtin.params.len()
                    && builtin
                        .params
                        .get(count)
                        .is_some_and(|param| param.default.is_none())
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
        let Expr::Call {
            function,
            arguments,
        } = program.expr(expr)
        else {
            return Ok(None);
        };
        let Expr::Function(callee) = program.expr(function) else {
            return Ok(None);
        };
        let arguments = program.operands(arguments);
        if !Self::is_validator_call(callee, arguments.len()) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match callee {
                Callee::Predeclared(_) => Val::Node(self.anonymous(*argument, env)),
                Callee::Builtin(..) => self.eval(*argument, env)?,
            });
        }
        Ok(Some((callee, values)))
    }

    pub(super) fn validator_node(&mut self, expr: ExprId, env: EnvId) -> Result<NodeId, ErrId> {
        let node = self.anonymous(expr, env);
        self.settle(node, false);
        match self.blocking_error(node) {
            Some(error) => Err(error),
            None => Ok(node),
        }
    }

    pub(super) fn check_count(
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
        let message = format!(
            "{which} arguments in call to {name} (have {given}, want {})",
            wanted.1
        );
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
        let name = quoted(callee);
        let required = builtin
            .params
            .iter()
            .filter(|param| param.default.is_none())
            .count();
        self.check_count(
            &name,
            arguments.len(),
            (required, builtin.params.len()),
            pos,
        )?;
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
        if let Val::Node(node) = &value
            && let Some(error) = self.node(*node).error
        {
            return Err(error);
        }
        let kind = if kind.intersects(param.kind) {
            self.kind_of(&value)
        } else {
            kind
        };
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
        self.pay_for(arguments);
        match (builtin.call)(self, arguments) {
            Ok(value) => {
                if !self.use_memory(weight(&value)) {
                    return Err(self.exhaust("memory"));
                }
                Ok(self.returned(value))
            }
            // The message of a wrong element names the call itself.
            Err(Failure::Error(message)) if message.starts_with("invalid list element") => {
                Err(self.error_at(Code::Eval, pos, message))
            }
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

    /// Builtins take time in proportion to what they are given, at least.
    fn pay_for(&mut self, arguments: &[Value]) {
        let bytes: usize = arguments.iter().map(weight).sum();
        self.spend(bytes / BYTES_PER_STEP);
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
            let name = quoted(callee);
            values.push(self.argument(&name, index, param, value, pos)?);
        }
        self.pay_for(&values);
        let outcome = (builtin.call)(self, &values);
        let (code, detail) = match outcome {
            Ok(Value::Bool(true)) => return Ok(()),
            Ok(_) => (Code::Eval, String::new()),
            Err(Failure::Error(text)) => {
                let text = self.show_node(node)
                    + &format!(" (does not satisfy {name}): error in call to {name}: {text}");
                return Err(self.error_at(Code::Eval, pos, format!("invalid value {text}")));
            }
            Err(Failure::Unsatisfied(text)) => (Code::Eval, text),
            Err(Failure::Incomplete(text) | Failure::UnsatisfiedYet(text)) => {
                (Code::Incomplete, text)
            }
        };
        let mut shown = String::new();
        if values.len() > 1 {
            let texts: Vec<String> = values[1..]
                .iter()
                .map(|value| Host::show(self, value))
                .collect();
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
}

pub(super) fn contains_opaque(value: &Value) -> bool {
    match value {
        Value::Opaque(_) => true,
        Value::List(items) => items.iter().any(contains_opaque),
        Value::Struct(fields) => fields.iter().any(|(_, value)| contains_opaque(value)),
        _ => false,
    }
}

/// Bytes a value takes, by estimate.
fn weight(value: &Value) -> usize {
    let slot = size_of::<Value>();
    match value {
        Value::String(text) => slot + text.len(),
        Value::Bytes(bytes) => slot + bytes.len(),
        Value::List(items) => slot + items.iter().map(weight).sum::<usize>(),
        Value::Struct(fields) => {
            let fields = fields.iter();
            slot + fields
                .map(|(label, value)| label.len() + weight(value))
                .sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Opaque(_) => slot,
    }
}

/// The name of a function as messages print it.
fn qualified(callee: Callee) -> String {
    match callee {
        Callee::Predeclared(function) => function.name().to_owned(),
        Callee::Builtin(package, builtin) => format!("{package}.{}", builtin.name),
    }
}

/// The same, as messages about arguments have it.
fn quoted(callee: Callee) -> String {
    match callee {
        Callee::Builtin(package, builtin) if package.contains('/') => {
            format!("\"{package}\".{}", builtin.name)
        }
        _ => qualified(callee),
    }
}
