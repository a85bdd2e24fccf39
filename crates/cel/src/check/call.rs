//! Calls: finding the function and the overloads that fit.

use std::sync::Arc;

use super::{CallStyle, Checker, Reference};
use crate::ast::{Call, Expr, ExprId, ExprKind, Literal, operator, qualified_name};
use crate::declaration::Function;
use crate::types::Type;
use crate::types::unify::Substitution;

impl Checker<'_> {
    pub(super) fn check_call(&mut self, expr: &Expr, call: &Call) {
        if call.function == operator::OPT_SELECT {
            self.check_optional_select(expr.id, call);
            return;
        }
        for argument in &call.arguments {
            self.check(argument);
        }
        let Some(target) = &call.target else {
            match self.function(&call.function) {
                Some(function) => self.resolve_overload(expr.id, &function, None, call),
                None => self.undeclared(expr.id, &call.function),
            }
            return;
        };
        if let Some(prefix) = qualified_name(target) {
            let name = format!("{prefix}.{}", call.function);
            if let Some(function) = self.function(&name) {
                self.resolve_overload(expr.id, &function, None, call);
                return;
            }
        }
        self.check(target);
        match self.function(&call.function) {
            Some(function) => self.resolve_overload(expr.id, &function, Some(target), call),
            None => self.undeclared(expr.id, &call.function),
        }
    }

    fn function(&self, name: &str) -> Option<Arc<Function>> {
        self.functions
            .get(name.strip_prefix('.').unwrap_or(name))
            .cloned()
    }

    fn check_optional_select(&mut self, id: ExprId, call: &Call) {
        let [operand, field] = call.arguments.as_slice() else {
            return;
        };
        let ExprKind::Literal(Literal::String(field)) = &field.kind else {
            return;
        };
        let result = self.selected(id, operand, field, true);
        let result = self.known.apply(&result, false);
        self.set_type(id, result);
    }

    /// Finds every overload that fits. Several may, where types are open; then the result is
    /// open too unless they agree on it.
    fn resolve_overload(
        &mut self,
        id: ExprId,
        function: &Arc<Function>,
        target: Option<&Expr>,
        call: &Call,
    ) {
        let arguments: Vec<Type> = target
            .into_iter()
            .chain(&call.arguments)
            .map(|argument| self.type_of(argument))
            .collect();
        if matches!(
            &*function.name,
            operator::LOGICAL_AND | operator::LOGICAL_OR
        ) {
            self.check_logical(id, function, &arguments, &call.arguments);
            return;
        }
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        for (index, overload) in function.overloads.iter().enumerate() {
            if overload.member != target.is_some() {
                continue;
            }
            let base = self.known.reserve(overload.type_variables);
            let parameters: Vec<Type> = overload
                .parameters
                .iter()
                .map(|parameter| Substitution::instantiate(parameter, base))
                .collect();
            if !self.known.assignable_all(&arguments, &parameters) {
                continue;
            }
            fitting.push(index);
            let declared = Substitution::instantiate(&overload.result, base);
            let this = self.known.apply(&declared, false);
            result = Some(match result {
                None => this,
                Some(result) if result.is_dyn() || this.is_exactly(&result) => result,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            self.no_matching_overload(id, &function.name, &arguments, target.is_some());
            return;
        };
        self.set_type(id, result);
        let style = if target.is_none() && call.target.is_some() {
            CallStyle::Namespaced
        } else {
            CallStyle::Ordinary
        };
        self.set_reference(id, Reference::Call(function.clone(), fitting, style));
    }

    /// `&&` and `||` name the operand that is no boolean instead of the whole signature.
    fn check_logical(
        &mut self,
        id: ExprId,
        function: &Arc<Function>,
        types: &[Type],
        arguments: &[Expr],
    ) {
        let mut fits = true;
        for (of, argument) in types.iter().zip(arguments) {
            if !self.known.assignable(of, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, of);
                fits = false;
            }
        }
        if fits {
            self.set_type(id, Type::Bool);
            let reference = Reference::Call(function.clone(), vec![0], CallStyle::Ordinary);
            self.set_reference(id, reference);
        } else {
            self.set_type(id, Type::Error);
        }
    }

    fn no_matching_overload(&mut self, id: ExprId, name: &str, arguments: &[Type], member: bool) {
        let shown: Vec<String> = arguments
            .iter()
            .map(|of| self.known.apply(of, true).to_string())
            .collect();
        let signature = match shown.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.report(
            id,
            format!("found no matching overload for '{name}' applied to '{signature}'"),
        );
        self.set_type(id, Type::Error);
    }
}
