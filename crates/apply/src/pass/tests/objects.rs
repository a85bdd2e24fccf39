//! What is done about one object, by what comes of it.

use super::*;
use crate::target::ServerSide;

fn server_side(force: bool) -> Strategy<'static> {
    Strategy::ServerSide(ServerSide {
        manager: "me",
        force,
        ignore: Vec::new(),
        hash_annotation: "example.com/hash",
    })
}

/// Carries out a pass over one object that is on record.
fn run<'a>(
    scene: &'a Scene,
    object: Object<'a>,
    cluster: &mut Cluster,
    now: Timestamp,
) -> (Outcome, Object<'a>) {
    let record = recorded(&["a"], &[]);
    let pass = scene.pass(vec![Slot::Open(object)], &record);
    let mut settled = cluster.carry_out(pass, now);
    let outcome = settled.outcomes.remove(0).unwrap();
    let Slot::Open(object) = settled.slots.remove(0) else {
        panic!();
    };
    (outcome, object)
}

#[track_caller]
fn check(scene: &Scene, mut cluster: Cluster, log: &[&str]) -> Outcome {
    let (outcome, _) = run(scene, scene.object(0), &mut cluster, NOW);
    assert_eq!(cluster.log, log);
    outcome
}

/// Carries out a pass whose first writes are refused; returns what became of the object.
fn refuse_writes(scene: &Scene, cluster: &mut Cluster, kind: RefusalKind, count: usize) -> Outcome {
    let mut pass = scene.pass(scene.slots(), &recorded(&["a"], &[]));
    let mut left = count;
    while let Round::Do(tasks) = pass.round(|_| LiveState::Unknown, NOW) {
        for task in tasks {
            match task {
                Task::Write(index, step) if left > 0 => {
                    left -= 1;
                    cluster.log.push("refused".to_owned());
                    let refusal = Refusal {
                        kind,
                        message: String::new(),
                        retry: Retry::Backoff,
                    };
                    pass.was_written(index, step, Err(refusal), NOW);
                }
                task => cluster.do_task(&mut pass, task, NOW),
            }
        }
    }
    pass.settle().outcomes.remove(0).unwrap()
}

#[test]
fn a_change_meanwhile_is_read_and_decided_again() {
    let scene = Scene::new(&["a"]);
    let mut cluster = Cluster::default().with("a", "old");
    let outcome = refuse_writes(&scene, &mut cluster, RefusalKind::Conflict, 2);
    let expected = [
        "read a",
        "refused",
        "read a",
        "refused",
        "read a",
        "replace a",
    ];
    assert_eq!(cluster.log, expected);
    assert_eq!(outcome.result, Ok(Effect::Wrote));
}

#[test]
fn an_object_that_keeps_changing_is_given_up_for_now() {
    let scene = Scene::new(&["a"]);
    let mut cluster = Cluster::default().with("a", "old");
    let outcome = refuse_writes(&scene, &mut cluster, RefusalKind::Conflict, 100);
    let writes = cluster.log.iter().filter(|line| *line == "refused").count();
    assert_eq!(writes, 5, "the first attempt was a read");
    let message = "the object keeps changing while it is being written";
    assert_eq!(outcome.result, Err(failed(message)));
    assert_eq!(outcome.retry(), Retry::Backoff);
}

fn failed(message: &str) -> Problem {
    Problem::Failed {
        message: message.to_owned(),
        obstacle: None,
        retry: Retry::Backoff,
    }
}

#[test]
fn fields_of_our_own_are_taken_and_those_of_others_are_for_people_to_resolve() {
    let mut scene = Scene::new(&["a"]);
    scene.strategy = server_side(false);
    scene.applied_before = false;
    let cluster = Cluster::default().refusing("a", &[RefusalKind::OwnFields]);
    let outcome = check(&scene, cluster, &["apply a", "force a", "own a"]);
    assert_eq!(outcome.result, Ok(Effect::Wrote));
    let cluster = Cluster::default().refusing("a", &[RefusalKind::Conflict]);
    let outcome = check(&scene, cluster, &["apply a", "read a"]);
    assert_eq!(outcome.again, Some(after(300)));
    assert_eq!(outcome.retry(), Retry::Never);
}

