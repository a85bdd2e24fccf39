//! Running rules on an object.

use bellwether_cel::{Budget, EvalError, Program, Vars};
use serde_json::Value;

use super::{CompiledRule, Prepared, RuleTree, describe, present};
use crate::correlate::{Correlated, KeyedItems};
use crate::field::{FieldError, FieldErrorKind, FieldPath};
use crate::field_errors::FieldErrors;
use crate::model::{ListType, Rule, Schema, Type};
use crate::text;

/// Longest message that an expression may compute, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
    validation rules will be run";

/// What rules have found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Rules that do not hold, or could not be run.
    pub(crate) errors: FieldErrors,
    /// Rules that do not hold on parts that did not change, and so are tolerated.
    pub(crate) tolerated: FieldErrors,
    /// True if rules were left out because nobody waits for the result.
    pub(crate) interrupted: bool,
}

/// Runs the rules of `tree` on `value`.
///
/// `old` is the value before, for transition rules; `change` is given where errors on unchanged parts
/// are to be tolerated.
pub(crate) fn run(
    tree: &RuleTree,
    schema: &Schema,
    path: &FieldPath<'_>,
    (value, old): (&Value, Option<&Value>),
    change: Option<Correlated<'_>>,
    (budget, is_interrupted): (&mut Budget, &dyn Fn() -> bool),
) -> Outcome {
    let mut runner = Runner {
        budget,
        is_interrupted,
        stopped: false,
        outcome: Outcome::default(),
    };
    let ratchet = Ratchet {
        current: change,
        nearest: None,
    };
    runner.tree(
        tree,
        schema,
        path,
        Subject {
            value,
            old,
            ratchet,
        },
    );
    runner.outcome
}

/// A value that rules are run on.
#[derive(Clone, Copy)]
struct Subject<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    ratchet: Ratchet<'a>,
}

/// What a value is a change of: itself, or the nearest value around it that has a counterpart.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Correlated<'a>>,
    nearest: Option<Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    fn tolerates(&self) -> bool {
        self.current
            .or(self.nearest)
            .is_some_and(|change| change.is_unchanged())
    }

    fn key(self, name: &str) -> Self {
        let Some(current) = self.current else {
            return self;
        };
        // Both versions of an object are converted to the same type, so that these never differ.
        if self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self {
                current: None,
                nearest: None,
            };
        }
        Self {
            current: current.key(name),
            nearest: Some(current),
        }
    }

    /// For an item of a list; `change` is what it is a change of, if the list has keys.
    fn item(self, change: Option<Correlated<'a>>) -> Self {
        let Some(current) = self.current else {
            return self;
        };
        Self {
            current: change,
            nearest: Some(current),
        }
    }
}

struct Runner<'b> {
    budget: &'b mut Budget,
    is_interrupted: &'b dyn Fn() -> bool,
    /// Whether no further rule is to be run.
    stopped: bool,
    outcome: Outcome,
}

