use std::cell::RefCell;
use std::collections::BTreeMap;

use bellwether_api::admission::{Attributes, Facts, ObjectId};
use serde_json::json;

use super::*;

/// A hub with some objects, by resource, namespace and name.
#[derive(Debug, Default)]
struct Objects(BTreeMap<String, Value>);

impl Facts for Objects {
    fn allows(&self, wanted: &Attributes<'_>) -> bool {
        wanted.resource != "secrets"
    }

    fn get(&self, id: &ObjectId<'_>) -> Option<Value> {
        let key = format!("{}/{}/{}", id.resource, id.namespace, id.name);
        self.0.get(&key).cloned()
    }
}

/// What is said of a write by a client that validates strictly: the refusal, or the warnings.
fn ask(
    facts: &Objects,
    resource: &str,
    old: Option<&Value>,
    object: &Value,
) -> Result<Vec<String>, String> {
    ask_as(true, facts, resource, old, object)
}

fn ask_as(
    is_strict: bool,
    facts: &Objects,
    resource: &str,
    old: Option<&Value>,
    object: &Value,
) -> Result<Vec<String>, String> {
    let review = Review {
        operation: if old.is_some() {
            Operation::Update
        } else {
            Operation::Create
        },
        group: GROUP,
        resource,
        subresource: "",
        namespace: "n",
        old,
        user: "somebody",
        groups: &[],
        is_strict,
        now: jiff::Timestamp::UNIX_EPOCH,
        facts,
        warnings: RefCell::default(),
    };
    let mut object = object.clone();
    let admission = ApplicationAdmission::default();
    admission.mutate(&review, &mut object).unwrap();
    admission
        .validate(&review, &object)
        .map_err(|denial| denial.message().to_owned())?;
    Ok(review.warnings.into_inner())
}

fn app(spec: &Value) -> Value {
    json!({"metadata": {"name": "shop", "namespace": "n"}, "spec": spec})
}

fn definition(template: &str) -> Value {
    json!({"metadata": {"name": "paint", "namespace": "n"},
        "spec": {"workload": {"type": "configmaps"}, "schematic": {"cue": {"template": template}}}})
}

const PAINT: &str = "output: {apiVersion: \"v1\", kind: \"ConfigMap\", data: colour: parameter.colour}\nparameter: {\n\t// +immutable\n\tcolour: string\n}";

fn with_paint() -> Objects {
    let key = "componentdefinitions/n/paint".to_owned();
    Objects([(key, definition(PAINT))].into())
}

fn painted(colour: impl Into<Value>) -> Value {
    let properties = json!({ "colour": colour.into() });
    app(&json!({"components": [{"name": "wall", "type": "paint", "properties": properties}]}))
}

