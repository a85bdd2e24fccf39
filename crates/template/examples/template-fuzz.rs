//! Looks for templates that panic, hang or use more memory than their budget allows.
//!
//! Usage: `template-fuzz SECONDS SEED [DIRECTORY…]`. Templates are put together from pieces of the language,
//! from calls of every function with arguments of every type, and from files of the directories.
//! The first finding is written to `fuzz-failure.tmpl` and ends the run with an error.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people, which runs for a time"
)]

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bellwether_template::{Budget, Functions, NoFacts, Options, Set, Value, World};
use serde_json::json;

/// A template that takes longer under the small budget hangs.
const SLOW: Duration = Duration::from_secs(5);

/// How many templates that parsed are kept to be changed.
const KEPT: usize = 512;

const BUDGET: Budget = Budget {
    steps: 300_000,
    bytes: 4_000_000,
    depth: 50,
};

/// Pieces of actions, and of what stands around them.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{- ",
    " -}}",
    " ",
    "\n",
    "text",
    ".",
    "$",
    "$x",
    "$y",
    ":=",
    "=",
    "|",
    "(",
    ")",
    ",",
    "if ",
    "else ",
    "else if ",
    "end",
    "range ",
    "with ",
    "define \"a\"",
    "template \"a\" ",
    "block \"b\" .",
    "break",
    "continue",
    "nil",
    "true",
    ".s",
    ".n",
    ".list",
    ".map",
    ".nul",
    ".map.c.d",
    "$.list",
    "{{ end }}",
    "{{ if .yes }}",
    "{{ range .list }}",
    "{{ range $k, $v := .map }}",
    "{{ with .map }}",
    "{{ define \"a\" }}",
    "{{ template \"a\" . }}",
    "{{ range 3 }}",
    "{{ else }}",
    "/* c */",
    "{{/* c */}}",
];

/// Arguments of calls.
const ARGUMENTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100000",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "1e300",
    "0x1p-2",
    "'a'",
    "1i",
    "\"\"",
    "\"a\"",
    "\"a,b\"",
    "\"%d %s %v %q %x %5.2f %[1]*d\"",
    "\"(a|b)*c{2,5}\"",
    "\"\\xff\\xfe\"",
    "\"é€😀\"",
    "`{{ . }}`",
    "\"2006-01-02\"",
    "\"1h5m\"",
    "\"1.2.3-rc.1\"",
    "\">=1.2 <2 || ~3\"",
    "\"http://u:p@h:1/p?q#f\"",
    "\"{\\\"a\\\":[1]}\"",
    "\"aGk=\"",
    "nil",
    "true",
    "false",
    ".",
    ".s",
    ".n",
    ".list",
    ".map",
    ".nul",
    ".deep",
    "(list)",
    "(dict)",
    "(list 1 \"a\" nil)",
    "(dict \"a\" 1)",
    "$",
    "(now)",
    "(semver \"1.2.3\")",
    "(until 5)",
    "(splitList \",\" \"a,b\")",
    "\"%99999999d\"",
    "\"%-0+# x\"",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// Functions that take long by design: they would leave no time for others.
const SLOW_FUNCTIONS: &[&str] = &[
    "bcrypt",
    "htpasswd",
    "derivePassword",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
    "genSignedCert",
];

fn call(random: &mut Random, names: &[&str], depth: usize) -> String {
    let mut text = random.pick(names).to_owned();
    for _ in 0..random.below(5) {
        text.push(' ');
        if depth > 0 && random.below(4) == 0 {
            text = format!("{text}({})", call(random, names, depth - 1));
        } else {
            text.push_str(random.pick(ARGUMENTS));
        }
    }
    if random.below(3) == 0 {
        text = format!("{} | {text}", random.pick(ARGUMENTS));
    }
    text
}

