//! Dry runs of ConfigurationPolicies, in four parts: result, messages, objects, differences.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{Probe, build_probe};
use crate::run::say;

/// The parts, and how many per cent of the first two tiers have to be right.
const PARTS: [(&str, f64); 4] = [
    ("exit and compliance", 99.0),
    ("messages", 98.0),
    ("objects and details", 97.0),
    ("differences", 95.0),
];

/// The last tier that counts.
const LAST_TIER: u64 = 2;

/// Scores the cases of a file; fails if a gate is missed.
pub(crate) fn run(path: &Path, failures: bool) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    build_probe("bellwether-policy", "policy-probe")?;
    let mut probe = Probe::start("policy-probe")?;
    let mut right = [0_usize; PARTS.len()];
    let mut all = 0_usize;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut case: Value = serde_json::from_str(line)?;
        // Where a real server decides otherwise, a dry run is not judged.
        let counts = case["tier"].as_u64().is_some_and(|tier| tier <= LAST_TIER)
            && case["serverDependent"] != json!(true);
        let expected = case["expect"].take();
        let answer = if let Some(answer) = probe.ask(&case.to_string()) {
            serde_json::from_str(&answer).unwrap_or_default()
        } else {
            probe = Probe::start("policy-probe")?;
            Value::Null
        };
        let verdicts = judge(&expected, &answer);
        if failures && verdicts.contains(&false) {
            say(&format!(
                "wrong: {}: got {answer}\nwant {expected}",
                case["id"]
            ));
        }
        if counts {
            all += 1;
            for (right, verdict) in right.iter_mut().zip(verdicts) {
                *right += usize::from(verdict);
            }
        }
    }
    let mut missed = 0;
    for ((part, gate), right) in PARTS.iter().zip(right) {
        say(&format!("policy {part}: {right} of {all}"));
        #[expect(clippy::cast_precision_loss, reason = "counts of cases are small")]
        let reached = right as f64 * 100.0 / all as f64;
        missed += usize::from(reached < *gate);
    }
    anyhow::ensure!(missed == 0, "{missed} gates missed");
    Ok(())
}

/// Whether each part is right. Where the evaluation failed, what an agent reports counts as well.
fn judge(expected: &Value, answer: &Value) -> [bool; PARTS.len()] {
    let is_same = |field: &str| expected[field] == answer[field];
    let error = |value: &Value| value["error"].as_str().map(compared).map(str::to_owned);
    let (want, got) = (&expected["controller"], &answer["controller"]);
    let is_reported = |field: &str| want.is_null() || want[field] == got[field];
    let objects = |value: &Value| without_diffs(&value["relatedObjects"]);
    [
        is_same("exit") && is_same("compliance") && error(expected) == error(answer),
        is_same("messages") && is_reported("messages"),
        objects(expected) == objects(answer)
            && is_same("details")
            && is_reported("details")
            && (want.is_null() || objects(want) == objects(got)),
        is_same("diffs") && is_same("before"),
    ]
}

/// The part of an error that has to be equal: that of a reader of YAML or JSON may be another.
fn compared(error: &str) -> &str {
    let marks = ["yaml: line", "json: ", "error converting YAML to JSON"];
    let end = marks.iter().filter_map(|mark| error.find(mark)).min();
    &error[..end.unwrap_or(error.len())]
}

/// Related objects without what the last part is about.
fn without_diffs(objects: &Value) -> Value {
    let mut objects = objects.clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        let Some(fields) = object.as_object_mut() else {
            continue;
        };
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.remove("diff");
            properties.remove("uid");
        }
    }
    objects
}
