//! `cargo xtask test`: every check that a change has to pass.

use std::path::PathBuf;

use crate::run::{cargo, is_installed, root, say, watch};
use crate::{corpus, invariants, layers};

/// Cases of engines, if they lie beside the repository.
const CORPORA: [(&str, &str); 3] = [
    ("CUE", "cue.jsonl"),
    ("chart", "helm/chart.given.jsonl"),
    ("kustomize", "helm/kustomize.given.jsonl"),
];

/// Names the file to which tests that skip themselves add a line; `bellwether_testkit::skip` writes it.
const SKIPPED_FILE: &str = "BELLWETHER_SKIPPED_FILE";

/// The file of skipped tests. It is removed when this is dropped.
struct SkippedTests(PathBuf);

impl SkippedTests {
    fn new(suite: &str) -> Self {
        let name = suite.replace(' ', "-");
        let file = format!("bellwether-skipped-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn read(&self) -> String {
        // No test skipped itself if there is no file.
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for SkippedTests {
    fn drop(&mut self) {
        // It may not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What came of the checks so far.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Runs everything, also after a failure, and ends with the counts.
pub(crate) fn test() -> anyhow::Result<()> {
    let mut tally = Tally::default();
    tally.check("format", &["fmt", "--all", "--check"])?;
    tally.check(
        "lint",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    tally.problems("layers", &layers::check()?);
    tally.problems("invariants", &invariants::check()?);
    tally.documentation()?;
    tally.deny()?;
    tally.suite("unit and integration", &["test", "--workspace"])?;
    tally.kubectl()?;
    for (name, file) in CORPORA {
        tally.corpus(name, file);
    }
    say(&format!(
        "\n{} passed, {} failed, {} skipped",
        tally.passed, tally.failed, tally.skipped
    ));
    anyhow::ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}

impl Tally {
    /// A command that passes or fails as a whole.
    fn check(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
        say(&format!("== {name}"));
        let succeeded = watch(&mut cargo(arguments), |_| {})?;
        self.count(succeeded);
        Ok(())
    }

    fn count(&mut self, succeeded: bool) {
        if succeeded {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        say(&format!("== {name}: skipped, {why}"));
    }

    /// Test binaries, counted test by test.
    fn suite(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
        say(&format!("== {name}"));
        let mut command = cargo(arguments);
        let skipped = SkippedTests::new(name);
        command.arg("--no-fail-fast").env(SKIPPED_FILE, &skipped.0);
        let before = self.failed;
        let succeeded = watch(&mut command, |line| self.read_result(line))?;
        self.read_skipped(&skipped.read());
        if !succeeded && self.failed == before {
            // It did not come as far as to count.
            self.failed += 1;
        }
        Ok(())
    }

    /// Tests that found something missing returned early, and were counted as passed.
    fn read_skipped(&mut self, skipped: &str) {
        for line in skipped.lines() {
            say(&format!("skipped: {line}"));
            self.passed = self.passed.saturating_sub(1);
            self.skipped += 1;
        }
    }

    fn read_result(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result: ") else {
            return;
        };
        let number = |word: &str| -> u64 {
            let before = result.split(word).next().unwrap_or_default();
            before
                .trim_end()
                .rsplit([' ', ';'])
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0)
        };
        self.passed += number(" passed");
        self.failed += number(" failed");
        self.skipped += number(" ignored");
    }

    /// A check that lists what it finds.
    fn problems(&mut self, name: &str, problems: &[String]) {
        say(&format!("== {name}"));
        for problem in problems {
            say(problem);
        }
        self.count(problems.is_empty());
    }

    /// Pages of all crates, without warnings.
    fn documentation(&mut self) -> anyhow::Result<()> {
        say("== documentation");
        let mut command = cargo(&["doc", "--quiet", "--workspace", "--no-deps"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        let succeeded = watch(&mut command, |_| {})?;
        self.count(succeeded);
        Ok(())
    }

    fn deny(&mut self) -> anyhow::Result<()> {
        if !is_installed("cargo", &["deny", "--version"]) {
            self.skip(
                "licences and sources",
                "cargo-deny is not installed (cargo install cargo-deny)",
            );
            return Ok(());
        }
        self.check(
            "licences and sources",
            &["deny", "--offline", "check", "bans", "licenses", "sources"],
        )
    }

    /// End-to-end tests that need a real kubectl.
    fn kubectl(&mut self) -> anyhow::Result<()> {
        if !is_installed("kubectl", &["version", "--client"]) {
            self.skip("end to end with kubectl", "kubectl is not on the PATH");
            return Ok(());
        }
        self.suite(
            "end to end with kubectl",
            &["test", "--package", "bellwether", "--test", "kubectl"],
        )
    }

    /// Cases of an engine that are kept outside of the repository.
    fn corpus(&mut self, name: &str, file: &str) {
        let path = root().join("../shared/corpus").join(file);
        let name = format!("{name} corpus");
        if !path.exists() {
            self.skip(&name, "no corpus beside the repository");
            return;
        }
        say(&format!("== {name}"));
        let succeeded = corpus::corpus(&path, false);
        if let Err(error) = &succeeded {
            say(&format!("{error:#}"));
        }
        self.count(succeeded.is_ok());
    }
}
