//! What is recorded, what is removed, and what stays.

use super::*;

/// A pass over manifests with a record, on a cluster.
struct Case<'a> {
    wanted: &'a [&'a str],
    record: Record,
    cluster: Cluster,
    may_prune: bool,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            wanted: &["a"],
            record: recorded(&["a"], &[]),
            cluster: Cluster::default().with("a", "v"),
            may_prune: true,
        }
    }
}

/// What a case comes to: what was done, what is applied and intended afterwards (if that changes), what
/// is waited for.
struct Expected<'a> {
    log: &'a [&'a str],
    applied: Option<&'a [&'a str]>,
    intended: Option<&'a [&'a str]>,
    pending: &'a [&'a str],
}

#[track_caller]
fn check(case: Case<'_>, expected: &Expected<'_>) {
    let mut scene = Scene::new(case.wanted);
    scene.may_prune = case.may_prune;
    let mut cluster = case.cluster;
    let settled = cluster.carry_out(scene.pass(scene.slots(), &case.record), NOW);
    assert_eq!(cluster.log, expected.log);
    let change = &settled.change;
    assert_eq!(
        change.applied.as_deref().map(names).as_deref(),
        expected.applied
    );
    assert_eq!(
        change.intended.as_deref().map(names).as_deref(),
        expected.intended
    );
    let pending: Vec<&str> = settled.pending.iter().map(|it| &*it.waits_for).collect();
    assert_eq!(pending, expected.pending);
}

const NOTHING: Expected<'_> = Expected {
    log: &["read a"],
    applied: None,
    intended: None,
    pending: &[],
};

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    check(Case::default(), &NOTHING);
}

#[test]
fn what_is_about_to_be_written_is_on_record_before() {
    check(
        Case {
            wanted: &["a", "b"],
            cluster: Cluster::default(),
            record: recorded(&[], &[]),
            ..Case::default()
        },
        &Expected {
            log: &["intend a b", "read a", "read b", "create a", "create b"],
            applied: Some(&["a", "b"]),
            ..NOTHING
        },
    );
}

#[test]
fn what_is_no_longer_wanted_is_removed_and_leaves_the_record() {
    check(
        Case {
            record: recorded(&["a", "b"], &["b"]),
            cluster: Cluster::default().with("a", "v").with("b", "v"),
            ..Case::default()
        },
        &Expected {
            log: &["read a", "read b", "delete b"],
            applied: Some(&["a"]),
            intended: Some(&[]),
            ..NOTHING
        },
    );
}

#[test]
fn what_was_intended_and_never_written_leaves_the_record() {
    check(
        Case {
            record: recorded(&["a"], &["b"]),
            ..Case::default()
        },
        &Expected {
            log: &["read a", "read b"],
            intended: Some(&[]),
            ..NOTHING
        },
    );
}

#[test]
fn what_is_being_deleted_stays_on_record() {
    let cluster = || {
        let both = Cluster::default().with("a", "v").with("b", "v");
        both.changed("b", |object| {
            object["metadata"]["finalizers"] = json!(["x/y"]);
        })
    };
    let expected = Expected {
        log: &["read a", "read b", "delete b"],
        pending: &["configmaps n/b with finalizers x/y"],
        ..NOTHING
    };
    let case = |cluster| Case {
        record: recorded(&["a", "b"], &[]),
        cluster,
        ..Case::default()
    };
    check(case(cluster()), &expected);
    let leaving = cluster().changed("b", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["finalizers"] = json!([]);
    });
    check(
        case(leaving),
        &Expected {
            log: &["read a", "read b"],
            pending: &["configmaps n/b to end"],
            ..NOTHING
        },
    );
}

#[test]
fn what_others_own_too_is_released_and_what_they_own_alone_is_left() {
    let both = || Cluster::default().with("a", "v").with("b", "v");
    let mut other = owner().reference();
    other["name"] = json!("other");
    other["uid"] = json!("other");
    let case = |cluster| Case {
        record: recorded(&["a", "b"], &[]),
        cluster,
        ..Case::default()
    };
    let shared = both().changed("b", |object| {
        let owners = object["metadata"]["ownerReferences"].as_array_mut();
        owners.unwrap().push(other.clone());
    });
    check(
        case(shared),
        &Expected {
            log: &["read a", "read b", "release b"],
            applied: Some(&["a"]),
            ..NOTHING
        },
    );
    let theirs = both().changed("b", |object| {
        object["metadata"]["ownerReferences"] = json!([other]);
    });
    check(
        case(theirs),
        &Expected {
            log: &["read a", "read b"],
            applied: Some(&["a"]),
            ..NOTHING
        },
    );
}

