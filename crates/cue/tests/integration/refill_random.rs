//! Random templates and random data that comes after an evaluation, piece by piece: each time the
//! result is that of an evaluation from the beginning with all data so far.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::diagnostic::Code;
use bellwether_cue::host::{Budget, Evaluation, FieldOptions, Template};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Enough for every template here.
const BUDGET: Budget = Budget {
    steps: 50_000,
    memory: 32 << 20,
    depth: 500,
    output: 1 << 20,
    disjuncts: 1_000,
};

const LIMIT: &str = "evaluation limit exceeded";

/// What templates begin with. Data comes to all of them but the definition.
const INPUTS: &str = "p: {a?: int, b?: int, c: *1 | int, ...}\nq: {...}\nr: [...]\n\
     k: {a: 1, b: 2, ...}\n#D: {a?: _, b: *5 | _, c?: _}\n";

/// Random numbers that decide what a template looks like; all zero when they are used up, which
/// gives the simplest of everything.
struct Choices(std::vec::IntoIter<u8>);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % count
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// What a declaration is, so that most references to it make sense.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Scalar,
    List,
    Struct,
}

/// Writes declarations that refer to earlier ones.
struct Writer {
    choices: Choices,
    names: Vec<(String, Shape)>,
    /// Whether the variables of a loop can be used.
    in_loop: bool,
    depth: u32,
}

impl Writer {
    /// The name of something of a shape: what data comes to, or an earlier declaration.
    fn named(&mut self, shape: Shape, inputs: &[&str]) -> String {
        let names = self.names.iter().filter(|(_, known)| *known == shape);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        if names.is_empty() || self.choices.below(2) == 0 {
            return self.choices.of(inputs).to_owned();
        }
        self.choices.of(&names).to_owned()
    }

    fn scalar(&mut self) -> String {
        match self.choices.below(6) {
            0 if self.in_loop => self
                .choices
                .of(&["f", "v", "q[f]", "p[f]", "k[f]"])
                .to_owned(),
            1 => self.named(Shape::Struct, &["q", "k"]) + self.choices.of(&[".a", ".b"]),
            2 => self.named(Shape::List, &["r", "q.l"]) + self.choices.of(&["[0]", "[1]"]),
            _ => self.named(Shape::Scalar, &["q.a", "q.b", "p.a", "p.b", "p.c", "k.d"]),
        }
    }

    fn structure(&mut self) -> String {
        self.named(Shape::Struct, &["k", "q", "p", "q.c"])
    }

    fn sequence(&mut self) -> String {
        self.named(Shape::List, &["r", "q.l"])
    }

    fn reference(&mut self) -> String {
        match self.choices.below(4) {
            0 => self.structure(),
            1 => self.sequence(),
            _ => self.scalar(),
        }
    }

    fn guard(&mut self) -> String {
        let by_key = self.choices.below(2) == 0 && self.in_loop;
        let tested = if by_key {
            self.choices.of(&["q[f]", "p[f]", "q.c[f]"]).to_owned()
        } else {
            self.reference()
        };
        match self.choices.below(7) {
            0..=2 => format!("{tested} == _|_"),
            3 | 4 => format!("{tested} != _|_"),
            5 => format!("len({}) > {}", self.sequence(), self.choices.below(3)),
            _ => format!("len({}) > {}", self.structure(), self.choices.below(4)),
        }
    }

    /// The clauses of a comprehension; the loop variables are known from here on.
    fn clauses(&mut self) -> String {
        let source = match self.choices.below(4) {
            0 | 1 => "k".to_owned(),
            2 => self.structure(),
            _ => self.sequence(),
        };
        self.in_loop = true;
        let guard = self.guard();
        match self.choices.below(8) {
            0 => format!("for f, v in {source}"),
            1 => format!(
                "for f, v in {source} let w = {} if w != _|_",
                self.reference()
            ),
            2 => format!(
                "for f, v in {source} if {guard} for g, _ in {}",
                self.structure()
            ),
            _ => format!("for f, v in {source} if {guard}"),
        }
    }

