//! ValidatingAdmissionPolicies and their bindings: compiled once, evaluated often.

mod binding;
mod check;
mod evaluate;

use bellwether_cel::{Env, Program, Type};
use serde_json::Value;

pub use binding::{Action, Binding};
pub use check::{problems, warnings};
pub use evaluate::{Judgement, Refusal, judge};

use crate::condition::Conditions;
use crate::criteria::Criteria;
use crate::environment::{self, Authority};

/// A policy, ready to be evaluated.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    criteria: Criteria,
    /// `apiVersion` and `kind` of its parameters.
    params: Option<(String, String)>,
    ignores_failures: bool,
    variables: Vec<Variable>,
    conditions: Conditions,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

/// A named expression that others use.
#[derive(Debug)]
struct Variable {
    name: String,
    /// How expressions name it: `variables.NAME`.
    path: String,
    program: Result<Program, String>,
}

/// One expression that has to hold.
#[derive(Debug)]
struct Validation {
    expression: String,
    program: Result<Program, String>,
    message: String,
    message_program: Option<Result<Program, String>>,
    reason: String,
}

/// A note for the audit log.
#[derive(Debug)]
struct Annotation {
    key: String,
    expression: String,
    program: Result<Program, String>,
}

/// The variables of a policy, and the environments of what comes after them.
struct Declared {
    /// What most expressions see.
    env: Env,
    /// What expressions of messages see, which may ask no authorizer.
    messages: Env,
    variables: Vec<Variable>,
}

/// Declares the variables of a policy, each of which sees those before it.
fn declare_variables(spec: &Value, has_params: bool) -> Declared {
    let mut variables: Vec<Variable> = Vec::new();
    let mut types: Vec<Type> = Vec::new();
    let build = |authority: Authority, variables: &[Variable], types: &[Type]| {
        let mut builder = environment::builder(has_params, authority);
        for (variable, of) in variables.iter().zip(types) {
            builder = builder.variable(&variable.path, of.clone());
        }
        builder.build()
    };
    let mut env = build(Authority::Full, &variables, &types);
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let text = |field: &str| variable[field].as_str().unwrap_or_default();
        let program = env.compile(text("expression"));
        let program = program.map_err(|errors| format!("compilation failed: {errors}"));
        types.push(
            program
                .as_ref()
                .map_or(Type::Dyn, |program| program.output_type().clone()),
        );
        variables.push(Variable {
            name: text("name").to_owned(),
            path: format!("variables.{}", text("name")),
            program,
        });
        env = build(Authority::Full, &variables, &types);
    }
    Declared {
        env,
        messages: build(Authority::Hidden, &variables, &types),
        variables,
    }
}

impl Policy {
    /// Compiles a policy. Expressions that cannot be compiled fail when they are evaluated.
    pub fn compile(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let params = &spec["paramKind"];
        let has_params = params.is_object();
        let Declared {
            env,
            messages,
            variables,
        } = declare_variables(spec, has_params);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let validations = spec["validations"].as_array().into_iter().flatten();
        let validations = validations.map(|validation| {
            let message = validation["messageExpression"].as_str().unwrap_or_default();
            let message = (!message.is_empty())
                .then(|| environment::compile(&messages, message, &[Type::String]));
            let expression = text(&validation["expression"]);
            Validation {
                program: environment::compile(&env, &expression, &[Type::Bool]),
                expression,
                message: text(&validation["message"]),
                message_program: message,
                reason: text(&validation["reason"]),
            }
        });
        let annotations = spec["auditAnnotations"].as_array().into_iter().flatten();
        let annotations = annotations.map(|annotation| {
            let expression = text(&annotation["valueExpression"]);
            Annotation {
                key: text(&annotation["key"]),
                program: environment::compile(&env, &expression, &[Type::String, Type::Null]),
                expression,
            }
        });
        Self {
            name: text(&policy["metadata"]["name"]),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            params: has_params.then(|| (text(&params["apiVersion"]), text(&params["kind"]))),
            ignores_failures: spec["failurePolicy"] == "Ignore",
            conditions: Conditions::compile(&env, spec),
            validations: validations.collect(),
            annotations: annotations.collect(),
            variables,
        }
    }
}
