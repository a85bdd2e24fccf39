//! Evaluates one object: what it is like, and what is written to make it as defined.

use bellwether_api::policy::{ObjectProperties, ObjectTemplate, RecreateOption, RelatedObject};
use bellwether_apply::compliance::{Comparison, Rule, Verdict, judge, matches, strip};
use serde_json::Value;

use super::desired::TargetKind;
use super::diff::{LOG_REDACTED, REDACTED, Recording, difference};
use super::evaluation::Situation;
use super::facts::{Need, Verb, Write, WriteError, WriteErrorKind, WriteOutcome};
use super::message::related;
use super::redaction::Redaction;
use super::{Finding, duty, reason};
use crate::template::{Answer, Question};

/// What was found of one object, or of all objects that an unnamed definition is about.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectResult {
    pub(super) names: Vec<String>,
    pub(super) namespace: String,
    /// In the order in which they came about; the last is what holds.
    pub(super) findings: Vec<Finding>,
    pub(super) related: Vec<RelatedObject>,
    /// An error of the server, which is worth another evaluation.
    pub(super) error: Option<String>,
    /// A difference for the log.
    pub(super) logged_diff: Option<String>,
    /// The objects themselves, if the message is to show them.
    pub(super) observed: Vec<ObservedObject>,
}

/// An object before and after the evaluation.
#[derive(Debug, Clone)]
pub(super) struct ObservedObject {
    /// As it was found; nothing if it did not exist.
    pub(super) found: Option<Value>,
    /// As it was left; nothing if it does not exist.
    pub(super) left: Option<Value>,
}

/// One object of an object template.
pub(super) struct Target<'t> {
    pub(super) situation: &'t Situation<'t>,
    pub(super) template: &'t ObjectTemplate,
    pub(super) kind: &'t TargetKind,
    pub(super) desired: &'t Value,
    pub(super) is_sensitive: bool,
}

/// Properties that an object is reported with, besides its state.
#[derive(Default)]
struct Seen {
    uid: String,
    /// What the server made of a write.
    written: Option<Value>,
    is_created: bool,
    diff: String,
    matches_after_dry_run: bool,
}

