//! Corpora of JSON lines: each case goes to a probe, and a judge compares its answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::{Probe, build_probe};
use crate::run::say;

/// One kind of corpus.
pub(crate) struct Corpus {
    /// The package whose example answers.
    pub(crate) package: &'static str,
    /// The example.
    pub(crate) probe: &'static str,
    /// Says what is wrong with an answer.
    pub(crate) judge: fn(case: &Value, answer: &Value) -> Result<(), String>,
    /// How many per cent of a tier have to be right.
    pub(crate) gates: &'static [(u64, f64)],
}

/// Scores the cases of a file; fails if a gate is missed.
pub(crate) fn run(path: &Path, failures: bool, corpus: &Corpus) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    build_probe(corpus.package, corpus.probe)?;
    let mut probe = Probe::start(corpus.probe)?;
    let mut tiers: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let case: Value = serde_json::from_str(line)?;
        let verdict = if let Some(answer) = probe.ask(&question(&case)) {
            let answer = serde_json::from_str(&answer).unwrap_or_default();
            (corpus.judge)(&case, &answer)
        } else {
            probe = Probe::start(corpus.probe)?;
            Err("crash or hang".to_owned())
        };
        let tier = tiers.entry(case["tier"].as_u64().unwrap_or(0)).or_default();
        tier.1 += 1;
        match verdict {
            Ok(()) => tier.0 += 1,
            Err(reason) if failures => say(&format!("wrong: {}: {reason}", case["id"])),
            Err(_) => {}
        }
    }
    let mut missed = 0;
    for (tier, (right, all)) in &tiers {
        say(&format!("{} tier {tier}: {right} of {all}", corpus.probe));
        let gate = corpus.gates.iter().find(|(gated, _)| gated == tier);
        #[expect(clippy::cast_precision_loss, reason = "counts of cases are small")]
        let reached = *right as f64 * 100.0 / *all as f64;
        missed += usize::from(gate.is_some_and(|(_, required)| reached < *required));
    }
    anyhow::ensure!(missed == 0, "{missed} gates missed");
    Ok(())
}

/// A case without what is expected of the answer.
fn question(case: &Value) -> String {
    let mut case = case.clone();
    if let Value::Object(fields) = &mut case {
        fields.retain(|key, _| !key.starts_with("expect"));
    }
    case.to_string()
}

/// The text in a field of the answer, if one is expected; an expected error needs an error.
pub(crate) fn answered<'a>(
    case: &'a Value,
    answer: &'a Value,
    field: &str,
) -> Result<Option<(&'a str, &'a str)>, String> {
    let expected = &case["expect"];
    match (expected[field].as_str(), answer[field].as_str()) {
        (None, None) => Ok(None),
        (Some(expected), Some(text)) => Ok(Some((expected, text))),
        (Some(_), None) => Err(format!("unexpected error: {}", answer["error"])),
        (None, Some(_)) => Err(format!("no error: {}", expected["error"])),
    }
}
