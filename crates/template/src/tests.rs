//! Templates against what Go's `text/template` makes of them.

use bellwether_go::value::Value;
use serde_json::json;

use crate::{Budget, Functions, MissingKey, NOWHERE, Options, Phase, Rendered, Set, TemplateError};

fn data() -> Value {
    Value::from_json(&json!({
        "s": "hello", "n": 3, "f": 1.5, "big": 1_000_000, "yes": true, "nul": null,
        "list": ["a", "b", "c"], "empty": [], "map": {"b": 2, "a": 1},
        "deep": {"x": {"y": "z"}},
    }))
}

fn render_with(missing_key: MissingKey, text: &str) -> Result<String, TemplateError> {
    let options = Options {
        missing_key,
        ..Options::new(Functions::builtin())
    };
    let mut set = Set::new(options);
    set.add("t", text)?;
    match set.render("t", &data(), &NOWHERE, &mut Budget::default())? {
        Rendered::Text(text) => Ok(String::from_utf8(text).unwrap()),
        Rendered::Needs(needs) => panic!("{text}: {needs:?}"),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    match render_with(MissingKey::Invalid, text) {
        Ok(output) => assert_eq!(output, expected, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    match render_with(MissingKey::Invalid, text) {
        Ok(output) => panic!("{text}: {output:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{text}"),
    }
}

#[test]
fn fields_variables_and_pipelines() {
    check(
        "{{.s}} {{ .deep.x.y }} {{ $.n }} {{ (.map).a }}",
        "hello z 3 1",
    );
    check(
        "{{ $x := .s }}{{ $x = 5 }}{{ $x | printf \"%03d\" }}",
        "005",
    );
    check("{{ .missing }}|{{ .nul }}", "<no value>|<no value>");
    check(
        "{{ .big }} {{ .f }} {{ .list }} {{ .map }}",
        "1e+06 1.5 [a b c] map[a:1 b:2]",
    );
    check(
        "{{ with $y := .s }}{{ $y }}{{ end }}{{ with .nul }}x{{ else with .n }}{{ . }}{{ end }}",
        "hello3",
    );
    check(
        "{{ 'a' }} {{ 0x1F }} {{ 1_000 }} {{ 1e3 }} {{ 0b11 }} {{ 0o17 }} {{ 017 }} {{ 1i }}",
        "97 31 1000 1000 3 15 15 (0+1i)",
    );
}

#[test]
fn loops() {
    check(
        "{{ range $i, $x := .list }}{{ $i }}{{ $x }} {{ end }}",
        "0a 1b 2c ",
    );
    check(
        "{{ range $k, $v := .map }}{{ $k }}={{ $v }};{{ end }}",
        "a=1;b=2;",
    );
    check(
        "{{ range 3 }}{{ . }}{{ end }}{{ range .empty }}x{{ else }}none{{ end }}",
        "012none",
    );
    check(
        "{{ range .list }}{{ if eq . \"b\" }}{{ continue }}{{ end }}{{ . }}{{ end }}",
        "ac",
    );
    check(
        "{{ range .list }}{{ if eq . \"b\" }}{{ break }}{{ end }}{{ . }}{{ end }}",
        "a",
    );
    check(
        "{{ $s := \"\" }}{{ range .list }}{{ $s = print $s . }}{{ end }}{{ $s }}",
        "abc",
    );
}

#[test]
fn blanks_are_trimmed_by_marks() {
    check("a \n {{- 1 -}} \t b", "a1b");
    check("a {{- /* c */ -}} b", "ab");
    check("{{/* c */}}x {{ -3 }}", "x -3");
}

#[test]
fn templates_call_templates() {
    check(
        "{{ define \"x\" }}<{{ . }}>{{ end }}{{ template \"x\" .s }}{{ template \"x\" }}",
        "<hello><<no value>>",
    );
    check("{{ block \"b\" .n }}[{{ . }}]{{ end }}", "[3]");
}

#[test]
fn builtin_functions() {
    check(
        "{{ and 1 0 2 }} {{ or 0 \"\" \"x\" }} {{ not .s }}",
        "0 x false",
    );
    check(
        "{{ len .s }} {{ len .list }} {{ index .list 1 }} {{ index .map \"a\" }} {{ slice .s 1 3 }}",
        "5 3 b 1 el",
    );
    check(
        "{{ eq 1 1 }} {{ eq .s \"x\" \"hello\" }} {{ lt 1 2 }} {{ ge 1.5 1.5 }} {{ ne .nul nil }}",
        "true true true true false",
    );
    check(
        "{{ html \"<a&'>\" }} {{ js \"it's <b>\" }} {{ urlquery \"a b/&\" }}",
        "&lt;a&amp;&#39;&gt; it\\'s \\u003Cb\\u003E a+b%2F%26",
    );
    check(
        "{{ print 1 2 \"a\" 3 }} {{ println \"x\" 1 }}",
        "1 2a3 x 1\n",
    );
}

#[test]
fn errors_are_worded_and_placed_as_in_go() {
    check_error(
        "{{ .s.x }}",
        "template: t:1:5: executing \"t\" at <.s.x>: can't evaluate field x in type interface {}",
    );
    check_error(
        "a\nb {{ index .list 9 }}",
        "template: t:2:5: executing \"t\" at <index .list 9>: error calling index: index out of range: 9",
    );
    check_error(
        "{{ lt .n 1 }}",
        "template: t:1:3: executing \"t\" at <lt .n 1>: error calling lt: incompatible types for comparison: float64 and int",
    );
    check_error(
        "{{ template \"no\" }}",
        "template: t:1:12: executing \"t\" at <{{template \"no\"}}>: template \"no\" not defined",
    );
    check_error(
        "{{ printf 1 }}",
        "template: t:1:10: executing \"t\" at <1>: expected string; found 1",
    );
    check_error(
        "{{ len }}",
        "template: t:1:3: executing \"t\" at <len>: wrong number of args for len: want 1 got 0",
    );
    check_error(
        "{{ range .s }}{{ end }}",
        "template: t:1:9: executing \"t\" at <.s>: range can't iterate over hello",
    );
    check_error("{{ nope }}", "template: t:1: function \"nope\" not defined");
    check_error("{{ if }}{{ end }}", "template: t:1: missing value for if");
    check_error("{{ if 1 }}", "template: t:1: unexpected EOF");
    check_error("{{ \"x }}", "template: t:1: unterminated quoted string");
    check_error("\n{{ (1 }}", "template: t:2: unclosed left paren");
    check_error("{{ $x }}", "template: t:1: undefined variable \"$x\"");
    check_error("{{ break }}", "template: t:1: {{break}} outside {{range}}");
    check_error("{{ 08 }}", "template: t:1: integer overflow: \"08\"");
    check_error(
        "{{ .x | 3 }}",
        "template: t:1: non executable command in pipeline stage 2",
    );
}

#[test]
fn missing_keys_are_what_the_option_says() {
    let zero = render_with(MissingKey::Zero, "{{ .missing.x }}").unwrap_err();
    assert_eq!(
        zero.to_string(),
        "template: t:1:11: executing \"t\" at <.missing.x>: nil pointer evaluating interface {}.x"
    );
    let error = render_with(MissingKey::Error, "{{ .missing }}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "template: t:1:3: executing \"t\" at <.missing>: map has no entry for key \"missing\""
    );
    assert_eq!(
        render_with(MissingKey::Invalid, "{{ .missing.x }}").unwrap(),
        "<no value>"
    );
}

#[track_caller]
fn check_stopped(text: &str) {
    let mut budget = Budget {
        steps: 200_000,
        bytes: 1_000_000,
        depth: 100,
    };
    let mut set = Set::new(Options::new(Functions::builtin()));
    set.add("t", text).unwrap();
    let list = Value::list(vec![Value::int(1); 1000]);
    let dot = Value::map([("d", list)]);
    let error = set.render("t", &dot, &NOWHERE, &mut budget).unwrap_err();
    assert_eq!(error.phase(), Phase::Budget, "{error}");
}

#[test]
fn no_template_runs_on() {
    check_stopped("{{ range $.d }}{{ range $.d }}{{ range $.d }}{{ end }}{{ end }}{{ end }}");
    check_stopped(
        "{{ define \"x\" }}{{ template \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}",
    );
    check_stopped("{{ range 1000000000000 }}{{ end }}");
    check_stopped("{{ $x := \"0123456789\" }}{{ range 100 }}{{ $x = print $x $x }}{{ end }}");
    check_stopped("{{ range 100 }}{{ printf \"%900000d\" 1 }}{{ end }}");
}

#[test]
fn a_map_that_holds_itself_is_printed_and_dropped() {
    let map = Value::map([("a", Value::int(1))]);
    map.as_map().unwrap().set("self".into(), map.clone());
    let mut set = Set::new(Options::new(Functions::builtin()));
    set.add("t", "{{ . }}").unwrap();
    let rendered = set.render("t", &map, &NOWHERE, &mut Budget::default());
    assert!(matches!(rendered, Ok(Rendered::Text(_))));
    map.as_map().unwrap().clear();
}
