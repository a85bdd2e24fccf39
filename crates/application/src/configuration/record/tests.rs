//! What is on record of objects, and what becomes of those that are no longer wanted.

#![allow(clippy::needless_pass_by_value, reason = "tables are written in place")]

use serde_json::json;

use super::super::render::RenderedComponent;
use super::*;

const TARGET: Target<'_> = Target {
    namespace: "market",
    generation: 2,
};

fn status(value: Value) -> ApplicationConfigurationStatus {
    serde_json::from_value(value).unwrap()
}

fn object(role: Role, kind: &str, name: &str) -> RenderedObject {
    RenderedObject {
        component: 0,
        role,
        object: json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": "market"}}),
        outputs: Vec::new(),
        inputs: Vec::new(),
    }
}

/// A component `web` of revision v2 with these objects.
fn rendered(objects: Vec<RenderedObject>, is_revision_enabled: bool) -> Rendered {
    Rendered {
        components: vec![RenderedComponent {
            name: "web".into(),
            revision: "web-v2".into(),
            is_revision_enabled,
        }],
        objects,
    }
}

fn web_and_scaler() -> Rendered {
    let objects = vec![
        object(Role::Workload, "Web", "web"),
        object(Role::Trait, "Scaler", "scaler"),
    ];
    rendered(objects, false)
}

/// What the status had for revision v1 and generation 1.
fn before() -> ApplicationConfigurationStatus {
    status(json!({"workloads": [{
        "componentName": "web",
        "componentRevisionName": "web-v1",
        "appliedComponentRevision": "web-v1",
        "workloadRef": {"apiVersion": "v1", "kind": "Web", "name": "web", "uid": "u1"},
        "traits": [{"traitRef": {"apiVersion": "v1", "kind": "Scaler", "name": "scaler"}, "appliedGeneration": 1}],
    }]}))
}

fn fate(is_applied: bool, waits: bool) -> Fate {
    Fate {
        is_applied,
        waits,
        uid: Some("u1".into()),
    }
}

#[track_caller]
fn check_applied(
    old: ApplicationConfigurationStatus,
    fates: [Fate; 2],
    expected: (&str, Option<i64>),
) {
    let found = workloads(&old.workloads, &web_and_scaler(), &fates, &[], TARGET);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].component_revision_name, "web-v2");
    let applied = (
        found[0].applied_component_revision.as_str(),
        found[0].traits[0].applied_generation,
    );
    assert_eq!(applied, expected);
}

#[test]
fn what_is_applied_or_left_counts_as_applied() {
    let (applied, failed) = (fate(true, false), fate(false, false));
    let done = ("web-v2", Some(2));
    check_applied(before(), [applied.clone(), applied.clone()], done);
    check_applied(status(json!({})), [applied.clone(), applied.clone()], done);
    // What failed is tried again: what is on record of it is of the time before.
    check_applied(
        before(),
        [failed.clone(), applied.clone()],
        ("web-v1", Some(2)),
    );
    check_applied(before(), [applied, failed.clone()], ("web-v2", None));
    let waiting = fate(false, true);
    check_applied(status(json!({})), [waiting, failed], ("", None));
}

#[test]
fn a_trait_that_fails_keeps_its_generation_while_the_revision_is_the_same() {
    let mut old = before();
    old.workloads[0].component_revision_name = "web-v2".into();
    check_applied(
        old,
        [fate(true, false), fate(false, false)],
        ("web-v2", Some(1)),
    );
}

#[test]
fn what_is_no_longer_wanted_is_found_on_record() {
    let names = |rendered: &Rendered, status: &ApplicationConfigurationStatus| -> Vec<String> {
        let unwanted = unwanted(status, rendered, "market").into_iter();
        unwanted.map(|it| it.reference.name).collect()
    };
    let nothing = Vec::<String>::new();
    assert_eq!(names(&web_and_scaler(), &before()), nothing);
    let renamed = rendered(vec![object(Role::Workload, "Web", "other")], false);
    assert_eq!(names(&renamed, &before()), ["web", "scaler"]);
    assert_eq!(names(&Rendered::default(), &before()), ["web", "scaler"]);
    // The same name in another kind is another object.
    let other = rendered(vec![object(Role::Workload, "Shop", "web")], false);
    assert_eq!(names(&other, &before()), ["web", "scaler"]);
    let history = status(
        json!({"historyWorkloads": [{"componentName": "web", "revision": "web-v1",
        "workloadRef": {"apiVersion": "v1", "kind": "Web", "name": "web-v1"}}]}),
    );
    assert_eq!(names(&web_and_scaler(), &history), nothing);
    assert_eq!(names(&Rendered::default(), &history), ["web-v1"]);
}