// Recursion follows the tree, which has the depth of its schema.
impl Runner<'_> {
    fn tree<'a>(
        &mut self,
        tree: &RuleTree,
        schema: &'a Schema,
        path: &FieldPath<'_>,
        subject: Subject<'a>,
    ) {
        if subject.value.is_null() {
            return;
        }
        self.rules(tree, schema, path, subject);
        match subject.value {
            Value::Array(items) => {
                let (Some(tree), Some(schema_of_items)) = (&tree.items, &schema.items) else {
                    return;
                };
                let old_items = match (&schema.list_type, subject.old) {
                    (ListType::Map(keys), Some(Value::Array(old))) => {
                        Some(KeyedItems::new(old, keys))
                    }
                    _ => None,
                };
                for (index, item) in items.iter().enumerate() {
                    let old = old_items.as_ref().and_then(|items| items.find(item));
                    let change = old.map(|old| Correlated {
                        new: item,
                        old,
                        schema: schema_of_items,
                    });
                    let ratchet = subject.ratchet.item(change);
                    let subject = Subject {
                        value: item,
                        old,
                        ratchet,
                    };
                    self.child(tree, schema_of_items, &path.index(index), subject);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = present(subject.old.and_then(|old| old.get(name)));
                    let subject = Subject {
                        value,
                        old,
                        ratchet: subject.ratchet.key(name),
                    };
                    if let (Some(tree), Some(schema)) =
                        (&tree.additional, &schema.additional_properties)
                    {
                        self.child(tree, schema, &path.key(name), subject);
                    }
                    if let (Some(tree), Some(schema)) =
                        (tree.properties.get(name), schema.properties.get(name))
                    {
                        self.child(tree, schema, &path.child(name), subject);
                    }
                }
            }
            _ => {}
        }
    }

    fn child<'a>(
        &mut self,
        tree: &RuleTree,
        schema: &'a Schema,
        path: &FieldPath<'_>,
        subject: Subject<'a>,
    ) {
        if !self.stopped {
            self.tree(tree, schema, path, subject);
        }
    }

    fn rules(
        &mut self,
        tree: &RuleTree,
        schema: &Schema,
        path: &FieldPath<'_>,
        subject: Subject<'_>,
    ) {
        let kind = schema.kind.map_or("", Type::name);
        if tree.untyped {
            let detail = "rule compiler initialization error: failed to convert to declType for CEL \
                validation rules";
            self.outcome
                .errors
                .push(FieldError::invalid(path, kind, detail));
            return;
        }
        if tree.rules.is_empty() {
            return;
        }
        if self.budget.remaining() == 0 {
            self.stop(path, kind, OUT_OF_BUDGET.to_owned());
            return;
        }
        for CompiledRule { rule, outcome } in &tree.rules {
            if (self.is_interrupted)() {
                self.outcome.interrupted = true;
                self.stopped = true;
                return;
            }
            match outcome {
                Err(problem) => {
                    let detail = format!("rule compile error: {problem}");
                    self.outcome
                        .errors
                        .push(FieldError::invalid(path, kind, detail));
                }
                Ok(prepared) => self.rule(rule, prepared, kind, path, subject),
            }
            if self.stopped {
                return;
            }
        }
    }

    fn stop(&mut self, path: &FieldPath<'_>, kind: &str, detail: String) {
        self.outcome
            .errors
            .push(FieldError::invalid(path, kind, detail));
        self.stopped = true;
    }

    fn rule(
        &mut self,
        rule: &Rule,
        prepared: &Prepared,
        kind: &str,
        path: &FieldPath<'_>,
        subject: Subject<'_>,
    ) {
        let is_optional = rule.optional_old_self == Some(true);
        if prepared.uses_old_self && subject.old.is_none() && !is_optional {
            return;
        }
        let vars = Vars::new().json("self", subject.value);
        let rule_vars = match (is_optional, subject.old) {
            (true, old) => vars.clone().optional_json("oldSelf", old),
            (false, Some(old)) => vars.clone().json("oldSelf", old),
            (false, None) => vars.clone(),
        };
        match prepared.program.evaluate(&rule_vars, self.budget) {
            Ok(value) if value.as_bool() == Some(true) => {}
            Ok(_) => {
                // The message sees the old value as it is, optional or not.
                let vars = match subject.old {
                    Some(old) => vars.json("oldSelf", old),
                    None => vars,
                };
                self.violation(rule, prepared, kind, path, subject, &vars);
            }
            Err(error) => self.failure(&error, rule, kind, path),
        }
    }

    /// The rule could not be evaluated.
    fn failure(&mut self, error: &EvalError, rule: &Rule, kind: &str, path: &FieldPath<'_>) {
        let rule = describe(rule);
        let exhausted = self.budget.remaining() == 0;
        match error {
            EvalError::BudgetExceeded => self.stop(path, kind, OUT_OF_BUDGET.to_owned()),
            EvalError::CallLimitExceeded if exhausted => {
                self.stop(path, kind, OUT_OF_BUDGET.to_owned());
            }
            EvalError::CallLimitExceeded => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {rule}"
                );
                self.stop(path, kind, detail);
            }
            EvalError::Failed(_) => {
                let text = error.to_string();
                let detail = if text.starts_with("no such overload") {
                    format!(
                        "'{text}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {rule}"
                    )
                } else {
                    format!("{text} evaluating rule: {rule}")
                };
                self.outcome
                    .errors
                    .push(FieldError::invalid(path, kind, detail));
            }
        }
    }

    /// The rule does not hold.
    fn violation<'a>(
        &mut self,
        rule: &Rule,
        prepared: &'a Prepared,
        kind: &str,
        path: &FieldPath<'_>,
        subject: Subject<'a>,
        vars: &Vars<'a>,
    ) {
        let blamed = prepared.field_path.as_deref().map(|name| path.child(name));
        let path = blamed.as_ref().unwrap_or(path);
        let computed = match &prepared.message {
            Some(Ok(program)) => self.message(program, vars),
            _ => Ok(None),
        };
        let error = match computed {
            Err(detail) => {
                self.stopped = true;
                FieldError::invalid(path, kind, detail)
            }
            Ok(computed) => {
                let detail = computed.unwrap_or_else(|| match rule.message.as_deref() {
                    Some(message) if !message.is_empty() => message.trim().to_owned(),
                    _ => format!("failed rule: {}", describe(rule)),
                });
                let is_large = matches!(kind, "object" | "array");
                let value = (!is_large).then(|| subject.value.clone());
                violated(rule.reason.as_deref(), path, value, detail)
            }
        };
        if !prepared.uses_old_self && subject.ratchet.tolerates() {
            self.outcome.tolerated.push(error);
        } else {
            self.outcome.errors.push(error);
        }
    }

    /// The computed message, if it is usable; an error if the budget does not suffice.
    fn message<'a>(
        &mut self,
        program: &'a Program,
        vars: &Vars<'a>,
    ) -> Result<Option<String>, String> {
        let result = program.evaluate(vars, self.budget);
        let exhausted = self.budget.remaining() == 0;
        match result {
            Ok(value) => {
                let usable = |text: &&str| {
                    !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')
                };
                Ok(value
                    .as_str()
                    .map(str::trim)
                    .filter(usable)
                    .map(str::to_owned))
            }
            Err(EvalError::CallLimitExceeded) if !exhausted => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {}",
                text::quote(program.source())
            )),
            Err(error) if error.is_over_budget() => {
                Err("messageExpression evaluation failed due to \
                running out of cost budget, no further validation rules will be run"
                    .to_owned())
            }
            Err(_) => Ok(None),
        }
    }
}

/// The error for a rule that does not hold, of the kind that the rule asks for.
fn violated(
    reason: Option<&str>,
    path: &FieldPath<'_>,
    value: Option<Value>,
    detail: String,
) -> FieldError {
    match reason {
        Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
        Some("FieldValueRequired") => FieldError::required(path, detail),
        Some("FieldValueDuplicate") => FieldError::new(FieldErrorKind::Duplicate, path, value, ""),
        _ => FieldError::new(FieldErrorKind::Invalid, path, value, detail),
    }
}