impl Target<'_> {
    fn name(&self) -> &str {
        self.desired["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
    }

    /// The namespace that messages name. Kinds without namespaces may have one in their definition.
    fn namespace(&self) -> &str {
        self.desired["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
    }

    /// The namespace that requests name.
    fn real_namespace(&self) -> &str {
        if self.kind.is_namespaced {
            self.namespace()
        } else {
            ""
        }
    }

    fn object_question(&self, name: &str) -> Question {
        Question::Object {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.real_namespace().to_owned(),
            name: name.to_owned(),
        }
    }

    fn read(&self, question: Question) -> Result<&Answer, Vec<Need>> {
        match self.situation.facts.get(&question) {
            Some(answer) => Ok(answer),
            None => Err(vec![Need::Read(question)]),
        }
    }

    fn write(&self, verb: Verb, name: &str, object: Value) -> Result<&WriteOutcome, Vec<Need>> {
        let write = Write {
            verb,
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.real_namespace().to_owned(),
            name: name.to_owned(),
            object,
        };
        match self.situation.facts.written(&write) {
            Some(outcome) => Ok(outcome),
            None => Err(vec![Need::Write(write)]),
        }
    }

    /// Evaluates it.
    pub(super) fn evaluate(&self) -> Result<ObjectResult, Vec<Need>> {
        if !self.name().is_empty() {
            let name = self.name().to_owned();
            return self.evaluate_one(&name, self.situation.is_enforced);
        }
        let question = Question::List {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.real_namespace().to_owned(),
            selector: String::new(),
        };
        let objects = match self.read(question)? {
            Answer::Objects(objects) => objects.as_slice(),
            Answer::Failed(error) => return Ok(self.failed_read(Vec::new(), error)),
            _ => &[],
        };
        let duty = duty(&self.template.compliance_type);
        let is_match = |object: &&Value| matches(self.desired, object, duty);
        let mut names: Vec<String> = objects
            .iter()
            .filter(is_match)
            .filter_map(|object| object["metadata"]["name"].as_str())
            .map(str::to_owned)
            .collect();
        names.sort();
        if let [name] = names.as_slice() {
            // Definitions without a name are never enforced.
            return self.evaluate_one(name, false);
        }
        let mut result = self.unnamed(names, !objects.is_empty());
        for object in objects.iter().filter(is_match) {
            self.observe(Some(object), self.kept(object), &mut result);
        }
        Ok(result)
    }

    fn failed_read(&self, names: Vec<String>, error: &str) -> ObjectResult {
        let message = format!(
            "Error retrieving an object for object-template at index [{}]: {error}",
            self.situation.index
        );
        ObjectResult {
            names,
            namespace: self.namespace().to_owned(),
            findings: vec![Finding::with_message(false, reason::API_ERROR, message)],
            error: Some(error.to_owned()),
            ..ObjectResult::default()
        }
    }

    /// What is found of no object, or of several.
    fn unnamed(&self, names: Vec<String>, are_there_any: bool) -> ObjectResult {
        let must_not = self.template.compliance_type.is_must_not_have();
        let (is_compliant, reason) = match (must_not, names.is_empty()) {
            (false, false) => (true, reason::FOUND),
            (false, true) if are_there_any => (false, reason::NO_MATCH),
            (false, true) => (false, reason::NOT_FOUND),
            (true, false) => (false, reason::FORBIDDEN),
            (true, true) => (true, reason::ABSENT),
        };
        let finding = Finding::new(is_compliant, reason);
        let shown = if names.is_empty() {
            vec!["-".to_owned()]
        } else {
            names.clone()
        };
        ObjectResult {
            related: self.related(&shown, &finding, None),
            names,
            namespace: self.namespace().to_owned(),
            findings: vec![finding],
            ..ObjectResult::default()
        }
    }

    fn related(
        &self,
        names: &[String],
        finding: &Finding,
        properties: Option<&ObjectProperties>,
    ) -> Vec<RelatedObject> {
        let names = names.iter();
        names
            .map(|name| {
                related(
                    self.kind,
                    self.namespace(),
                    name,
                    finding,
                    properties.cloned(),
                )
            })
            .collect()
    }

    fn evaluate_one(&self, name: &str, is_enforced: bool) -> Result<ObjectResult, Vec<Need>> {
        let live = match self.read(self.object_question(name))? {
            Answer::Object(object) => Some(object),
            Answer::Failed(error) => return Ok(self.failed_read(vec![name.to_owned()], error)),
            _ => None,
        };
        let rule = Rule {
            duty: duty(&self.template.compliance_type),
            metadata: self.template.metadata_compliance_type.as_ref().map(duty),
        };
        let mut result = ObjectResult {
            names: vec![name.to_owned()],
            namespace: self.namespace().to_owned(),
            ..ObjectResult::default()
        };
        let mut seen: Option<Seen> = None;
        match (judge(rule, self.desired, live), live) {
            (Ok(Verdict::Forbidden), Some(live)) if is_enforced => {
                self.delete(name, live, &mut result)?;
            }
            (Ok(Verdict::Forbidden), _) => {
                result.findings.push(Finding::new(false, reason::FORBIDDEN));
            }
            (Ok(Verdict::Missing), _) => {
                result.findings.push(Finding::new(false, reason::NOT_FOUND));
                if is_enforced {
                    seen = self.create(name, &mut result)?;
                }
            }
            (verdict, Some(live)) => {
                seen = Some(self.check(name, live, verdict, is_enforced, &mut result)?);
            }
            (_, None) => result.findings.push(Finding::new(true, reason::ABSENT)),
        }
        let written = seen.as_mut().and_then(|seen| seen.written.take());
        let is_deleted = |it: &Finding| it.reason == reason::DELETED;
        let left = match result.findings.last() {
            Some(last) if is_deleted(last) => None,
            _ => written.or_else(|| self.kept(live?)),
        };
        self.observe(live, left, &mut result);
        let properties = seen.map(|seen| ObjectProperties {
            created_by_policy: Some(seen.is_created),
            uid: seen.uid,
            diff: seen.diff,
            matches_after_dry_run: seen.matches_after_dry_run,
            ..ObjectProperties::default()
        });
        if let Some(last) = result.findings.last() {
            result.related = self.related(&result.names, last, properties.as_ref());
        }
        Ok(result)
    }

    /// The object, if the message is to show it.
    fn kept(&self, object: &Value) -> Option<Value> {
        self.situation.keeps_objects.then(|| object.clone())
    }

    /// Keeps an object for the message, without what nobody may read.
    fn observe(&self, found: Option<&Value>, left: Option<Value>, result: &mut ObjectResult) {
        if !self.situation.keeps_objects || (found.is_none() && left.is_none()) {
            return;
        }
        let redaction = self.redaction();
        let (mut found, mut left) = (found.cloned(), left);
        for object in [&mut found, &mut left].into_iter().flatten() {
            redaction.hide(object);
        }
        result.observed.push(ObservedObject { found, left });
    }

    /// What is hidden of the object wherever it is shown.
    fn redaction(&self) -> Redaction {
        let redaction = Redaction::of_kind(&self.kind.api_version, &self.kind.kind);
        if !self.is_sensitive || !self.situation.options.hides_secrets {
            return redaction;
        }
        let definition = &self.template.object_definition;
        redaction.with_templates(self.situation.resolves_templates.then_some(definition))
    }

    /// How an object is named in errors.
    fn identifier(&self, name: &str) -> String {
        let namespace = self.namespace();
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!(" in namespace {namespace}")
        };
        format!("{} [{name}]{place}", self.kind.plural)
    }

    fn delete(&self, name: &str, live: &Value, result: &mut ObjectResult) -> Result<(), Vec<Need>> {
        let identifier = self.identifier(name);
        let finding = match self.write(Verb::Delete, name, live.clone())? {
            WriteOutcome::Done(_) => Finding::with_message(
                true,
                reason::DELETED,
                format!("{identifier} was deleted successfully"),
            ),
            WriteOutcome::Failed(error) if error.kind == WriteErrorKind::NotFound => {
                Finding::new(true, reason::DELETED)
            }
            WriteOutcome::Failed(error) => {
                result.error = Some(error.message.clone());
                let message =
                    format!("{identifier} exists, and cannot be deleted, reason: `{error}`");
                Finding::with_message(false, reason::DELETE_ERROR, message)
            }
        };
        result.findings.push(finding);
        Ok(())
    }

    fn create(&self, name: &str, result: &mut ObjectResult) -> Result<Option<Seen>, Vec<Need>> {
        let identifier = self.identifier(name);
        match self.write(Verb::Create, name, self.desired.clone())? {
            WriteOutcome::Done(object) => {
                let mut message = format!("{identifier} was created successfully");
                let mut reason = reason::CREATED.to_owned();
                let has_status = self.desired.get("status").is_some();
                if has_status {
                    message.push_str(
                        ", the status of the object will be verified in the next evaluation",
                    );
                    reason.push_str(", status unchecked");
                }
                let finding = Finding::with_message(!has_status, &reason, message);
                result.findings.push(finding);
                Ok(Some(Seen {
                    uid: uid(object),
                    written: self.kept(object),
                    is_created: true,
                    ..Seen::default()
                }))
            }
            WriteOutcome::Failed(error) => {
                result.error = Some(error.message.clone());
                let message =
                    format!("{identifier} is missing, and cannot be created, reason: `{error}`");
                result
                    .findings
                    .push(Finding::with_message(false, reason::CREATE_ERROR, message));
                Ok(None)
            }
        }
    }

    /// Reports how an object that has to exist was judged, and updates it if that is wanted and needed.
    fn check(
        &self,
        name: &str,
        live: &Value,
        judged: Result<Verdict, String>,
        is_enforced: bool,
        result: &mut ObjectResult,
    ) -> Result<Seen, Vec<Need>> {
        let mut seen = Seen {
            uid: uid(live),
            ..Seen::default()
        };
        match judged {
            Err(message) => {
                result.findings.push(Finding::new(false, reason::NO_MATCH));
                result.findings.push(update_error(message));
            }
            Ok(Verdict::Differs(found)) if found.needs_update || found.is_missing => {
                self.update(name, live, &found, is_enforced, &mut seen, result)?;
            }
            // An update does not change a status.
            Ok(Verdict::Differs(found)) => {
                self.record(live, &found.merged, &mut seen, result);
                result.findings.push(verdict(false));
            }
            Ok(_) => result.findings.push(verdict(true)),
        }
        Ok(seen)
    }

    /// Asks the server what an update would do, and does it if that is wanted.
    fn update(
        &self,
        name: &str,
        live: &Value,
        comparison: &Comparison,
        is_enforced: bool,
        seen: &mut Seen,
        result: &mut ObjectResult,
    ) -> Result<(), Vec<Need>> {
        let recreate = self.template.recreate_option.as_ref();
        let mut needs_recreation = recreate == Some(&RecreateOption::Always);
        match self.write(Verb::DryRun, name, comparison.merged.clone())? {
            WriteOutcome::Failed(error) if error.kind == WriteErrorKind::Invalid => {
                let can_recreate =
                    needs_recreation || recreate == Some(&RecreateOption::IfRequired);
                self.record(live, &comparison.merged, seen, result);
                if !is_enforced {
                    result.findings.push(verdict(false));
                    return Ok(());
                }
                if !can_recreate {
                    let message = format!(
                        "{} cannot be updated, likely due to immutable fields not matching, you may set spec[\"object-templates\"][].recreateOption to recreate the object",
                        self.identifier(name)
                    );
                    result.findings.push(update_error(message));
                    return Ok(());
                }
                needs_recreation = true;
            }
            WriteOutcome::Failed(error) => {
                let refusal = refusal(error, &self.kind.kind, name);
                if comparison.needs_update && refusal.is_none() {
                    result.findings.push(verdict(false));
                }
                let message = refusal.unwrap_or_else(|| {
                    format!(
                        "Error issuing a dry run update request for the object `{name}`, the error is `{error}`"
                    )
                });
                result.findings.push(update_error(message));
                return Ok(());
            }
            WriteOutcome::Done(updated) => {
                let (mut before, mut after) = (live.clone(), updated.clone());
                strip(&mut before);
                strip(&mut after);
                if before == after {
                    if comparison.is_status_wrong {
                        self.record(live, &comparison.merged, seen, result);
                    } else {
                        seen.matches_after_dry_run = true;
                    }
                    result.findings.push(verdict(!comparison.is_status_wrong));
                    return Ok(());
                }
                self.record(live, updated, seen, result);
            }
        }
        if !is_enforced {
            result.findings.push(verdict(false));
            return Ok(());
        }
        if comparison.needs_update {
            result.findings.push(verdict(false));
        }
        let written = if needs_recreation {
            self.write(Verb::Recreate, name, self.desired.clone())?
        } else {
            self.write(Verb::Update, name, comparison.merged.clone())?
        };
        result
            .findings
            .push(self.written(name, written, needs_recreation, comparison, seen));
        Ok(())
    }

    /// What came of an update.
    fn written(
        &self,
        name: &str,
        outcome: &WriteOutcome,
        was_recreated: bool,
        comparison: &Comparison,
        seen: &mut Seen,
    ) -> Finding {
        let identifier = self.identifier(name);
        match outcome {
            WriteOutcome::Done(object) => {
                seen.written = self.kept(object);
                let uid = uid(object);
                if uid != seen.uid {
                    seen.uid = uid;
                    seen.is_created = true;
                }
                if comparison.is_status_wrong {
                    verdict(false)
                } else {
                    Finding::new(true, reason::UPDATED)
                }
            }
            WriteOutcome::Failed(error)
                if was_recreated && error.kind == WriteErrorKind::AlreadyExists =>
            {
                update_error(format!(
                    "{identifier} timed out waiting for the object to delete during recreate, will retry on the next policy evaluation"
                ))
            }
            WriteOutcome::Failed(error) => {
                let action = if was_recreated { "recreate" } else { "update" };
                let message = refusal(error, &self.kind.kind, name).unwrap_or_else(|| {
                    format!("{identifier} failed to {action} with the error `{error}`")
                });
                update_error(message)
            }
        }
    }

    /// Records the difference where it is wanted.
    fn record(&self, live: &Value, after: &Value, seen: &mut Seen, result: &mut ObjectResult) {
        let record = self.template.record_diff.as_ref();
        let recording = if record.is_none() && self.is_sensitive {
            Recording::Redacted
        } else {
            Recording::of(record, &self.kind.api_version, &self.kind.kind)
        };
        let hides_secrets = self.situation.options.hides_secrets;
        let diff = || {
            let (mut live, mut after) = (live.clone(), after.clone());
            strip(&mut live);
            strip(&mut after);
            if hides_secrets {
                self.redaction().hide_both(&mut live, &mut after);
            }
            difference(&live, &after, self.situation.options.has_full_diffs)
        };
        match recording {
            Recording::Nowhere => {}
            Recording::Redacted => REDACTED.clone_into(&mut seen.diff),
            Recording::InStatus => seen.diff = diff(),
            Recording::Log if hides_secrets && self.redaction().is_needed() => {
                result.logged_diff = Some(LOG_REDACTED.to_owned());
            }
            Recording::Log => result.logged_diff = Some(diff()),
        }
    }
}

fn verdict(is_compliant: bool) -> Finding {
    if is_compliant {
        Finding::new(true, reason::FOUND)
    } else {
        Finding::new(false, reason::NO_MATCH)
    }
}

fn update_error(message: String) -> Finding {
    Finding::with_message(false, reason::UPDATE_ERROR, message)
}

fn uid(object: &Value) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}

/// The text for errors that are told apart.
fn refusal(error: &WriteError, kind: &str, name: &str) -> Option<String> {
    if error.kind == WriteErrorKind::NotFound {
        return Some(format!("`{kind}` is not present and must be created"));
    }
    error
        .message
        .contains("strict decoding error:")
        .then(|| format!("Error validating the object {name}, the error is `{error}`"))
}