#[track_caller]
fn check_removal(
    mode: ApplyOnce,
    (role, name): (Role, &str),
    is_revision_enabled: bool,
    live: Option<Value>,
    expected: Removal,
) {
    let unwanted = Unwanted {
        role,
        component: "web".into(),
        revision: "web-v1".into(),
        reference: object(role, "Web", name).reference("market"),
    };
    let rendered = rendered(Vec::new(), is_revision_enabled);
    let found = removal(mode, &unwanted, &rendered, live.as_ref());
    assert_eq!(found, expected, "{mode} {role:?} {name} {live:?}");
}

#[test]
fn workloads_that_run_are_not_deleted_with_apply_once() {
    let live = |replicas: Value| Some(json!({"spec": {"replicas": replicas}}));
    let refused =
        || Removal::Refuse("can't delete workload with replicas 2 in apply once only mode".into());
    let workload = (Role::Workload, "old");
    for mode in [ApplyOnce::On, ApplyOnce::Force] {
        check_removal(mode, workload, false, live(json!(2)), refused());
        check_removal(mode, workload, false, live(json!(0)), Removal::Delete);
        check_removal(mode, workload, false, live(Value::Null), Removal::Delete);
        check_removal(mode, workload, false, None, Removal::Delete);
        check_removal(
            mode,
            (Role::Trait, "old"),
            false,
            live(json!(2)),
            Removal::Delete,
        );
    }
    check_removal(
        ApplyOnce::Off,
        workload,
        false,
        live(json!(2)),
        Removal::Delete,
    );
}

#[test]
fn workloads_of_earlier_revisions_are_kept() {
    let live = Some(json!({"spec": {"replicas": 2}}));
    for mode in [ApplyOnce::Off, ApplyOnce::On, ApplyOnce::Force] {
        check_removal(
            mode,
            (Role::Workload, "web-v1"),
            false,
            live.clone(),
            Removal::Keep,
        );
        check_removal(
            mode,
            (Role::Workload, "web"),
            true,
            live.clone(),
            Removal::Keep,
        );
    }
    let off = ApplyOnce::Off;
    check_removal(
        off,
        (Role::Workload, "web-app"),
        false,
        live,
        Removal::Delete,
    );
}

#[test]
fn what_is_not_gone_stays_on_record() {
    let old = before();
    let leftovers = unwanted(&old, &Rendered::default(), "market");
    let kept = workloads(
        &old.workloads,
        &Rendered::default(),
        &[],
        &leftovers,
        TARGET,
    );
    assert_eq!(kept, old.workloads);
    // A trait that is not gone stays with its workload.
    let without = rendered(vec![object(Role::Workload, "Web", "web")], false);
    let leftovers = unwanted(&old, &without, "market");
    let kept = workloads(
        &old.workloads,
        &without,
        &[fate(true, false)],
        &leftovers,
        TARGET,
    );
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].applied_component_revision, "web-v2");
    assert_eq!(kept[0].traits, old.workloads[0].traits);
}

#[test]
fn history_has_each_workload_once() {
    let known: Vec<HistoryWorkload> = serde_json::from_value(json!([
        {"componentName": "web", "revision": "web-v1", "workloadRef": {"apiVersion": "v1", "kind": "Web", "name": "web-v1"}},
        {"componentName": "gone", "revision": "gone-v1", "workloadRef": {"apiVersion": "v1", "kind": "Web", "name": "gone-v1"}},
    ]))
    .unwrap();
    let rendered = web_and_scaler();
    let kept = Unwanted {
        role: Role::Workload,
        component: "web".into(),
        revision: "web-v1".into(),
        reference: known[0].workload_ref.clone(),
    };
    let found = history(&known, &rendered, &[kept], "market");
    assert_eq!(found, known[..1]);
}
