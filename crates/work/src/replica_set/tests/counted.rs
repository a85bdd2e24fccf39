//! Counting reports gives what a plan gives.

use super::*;
use crate::replica_set::transition::Standing;

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
        }
    }

    fn plan(&self, memo: &Memo) -> (Plan, Report) {
        let observed = Observed {
            set: &self.set,
            placements: &self.placements,
            works: &self.works,
            cluster: &|_| None,
            now: NOW.parse().unwrap(),
        };
        let (plan, report) = plan_and_report(&observed, &Programs::default(), memo);
        (plan, report.unwrap())
    }

    fn report(&mut self, index: usize, conditions: &[(&str, &str)]) -> Arc<str> {
        let reported = stored(&[ManifestWork::clone(&self.works[index])], conditions);
        self.works[index] = Arc::clone(&reported[0]);
        reported[0].metadata.namespace.as_deref().unwrap().into()
    }

    fn count(&self, clusters: &[Arc<str>]) -> Option<Counted> {
        let works_of = |cluster: &str| {
            let is_of =
                |work: &&Arc<ManifestWork>| work.metadata.namespace.as_deref() == Some(cluster);
            self.works.iter().filter(is_of).cloned().collect()
        };
        let now = NOW.parse().unwrap();
        count_reports(&self.set, clusters, works_of, now, &self.memo)
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

#[track_caller]
fn check(strategy: Value) -> usize {
    let mut random = numbers();
    let mut counted_often = 0;
    let mut world = World::new(strategy, &["a", "b", "c", "d", "e", "f"]);
    let (_, report) = world.plan(&world.memo);
    let mut standing = Standing::of(&report);
    for _ in 0..400 {
        // Mostly well, so that there is something to count.
        let mut changed = Vec::new();
        for _ in 0..=random(2) {
            let conditions = match random(4) {
                0 => REPORTS[random(REPORTS.len())],
                _ => REPORTS[2 * random(2)],
            };
            changed.push(world.report(random(6), conditions));
        }
        let (plan, report) = world.plan(&Memo::default());
        if let Some(counted) = world.count(&changed) {
            counted_often += 1;
            assert_eq!(counted.plan.status, plan.status);
            assert_eq!((plan.write.len(), plan.delete.len()), (0, 0));
            assert_eq!(counted.stage, report.stage());
            let events = standing.transitions(&report);
            assert_eq!(standing.count(&counted), events);
            assert_eq!(standing, Standing::of(&report));
            // It may wake too early, and then plan, but not too late.
            let is_late = match (counted.plan.wake_at, plan.wake_at) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(counted), Some(planned)) => counted > planned,
            };
            assert!(!is_late, "{:?} {:?}", counted.plan.wake_at, plan.wake_at);
        } else {
            world.plan(&world.memo);
            standing = Standing::of(&report);
        }
        if let Some(status) = plan.status {
            world.set.status = Some(status);
        }
    }
    counted_often
}

#[test]
fn counting_reports_gives_what_a_plan_gives() {
    for strategy in [
        json!({"type": "All"}),
        json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}}),
        json!({"type": "Progressive", "progressive": {"progressDeadline": "30m"}}),
        json!({"type": "Progressive", "progressive": {"maxFailures": "50%"}}),
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": 2}}),
    ] {
        let counted = check(strategy.clone());
        assert!(counted > 350, "{strategy}: only {counted} of 400 counted");
    }
    // Budgets of groups that are percentages are for plans, once somebody fails.
    let by_group =
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": "50%"}});
    let counted = check(by_group);
    assert!(counted > 20 && counted < 350, "{counted}");
    // Clusters that are observed are looked at by plans.
    check(json!({"type": "All", "all": {"minSuccessTime": "1h"}}));
}

#[test]
fn a_change_of_the_replica_set_is_not_counted() {
    let mut world = World::new(json!({"type": "All"}), &["a", "b"]);
    world.plan(&world.memo);
    let cluster = world.report(0, &[]);
    world.set.metadata.generation = Some(2);
    assert_eq!(world.count(&[cluster]), None);
}
