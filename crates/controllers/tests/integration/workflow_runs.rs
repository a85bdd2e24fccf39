//! WorkflowRuns on an embedded hub: what is carried out, what is waited for, what is written.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails, and tables are written in place"
)]

use crate::common::World;
use bellwether_api::workflow::{WorkflowHistory, WorkflowRun};
use bellwether_controllers::workflow::approval::{self, ApprovalError, Approvals};
use bellwether_controllers::workflow::{ApprovalOptions, WorkflowOptions};
use bellwether_controllers::workflow_run;
use bellwether_runtime::{Fence, Fenced};
use bellwether_workflow::token::{self, Claim};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

fn start(world: &World) -> JoinHandle<()> {
    tokio::spawn(workflow_run::run(world.hub(), WorkflowOptions::default()))
}

fn runs(world: &World) -> Api<WorkflowRun> {
    Api::namespaced(world.client.clone(), "default")
}

async fn create(world: &World, name: &str, steps: Value) {
    let run = json!({
        "apiVersion": "core.oam.dev/v1alpha1",
        "kind": "WorkflowRun",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"workflowSpec": {"steps": steps}},
    });
    let run = serde_json::from_value(run).unwrap();
    runs(world)
        .create(&PostParams::default(), &run)
        .await
        .unwrap();
}

/// Lets the hub write what steps apply: its own rights do not cover that.
async fn allow_everything(world: &World) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "steps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bellwether-hub"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    let binding = serde_json::from_value(binding).unwrap();
    let params = PostParams::default();
    bindings.create(&params, &binding).await.unwrap();
}

/// Waits until a run is in a phase; returns its steps with theirs.
async fn until(world: &World, name: &str, phase: &str) -> Vec<String> {
    let api = runs(world);
    world
        .until(format!("{name} is {phase}"), async || {
            let status = api.get(name).await.unwrap().status.unwrap_or_default();
            let found = status
                .phase
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let steps: Vec<String> = status
                .steps
                .iter()
                .map(|step| format!("{} {}", step.status.name, step.status.phase()))
                .collect();
            if found == phase {
                Ok(steps)
            } else {
                Err(format!("{found} {steps:?}"))
            }
        })
        .await
}

async fn patch_status(world: &World, name: &str, patch: Value) {
    let patch = Patch::Merge(json!({"status": patch}));
    runs(world)
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

fn object(name: &str, data: Value) -> Value {
    json!({"value": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}})
}

