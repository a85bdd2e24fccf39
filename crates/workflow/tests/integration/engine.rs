//! What workflows do, step by step.

use crate::world::World;
use bellwether_api::workflow::{WorkflowRunPhase, WorkflowStatus};
use bellwether_workflow::edit::{self, Seen};
use bellwether_workflow::{Entry, Woken, project};
use serde_json::{Value, json};

#[track_caller]
fn check(mode: &str, steps: Value, phase: &str, expected: &[&str]) -> World {
    let mut world = World::new(mode, steps);
    let state = world.run();
    assert_eq!(world.phases(), expected);
    assert_eq!(project::phase(&state).as_str(), phase);
    world
}

#[test]
fn steps_follow_each_other() {
    let world = check(
        "StepByStep",
        json!([
            {"name": "a", "type": "emit", "properties": {"v": {"x": 6}}, "outputs": [{"name": "o", "valueFrom": "got.x"}]},
            {"name": "b", "type": "seen", "inputs": [{"from": "o", "parameterKey": "p.q"}], "outputs": [{"name": "s", "valueFrom": "seen"}]},
        ]),
        "succeeded",
        &["a succeeded", "b succeeded"],
    );
    assert_eq!(
        Value::Object(world.state().vars),
        json!({"o": 6, "s": {"p": {"q": 6}}})
    );
}

#[test]
fn values_of_several_fields_and_of_several_steps_become_one() {
    let script = "x: got.x\ny: got.x + 1";
    let world = check(
        "StepByStep",
        json!([
            {"name": "a", "type": "emit", "properties": {"v": {"x": 6}}, "outputs": [
                {"name": "o", "valueFrom": script}, {"name": "n", "valueFrom": "got.x * 2 // twice"}]},
            {"name": "b", "type": "emit", "properties": {"v": {"z": 1}}, "outputs": [{"name": "o", "valueFrom": "got"}]},
        ]),
        "succeeded",
        &["a succeeded", "b succeeded"],
    );
    assert_eq!(
        Value::Object(world.state().vars),
        json!({"n": 12, "o": {"x": 6, "y": 7, "z": 1}})
    );
    check(
        "StepByStep",
        json!([
            {"name": "a", "type": "emit", "properties": {"v": {"x": 6}}, "outputs": [{"name": "o", "valueFrom": "got"}]},
            {"name": "b", "type": "emit", "properties": {"v": {"x": 7}}, "outputs": [{"name": "o", "valueFrom": "got"}]},
        ]),
        "failed",
        &["a succeeded", "b failed/Output"],
    );
}

#[test]
fn a_graph_is_carried_out_in_the_order_of_its_dependencies() {
    check(
        "DAG",
        json!([
            {"name": "c", "type": "note", "dependsOn": ["b"]},
            {"name": "b", "type": "note", "dependsOn": ["a"]},
            {"name": "a", "type": "note"},
        ]),
        "succeeded",
        &["a succeeded", "c succeeded", "b succeeded"],
    );
}

#[test]
fn what_follows_a_failure_is_skipped_unless_it_asks() {
    check(
        "StepByStep",
        json!([
            {"name": "a", "type": "boom"},
            {"name": "b", "type": "note"},
            {"name": "c", "type": "note", "if": "status.a.failed"},
            {"name": "d", "type": "note", "if": "always"},
            {"name": "e", "type": "note", "if": "status.a.succeeded"},
            {"name": "f", "type": "note", "if": "status.nobody.here"},
        ]),
        "failed",
        &[
            "a failed/Action",
            "b skipped/Skip",
            "c succeeded",
            "d succeeded",
            "e skipped/Skip",
            "f skipped/Skip",
        ],
    );
}

#[test]
fn a_break_ends_the_workflow_with_its_message() {
    let world = check(
        "StepByStep",
        json!([{"name": "a", "type": "halt"}, {"name": "b", "type": "note"}]),
        "terminated",
        &["a succeeded/Terminate", "b skipped/Skip"],
    );
    assert_eq!(world.state().message, "enough");
}

#[test]
fn a_broken_template_never_succeeds() {
    let world = check(
        "StepByStep",
        json!([{"name": "a", "type": "broken"}]),
        "failed",
        &["a failed/FailedAfterRetries"],
    );
    assert!(
        world.state().steps[0]
            .message
            .contains("conflicting values")
    );
}

#[test]
fn a_failing_step_is_carried_out_eleven_times_at_the_times_of_the_table() {
    let mut world = World::new(
        "StepByStep",
        json!([{"name": "a", "type": "post", "properties": {"url": "x"}}]),
    );
    world.failing.insert("x".to_owned(), u32::MAX);
    let start = world.now;
    let state = world.run();
    assert_eq!(project::phase(&state), WorkflowRunPhase::Failed);
    assert_eq!(world.requests.len(), 11);
    // 1, 1, 1, 1, 1, 1, 3, 6, 12, 25
    assert_eq!(world.now.duration_since(start).as_secs(), 52);
    assert!(
        state
            .message
            .starts_with("The workflow terminates automatically")
    );
}

