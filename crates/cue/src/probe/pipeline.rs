//! A component with its traits: render, patch, collect.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Fields, field, text};
use crate::builtins::write_json;
use crate::diagnostic::Diagnostic;
use crate::host::{Budget, Evaluation, FieldOptions, Handle, SyntaxOptions, Template};
use crate::patch::{self, Operand, Strategy};
use crate::value::Value;

/// Runs a record of kind `pipeline`.
pub(super) fn run(record: &Value, budget: Budget) -> Fields {
    match assemble(record, budget) {
        Ok(fields) => fields,
        Err(failure) => vec![
            field("status", Value::string("error")),
            field("stage", Value::string(format!("error:{}", failure.stage))),
            field("msg", Value::string(failure.message)),
        ],
    }
}

/// Where a run ended early, and why.
struct Failure {
    stage: &'static str,
    message: String,
}

fn failure(stage: &'static str, message: impl std::fmt::Display) -> Failure {
    Failure {
        stage,
        message: message.to_string(),
    }
}

fn first_problem(stage: &'static str, problems: &[Diagnostic]) -> Failure {
    failure(
        stage,
        problems
            .first()
            .map_or_else(String::new, ToString::to_string),
    )
}

/// An object on its way: an evaluation and the value in it.
struct Object {
    evaluation: Evaluation,
    value: Handle,
}

impl Object {
    /// A value of another evaluation on its own, with its defaults still open.
    fn detached(
        evaluation: &mut Evaluation,
        value: Handle,
        budget: Budget,
    ) -> Result<Self, Failure> {
        let options = SyntaxOptions {
            docs: true,
            imports: true,
            ..SyntaxOptions::default()
        };
        let source = evaluation
            .source(value, options)
            .map_err(|problem| first_problem("detach", &[problem]))?;
        let template =
            Template::compile(&source).map_err(|problems| first_problem("detach", &problems))?;
        let evaluation = template.evaluate(budget);
        let value = evaluation.root();
        Ok(Object { evaluation, value })
    }

    fn patch(
        &mut self,
        patch: Operand<'_>,
        strategy: Strategy,
        budget: Budget,
    ) -> Result<(), Failure> {
        let base = Operand {
            evaluation: &mut self.evaluation,
            value: self.value,
        };
        let evaluation = patch::apply(base, patch, strategy, budget)
            .map_err(|error| failure("trait-patch", error))?;
        self.value = evaluation.root();
        self.evaluation = evaluation;
        Ok(())
    }

    fn export(&mut self) -> Result<Value, Failure> {
        let problems = self.evaluation.validate_concrete(self.value);
        if !problems.is_empty() {
            return Err(first_problem("final", &problems));
        }
        self.evaluation
            .export(self.value)
            .map_err(|problem| failure("final", problem))
    }
}

fn assemble(record: &Value, budget: Budget) -> Result<Fields, Failure> {
    let context = record
        .field("context")
        .cloned()
        .unwrap_or_else(|| Value::structure([]));
    let component = record
        .field("component")
        .ok_or_else(|| failure("read", "record without component"))?;
    let mut rendered = render(component, &context, "comp-validate", budget)?;
    let root = rendered.root();
    let Some(output) = rendered.lookup(root, "output") else {
        return Err(failure("comp-output", "component has no output"));
    };
    let mut auxiliaries: Vec<(Arc<str>, Object)> = Vec::new();
    collect_outputs(&mut rendered, &mut auxiliaries, budget)?;
    let mut base = Object {
        evaluation: rendered,
        value: output,
    };
    if let Some(Value::List(traits)) = record.field("traits") {
        for definition in traits.iter() {
            apply_trait(definition, &context, &mut base, &mut auxiliaries, budget)?;
        }
    }
    let mut outputs = Vec::new();
    for (name, object) in &mut auxiliaries {
        outputs.push((name.clone(), object.export()?));
    }
    let order = Value::list(outputs.iter().map(|(name, _)| Value::String(name.clone())));
    Ok(vec![
        field("status", Value::string("ok")),
        field("output", base.export()?),
        field("outputs", Value::structure(last_of_each(outputs))),
        field("outputs_order", order),
    ])
}

