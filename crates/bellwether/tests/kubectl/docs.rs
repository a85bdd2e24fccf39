//! Console blocks of the README and of `docs/`: their commands run, and print what is shown.
//!
//! Lines that begin with `$ ` are commands, the lines below them their output; `…` stands for any
//! lines, and at the end of a line for the rest of it. Output is compared without what differs each time: times, ages, and generated names.
//! A block marked `console not-run` is left out.

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::fleet::{self, Fleet};

/// How often a command that only reads is repeated until it prints what is shown.
const MOST_TRIES: usize = 200;
/// Stands for any lines.
const ANYTHING: &str = "…";

/// A command, and what it prints; nothing if that is not shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    command: String,
    output: Vec<String>,
}

/// The steps of all blocks that are run, in order.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```console" | "```console tour") => block = Some(Vec::new()),
            (None, _) => {}
            (Some(lines), "```") => {
                steps.extend(steps_of_block(lines));
                block = None;
            }
            (Some(lines), line) => lines.push(line),
        }
    }
    steps
}

fn steps_of_block(lines: &[&str]) -> Vec<Step> {
    let has_prompts = lines.iter().any(|line| line.starts_with("$ "));
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        let is_open = steps
            .last()
            .is_some_and(|step| is_unfinished(&step.command));
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (None, Some(step)) if is_open => {
                step.command.push('\n');
                step.command.push_str(line);
            }
            (None, Some(step)) if has_prompts => step.output.push((*line).to_owned()),
            (prompted, _) => steps.push(Step {
                command: prompted.unwrap_or(line).to_owned(),
                output: Vec::new(),
            }),
        }
    }
    steps
}

/// True if a shell would ask for the rest.
fn is_unfinished(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

/// True if a command changes nothing, so that it can be repeated.
fn is_read(command: &str) -> bool {
    let reads = [
        "bellwether status",
        "bellwether why",
        "bellwether get",
        "bellwether cluster list",
        "kubectl get",
    ];
    reads.iter().any(|read| command.starts_with(read)) && !command.contains(" -w")
}

/// A line without what differs each time.
fn normalised(line: &str) -> String {
    let replace = |text: String, pattern: &str, by: &str| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace_all(&text, by).into_owned()
    };
    let mut text = line.trim_end().to_owned();
    for (pattern, by) in [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        // Pods of deployments, their replica sets, and works of replica sets.
        (
            r"\b([a-z]+)-[a-z0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
            "$1-POD",
        ),
        (
            r"\b([a-z]+)-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b",
            "$1-HASH",
        ),
        (
            r"work/([a-z]+?)[bcdfghjklmnpqrstvwxz2456789]{5}\b",
            "work/$1",
        ),
        (r"\b(\d+(ms|h|d|m|s))+\b", "AGE"),
        (r"\s+", " "),
    ] {
        text = replace(text, pattern, by);
    }
    text
}

/// True if lines are those that are shown.
fn is_shown(shown: &[String], lines: &[String]) -> bool {
    match shown {
        [] => lines.is_empty(),
        [first, rest @ ..] if first == ANYTHING => {
            (0..=lines.len()).any(|skipped| is_shown(rest, &lines[skipped..]))
        }
        [first, rest @ ..] => lines.split_first().is_some_and(|(line, others)| {
            let is_same = match first.strip_suffix(ANYTHING) {
                Some(start) => line.starts_with(start),
                None => line == first,
            };
            is_same && is_shown(rest, others)
        }),
    }
}

/// A fleet, and a directory with the examples in which commands run.
struct Desk {
    fleet: Fleet,
    directory: tempfile::TempDir,
}

impl Desk {
    fn start(arguments: &[&str]) -> Self {
        let fleet = Fleet::start_with(arguments);
        let directory = tempfile::tempdir().unwrap();
        let examples = fleet::root().canonicalize().unwrap().join("examples");
        std::os::unix::fs::symlink(examples, directory.path().join("examples")).unwrap();
        Self { fleet, directory }
    }