#[track_caller]
fn check_app(object: &Value, expected: Result<&[&str], &str>) {
    let told = ask(&with_paint(), APPLICATIONS, None, object);
    match (told, expected) {
        (Ok(warnings), Ok(expected)) => assert_eq!(warnings, expected),
        (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
        (told, expected) => panic!("{told:?}, not {expected:?}"),
    }
}

#[test]
fn applications_are_checked_with_the_definitions_of_the_hub() {
    check_app(&painted("red"), Ok(&[]));
    check_app(&painted(1), Err("parameter.colour"));
    let unknown = app(&json!({"components": [{"name": "wall", "type": "plaster"}]}));
    let told = "failed to parseComponents: fetch component/policy type of wall: load template from component definition [plaster] : WorkloadDefinition.core.oam.dev \"plaster\" not found";
    check_app(&unknown, Ok(&[told]));
    let twice = json!({"name": "wall", "type": "paint", "properties": {"colour": "red"}});
    let twice = app(&json!({"components": [twice.clone(), twice]}));
    check_app(&twice, Err("there are two components"));
}

#[test]
fn objects_are_copied_for_those_who_may_read_them() {
    let copy = |resource: &str| {
        app(
            &json!({"components": [{"name": "copy", "type": "ref-objects",
            "properties": {"objects": [{"resource": resource, "name": "a", "namespace": "far"}]}}]}),
        )
    };
    let object = json!({"metadata": {"name": "a", "namespace": "far"}});
    let facts = Objects(
        [
            ("secrets/far/a".to_owned(), object.clone()),
            ("configmaps/far/a".to_owned(), object),
        ]
        .into(),
    );
    assert!(ask(&facts, APPLICATIONS, None, &copy("configmap")).is_ok());
    let refusal = ask(&facts, APPLICATIONS, None, &copy("secret")).unwrap_err();
    assert!(
        refusal.contains("to copy Secret far/a you need the right to get it"),
        "{refusal}"
    );
}

#[test]
fn what_has_no_effect_is_warned_of() {
    let mut object = painted("red");
    object["spec"]["components"][0]["properties"]["gloss"] = true.into();
    check_app(
        &object,
        Ok(&["component wall: paint has no parameter \"gloss\", so it has no effect"]),
    );
}

#[test]
fn policies_and_steps_that_have_no_effect_are_warned_of() {
    let wall = painted("red")["spec"]["components"][0].clone();
    let told = |policies: Value, steps: Value| {
        let spec =
            json!({"components": [wall], "policies": policies, "workflow": {"steps": steps}});
        ask(&with_paint(), APPLICATIONS, None, &app(&spec)).unwrap()
    };
    let warned = told(
        json!([
            {"name": "once", "type": "apply-once", "properties": {"enabled": true}},
            {"name": "all", "type": "shared-resource", "properties": {"rule": []}},
            {"name": "east", "type": "topology", "properties": {"namespace": "far"}},
        ]),
        json!([{"name": "say", "type": "print-message-in-status", "properties": {"massage": "x"}},
            {"name": "go", "type": "apply-component", "properties": {"component": "wall"}}]),
    );
    assert_eq!(
        warned,
        [
            "policy once: apply-once has no parameter \"enabled\", so it has no effect",
            "policy all: shared-resource has no parameter \"rule\", so it has no effect",
            "step say: print-message-in-status has no parameter \"massage\", so it has no effect",
            "policy east: no step uses it, so it has no effect",
        ]
    );
    let topology =
        json!([{"name": "east", "type": "topology", "properties": {"namespace": "far"}}]);
    let deploy = json!([{"name": "go", "type": "deploy", "properties": {"policies": ["east"]}}]);
    assert_eq!(told(topology, deploy), [""; 0]);
    let binding = json!([{"name": "envs", "type": "env-binding", "properties": {"envs": [{"name": "test"}]}}]);
    assert_eq!(told(binding.clone(), json!([])), [""; 0]);
    let apply =
        json!([{"name": "go", "type": "apply-component", "properties": {"component": "wall"}}]);
    let unused = "policy envs: no step uses it, so it has no effect";
    assert_eq!(told(binding, apply), [unused]);
}

#[test]
fn deploy_steps_that_cannot_be_read_are_refused() {
    let deploy = |properties: Value| {
        let mut object = painted("red");
        let step = json!({"name": "go", "type": "deploy", "properties": properties});
        object["spec"]["workflow"] = json!({"steps": [step]});
        object
    };
    check_app(
        &deploy(json!({"policies": "prod"})),
        Err("step go of type deploy: policies: "),
    );
    check_app(
        &deploy(json!({"policy": ["prod"]})),
        Err("unknown field `policy`"),
    );
}

#[test]
fn only_what_follows_definitions_cannot_be_published_by_version() {
    for (follows, is_refused) in [("true", true), ("false", false)] {
        let mut object = painted("red");
        object["metadata"]["annotations"] =
            json!({"app.oam.dev/autoUpdate": follows, "app.oam.dev/publishVersion": "one"});
        let told = ask(&with_paint(), APPLICATIONS, None, &object);
        assert_eq!(told.is_err(), is_refused, "{follows}: {told:?}");
    }
}

#[test]
fn a_type_that_may_be_meant_is_named() {
    let unknown = app(&json!({"components": [{"name": "web", "type": "webservise"}]}));
    let told = ask(&with_paint(), APPLICATIONS, None, &unknown).unwrap();
    assert!(
        told[0].ends_with("not found; did you mean webservice?"),
        "{told:?}"
    );
    let versioned = app(
        &json!({"components": [{"name": "web", "type": "worker@v1", "properties": {"image": "a"}}]}),
    );
    assert_eq!(
        ask(&with_paint(), APPLICATIONS, None, &versioned),
        Ok(Vec::new())
    );
    let worker = Objects(
        [(
            "componentdefinitions/n/worker".to_owned(),
            definition(PAINT),
        )]
        .into(),
    );
    let told = ask(&worker, APPLICATIONS, None, &versioned).unwrap();
    assert!(told[0].contains("not found"), "{told:?}");
}

#[test]
fn immutable_parameters_stay_unless_forced() {
    let facts = with_paint();
    let (old, mut new) = (painted("red"), painted("blue"));
    let refusal = ask(&facts, APPLICATIONS, Some(&old), &new).unwrap_err();
    assert!(
        refusal.contains("it is immutable and was \"red\""),
        "{refusal}"
    );
    new["metadata"]["annotations"] = json!({"app.oam.dev/force-param-mutations": "true"});
    assert!(ask(&facts, APPLICATIONS, Some(&old), &new).is_ok());
}

#[test]
fn an_update_that_changes_nothing_is_not_checked() {
    let object = app(&json!({"components": [{"name": "wall", "type": "gone"}]}));
    assert!(ask(&Objects::default(), APPLICATIONS, Some(&object), &object).is_ok());
}

#[test]
fn steps_get_names() {
    let mut object = app(&json!({"workflow": {"steps": [
        {"type": "suspend"}, {"name": "all", "type": "step-group", "subSteps": [{"type": "suspend"}]}]}}));
    complete_steps(&mut object);
    let steps = &object["spec"]["workflow"]["steps"];
    assert_eq!(steps[0]["name"], "step-0");
    assert_eq!(steps[1]["name"], "all");
    assert_eq!(steps[1]["subSteps"][0]["name"], "step-1-0");
}

#[test]
fn steps_that_can_never_have_their_turn_are_refused() {
    let step = |name: &str, on: &str| json!({"name": name, "type": "suspend", "dependsOn": [on]});
    let no_group =
        json!({"name": "a", "type": "suspend", "subSteps": [{"name": "b", "type": "suspend"}]});
    for (mode, steps, expected) in [
        (
            "DAG",
            json!([step("a", "b"), step("b", "a")]),
            "steps depend on each other: a, b",
        ),
        (
            "DAG",
            json!([step("a", "b"), {"name": "b", "type": "suspend"}]),
            "",
        ),
        (
            "StepByStep",
            json!([step("a", "b"), {"name": "b", "type": "suspend"}]),
            "which is carried out later",
        ),
        (
            "StepByStep",
            json!([step("a", "later")]),
            "step \"a\" depends on \"later\", which does not exist",
        ),
        ("StepByStep", json!([no_group]), "is no step-group"),
    ] {
        let workflow = json!({"mode": {"steps": mode}, "steps": steps});
        let object = app(&json!({"components": [], "workflow": workflow}));
        let told = ask(&Objects::default(), APPLICATIONS, None, &object);
        match (told, expected) {
            (Ok(_), "") => {}
            (Err(message), expected) if !expected.is_empty() => {
                assert!(message.contains(expected), "{message}");
            }
            (told, expected) => panic!("{told:?}, not {expected:?}"),
        }
    }
}

#[track_caller]
fn check_definition(resource: &str, object: &Value, expected: Option<&str>) {
    let told = ask(&Objects::default(), resource, None, object);
    match (told, expected) {
        (Ok(_), None) => {}
        (Err(message), Some(part)) => assert!(message.contains(part), "{message}"),
        (told, expected) => panic!("{told:?}, not {expected:?}"),
    }
}

#[test]
fn definitions_that_do_not_compile_are_refused_with_the_line() {
    check_definition(COMPONENTS, &definition(PAINT), None);
    check_definition(
        COMPONENTS,
        &definition("output: {\n\tkind: parameter.kind\n\tname: nowhere.name\n}\nparameter: {}"),
        Some("spec.schematic.cue.template:3:8: "),
    );
    check_definition(
        COMPONENTS,
        &definition("output: {"),
        Some("check it with `bellwether def vet`"),
    );
    let step = "import \"vela/op\"\nwait: op.#ConditionalWait & {continue: nothing.here}";
    check_definition(
        "workflowstepdefinitions",
        &definition(step),
        Some(":2:40: "),
    );
    // A client that does not ask for strict validation is warned: the step says the same when it is carried out.
    let facts = Objects::default();
    let told = ask_as(
        false,
        &facts,
        "workflowstepdefinitions",
        None,
        &definition(step),
    );
    let told = told.unwrap();
    assert!(told.len() == 1 && told[0].contains(":2:40: "), "{told:?}");
    let told = ask_as(false, &facts, COMPONENTS, None, &definition("output: {"));
    assert!(told.is_err(), "{told:?}");
    let mut unhealthy = definition(PAINT);
    unhealthy["spec"]["status"] =
        json!({"healthPolicy": "isHealth: context.output.status.ready =="});
    check_definition(COMPONENTS, &unhealthy, Some("spec.status.healthPolicy"));
}

#[test]
fn definitions_say_what_they_are_about() {
    let mut object = definition(PAINT);
    object["spec"]["workload"] = json!({"type": "deployments.apps",
        "definition": {"apiVersion": "v1", "kind": "ConfigMap"}});
    check_definition(COMPONENTS, &object, Some("set one of them only"));
    object["spec"]["workload"] = json!({});
    definitions::complete(&mut object);
    assert_eq!(
        object["spec"]["workload"]["type"],
        "autodetects.core.oam.dev"
    );
    object["spec"]["workload"] =
        json!({"definition": {"apiVersion": "apps/v1", "kind": "Deployment"}});
    definitions::complete(&mut object);
    assert_eq!(object["spec"]["workload"]["type"], "deployments.apps");
    check_definition(
        "traitdefinitions",
        &json!({"spec": {}}),
        Some("there is no template"),
    );
    let versioned = |version: &str| {
        let mut object = definition(PAINT);
        object["spec"]["version"] = version.into();
        object
    };
    check_definition(COMPONENTS, &versioned("1.2.0"), None);
    check_definition(COMPONENTS, &versioned("1.2"), Some("three numbers"));
}

#[test]
fn a_version_that_was_given_stays_as_it_is() {
    let mut object = definition(PAINT);
    object["spec"]["version"] = "1.0.0".into();
    let revision = json!({"spec": {"definitionType": "Component", "componentDefinition": object}});
    let facts = Objects([("definitionrevisions/n/paint-v1.0.0".to_owned(), revision)].into());
    assert!(ask(&facts, COMPONENTS, None, &object).is_ok());
    object["spec"]["workload"]["type"] = "secrets".into();
    let refusal = ask(&facts, COMPONENTS, None, &object).unwrap_err();
    assert!(refusal.contains("give this one a new version"), "{refusal}");
}

#[test]
fn components_may_be_left_to_a_template() {
    let step = |stage: &str| json!({"spec": {"workflow": {"steps": [{"type": "helm-template", "stage": stage}]}}});
    let mut object = step("pre-render");
    complete_steps(&mut object);
    assert_eq!(object["spec"]["components"], json!([]));
    let mut object = step("post-render");
    complete_steps(&mut object);
    assert!(object["spec"].get("components").is_none());
}
