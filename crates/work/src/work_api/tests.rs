use serde_json::json;

use super::*;

fn config(sync: serde_json::Value) -> WorkManifestConfig {
    serde_json::from_value(json!({
        "metadata": {"name": "c", "uid": "u", "generation": 1},
        "spec": {"manifestGVK": {"group": "", "version": "v1", "kind": "Thing"},
            "resourceStatusSync": sync},
    }))
    .unwrap()
}

fn work(generation: i64) -> Work {
    serde_json::from_value(json!({"metadata": {"name": "w", "generation": generation}, "spec": {}}))
        .unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn told(values: &[(&str, i64)], problems: &[&str]) -> Answers {
    Answers {
        is_over_budget: false,
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Scalar::Integer(*value)))
            .collect(),
        problems: problems.iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// What comes next after these answers at second 0.
fn next(sync: serde_json::Value, answers: &Answers, second: i64) -> Turn {
    let config = config(sync);
    let known = Pace::after(None, &work(1), &config, answers, at(0));
    Pace::turn(Some(&known), &work(1), &config, at(second))
}

#[test]
fn values_have_their_turn_once_in_a_period() {
    let value = told(&[("a", 1)], &[]);
    assert_eq!(next(json!({}), &value, 59), Turn::At(at(60)));
    assert_eq!(next(json!({}), &value, 60), Turn::Now);
    let often = json!({"frequencySeconds": 5});
    assert_eq!(next(often.clone(), &value, 4), Turn::At(at(5)));
    assert_eq!(next(often.clone(), &value, 1000), Turn::Now);
    // Who found nothing has told nothing.
    assert_eq!(next(often, &told(&[], &[]), 1), Turn::Now);
}

#[test]
fn values_that_rest_are_no_longer_looked_at_but_mistakes_are() {
    let sync = json!({"frequencySeconds": 5, "stopThreshold": 2});
    let value = told(&[("a", 1)], &[]);
    assert_eq!(next(sync.clone(), &value, 9), Turn::Now);
    assert_eq!(next(sync.clone(), &value, 10), Turn::Stopped);
    let wrong = told(&[("a", 1)], &["b is wrong"]);
    assert_eq!(next(sync.clone(), &wrong, 10), Turn::Now);
    // Another generation of the work, another configuration, another write start over.
    let config = config(sync);
    let mut known = Pace::after(None, &work(1), &config, &value, at(0));
    let turn = |known: &Pace, work: &Work, config: &WorkManifestConfig| {
        Pace::turn(Some(known), work, config, at(10))
    };
    assert_eq!(turn(&known, &work(2), &config), Turn::Now);
    let mut changed = config.clone();
    changed.metadata.generation = Some(2);
    assert_eq!(turn(&known, &work(1), &changed), Turn::Now);
    known.restart(at(4));
    assert_eq!(turn(&known, &work(1), &config), Turn::Now);
}

#[test]
fn a_value_that_was_not_there_is_news_and_another_value_is_not() {
    let known = Pace::after(
        None,
        &work(1),
        &config(json!({})),
        &told(&[("a", 1)], &[]),
        at(0),
    );
    assert!(known.is_outgrown_by(&told(&[("a", 1), ("b", 1)], &[])));
    assert!(!known.is_outgrown_by(&told(&[("a", 2)], &[])));
    assert!(!known.is_outgrown_by(&told(&[], &[])));
}
