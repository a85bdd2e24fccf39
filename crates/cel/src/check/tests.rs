use super::*;
use crate::library::{self, LibrarySet};
use crate::parser;

#[track_caller]
fn check_type(source: &str, expected: Result<&str, &str>) {
    let mut problems = Problems::default();
    let parsed = parser::parse(source, LibrarySet::ALL, &mut problems);
    let variables = [
        Variable {
            name: "any".into(),
            of: Type::Dyn,
        },
        Variable {
            name: "pod.name".into(),
            of: Type::String,
        },
        Variable {
            name: "thing".into(),
            of: Type::object("Thing", [("size".to_owned(), Type::Int)]),
        },
    ];
    let functions = library::functions(LibrarySet::ALL);
    let checked = check(
        &parsed.expr,
        &parsed.positions,
        &variables,
        &functions,
        &mut problems,
    );
    if problems.is_empty() {
        let of = checked.type_of(parsed.expr.id).to_string();
        assert_eq!(Ok(of.as_str()), expected, "{source}");
    } else {
        let errors = problems.into_errors(source);
        let messages: Vec<&str> = errors
            .issues()
            .iter()
            .map(|issue| issue.message.as_str())
            .collect();
        assert_eq!(Err(messages.join("; ").as_str()), expected, "{source}");
    }
}

#[test]
fn open_types_stay_open_until_something_fixes_them() {
    check_type("any", Ok("dyn"));
    check_type("any + 1", Ok("int"));
    check_type("any + any", Ok("dyn"));
    check_type("any.map(x, x + 1)", Ok("list(int)"));
    check_type("[]", Ok("list(dyn)"));
    check_type("[] + [1]", Ok("list(int)"));
    check_type("[[], [1]]", Ok("list(list(int))"));
    check_type("{}", Ok("map(dyn, dyn)"));
}

#[test]
fn names_with_dots_are_found_whole() {
    check_type("pod.name", Ok("string"));
    check_type("pod.name.size()", Ok("int"));
    check_type(
        "pod.uid",
        Err("undeclared reference to 'pod' (in container '')"),
    );
}

#[test]
fn variables_of_macros_hide_those_outside() {
    check_type("[1].map(any, any)", Ok("list(int)"));
    check_type("['a'].all(thing, thing == 'b')", Ok("bool"));
    check_type(
        "[1].map(x, x) + [x]",
        Err("undeclared reference to 'x' (in container '')"),
    );
}

#[test]
fn fields_of_objects_must_exist() {
    check_type("thing.size", Ok("int"));
    check_type("has(thing.size)", Ok("bool"));
    check_type("thing.weight", Err("undefined field 'weight'"));
    check_type("thing.?weight", Err("undefined field 'weight'"));
    check_type("thing.?size", Ok("optional_type(int)"));
}

#[test]
fn every_wrong_operand_of_logic_is_named() {
    check_type(
        "1 && 'a'",
        Err("expected type 'bool' but found 'int'; expected type 'bool' but found 'string'"),
    );
}
