use super::*;

#[track_caller]
fn refuses(text: &str, expected: &str) {
    assert_eq!(
        parse(text).unwrap_err(),
        format!("toml: {expected}"),
        "{text}"
    );
}

/// Compared with `github.com/BurntSushi/toml`, which Helm reads with.
#[test]
fn mistakes_are_named_as_in_helm() {
    refuses(
        "a = 1\nb",
        "line 2: unexpected EOF; expected key separator '='",
    );
    refuses(
        "a = ",
        "line 1 (last key \"a\"): unexpected EOF; expected value",
    );
    refuses(
        "a = \n",
        "line 1 (last key \"a\"): expected value but found '\\n' instead",
    );
    refuses(
        "a = x",
        "line 1 (last key \"a\"): expected value but found \"x\" instead",
    );
    refuses(
        "[a",
        "line 1: expected '.' or ']' to end table name, but got '\\x00' instead",
    );
    refuses(
        "[[a]",
        "line 1: expected end of table array name delimiter ']', but got '\\x00' instead",
    );
    refuses(
        "a = 1 2",
        "line 1: expected a top-level item to end with a newline, comment, or EOF, but got '2' instead",
    );
    refuses(
        "a = 1\na = 2",
        "line 2 (last key \"a\"): Key 'a' has already been defined.",
    );
    refuses("[a]\n[a]", "line 2: Key 'a' has already been defined.");
    refuses(
        "a = 08",
        "line 1 (last key \"a\"): Invalid integer \"08\": cannot have leading zeroes",
    );
    refuses(
        "a = 1__0",
        "line 1 (last key \"a\"): Invalid integer \"1__0\": underscores must be surrounded by digits",
    );
    refuses(
        "a = 1.",
        "line 1 (last key \"a\"): Invalid float \"1.\": '.' must be followed by one or more digits",
    );
    refuses(
        "a = \"x",
        "line 1 (last key \"a\"): unexpected EOF; expected '\"'",
    );
    refuses(
        "a = [1 2]",
        "line 1 (last key \"a\"): expected a comma (',') or array terminator (']'), but got '2'",
    );
    refuses(
        "a = {b = 1",
        "line 1 (last key \"a.b\"): expected a comma or an inline table terminator '}', but got end of \
         file instead",
    );
    refuses(
        "a = \"\\q\"",
        "line 1 (last key \"a\"): invalid escape in string '\\q'",
    );
}

#[test]
fn dates_may_have_a_blank_before_their_time() {
    let read = parse("a = 2024-02-29 12:30:00 # then\nb = 1_000").unwrap();
    let expected = vec![
        ("a".to_owned(), Item::Time("2024-02-29 12:30:00".to_owned())),
        ("b".to_owned(), Item::Number("1_000".to_owned())),
    ];
    assert_eq!(read, Item::Table(expected));
}
