//! Inputs that are nearly right: specs and seeds, cut up and put together differently.

/// The sources kept with the crate: the examples of the specs, and what once was a problem.
pub(crate) fn seeds() -> Vec<String> {
    const SPECS: &[&str] = &[
        include_str!("../../testdata/builtins.md"),
        include_str!("../../testdata/closedness.md"),
        include_str!("../../testdata/cycles.md"),
        include_str!("../../testdata/disjunctions.md"),
        include_str!("../../testdata/errors.md"),
        include_str!("../../testdata/existence.md"),
        include_str!("../../testdata/extensions.md"),
        include_str!("../../testdata/lexing.md"),
        include_str!("../../testdata/operators.md"),
        include_str!("../../testdata/order.md"),
        include_str!("../../testdata/references.md"),
        include_str!("../../testdata/strings.md"),
        include_str!("../../testdata/structs.md"),
        include_str!("../../testdata/unification.md"),
    ];
    const KEPT: &str = include_str!("../../tests/data/fuzz/seeds.txt");
    let mut sources: Vec<String> = KEPT.split("\n----\n").map(str::to_owned).collect();
    for spec in SPECS {
        let mut rest = *spec;
        while let Some((_, after)) = rest.split_once("```cue\n") {
            let (source, after) = after.split_once("```").unwrap_or((after, ""));
            sources.push(source.to_owned());
            rest = after;
        }
    }
    sources
}

/// Words that decide what a program means.
const WORDS: &[&str] = &[
    "_|_",
    "_",
    "...",
    "&",
    "|",
    "*",
    "!=",
    "==",
    "=~",
    "!~",
    "<",
    ">=",
    "+",
    "-",
    "/",
    "?:",
    "!:",
    ":",
    ",",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "if ",
    "for x in ",
    "for k, v in ",
    "let X = ",
    "in ",
    "#D",
    "_h",
    "a",
    "b",
    "X",
    "v",
    "0",
    "1",
    "-1",
    "1.5",
    "1e400",
    "0x1f",
    "1Ki",
    "9223372036854775808",
    "\"s\"",
    "\"\\(a)\"",
    "'b'",
    "null",
    "true",
    "int",
    "string",
    "number",
    "uint8",
    "len(",
    "close(",
    "and(",
    "or(",
    "matchN(1, ",
    "matchIf(",
    "error(\"e\")",
    "div(",
    "[...]",
    "[string]: ",
    "[X=string]: ",
    "(a): ",
    "\"\\(k)\": ",
    "a.b",
    "a[0]",
    "a[\"b\"]",
    "a[0:1]",
    "@if(x)",
    "// +patchKey=name\n",
    "import \"list\"\n",
    "list.Sort(",
    "list.Repeat(",
    "strings.Repeat(\"ab\", ",
    "list.Range(0, 1000000, 1)",
    "a: a\n",
    "a: {b: a}\n",
    "\"\"\"\n",
    "#\"",
    "*1 | int",
    "{a: 1} | {b: 2}",
    "[for x in a {x}]",
    "if a != _|_ {",
    "\u{e9}",
    "\0",
];

/// A source of inputs; the same number gives the same inputs.
pub(crate) struct Mutator {
    state: u64,
    pool: Vec<String>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, pool: Vec<String>) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            pool,
        }
    }

    /// A number below `limit`, or zero.
    fn below(&mut self, limit: usize) -> usize {
        // Marsaglia's xorshift: good enough to choose with, and needs no dependency.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap_or(0) % limit.max(1)
    }

    /// The next input.
    pub(crate) fn next_input(&mut self) -> String {
        let chosen = self.below(self.pool.len());
        let mut words = split(&self.pool[chosen]);
        for _ in 0..=self.below(8) {
            self.mutate(&mut words);
        }
        let mut text = words.concat();
        if text.len() > 20_000 {
            let mut end = 20_000;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        text
    }

    fn mutate(&mut self, words: &mut Vec<String>) {
        let at = self.below(words.len() + 1).min(words.len());
        let length = (1 + self.below(12)).min(words.len() - at);
        match self.below(9) {
            0 => drop(words.drain(at..at + length)),
            1 => {
                let copy = words[at..at + length].to_vec();
                let to = self.below(words.len() + 1).min(words.len());
                words.splice(to..to, copy);
            }
            2 | 3 => {
                let word = WORDS[self.below(WORDS.len())];
                words.insert(at, word.to_owned());
            }
            4 => {
                if let Some(word) = words.get_mut(at) {
                    WORDS[self.below(WORDS.len())].clone_into(word);
                }
            }
            5 => {
                let other = self.below(self.pool.len());
                let other = split(&self.pool[other]);
                let from = self.below(other.len());
                let until = (from + 1 + self.below(40)).min(other.len());
                words.splice(at..at, other[from..until].iter().cloned());
            }
            6 => {
                let other = self.below(words.len());
                if at < words.len() {
                    words.swap(at, other);
                }
            }
            7 => {
                let times = 2 + self.below(12);
                let copy = words[at..at + length].concat();
                words.insert(at, copy.repeat(times));
            }
            _ => {
                if let Some(word) = words.get_mut(at) {
                    let mut characters: Vec<char> = word.chars().collect();
                    let place = self.below(characters.len() + 1).min(characters.len());
                    let code = u32::try_from(self.below(0x250)).unwrap_or(0);
                    characters.insert(place, char::from_u32(code).unwrap_or(' '));
                    *word = characters.into_iter().collect();
                }
            }
        }
    }
}

/// Cuts a text into words, numbers, blanks and single characters.
fn split(text: &str) -> Vec<String> {
    let class = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '#' | '$' => 1,
        ' ' | '\t' => 2,
        _ => 0,
    };
    let mut words: Vec<String> = Vec::new();
    let mut previous = 0;
    for character in text.chars() {
        let kind = class(character);
        match words.last_mut() {
            Some(word) if kind != 0 && kind == previous => word.push(character),
            _ => words.push(character.to_string()),
        }
        previous = kind;
    }
    words
}
