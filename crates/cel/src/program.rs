//! A compiled expression.

use std::fmt;
use std::sync::Arc;

use crate::ast::Expr;
use crate::check::Checked;
use crate::cost::Budget;
use crate::cost::estimate::{self, CostEstimate};
use crate::error::EvalError;
use crate::eval::Evaluator;
use crate::plan::Node;
use crate::schema::DeclType;
use crate::types::Type;
use crate::value::{Value, view};
use crate::vars::{Binding, Vars};

/// A compiled expression, ready to be evaluated any number of times, on any thread. Cloning is
/// cheap.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) source: Arc<str>,
    pub(crate) root: Node,
    pub(crate) slots: usize,
    pub(crate) globals: Globals,
    pub(crate) expr: Expr,
    pub(crate) checked: Checked,
    /// Indexes of the variables the expression mentions.
    pub(crate) referenced: Vec<usize>,
}

/// The variables of an environment and what is declared about their JSON.
#[derive(Debug, Clone)]
pub(crate) struct Globals {
    pub(crate) variables: Arc<[Global]>,
}

#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) name: Arc<str>,
    pub(crate) decl: Option<Arc<DeclType>>,
}

impl Globals {
    /// The value of variable `index` in `vars`.
    pub(crate) fn value<'a>(
        &'a self,
        index: usize,
        vars: &Vars<'a>,
    ) -> Result<Value<'a>, EvalError> {
        let Some(global) = self.variables.get(index) else {
            return Err(EvalError::failed("no such attribute(s)"));
        };
        let seen = |json: &'a serde_json::Value| match &global.decl {
            Some(decl) => view(json, decl),
            None => Ok(Value::from_json(json)),
        };
        match vars.binding(&global.name) {
            Some(Binding::Json(json)) => seen(json),
            Some(Binding::Value(value)) => Ok(value.clone()),
            Some(Binding::OptionalJson(None)) => Ok(Value::none()),
            Some(Binding::OptionalJson(Some(json))) => seen(json).map(Value::some),
            None => Err(EvalError::failed(format!(
                "no such attribute(s): {}",
                global.name
            ))),
        }
    }
}

impl Program {
    pub(crate) fn new(inner: Inner) -> Program {
        Program {
            inner: Arc::new(inner),
        }
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// The type the value will have; `dyn` if only evaluation can tell.
    pub fn output_type(&self) -> &Type {
        self.inner.checked.type_of(self.inner.expr.id)
    }

    /// Whether the expression mentions the variable `name`.
    pub fn references(&self, name: &str) -> bool {
        self.inner
            .referenced
            .iter()
            .any(|index| &*self.inner.globals.variables[*index].name == name)
    }

    /// Evaluates the expression over `vars`, charging `budget`. The value may borrow from both
    /// the program and the bindings.
    pub fn evaluate<'a>(
        &'a self,
        vars: &Vars<'a>,
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        let inner = &*self.inner;
        let mut evaluator = Evaluator::new(&inner.globals, vars, inner.slots, budget.per_call());
        let result = evaluator.run(&inner.root);
        if !budget.take(evaluator.cost) && !matches!(result, Err(EvalError::CallLimitExceeded)) {
            return Err(EvalError::BudgetExceeded);
        }
        result
    }

    /// The bounds of what an evaluation can cost, from the sizes the schemas of the variables
    /// allow. This is what Kubernetes compares with its limits when a rule is created.
    pub fn estimate_cost(&self) -> CostEstimate {
        estimate::estimate(&self.inner)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.inner.source).finish()
    }
}
