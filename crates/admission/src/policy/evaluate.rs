//! Evaluating policies over a request.

use std::collections::BTreeMap;

use bellwether_cel::{Program, Value as CelValue, Vars};
use serde_json::{Value, json};

use super::{Action, Annotation, Binding, Policy, Validation, Variable};
use crate::Host;
use crate::attributes::{Attributes, Target};
use crate::condition::{CostLimit, Inputs, TooCostly, Verdict, failure};
use crate::criteria::Failure;
use crate::environment::{OUT_OF_BUDGET, Spending, Stopped};
use crate::webhook::Seen;

/// The longest message that an expression may compute, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// The longest note for the audit log, in bytes.
const MAX_ANNOTATION: usize = 10 * 1024;

/// The note of failures with the action `Audit`.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The reason of a refusal that gives none.
const DEFAULT_REASON: &str = "Invalid";

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason of the `Status`.
    pub reason: String,
    /// Message for the client.
    pub message: String,
}

impl Refusal {
    /// The HTTP status code of the reason.
    pub fn code(&self) -> u16 {
        match &*self.reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        }
    }
}

/// What policies say of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// Why the request is refused, if it is.
    pub refusal: Option<Refusal>,
    /// What the client is warned of.
    pub warnings: Vec<String>,
    /// Annotations for the audit log.
    pub annotations: BTreeMap<String, String>,
}

/// What became of one expression.
struct Decision {
    /// Its place among those of the policy.
    index: usize,
    message: String,
    reason: String,
}

/// Judges a request by all policies, in their order.
pub fn judge(
    policies: &[Policy],
    bindings: &[Binding],
    attributes: &Attributes<'_>,
    host: &dyn Host,
    limit: CostLimit,
) -> Result<Judgement, TooCostly> {
    let mut judge = Judge {
        attributes,
        host,
        limit,
        found: Judgement::default(),
    };
    for policy in policies {
        let bindings = bindings.iter();
        let mut bindings = bindings.filter(|it| it.policy == policy.name).peekable();
        if bindings.peek().is_some() {
            judge.policy(policy, bindings)?;
        }
    }
    Ok(judge.found)
}

struct Judge<'a> {
    attributes: &'a Attributes<'a>,
    host: &'a dyn Host,
    limit: CostLimit,
    found: Judgement,
}

impl Judge<'_> {
    fn policy<'p>(
        &mut self,
        policy: &'p Policy,
        bindings: impl Iterator<Item = &'p Binding>,
    ) -> Result<(), TooCostly> {
        let target = match policy.criteria.matches(self.attributes, self.host) {
            Ok(Some(target)) => target,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.misconfigured(policy, None, &describe(&why));
                return Ok(());
            }
        };
        if let Some((api_version, kind)) = &policy.params
            && self.host.is_namespaced(api_version, kind).is_none()
        {
            let why = format!(
                "failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'"
            );
            self.misconfigured(policy, None, &why);
            return Ok(());
        }
        let seen = Seen::new(self.attributes, target, self.host);
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            self.binding(policy, binding, target, &seen, &mut annotations)?;
        }
        for (key, values) in annotations {
            let key = format!("{}/{key}", policy.name);
            self.found.annotations.insert(key, values.join(", "));
        }
        Ok(())
    }

    fn binding(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        target: &Target,
        seen: &Seen<'_>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), TooCostly> {
        match binding.criteria.matches(self.attributes, self.host) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(why) => {
                self.misconfigured(policy, Some(binding), &describe(&why));
                return Ok(());
            }
        }
        let params = match binding.params(policy, self.attributes.namespace, self.host) {
            Ok(params) => params,
            Err(why) => {
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        let request = Value::Object(self.attributes.to_request(target));
        let namespace = self.namespace();
        for params in &params {
            let inputs = Inputs {
                object: seen.object(),
                old_object: seen.old(),
                request: &request,
                namespace: &namespace,
                params,
                authorizer: self.host,
                access: self.attributes.access(),
            };
            let outcome = evaluate(policy, &inputs, self.limit)?;
            for decision in outcome.decisions {
                self.decide(policy, binding, &decision);
            }
            for (key, note) in outcome.annotations {
                match note {
                    Ok(note) => {
                        let values = annotations.entry(key).or_default();
                        if !values.contains(&note) {
                            values.push(note);
                        }
                    }
                    Err(why) => self.refuse(policy, Some(binding), &why, DEFAULT_REASON),
                }
            }
        }
        Ok(())
    }

    /// The namespace of the request; null for what is in none, and for namespaces themselves.
    fn namespace(&self) -> Value {
        let target = self.attributes.target;
        let is_namespace = target.group.is_empty() && target.kind.name == "Namespace";
        let name = self.attributes.namespace;
        if name.is_empty() || is_namespace {
            return Value::Null;
        }
        self.host.namespace(name).unwrap_or(Value::Null)
    }

    fn decide(&mut self, policy: &Policy, binding: &Binding, decision: &Decision) {
        for action in &binding.actions {
            match action {
                Action::Deny => {
                    self.refuse(policy, Some(binding), &decision.message, &decision.reason);
                }
                Action::Warn => self.found.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    policy.name, binding.name, decision.message
                )),
                Action::Audit => {
                    let actions: Vec<&str> = binding.actions.iter().map(|it| it.as_str()).collect();
                    let note = json!([{
                        "message": decision.message, "policy": policy.name, "binding": binding.name,
                        "expressionIndex": decision.index, "validationActions": actions,
                    }]);
                    // The first one stays, as where Kubernetes notes one twice.
                    let notes = &mut self.found.annotations;
                    notes
                        .entry(FAILURE_ANNOTATION.to_owned())
                        .or_insert_with(|| note.to_string());
                }
            }
        }
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if policy.ignores_failures {
            return;
        }
        let what = if binding.is_some() {
            "binding"
        } else {
            "policy"
        };
        let message = format!("failed to configure {what}: {why}");
        self.refuse(policy, binding, &message, DEFAULT_REASON);
    }

    /// Notes a refusal; the first one is what the client sees.
    fn refuse(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str, reason: &str) {
        let by = match binding {
            Some(binding) => format!(" with binding '{}'", binding.name),
            None => String::new(),
        };
        self.found.refusal.get_or_insert_with(|| Refusal {
            reason: reason.to_owned(),
            message: format!(
                "ValidatingAdmissionPolicy '{}'{by} denied request: {why}",
                policy.name
            ),
        });
    }
}

