//! Evaluates a ConfigurationPolicy against objects from files, without a cluster.
//!
//! The policy only informs. There is no server: an update that is tried becomes what it asks for. What
//! is printed is what upstream's `dryrun` prints.

mod colors;
mod input;
mod mappings;
pub mod probe;
mod status_comparison;
mod store;
#[cfg(test)]
mod tests;

use bellwether_api::policy::{ConfigurationPolicyStatus, TemplateCompliance};
use bellwether_template::World;
use serde_json::Value;

use colors::Colors;
use store::Store;

use crate::config_policy::{
    Conclusion, Evaluation, EvaluationOptions, Facts, Need, Step, Verb, WriteOutcome,
};

/// Rounds after which an evaluation that still asks is given up. Each round answers all that is asked.
const MAX_ROUNDS: usize = 1000;

/// What a dry run begins with.
#[derive(Debug, Clone, Default)]
pub struct DryRun<'d> {
    /// The text of a Policy or ConfigurationPolicy.
    pub policy: &'d str,
    /// Texts with the objects of the cluster, each with what errors call it.
    pub inputs: Vec<(String, String)>,
    /// The text of a file with kinds, which replaces the built-in ones.
    pub mappings: Option<&'d str>,
    /// The text of a status that the result is compared with.
    pub desired_status: Option<&'d str>,
    /// Shows differences in full.
    pub has_full_diffs: bool,
    /// Prints without colours.
    pub has_no_colors: bool,
    /// Leaves differences out.
    pub hides_diffs: bool,
}

/// What came of a dry run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What is printed before the messages.
    pub output: String,
    /// The compliance messages.
    pub messages: Vec<String>,
    /// The status, if there is one.
    pub status: Option<ConfigurationPolicyStatus>,
    /// Why it failed.
    pub error: Option<String>,
    /// The parts of [`Self::output`]: what stands before the differences, and the differences.
    pub before: String,
    /// See [`Self::before`].
    pub diffs: String,
}

/// What stands before the messages.
pub const MESSAGES: &str = "# Compliance messages:\n";
/// What stands before the differences.
const DIFFS: &str = "# Diffs:\n";

impl Outcome {
    /// Whether the policy is compliant.
    pub fn is_compliant(&self) -> bool {
        self.status
            .as_ref()
            .and_then(|status| status.compliant.as_ref())
            == Some(&TemplateCompliance::Compliant)
    }

    /// The exit code: 0 for compliant, 2 for anything else that was evaluated, 1 for failures.
    pub fn exit_code(&self) -> u8 {
        match &self.error {
            Some(_) => 1,
            None if self.is_compliant() => 0,
            None => 2,
        }
    }

    fn failed(error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

/// Runs it.
pub fn run(dry_run: &DryRun<'_>, world: &World<'_>) -> Outcome {
    let read = match input::policy(dry_run.policy) {
        Ok(read) => read,
        Err(error) => return Outcome::failed(format!("unable to read input policy: {error}")),
    };
    let objects = match input::objects(&dry_run.inputs) {
        Ok(objects) => objects,
        Err(error) => return Outcome::failed(format!("unable to read input resources: {error}")),
    };
    let store = mappings::read(dry_run.mappings)
        .map_err(|error| format!("unable to setup the dryrun reconciler: {error}"))
        .and_then(|kinds| {
            Store::new(kinds, objects)
                .map_err(|error| format!("unable to apply input resources: {error}"))
        });
    let store = match store {
        Ok(store) => store,
        Err(error) => return Outcome::failed(error),
    };
    let options = EvaluationOptions {
        has_full_diffs: dry_run.has_full_diffs,
        is_inform: true,
        ..EvaluationOptions::default()
    };
    let conclusion = evaluate(Evaluation::new(read.policy, options), &store, world);
    let mut outcome = Outcome::default();
    for report in conclusion.reports {
        if report.is_news {
            outcome.messages.push(report.message);
        }
        outcome.status = Some(report.status);
    }
    if let Some(error) = conclusion.error {
        outcome.error = Some(format!("unable to complete the dryrun reconcile: {error}"));
        return outcome;
    }
    if read.has_others {
        outcome
            .before
            .push_str("Ignoring additional ConfigurationPolicy in input policy\n");
    }
    let colors = Colors::new(!dry_run.has_no_colors);
    print(dry_run, colors, &mut outcome);
    outcome
}

/// Answers all that an evaluation asks.
fn evaluate(mut evaluation: Evaluation, store: &Store, world: &World<'_>) -> Conclusion {
    let mut facts = Facts::default();
    for _ in 0..MAX_ROUNDS {
        let Step::Needs(needs) = evaluation.step(&mut facts, world) else {
            break;
        };
        for need in needs {
            match need {
                Need::Read(question) => {
                    let answer = store.answer(&question);
                    facts.answer(question, answer);
                }
                Need::Write(write) => {
                    debug_assert_eq!(write.verb, Verb::DryRun, "a dry run writes nothing");
                    let object = write.object.clone();
                    facts.outcome(&write, WriteOutcome::Done(object));
                }
            }
        }
    }
    evaluation.conclude(world.now, world)
}

/// Writes what is printed before the messages.
fn print(dry_run: &DryRun<'_>, colors: Colors, outcome: &mut Outcome) {
    let status = outcome.status.clone().unwrap_or_default();
    if let Some(desired) = dry_run.desired_status {
        match status_comparison::compare(desired, &status, colors) {
            Ok(text) => outcome.before.extend([text.as_str(), "\n"]),
            Err(error) => {
                outcome.error = Some(format!("unable to compare desired status: {error}"));
                return;
            }
        }
    }
    outcome.output.clone_from(&outcome.before);
    if dry_run.hides_diffs {
        return;
    }
    for object in &status.related_objects {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let reference = &object.object;
        let mut name = text(&reference.metadata.name);
        if let Some(namespace) = &reference.metadata.namespace {
            name = format!("{namespace}/{name}");
        }
        let (api_version, kind) = (text(&reference.api_version), text(&reference.kind));
        let heading = [&*api_version, " ", &kind, " ", &name, ":\n"];
        outcome.diffs.extend(heading);
        let properties = object.properties.as_ref();
        let diff = properties.map_or("", |properties| properties.diff.as_str());
        let diff = colors.diff(diff);
        outcome
            .diffs
            .push_str(diff.strip_suffix('\n').unwrap_or(&diff));
        outcome.diffs.push('\n');
    }
    outcome.output.push_str(DIFFS);
    outcome.output.push_str(&outcome.diffs);
}

/// A value in a status as JSON.
fn status_value(status: &ConfigurationPolicyStatus) -> Value {
    serde_json::to_value(status).unwrap_or(Value::Null)
}
