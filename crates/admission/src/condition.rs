//! `matchConditions`: expressions that all have to hold.

use bellwether_cel::{Env, Program, Type};
use serde_json::Value;

use crate::environment::{self, Authority, OUT_OF_BUDGET, Stopped};
pub use crate::environment::{CostLimit, Inputs, TooCostly};

/// What conditions say of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All hold.
    Matches,
    /// One does not hold, or one failed and failures are ignored.
    Excluded,
    /// At least one failed, none is false, and failures are not ignored.
    Failed(String),
}

#[derive(Debug)]
struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// The conditions of a webhook or a policy.
#[derive(Debug)]
pub struct Conditions {
    items: Vec<Condition>,
    ignores_failures: bool,
}

impl Conditions {
    /// Compiles the conditions of a webhook.
    pub fn of_webhook(webhook: &Value) -> Self {
        let env = environment::builder(false, Authority::Full).build();
        Self::compile(&env, webhook)
    }

    /// Compiles the conditions of a webhook, or of the `spec` of a policy.
    pub(crate) fn compile(env: &Env, source: &Value) -> Self {
        let items = source["matchConditions"].as_array().into_iter().flatten();
        let items = items.map(|item| {
            let expression = item["expression"].as_str().unwrap_or_default();
            Condition {
                expression: expression.to_owned(),
                program: environment::compile(env, expression, &[Type::Bool]),
            }
        });
        Self {
            items: items.collect(),
            ignores_failures: source["failurePolicy"] == "Ignore",
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Evaluates the conditions.
    pub fn evaluate(&self, inputs: &Inputs<'_>, limit: CostLimit) -> Result<Verdict, TooCostly> {
        let vars = inputs.vars();
        let mut spending = limit.conditions();
        let mut failures = Vec::new();
        for condition in &self.items {
            let program = match &condition.program {
                Ok(program) => program,
                Err(why) => {
                    failures.push(format!("compilation error: {why}"));
                    continue;
                }
            };
            match spending.evaluate(program, &vars) {
                Ok(value) if value.as_bool() == Some(false) => return Ok(Verdict::Excluded),
                Ok(_) => {}
                Err(Stopped::Failed(why)) => failures.push(failure(&condition.expression, &why)),
                Err(Stopped::TooCostly) => return Err(TooCostly),
                Err(Stopped::OutOfBudget) => {
                    failures = vec![OUT_OF_BUDGET.to_owned()];
                    break;
                }
            }
        }
        Ok(match (&*failures, self.ignores_failures) {
            ([], _) => Verdict::Matches,
            (_, true) => Verdict::Excluded,
            ([only], false) => Verdict::Failed(only.clone()),
            (several, false) => Verdict::Failed(format!("[{}]", several.join(", "))),
        })
    }
}

/// What is said of an expression that fails.
pub(crate) fn failure(expression: &str, why: &str) -> String {
    format!("expression '{expression}' resulted in error: {why}")
}

#[cfg(test)]
mod tests {
    use bellwether_cel::{AccessCheck, AccessDecision, Authorizer};
    use serde_json::json;

    use super::*;

    /// Lets nobody do anything.
    #[derive(Debug)]
    struct Nobody;

    impl Authorizer for Nobody {
        fn authorize(&self, _: &AccessCheck<'_>) -> AccessDecision {
            AccessDecision::default()
        }
    }

    #[track_caller]
    fn check(policy: &str, expressions: &[&str], expected: Verdict) {
        let conditions: Vec<Value> = expressions
            .iter()
            .map(|expression| json!({"name": "a", "expression": expression}))
            .collect();
        let webhook = json!({"failurePolicy": policy, "matchConditions": conditions});
        let object = json!({"metadata": {"name": "a"}});
        let request = json!({"userInfo": {"username": "ann"}, "operation": "CREATE"});
        let inputs = Inputs {
            object: &object,
            old_object: &Value::Null,
            request: &request,
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: &Nobody,
            access: AccessCheck::default(),
        };
        let found = Conditions::of_webhook(&webhook).evaluate(&inputs, CostLimit::NONE);
        assert_eq!(found, Ok(expected), "{expressions:?}");
    }

    #[test]
    fn all_conditions_have_to_hold() {
        check("Fail", &[], Verdict::Matches);
        check(
            "Fail",
            &["request.userInfo.username == 'ann'", "oldObject == null"],
            Verdict::Matches,
        );
        check("Fail", &["object.metadata.name != 'a'"], Verdict::Excluded);
        let may = "authorizer.requestResource.check('update').allowed()";
        check("Fail", &[may], Verdict::Excluded);
        check("Fail", &[&format!("!{may}")], Verdict::Matches);
    }

    #[test]
    fn a_failure_counts_unless_another_condition_is_false() {
        let fails = "object.spec.x == 1";
        let why = "expression 'object.spec.x == 1' resulted in error: no such key: spec";
        check("Fail", &[fails], Verdict::Failed(why.into()));
        check("Fail", &[fails, "true"], Verdict::Failed(why.into()));
        check("Fail", &[fails, "false"], Verdict::Excluded);
        check("Ignore", &[fails], Verdict::Excluded);
        let both = format!("[{why}, {why}]");
        check("Fail", &[fails, fails], Verdict::Failed(both));
    }
}
