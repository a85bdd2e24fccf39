//! Counting changes of works gives what a plan gives.

use super::*;
use crate::replica_set::transition::RolloutSnapshot;

/// What works may say of themselves.
const REPORTS: [&[(&str, &str)]; 5] = [
    &WELL,
    &FAILED,
    &[],
    &[
        ("Applied", "True"),
        ("Available", "False"),
        ("Progressing", "True"),
    ],
    &[
        ("Applied", "True"),
        ("Available", "False"),
        ("Progressing", "False"),
        ("Degraded", "True"),
    ],
];

struct World {
    set: ManifestWorkReplicaSet,
    placements: BTreeMap<String, Chosen>,
    works: Vec<Arc<ManifestWork>>,
    memo: Memo,
    now: Timestamp,
}

impl World {
    fn new(strategy: Value, names: &[&str]) -> Self {
        let (set, placements) = (set(strategy), chosen(names));
        let everywhere = self::set(json!({"type": "All"}));
        let works = stored(&look(&everywhere, &placements, &[]).write, &WELL);
        Self {
            set,
            placements,
            works,
            memo: Memo::default(),
            now: NOW.parse().unwrap(),
        }
    }

    fn plan(&self, memo: &Memo) -> (Plan, Report) {
        let observed = Observed {
            set: &self.set,
            placements: &self.placements,
            works: &self.works,
            cluster: &|_| None,
            now: self.now,
        };
        let (plan, report) = plan_and_report(&observed, &Programs::default(), memo);
        (plan, report.unwrap())
    }

    fn report(&mut self, index: usize, conditions: &[(&str, &str)]) -> Arc<str> {
        let before = &self.works[index].metadata;
        let generation = before.generation;
        let cluster = before.namespace.as_deref().unwrap().into();
        let reported = stored(&[ManifestWork::clone(&self.works[index])], conditions);
        let mut reported = ManifestWork::clone(&reported[0]);
        reported.metadata.generation = generation;
        for condition in &mut reported.status.as_mut().unwrap().conditions {
            condition.observed_generation = generation;
        }
        self.works[index] = Arc::new(reported);
        cluster
    }

    /// Counts changes of clusters; those that are true only report something else.
    fn count(&self, clusters: &BTreeMap<Arc<str>, bool>) -> Option<Counted> {
        let works_of = |cluster: &str| {
            let is_of =
                |work: &&Arc<ManifestWork>| work.metadata.namespace.as_deref() == Some(cluster);
            self.works.iter().filter(is_of).cloned().collect()
        };
        let changes = ChangedWorks {
            set: &self.set,
            clusters,
            works_of: &works_of,
            now: self.now,
        };
        count_changes(&changes, &Programs::default(), &self.memo)
    }

    /// Writes what a plan says, as a server does. Returns the clusters whose works have changed.
    fn write(&mut self, plan: &Plan) -> BTreeMap<Arc<str>, bool> {
        if let Some(status) = &plan.status {
            self.set.status = Some(status.clone());
        }
        let mut written = BTreeMap::new();
        for work in &plan.write {
            let (namespace, name) = key_of(&work.metadata);
            let is_other = |it: &Arc<ManifestWork>| key_of(&it.metadata).0 != namespace;
            let before = self.works.iter().find(|it| !is_other(it)).cloned();
            self.works.retain(is_other);
            let mut work = ManifestWork::clone(&stored(std::slice::from_ref(work), &[])[0]);
            let generation = before.and_then(|it| it.metadata.generation).unwrap_or(0);
            work.metadata.generation = Some(generation + 1);
            assert!(!name.is_empty());
            self.works.push(Arc::new(work));
            written.insert(namespace.into(), false);
        }
        self.works.sort_by_key(|work| key_of(&work.metadata));
        written
    }

    /// Changes the template.
    fn change_template(&mut self, version: usize) {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": "n"}, "data": {"version": version.to_string()}});
        let template = self.set.spec.manifest_work_template.as_mut().unwrap();
        template.workload.as_mut().unwrap().manifests = vec![manifest];
        self.set.metadata.generation = Some(i64::try_from(version).unwrap());
    }
}

/// Numbers that look random, the same in every run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 7_u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % u64::try_from(below).unwrap()).unwrap()
    }
}

/// What a plan and what was counted say is the same.
#[track_caller]
fn assert_same(counted: &Counted, (plan, report): &(Plan, Report), snapshot: &mut RolloutSnapshot) {
    assert_eq!(counted.plan.status, plan.status);
    assert_eq!(counted.plan.write, plan.write);
    assert_eq!(counted.plan.delete, plan.delete);
    assert_eq!(counted.stage, report.stage());
    let events = snapshot.transitions(report);
    assert_eq!(snapshot.count(counted), events);
    assert_eq!(*snapshot, RolloutSnapshot::of(report));
    // It may wake too early, and then plan, but not too late.
    let is_late = match (counted.plan.wake_at, plan.wake_at) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(counted), Some(planned)) => counted > planned,
    };
    assert!(!is_late, "{:?} {:?}", counted.plan.wake_at, plan.wake_at);
}

/// Takes in changes, once counted if that is possible and once planned. Returns what has been written, and
/// whether it was counted.
#[track_caller]
fn take_in(
    world: &mut World,
    snapshot: &mut RolloutSnapshot,
    changes: &BTreeMap<Arc<str>, bool>,
) -> (BTreeMap<Arc<str>, bool>, bool) {
    let planned = world.plan(&Memo::default());
    let counted = world.count(changes);
    if let Some(counted) = &counted {
        assert_same(counted, &planned, snapshot);
    } else {
        world.plan(&world.memo);
        *snapshot = RolloutSnapshot::of(&planned.1);
    }
    (world.write(&planned.0), counted.is_some())
}

