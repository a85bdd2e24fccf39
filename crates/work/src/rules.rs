//! Condition rules: what is concluded from an object.
//!
//! Rules of one condition hold together, as do the expressions of one rule. What an expression
//! gives but true is false: false itself, an error, or a value of another type, and the message
//! says which. A map may say message, reason and status in its own words.

mod past;
pub mod well_known;

use bellwether_api::meta::{FALSE, TRUE, UNKNOWN};
use bellwether_api::work::names::{condition, reason};
use bellwether_api::work::{ConditionRule, ConditionRuleType};
use bellwether_cel::{Budget, Vars};
use serde_json::Value;

use crate::admission::{NO_EXPRESSION, NO_EXPRESSIONS, check_conditions};
use crate::conditions::ConditionUpdate;
use crate::programs::Programs;
pub use past::Past;

/// What is said of a program that costs too much.
const OVER_BUDGET: &str = "CEL evaluation budget exceeded";

/// What one rule may cost, and all rules of a manifest together.
fn budget() -> Budget {
    Budget::kubernetes()
}

/// What rules conclude about one condition of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The condition.
    pub condition: String,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Whether a program exceeded its budget.
    pub is_over_budget: bool,
}

impl Conclusion {
    /// A conclusion in the usual words.
    pub(crate) fn plain(condition: &str, holds: bool) -> Self {
        let message = if holds {
            format!("Manifest is {condition}")
        } else {
            format!("Manifest is not {condition}")
        };
        Self::with_message(condition, holds, message)
    }

    pub(crate) fn with_message(condition: &str, holds: bool, message: String) -> Self {
        Self {
            condition: condition.to_owned(),
            status: if holds { TRUE } else { FALSE },
            reason: if holds {
                reason::CONDITION_RULES_PASSED
            } else {
                reason::CONDITION_RULES_FAILED
            }
            .to_owned(),
            message,
            is_over_budget: false,
        }
    }

    /// What a well-known rule concludes from an object of a kind that it does not cover.
    fn unsupported(condition: &str, object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Self {
            condition: condition.to_owned(),
            status: UNKNOWN,
            reason: reason::CONDITION_RULE_UNSUPPORTED.to_owned(),
            message: format!(
                "there is no well-known rule for {condition} of {} ({}); use a rule of type CEL",
                text("kind"),
                text("apiVersion")
            ),
            is_over_budget: false,
        }
    }

    fn failed(condition: &str, problem: &str) -> Self {
        Self {
            is_over_budget: problem == OVER_BUDGET,
            ..Self::with_message(condition, false, format!("failed to evaluate: {problem}"))
        }
    }

    pub(crate) fn update(&self, generation: i64) -> ConditionUpdate<'_> {
        ConditionUpdate {
            name: &self.condition,
            status: self.status,
            reason: &self.reason,
            message: &self.message,
            generation: Some(generation),
        }
    }
}

/// The condition that a rule is about; the well-known ones are about Complete if they do not say.
pub fn condition_of(rule: &ConditionRule) -> &str {
    let named = rule.condition.as_deref().unwrap_or_default();
    if named.is_empty() {
        condition::COMPLETE
    } else {
        named
    }
}

/// What the rules conclude from an object, each condition once, in the order of the rules. A
/// condition holds if all its rules do; of those that do not, one that is false is reported before
/// one that is unknown.
pub fn conclude(
    rules: &[&ConditionRule],
    object: &Value,
    programs: &Programs,
    past: Past,
) -> Vec<Conclusion> {
    let mut budget = budget();
    let mut found: Vec<Conclusion> = Vec::new();
    for rule in rules {
        let name = condition_of(rule);
        let new = match &rule.kind {
            ConditionRuleType::WellKnownConditions | ConditionRuleType::WellKnownCompletions => {
                match well_known::conclude(name, object, past) {
                    Some(known) => with_message(rule, known, object, programs, &mut budget),
                    None => Conclusion::unsupported(name, object),
                }
            }
            _ => judge(rule, name, object, programs, &mut budget),
        };
        match found.iter_mut().find(|known| known.condition == name) {
            Some(known) if known.status == TRUE => *known = new,
            Some(known) if known.status == UNKNOWN && new.status == FALSE => *known = new,
            Some(_) => {}
            None => found.push(new),
        }
    }
    found
}

