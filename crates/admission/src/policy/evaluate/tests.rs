use bellwether_api::admission::Operation;
use serde_json::json;

use super::*;
use crate::attributes::Kind;

/// A cluster with one namespace and two parameters.
#[derive(Debug)]
struct Cluster;

impl bellwether_cel::Authorizer for Cluster {
    fn authorize(&self, check: &bellwether_cel::AccessCheck<'_>) -> bellwether_cel::AccessDecision {
        bellwether_cel::AccessDecision {
            allowed: check.name == "web",
            reason: format!("{}/{} in {}", check.verb, check.resource, check.namespace),
            error: None,
        }
    }
}

impl Host for Cluster {
    fn namespace(&self, name: &str) -> Option<Value> {
        let labels = json!({"env": "prod"});
        Some(json!({"metadata": {"name": name, "labels": labels}}))
    }
    fn convert(&self, object: &Value, _: &Target) -> Value {
        object.clone()
    }
    fn is_namespaced(&self, _: &str, kind: &str) -> Option<bool> {
        (kind == "Limit").then_some(true)
    }
    fn object(&self, _: &str, _: &str, namespace: &str, name: &str) -> Option<Value> {
        let object = json!({"metadata": {"name": name}, "most": 3});
        (namespace == "n" && name == "a").then_some(object)
    }
    fn objects(&self, _: &str, _: &str, _: &str) -> Vec<Value> {
        vec![
            json!({"metadata": {"labels": {"of": "us"}}, "most": 10}),
            json!({"metadata": {"labels": {"of": "us"}}, "most": 4}),
        ]
    }
}

fn run(spec: &Value, binding: &Value) -> Judgement {
    let mut spec = spec.clone();
    spec["matchConstraints"] = json!({"resourceRules": [{
        "operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
    }]});
    let policies = [Policy::compile(
        &json!({"metadata": {"name": "p"}, "spec": spec}),
    )];
    let mut bound = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (key, value) in binding.as_object().into_iter().flatten() {
        bound[key] = value.clone();
    }
    let bindings = [Binding::read(
        &json!({"metadata": {"name": "b"}, "spec": bound}),
    )];
    let target = Target {
        group: "apps".into(),
        version: "v1".into(),
        resource: "deployments".into(),
        kind: Kind {
            group: "apps".into(),
            version: "v1".into(),
            name: "Deployment".into(),
        },
    };
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 5}});
    let user = json!({"username": "ann"});
    let attributes = Attributes {
        operation: Operation::Create,
        target: &target,
        equivalents: &[],
        subresource: "",
        name: "web",
        namespace: "n",
        object: Some(&object),
        old: None,
        user: &user,
        options: &Value::Null,
        dry_run: false,
    };
    judge(&policies, &bindings, &attributes, &Cluster, CostLimit::NONE).unwrap()
}

/// Checks why one request is refused.
#[track_caller]
fn check(spec: &Value, binding: &Value, expected: Option<&str>) {
    let found = run(spec, binding).refusal.map(|refusal| refusal.message);
    let prefix = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
    let expected = expected.map(|why| match why.strip_prefix("policy: ") {
        Some(why) => format!("ValidatingAdmissionPolicy 'p' denied request: {why}"),
        None => format!("{prefix}{why}"),
    });
    assert_eq!(found, expected, "{spec} {binding}");
}

fn validations(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test]
fn what_does_not_hold_is_refused_with_the_best_message() {
    let none = json!({});
    check(&validations("object.spec.replicas <= 5"), &none, None);
    let expression = "object.spec.replicas <= 3";
    check(
        &validations(expression),
        &none,
        Some("failed expression: object.spec.replicas <= 3"),
    );
    let mut spec = validations(expression);
    spec["validations"][0]["message"] = " too many ".into();
    check(&spec, &none, Some("too many"));
    spec["validations"][0]["messageExpression"] =
        "'at most 3, not ' + string(object.spec.replicas)".into();
    check(&spec, &none, Some("at most 3, not 5"));
    spec["validations"][0]["messageExpression"] = "'two\\nlines'".into();
    check(&spec, &none, Some("too many"));
    spec["validations"][0]["messageExpression"] = "object.spec.absent".into();
    check(&spec, &none, Some("too many"));
}

#[test]
fn failures_count_unless_they_are_ignored() {
    let mut spec = validations("object.spec.absent == 1");
    let why = "expression 'object.spec.absent == 1' resulted in error: no such key: absent";
    check(&spec, &json!({}), Some(why));
    spec["failurePolicy"] = "Ignore".into();
    check(&spec, &json!({}), None);
}

