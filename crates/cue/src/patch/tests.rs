mod alike;
mod by_text;

use super::*;

fn compiled(source: &str) -> Evaluation {
    Template::compile(source)
        .expect(source)
        .evaluate(Budget::default())
}

fn patched(base: &str, patch: &str, strategy: Strategy) -> Result<String, String> {
    let (mut base, mut patch) = (compiled(base), compiled(patch));
    let (base_root, patch_root) = (base.root(), patch.root());
    let result = apply(
        Operand {
            evaluation: &mut base,
            value: base_root,
        },
        Operand {
            evaluation: &mut patch,
            value: patch_root,
        },
        strategy,
        Budget::default(),
    );
    let mut evaluation = result.map_err(|error| error.to_string())?;
    let root = evaluation.root();
    evaluation.json(root).map_err(|problem| problem.to_string())
}

#[track_caller]
fn check(base: &str, patch: &str, expected: &str) {
    let actual = patched(base, patch, Strategy::Unify);
    assert_eq!(actual.as_deref(), Ok(expected), "{base} <- {patch}");
}

#[track_caller]
fn check_error(base: &str, patch: &str, expected: &str) {
    let error = patched(base, patch, Strategy::Unify).unwrap_err();
    assert!(error.contains(expected), "{base} <- {patch}: {error}");
}

#[test]
fn without_markers_a_patch_unifies() {
    check(
        "spec: replicas: *1 | int",
        "spec: replicas: 3",
        r#"{"spec":{"replicas":3}}"#,
    );
    check(
        "l: [{n: \"a\"}]",
        "l: [{m: 1}, {m: 2}]",
        r#"{"l":[{"m":1,"n":"a"},{"m":2}]}"#,
    );
    check_error("a: 1", "a: 2", "conflicting values");
    check_error("l: [1, 2]", "l: [1]", "incompatible list lengths");
    check_error("a: b: 1", "a: b: null", "conflicting values");
}

