//! A process may end between any two writes and requests: the end is the same, and every effect happened once.

use std::collections::BTreeMap;

use crate::world::World;
use bellwether_workflow::{Event, Woken};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A step: which kind, on which earlier ones it depends, and how often its request fails.
fn step() -> impl Strategy<Value = (u8, Vec<prop::sample::Index>, u32)> {
    (
        0_u8..6,
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        0_u32..3,
    )
}

fn build(mode: bool, steps: &[(u8, Vec<prop::sample::Index>, u32)]) -> World {
    let mut specs: Vec<Value> = Vec::new();
    let mut failing = BTreeMap::new();
    for (number, (kind, depends_on, failures)) in steps.iter().enumerate() {
        let name = format!("s{number}");
        let url = format!("http://{name}");
        let depends_on: Vec<String> = if number == 0 {
            Vec::new()
        } else {
            depends_on
                .iter()
                .map(|index| format!("s{}", index.index(number)))
                .collect()
        };
        let (step_type, properties) = match kind {
            0 => ("note", json!({"text": name})),
            1 | 2 => ("post", json!({"url": url})),
            3 => ("post-then-wait", json!({"url": url, "door": "door"})),
            4 => ("emit", json!({"v": number})),
            _ => ("suspend", json!({"duration": "2s"})),
        };
        failing.insert(url, *failures);
        let output = json!([{"name": format!("o{number}"), "valueFrom": "context.stepName"}]);
        specs.push(json!({
            "name": name, "type": step_type, "properties": properties, "dependsOn": depends_on, "outputs": output,
        }));
    }
    let mut world = World::new(if mode { "DAG" } else { "StepByStep" }, Value::Array(specs));
    world.failing = failing;
    world.open("door");
    world
}

/// What is the same however often the process ended.
fn end(world: &World) -> (Option<String>, BTreeMap<String, (String, u32)>, Value) {
    let state = world.state();
    let steps = state
        .steps
        .iter()
        .map(|step| {
            (
                step.name.clone(),
                (format!("{}{}", step.phase, step.reason), step.failures),
            )
        })
        .collect();
    let phase = state.finished.as_ref().map(ToString::to_string);
    (phase, steps, Value::Object(state.vars))
}

/// How many workflows are tried; `BELLWETHER_WORKFLOW_SEEDS` sets another number.
fn cases() -> ProptestConfig {
    #[expect(
        clippy::disallowed_methods,
        reason = "how many cases a test tries is set outside"
    )]
    let wanted = std::env::var("BELLWETHER_WORKFLOW_SEEDS");
    let wanted = wanted.ok().and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(wanted.unwrap_or(400))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_end_is_the_same_and_every_effect_happens_once(
        mode in any::<bool>(),
        steps in prop::collection::vec(step(), 1..7),
        crashes in prop::collection::vec(0_u32..40, 0..4),
    ) {
        let mut undisturbed = build(mode, &steps);
        undisturbed.run();
        prop_assert!(undisturbed.state().finished.is_some());

        let mut world = build(mode, &steps);
        for crash in &crashes {
            world.crash_after = Some(*crash);
            let mut woken = Woken::All;
            while let Ok(Some(time)) = world.pass(std::mem::replace(&mut woken, Woken::Timer)) {
                world.now = world.now.max(time);
                if world.state().finished.is_some() {
                    break;
                }
            }
        }
        world.crash_after = None;
        world.run();

        prop_assert_eq!(end(&world).0, end(&undisturbed).0);
        prop_assert_eq!(end(&world).2, end(&undisturbed).2);
        // Every effect happened exactly once, as without a crash.
        prop_assert_eq!(&world.effects, &undisturbed.effects);
        prop_assert!(world.effects.values().all(|count| *count == 1), "{:?}", world.effects);
        // A server that knows keys counts every key once for each failure it answered with, and once more
        // at most where the process ended before the answer was recorded; those are named in the log.
        let count = |world: &World| -> BTreeMap<String, usize> {
            let mut count = BTreeMap::new();
            for (url, _) in &world.requests {
                *count.entry(url.clone()).or_default() += 1;
            }
            count
        };
        let named = world.log.iter().filter(|entry| matches!(entry.event, Event::ActionAmbiguous { .. })).count();
        let total = |count: &BTreeMap<String, usize>| count.values().sum::<usize>();
        let (disturbed, expected) = (count(&world), count(&undisturbed));
        prop_assert!(total(&disturbed) <= total(&expected) + named, "{disturbed:?} {expected:?} {named}");
        let mut keys: BTreeMap<&String, std::collections::BTreeSet<&String>> = BTreeMap::new();
        for (url, key) in &world.requests {
            keys.entry(url).or_default().insert(key);
        }
        prop_assert!(keys.values().all(|keys| keys.len() == 1), "an effect has one key");
    }
}
