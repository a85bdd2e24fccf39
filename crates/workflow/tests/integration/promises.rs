//! What the engine promises: effects that happen once, counts that survive, steps side by side, conditions.

use bellwether_workflow::edit::{self, Seen};
use bellwether_workflow::{Entry, Event, Pass, State, Woken, project};
use serde_json::{Value, json};

use crate::world::World;

/// Resumes everything that is suspended.
fn resume(world: &mut World) {
    let state = world.state();
    let seen = Seen {
        seq: Some(state.seq),
        is_written: true,
        suspend: false,
        steps: project::steps(&state, &world.spec),
        ..Seen::default()
    };
    for event in edit::events(&seen, &world.log, &world.spec) {
        let seq = world.state().seq + 1;
        let time = world.now;
        world.log.push(Entry { seq, time, event });
    }
}

#[test]
fn a_request_before_a_suspension_is_sent_once() {
    let steps = json!([{"name": "a", "type": "post-then-suspend", "properties": {"url": "x"}}]);
    let mut world = World::new("StepByStep", steps);
    world.run();
    assert_eq!(world.phases(), ["a suspending/Suspend"]);
    // Something wakes it, again and again; then somebody resumes it.
    for _ in 0..3 {
        world.pass(Woken::All).unwrap();
    }
    resume(&mut world);
    world.run();
    assert_eq!(world.phases(), ["a succeeded"]);
    assert_eq!(world.requests.len(), 1);
}

#[test]
fn the_count_of_failures_survives_a_crash() {
    for crash in 0..60 {
        let steps = json!([{"name": "a", "type": "post", "properties": {"url": "x"}}]);
        let mut world = World::new("StepByStep", steps);
        world.failing.insert("x".to_owned(), u32::MAX);
        world.crash_after = Some(crash);
        world.run();
        assert_eq!(world.phases(), ["a failed/FailedAfterRetries"]);
        let count = |is_meant: fn(&Event) -> bool| {
            let entries = world.log.iter();
            entries.filter(|entry| is_meant(&entry.event)).count()
        };
        let failed = count(|it| matches!(it, Event::ActionDone { error: Some(_), .. }));
        let named = count(|it| matches!(it, Event::ActionAmbiguous { .. }));
        assert_eq!(failed, 11, "crash {crash}");
        // Where the process ended before a failure was recorded, the request came once more, and the log says so.
        let sent = world.requests.len();
        assert!((11..=11 + named).contains(&sent), "crash {crash}: {sent}");
    }
}

#[test]
fn a_template_with_an_unused_import_never_succeeds() {
    let mut world = World::new("StepByStep", json!([{"name": "a", "type": "unused"}]));
    let state = world.run();
    assert_eq!(world.phases(), ["a failed/FailedAfterRetries"]);
    let message = &state.steps[0].message;
    assert!(message.contains("imported and not used"), "{message}");
}

#[test]
fn waits_of_a_graph_pass_side_by_side() {
    let wait = |number: u32| json!({"name": format!("s{number}"), "type": "suspend", "properties": {"duration": "1s"}});
    let steps: Vec<Value> = (0..10).map(wait).collect();
    let mut world = World::new("DAG", Value::Array(steps));
    let start = world.now;
    let state = world.run();
    assert_eq!(project::phase(&state).to_string(), "succeeded");
    let took = world.now.duration_since(start);
    assert!(took.as_millis() < 1500, "{took:?}");
}

#[test]
fn as_many_steps_of_a_graph_are_carried_out_at_once_as_the_hub_allows() {
    let post = |number: u32| json!({"name": format!("s{number}"), "type": "post", "properties": {"url": format!("u{number}")}});
    let steps: Vec<Value> = (0..40).map(post).collect();
    let mut world = World::new("DAG", Value::Array(steps));
    let mut pass = Pass::new(&world.spec, &world.settings, State::default(), Woken::All);
    let plan = pass.decide(world.now);
    assert_eq!(plan.actions.len(), world.settings.concurrency);
    assert!(plan.is_durable, "intents are written first");
    // One that is done makes room for one other.
    pass.complete(&plan.actions[0], Err("no".to_owned()), world.now);
    assert_eq!(pass.decide(world.now).actions.len(), 1);
    world.run();
    assert_eq!(world.effects.len(), 40);
    // In any order of completion, steps are shown in the order in which they are written.
    let names: Vec<String> = world
        .state()
        .steps
        .iter()
        .map(|step| step.name.clone())
        .collect();
    let expected: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    assert_eq!(names, expected);
}

/// Checks whether a step is carried out after one that succeeded and one that failed.
#[track_caller]
fn check_condition(condition: &str, expected: &str) {
    let steps = json!([
        {"name": "good-one", "type": "emit", "properties": {"v": {"code": 200}},
            "outputs": [{"name": "answer", "valueFrom": "got"}]},
        {"name": "bad", "type": "boom"},
        {"name": "last", "type": "emit", "if": condition, "properties": {"v": 7},
            "inputs": [{"from": "answer"}, {"from": "context.name"}]},
    ]);
    let mut world = World::new("StepByStep", steps);
    let state = world.run();
    let step = state.step("last").unwrap();
    let told = match step.message.as_str() {
        "" => step.phase.to_string(),
        message => format!("{}: {message}", step.phase),
    };
    assert!(told.starts_with(expected), "{condition}: {told}");
}

#[test]
fn conditions_see_statuses_inputs_context_and_parameters() {
    check_condition("always", "succeeded");
    check_condition("", "skipped");
    check_condition("status.bad.failed", "succeeded");
    check_condition("status.bad.phase == \"failed\"", "succeeded");
    check_condition("status.bad.reason == \"Action\"", "succeeded");
    check_condition(
        "status.bad.timeout || status.bad.failedAfterRetries",
        "skipped",
    );
    check_condition("status[\"good-one\"].succeeded", "succeeded");
    check_condition(
        "status.good-one.succeeded",
        "skipped: pre check error: invalid if value",
    );
    check_condition("inputs.answer.code == 200", "succeeded");
    check_condition("inputs[\"context.name\"] == \"r\"", "succeeded");
    check_condition("context.name == \"r\" && parameter.v > 6", "succeeded");
    check_condition("\"yes\"", "skipped: pre check error: invalid if value");
    check_condition(
        "status.nobody.failed",
        "skipped: pre check error: invalid if value",
    );
}
