//! One evaluation of a policy, object template by object template.

use bellwether_api::policy::names::annotation;
use bellwether_api::policy::{
    ConfigurationPolicy, NamespaceSelector, ObjectTemplate, RelatedObject,
};
use bellwether_template::World;
use serde_json::Value;

use super::desired::{Stop, desired};
use super::facts::{Facts, Need};
use super::message::{Summary, add_related, related, summaries};
use super::object::{ObjectResult, ObservedObject, Target};
use super::raw;
use super::{Finding, reason};
use crate::template::{Keys, Side};

/// What is reported where templates of the hub are left.
const HUB_TEMPLATES: &str = "the governance-standalone-hub-templating addon must be enabled to resolve hub templates on the managed cluster";

/// What an evaluation can do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing before these are answered.
    Needs(Vec<Need>),
    /// It is over.
    Done,
}

/// How a policy is evaluated, besides what it says itself.
#[derive(Debug, Clone, Default)]
pub struct EvaluationOptions {
    /// The keys that texts in the policy are decrypted with.
    pub keys: Option<Keys>,
    /// Why there are none although the policy needs them.
    pub keys_error: Option<String>,
    /// Records differences in full.
    pub has_full_diffs: bool,
    /// Never changes anything, whatever the policy says.
    pub is_inform: bool,
    /// Hides what Secrets hold, and what is made of it, in errors and in differences.
    pub hides_secrets: bool,
}

/// What is the same for all objects of one object template.
pub(super) struct Situation<'s> {
    pub(super) policy_name: &'s str,
    pub(super) index: usize,
    pub(super) namespace_selector: Option<&'s NamespaceSelector>,
    pub(super) is_enforced: bool,
    pub(super) resolves_templates: bool,
    /// True if objects are kept for the message.
    pub(super) keeps_objects: bool,
    pub(super) options: &'s EvaluationOptions,
    pub(super) facts: &'s Facts,
}

/// What is true of one object template.
#[derive(Debug, Clone)]
pub(super) struct TemplateResult {
    /// One after the other.
    pub(super) summaries: Vec<Summary>,
}

/// Why a policy has no object templates.
#[derive(Debug, Clone)]
pub(super) struct EarlyEnd {
    pub(super) summary: Summary,
    /// What the evaluation fails with; nothing if evaluating again is of no use.
    pub(super) error: Option<String>,
    /// Whether the list of objects stays as it was.
    pub(super) keeps_related: bool,
}

/// One evaluation of a policy.
#[derive(Debug, Clone)]
pub struct Evaluation {
    pub(super) policy: ConfigurationPolicy,
    options: EvaluationOptions,
    /// The object templates, once they are known.
    templates: Option<Vec<ObjectTemplate>>,
    is_sensitive: bool,
    pub(super) early_end: Option<EarlyEnd>,
    pub(super) results: Vec<Option<TemplateResult>>,
    pub(super) related: Vec<RelatedObject>,
    /// The objects themselves, if the policy has a message of its own.
    pub(super) observed: Vec<ObservedObject>,
    pub(super) errors: Vec<String>,
    pub(super) keeps_children: bool,
    diffs: Vec<String>,
}

impl Evaluation {
    /// Begins one.
    pub fn new(policy: ConfigurationPolicy, options: EvaluationOptions) -> Self {
        Self {
            policy,
            options,
            templates: None,
            is_sensitive: false,
            early_end: None,
            results: Vec::new(),
            related: Vec::new(),
            observed: Vec::new(),
            errors: Vec::new(),
            keeps_children: false,
            diffs: Vec::new(),
        }
    }

    /// Whether violations are repaired.
    pub fn is_enforced(&self) -> bool {
        self.policy.spec.remediation_action.is_enforce() && !self.options.is_inform
    }

    /// Differences that the policy wants in the log.
    pub fn logged_diffs(&self) -> &[String] {
        &self.diffs
    }

