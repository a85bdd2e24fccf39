//! A fuzzer for everything that answers JSON lines: cases are changed at random, and none may panic, hang or
//! take much memory.
//!
//! Seeds are cases. A change replaces, cuts, doubles or moves parts of the texts in a case, with words and
//! lines of all cases, so that most results still look like the language that they are written in.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A case that takes longer than this hangs, in a release build.
pub const SLOW: Duration = Duration::from_secs(10);
/// More memory than this is too much, for all cases together.
const MUCH_MEMORY: u64 = 3 << 30;
/// How many changed cases are kept to be changed again.
const KEPT: usize = 4_096;
/// Cases are kept small: large ones take the time of many others.
const LARGEST: usize = 64 * 1024;

/// Random numbers that are the same for the same seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, or zero.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// One of several items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

/// What a run of the fuzzer came to.
#[derive(Debug)]
pub struct Found {
    /// How many cases were tried.
    pub tried: u64,
    /// The first case that fails, and how.
    pub failure: Option<(String, &'static str)>,
}

/// Changes and tries cases until the time is over, or one of them fails.
#[derive(Debug)]
pub struct Fuzzer {
    random: Random,
    cases: Vec<Value>,
    /// Lines and words of all seeds.
    words: Vec<String>,
}

impl Fuzzer {
    /// Begins with cases of `.jsonl` files, which may be in directories.
    pub fn new(seed: u64, paths: &[PathBuf]) -> std::io::Result<Self> {
        let mut cases = Vec::new();
        for path in paths {
            read_cases(path, &mut cases)?;
        }
        let mut words = Vec::new();
        for case in &mut cases {
            for text in texts(case) {
                words.extend(text.lines().map(str::to_owned));
                words.extend(text.split_whitespace().map(str::to_owned));
            }
        }
        words.extend(ODDITIES.iter().map(ToString::to_string));
        Ok(Self {
            random: Random::new(seed),
            cases,
            words,
        })
    }

    /// Tries all seeds, and then changed ones for so long.
    ///
    /// A case that takes longer than `slow` hangs. Times are those of the processor, so that a busy machine finds what an
    /// idle one does.
    pub fn run(mut self, time: Duration, slow: Duration, answer: fn(&str) -> String) -> Found {
        let start = Stopwatch::start();
        let mut tried = 0;
        let mut seeds = self.cases.clone().into_iter();
        let kept = self.cases.len() + KEPT;
        loop {
            let seed = seeds.next();
            if seed.is_none() && start.elapsed() >= time {
                return Found {
                    tried,
                    failure: None,
                };
            }
            let is_seed = seed.is_some();
            let Some(case) = seed.or_else(|| self.changed()) else {
                continue;
            };
            let line = case.to_string();
            tried += 1;
            if let Some(problem) = problem(&line, slow, answer) {
                return Found {
                    tried,
                    failure: Some((line, problem)),
                };
            }
            if !is_seed && line.len() < LARGEST {
                if self.cases.len() >= kept {
                    let at = self.random.below(KEPT);
                    self.cases.swap_remove(kept - KEPT + at);
                }
                self.cases.push(case);
            }
        }
    }

    /// A case with some changes.
    fn changed(&mut self) -> Option<Value> {
        let mut case = self.random.pick(&self.cases)?.clone();
        for _ in 0..=self.random.below(4) {
            let mut texts = texts(&mut case);
            let at = self.random.below(texts.len());
            let text = texts.get_mut(at)?;
            **text = change(&mut self.random, &self.words, text);
        }
        Some(case)
    }
}

/// What readers stumble over.
const ODDITIES: &[&str] = &[
    "null",
    "~",
    "[]",
    "{}",
    "\"\"",
    "-1",
    "9223372036854775808",
    "1e309",
    ".nan",
    "0x",
    "0o8",
    "*a",
    "&a",
    "<<: *a",
    "&a [*a, *a]",
    "? a",
    "!!binary x",
    "---",
    "...",
    "|2-",
    ">+",
    "%YAML 1.1",
    "\t",
    "\u{0}",
    "\u{feff}",
    "é\u{301}",
    "$(a)",
    "../",
    "./..",
    "/",
    "\\",
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{ . }}",
    "{{ $ }}",
    "{{ end }}",
    "{{ else }}",
    "{{ range . }}",
    "{{ tpl . . }}",
    "{{ include \"a\" . }}",
    "{{ template \"a\" . }}",
    "{{ define \"a\" }}",
    "{{ repeat 1000000 \"x\" }}",
    "{{ printf \"%99999999d\" 1 }}",
    "{{ until 100000000 }}",
    "{{ regexMatch \"(a*)*b\" . }}",
    "{{ toYaml . }}",
    "{{ fromYaml . }}",
    "(((((",
    "[[[[[",
    "[*]",
    ".*",
    "**",
];