#[test]
fn a_request_is_sent_once_however_long_its_step_waits() {
    let steps =
        json!([{"name": "a", "type": "post-then-wait", "properties": {"url": "x", "door": "d"}}]);
    let mut world = World::new("StepByStep", steps);
    for _ in 0..5 {
        world.pass(Woken::All).unwrap();
        world.sleep(1);
    }
    assert_eq!(world.phases(), ["a running/Wait"]);
    world.open("d");
    world.run();
    assert_eq!(
        (world.phases(), world.requests.len()),
        (vec!["a succeeded".to_owned()], 1)
    );
}

#[test]
fn a_timeout_fails_what_waits() {
    let start = World::new("StepByStep", json!([])).now;
    let world = check(
        "StepByStep",
        json!([
            {"name": "g", "type": "step-group", "timeout": "3s", "subSteps": [
                {"name": "s", "type": "wait", "properties": {"door": "d"}},
                {"name": "t", "type": "note"},
            ]},
            {"name": "z", "type": "note", "if": "status.g.timeout"},
        ]),
        "failed",
        &[
            "g failed/Timeout",
            "s failed/Timeout",
            "t succeeded",
            "z succeeded",
        ],
    );
    assert_eq!(world.now.duration_since(start).as_secs(), 3);
}

#[test]
fn a_step_that_takes_too_long_hands_on_what_it_was_given() {
    let world = check(
        "StepByStep",
        json!([
            {"name": "a", "type": "emit", "properties": {"v": {"door": "d"}}, "outputs": [{"name": "door", "valueFrom": "got.door"}]},
            {"name": "b", "type": "wait", "timeout": "3s", "inputs": [{"from": "door", "parameterKey": "door"}],
                "outputs": [{"name": "waited", "valueFrom": "parameter.door"}]},
        ]),
        "failed",
        &["a succeeded", "b failed/Timeout"],
    );
    assert_eq!(world.state().vars["waited"], "d");
}

#[test]
fn steps_of_groups_have_timeouts_of_their_own_in_days_too() {
    let mut world = World::new(
        "StepByStep",
        json!([{"name": "g", "type": "step-group", "subSteps": [
            {"name": "s", "type": "wait", "timeout": "2d", "properties": {"door": "d"}},
            {"name": "t", "type": "note"},
        ]}]),
    );
    world.settings.max_wait_backoff = jiff::SignedDuration::from_hours(24);
    let start = world.now;
    world.run();
    assert_eq!(
        world.phases(),
        ["g failed/Timeout", "s failed/Timeout", "t succeeded"]
    );
    let took = world.now.duration_since(start);
    assert_eq!(took.as_secs(), 2 * 24 * 3600);
}

/// The status as somebody else changed it.
fn edited(world: &World, change: impl FnOnce(&mut Seen)) -> Seen {
    let state = world.state();
    let mut seen = Seen {
        seq: Some(state.seq),
        is_written: true,
        is_cleared: false,
        suspend: state.suspend,
        terminated: state.terminated,
        steps: project::steps(&state, &world.spec),
        ..Seen::default()
    };
    change(&mut seen);
    seen
}

fn take_in(world: &mut World, seen: &Seen) {
    for event in edit::events(seen, &world.log, &world.spec) {
        let seq = world.state().seq + 1;
        let time = world.now;
        world.log.push(Entry { seq, time, event });
    }
}

#[test]
fn a_suspended_workflow_goes_on_when_the_flag_is_cleared() {
    let steps = json!([{"name": "s", "type": "suspend"}, {"name": "b", "type": "note"}]);
    let mut world = World::new("StepByStep", steps);
    world.run();
    assert_eq!(world.phases(), ["s suspending/Suspend"]);
    assert_eq!(world.state().steps[0].message, "Suspended by field suspend");
    let unchanged = edited(&world, |_| {});
    assert_eq!(edit::events(&unchanged, &world.log, &world.spec), []);
    let seen = edited(&world, |seen| seen.suspend = false);
    take_in(&mut world, &seen);
    world.run();
    assert_eq!(world.phases(), ["s succeeded", "b succeeded"]);
}

#[test]
fn a_suspension_ends_with_its_duration() {
    let steps = json!([{"name": "s", "type": "suspend", "properties": {"duration": "5s"}}]);
    let mut world = World::new("StepByStep", steps);
    let start = world.now;
    world.run();
    assert_eq!(world.phases(), ["s succeeded"]);
    assert_eq!(world.now.duration_since(start).as_secs(), 5);
}

