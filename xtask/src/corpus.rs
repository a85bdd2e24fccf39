//! `cargo xtask corpus`: scores an engine against a file of cases.
//!
//! Each case goes to a child process, one line in and one line out, so that a crash or a hang is a
//! wrong answer and not the end. What was right the last time and is not any more is a regression.

mod app;
mod chart;
mod gotemplate;
mod kustomize;
mod lines;
mod policy;
mod template;
mod workflow;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Context as _;
use bellwether_cue::score::{Report, score};

use crate::run::{cargo, root, say};

/// A case that takes longer counts as a hang.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Scores the cases in `path` with the engine that its name says; without one, with that of CUE.
pub(crate) fn corpus(path: &Path, failures: bool) -> anyhow::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name.and_then(|name| name.split('.').next()) {
        Some("app") => lines::run(path, failures, &app::APPLICATIONS),
        Some("health") => lines::run(path, failures, &app::HEALTH),
        Some("chart") => lines::run(path, failures, &chart::CORPUS),
        Some("gotemplate") => lines::run(path, failures, &gotemplate::CORPUS),
        Some("kustomize") => lines::run(path, failures, &kustomize::CORPUS),
        Some("policy") => policy::run(path, failures),
        Some("template") => lines::run(path, failures, &template::CORPUS),
        Some("workflow" | "appflow") => workflow::run(path, failures),
        _ => cue(path, failures),
    }
}

/// Scores cases of CUE; fails if a gate is missed or something has got worse.
fn cue(path: &Path, failures: bool) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    build_probe("bellwether-cue", "probe")?;
    let mut probe = Probe::start("probe")?;
    let mut crashes = Vec::new();
    let records = text.lines().filter(|line| !line.is_empty());
    let report = score(records, |record| {
        let answer = probe.ask(record);
        if answer.is_none() {
            crashes.push(record.chars().take(60).collect::<String>());
            if let Ok(fresh) = Probe::start("probe") {
                probe = fresh;
            }
        }
        answer
    });
    say(&report.to_string());
    for crash in &crashes {
        say(&format!("crash or hang: {crash}"));
    }
    if failures {
        for outcome in report.outcomes.iter().filter(|outcome| !outcome.right) {
            say(&format!(
                "wrong: {} ({} tier {}): {}",
                outcome.id, outcome.kind, outcome.tier, outcome.reason
            ));
        }
    }
    let regressions = remember(&report)?;
    for id in &regressions {
        say(&format!("regression: {id}"));
    }
    let missed = report
        .gates()
        .iter()
        .filter(|(_, reached, required)| reached < required)
        .count();
    anyhow::ensure!(
        missed == 0 && crashes.is_empty(),
        "{missed} gates missed, {} crashes or hangs",
        crashes.len()
    );
    Ok(())
}

/// Builds the example of a package that answers.
fn build_probe(package: &str, example: &str) -> anyhow::Result<()> {
    let built = cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        package,
        "--example",
        example,
    ])
    .status()?
    .success();
    anyhow::ensure!(built, "the probe does not build");
    Ok(())
}

/// Compares with what was right the last time, and notes what is right now.
fn remember(report: &Report) -> anyhow::Result<Vec<String>> {
    let file = root().join("target/corpus-right.txt");
    let earlier: Vec<String> = fs::read_to_string(&file)
        .map(|text| text.lines().map(str::to_owned).collect())
        .unwrap_or_default();
    let regressions = report.regressions(&earlier).map(str::to_owned).collect();
    let right: Vec<&str> = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.right)
        .map(|outcome| outcome.id.as_str())
        .collect();
    fs::create_dir_all(root().join("target"))?;
    fs::write(&file, right.join("\n"))?;
    Ok(regressions)
}

/// The process that answers.
struct Probe {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Probe {
    fn start(example: &str) -> anyhow::Result<Self> {
        let target = target_directory()?;
        let program = Path::new(&target).join("release/examples").join(example);
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the probe")?;
        let input = child.stdin.take().context("no input")?;
        let output = child.stdout.take().context("no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            input,
            answers,
        })
    }

    /// The answer to a record; `None` if the process died or took too long.
    fn ask(&mut self, record: &str) -> Option<String> {
        writeln!(self.input, "{record}").ok()?;
        self.input.flush().ok()?;
        self.answers.recv_timeout(ANSWER_TIMEOUT).ok()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn target_directory() -> anyhow::Result<String> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(metadata["target_directory"]
        .as_str()
        .context("no target directory")?
        .to_owned())
}