fn template(random: &mut Random, names: &[&str], kept: &VecDeque<String>) -> String {
    match random.below(4) {
        0 => (0..random.below(20)).map(|_| random.pick(PIECES)).collect(),
        1 => format!("{{{{ {} }}}}", call(random, names, 2)),
        2 if !kept.is_empty() => {
            let chosen = random.below(kept.len());
            mutated(random, names, &kept[chosen])
        }
        _ => {
            let mut text = String::from("{{ $x := 1 }}{{ $y := .list }}");
            for _ in 0..random.below(6) {
                let inner = call(random, names, 1);
                let piece = match random.below(5) {
                    0 => format!("{{{{ range {inner} }}}}{{{{ . }}}}{{{{ end }}}}"),
                    1 => format!("{{{{ with {inner} }}}}{{{{ . }}}}{{{{ else }}}}e{{{{ end }}}}"),
                    2 => format!("{{{{ $x = {inner} }}}}{{{{ $x }}}}"),
                    3 => format!(
                        "{{{{ range 40 }}}}{{{{ $y = {inner} }}}}{{{{ $y = list $y $y $x }}}}{{{{ end }}}}"
                    ),
                    _ => format!("{{{{ {inner} }}}}"),
                };
                text.push_str(&piece);
            }
            text
        }
    }
}

/// Cuts, doubles or replaces a part.
fn mutated(random: &mut Random, names: &[&str], text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let from = random.below(characters.len() + 1);
    let to = from + random.below(characters.len() + 1 - from);
    let (head, part, tail) = (
        &characters[..from],
        &characters[from..to],
        &characters[to..],
    );
    let middle: String = match random.below(4) {
        0 => String::new(),
        1 => part.iter().chain(part).collect(),
        2 => random.pick(PIECES).to_owned(),
        _ => call(random, names, 1),
    };
    head.iter().collect::<String>() + &middle + &tail.iter().collect::<String>()
}

fn data() -> Value {
    Value::from_json(&json!({
        "s": "hello", "n": 3, "f": 1.5, "yes": true, "nul": null, "list": ["a", "b", "c"],
        "map": {"b": 2, "a": 1, "c": {"d": "deep"}}, "deep": [[[[[1, {"a": [null]}]]]]],
    }))
}

/// Runs a template; whether it parsed.
fn run(text: &str, functions: &Functions) -> bool {
    let mut set = Set::new(Options::new(functions.clone()));
    if set.add("t", text).is_err() {
        return false;
    }
    let world = World {
        facts: &NoFacts,
        now: jiff::Timestamp::UNIX_EPOCH,
        random: &|bytes| bytes.fill(7),
    };
    let mut budget = BUDGET;
    // Errors are fine.
    let _ = set.render("t", &data(), &world, &mut budget);
    true
}

fn seeds(directories: &[String]) -> VecDeque<String> {
    let mut found = VecDeque::new();
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(Path::new(directory)) else {
            continue;
        };
        for entry in entries.flatten() {
            found.extend(std::fs::read_to_string(entry.path()));
        }
    }
    found
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        arguments
            .next()
            .and_then(|a| a.parse().ok())
            .unwrap_or(default)
    };
    let (seconds, seed) = (number(60), number(1));
    let directories: Vec<String> = arguments.collect();
    let functions = Functions::sprig();
    let names: Vec<&str> = functions
        .names()
        .filter(|name| !SLOW_FUNCTIONS.contains(name))
        .collect();
    let mut random = Random(seed);
    let mut kept = seeds(&directories);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0_u64;
    while Instant::now() < end {
        let text = template(&mut random, &names, &kept);
        let start = Instant::now();
        let ran = std::panic::catch_unwind(|| run(&text, &functions));
        let problem = match ran {
            Err(_) => Some("panics"),
            Ok(_) if start.elapsed() > SLOW => Some("hangs"),
            Ok(parsed) => {
                if parsed && text.len() < 4096 {
                    kept.push_back(text.clone());
                    if kept.len() > KEPT {
                        kept.pop_front();
                    }
                }
                None
            }
        };
        if let Some(problem) = problem {
            eprintln!("a template {problem} ({:?}):\n{text}", start.elapsed());
            let _ = std::fs::write("fuzz-failure.tmpl", &text);
            return ExitCode::FAILURE;
        }
        count += 1;
    }
    println!("{count} templates in {seconds} s, seed {seed}: none panics or hangs");
    ExitCode::SUCCESS
}
