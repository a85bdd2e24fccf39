//! Strategies as they stand in resources.

use bellwether_api::cluster::RolloutStrategy;
use bellwether_json::duration::GoDuration;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::rollout::{
    Group, Input, Kind, MandatoryGroup, Strategy, Threshold, UnsetConcurrency, decide,
};

#[test]
fn only_the_part_that_the_type_names_is_read() {
    let strategy = Strategy::from_json(&json!({
        "type": "ProgressivePerGroup",
        "progressive": {"maxConcurrency": {"not": "read"}},
        "progressivePerGroup": {
            "minSuccessTime": "5m",
            "progressDeadline": "10m",
            "maxFailures": "2%",
            "mandatoryDecisionGroups": [{"groupName": "canary"}, {"groupIndex": 3}],
        },
    }));
    let expected = Strategy {
        kind: Kind::ProgressivePerGroup,
        min_success_time: GoDuration::from_secs(300),
        progress_deadline: "10m".to_owned(),
        max_failures: Some(Threshold::Text("2%".to_owned())),
        max_concurrency: None,
        mandatory_decision_groups: vec![
            MandatoryGroup {
                group_name: "canary".to_owned(),
                group_index: 0,
            },
            MandatoryGroup {
                group_name: String::new(),
                group_index: 3,
            },
        ],
    };
    assert_eq!(strategy, Ok(expected));
    assert_eq!(Strategy::from_json(&Value::Null), Ok(Strategy::default()));
    let nulls = json!({"progressDeadline": null, "mandatoryDecisionGroups": null});
    assert_eq!(Strategy::from_flat_json(&nulls), Ok(Strategy::default()));
    assert_eq!(
        Strategy::from_json(&json!({"type": "Progressive"})).map(|strategy| strategy.kind),
        Ok(Kind::Progressive)
    );
}

#[test]
fn a_strategy_of_a_resource_is_read_as_its_json_is() {
    let check = |strategy: Value| {
        let typed: RolloutStrategy = serde_json::from_value(strategy.clone()).unwrap();
        let read = Strategy::try_from(&typed);
        match (read, Strategy::from_json(&strategy)) {
            (Ok(one), Ok(other)) => assert_eq!(one, other, "{strategy}"),
            (Err(_), Err(_)) => {}
            (one, other) => panic!("{strategy}: {one:?}, but {other:?}"),
        }
    };
    let settings = json!({"minSuccessTime": "5m", "progressDeadline": "10m", "maxFailures": "2%",
        "mandatoryDecisionGroups": [{"groupName": "canary"}, {"groupIndex": 3}]});
    let mut more = settings.clone();
    more["maxConcurrency"] = json!(4);
    check(json!({}));
    check(json!({"type": ""}));
    check(json!({"type": "Slow"}));
    check(json!({"type": "All", "all": {"progressDeadline": "1m", "maxFailures": 3}}));
    check(json!({"type": "Progressive"}));
    check(json!({"type": "Progressive", "progressive": more, "all": {"maxFailure": 1}}));
    check(json!({"type": "ProgressivePerGroup", "progressivePerGroup": settings}));
    check(json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxConcurrency": 1}}));
    check(json!({"type": "Progressive", "progressive": {"minSuccessTime": "soon"}}));
    check(json!({"type": "All", "all": {"maxFailure": 1}}));
}

#[test]
fn what_is_not_understood_is_refused() {
    let check = |strategy: Value, expected: &str| {
        let error = Strategy::from_json(&strategy).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        json!({"type": "Slow"}),
        "incorrect rollout strategy type Slow",
    );
    check(
        json!({"type": "All", "all": {"maxConcurrency": 1}}),
        "unknown field `all.maxConcurrency`",
    );
    check(
        json!({"type": "Progressive", "progressive": {"maxConcurency": 1}}),
        "unknown field `maxConcurency`",
    );
    check(
        json!({"type": "Progressive", "progressive": {"minSuccessTime": "soon"}}),
        "invalid duration",
    );
}

#[test]
fn the_caller_says_what_an_unset_concurrency_is() {
    let strategy = Strategy::from_json(&json!({"type": "Progressive"})).unwrap();
    let groups = [Group::new("", 0, ["a", "b"])];
    let check = |unset_concurrency, expected: &[&str]| {
        let input = Input::new(&strategy, &groups, &[], Timestamp::UNIX_EPOCH);
        let decision = decide(&Input {
            unset_concurrency,
            ..input
        });
        assert_eq!(decision.unwrap().starting().collect::<Vec<_>>(), expected);
    };
    check(UnsetConcurrency::All, &["a", "b"]);
    check(UnsetConcurrency::One, &["a"]);
}
