//! Rules in CEL (`x-kubernetes-validations`): compiled once, run on every write.
//!
//! A [`RuleTree`] has the shape of its schema and holds the rules where they apply. `self` is typed
//! by the schema; rules that mention `oldSelf` run where there is an old value to compare with. All
//! rules on one object share a budget.

pub(crate) mod cost;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_cel::{DeclType, Env, LibrarySet, Program, Stage, Type as CelType};
use serde_json::Value;

use crate::field_path::{self, Brackets};
use crate::model::{Rule, Schema};
use crate::publish;

pub(crate) use run::run;

/// The rules of a schema and of those inside it.
#[derive(Debug)]
pub(crate) struct RuleTree {
    rules: Vec<CompiledRule>,
    /// Whether there are rules, but no type that they could use.
    untyped: bool,
    items: Option<Box<RuleTree>>,
    properties: BTreeMap<String, RuleTree>,
    additional: Option<Box<RuleTree>>,
}

/// One rule, and what became of it.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) rule: Rule,
    /// The rule ready to run, or why it cannot be compiled.
    pub(crate) outcome: Result<Prepared, String>,
}

/// A rule ready to run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) program: Program,
    pub(crate) uses_old_self: bool,
    /// What computes the message, or why it cannot be compiled.
    pub(crate) message: Option<Result<Program, String>>,
    /// The path of the field to blame, as it is printed.
    pub(crate) field_path: Option<String>,
}

/// What is known about the value of a schema, as far as expressions care; `None` if they cannot use
/// it.
pub fn declare(schema: &Schema, is_resource: bool) -> Option<DeclType> {
    DeclType::from_schema(&publish::as_written(schema), is_resource)
}

/// What is declared about a property.
pub(crate) fn declared_field<'a>(decl: &'a DeclType, name: &str) -> Option<&'a DeclType> {
    let DeclType::Object(object) = decl else {
        return None;
    };
    object
        .fields
        .get(name)
        .filter(|field| !matches!(field, DeclType::Preserved))
}

/// What is declared about the items of a list or the values of a map.
pub(crate) fn declared_element(decl: &DeclType) -> Option<&DeclType> {
    match decl {
        DeclType::List(list) => Some(&list.items),
        DeclType::Map(map) => Some(&map.values),
        _ => None,
    }
}

impl RuleTree {
    /// Compiles all rules of `schema`; `None` if there are none.
    pub(crate) fn compile(schema: &Schema, is_resource: bool) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        build(schema, declare(schema, is_resource).as_ref())
    }
}

fn has_rules(schema: &Schema) -> bool {
    let children = schema
        .items
        .iter()
        .chain(&schema.additional_properties)
        .chain(schema.properties.values());
    !schema.rules.is_empty() || children.into_iter().any(|child| has_rules(child))
}

fn build(schema: &Schema, decl: Option<&DeclType>) -> Option<RuleTree> {
    let element = decl.and_then(declared_element);
    let child = |schema: &Arc<Schema>| build(schema, element).map(Box::new);
    let mut tree = RuleTree {
        rules: decl
            .map(|decl| compile_rules(schema, decl))
            .unwrap_or_default(),
        untyped: decl.is_none() && !schema.rules.is_empty(),
        items: schema.items.as_ref().and_then(child),
        properties: BTreeMap::new(),
        additional: schema
            .additional_properties
            .as_ref()
            .filter(|additional| !additional.is_unspecified())
            .and_then(child),
    };
    for (name, property) in &schema.properties {
        // Fields of unknown types are left out of validation by rules.
        let Some(decl) = decl.and_then(|decl| declared_field(decl, name)) else {
            continue;
        };
        if let Some(property) = build(property, Some(decl)) {
            tree.properties.insert(name.clone(), property);
        }
    }
    let is_empty = tree.rules.is_empty()
        && !tree.untyped
        && tree.items.is_none()
        && tree.properties.is_empty()
        && tree.additional.is_none();
    (!is_empty).then_some(tree)
}

/// Compiles the rules of one schema, without those inside it.
pub(crate) fn compile_rules(schema: &Schema, decl: &DeclType) -> Vec<CompiledRule> {
    if schema.rules.is_empty() {
        return Vec::new();
    }
    let decl = Arc::new(decl.clone());
    let base = || {
        Env::builder()
            .libraries(LibrarySet::KUBERNETES)
            .schema_variable("self", &decl)
    };
    let plain = base().schema_variable("oldSelf", &decl).build();
    let optional = base().optional_schema_variable("oldSelf", &decl).build();
    let compile = |rule: &Rule| {
        let env = if rule.optional_old_self == Some(true) {
            &optional
        } else {
            &plain
        };
        CompiledRule {
            outcome: prepare(rule, schema, env),
            rule: rule.clone(),
        }
    };
    // A rule without text is refused when the definition is written.
    schema
        .rules
        .iter()
        .filter(|rule| !rule.rule.trim().is_empty())
        .map(compile)
        .collect()
}

fn prepare(rule: &Rule, schema: &Schema, env: &Env) -> Result<Prepared, String> {
    let program = env
        .compile(&rule.rule)
        .map_err(|errors| match errors.stage() {
            Stage::Compile => format!("compilation failed: {errors}"),
            Stage::Program => format!("program instantiation failed: {errors}"),
        })?;
    if *program.output_type() != CelType::Bool {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    let message = rule
        .message_expression
        .as_deref()
        .filter(|text| !text.is_empty());
    let field_path = rule
        .field_path
        .as_deref()
        .filter(|path| !path.is_empty())
        .and_then(|path| {
            let resolved = field_path::resolve(path, schema, Brackets::Allowed);
            resolved.ok().map(|(printed, _)| printed)
        });
    Ok(Prepared {
        uses_old_self: program.references("oldSelf"),
        program,
        message: message.map(|text| prepare_message(text, env)),
        field_path,
    })
}

fn prepare_message(text: &str, env: &Env) -> Result<Program, String> {
    let program = env.compile(text).map_err(|errors| match errors.stage() {
        Stage::Compile => format!("messageExpression compilation failed: {errors}"),
        Stage::Program => format!("messageExpression instantiation failed: {errors}"),
    })?;
    if *program.output_type() != CelType::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    Ok(program)
}

/// The text that stands for a rule in errors.
fn describe(rule: &Rule) -> &str {
    match rule.message.as_deref() {
        Some(message) if !message.is_empty() => message.trim(),
        _ => rule.rule.trim(),
    }
}

/// Whether a value is there for a rule to look at.
fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests;