/// Evaluates a definition with its parameter and context, as one file.
fn render(
    definition: &Value,
    context: &Value,
    stage: &'static str,
    budget: Budget,
) -> Result<Evaluation, Failure> {
    let mut source = text(definition, "template").unwrap_or("").to_owned();
    source.push_str("\ncontext: _\nparameter: _\n");
    if let Some(parameter) = definition.field("parameter")
        && *parameter != Value::Null
    {
        let _ = writeln!(source, "parameter: {}", write_json(parameter));
    }
    let _ = writeln!(source, "context: {}", write_json(context));
    let template =
        Template::compile(&source).map_err(|problems| first_problem(stage, &problems))?;
    let mut evaluation = template.evaluate(budget);
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if problems.is_empty() {
        Ok(evaluation)
    } else {
        Err(first_problem(stage, &problems))
    }
}

/// Two traits may give an object the same name; the later one's counts.
fn last_of_each(objects: Fields) -> Fields {
    let mut kept: Fields = Vec::with_capacity(objects.len());
    for (name, object) in objects {
        match kept.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => *earlier = object,
            None => kept.push((name, object)),
        }
    }
    kept
}

fn collect_outputs(
    rendered: &mut Evaluation,
    auxiliaries: &mut Vec<(Arc<str>, Object)>,
    budget: Budget,
) -> Result<(), Failure> {
    let root = rendered.root();
    let Some(outputs) = rendered.lookup(root, "outputs") else {
        return Ok(());
    };
    for entry in rendered.fields(outputs, FieldOptions::default()) {
        let object = Object::detached(rendered, entry.value, budget)?;
        auxiliaries.push((entry.name, object));
    }
    Ok(())
}

/// The context a trait sees: what was rendered so far, with defaults resolved.
fn trait_context(
    context: &Value,
    base: &mut Object,
    auxiliaries: &mut [(Arc<str>, Object)],
) -> Result<Value, Failure> {
    let mut fields = match context {
        Value::Struct(fields) => fields.to_vec(),
        _ => Vec::new(),
    };
    let export = |object: &mut Object| {
        let exported = object.evaluation.export(object.value);
        exported.map_err(|problem| failure("trait-context", problem))
    };
    fields.push(field("output", export(base)?));
    if !auxiliaries.is_empty() {
        let mut outputs = Vec::new();
        for (name, object) in auxiliaries.iter_mut() {
            outputs.push((name.clone(), export(object)?));
        }
        fields.push(field("outputs", Value::structure(last_of_each(outputs))));
    }
    Ok(Value::structure(fields))
}

fn apply_trait(
    definition: &Value,
    context: &Value,
    base: &mut Object,
    auxiliaries: &mut Vec<(Arc<str>, Object)>,
    budget: Budget,
) -> Result<(), Failure> {
    let context = trait_context(context, base, auxiliaries)?;
    let mut rendered = render(definition, &context, "trait-validate", budget)?;
    collect_outputs(&mut rendered, auxiliaries, budget)?;
    let root = rendered.root();
    if let Some(value) = rendered.lookup(root, "patch") {
        let strategy = patch::strategy(&mut rendered, value);
        base.patch(
            Operand {
                evaluation: &mut rendered,
                value,
            },
            strategy,
            budget,
        )?;
    }
    if let Some(patches) = rendered.lookup(root, "patchOutputs") {
        for (name, object) in auxiliaries.iter_mut() {
            if let Some(value) = rendered.lookup(patches, name) {
                let operand = Operand {
                    evaluation: &mut rendered,
                    value,
                };
                object.patch(operand, Strategy::Unify, budget)?;
            }
        }
    }
    Ok(())
}