fn describe(failure: &Failure) -> String {
    match failure {
        Failure::NoNamespace(name) => format!("namespaces \"{name}\" not found"),
        Failure::Selector(why) => why.clone(),
    }
}

#[derive(Default)]
struct Outcome {
    /// What does not hold, or failed and is not ignored.
    decisions: Vec<Decision>,
    /// Notes by their keys, or why there is none.
    annotations: Vec<(String, Result<String, String>)>,
}

/// Evaluates one policy with one set of parameters.
fn evaluate<'p>(
    policy: &'p Policy,
    inputs: &Inputs<'p>,
    limit: CostLimit,
) -> Result<Outcome, TooCostly> {
    let failed = |message: String| {
        let decision = Decision {
            index: 0,
            message,
            reason: DEFAULT_REASON.to_owned(),
        };
        let decisions = (!policy.ignores_failures).then_some(decision);
        Outcome {
            decisions: decisions.into_iter().collect(),
            annotations: Vec::new(),
        }
    };
    match policy.conditions.evaluate(inputs, limit)? {
        Verdict::Matches => {}
        Verdict::Excluded => return Ok(Outcome::default()),
        Verdict::Failed(why) => return Ok(failed(why)),
    }
    let mut scope = Scope::new(policy, inputs, limit);
    let mut results = Vec::with_capacity(policy.validations.len());
    for validation in &policy.validations {
        match scope.run(&validation.expression, &validation.program) {
            Ok(value) => results.push(Ok(value.as_bool() == Some(true))),
            Err(Stopped::Failed(why)) => results.push(Err(why)),
            Err(Stopped::TooCostly) => return Err(TooCostly),
            Err(Stopped::OutOfBudget) => return Ok(failed(OUT_OF_BUDGET.to_owned())),
        }
    }
    let mut outcome = Outcome::default();
    for (index, (validation, result)) in policy.validations.iter().zip(results).enumerate() {
        let (message, reason) = match result {
            Ok(true) => continue,
            Ok(false) => match scope.message(validation)? {
                Ok(message) => (message, validation.reason()),
                Err(_) if policy.ignores_failures => continue,
                Err(why) => (why, DEFAULT_REASON),
            },
            Err(_) if policy.ignores_failures => continue,
            Err(why) => (why, DEFAULT_REASON),
        };
        outcome.decisions.push(Decision {
            index,
            message,
            reason: reason.to_owned(),
        });
    }
    // Notes have a budget of their own.
    scope.spending = limit.total();
    for annotation in &policy.annotations {
        if let Some(note) = scope.note(annotation, policy.ignores_failures)? {
            outcome.annotations.push((annotation.key.clone(), note));
        }
    }
    Ok(outcome)
}

impl Validation {
    fn reason(&self) -> &str {
        match &*self.reason {
            "" => DEFAULT_REASON,
            reason => reason,
        }
    }

    /// What is said if no expression computes a message.
    fn plain_message(&self) -> String {
        match self.message.trim() {
            "" => format!("failed expression: {}", self.expression.trim()),
            message => message.to_owned(),
        }
    }
}