/// What is said of an object that nobody has seen yet: what its rules ask for does not hold. A work
/// is not done because one of its objects could not be created. Whether such an object is on its
/// way or degraded is another matter, about which rules say nothing.
pub fn unseen(rules: &[&ConditionRule], api_version: &str, kind: &str) -> Vec<Conclusion> {
    let object = serde_json::json!({"apiVersion": api_version, "kind": kind});
    let mut found: Vec<Conclusion> = Vec::new();
    for rule in rules {
        let name = condition_of(rule);
        let is_supported = match &rule.kind {
            ConditionRuleType::WellKnownConditions | ConditionRuleType::WellKnownCompletions => {
                well_known::conclude(name, &object, Past::default()).is_some()
            }
            _ => true,
        };
        // A name for which the work is refused is none to say this of either.
        if check_conditions([name]).is_err() || well_known::OF_ROLLOUTS.contains(&name) {
            continue;
        }
        let new = if is_supported {
            Conclusion::plain(name, false)
        } else {
            Conclusion::unsupported(name, &object)
        };
        match found.iter_mut().find(|known| known.condition == name) {
            Some(known) if known.status == UNKNOWN => *known = new,
            Some(_) => {}
            None => found.push(new),
        }
    }
    found
}

/// Returns true if rules have programs of users, which may take long.
pub fn have_programs(rules: &[&ConditionRule]) -> bool {
    let mut rules = rules.iter();
    rules.any(|rule| !rule.cel_expressions.is_empty() || rule.message_expression.is_some())
}

/// Whether rules conclude that an object is done.
pub fn is_complete(rules: &[&ConditionRule], object: &Value, programs: &Programs) -> bool {
    let complete: Vec<&ConditionRule> = rules
        .iter()
        .filter(|rule| condition_of(rule) == condition::COMPLETE)
        .copied()
        .collect();
    conclude(&complete, object, programs, Past::default())
        .iter()
        .any(|conclusion| conclusion.status == TRUE)
}

