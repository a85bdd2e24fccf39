//! What was carried out, and is observed again, needs nothing more.

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use super::*;
use crate::compliance::{Duty, Rule};
use crate::target::{ServerSide, Strategy};
use crate::three_way::ThreeWay;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn strategy() -> impl proptest::strategy::Strategy<Value = Strategy<'static>> {
    prop_oneof![
        Just(Strategy::Update),
        Just(Strategy::CreateOnly),
        Just(Strategy::ReadOnly),
        proptest::sample::select(vec![Duty::MustHave, Duty::MustOnlyHave, Duty::MustNotHave])
            .prop_map(|duty| Strategy::Comply(Rule::of(duty))),
        Just(Strategy::ServerSide(ServerSide {
            manager: "me",
            force: true,
            ignore: Vec::new(),
            hash_annotation: "example.com/hash",
        })),
        Just(Strategy::ThreeWay(ThreeWay {
            annotation: Some("example.com/last"),
            recorded: None,
            fallback: None,
            recreate: &[],
            replace: false,
        })),
    ]
}

/// A subset of the names.
fn some() -> impl proptest::strategy::Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(NAMES.to_vec(), 0..=NAMES.len())
}

fn apply_change(record: &mut Record, change: &RecordChange) {
    if let Some(applied) = &change.applied {
        record.applied.clone_from(applied);
    }
    if let Some(intended) = &change.intended {
        record.intended.clone_from(intended);
    }
}

/// The record after everything that is about to be written was added to it, as a pass does.
fn with_intent(record: &Record, scene: &Scene) -> Record {
    let wanted: Vec<Entry> = scene
        .manifests
        .iter()
        .map(|it| entry(&it.name, None))
        .collect();
    let mut record = record.clone();
    if let Some(intended) = record.intent_with(&wanted) {
        record.intended = intended;
    }
    record
}

proptest! {
    #[test]
    fn what_was_carried_out_needs_nothing_more(
        wanted in some(),
        applied in some(),
        intended in some(),
        present in some(),
        strategy in strategy(),
        value in prop_oneof![Just("v"), Just("theirs")],
        may_prune in any::<bool>(),
    ) {
        let mut scene = Scene::new(&wanted);
        scene.strategy = strategy;
        scene.may_prune = may_prune;
        let mut cluster = Cluster::default();
        for name in present {
            cluster = cluster.with(name, value);
        }
        let mut record = recorded(&applied, &intended);
        let settled = cluster.carry_out(scene.pass(scene.slots(), &record), NOW);
        record = with_intent(&record, &scene);
        apply_change(&mut record, &settled.change);
        // Everything of ours that is on the cluster is on record.
        for (id, object) in &cluster.objects {
            let is_ours = scene.ownership().is_ours(object);
            let was_known = applied.contains(&&*id.name) || intended.contains(&&*id.name);
            let is_known = record.everything().iter().any(|entry| entry.id == *id);
            prop_assert!(is_known || !is_ours || !was_known && !wanted.contains(&&*id.name));
        }
        cluster.log.clear();
        let before = cluster.objects.clone();
        let settled = cluster.carry_out(scene.pass(scene.slots(), &record), NOW);
        prop_assert_eq!(&settled.change, &RecordChange::default());
        prop_assert_eq!(cluster.objects, before);
        let is_look = |line: &String| line.starts_with("read ") || line.starts_with("try ");
        prop_assert!(cluster.log.iter().all(is_look), "{:?}", cluster.log);
    }

    #[test]
    fn a_refusal_at_any_time_loses_nothing(
        wanted in some(),
        applied in some(),
        present in some(),
        kinds in proptest::collection::vec(0_usize..4, 0..6),
        name in proptest::sample::select(NAMES.to_vec()),
    ) {
        let scene = Scene::new(&wanted);
        let mut cluster = Cluster::default();
        for name in present {
            cluster = cluster.with(name, "theirs");
        }
        let all = [RefusalKind::Other, RefusalKind::Conflict, RefusalKind::NotFound, RefusalKind::AlreadyExists];
        let kinds: Vec<RefusalKind> = kinds.into_iter().map(|index| all[index]).collect();
        cluster = cluster.refusing(name, &kinds);
        let mut record = recorded(&applied, &[]);
        for _ in 0..8 {
            let settled = cluster.carry_out(scene.pass(scene.slots(), &record), NOW);
            record = with_intent(&record, &scene);
            apply_change(&mut record, &settled.change);
        }
        // In the end everything is as if nothing had happened.
        for name in NAMES {
            let live = cluster.objects.get(&id(name));
            if wanted.contains(&name) {
                prop_assert_eq!(&live.unwrap()["data"]["k"], "v");
            } else if applied.contains(&name) {
                prop_assert!(live.is_none());
            }
        }
        let mut expected = wanted.clone();
        expected.sort_unstable();
        prop_assert_eq!(names(&record.applied), expected);
    }
}