/// When an object is tried again whose write is refused.
#[test]
fn a_refusal_is_tried_again_when_the_server_says_that_it_is_worth_it() {
    let wait = Retry::After(std::time::Duration::from_secs(7));
    for (kind, retry, expected) in [
        // Invalid, or forbidden.
        (RefusalKind::Other, Retry::Slowly, Retry::Slowly),
        (RefusalKind::Immutable, Retry::Slowly, Retry::Slowly),
        // Busy, or away.
        (RefusalKind::Other, Retry::Backoff, Retry::Backoff),
        (RefusalKind::Other, wait, wait),
        (RefusalKind::NotFound, Retry::Backoff, Retry::Backoff),
        // A namespace that is being deleted is refused as forbidden.
        (RefusalKind::NamespaceMissing, Retry::Slowly, Retry::Backoff),
    ] {
        let scene = Scene::new(&["a"]);
        let mut pass = scene.pass(scene.slots(), &recorded(&["a"], &[]));
        let mut cluster = Cluster::default();
        while let Round::Do(tasks) = pass.round(|_| LiveState::Unknown, NOW) {
            for task in tasks {
                match task {
                    Task::Write(index, step) => {
                        let message = "no".to_owned();
                        let refusal = Refusal {
                            kind,
                            message,
                            retry,
                        };
                        pass.was_written(index, step, Err(refusal), NOW);
                    }
                    task => cluster.do_task(&mut pass, task, NOW),
                }
            }
        }
        let outcome = pass.settle().outcomes.remove(0).unwrap();
        assert_eq!(outcome.retry(), expected, "{kind:?} {retry:?}");
    }
}

#[test]
fn a_secret_that_cannot_be_changed_is_made_again() {
    let mut scene = Scene::new(&["a"]);
    let mut secret = manifest("Secret", "a", "bmV3").object;
    scene.manifests = vec![Manifest::read(0, &secret).unwrap()];
    secret["data"]["k"] = json!("b2xk");
    secret["metadata"]["ownerReferences"] = json!([owner().reference()]);
    let mut cluster = Cluster::default();
    cluster.store(&id("a"), secret);
    let record = recorded(&["a"], &[]);
    let mut pass = scene.pass(scene.slots(), &record);
    let Round::Do(tasks) = pass.round(|_| LiveState::Unknown, NOW) else {
        panic!();
    };
    for task in tasks {
        cluster.do_task(&mut pass, task, NOW);
    }
    cluster = cluster.refusing("a", &[RefusalKind::Immutable]);
    let settled = cluster.carry_out(pass, NOW);
    assert_eq!(cluster.log, ["read a", "replace a", "recreate a"]);
    assert!(settled.outcomes[0].as_ref().unwrap().is_recreated);
    assert_eq!(cluster.objects[&id("a")]["data"]["k"], "bmV3");
}

#[test]
fn a_missing_namespace_is_named_as_what_stands_in_the_way() {
    let mut scene = Scene::new(&["a"]);
    scene.applied_before = false;
    let cluster = Cluster::default().refusing("a", &[RefusalKind::NamespaceMissing]);
    let outcome = check(&scene, cluster, &["create a", "read a"]);
    let Err(Problem::Failed { obstacle, .. }) = outcome.result else {
        panic!();
    };
    assert_eq!(obstacle, Some(Obstacle::NoNamespace));
}

#[test]
fn a_kind_that_was_just_defined_is_waited_for_but_not_long() {
    let mut scene = Scene::new(&["a"]);
    scene.applied_before = false;
    let mut memory = Memory::default();
    for (seconds, is_waited_for) in [(0, true), (4, true), (5, false)] {
        let object = Object {
            is_defined_here: true,
            memory,
            ..scene.object(0)
        };
        let mut cluster = Cluster::default().refusing("a", &[RefusalKind::NotFound]);
        let (outcome, object) = run(&scene, object, &mut cluster, after(seconds));
        memory = object.memory;
        let Err(Problem::Failed { obstacle, .. }) = outcome.result else {
            panic!();
        };
        let soon = after(seconds) + SignedDuration::from_millis(50);
        let expected = is_waited_for.then_some(Obstacle::Unserved(soon));
        assert_eq!(obstacle, expected, "{seconds}");
    }
}