    /// Errors that are worth another evaluation, as one text.
    pub fn error(&self) -> Option<String> {
        let mut errors: Vec<&str> = Vec::new();
        let early = self.early_end.as_ref().and_then(|end| end.error.as_deref());
        for error in self.errors.iter().map(String::as_str).chain(early) {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        match errors.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    /// Goes on as far as is known.
    ///
    /// After a template has written something, what is known of objects is forgotten, so that the next
    /// one sees the change.
    pub fn step(&mut self, facts: &mut Facts, world: &World<'_>) -> Step {
        if self.early_end.is_some() {
            return Step::Done;
        }
        if self.templates.is_none()
            && let Err(needs) = self.expand(facts, world)
        {
            return Step::Needs(needs);
        }
        while self.early_end.is_none() {
            let index = self.results.len();
            let templates = self.templates.as_deref().unwrap_or_default();
            let Some(template) = templates.get(index) else {
                return Step::Done;
            };
            match self.template(index, template, facts, world) {
                Ok(outcome) => {
                    self.take(outcome);
                    if facts.has_written() {
                        facts.forget();
                    }
                }
                Err(mut needs) => {
                    self.look_ahead(index + 1, facts, world, &mut needs);
                    return Step::Needs(needs);
                }
            }
        }
        Step::Done
    }

    /// Adds what later templates have to read, so that it is read at once.
    fn look_ahead(&self, from: usize, facts: &Facts, world: &World<'_>, needs: &mut Vec<Need>) {
        let templates = self.templates.as_deref().unwrap_or_default();
        for (index, template) in templates.iter().enumerate().skip(from) {
            let Err(more) = self.template(index, template, facts, world) else {
                continue;
            };
            for need in more {
                if matches!(need, Need::Read(_)) && !needs.contains(&need) {
                    needs.push(need);
                }
            }
        }
    }

    fn end(&mut self, is_compliant: bool, reason: &str, message: String) -> &mut EarlyEnd {
        self.early_end.insert(EarlyEnd {
            summary: Summary {
                is_compliant,
                reason: reason.to_owned(),
                message,
            },
            error: None,
            keeps_related: true,
        })
    }

    /// Works out the object templates.
    fn expand(&mut self, facts: &Facts, world: &World<'_>) -> Result<(), Vec<Need>> {
        if self.policy.spec.remediation_action.is_empty() {
            let message = "Policy does not have a RemediationAction specified".to_owned();
            self.end(false, reason::INVALID_SPEC, message);
            return Ok(());
        }
        if self.resolves_templates() && self.has_hub_templates() {
            let message = HUB_TEMPLATES.to_owned();
            let end = self.end(false, reason::HUB_TEMPLATE_ERROR, message.clone());
            end.error = Some(message);
            return Ok(());
        }
        if let Some(error) = self.options.keys_error.clone()
            && self.resolves_templates()
        {
            let end = self.end(false, reason::ENCRYPTION_ERROR, error.clone());
            end.error = Some(error);
            return Ok(());
        }
        let mut templates = self
            .policy
            .spec
            .object_templates
            .clone()
            .unwrap_or_default();
        let raw = self.policy.spec.object_templates_raw.as_deref();
        if let Some(text) = raw.filter(|text| !text.is_empty() && self.resolves_templates()) {
            let expanded = raw::expand(text, self.options.keys.as_ref(), facts, world);
            match expanded
                .map_err(|questions| questions.into_iter().map(Need::Read).collect::<Vec<_>>())?
            {
                Ok(expanded) => {
                    templates = expanded.templates;
                    self.is_sensitive = expanded.is_sensitive;
                }
                Err(error) => {
                    let message = self.shown(error.message, facts);
                    let end = self.end(false, reason::TEMPLATE_ERROR, message.clone());
                    if !error.is_final {
                        end.error = Some(message);
                    }
                    return Ok(());
                }
            }
        }
        if templates.is_empty() {
            let name = self.policy.metadata.name.as_deref().unwrap_or_default();
            let message =
                format!("{name} contains no object templates to check, and thus has no violations");
            self.end(true, reason::NO_TEMPLATES, message).keeps_related = false;
        }
        self.templates = Some(templates);
        Ok(())
    }

    /// Whether templates of the hub are left, which a cluster cannot resolve.
    fn has_hub_templates(&self) -> bool {
        let spec = &self.policy.spec;
        let mut templates = spec.object_templates.iter().flatten();
        let raw = spec.object_templates_raw.as_deref().unwrap_or_default();
        Side::Hub.has_template(raw)
            || templates
                .any(|template| Side::Hub.has_template(&template.object_definition.to_string()))
    }

    /// A text as it is shown. Servers and templates quote the values that they do not like, and keys of
    /// objects may be made of secrets.
    fn shown(&self, text: String, facts: &Facts) -> String {
        if !self.options.hides_secrets || text.is_empty() {
            return text;
        }
        let mut secrets = facts.secrets().clone();
        if let Some(keys) = &self.options.keys {
            let spec = serde_json::to_string(&self.policy.spec).unwrap_or_default();
            secrets.add_encrypted(&spec, keys);
        }
        secrets.hidden_in(&text)
    }

    fn resolves_templates(&self) -> bool {
        let annotations = self.policy.metadata.annotations.as_ref();
        let disabled = annotations.and_then(|all| all.get(annotation::DISABLE_TEMPLATES));
        !disabled.is_some_and(|value| {
            matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True")
        })
    }

    /// Evaluates one object template.
    fn template(
        &self,
        index: usize,
        template: &ObjectTemplate,
        facts: &Facts,
        world: &World<'_>,
    ) -> Result<Outcome, Vec<Need>> {
        let has_raw = self.policy.spec.object_templates_raw.as_deref();
        let has_raw = has_raw.is_some_and(|text| !text.is_empty());
        let situation = Situation {
            policy_name: self.policy.metadata.name.as_deref().unwrap_or_default(),
            index,
            namespace_selector: self.policy.spec.namespace_selector.as_ref(),
            is_enforced: self.is_enforced(),
            // The text of a raw list is resolved as a whole, and only once.
            resolves_templates: self.resolves_templates() && !has_raw,
            keeps_objects: self.policy.spec.custom_message.is_some(),
            options: &self.options,
            facts,
        };
        let found = match desired(&situation, template, world) {
            Ok(found) => found,
            Err(Stop::Needs(questions)) => {
                return Err(questions.into_iter().map(Need::Read).collect());
            }
            Err(Stop::Found {
                mut finding,
                plural,
                error,
            }) => {
                finding.message = self.shown(finding.message, facts);
                let error = error.map(|error| self.shown(error, facts));
                return Ok(Outcome::only(&plural.unwrap_or_default(), finding, error));
            }
        };
        if found.objects.is_empty() {
            return Ok(Outcome::spared(&found.kind, &found.spared));
        }
        let mut results = Vec::new();
        let mut needs = Vec::new();
        for object in &found.objects {
            let target = Target {
                situation: &situation,
                template,
                kind: &found.kind,
                desired: object,
                is_sensitive: found.is_sensitive || self.is_sensitive,
            };
            match target.evaluate() {
                Ok(mut result) => {
                    let findings = result.findings.iter_mut();
                    for finding in findings.filter(|it| !it.is_compliant) {
                        let message = std::mem::take(&mut finding.message);
                        finding.message = self.shown(message, facts);
                    }
                    result.error = result.error.map(|error| self.shown(error, facts));
                    let properties = result
                        .related
                        .iter_mut()
                        .filter_map(|it| it.properties.as_mut());
                    for properties in properties {
                        let diff = std::mem::take(&mut properties.diff);
                        properties.diff = self.shown(diff, facts);
                    }
                    results.push(result);
                }
                Err(more) => needs.extend(more),
            }
        }
        if !needs.is_empty() {
            return Err(needs);
        }
        results.sort_by(|left, right| {
            (&left.namespace, &left.names).cmp(&(&right.namespace, &right.names))
        });
        Ok(Outcome {
            summaries: summaries(&found.kind.plural, &results),
            results,
            error: None,
        })
    }

    fn take(&mut self, outcome: Outcome) {
        for result in outcome.results {
            self.errors.extend(result.error);
            self.diffs.extend(result.logged_diff);
            self.observed.extend(result.observed);
            for object in result.related {
                add_related(&mut self.related, object);
            }
        }
        if let Some(error) = outcome.error {
            self.errors.push(error);
            self.keeps_children = true;
        }
        self.results.push(Some(TemplateResult {
            summaries: outcome.summaries,
        }));
    }
}

/// What came of one object template.
struct Outcome {
    summaries: Vec<Summary>,
    results: Vec<ObjectResult>,
    /// An error before any object was looked at.
    error: Option<String>,
}

impl Outcome {
    fn only(plural: &str, finding: Finding, error: Option<String>) -> Self {
        let result = ObjectResult {
            findings: vec![finding],
            ..ObjectResult::default()
        };
        Self {
            summaries: summaries(plural, std::slice::from_ref(&result)),
            results: Vec::new(),
            error,
        }
    }

    /// Objects that are selected, but have nothing of what must not be.
    fn spared(kind: &super::desired::TargetKind, objects: &[Value]) -> Self {
        let finding = Finding::new(true, reason::ABSENT);
        let mut results: Vec<ObjectResult> = Vec::new();
        for object in objects {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
            let related = related(kind, text("namespace"), text("name"), &finding, None);
            match results
                .iter_mut()
                .find(|known| known.namespace == text("namespace"))
            {
                Some(known) => known.related.push(related),
                None => results.push(ObjectResult {
                    namespace: text("namespace").to_owned(),
                    findings: vec![finding.clone()],
                    related: vec![related],
                    ..ObjectResult::default()
                }),
            }
        }
        Self {
            summaries: summaries(&kind.plural, &results),
            results,
            error: None,
        }
    }
}