/// Variables that are computed when an expression needs them, at most once.
struct Scope<'p> {
    variables: &'p [Variable],
    vars: Vars<'p>,
    /// What became of each variable; none for those that nobody needed.
    computed: Vec<Option<Result<(), String>>>,
    spending: Spending,
}

impl<'p> Scope<'p> {
    fn new(policy: &'p Policy, inputs: &Inputs<'p>, limit: CostLimit) -> Self {
        Self {
            variables: &policy.variables,
            vars: inputs.vars(),
            computed: vec![None; policy.variables.len()],
            spending: limit.total(),
        }
    }

    fn run(
        &mut self,
        expression: &str,
        program: &'p Result<Program, String>,
    ) -> Result<CelValue<'p>, Stopped> {
        let program = match program {
            Ok(program) => program,
            Err(why) => return Err(Stopped::Failed(format!("compilation error: {why}"))),
        };
        match self.prepare(program, self.variables.len()) {
            Ok(()) => {}
            Err(Stopped::Failed(why)) => return Err(Stopped::Failed(failure(expression, &why))),
            Err(stopped) => return Err(stopped),
        }
        self.spending
            .evaluate(program, &self.vars)
            .map_err(|stopped| match stopped {
                Stopped::Failed(why) => Stopped::Failed(failure(expression, &why)),
                stopped => stopped,
            })
    }

    /// Computes the variables that an expression mentions, of the first `count`: a variable sees only
    /// those before it, so that this ends.
    fn prepare(&mut self, program: &'p Program, count: usize) -> Result<(), Stopped> {
        for index in 0..count {
            let variable = &self.variables[index];
            if !program.references(&variable.path) {
                continue;
            }
            if self.computed[index].is_none() {
                let computed = self.compute(index)?;
                self.computed[index] = Some(computed);
            }
            if let Some(Err(why)) = &self.computed[index] {
                return Err(Stopped::Failed(why.clone()));
            }
        }
        Ok(())
    }

    fn compute(&mut self, index: usize) -> Result<Result<(), String>, Stopped> {
        let variable = &self.variables[index];
        let name = &variable.name;
        let failed = |why: &str| Ok(Err(format!("composited variable {name:?} fails to {why}")));
        let program = match &variable.program {
            Ok(program) => program,
            Err(why) => return failed(&format!("compile: {why}")),
        };
        let value = match self.prepare(program, index) {
            Ok(()) => self.spending.evaluate(program, &self.vars),
            Err(stopped) => Err(stopped),
        };
        match value {
            Ok(value) => {
                let vars = std::mem::take(&mut self.vars);
                self.vars = vars.value(&variable.path, value);
                Ok(Ok(()))
            }
            Err(Stopped::Failed(why)) => failed(&format!("evaluate: {why}")),
            Err(stopped) => Err(stopped),
        }
    }

    /// What is said of a validation that does not hold; the error is what is said instead if there is no
    /// budget left.
    fn message(&mut self, validation: &'p Validation) -> Result<Result<String, String>, TooCostly> {
        let Some(program) = &validation.message_program else {
            return Ok(Ok(validation.plain_message()));
        };
        let computed = match self.run("", program) {
            Ok(value) => value.as_str().unwrap_or_default().trim().to_owned(),
            Err(Stopped::TooCostly) => return Err(TooCostly),
            Err(Stopped::OutOfBudget) => {
                return Ok(Err(format!("failed messageExpression: {OUT_OF_BUDGET}")));
            }
            Err(Stopped::Failed(_)) => String::new(),
        };
        let is_fit =
            !computed.is_empty() && computed.len() <= MAX_MESSAGE && !computed.contains('\n');
        Ok(Ok(if is_fit {
            computed
        } else {
            validation.plain_message()
        }))
    }

    /// The note that an expression makes, if it makes one.
    fn note(
        &mut self,
        annotation: &'p Annotation,
        ignores_failures: bool,
    ) -> Result<Option<Result<String, String>>, TooCostly> {
        let why = match self.run(&annotation.expression, &annotation.program) {
            Ok(CelValue::Null) => return Ok(None),
            Ok(value) => {
                let note = value.as_str().unwrap_or_default().trim();
                let mut end = note.len().min(MAX_ANNOTATION);
                while !note.is_char_boundary(end) {
                    end -= 1;
                }
                return Ok((!note.is_empty()).then(|| Ok(note[..end].to_owned())));
            }
            Err(Stopped::Failed(why)) => why,
            Err(Stopped::OutOfBudget) => OUT_OF_BUDGET.to_owned(),
            Err(Stopped::TooCostly) => return Err(TooCostly),
        };
        Ok((!ignores_failures).then_some(Err(why)))
    }
}

#[cfg(test)]
mod tests;
