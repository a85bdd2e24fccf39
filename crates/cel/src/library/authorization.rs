//! Asking the authorizer of a cluster: `authorizer.group('apps').resource('deployments').check('list').allowed()`.

use std::fmt;
use std::sync::Arc;

use bellwether_json::name::{dns_label_problems, dns_subdomain_problems};

use super::text;
use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::types::AbstractType;
use crate::value::Value;

/// Decides what somebody may do. Bind one with [`Authorization::authorizer`].
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides about one action.
    fn authorize(&self, check: &AccessCheck<'_>) -> AccessDecision;
}

/// An action that an expression asks about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCheck<'c> {
    /// Namespace and name of the service account that is asked about; none for the sender of the request.
    pub account: Option<(&'c str, &'c str)>,
    /// The verb.
    pub verb: &'c str,
    /// A path that is no resource; empty for a resource.
    pub path: &'c str,
    /// API group, empty for core.
    pub group: &'c str,
    /// Plural name of the resource; empty for a path.
    pub resource: &'c str,
    /// Subresource, or nothing.
    pub subresource: &'c str,
    /// Namespace, or nothing.
    pub namespace: &'c str,
    /// Name of an object, or nothing.
    pub name: &'c str,
    /// Field selector of a list, or nothing.
    pub field_selector: &'c str,
    /// Label selector of a list, or nothing.
    pub label_selector: &'c str,
}

/// What an authorizer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// True if it may happen.
    pub allowed: bool,
    /// Why, as far as the authorizer says.
    pub reason: String,
    /// What went wrong while it decided.
    pub error: Option<String>,
}

/// Values that only functions of this library look into.
#[derive(Debug, Clone)]
pub enum Authorization<'a> {
    /// `authorizer`
    Authorizer(SubjectAuthorizer<'a>),
    /// `authorizer.path(…)`
    Path(SubjectAuthorizer<'a>, Arc<str>),
    /// `authorizer.group(…)`
    Group(SubjectAuthorizer<'a>, Arc<str>),
    /// `authorizer.group(…).resource(…)`, and what was added to it.
    Resource(ResourceCheck<'a>),
    /// `check(…)`
    Decision(AccessDecision),
}

/// The authorizer, and the account whose rights it is asked about: the sender of the request where there is none.
#[derive(Debug, Clone)]
pub struct SubjectAuthorizer<'a> {
    authorizer: &'a dyn Authorizer,
    account: Option<(Arc<str>, Arc<str>)>,
}

/// What is to be checked of a resource.
#[derive(Debug, Clone)]
pub struct ResourceCheck<'a> {
    subject: SubjectAuthorizer<'a>,
    group: Arc<str>,
    resource: Arc<str>,
    subresource: Arc<str>,
    namespace: Arc<str>,
    name: Arc<str>,
    field_selector: Arc<str>,
    label_selector: Arc<str>,
}

impl<'a> Authorization<'a> {
    /// The value of the variable `authorizer`.
    pub fn authorizer(authorizer: &'a dyn Authorizer) -> Value<'a> {
        value(Authorization::Authorizer(SubjectAuthorizer::sender(
            authorizer,
        )))
    }

    /// The value of the variable `authorizer.requestResource`; verb, path and selectors of `request` do not count.
    pub fn request_resource(
        authorizer: &'a dyn Authorizer,
        request: &AccessCheck<'_>,
    ) -> Value<'a> {
        value(Authorization::Resource(ResourceCheck {
            subresource: request.subresource.into(),
            namespace: request.namespace.into(),
            name: request.name.into(),
            ..ResourceCheck::new(
                SubjectAuthorizer::sender(authorizer),
                request.group.into(),
                request.resource.into(),
            )
        }))
    }

    pub(crate) fn abstract_type(&self) -> AbstractType {
        match self {
            Authorization::Authorizer(_) => AbstractType::Authorizer,
            Authorization::Path(..) => AbstractType::PathCheck,
            Authorization::Group(..) => AbstractType::GroupCheck,
            Authorization::Resource(_) => AbstractType::ResourceCheck,
            Authorization::Decision(_) => AbstractType::Decision,
        }
    }
}

impl<'a> SubjectAuthorizer<'a> {
    fn sender(authorizer: &'a dyn Authorizer) -> Self {
        SubjectAuthorizer {
            authorizer,
            account: None,
        }
    }

    /// Asks the authorizer about its account.
    fn decide<'v>(&self, check: AccessCheck<'_>) -> Value<'v> {
        let account = self.account.as_ref();
        let check = AccessCheck {
            account: account.map(|(namespace, name)| (&**namespace, &**name)),
            ..check
        };
        value(Authorization::Decision(self.authorizer.authorize(&check)))
    }
}