    fn comprehension(&mut self, body: impl FnOnce(&mut Self) -> String) -> String {
        let outer = self.in_loop;
        let clauses = if self.choices.below(4) == 3 {
            format!("if {}", self.guard())
        } else {
            self.clauses()
        };
        let body = body(self);
        self.in_loop = outer;
        format!("{clauses} {{{body}}}")
    }

    fn list(&mut self) -> String {
        let elements = self.comprehension(|this| match this.choices.below(4) {
            0 | 1 if this.in_loop => "f".to_owned(),
            1 => format!("a: {}, b: {}", this.value(), this.value()),
            2 => this.reference(),
            _ => format!("a: {}", this.value()),
        });
        match self.choices.below(6) {
            4 => format!("[7, {elements}, 8]"),
            5 => format!("[{elements}, {}]", self.value()),
            _ => format!("[{elements}]"),
        }
    }

    fn fields(&mut self) -> String {
        let made = self.comprehension(|this| match this.choices.below(3) {
            0 | 1 if this.in_loop => format!("\"\\(f)\": {}", this.value()),
            _ => format!("a: {}", this.value()),
        });
        match self.choices.below(6) {
            4 => format!("{{{made}, b: {}}}", self.value()),
            5 => format!("{{let N = {}, {made}, b: N}}", self.value()),
            _ => format!("{{{made}}}"),
        }
    }

    fn value(&mut self) -> String {
        if self.depth == 0 {
            return self.scalar();
        }
        self.depth -= 1;
        let value = match self.choices.below(8) {
            0 => self.list(),
            1 => self.fields(),
            2 => self.reference(),
            _ => self.plain_value(),
        };
        self.depth += 1;
        value
    }

    /// A scalar value, mostly one that exists in any case.
    fn plain_value(&mut self) -> String {
        match self.choices.below(8) {
            0 => self
                .choices
                .of(&["1", "2", "int", "\"s\"", "*2 | int"])
                .to_owned(),
            1 => format!("{} + 1", self.scalar()),
            2 => format!("\"\\({})\"", self.scalar()),
            3 => format!("len({})", self.sequence()),
            4 => format!("len({})", self.structure()),
            _ => format!("*{} | 3", self.scalar()),
        }
    }

    fn struct_value(&mut self) -> String {
        match self.choices.below(8) {
            0 => format!("{{a: {}, b?: int}}", self.value()),
            1 => format!("*{{a: {}}} | {{b: {}}}", self.value(), self.value()),
            2 => format!("{{a: {}}} | {{c: {}}}", self.value(), self.value()),
            3 => format!("#D & {{a: {}}}", self.value()),
            4 => format!("{} & {{z: {}}}", self.structure(), self.value()),
            _ => self.fields(),
        }
    }

    fn declaration(&mut self, index: usize) -> String {
        let (is_let, kind) = (self.choices.below(2) == 0, self.choices.below(8));
        let (value, shape) = match kind {
            0..=2 => (self.list(), Shape::List),
            3..=5 => (self.struct_value(), Shape::Struct),
            _ => (self.plain_value(), Shape::Scalar),
        };
        if is_let {
            self.names.push((format!("L{index}"), shape));
            let used = self.choices.of(&["", "[0]", ".a", ""]);
            return format!("let L{index} = {value}\nu{index}: *L{index}{used} | 0");
        }
        let field = match self.choices.below(8) {
            6 => format!("x{index}: _\nif {} {{x{index}: {value}}}", self.guard()),
            7 => {
                let made = self.comprehension(|this| format!("y{index}: a: {}", this.value()));
                format!("x{index}: {value}\n{made}")
            }
            _ => format!("x{index}: {value}"),
        };
        self.names.push((format!("x{index}"), shape));
        field
    }
}

