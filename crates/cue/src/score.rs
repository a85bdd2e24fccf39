//! Scores answers against expectations: by kind and tier, in points, with what regressed.
//!
//! [`score`] takes records as lines of JSON with their expectations, lets a function answer each, and
//! compares. Reading files, running in parallel and enforcing time limits is the caller's business.

mod compare;

use std::collections::BTreeMap;
use std::fmt;

use crate::builtins::parse_json;
use crate::value::Value;

/// The result of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The record's identifier.
    pub id: String,
    /// The record's kind.
    pub kind: String,
    /// The record's tier.
    pub tier: i64,
    /// Whether all versions of the reference agree on the expectation.
    pub stable: bool,
    /// Whether the answer is right: status and value.
    pub right: bool,
    /// Points from 0 to 1: half for the class of error, the rest for fields.
    pub points: f64,
    /// Matching and expected field verdicts.
    pub fields: (usize, usize),
    /// Why it is not right, in a few words.
    pub reason: String,
    /// Soft metrics that do not count.
    pub soft: Soft,
}

/// Agreement that is reported but does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Soft {
    /// Whether fields come in the same order; `None` when there is no value to compare.
    pub order: Option<bool>,
    /// Whether the first error has the same path.
    pub path: Option<bool>,
    /// Whether the first error has the same text.
    pub message: Option<bool>,
    /// Whether the first error is on the same line.
    pub line: Option<bool>,
}

/// All outcomes with their sums.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// One outcome per record, in the order given.
    pub outcomes: Vec<Outcome>,
}

/// Sums of a group of records.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    /// Records.
    pub total: usize,
    /// Right answers.
    pub right: usize,
    /// Points.
    pub points: f64,
    /// Matching field verdicts.
    pub fields: usize,
    /// Expected field verdicts.
    pub expected_fields: usize,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.total += 1;
        self.right += usize::from(outcome.right);
        self.points += outcome.points;
        self.fields += outcome.fields.0;
        self.expected_fields += outcome.fields.1;
    }

    /// Right answers in percent; 100 for an empty group.
    pub fn percent(&self) -> f64 {
        if self.total == 0 {
            return 100.0;
        }
        // Counts of records are far below the range where this loses precision.
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let percent = self.right as f64 * 100.0 / self.total as f64;
        percent
    }
}

impl Report {
    /// Sums by kind and tier.
    pub fn by_kind_and_tier(&self) -> BTreeMap<(String, i64), Sum> {
        let mut sums: BTreeMap<(String, i64), Sum> = BTreeMap::new();
        for outcome in &self.outcomes {
            sums.entry((outcome.kind.clone(), outcome.tier))
                .or_default()
                .add(outcome);
        }
        sums
    }

    /// The sum of the outcomes that a test accepts.
    pub fn sum(&self, accept: impl Fn(&Outcome) -> bool) -> Sum {
        let mut sum = Sum::default();
        self.outcomes
            .iter()
            .filter(|outcome| accept(outcome))
            .for_each(|outcome| sum.add(outcome));
        sum
    }

    /// The gates with what they ask for: name, reached percentage, required percentage.
    pub fn gates(&self) -> Vec<(&'static str, f64, f64)> {
        let embedded = |outcome: &Outcome| {
            matches!(outcome.kind.as_str(), "render" | "pipeline" | "patch") && outcome.tier <= 2
        };
        let language = |outcome: &Outcome, tier: i64| {
            matches!(outcome.kind.as_str(), "cue" | "probe") && outcome.tier == tier
        };
        vec![
            (
                "render, pipeline, patch of tiers 1 and 2",
                self.sum(embedded).percent(),
                100.0,
            ),
            (
                "stable cue and probe of tier 1",
                self.sum(|outcome| outcome.stable && language(outcome, 1))
                    .percent(),
                99.0,
            ),
            (
                "stable cue and probe of tier 2",
                self.sum(|outcome| outcome.stable && language(outcome, 2))
                    .percent(),
                97.0,
            ),
            (
                "everything of tier 3",
                self.sum(|outcome| outcome.tier == 3).percent(),
                90.0,
            ),
        ]
    }

    /// The identifiers that are right here and wrong in an earlier report's list of right ones.
    pub fn regressions<'a>(&'a self, earlier: &'a [String]) -> impl Iterator<Item = &'a str> {
        let wrong = self.outcomes.iter().filter(|outcome| !outcome.right);
        wrong
            .map(|outcome| outcome.id.as_str())
            .filter(|id| earlier.iter().any(|known| known == id))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{:10} {:>4} {:>12} {:>8} {:>13}",
            "kind", "tier", "right", "%", "fields"
        )?;
        for ((kind, tier), sum) in self.by_kind_and_tier() {
            let right = format!("{}/{}", sum.right, sum.total);
            let fields = format!("{}/{}", sum.fields, sum.expected_fields);
            let percent = sum.percent();
            writeln!(
                formatter,
                "{kind:10} {tier:>4} {right:>12} {percent:>8.2} {fields:>13}"
            )?;
        }
        for (name, reached, required) in self.gates() {
            let mark = if reached >= required { "ok  " } else { "MISS" };
            writeln!(formatter, "{mark} {reached:6.2} % of {required} % {name}")?;
        }
        Ok(())
    }
}

/// Scores records. `answer` gets a record's line and returns the answer's line; `None` stands for a
/// crash or a time-out.
pub fn score<'a>(
    records: impl IntoIterator<Item = &'a str>,
    mut answer: impl FnMut(&str) -> Option<String>,
) -> Report {
    let mut report = Report::default();
    for line in records {
        if let Ok(record) = parse_json(line) {
            report
                .outcomes
                .push(score_record(&record, answer(line).as_deref()));
        }
    }
    report
}

/// Scores one record and its answer.
pub fn score_record(record: &Value, answer: Option<&str>) -> Outcome {
    let text = |label: &str| match record.field(label) {
        Some(Value::String(text)) => text.to_string(),
        _ => String::new(),
    };
    let tier = match record.field("tier") {
        Some(Value::Number(tier)) => tier.to_i64().unwrap_or(0),
        _ => 0,
    };
    let stable = matches!(record.field("stable"), Some(Value::Bool(true)));
    let mut outcome = Outcome {
        id: text("id"),
        kind: text("kind"),
        tier,
        stable,
        right: false,
        points: 0.0,
        fields: (0, 0),
        reason: "crash or time-out".to_owned(),
        soft: Soft::default(),
    };
    let answer = answer.and_then(|line| parse_json(line).ok());
    let (Some(answer), Some(expected)) = (answer, record.field("expect")) else {
        return outcome;
    };
    compare::compare(&mut outcome, expected, &answer);
    // Where versions disagree, the newer one's expectation counts as well.
    if !outcome.right
        && !stable
        && let Some(newer) = record.field("expect_master")
    {
        let mut second = outcome.clone();
        compare::compare(&mut second, newer, &answer);
        if second.points > outcome.points || second.right {
            outcome = second;
        }
    }
    outcome
}