#[test]
fn the_flag_that_ends_a_workflow_ends_it() {
    let steps = json!([
        {"name": "a", "type": "wait", "properties": {"door": "d"}},
        {"name": "b", "type": "note"},
        {"name": "c", "type": "note", "inputs": [{"from": "never"}]},
    ]);
    let mut world = World::new("DAG", steps);
    world.pass(Woken::All).unwrap();
    let seen = edited(&world, |seen| seen.terminated = true);
    take_in(&mut world, &seen);
    let state = world.run();
    assert_eq!(project::phase(&state), WorkflowRunPhase::Terminated);
    assert_eq!(
        world.phases(),
        ["a failed/Terminate", "b succeeded", "c skipped/Skip"]
    );
}

#[test]
fn a_workflow_that_was_suspended_by_a_failure_can_be_ended() {
    let mut world = World::new("StepByStep", json!([{"name": "a", "type": "broken"}]));
    world.settings.suspend_on_failure = true;
    let state = world.run();
    assert_eq!(project::phase(&state), WorkflowRunPhase::Suspending);
    let seen = edited(&world, |seen| {
        seen.suspend = false;
        seen.terminated = true;
    });
    take_in(&mut world, &seen);
    let state = world.run();
    assert!(state.finished.is_some(), "{:?}", world.phases());
}

#[test]
fn a_status_that_is_behind_the_log_is_no_change_of_anybody() {
    let steps = json!([{"name": "a", "type": "note"}, {"name": "b", "type": "wait", "properties": {"door": "d"}}]);
    let mut world = World::new("StepByStep", steps);
    world.pass(Woken::All).unwrap();
    let old = edited(&world, |_| {});
    world.open("d");
    world.run();
    assert_eq!(world.phases(), ["a succeeded", "b succeeded"]);
    assert_eq!(edit::events(&old, &world.log, &world.spec), []);
}

#[test]
fn a_cleared_status_begins_again_with_other_identities() {
    let mut world = World::new(
        "StepByStep",
        json!([{"name": "a", "type": "post", "properties": {"url": "x"}}]),
    );
    world.run();
    let first = world.state().steps[0].id.clone();
    take_in(
        &mut world,
        &Seen {
            is_cleared: true,
            ..Seen::default()
        },
    );
    world.run();
    assert_eq!(world.requests.len(), 2);
    assert_ne!(world.state().steps[0].id, first);
}

#[test]
fn conditions_may_speak_of_outputs() {
    let mut world = World::new(
        "StepByStep",
        json!([
            {"name": "request", "type": "hook", "properties": {"url": "x"}},
            {"name": "fine", "type": "note", "if": "request.output.responseCode == 200"},
            {"name": "bad", "type": "note", "if": "request.output.responseCode == 400"},
        ]),
    );
    let hook = "import \"vela/http\"\nparameter: url: string\nreq: http.#HTTPDo & {$params: {method: \"POST\", url: parameter.url}}\noutput: responseCode: req.$returns.statusCode";
    let hook = std::sync::Arc::new(bellwether_workflow::Definition::new(hook));
    world.spec.definitions.insert("hook".to_owned(), hook);
    world.run();
    assert_eq!(
        world.phases(),
        ["request succeeded", "fine succeeded", "bad skipped/Skip"]
    );
}

#[test]
fn a_workflow_that_ends_early_makes_good_for_what_was_begun() {
    let undo = |url: &str| json!({"type": "post", "properties": {"url": url}});
    let steps = |last: &str| {
        json!([
            {"name": "a", "type": "note", "onTerminate": undo("undo-a")},
            {"name": "b", "type": "note", "onTerminate": undo("undo-b")},
            {"name": "c", "type": last},
            {"name": "d", "type": "note", "onTerminate": undo("undo-d")},
        ])
    };
    let world = check(
        "StepByStep",
        steps("boom"),
        "failed",
        &[
            "a succeeded",
            "b succeeded",
            "c failed/Action",
            "d skipped/Skip",
            "b-on-terminate succeeded",
            "a-on-terminate succeeded",
        ],
    );
    let sent: Vec<&str> = world.requests.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(sent, ["undo-b", "undo-a"]);
    let world = check(
        "StepByStep",
        steps("note"),
        "succeeded",
        &["a succeeded", "b succeeded", "c succeeded", "d succeeded"],
    );
    assert!(world.requests.is_empty());
}