/// A template of so many declarations, last ones first if `reversed`.
fn template(choices: Vec<u8>, count: usize, reversed: bool) -> String {
    let mut writer = Writer {
        choices: Choices(choices.into_iter()),
        names: Vec::new(),
        in_loop: false,
        depth: 2,
    };
    let mut lines: Vec<String> = (0..count).map(|index| writer.declaration(index)).collect();
    if reversed {
        lines.reverse();
    }
    format!("{INPUTS}{}", lines.join("\n"))
}

/// A path, and the data that comes there.
type Fill = (Vec<&'static str>, Value);

fn fill() -> impl Strategy<Value = Fill> {
    let fills: Vec<Fill> = vec![
        (vec!["q", "a"], json!(1)),
        (vec!["q", "b"], json!(2)),
        (vec!["q", "c"], json!({"a": 3})),
        (vec!["q"], json!({"a": 1, "e": "s"})),
        (vec!["q"], json!({"b": 2, "c": {"b": 4}})),
        (vec!["q", "c", "a"], json!(3)),
        (vec!["q", "l"], json!([1, 2])),
        (vec!["p", "a"], json!(1)),
        (vec!["p", "b"], json!(3)),
        (vec!["p"], json!({"a": 1, "c": 2})),
        (vec!["p", "c"], json!(2)),
        (vec!["k", "d"], json!(4)),
        (vec!["k"], json!({"d": 4, "e": 5})),
        (vec!["r"], json!([1, 2])),
        (vec!["x1", "a"], json!(1)),
        (vec!["q", "a"], json!("other")),
    ];
    prop::sample::select(fills)
}

/// The exported value of the whole and of each field, or the error. Of several reasons why a value is
/// not complete yet, any may be named first; of other errors the message has to be the same.
fn outcome(evaluation: &mut Evaluation) -> Vec<(String, Result<Value, String>)> {
    let root = evaluation.root();
    let fields = evaluation.fields(root, FieldOptions::default());
    let parts = fields.into_iter().map(|it| (it.name.to_string(), it.value));
    let mut parts: Vec<_> = std::iter::once((String::new(), root))
        .chain(parts)
        .collect();
    parts.sort_by(|left, right| left.0.cmp(&right.0));
    let mut export = |part| {
        let exported = evaluation.export_json(part);
        exported.map_err(|problem| match problem.code {
            Code::Incomplete => "incomplete".to_owned(),
            _ => problem.to_string(),
        })
    };
    let exported = parts.into_iter().map(|(name, part)| (name, export(part)));
    exported.collect()
}

fn is_cut_off(outcome: &[(String, Result<Value, String>)]) -> bool {
    let mut errors = outcome.iter().filter_map(|(_, it)| it.as_ref().err());
    errors.any(|error| error.contains(LIMIT))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn filling_gives_what_an_evaluation_from_the_beginning_gives(
        choices in prop::collection::vec(any::<u8>(), 0..120),
        count in 1..8_usize,
        reversed in any::<bool>(),
        fills in prop::collection::vec(fill(), 1..6),
    ) {
        let source = template(choices, count, reversed);
        let template = Template::compile(&source);
        prop_assert!(template.is_ok(), "{source}\n{template:?}");
        let template = template.expect("checked");
        let mut refilled = template.evaluate(BUDGET);
        outcome(&mut refilled);
        for done in 1..=fills.len() {
            let (path, data) = &fills[done - 1];
            refilled.fill_json(path, data);
            let mut whole = template.evaluate(BUDGET);
            for (path, data) in &fills[..done] {
                whole.fill_json(path, data);
            }
            let (after, before) = (outcome(&mut refilled), outcome(&mut whole));
            if is_cut_off(&after) || is_cut_off(&before) {
                // Where a limit cuts off something endless is a matter of what was done before.
                break;
            }
            prop_assert_eq!(after, before, "{}\nafter {:?}", source, &fills[..done]);
        }
    }
}