#[test]
fn expressions_ask_the_authorizer() {
    let allowed = "authorizer.requestResource.check('scale').allowed()";
    check(&validations(allowed), &json!({}), None);
    let other = "authorizer.group('').resource('pods').check('get').allowed()";
    let why = format!("failed expression: {other}");
    check(&validations(other), &json!({}), Some(&why));
    let reason = "authorizer.requestResource.check('scale').reason() == 'scale/deployments in n'";
    check(&validations(reason), &json!({}), None);
    let mut spec = validations("variables.may");
    spec["variables"] = json!([{"name": "may", "expression": allowed}]);
    check(&spec, &json!({}), None);
    // Messages may not ask.
    spec["validations"][0]["messageExpression"] =
        "authorizer.path('/').check('get').reason()".into();
    let policy = json!({"spec": spec});
    let problems = crate::policy::problems("ValidatingAdmissionPolicy", &policy);
    let [(path, _, why)] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!(path, "spec.validations[0].messageExpression");
    assert!(
        why.contains("undeclared reference to 'authorizer'"),
        "{why}"
    );
}

#[test]
fn variables_are_computed_when_they_are_needed() {
    let mut spec = validations("variables.double == 10");
    spec["variables"] = json!([
        {"name": "replicas", "expression": "object.spec.replicas"},
        {"name": "double", "expression": "variables.replicas * 2"},
        {"name": "broken", "expression": "object.spec.absent"},
    ]);
    check(&spec, &json!({}), None);
    spec["validations"] = json!([{"expression": "variables.broken == 1"}]);
    let why = "expression 'variables.broken == 1' resulted in error: composited variable \
               \"broken\" fails to evaluate: no such key: absent";
    check(&spec, &json!({}), Some(why));
}

#[test]
fn conditions_and_selectors_choose_requests() {
    let mut spec = validations("false");
    spec["matchConditions"] =
        json!([{"name": "a", "expression": "request.userInfo.username != 'ann'"}]);
    check(&spec, &json!({}), None);
    let spec = validations("namespaceObject.metadata.labels.env == 'dev'");
    let why = "failed expression: namespaceObject.metadata.labels.env == 'dev'";
    check(&spec, &json!({}), Some(why));
    let elsewhere =
        json!({"matchResources": {"namespaceSelector": {"matchLabels": {"env": "dev"}}}});
    check(&spec, &elsewhere, None);
}

#[test]
fn parameters_are_found_by_name_or_by_labels() {
    let mut spec = validations("object.spec.replicas <= params.most");
    spec["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Limit"});
    let named = |name: &str| json!({"paramRef": {"name": name, "parameterNotFoundAction": "Deny"}});
    let refused = "failed expression: object.spec.replicas <= params.most";
    check(&spec, &named("a"), Some(refused));
    let missing = "failed to configure binding: no params found for policy binding with `Deny` \
                   parameterNotFoundAction";
    check(&spec, &named("other"), Some(missing));
    let mut allowed = named("other");
    allowed["paramRef"]["parameterNotFoundAction"] = "Allow".into();
    check(&spec, &allowed, None);
    // Each of the two is applied; the second one refuses.
    let selected = json!({"paramRef": {"selector": {"matchLabels": {"of": "us"}}}});
    check(&spec, &selected, Some(refused));
    spec["paramKind"]["kind"] = "Unknown".into();
    let unknown = "policy: failed to configure policy: failed to find resource referenced by \
                   paramKind: 'example.com/v1, Kind=Unknown'";
    check(&spec, &named("a"), Some(unknown));
}

#[test]
fn failures_warn_or_are_noted_if_the_binding_says_so() {
    let mut spec = validations("false");
    spec["auditAnnotations"] = json!([
        {"key": "replicas", "valueExpression": "string(object.spec.replicas)"},
        {"key": "nothing", "valueExpression": "null"},
    ]);
    let found = run(&spec, &json!({"validationActions": ["Warn", "Audit"]}));
    assert_eq!(found.refusal, None);
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed \
                   expression: false";
    assert_eq!(found.warnings, [warning]);
    assert_eq!(found.annotations["p/replicas"], "5");
    assert!(!found.annotations.contains_key("p/nothing"));
    let note: Value = serde_json::from_str(&found.annotations[FAILURE_ANNOTATION]).unwrap();
    assert_eq!(note[0]["message"], "failed expression: false");
    assert_eq!(note[0]["validationActions"], json!(["Warn", "Audit"]));
}

#[test]
fn a_reason_has_its_status_code() {
    let mut spec = validations("false");
    for (reason, code) in [
        ("", 422),
        ("Forbidden", 403),
        ("RequestEntityTooLarge", 413),
    ] {
        spec["validations"][0]["reason"] = reason.into();
        let refusal = run(&spec, &json!({})).refusal.unwrap();
        assert_eq!(refusal.code(), code, "{refusal:?}");
    }
}
