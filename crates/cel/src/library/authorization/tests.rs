use super::*;
use crate::{Budget, Env, LibrarySet, Type, Vars};

/// Lets everybody read pods, and writes down what it was asked as the reason.
#[derive(Debug)]
struct Readers;

impl Authorizer for Readers {
    fn authorize(&self, check: &AccessCheck<'_>) -> AccessDecision {
        if check.verb == "fail" {
            return AccessDecision {
                error: Some("no answer".into()),
                ..AccessDecision::default()
            };
        }
        AccessDecision {
            allowed: check.verb == "get" && check.resource == "pods" || check.path == "/healthz",
            reason: format!("{check:?}"),
            error: None,
        }
    }
}

fn environment() -> Env {
    Env::builder()
        .libraries(LibrarySet::KUBERNETES)
        .variable("authorizer", Type::Abstract(AbstractType::Authorizer))
        .variable(
            "authorizer.requestResource",
            Type::Abstract(AbstractType::ResourceCheck),
        )
        .build()
}

fn evaluate(expression: &str) -> (Result<serde_json::Value, String>, u64) {
    let program = match environment().compile(expression) {
        Ok(program) => program,
        Err(errors) => return (Err(errors.to_string()), 0),
    };
    let request = AccessCheck {
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "n",
        name: "web",
        ..AccessCheck::default()
    };
    let vars = Vars::new()
        .value("authorizer", Authorization::authorizer(&Readers))
        .value(
            "authorizer.requestResource",
            Authorization::request_resource(&Readers, &request),
        );
    let mut budget = Budget::kubernetes();
    let found = program.evaluate(&vars, &mut budget);
    let found = found.map(|value| value.to_json());
    (found.map_err(|error| error.to_string()), budget.spent())
}

#[track_caller]
fn check(expression: &str, expected: &str) {
    let found = match evaluate(expression).0 {
        Ok(value) => value.to_string(),
        Err(why) => why,
    };
    assert_eq!(found, expected, "{expression}");
}

#[test]
fn a_check_says_whether_something_may_be_done() {
    check(
        "authorizer.group('').resource('pods').check('get').allowed()",
        "true",
    );
    check(
        "authorizer.group('').resource('pods').check('list').allowed()",
        "false",
    );
    check("authorizer.path('/healthz').check('get').allowed()", "true");
    check(
        "authorizer.path('/metrics').check('get').errored()",
        "false",
    );
    check("authorizer.path('/metrics').check('get').error()", "\"\"");
    check(
        "authorizer.path('/metrics').check('fail').errored()",
        "true",
    );
    check(
        "authorizer.path('/metrics').check('fail').error()",
        "\"no answer\"",
    );
    check("authorizer.requestResource.check('get').allowed()", "false");
}

#[test]
fn everything_that_a_check_says_is_asked() {
    let asked = |expression: &str| match evaluate(expression).0 {
        Ok(serde_json::Value::String(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let expected = AccessCheck {
        account: Some(("team", "robot")),
        verb: "list",
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "n",
        name: "web",
        field_selector: "a=b",
        label_selector: "c in (d)",
        path: "",
    };
    let expression = "authorizer.serviceAccount('team', 'robot').group('apps')\
        .resource('deployments').subresource('scale').namespace('n').name('web')\
        .fieldSelector('a=b').labelSelector('c in (d)').check('list').reason()";
    assert_eq!(asked(expression), format!("{expected:?}"));
    let expected = AccessCheck {
        account: None,
        verb: "update",
        field_selector: "",
        label_selector: "",
        ..expected
    };
    let found = asked("authorizer.requestResource.check('update').reason()");
    assert_eq!(found, format!("{expected:?}"));
}

#[test]
fn names_are_checked() {
    check(
        "authorizer.path(' ').check('get').allowed()",
        "path must not be empty",
    );
    check(
        "authorizer.group('').resource('').check('get').allowed()",
        "resource must not be empty",
    );
    check(
        "authorizer.serviceAccount('A', 'b').path('/').check('get').allowed()",
        "Invalid service account namespace",
    );
    check(
        "authorizer.serviceAccount('a', 'B').path('/').check('get').allowed()",
        "Invalid service account name",
    );
}

#[test]
fn an_expression_may_ask_twice() {
    let once = "authorizer.path('/healthz').check('get').allowed()";
    // The variable, and the functions beside the check.
    assert_eq!(evaluate(once).1, 350_000 + 3);
    let twice = format!("{once} && {once}");
    assert_eq!(evaluate(&twice).0, Ok(true.into()));
    let thrice = format!("{twice} && {once}");
    let limit = "operation cancelled: actual cost limit exceeded";
    assert_eq!(evaluate(&thrice).0, Err(limit.to_owned()));
    let estimate = environment().compile(once).unwrap().estimate_cost();
    assert_eq!((estimate.min, estimate.max), (350_003, 350_003));
}

#[test]
fn types_have_no_fields_and_are_not_mixed_up() {
    for (expression, problem) in [
        (
            "authorizer.resource('pods').check('get').allowed()",
            "found no matching overload for 'resource' applied to \
             'kubernetes.authorization.Authorizer.(string)'",
        ),
        (
            "authorizer.group('').check('get').allowed()",
            "found no matching overload for 'check' applied to \
             'kubernetes.authorization.GroupCheck.(string)'",
        ),
    ] {
        let why = evaluate(expression).0.unwrap_err();
        assert!(why.contains(problem), "{why}");
    }
}