#[test]
fn nothing_leaves_the_record_while_pruning_is_put_off() {
    check(
        Case {
            record: recorded(&["a", "b"], &["c"]),
            cluster: Cluster::default().with("a", "v").with("b", "v"),
            may_prune: false,
            ..Case::default()
        },
        &NOTHING,
    );
}

#[test]
fn an_object_that_cannot_be_removed_stays_on_record_and_holds_up_no_other() {
    check(
        Case {
            record: recorded(&["a", "b", "c"], &[]),
            cluster: Cluster::default()
                .with("a", "v")
                .with("b", "v")
                .with("c", "v")
                .refusing("b", &[RefusalKind::Other]),
            ..Case::default()
        },
        &Expected {
            log: &["read a", "read b", "read c", "delete c"],
            applied: Some(&["a", "b"]),
            pending: &["configmaps n/b, which cannot be removed: Other"],
            ..NOTHING
        },
    );
}

#[test]
fn an_object_that_cannot_be_read_stays_on_record() {
    check(
        Case {
            cluster: Cluster::default()
                .with("a", "v")
                .refusing("a", &[RefusalKind::Other]),
            ..Case::default()
        },
        &NOTHING,
    );
}

#[test]
fn an_object_that_is_gone_and_cannot_be_created_is_only_intended() {
    let mut scene = Scene::new(&["a"]);
    scene.applied_before = false;
    let mut cluster = Cluster::default().refusing("a", &[RefusalKind::Other]);
    let settled = cluster.carry_out(scene.pass(scene.slots(), &recorded(&["a"], &[])), NOW);
    assert_eq!(cluster.log, ["create a", "read a"]);
    assert_eq!(settled.change.applied, Some(Vec::new()));
    assert_eq!(names(settled.change.intended.as_deref().unwrap()), ["a"]);
    assert!(settled.outcomes[0].as_ref().unwrap().retry().is_due());
}

#[test]
fn objects_that_are_done_or_whose_kind_is_not_served_keep_their_entries() {
    let scene = Scene::new(&[]);
    let unmapped = |name: &str, namespace: &str| Slot::Unmapped {
        group: String::new(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let slots = vec![
        Slot::Finished(id("done")),
        unmapped("unserved", "n"),
        unmapped("anywhere", ""),
        unmapped("elsewhere", "other"),
    ];
    let everything = recorded(
        &["anywhere", "done", "elsewhere", "unserved"],
        &["anywhere", "gone"],
    );
    let mut cluster = Cluster::default().with("elsewhere", "v");
    let settled = cluster.carry_out(scene.pass(slots, &everything), NOW);
    assert_eq!(
        cluster.log,
        ["read elsewhere", "read gone", "delete elsewhere"]
    );
    let change = settled.change;
    assert_eq!(
        names(&change.applied.unwrap()),
        ["anywhere", "done", "unserved"]
    );
    assert_eq!(names(&change.intended.unwrap()), ["anywhere"]);
    assert_eq!(settled.removed, [id("elsewhere"), id("gone")]);
}

#[test]
fn another_version_is_the_same_object() {
    let mut record = recorded(&["a"], &[]);
    record.applied[0].version = "v1beta1".into();
    check(
        Case {
            record,
            ..Case::default()
        },
        &Expected {
            applied: Some(&["a"]),
            ..NOTHING
        },
    );
}

#[test]
fn what_is_left_behind_is_released_and_the_rest_removed() {
    let mut scene = Scene::new(&[]);
    scene.is_left = Some(&|id: &ObjectId| id.name == "a");
    let mut cluster = Cluster::default().with("a", "v").with("b", "v");
    let record = recorded(&["a", "b", "c"], &[]);
    let settled = cluster.carry_out(scene.pass(Vec::new(), &record), NOW);
    assert_eq!(
        cluster.log,
        ["read a", "read b", "read c", "release a", "delete b"]
    );
    assert_eq!(settled.change.applied, Some(Vec::new()));
    assert_eq!(
        cluster.objects[&id("a")]["metadata"]["ownerReferences"],
        json!([])
    );
}
