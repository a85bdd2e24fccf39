use serde_json::json;

use crate::{Budget, Env, Type, Vars};

#[track_caller]
fn check(source: &str, object: &serde_json::Value, expected: &str) {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env.compile(source).unwrap();
    let vars = Vars::new().json("object", object);
    let actual = match program.evaluate(&vars, &mut Budget::kubernetes()) {
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(actual, expected, "{source}");
}

#[test]
fn a_bound_value_is_evaluated_in_its_own_surroundings() {
    // The fold inside the bound value runs while the outer folds are under way.
    check(
        "[1, 2].map(x, cel.bind(l, [10, 20].map(y, y + x), [0].map(z, l[0] + l[1] + z)[0]))",
        &json!(null),
        "[32, 34]",
    );
}

#[test]
fn results_may_borrow_from_the_bindings() {
    let env = Env::builder().variable("object", Type::Dyn).build();
    let program = env.compile("object.name").unwrap();
    let object = json!({"name": "borrowed"});
    let value = {
        let vars = Vars::new().json("object", &object);
        program.evaluate(&vars, &mut Budget::unlimited()).unwrap()
    };
    assert_eq!(value.as_str(), Some("borrowed"));
}

#[test]
fn maps_are_visited_in_the_order_of_their_keys() {
    check(
        "object.map(k, k)",
        &json!({"b": 1, "a": 2}),
        "[\"a\", \"b\"]",
    );
    check("{'b': 1, 'a': 2}.map(k, k)", &json!(null), "[\"a\", \"b\"]");
}

#[test]
fn accumulators_are_not_shared_between_rounds() {
    check(
        "[1, 2].map(x, [3, 4].filter(y, y > x + 1))",
        &json!(null),
        "[[3, 4], [4]]",
    );
}