#[track_caller]
fn check(strategy: Value) -> usize {
    let mut random = numbers();
    let mut counted_often = 0;
    let mut world = World::new(strategy, &["a", "b", "c", "d", "e", "f"]);
    let (_, report) = world.plan(&world.memo);
    let mut snapshot = RolloutSnapshot::of(&report);
    for _ in 0..400 {
        // Mostly well, so that there is something to count.
        let mut changed = BTreeMap::new();
        for _ in 0..=random(2) {
            let conditions = match random(4) {
                0 => REPORTS[random(REPORTS.len())],
                _ => REPORTS[2 * random(2)],
            };
            changed.insert(world.report(random(6), conditions), true);
        }
        let (written, is_counted) = take_in(&mut world, &mut snapshot, &changed);
        assert!(written.is_empty());
        counted_often += usize::from(is_counted);
    }
    counted_often
}

/// Rolls templates out one after the other. Returns how many changes of works were counted, and how many there
/// were.
#[track_caller]
fn roll_out(strategy: &Value, groups: &[&[&str]]) -> (usize, usize) {
    let mut random = numbers();
    let all = groups.concat();
    let mut world = World::new(strategy.clone(), &all);
    let numbered = groups.iter().enumerate();
    let numbered = numbered
        .map(|(index, names)| Group::new("", i64::try_from(index).unwrap(), names.iter().copied()));
    world.placements.get_mut("p").unwrap().groups = numbered.collect();
    let (_, report) = world.plan(&world.memo);
    let mut snapshot = RolloutSnapshot::of(&report);
    let (mut counted, mut of) = (0, 0);
    for round in 0..600 {
        if round % 60 == 0 {
            world.change_template(round / 60 + 1);
            world.plan(&world.memo);
            let planned = world.plan(&Memo::default());
            snapshot = RolloutSnapshot::of(&planned.1);
            world.write(&planned.0);
            continue;
        }
        world.now += jiff::SignedDuration::from_secs(i64::try_from(random(50)).unwrap());
        let conditions = match random(6) {
            0 => REPORTS[random(REPORTS.len())],
            _ => &WELL,
        };
        let mut changes = BTreeMap::from([(world.report(random(all.len()), conditions), true)]);
        // What starts is seen one after the other, and sometimes later than the next report.
        while !changes.is_empty() {
            let (written, is_counted) = take_in(&mut world, &mut snapshot, &changes);
            counted += usize::from(is_counted);
            of += 1;
            changes = written;
        }
    }
    (counted, of)
}

#[test]
fn counting_a_running_rollout_gives_what_a_plan_gives() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let check = |strategy: Value, groups: &[&[&str]], at_least: usize| {
        let (counted, of) = roll_out(&strategy, groups);
        assert!(
            counted * 100 >= of * at_least,
            "{strategy}: {counted} of {of}"
        );
    };
    let progressive = |more: Value| json!({"type": "Progressive", "progressive": more});
    check(progressive(json!({"maxConcurrency": 2})), &[&names], 5);
    check(
        progressive(json!({"maxConcurrency": "25%", "maxFailures": 2})),
        &[&names[..3], &names[3..]],
        5,
    );
    let soaking = json!({"maxConcurrency": 3, "maxFailures": 8, "minSuccessTime": "5m"});
    check(progressive(soaking), &[&names], 5);
    let deadline = json!({"maxConcurrency": 2, "maxFailures": "50%", "progressDeadline": "4m"});
    check(progressive(deadline), &[&names], 5);
    let by_group =
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": 1}});
    check(by_group, &[&names[..3], &names[3..5], &names[5..]], 5);
    let mandatory = json!({"maxConcurrency": 1,
        "mandatoryDecisionGroups": [{"groupIndex": 0}]});
    check(progressive(mandatory), &[&names[..3], &names[3..]], 5);
}

#[test]
fn reports_are_counted_while_a_rollout_is_paused() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    let mut world = World::new(strategy, &["a", "b", "c", "d"]);
    let paused = (annotation::ROLLOUT_PAUSED.to_owned(), NOW.to_owned());
    world.set.metadata.annotations = Some(BTreeMap::from([paused]));
    world.change_template(2);
    let (_, report) = world.plan(&world.memo);
    let mut snapshot = RolloutSnapshot::of(&report);
    for conditions in [&FAILED, &WELL] {
        let changes = BTreeMap::from([(world.report(1, conditions), true)]);
        let (written, is_counted) = take_in(&mut world, &mut snapshot, &changes);
        assert!(is_counted && written.is_empty());
    }
}

#[test]
fn counting_reports_gives_what_a_plan_gives() {
    for strategy in [
        json!({"type": "All"}),
        json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}}),
        json!({"type": "Progressive", "progressive": {"progressDeadline": "30m"}}),
        json!({"type": "Progressive", "progressive": {"maxFailures": "50%"}}),
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": 2}}),
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": "50%"}}),
        json!({"type": "All", "all": {"minSuccessTime": "1h"}}),
    ] {
        let counted = check(strategy.clone());
        assert!(counted > 350, "{strategy}: only {counted} of 400 counted");
    }
}

#[test]
fn a_change_of_the_replica_set_is_not_counted() {
    let mut world = World::new(json!({"type": "All"}), &["a", "b"]);
    world.plan(&world.memo);
    let cluster = world.report(0, &[]);
    world.set.metadata.generation = Some(2);
    assert_eq!(world.count(&BTreeMap::from([(cluster, true)])), None);
}