#[test]
fn another_revision_begins_from_the_start_and_a_restored_one_does_not() {
    let mut world = World::new(
        "StepByStep",
        json!([{"name": "a", "type": "post", "properties": {"url": "u"}}]),
    );
    world.spec.revision = "v1".to_owned();
    let first = world.run();
    world.run();
    assert_eq!(world.requests.len(), 1);
    let mut status = WorkflowStatus {
        app_revision: "v1".to_owned(),
        ..WorkflowStatus::default()
    };
    project::write_status(&first, &world.spec, &mut status);
    world.spec.revision = "v2".to_owned();
    world.run();
    assert_eq!(world.requests.len(), 2);
    // Somebody goes back to what was delivered before, with its status.
    world.spec.revision = "v1".to_owned();
    let seen = Seen {
        delivered: edit::delivered(&status).map(Box::new),
        ..Seen::default()
    };
    let events = edit::events(&seen, &world.log, &world.spec);
    let state = world.state();
    for (seq, event) in (state.seq + 1..).zip(events) {
        let time = world.now;
        world.log.push(Entry { seq, time, event });
    }
    let state = world.run();
    assert_eq!(world.requests.len(), 2);
    assert_eq!(
        (state.revision.as_str(), state.finished),
        ("v1", first.finished)
    );
}

#[test]
fn a_workflow_that_goes_back_makes_good_for_what_was_done() {
    let undo = |url: &str| json!({"type": "post", "properties": {"url": url}});
    let steps = |last: &str| {
        json!([
            {"name": "a", "type": "note", "onRollback": undo("undo-a")},
            {"name": "b", "type": "note", "onRollback": undo("undo-b"), "onTerminate": undo("end-b")},
            {"name": "c", "type": "note", "if": "false", "onRollback": undo("undo-c")},
            {"name": "d", "type": last},
        ])
    };
    let world = check(
        "StepByStep",
        steps("back"),
        "succeeded",
        &[
            "a succeeded",
            "b succeeded",
            "c skipped/Skip",
            "d succeeded",
            "b-on-rollback succeeded",
            "a-on-rollback succeeded",
        ],
    );
    let sent: Vec<&str> = world.requests.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(sent, ["undo-b", "undo-a"]);
    assert_eq!(world.state().rolled_back_to, "shop-v1");
    let world = check(
        "StepByStep",
        steps("note"),
        "succeeded",
        &[
            "a succeeded",
            "b succeeded",
            "c skipped/Skip",
            "d succeeded",
        ],
    );
    assert!(world.requests.is_empty());
}

#[test]
fn somebody_who_goes_back_has_steps_made_good_for() {
    let undo = |url: &str| json!({"type": "post", "properties": {"url": url}});
    let steps = |last: &str| {
        json!([
            {"name": "a", "type": "note", "onRollback": undo("undo-a")},
            {"name": "b", "type": "post", "properties": {"url": "b"}, "onRollback": undo("undo-b")},
            {"name": "c", "type": last, "onRollback": undo("undo-c"), "onTerminate": undo("end-c")},
        ])
    };
    // Of a workflow that waits for somebody, and of one that has failed.
    for (last, phase, end) in [
        ("suspend", "terminated", "failed/Terminate"),
        ("boom", "failed", "failed/Action"),
    ] {
        let mut world = World::new("StepByStep", steps(last));
        world.run();
        let seen = edited(&world, |seen| seen.rolling_back = true);
        take_in(&mut world, &seen);
        let state = world.run();
        let finished = state.finished.as_ref().map(ToString::to_string);
        assert_eq!(finished.as_deref(), Some(phase));
        let c = format!("c {end}");
        let mut expected = vec!["a succeeded", "b succeeded", &c, "c-on-terminate succeeded"];
        expected.extend(["b-on-rollback succeeded", "a-on-rollback succeeded"]);
        assert_eq!(world.phases(), expected);
        let sent: Vec<&str> = world.requests.iter().map(|(url, _)| url.as_str()).collect();
        assert_eq!(sent, ["b", "end-c", "undo-b", "undo-a"]);
        // Asking again changes nothing.
        let seen = edited(&world, |seen| seen.rolling_back = true);
        take_in(&mut world, &seen);
        world.run();
        assert_eq!(world.requests.len(), 4);
    }
}

#[test]
fn a_step_that_is_carried_out_again_hands_its_values_on_again() {
    let mut world = World::new(
        "StepByStep",
        json!([
            {"name": "a", "type": "emit", "properties": {"v": 1}, "outputs": [{"name": "kept", "valueFrom": "got"}]},
            {"name": "b", "type": "emit", "properties": {"v": 2}, "outputs": [{"name": "again", "valueFrom": "got"}]},
            {"name": "c", "type": "boom"},
        ]),
    );
    world.run();
    world.spec.steps[1].base.properties = json!({"v": 3}).as_object().cloned();
    world.spec.steps[2].base.step_type = "note".to_owned();
    let seen = edited(&world, |seen| seen.steps.truncate(1));
    take_in(&mut world, &seen);
    let state = world.run();
    assert_eq!(state.vars["kept"], 1);
    assert_eq!(state.vars["again"], 3);
    assert_eq!(
        world.phases(),
        ["a succeeded", "b succeeded", "c succeeded"]
    );
}
