//! What is wrong with the expressions of a policy: errors when it is written, warnings in its status.

use bellwether_cel::{DeclType, Env, Type};
use serde_json::{Value, json};

use super::{Declared, declare_variables};
use crate::environment::{self, Authority};

/// Expressions of a policy, or of webhooks, that cannot be compiled: the path of each, its text, and what
/// is wrong.
pub fn problems(kind: &str, object: &Value) -> Vec<(String, String, String)> {
    match kind {
        "ValidatingAdmissionPolicy" => policy_problems(&object["spec"]),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let env = environment::builder(false, Authority::Full).build();
            let webhooks = object["webhooks"].as_array().into_iter().flatten();
            let webhooks = webhooks.enumerate();
            let found = webhooks.flat_map(|(index, webhook)| {
                conditions(&env, webhook, &format!("webhooks[{index}]"))
            });
            found.collect()
        }
        _ => Vec::new(),
    }
}

fn conditions(env: &Env, source: &Value, path: &str) -> Vec<(String, String, String)> {
    list(source, "matchConditions")
        .filter_map(|(index, item)| {
            let path = format!("{path}.matchConditions[{index}].expression");
            problem(env, path, &item["expression"], &[Type::Bool])
        })
        .collect()
}

fn list<'a>(source: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    source[field].as_array().into_iter().flatten().enumerate()
}

fn problem(
    env: &Env,
    path: String,
    expression: &Value,
    types: &[Type],
) -> Option<(String, String, String)> {
    let expression = expression.as_str().filter(|text| !text.trim().is_empty())?;
    let why = environment::compile(env, expression, types).err()?;
    Some((path, expression.to_owned(), why))
}

fn policy_problems(spec: &Value) -> Vec<(String, String, String)> {
    let Declared {
        env,
        messages,
        variables,
    } = declare_variables(spec, spec["paramKind"].is_object());
    let mut found = Vec::new();
    for (index, (item, variable)) in spec["variables"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(variables)
        .enumerate()
    {
        if let Err(why) = variable.program {
            let path = format!("spec.variables[{index}].expression");
            let expression = item["expression"].as_str().unwrap_or_default();
            found.push((path, expression.to_owned(), why));
        }
    }
    found.extend(conditions(&env, spec, "spec"));
    for (index, item) in list(spec, "validations") {
        let path = format!("spec.validations[{index}]");
        let expression = &item["expression"];
        found.extend(problem(
            &env,
            format!("{path}.expression"),
            expression,
            &[Type::Bool],
        ));
        let message = &item["messageExpression"];
        let path = format!("{path}.messageExpression");
        found.extend(problem(&messages, path, message, &[Type::String]));
    }
    for (index, item) in list(spec, "auditAnnotations") {
        let path = format!("spec.auditAnnotations[{index}].valueExpression");
        let types = [Type::String, Type::Null];
        found.extend(problem(&env, path, &item["valueExpression"], &types));
    }
    found
}

/// Warnings about expressions that contradict the schemas of the kinds that a policy is about: the
/// `expressionWarnings` of its status. `kinds` has names as messages show them, and what is declared.
pub fn warnings(
    spec: &Value,
    kinds: &[(String, DeclType)],
    params: Option<&DeclType>,
) -> Vec<Value> {
    let mut found = Vec::new();
    for (index, item) in list(spec, "validations") {
        for field in ["expression", "messageExpression"] {
            let Some(expression) = item[field].as_str().filter(|text| !text.is_empty()) else {
                continue;
            };
            let texts: Vec<String> = kinds
                .iter()
                .filter_map(|(name, decl)| {
                    let env = typed_environment(spec, decl, params);
                    let errors = env.compile(expression).err()?;
                    Some(format!("{name}: compilation failed: {errors}\n"))
                })
                .collect();
            if !texts.is_empty() {
                found.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": texts.join("\n"),
                }));
            }
        }
    }
    found
}

fn typed_environment(spec: &Value, decl: &DeclType, params: Option<&DeclType>) -> Env {
    let decl = std::sync::Arc::new(decl.clone());
    let mut builder = environment::builder(spec["paramKind"].is_object(), Authority::Plain)
        .schema_variable("object", &decl)
        .schema_variable("oldObject", &decl);
    if let Some(params) = params {
        builder = builder.schema_variable("params", &std::sync::Arc::new(params.clone()));
    }
    let declared = declare_variables(spec, spec["paramKind"].is_object());
    for variable in declared.variables {
        let of = variable
            .program
            .as_ref()
            .map_or(Type::Dyn, |program| program.output_type().clone());
        builder = builder.variable(&variable.path, of);
    }
    builder.build()
}