/// What the expressions of a rule conclude.
fn judge(
    rule: &ConditionRule,
    name: &str,
    object: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Conclusion {
    if let ConditionRuleType::Other(kind) = &rule.kind {
        return Conclusion {
            condition: name.to_owned(),
            status: UNKNOWN,
            reason: reason::CONDITION_RULE_INVALID.to_owned(),
            message: format!("unrecognized condition rule type {kind}"),
            is_over_budget: false,
        };
    }
    match expressions(rule, name, object, programs, budget) {
        Verdict::Plain(holds) => {
            let conclusion = Conclusion::plain(name, holds);
            with_message(rule, conclusion, object, programs, budget)
        }
        Verdict::Concluded(conclusion) => conclusion,
    }
}

enum Verdict {
    /// True or false, and nothing more was said.
    Plain(bool),
    /// An error, or an expression that says more itself.
    Concluded(Conclusion),
}

/// All expressions of a rule, up to the first that does not hold.
fn expressions(
    rule: &ConditionRule,
    name: &str,
    object: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Verdict {
    if rule.cel_expressions.is_empty() {
        return Verdict::Concluded(Conclusion::failed(name, NO_EXPRESSIONS));
    }
    let mut verdict = Verdict::Plain(true);
    for expression in &rule.cel_expressions {
        let Some(source) = expression.expression() else {
            return Verdict::Concluded(Conclusion::failed(name, NO_EXPRESSION));
        };
        match evaluate(source, name, object, programs, budget) {
            Ok(Verdict::Plain(true)) => {}
            Ok(Verdict::Concluded(found)) if found.status == TRUE => {
                verdict = Verdict::Concluded(found);
            }
            Ok(other) => return other,
            Err(problem) => return Verdict::Concluded(Conclusion::failed(name, &problem)),
        }
    }
    verdict
}

fn evaluate(
    source: &str,
    name: &str,
    object: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Result<Verdict, String> {
    let compiled = programs.rule(source);
    let program = compiled.as_ref().as_ref().map_err(Clone::clone)?;
    let vars = Vars::new().json("object", object);
    let value = program
        .evaluate(&vars, budget)
        .map_err(|error| in_words(&error))?;
    if let Some(holds) = value.as_bool() {
        return Ok(Verdict::Plain(holds));
    }
    let bellwether_cel::Value::Map(_) = &value else {
        return Err(format!("expected bool result, got {}", value.type_name()));
    };
    let result = value.to_json();
    let mut is_unknown = false;
    let holds = match result.get("status") {
        Some(Value::Bool(holds)) => *holds,
        Some(Value::String(status)) if [TRUE, FALSE, UNKNOWN].contains(&status.as_str()) => {
            is_unknown = status == UNKNOWN;
            status == TRUE
        }
        Some(other) => {
            return Err(format!(
                "expected status to be a bool, 'True', 'False' or 'Unknown', got {other}"
            ));
        }
        // A choice between two maps holds if its condition does; any other map does not.
        None => match programs.choice(source).as_ref() {
            Ok(choice) => {
                let value = choice
                    .evaluate(&vars, budget)
                    .map_err(|error| in_words(&error))?;
                value.as_bool() == Some(true)
            }
            Err(_) => false,
        },
    };
    let mut conclusion = Conclusion::plain(name, holds);
    if is_unknown {
        conclusion.status = UNKNOWN;
    }
    if let Some(message) = result.get("message").and_then(Value::as_str) {
        message.clone_into(&mut conclusion.message);
    }
    if let Some(reason) = result.get("reason").and_then(Value::as_str)
        && is_reason(reason)
    {
        reason.clone_into(&mut conclusion.reason);
    }
    Ok(Verdict::Concluded(conclusion))
}

/// Whether a text may be the reason of a condition.
fn is_reason(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_,:".contains(c);
    text.len() <= 1024
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(is_inner)
}

fn in_words(error: &bellwether_cel::EvalError) -> String {
    if error.is_over_budget() {
        OVER_BUDGET.to_owned()
    } else {
        error.to_string()
    }
}

/// Lets the rule say the message in its own words.
fn with_message(
    rule: &ConditionRule,
    mut conclusion: Conclusion,
    object: &Value,
    programs: &Programs,
    budget: &mut Budget,
) -> Conclusion {
    if let Some(message) = rule.message.as_deref().filter(|text| !text.is_empty()) {
        message.clone_into(&mut conclusion.message);
    }
    let Some(source) = rule
        .message_expression
        .as_deref()
        .filter(|text| !text.is_empty())
    else {
        return conclusion;
    };
    let compiled = programs.message(source);
    let vars = Vars::new().json("object", object).value(
        "result",
        bellwether_cel::Value::Bool(conclusion.status == TRUE),
    );
    let said = match compiled.as_ref() {
        Err(problem) => Some(problem.clone()),
        Ok(program) => match program.evaluate(&vars, budget) {
            Err(error) => {
                conclusion.is_over_budget |= error.is_over_budget();
                Some(in_words(&error))
            }
            Ok(value) => match value.as_str() {
                Some(text) => (!text.is_empty()).then(|| text.to_owned()),
                None => Some(format!(
                    "expected message expression to have a string result, got {}",
                    value.type_name()
                )),
            },
        },
    };
    if let Some(said) = said {
        conclusion.message = said;
    }
    conclusion
}

#[cfg(test)]
mod tests;