/// All texts of a case, but not its keys.
fn texts(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter_mut().flat_map(texts).collect(),
        Value::Object(fields) => {
            let fields = fields.iter_mut().filter(|(name, _)| name.as_str() != "id");
            fields.flat_map(|(_, value)| texts(value)).collect()
        }
        _ => Vec::new(),
    }
}

/// A text with one part changed; the part is a line, a word, or anything.
fn change(random: &mut Random, words: &[String], text: &str) -> String {
    let parts: Vec<&str> = match random.below(3) {
        0 => text.split_inclusive('\n').collect(),
        1 => text
            .split_inclusive([' ', '\n', '.', ':', '|', '(', ')'])
            .collect(),
        _ => text.split_inclusive(|_| true).collect(),
    };
    let from = random.below(parts.len() + 1);
    let to = (from + random.below(4)).min(parts.len());
    let (head, part, tail) = (&parts[..from], &parts[from..to], &parts[to..]);
    let middle = match random.below(5) {
        0 => String::new(),
        1 => part.concat().repeat(2),
        2 => {
            let end = part.last().is_some_and(|part| part.ends_with('\n'));
            let new = random.pick(words).cloned().unwrap_or_default();
            if end { new + "\n" } else { new }
        }
        3 => {
            let new = random.pick(words).cloned().unwrap_or_default();
            part.concat() + &new
        }
        _ => {
            let at = random.below(parts.len());
            parts.get(at).copied().unwrap_or_default().to_owned() + &part.concat()
        }
    };
    head.concat() + &middle + &tail.concat()
}

/// How a case fails, if it does.
fn problem(line: &str, slow: Duration, answer: fn(&str) -> String) -> Option<&'static str> {
    let start = Stopwatch::start();
    let ran = std::panic::catch_unwind(|| answer(line));
    if ran.is_err() {
        return Some("panics");
    }
    if start.elapsed() > slow {
        return Some("hangs");
    }
    (peak_memory() > MUCH_MEMORY).then_some("takes too much memory")
}

/// The most memory that this process has had, in bytes, where Linux counts it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

fn read_cases(path: &Path, cases: &mut Vec<Value>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            read_cases(&entry?.path(), cases)?;
        }
    } else if path.extension().is_some_and(|it| it == "jsonl") {
        let text = std::fs::read_to_string(path)?;
        cases.extend(
            text.lines()
                .filter_map(|line| serde_json::from_str(line).ok()),
        );
    }
    Ok(())
}

/// Measures what this thread takes of the processor, where Linux counts it; time otherwise.
struct Stopwatch {
    wall: Instant,
    processor: Option<Duration>,
}

impl Stopwatch {
    fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a fuzzer runs for a time, and looks for what hangs"
        )]
        let wall = Instant::now();
        Self {
            wall,
            processor: processor_time(),
        }
    }

    fn elapsed(&self) -> Duration {
        match (self.processor, processor_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.wall.elapsed(),
        }
    }
}

/// What this thread has taken of the processor.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fuzz(answer: fn(&str) -> String) -> Found {
        let directory = tempfile::tempdir().unwrap();
        let seeds = "{\"id\": 1, \"files\": {\"a\": \"x: 1\\ny: 2\\n\"}}\n";
        std::fs::write(directory.path().join("seeds.jsonl"), seeds).unwrap();
        let fuzzer = Fuzzer::new(7, &[directory.path().to_owned()]).unwrap();
        fuzzer.run(Duration::from_millis(200), SLOW, answer)
    }

    #[test]
    fn a_case_that_panics_is_found() {
        let found = fuzz(|line| {
            assert!(!line.contains("1e309"), "too much");
            String::new()
        });
        let (line, problem) = found.failure.unwrap();
        assert!(line.contains("1e309") && problem == "panics", "{line}");
        assert!(serde_json::from_str::<Value>(&line).is_ok_and(|case| case["id"] == 1));
    }

    #[test]
    fn cases_that_are_answered_are_fine() {
        let found = fuzz(str::to_owned);
        assert!(found.failure.is_none() && found.tried > 1, "{found:?}");
    }
}
