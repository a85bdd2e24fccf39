//! Laws that hold for every source: unification does not care about order, formatting does not
//! change meaning, and no input makes the crate panic.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::builtins::parse_json;
use bellwether_cue::format::format_source;
use bellwether_cue::host::{Budget, Template};
use proptest::prelude::*;

/// A small budget: the laws need no big values, and a runaway must end quickly.
fn budget() -> Budget {
    Budget {
        steps: 200_000,
        memory: 50 << 20,
        ..Budget::default()
    }
}

/// What a source means: its value with fields sorted, or the class of its problem.
fn meaning(source: &str) -> String {
    let Ok(template) = Template::compile(source) else {
        return "rejected".to_owned();
    };
    let mut evaluation = template.evaluate(budget());
    let root = evaluation.root();
    if !evaluation.validate(root).is_empty() {
        return "error".to_owned();
    }
    match evaluation.json(root) {
        Ok(json) => format!("{:?}", parse_json(&json).expect("exported JSON").sorted()),
        Err(_) => "incomplete".to_owned(),
    }
}

/// Values that unify in interesting ways.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("2".to_owned()),
        Just("\"s\"".to_owned()),
        Just("int".to_owned()),
        Just("string".to_owned()),
        Just(">1".to_owned()),
        Just("*1 | int".to_owned()),
        Just("1 | 2".to_owned()),
        Just("*\"s\" | 2".to_owned()),
        Just("_".to_owned()),
        Just("null".to_owned()),
        Just("[...int]".to_owned()),
        Just("[1, 2]".to_owned()),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let label = prop_oneof![Just("a"), Just("b"), Just("c?"), Just("d!")];
        prop_oneof![
            prop::collection::vec((label, inner.clone()), 0..3).prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(label, value)| format!("{label}: {value}"))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }),
            (inner.clone(), inner.clone())
                .prop_map(|(left, right)| format!("({left}) & ({right})")),
            // Which marks of nested disjunctions count depends on the order of operands, here as in
            // the reference; the laws are about the rest.
            (inner.clone(), inner)
                .prop_map(|(left, right)| { format!("({left}) | ({right})").replace('*', "") }),
        ]
    })
}

/// A disjunction of plain terms with any marks.
fn disjunction() -> impl Strategy<Value = String> {
    let terms = prop::sample::select(vec![
        "1", "2", "3", "int", "string", "\"s\"", "{x: 1}", "{x: int}", "{y: 2}", "[1]", ">1",
    ]);
    prop::collection::vec((any::<bool>(), terms), 2..5).prop_map(|terms| {
        let terms: Vec<String> = terms
            .iter()
            .map(|(default, term)| format!("{}{term}", if *default { "*" } else { "" }))
            .collect();
        terms.join(" | ")
    })
}