    /// Runs a command: whether it succeeded, and all that it printed.
    fn run(&self, command: &str) -> (bool, String) {
        let binary = Path::new(env!("CARGO_BIN_EXE_bellwether"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = vec![binary.parent().unwrap().to_owned()];
        places.extend(std::env::split_paths(&path));
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(self.directory.path())
            .env("PATH", std::env::join_paths(places).unwrap())
            .env("KUBECONFIG", self.fleet.kubeconfig())
            .env("HOME", self.fleet.directory())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    fn check(&self, place: &str, step: &Step) {
        let command = step.command.replace("cargo run --release --", "bellwether");
        if command.starts_with("export ") {
            return;
        }
        let is_error = |line: &String| line.starts_with("error:");
        let shown: Vec<String> = step.output.iter().map(|line| normalised(line)).collect();
        for tried in 1.. {
            let (succeeded, text) = self.run(&command);
            let lines: Vec<String> = text.lines().map(normalised).collect();
            let is_expected = succeeded != shown.iter().any(is_error);
            if is_expected && (shown.is_empty() || is_shown(&shown, &lines)) {
                return;
            }
            assert!(
                is_read(&command) && tried < MOST_TRIES,
                "{place}: {command}\nprints\n{text}\nnot\n{}",
                step.output.join("\n")
            );
            fleet::pause();
        }
    }
}

#[track_caller]
fn check(name: &str) {
    check_with(name, &[]);
}

/// Checks a page whose commands want a fleet that was started with these arguments.
#[track_caller]
fn check_with(name: &str, arguments: &[&str]) {
    let text = std::fs::read_to_string(fleet::root().join(name)).unwrap();
    let steps = steps(&text);
    assert!(!steps.is_empty(), "{name} has no console blocks to run");
    let desk = Desk::start(arguments);
    for step in &steps {
        desk.check(name, step);
    }
}

#[test]
fn the_tour_of_the_readme_runs_as_written() {
    check("README.md");
}

#[test]
fn commands_are_as_documented() {
    check("docs/commands.md");
}

#[test]
fn placements_are_as_documented() {
    check("docs/placement.md");
}

#[test]
fn policies_are_as_documented() {
    check("docs/policies.md");
}

#[test]
fn rollouts_are_as_documented() {
    check("docs/rollouts.md");
}

#[test]
fn apply_once_is_as_documented() {
    check_with("docs/apply-once.md", &["--apply-once-only=on"]);
}

#[test]
fn works_are_as_documented() {
    check("docs/work.md");
}

#[test]
fn the_simulator_is_as_documented() {
    check("docs/simulator.md");
}

/// Pages whose recipes need other clusters or programs: `access.rs`, `clusters.rs` and `admission.rs` run them.
const TESTED_ELSEWHERE: [&str; 3] = [
    "docs/security.md",
    "docs/operations.md",
    "docs/apiserver.md",
];

#[test]
fn every_page_with_console_blocks_is_tested() {
    let source = include_str!("docs.rs");
    for entry in std::fs::read_dir(fleet::root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let name = format!("docs/{}", path.file_name().unwrap().to_string_lossy());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            steps(&text).is_empty()
                || TESTED_ELSEWHERE.contains(&&*name)
                || source.contains(&format!("check(\"{name}\")"))
                || source.contains(&format!("check_with(\"{name}\",")),
            "{name} has console blocks and no test"
        );
    }
}

#[test]
fn blocks_are_read_as_people_read_them() {
    let text = "```console\n$ one \\\n  more\nshown\n…\n$ echo 'a\nb'\n```\n\
                ```console not-run\n$ never\n```\n```console\nplain\n```\n";
    let step = |command: &str, output: &[&str]| Step {
        command: command.to_owned(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        step("one \\\n  more", &["shown", "…"]),
        step("echo 'a\nb'", &[]),
        step("plain", &[]),
    ];
    assert_eq!(steps(text), expected);
    let lines =
        |lines: &[&str]| -> Vec<String> { lines.iter().map(|it| (*it).to_owned()).collect() };
    assert!(is_shown(
        &lines(&["a", "…", "d"]),
        &lines(&["a", "b", "c", "d"])
    ));
    assert!(!is_shown(&lines(&["a"]), &lines(&["a", "b"])));
    assert!(is_shown(&lines(&["a …"]), &lines(&["a b c"])));
    assert_eq!(
        normalised("pod shop-5d7f6c9b84-x2x9z   since 1m30s at 2026-01-01T00:00:00Z"),
        "pod shop-POD since AGE at TIME"
    );
}