impl<'a> ResourceCheck<'a> {
    fn new(subject: SubjectAuthorizer<'a>, group: Arc<str>, resource: Arc<str>) -> Self {
        let nothing: Arc<str> = "".into();
        ResourceCheck {
            subject,
            group,
            resource,
            subresource: nothing.clone(),
            namespace: nothing.clone(),
            name: nothing.clone(),
            field_selector: nothing.clone(),
            label_selector: nothing,
        }
    }
}

fn value(value: Authorization<'_>) -> Value<'_> {
    Value::Authorization(Arc::new(value))
}

pub(super) fn declare(functions: &mut Functions) {
    declare_authorizer(functions);
    declare_resource(functions);
    declare_decision(functions);
}

fn declare_authorizer(functions: &mut Functions) {
    functions.add(
        "authorizer_path",
        "kubernetes.authorization.Authorizer::path(string) -> kubernetes.authorization.PathCheck",
        |a| {
            let path = filled(a, "path must not be empty")?;
            Ok(value(Authorization::Path(authorizer(a)?.clone(), path)))
        },
    );
    functions.add(
        "authorizer_group",
        "kubernetes.authorization.Authorizer::group(string) -> kubernetes.authorization.GroupCheck",
        |a| {
            let group = text(a, 1)?.into();
            Ok(value(Authorization::Group(authorizer(a)?.clone(), group)))
        },
    );
    functions.add(
        "authorizer_serviceaccount",
        "kubernetes.authorization.Authorizer::serviceAccount(string, string) -> kubernetes.authorization.Authorizer",
        |a| {
            let (namespace, name) = (text(a, 1)?, text(a, 2)?);
            if !dns_subdomain_problems(name).is_empty() {
                return Err(EvalError::failed("Invalid service account name"));
            }
            if !dns_label_problems(namespace).is_empty() {
                return Err(EvalError::failed("Invalid service account namespace"));
            }
            Ok(value(Authorization::Authorizer(SubjectAuthorizer {
                authorizer: authorizer(a)?.authorizer,
                account: Some((namespace.into(), name.into())),
            })))
        },
    );
    functions.add(
        "groupcheck_resource",
        "kubernetes.authorization.GroupCheck::resource(string) -> kubernetes.authorization.ResourceCheck",
        |a| {
            let resource = filled(a, "resource must not be empty")?;
            let Some(Authorization::Group(subject, group)) = authorization(a) else {
                return Err(EvalError::no_such_overload());
            };
            let check = ResourceCheck::new(subject.clone(), group.clone(), resource);
            Ok(value(Authorization::Resource(check)))
        },
    );
    functions.add(
        "pathcheck_check",
        "kubernetes.authorization.PathCheck::check(string) -> kubernetes.authorization.Decision",
        |a| {
            let Some(Authorization::Path(subject, path)) = authorization(a) else {
                return Err(EvalError::no_such_overload());
            };
            let (verb, path) = (text(a, 1)?, &**path);
            Ok(subject.decide(AccessCheck {
                verb,
                path,
                ..AccessCheck::default()
            }))
        },
    );
}

fn declare_resource(functions: &mut Functions) {
    const CHECK: &str = "kubernetes.authorization.ResourceCheck";
    let builders: [(&str, &str, crate::declaration::Plain); 5] = [
        ("resourcecheck_subresource", "subresource", |a| {
            with(a, |check| &mut check.subresource)
        }),
        ("resourcecheck_namespace", "namespace", |a| {
            with(a, |check| &mut check.namespace)
        }),
        ("resourcecheck_name", "name", |a| {
            with(a, |check| &mut check.name)
        }),
        ("authorizer_fieldselector", "fieldSelector", |a| {
            with(a, |check| &mut check.field_selector)
        }),
        ("authorizer_labelselector", "labelSelector", |a| {
            with(a, |check| &mut check.label_selector)
        }),
    ];
    for (id, name, run) in builders {
        functions.add(id, &format!("{CHECK}::{name}(string) -> {CHECK}"), run);
    }
    functions.add(
        "resourcecheck_check",
        "kubernetes.authorization.ResourceCheck::check(string) -> kubernetes.authorization.Decision",
        |a| {
            let check = resource(a)?;
            Ok(check.subject.decide(AccessCheck {
                account: None,
                verb: text(a, 1)?,
                path: "",
                group: &check.group,
                resource: &check.resource,
                subresource: &check.subresource,
                namespace: &check.namespace,
                name: &check.name,
                field_selector: &check.field_selector,
                label_selector: &check.label_selector,
            }))
        },
    );
}

fn declare_decision(functions: &mut Functions) {
    functions.add(
        "decision_allowed",
        "kubernetes.authorization.Decision::allowed() -> bool",
        |a| Ok(Value::Bool(decision(a)?.allowed)),
    );
    functions.add(
        "decision_reason",
        "kubernetes.authorization.Decision::reason() -> string",
        |a| Ok(Value::text(decision(a)?.reason.as_str())),
    );
    functions.add(
        "decision_errored",
        "kubernetes.authorization.Decision::errored() -> bool",
        |a| Ok(Value::Bool(decision(a)?.error.is_some())),
    );
    functions.add(
        "decision_error",
        "kubernetes.authorization.Decision::error() -> string",
        |a| {
            Ok(Value::text(
                decision(a)?.error.as_deref().unwrap_or_default(),
            ))
        },
    );
}

fn authorization<'v, 'a>(arguments: &'v [Value<'a>]) -> Option<&'v Authorization<'a>> {
    match arguments.first() {
        Some(Value::Authorization(value)) => Some(value),
        _ => None,
    }
}