#[test]
fn a_key_aligns_elements_and_appends_new_ones() {
    check(
        "c: [{name: \"a\"}, {name: \"b\", v: int}]",
        "// +patchKey=name\nc: [{name: \"new\"}, {name: \"b\", v: 1}]",
        r#"{"c":[{"name":"a"},{"name":"b","v":1},{"name":"new"}]}"#,
    );
    check(
        "c: [{r: id: 1}, {r: id: 2}]",
        "// +patchKey=r.id\nc: [{r: id: 2, x: true}]",
        r#"{"c":[{"r":{"id":1}},{"r":{"id":2},"x":true}]}"#,
    );
    check("l: [{n: 1}]", "// +patchKey=n\nl: []", r#"{"l":[{"n":1}]}"#);
}

#[test]
fn a_key_is_inherited_by_nested_lists() {
    check(
        "c: [{n: \"x\", env: [{n: \"A\"}]}]",
        "// +patchKey=n\nc: [{n: \"x\", env: [{n: \"B\"}]}]",
        r#"{"c":[{"n":"x","env":[{"n":"A"},{"n":"B"}]}]}"#,
    );
    check(
        "c: [{n: \"x\", env: [{k: \"A\"}]}]",
        "// +patchKey=n\nc: [{\n\tn: \"x\"\n\t// +patchKey=k\n\tenv: [{k: \"B\"}]\n}]",
        r#"{"c":[{"n":"x","env":[{"k":"A"},{"k":"B"}]}]}"#,
    );
}

#[test]
fn elements_without_the_key_fall_back_to_positions() {
    check(
        "l: [{n: \"a\"}]",
        "// +patchKey=n\nl: [{w: 2}]",
        r#"{"l":[{"n":"a","w":2}]}"#,
    );
    check(
        "l: [{m: 1}, {n: \"a\"}]",
        "// +patchKey=n\nl: [{n: \"a\", w: 2}]",
        r#"{"l":[{"m":1,"n":"a","w":2},{"n":"a"}]}"#,
    );
    check_error(
        "l: [{n: \"a\"}]",
        "// +patchKey=n extra\nl: [{n: \"b\"}]",
        "conflicting values",
    );
}

#[test]
fn strategies_replace_what_is_there() {
    check(
        "s: {t: \"old\", u: 1}",
        "s: {\n\t// +patchStrategy=retainKeys\n\tt: \"new\"\n}",
        r#"{"s":{"t":"new","u":1}}"#,
    );
    check(
        "v: [{n: \"a\", x: 1, z: 9}, {n: \"b\"}]",
        "// +patchKey=n\n// +patchStrategy=retainKeys\nv: [{n: \"a\", x: 2}]",
        r#"{"v":[{"n":"a","x":2},{"n":"b"}]}"#,
    );
    check(
        "l: [{n: \"a\"}, {n: \"b\"}]",
        "// +patchStrategy=replace\nl: [{n: \"c\"}]",
        r#"{"l":[{"n":"c"}]}"#,
    );
    check(
        "{}",
        "// +patchStrategy=replace\nl: [{n: \"c\"}]",
        r#"{"l":[{"n":"c"}]}"#,
    );
}

#[test]
fn a_marker_above_a_chain_belongs_to_its_innermost_field() {
    check(
        "s: {type: \"a\", more: 1}",
        "// +patchStrategy=retainKeys\ns: type: \"b\"",
        r#"{"s":{"type":"b","more":1}}"#,
    );
}

#[test]
fn markers_travel_through_references_and_comprehensions() {
    check(
        "c: [{n: \"a\"}, {n: \"b\"}]",
        "_patch: {\n\t// +patchKey=n\n\tc: [{n: \"b\", x: 1}]\n}\nif true {\n\t_patch\n}",
        r#"{"c":[{"n":"a"},{"n":"b","x":1}]}"#,
    );
}

#[test]
fn json_strategies_follow_their_standards() {
    let merge = |base, patch| patched(base, patch, Strategy::JsonMergePatch).unwrap();
    assert_eq!(
        merge("a: {b: 1, c: 2}", "a: {b: null, d: 3}"),
        r#"{"a":{"c":2,"d":3}}"#
    );
    let operations = "operations: [
        {op: \"add\", path: \"/l/0\", value: 0},
        {op: \"replace\", path: \"/a~1b\", value: 2},
        {op: \"move\", from: \"/x\", path: \"/y\"},
        {op: \"remove\", path: \"/l/1\"},
        {op: \"test\", path: \"/y\", value: 9},
    ]";
    assert_eq!(
        patched(
            "l: [1, 2]\n\"a/b\": 1\nx: 9",
            operations,
            Strategy::JsonPatch
        )
        .unwrap(),
        r#"{"l":[0,2],"a/b":2,"y":9}"#
    );
    let missing = "operations: [{op: \"remove\", path: \"/none\"}]";
    let error = patched("a: 1", missing, Strategy::JsonPatch).unwrap_err();
    assert_eq!(error, "failed to apply json patch: /none: missing path");
}

#[test]
fn the_strategy_of_a_patch_is_read_from_its_comments() {
    let mut evaluation = compiled("// +patchStrategy=jsonMergePatch\npatch: a: 1\nother: 1");
    let root = evaluation.root();
    let patch = evaluation.lookup(root, "patch").unwrap();
    // The comment stands above a chain, so it documents the innermost field only.
    assert_eq!(strategy(&mut evaluation, patch), Strategy::Unify);
    let mut evaluation = compiled("// +patchStrategy=jsonMergePatch\npatch: {a: 1}");
    let root = evaluation.root();
    let patch = evaluation.lookup(root, "patch").unwrap();
    assert_eq!(strategy(&mut evaluation, patch), Strategy::JsonMergePatch);
}

#[test]
fn a_marker_is_one_word_after_an_equals_sign() {
    let lines = [
        "// +patchKey=name",
        "//+usage=Two words",
        "// note",
        "// +short = n ",
        "// +flag",
    ];
    assert_eq!(markers(lines), [("patchKey", "name"), ("short", "n")]);
}