/// Declarations that depend on each other; those of a group need nothing outside it.
const RELATED: &[&[&str]] = &[
    &[
        "#D: {a: {b?: 1}}",
        "x: #D & {a: {c: 2}}",
        "y: #D",
        "y: a: b: 1",
    ],
    &[
        "#E: {#F, z?: 1}",
        "#F: {v?: int}",
        "e: #E & {z: 1}",
        "e: v: 2",
    ],
    &["l: #L & {w: [{}, {k: 1}]}", "#L: {w: [{}, ...]}"],
    &[
        "p: {b: {x: 1, y: {w: q.d.x + 1}}}",
        "q: d: {p.b, z: 1}",
        "q: d: x: <2",
    ],
    &["if s.on {t: 1}", "s: on: *true | bool", "s: on: false"],
    &[
        "for k, v in m {n: (k): v}",
        "m: u: 1",
        "for k, v in o {m: (k): v}",
        "o: w: 2",
    ],
    &["a: {i: 1, for k, v in a {\"\\(k)2\": v}}", "a: i: int"],
    &[
        "f: g: *1 | int",
        "f: g: h.g",
        "h: g: *1 | 2",
        "f: k: f.g + 1",
    ],
    &[
        "c: [string]: {name: string}",
        "c: one: {}",
        "for k, v in c {c: (k): name: k}",
    ],
    &[
        "r: s1: r.s2",
        "r: s2: r.s3",
        "r: s3: {d: 1}",
        "r: s1: {e: 2}",
    ],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn related_declarations_may_be_shuffled(
        (original, shuffled) in prop::sample::subsequence(RELATED, 1..4).prop_flat_map(|groups| {
            let lines = groups.concat();
            (Just(lines.clone()), Just(lines).prop_shuffle())
        })
    ) {
        prop_assert_eq!(meaning(&original.join("\n")), meaning(&shuffled.join("\n")));
    }

    #[test]
    fn defaults_do_not_depend_on_the_order_of_two_disjunctions(
        left in disjunction(),
        right in disjunction(),
    ) {
        let one = meaning(&format!("a: {left}\na: {right}"));
        let other = meaning(&format!("a: {right}\na: {left}"));
        prop_assert_eq!(&one, &other);
        let together = meaning(&format!("a: ({right}) & ({left})"));
        prop_assert_eq!(one, together);
    }

    #[test]
    fn a_disjunction_means_the_same_twice(disjunction in disjunction()) {
        let once = meaning(&format!("a: {disjunction}"));
        let twice = meaning(&format!("a: {disjunction}\na: {disjunction}"));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn unification_is_commutative(left in expression(), right in expression()) {
        let forward = meaning(&format!("x: ({left}) & ({right})"));
        let backward = meaning(&format!("x: ({right}) & ({left})"));
        prop_assert_eq!(forward, backward);
    }

    #[test]
    fn unification_is_associative(a in expression(), b in expression(), c in expression()) {
        let left = meaning(&format!("x: (({a}) & ({b})) & ({c})"));
        let right = meaning(&format!("x: ({a}) & (({b}) & ({c}))"));
        prop_assert_eq!(left, right);
    }

    #[test]
    fn unification_is_idempotent(value in expression()) {
        prop_assert_eq!(meaning(&format!("x: {value}")), meaning(&format!("x: ({value}) & ({value})")));
    }

    #[test]
    fn declarations_may_be_shuffled(
        (original, shuffled) in prop::collection::vec(expression(), 1..5).prop_flat_map(|values| {
            let names = ["x", "y", "x", "z", "y"];
            let lines: Vec<String> = values
                .iter()
                .zip(names)
                .map(|(value, name)| format!("{name}: {value}"))
                .collect();
            (Just(lines.clone()), Just(lines).prop_shuffle())
        })
    ) {
        prop_assert_eq!(meaning(&original.join("\n")), meaning(&shuffled.join("\n")));
    }

    #[test]
    fn formatting_keeps_the_meaning(left in expression(), right in expression()) {
        let source = format!("x: {left}\ny: {{\nz: {right}\n}}\nx: {right}");
        let formatted = format_source("-", &source).expect("generated source parses");
        prop_assert_eq!(meaning(&source), meaning(&formatted), "{}", formatted);
    }

    #[test]
    fn no_text_makes_the_crate_panic(text in "[a-z#_$\"'\\\\(){}\\[\\]:;,.&|*+/<>=!?~@ \n0-9-]{0,60}") {
        let _ = meaning(&text);
        let _ = format_source("-", &text);
    }

    #[test]
    fn no_sequence_of_words_makes_the_crate_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b", "#D", "_h", ":", ": ", "{", "}", "[", "]", "(", ")", ",", "\n", "if ",
                "for x in ", "let ", "=", "1", "\"s\"", "\"\\(a)\"", "&", "|", "*", "!=", "_|_",
                "...", "?:", "!:", "int", ">5", ".b", "[0]", "len(", "close(", "@x()", "'''",
                "\"\"\"\n", "// c\n", "null", "and([", "or([", "a: a\n", "a: b\nb: a\n",
            ]),
            0..40,
        )
    ) {
        let text = words.concat();
        let _ = meaning(&text);
        let _ = format_source("-", &text);
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    for (open, close) in [("{a: ", "}"), ("[", "]"), ("(", ")"), ("-", ""), ("*", "")] {
        let source = format!("x: {}1{}", open.repeat(20_000), close.repeat(20_000));
        let _ = meaning(&source);
    }
    let chain = format!("x: {}1", "a: ".repeat(20_000));
    let _ = meaning(&chain);
    let sum = format!("x: {}", vec!["1"; 20_000].join(" + "));
    let _ = meaning(&sum);
}

#[test]
fn hostile_sources_end_within_their_budget() {
    let doubling: String = (0..40).fold("x0: [1, 1]\n".to_owned(), |source, index| {
        source
            + &format!(
                "x{}: [for a in x{index} for b in x{index} {{a}}]\n",
                index + 1
            )
    });
    let alternatives = |index: i32| format!("x: {{f{index}: 1}} | {{g{index}: 2}}");
    let product = (0..12).map(alternatives).collect::<Vec<String>>().join(
        "
",
    );
    let recursion = "#A: {n: int, if n > 0 {next: #A & {\"n\": n - 1}}}\na: #A & {n: 100000}\n";
    for source in [
        doubling.as_str(),
        product.as_str(),
        recursion,
        "a: {b: a & {c: 1}}\n",
    ] {
        let _ = meaning(source);
    }
}