#[tokio::test(start_paused = true)]
async fn steps_are_carried_out_and_hand_values_on() {
    let world = World::start().await;
    let _controller = start(&world);
    create(
        &world,
        "r",
        json!([
            {"name": "make", "type": "apply-object", "properties": object("made", json!({"k": "v"})),
             "outputs": [{"name": "k", "valueFrom": "apply.$returns.value.data.k"}]},
            {"name": "copy", "type": "export2config", "properties": {"configName": "copy", "data": {}},
             "inputs": [{"from": "k", "parameterKey": "data.k"}]},
        ]),
    )
    .await;
    let steps = until(&world, "r", "succeeded").await;
    assert_eq!(steps, ["make succeeded", "copy succeeded"]);
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    let copy = maps.get("copy").await.unwrap();
    assert_eq!(copy.data.unwrap()["k"], "v");
    assert_eq!(
        copy.metadata.labels.unwrap()["workflowrun.oam.dev/name"],
        "r"
    );
    let context = maps.get("workflow-r-context").await.unwrap();
    assert_eq!(context.data.unwrap()["vars"], "\"k\": \"v\"\n");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_run_goes_on_when_the_flag_is_cleared() {
    let world = World::start().await;
    let _controller = start(&world);
    let steps = json!([{"name": "ask", "type": "suspend"}, {"name": "go", "type": "apply-object", "properties": object("m", json!({}))}]);
    create(&world, "r", steps).await;
    assert_eq!(until(&world, "r", "suspending").await, ["ask suspending"]);
    patch_status(&world, "r", json!({"suspend": false})).await;
    assert_eq!(
        until(&world, "r", "succeeded").await,
        ["ask succeeded", "go succeeded"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_an_object_goes_on_when_it_changes() {
    let world = World::start().await;
    allow_everything(&world).await;
    let _controller = start(&world);
    let steps =
        json!([{"name": "web", "type": "apply-deployment", "properties": {"image": "web:1"}}]);
    create(&world, "r", steps).await;
    assert_eq!(until(&world, "r", "executing").await, ["web running"]);
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(world.client.clone(), "default");
    let before = world.clock.now();
    let ready = Patch::Merge(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
    deployments
        .patch_status("web", &PatchParams::default(), &ready)
        .await
        .unwrap();
    until(&world, "r", "succeeded").await;
    let took = world.clock.now().duration_since(before);
    assert!(
        took.as_millis() < 100,
        "it did not wait for its timer: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn each_of_two_steps_that_wait_goes_on_when_its_object_changes() {
    let world = World::start().await;
    allow_everything(&world).await;
    let _controller = start(&world);
    let step = |name: &str| json!({"name": name, "type": "apply-deployment", "properties": {"image": "web:1"}});
    let run = json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"mode": {"steps": "DAG"}, "workflowSpec": {"steps": [step("a"), step("b")]}}});
    world.create(run).await;
    until_steps(&world, &["a running", "b running"]).await;
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(world.client.clone(), "default");
    let ready = Patch::Merge(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
    let params = PatchParams::default();
    // Long enough that the next look without a reason is far away.
    world.pass(40).await;
    for (name, expected) in [
        ("b", ["a running", "b succeeded"]),
        ("a", ["a succeeded", "b succeeded"]),
    ] {
        let before = world.clock.now();
        deployments
            .patch_status(name, &params, &ready)
            .await
            .unwrap();
        until_steps(&world, &expected).await;
        let took = world.clock.now().duration_since(before);
        assert!(
            took.as_millis() < 100,
            "{name} waited for a timer: {took:?}"
        );
    }
}

/// Waits until the steps of the run `r` are in these phases.
async fn until_steps(world: &World, expected: &[&str]) {
    let api = runs(world);
    world
        .until(format!("{expected:?}"), async || {
            let status = api.get("r").await.unwrap().status.unwrap_or_default();
            let steps = status.steps.iter();
            let steps: Vec<String> = steps
                .map(|step| format!("{} {}", step.status.name, step.status.phase()))
                .collect();
            (steps == expected)
                .then_some(())
                .ok_or(format!("{steps:?}"))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_where_it_was_with_another_process() {
    let world = World::start().await;
    let controller = start(&world);
    let steps = json!([
        {"name": "make", "type": "apply-object", "properties": object("m", json!({}))},
        {"name": "ask", "type": "suspend"},
        {"name": "end", "type": "print-message-in-status", "properties": {"message": "bye"}},
    ]);
    create(&world, "r", steps).await;
    until(&world, "r", "suspending").await;
    controller.abort();
    let id = runs(&world).get("r").await.unwrap().status.unwrap().steps[0]
        .status
        .id
        .clone();
    patch_status(&world, "r", json!({"suspend": false})).await;
    let _controller = start(&world);
    until(&world, "r", "succeeded").await;
    let status = runs(&world).get("r").await.unwrap().status.unwrap();
    assert_eq!(status.steps[0].status.id, id);
    assert_eq!(status.steps[2].status.message, "bye");
    let histories: Api<WorkflowHistory> = Api::namespaced(world.client.clone(), "default");
    let history = histories.get("workflowrun-r").await.unwrap();
    let made = history
        .entries
        .iter()
        .filter(|entry| entry.event == "StepChanged" && entry.details["step"] == "make");
    assert_eq!(
        made.count(),
        1,
        "a step that is done is not carried out again"
    );
}

#[tokio::test(start_paused = true)]
async fn the_flag_that_ends_a_run_ends_it_and_clearing_the_status_restarts_it() {
    let world = World::start().await;
    let _controller = start(&world);
    let steps = json!([{"name": "ask", "type": "suspend"}, {"name": "b", "type": "suspend"}]);
    create(&world, "r", steps).await;
    until(&world, "r", "suspending").await;
    patch_status(&world, "r", json!({"terminated": true})).await;
    assert_eq!(
        until(&world, "r", "terminated").await,
        ["ask failed", "b skipped"]
    );
    let mut run = runs(&world).get("r").await.unwrap();
    run.status = Some(bellwether_api::workflow::WorkflowRunStatus::default());
    runs(&world)
        .replace_status("r", &PostParams::default(), &run)
        .await
        .unwrap();
    assert_eq!(until(&world, "r", "suspending").await, ["ask suspending"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_its_definition_says_so() {
    let world = World::start().await;
    let _controller = start(&world);
    create(&world, "r", json!([{"name": "a", "type": "nobody-knows"}])).await;
    until(&world, "r", "initializing").await;
    let status = runs(&world).get("r").await.unwrap().status.unwrap();
    assert_eq!(
        status.conditions[0].message,
        "workflowstepdefinitions.core.oam.dev \"nobody-knows\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_steps_are_changed_to_ones_that_nobody_knows_says_so_until_it_succeeds() {
    let world = World::start().await;
    let _controller = start(&world);
    create(&world, "r", json!([{"name": "ask", "type": "suspend"}])).await;
    until(&world, "r", "suspending").await;
    let edit = |steps: Value| Patch::Merge(json!({"spec": {"workflowSpec": {"steps": steps}}}));
    let params = PatchParams::default();
    let wrong =
        edit(json!([{"name": "ask", "type": "suspend"}, {"name": "b", "type": "nobody-knows"}]));
    runs(&world).patch("r", &params, &wrong).await.unwrap();
    until(&world, "r", "initializing").await;
    let right = edit(json!([{"name": "ask", "type": "suspend"}]));
    runs(&world).patch("r", &params, &right).await.unwrap();
    until(&world, "r", "suspending").await;
    let condition = async || {
        let status = runs(&world).get("r").await.unwrap().status.unwrap();
        let known = &status.conditions[0];
        format!("{} {}", known.status, known.reason)
    };
    assert_eq!(condition().await, "False ReconcileError");
    patch_status(&world, "r", json!({"suspend": false})).await;
    until(&world, "r", "succeeded").await;
    assert_eq!(condition().await, "True Available");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_added_to_a_list_of_an_object_stays() {
    let world = World::start().await;
    allow_everything(&world).await;
    let _controller = start(&world);
    let deployment = |image: &str| {
        json!({"value": {"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]}}}}})
    };
    let step = |image: &str| json!([{"name": "web", "type": "apply-object", "properties": deployment(image)}]);
    create(&world, "first", step("web:1")).await;
    until(&world, "first", "succeeded").await;
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(world.client.clone(), "default");
    let beside = json!({"name": "beside", "image": "beside:1"});
    let added = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [beside]}}}}));
    let params = PatchParams::default();
    deployments.patch("web", &params, &added).await.unwrap();
    create(&world, "second", step("web:2")).await;
    until(&world, "second", "succeeded").await;
    let found = deployments.get("web").await.unwrap();
    let pod = found.spec.unwrap().template.spec.unwrap();
    let mut images: Vec<String> = pod
        .containers
        .into_iter()
        .filter_map(|it| it.image)
        .collect();
    images.sort();
    assert_eq!(images, ["beside:1", "web:2"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_step_logs_is_kept_and_an_object_that_is_missing_is_named() {
    let world = World::start().await;
    let _controller = start(&world);
    let template = r#"import ("vela/util", "vela/kube")
read: kube.#Read & {$params: value: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "gone", namespace: "default"}}} @step(1)
log1: util.#Log & {$params: data: "looked for \(read.$returns.value.metadata.name)"} @step(2)
log2: util.#Log & {$params: source: url: "http://logs.example/1"} @step(3)
log3: util.#Log & {$params: data: {done: true}} @step(4)
parameter: {}"#;
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "WorkflowStepDefinition",
        "metadata": {"name": "talk", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template": template}}}});
    world.create(definition).await;
    create(&world, "r", json!([{"name": "a", "type": "talk"}])).await;
    until(&world, "r", "succeeded").await;
    let id = runs(&world).get("r").await.unwrap().status.unwrap().steps[0]
        .status
        .id
        .clone();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    let data = maps.get("workflow-r-context").await.unwrap().data.unwrap();
    let config: Value = serde_json::from_str(&data["logConfig"]).unwrap();
    assert_eq!(
        config["a"],
        json!({"data": true, "source": {"url": "http://logs.example/1"}})
    );
    assert_eq!(
        data[&format!("{id}.log")],
        "looked for gone\n{\"done\":true}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_begins_when_the_workflow_is_there_that_it_refers_to() {
    let world = World::start().await;
    let _controller = start(&world);
    let run = json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun",
        "metadata": {"name": "r", "namespace": "default"}, "spec": {"workflowRef": "plan"}});
    world.create(run).await;
    until(&world, "r", "initializing").await;
    let before = world.now();
    let step =
        json!({"name": "a", "type": "print-message-in-status", "properties": {"message": "hi"}});
    let workflow = json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "plan", "namespace": "default"}, "steps": [step]});
    world.create(workflow).await;
    until(&world, "r", "succeeded").await;
    let waited = world.now().duration_since(before);
    assert!(waited.as_millis() < 1000, "{waited:?}");
}

/// A process that was paused for longer than its lease goes on in the middle of a step. Servers outside cannot tell that another one leads.
#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_lead_sends_nothing() {
    let world = World::start().await;
    let options = WorkflowOptions {
        fence: Some(Fence::closed(&world.hub().clock)),
        ..WorkflowOptions::default()
    };
    tokio::spawn(workflow_run::run(world.hub(), options));
    let url = "http://127.0.0.1:1/";
    create(
        &world,
        "r",
        json!([{"name": "tell", "type": "request", "properties": {"url": url, "method": "POST"}}]),
    )
    .await;
    let api = runs(&world);
    let refused = Fenced.to_string();
    world
        .until("the step says why".to_owned(), async || {
            let status = api.get("r").await.unwrap().status.unwrap_or_default();
            let step = status.steps.first().map(|step| &step.status);
            let message = format!("{:?}", step.map(|step| step.message.clone()));
            message.contains(&refused).then_some(()).ok_or(message)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_with_the_token_of_a_step_resumes_it_once() {
    let world = World::start().await;
    let options = WorkflowOptions {
        approval: Some(ApprovalOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            url: "https://hub.example".to_owned(),
        }),
        ..WorkflowOptions::default()
    };
    tokio::spawn(workflow_run::run(world.hub(), options));
    create(
        &world,
        "r",
        json!([
            {"name": "approve", "type": "suspend", "outputs": [{"name": "by", "valueFrom": "output.user"}]},
            {"name": "note", "type": "export2config", "properties": {"configName": "note", "data": {}},
             "inputs": [{"from": "by", "parameterKey": "data.by"}]},
        ]),
    )
    .await;
    until(&world, "r", "suspending").await;
    let status = runs(&world).get("r").await.unwrap().status.unwrap();
    let step = &status.steps[0].status;
    let key = approval::key(&world.client).await.unwrap();
    let token = key.token(&Claim {
        kind: "run".to_owned(),
        namespace: "default".to_owned(),
        name: "r".to_owned(),
        step_id: step.id.clone(),
    });
    assert_eq!(step.resume_token_hash, Some(token::hash(&token)));
    let hub = world.hub();
    let approvals = Approvals::new(&hub.client, &hub.clock, key);
    let payload = json!({"user": "ann"});
    let refused = approvals.resume("made.up", &payload).await;
    assert!(
        matches!(refused, Err(ApprovalError::Invalid)),
        "{refused:?}"
    );
    assert_eq!(approvals.resume(&token, &payload).await.unwrap(), "approve");
    until(&world, "r", "succeeded").await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    let note = maps.get("note").await.unwrap();
    assert_eq!(note.data.unwrap()["by"], "ann");
    let again = approvals.resume(&token, &payload).await;
    assert!(matches!(again, Err(ApprovalError::Used)), "{again:?}");
}
