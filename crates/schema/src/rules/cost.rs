//! Rules when a definition is written: do they compile, and could they cost too much?

use bellwether_cel::{CostEstimate, DeclType, Program};

use super::{CompiledRule, compile_rules, declare, declared_element, declared_field};
use crate::document::Document;
use crate::field::{FieldError, FieldErrorKind, FieldPath};
use crate::model::Rule;
use crate::printed;

/// What is known around a schema about the types and the number of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a> {
    decl: Option<&'a DeclType>,
    /// How many values of the schema there can be in an object; `None` if nothing limits them.
    count: Option<u64>,
}

impl<'a> Typed<'a> {
    /// Of the schema of a whole resource.
    pub(crate) fn root(decl: Option<&'a DeclType>) -> Self {
        Self {
            decl,
            count: Some(1),
        }
    }

    /// Of a property of `document`, for which this is.
    pub(crate) fn property(&self, document: &Document, name: &str) -> Self {
        let decl = self.decl.and_then(|decl| declared_field(decl, name));
        Self {
            decl,
            count: self.multiplied(document),
        }
    }

    /// Of the items or further properties of `document`, for which this is.
    pub(crate) fn element(&self, document: &Document) -> Self {
        let decl = self.decl.and_then(declared_element);
        Self {
            decl,
            count: self.multiplied(document),
        }
    }

    fn multiplied(&self, document: &Document) -> Option<u64> {
        let limit = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or(0));
        let factor = match document.kind.as_str() {
            "object" if document.additional_properties.is_some() => limit(document.max_properties),
            "array" => limit(document.max_items),
            _ => Some(1),
        };
        Some(self.count?.saturating_mul(factor?))
    }
}

/// The estimated costs of all rules of a definition.
#[derive(Debug, Default)]
pub(crate) struct Total {
    sum: u64,
    /// The most expensive rules, most expensive first.
    expensive: Vec<(String, u64)>,
}

impl Total {
    fn add(&mut self, path: &FieldPath<'_>, cost: u64) {
        const SHOWN: usize = 4;
        self.sum = self.sum.saturating_add(cost);
        // What is below a hundredth of the limit is not to blame.
        if cost < CostEstimate::DEFINITION_LIMIT / 100 {
            return;
        }
        self.expensive.push((path.to_string(), cost));
        self.expensive
            .sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.expensive.truncate(SHOWN);
    }

    /// What is to be said of the whole schema, which is at `path`.
    pub(crate) fn errors(self, path: &FieldPath<'_>) -> Vec<FieldError> {
        let limit = CostEstimate::DEFINITION_LIMIT;
        if self.sum <= limit {
            return Vec::new();
        }
        let contributed = "contributed to estimated rule cost total exceeding cost limit for entire \
            OpenAPIv3 schema";
        let blame = |(path, _): (String, u64)| FieldError {
            kind: FieldErrorKind::Forbidden,
            path,
            value: None,
            detail: contributed.to_owned(),
        };
        let mut errors: Vec<_> = self.expensive.into_iter().map(blame).collect();
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, excess(name, self.sum, limit)));
        errors
    }
}

#[expect(clippy::cast_precision_loss, reason = "the factor is a rough figure")]
fn excess(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match () {
        () if factor > 100.0 => "more than 100x".to_owned(),
        () if factor < 1.5 => format!("{factor:.6}x"),
        () => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Checks the rules of one schema, without those inside it. `uncorrelatable` is the path of the list
/// around it whose items have no counterpart in an old object.
pub(crate) fn check(
    document: &Document,
    typed: Typed<'_>,
    uncorrelatable: Option<&str>,
    path: &FieldPath<'_>,
    total: &mut Total,
) -> Vec<FieldError> {
    let path = path.child("x-kubernetes-validations");
    let schema = document.to_schema();
    let own = match typed.decl {
        Some(_) => None,
        None => declare(&schema, document.embedded_resource),
    };
    let Some(decl) = typed.decl.or(own.as_ref()) else {
        let detail = "internal error: failed to construct type information for \
            x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        return vec![FieldError::internal(&path, detail)];
    };
    let count = typed.count.unwrap_or_else(|| decl.max_cardinality());
    let mut errors = Vec::new();
    for (index, compiled) in compile_rules(&schema, decl).iter().enumerate() {
        check_rule(
            compiled,
            count,
            uncorrelatable,
            &path.index(index),
            total,
            &mut errors,
        );
    }
    errors
}

fn check_rule(
    compiled: &CompiledRule,
    count: u64,
    uncorrelatable: Option<&str>,
    path: &FieldPath<'_>,
    total: &mut Total,
    errors: &mut Vec<FieldError>,
) {
    let rule_path = path.child("rule");
    let rule = &compiled.rule;
    let limit = CostEstimate::RULE_LIMIT;
    let prepared = match &compiled.outcome {
        Ok(prepared) => prepared,
        Err(problem) => {
            total.add(&rule_path, 0);
            errors.push(FieldError::invalid_printed(
                &rule_path,
                &printed::rule(rule),
                problem,
            ));
            // Nothing is known to be used by what does not compile.
            errors.extend(
                rule.optional_old_self
                    .map(|optional| unused_option(path, optional)),
            );
            return;
        }
    };
    let cost = prepared.program.estimate_cost().max.saturating_mul(count);
    if cost > limit {
        let detail = excess("estimated rule cost", cost, limit);
        errors.push(FieldError::forbidden(&rule_path, detail));
    }
    total.add(&rule_path, cost);
    if let Some(message) = &prepared.message {
        let path = path.child("messageExpression");
        errors.extend(check_message(message.as_ref(), rule, &path, total));
    }
    match (
        prepared.uses_old_self,
        uncorrelatable,
        rule.optional_old_self,
    ) {
        (true, Some(list), _) => {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            errors.push(FieldError::invalid(&rule_path, rule.rule.as_str(), detail));
        }
        (false, _, Some(optional)) => errors.push(unused_option(path, optional)),
        _ => {}
    }
}

/// The expression that computes a message is charged once, however many values there are.
fn check_message(
    message: Result<&Program, &String>,
    rule: &Rule,
    path: &FieldPath<'_>,
    total: &mut Total,
) -> Option<FieldError> {
    let limit = CostEstimate::RULE_LIMIT;
    let cost = match message {
        Ok(program) => program.estimate_cost().max,
        Err(problem) => {
            return Some(FieldError::invalid_printed(
                path,
                &printed::rule(rule),
                problem,
            ));
        }
    };
    total.add(path, cost);
    let detail = || excess("estimated messageExpression cost", cost, limit);
    (cost > limit).then(|| FieldError::forbidden(path, detail()))
}

fn unused_option(path: &FieldPath<'_>, optional: bool) -> FieldError {
    let detail = "may not be set if oldSelf is not used in rule";
    FieldError::invalid(&path.child("optionalOldSelf"), optional, detail)
}