fn authorizer<'v, 'a>(arguments: &'v [Value<'a>]) -> Result<&'v SubjectAuthorizer<'a>, EvalError> {
    match authorization(arguments) {
        Some(Authorization::Authorizer(subject)) => Ok(subject),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn resource<'v, 'a>(arguments: &'v [Value<'a>]) -> Result<&'v ResourceCheck<'a>, EvalError> {
    match authorization(arguments) {
        Some(Authorization::Resource(check)) => Ok(check),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn decision<'v>(arguments: &'v [Value<'_>]) -> Result<&'v AccessDecision, EvalError> {
    match authorization(arguments) {
        Some(Authorization::Decision(decision)) => Ok(decision),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The text after the receiver, which must not be blank.
fn filled(arguments: &[Value<'_>], problem: &'static str) -> Result<Arc<str>, EvalError> {
    let text = text(arguments, 1)?;
    if text.trim().is_empty() {
        return Err(EvalError::failed(problem));
    }
    Ok(text.into())
}

/// A check with one of its parts set.
fn with<'a>(
    arguments: &[Value<'a>],
    part: for<'c> fn(&'c mut ResourceCheck<'a>) -> &'c mut Arc<str>,
) -> Outcome<'a> {
    let mut check = resource(arguments)?.clone();
    *part(&mut check) = text(arguments, 1)?.into();
    Ok(value(Authorization::Resource(check)))
}

#[cfg(test)]
mod tests;
