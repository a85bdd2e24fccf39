use serde_json::json;

use super::Budget;
use crate::{Env, EvalError, Type, Vars};

#[test]
fn a_budget_is_shared_among_evaluations() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env.compile("object.map(x, x).size() > 0").unwrap();
    let object = json!([1, 2, 3, 4]);
    let vars = Vars::new().json("object", &object);
    let mut budget = Budget::new(1_000, 100);
    assert!(program.evaluate(&vars, &mut budget).is_ok());
    let once = budget.spent();
    assert_eq!(budget.remaining(), 100 - once);
    assert_eq!(
        program.evaluate(&vars, &mut budget).unwrap_err(),
        EvalError::BudgetExceeded
    );
    assert_eq!(budget.remaining(), 0);
}

#[test]
fn one_evaluation_is_stopped_at_its_own_limit() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env.compile("object.exists(x, x > 100)").unwrap();
    let object = json!((0..1_000).collect::<Vec<i64>>());
    let vars = Vars::new().json("object", &object);
    let mut budget = Budget::new(50, 1_000);
    let error = program.evaluate(&vars, &mut budget).unwrap_err();
    assert_eq!(error, EvalError::CallLimitExceeded);
    assert!(error.is_over_budget());
    assert_eq!(
        error.to_string(),
        "operation cancelled: actual cost limit exceeded"
    );
    // What was spent until then is spent, little more than the limit.
    assert!(
        budget.spent() > 50 && budget.spent() < 70,
        "{}",
        budget.spent()
    );
}

#[test]
fn logic_does_not_hide_a_spent_budget() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env.compile("object.all(x, x > 0) || true").unwrap();
    let object = json!((1..1_000).collect::<Vec<i64>>());
    let vars = Vars::new().json("object", &object);
    assert_eq!(
        program
            .evaluate(&vars, &mut Budget::new(50, 1_000))
            .unwrap_err(),
        EvalError::CallLimitExceeded
    );
}
