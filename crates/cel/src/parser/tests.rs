use super::*;

fn parsed(source: &str) -> std::result::Result<Expr, String> {
    let mut problems = Problems::default();
    let parsed = parse(source, LibrarySet::ALL, &mut problems);
    if problems.is_empty() {
        Ok(parsed.expr)
    } else {
        Err(problems.into_errors(source).to_string())
    }
}

/// Writes calls as `name(arguments)`, which shows how operators were grouped.
fn shown(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Literal(Literal::Int(value)) => value.to_string(),
        ExprKind::Literal(other) => format!("{other:?}"),
        ExprKind::Ident(name) => name.clone(),
        ExprKind::Select(select) => format!("{}.{}", shown(&select.operand), select.field),
        ExprKind::Call(call) => {
            let arguments: Vec<String> = call
                .target
                .iter()
                .chain(&call.arguments)
                .map(shown)
                .collect();
            format!("{}({})", call.function, arguments.join(", "))
        }
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(shown(&parsed(source).unwrap()), expected, "{source}");
}

#[test]
fn products_bind_tighter_than_sums() {
    check("1 + 2 * 3", "_+_(1, _*_(2, 3))");
    check("1 * 2 + 3", "_+_(_*_(1, 2), 3)");
    check("1 - 2 - 3", "_-_(_-_(1, 2), 3)");
}

#[test]
fn comparisons_bind_tighter_than_logic() {
    check(
        "a == 1 && b < 2 || c",
        "_||_(_&&_(_==_(a, 1), _<_(b, 2)), c)",
    );
    check("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))");
}

#[test]
fn chains_of_logic_are_balanced() {
    check("a && b && c", "_&&_(_&&_(a, b), c)");
    check("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))");
}

#[test]
fn a_minus_belongs_to_the_number_behind_it() {
    check("-1", "-1");
    check("- 1", "-1");
    check("-a", "-_(a)");
    check("--a", "a");
    check("1 -1", "_-_(1, 1)");
    check("!!a", "a");
    check("!!!a", "!_(a)");
}

#[test]
fn selections_and_indexes_chain() {
    check(
        "a.b[c].?d[?e]",
        "_[?_](_?._(_[_](a.b, c), String(\"d\")), e)",
    );
    check("a.f(1).g(2)", "g(f(a, 1), 2)");
    check(".a", ".a");
}

#[test]
fn an_unclosed_bracket_is_told_apart_from_a_missing_operand() {
    let error = parsed("(1").unwrap_err();
    assert_eq!(
        error,
        "ERROR: <input>:1:3: Syntax error: missing ')' at '<EOF>'\n | (1\n | ..^"
    );
    let error = parsed("1 +").unwrap_err();
    assert!(
        error.starts_with(
            "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'['"
        )
    );
}
