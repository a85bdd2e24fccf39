//! Hostile input: whatever is written or bound, the answer is a value or an ordinary error.

use bellwether_cel::{Budget, Env, EvalError, Type, Vars};
use proptest::prelude::*;
use serde_json::json;

fn env() -> Env {
    Env::builder().variable("object", Type::Dyn).build()
}

/// Compiles and evaluates; the outcome does not matter, that there is one does.
fn run(source: &str, object: &serde_json::Value) -> Option<Result<String, EvalError>> {
    let program = env().compile(source).ok()?;
    let _ = program.estimate_cost();
    let vars = Vars::new().json("object", object);
    let result = program.evaluate(&vars, &mut Budget::kubernetes());
    Some(result.map(|value| {
        let _ = value.to_json();
        value.to_string()
    }))
}

#[test]
fn deep_nesting_is_refused_or_works() {
    // The default stack of a test thread has two megabytes.
    for depth in [10, 100, 240, 251, 5_000] {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{'a': ", "1", "}"),
            ("!(", "true", ")"),
            ("-(", "1", ")"),
            ("size([", "1", "])"),
            ("[1].map(x, ", "x", ")"),
            ("[1].all(x, [2].exists(y, ", "x == 1", "))"),
            ("true ? (", "1", ") : 2"),
            ("1 + (", "1", ")"),
            ("cel.bind(v, 1, ", "v", ")"),
        ] {
            let source = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            run(&source, &json!({}));
        }
        run(&format!("object{}", ".a".repeat(depth)), &json!({}));
        run(&format!("1{}", " + 1".repeat(depth)), &json!({}));
        run(&format!("true{}", " && true".repeat(depth)), &json!({}));
        run(
            &format!("true ? 1 : {}2", "true ? 1 : ".repeat(depth)),
            &json!({}),
        );
        run(
            &format!("optional.of(1){}", ".optMap(v, v)".repeat(depth)),
            &json!({}),
        );
    }
}

#[test]
fn long_expressions_are_refused() {
    let error = env().compile(&"1".repeat(100_001)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    );
}

#[test]
fn doubling_macros_do_not_eat_memory() {
    let source = format!("optional.of(1){}", ".optMap(v, v + 1)".repeat(60));
    let error = env().compile(&source).unwrap_err();
    assert!(
        error.to_string().contains("after macro expansion"),
        "{error}"
    );
}

#[test]
fn expensive_evaluations_are_stopped() {
    let numbers: Vec<i64> = (0..2_000).collect();
    let object = json!({ "l": numbers, "s": "a".repeat(100_000) });
    for source in [
        "object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))",
        "lists.range(1000000).map(a, a)",
        "lists.range(2000000)",
        "object.l.map(a, object.s.matches('(a+)+b'))",
        "object.l.map(a, object.s + object.s)",
    ] {
        let outcome = run(source, &object);
        assert_eq!(outcome, Some(Err(EvalError::CallLimitExceeded)), "{source}");
    }
}

#[test]
fn lists_and_texts_cannot_grow_without_end() {
    let mut doubled = "[1, 2, 3, 4]".to_owned();
    for _ in 0..40 {
        doubled = format!("cel.bind(l, {doubled}, l + l)");
    }
    let outcome = run(&format!("size({doubled})"), &json!({}));
    assert_eq!(outcome, Some(Err(EvalError::CallLimitExceeded)));
    let mut squared = "'aaaaaaaaaaaaaaaa'".to_owned();
    for _ in 0..8 {
        squared = format!("cel.bind(s, {squared}, s.replace('a', s))");
    }
    let outcome = run(&format!("size({squared})"), &json!({}));
    assert_eq!(outcome, Some(Err(EvalError::CallLimitExceeded)));
}

#[test]
fn shared_parts_cannot_be_unfolded_without_end() {
    let mut tree = "[1]".to_owned();
    for _ in 0..60 {
        tree = format!("cel.bind(t, {tree}, [t, t])");
    }
    assert_eq!(
        run(&tree, &json!({})),
        Some(Err(EvalError::CallLimitExceeded))
    );
    let outcome = run(&format!("cel.bind(x, {tree}, x == x)"), &json!({}));
    assert_eq!(outcome, Some(Err(EvalError::CallLimitExceeded)));
}

#[test]
fn adding_long_lists_is_cheap() {
    let numbers: Vec<i64> = (0..100_000).collect();
    let outcome = run(
        "lists.range(10000).all(i, (object + object).size() == 200000)",
        &json!(numbers),
    );
    assert_eq!(outcome, Some(Ok("true".to_owned())));
}

/// Fragments that fit together often enough to get past the parser.
fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "object",
        ".a",
        ".b",
        "['a']",
        "[0]",
        "[?0]",
        ".?a",
        "1",
        "-1",
        "2u",
        "1.5",
        "'a'",
        "\"é\"",
        "b'x'",
        "true",
        "null",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " < ",
        " in ",
        " && ",
        " || ",
        " ? ",
        "!",
        "-",
        ".map(x, ",
        ".all(x, ",
        ".exists(i, v, ",
        ".filter(x, ",
        ".size()",
        "size(",
        "has(",
        "x",
        "type(",
        "int(",
        "string(",
        "dyn(",
        "optional.of(",
        ".orValue(",
        ".optMap(v, ",
        "v",
        "timestamp(",
        "duration('1h')",
        ".getHours()",
        ".format([",
        "])",
        "'%s %d'",
        ".split(",
        ".sum()",
        "quantity(",
        "ip(",
        "cel.bind(v, ",
        "math.greatest(",
        "sets.contains(",
        ".matches(",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_compiling_panic(source in "\\PC{0,60}") {
        run(&source, &json!({}));
    }

    #[test]
    fn no_mixture_of_fragments_panics(parts in prop::collection::vec(fragment(), 0..14)) {
        run(&parts.concat(), &json!({"a": [1, "x", null, {"b": 2.5}], "b": {"a": "text"}}));
    }
}

#[test]
fn values_of_every_json_shape_can_be_compared() {
    let shapes = [
        json!(null),
        json!(true),
        json!(1),
        json!(-2.5),
        json!("x"),
        json!([1]),
        json!({"a": 1}),
        json!(18_446_744_073_709_551_615_u64),
    ];
    for shape in &shapes {
        for operator in ["==", "!=", "<", "in", "+", "-", "&&"] {
            run(&format!("object {operator} object"), shape);
            run(&format!("object {operator} 1"), shape);
        }
        assert_eq!(run("object == object", shape), Some(Ok("true".to_owned())));
    }
}