#[test]
fn who_may_write_is_asked_as_often_as_it_has_to_be() {
    let scene = Scene::new(&["a"]);
    let check = |permission: Permission, value: &str, answer: Option<Permission>, log: &[&str]| {
        let mut cluster = Cluster::default().with("a", value);
        cluster.permission = answer;
        let object = Object {
            permission,
            ..scene.object(0)
        };
        let (outcome, _) = run(&scene, object, &mut cluster, NOW);
        assert_eq!(cluster.log, log);
        outcome
    };
    let denied = Permission::Denied {
        until: after(60),
        message: "no".to_owned(),
    };
    check(Permission::NotNeeded, "old", None, &["read a", "replace a"]);
    check(Permission::Unknown, "v", None, &["ask a", "read a"]);
    check(Permission::GrantedBefore, "v", None, &["read a"]);
    let asked = ["read a", "ask a", "replace a"];
    check(Permission::GrantedBefore, "old", None, &asked);
    let outcome = check(denied.clone(), "old", None, &["read a"]);
    assert_eq!(outcome.result, Err(Problem::Denied("no".to_owned())));
    assert_eq!(outcome.again, Some(after(60)));
    assert!(
        outcome.live.object().is_some(),
        "it may have to be removed later"
    );
    check(
        Permission::Unknown,
        "old",
        Some(denied),
        &["ask a", "read a"],
    );
    let unknown = Permission::Failed("nobody answers".to_owned());
    let outcome = check(Permission::Unknown, "old", Some(unknown), &["ask a"]);
    assert_eq!(outcome.result, Err(failed("nobody answers")));
}

#[test]
fn a_blocked_object_is_read_for_the_report_and_not_written() {
    let scene = Scene::new(&["a"]);
    let object = Object {
        blocked: Some(Blocked {
            message: "later".to_owned(),
            until: Some(after(9)),
            retry: Retry::Never,
        }),
        ..scene.object(0)
    };
    let mut cluster = Cluster::default().with("a", "old");
    let (outcome, _) = run(&scene, object, &mut cluster, NOW);
    assert_eq!(cluster.log, ["read a"]);
    assert_eq!(outcome.again, Some(after(9)));
    assert!(outcome.live.object().is_some() && !outcome.retry().is_due());
}

#[test]
fn what_is_done_or_about_to_go_is_not_written() {
    let scene = Scene::new(&["a"]);
    let leaving = Cluster::default().with("a", "old").changed("a", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    let outcome = check(&scene, leaving, &["read a"]);
    assert_eq!(outcome.result, Ok(Effect::Left));
    let is_done = |object: &Value| object["data"]["k"] == "done";
    for (value, log) in [("done", &["read a"][..]), ("old", &["read a", "replace a"])] {
        let object = Object {
            is_done: Some(Box::new(is_done)),
            ..scene.object(0)
        };
        let mut cluster = Cluster::default().with("a", value);
        run(&scene, object, &mut cluster, NOW);
        assert_eq!(cluster.log, log, "{value}");
    }
}

#[test]
fn a_contest_is_slowed_down() {
    let scene = Scene::new(&["a"]);
    let mut memory = Memory::default();
    let mut effects = Vec::new();
    for _ in 0..12 {
        let mut cluster = Cluster::default().with("a", "theirs");
        let object = Object {
            memory,
            ..scene.object(0)
        };
        let (outcome, object) = run(&scene, object, &mut cluster, NOW);
        memory = object.memory;
        effects.push((outcome.result.unwrap(), outcome.again));
    }
    assert_eq!(effects[0], (Effect::Wrote, None));
    assert_eq!(effects[1..11], [(Effect::Repaired, None); 10]);
    assert_eq!(effects[11], (Effect::Left, Some(after(1))));
}

#[test]
fn those_come_first_that_others_build_on() {
    let mut scene = Scene::new(&["a"]);
    scene.applied_before = false;
    scene.manifests.push(manifest("Service", "s", "v"));
    scene.manifests.push(manifest("Namespace", "n", "v"));
    scene.manifests.push(manifest("ConfigMap", "b", "v"));
    let mut pass = scene.pass(scene.slots(), &recorded(&["a", "b", "n", "s"], &[]));
    let mut rounds = Vec::new();
    let mut cluster = Cluster::default();
    while let Round::Do(tasks) = pass.round(|_| LiveState::Unknown, NOW) {
        for task in tasks {
            cluster.do_task(&mut pass, task, NOW);
        }
        rounds.push(std::mem::take(&mut cluster.log).join(", "));
    }
    assert_eq!(rounds, ["create n", "create a, create b", "create s"]);
}
