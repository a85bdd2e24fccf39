use std::collections::HashMap;

use bellwether_placement::rollout::Group;
use bellwether_policy::binding::BoundGroup;

use super::*;

/// A policy in a rollout over a canary and two others, at 12:00.
fn snapshot(root: &Value) -> PolicySnapshot {
    let root: Policy = serde_json::from_value(root.clone()).unwrap();
    let group = |name: &str, index: i64, clusters: &[&str]| BoundGroup {
        placement: "everywhere".into(),
        index,
        group: Group::new(name, index, clusters.iter().copied()),
    };
    let bound = Bound {
        groups: vec![group("canary", 0, &["a"]), group("", 1, &["b", "c"])],
        ..Bound::default()
    };
    let now = "2026-01-01T12:00:00Z".parse().unwrap();
    PolicySnapshot {
        report: Report::new(&root, &bound, &HashMap::new(), now),
        root,
        bound,
        messages: HashMap::new(),
        now,
    }
}

/// The policy, with what is said of the canary; the others wait.
fn root(settings: &Value, canary: &Value) -> Value {
    json!({
        "metadata": {"name": "limits", "namespace": "policies"},
        "spec": {"disabled": false, "remediationAction": "enforce",
            "rolloutStrategy": {"type": "ProgressivePerGroup", "progressivePerGroup": settings},
            "policy-templates": [{"objectDefinition": {"kind": "ConfigurationPolicy"}}]},
        "status": {"rolloutStatus": "Progressing", "rolloutStartTime": "2026-01-01T11:59:00.000000Z",
            "status": [canary,
                {"clustername": "b", "rolloutStatus": "ToApply", "compliant": "NonCompliant"},
                {"clustername": "c", "rolloutStatus": "ToApply", "compliant": "Compliant"}]},
    })
}

fn canary(status: &str, since: &str, compliant: &str) -> Value {
    json!({"clustername": "a", "rolloutStatus": status, "compliant": compliant,
        "rolloutStatusLastTransitionTime": format!("2026-01-01T{since}.000000Z")})
}

#[track_caller]
fn check(root: &Value, cluster: &str, status: &str, why: &str) {
    let snapshot = snapshot(root);
    assert_eq!(snapshot.status().render(false), status);
    let (page, _) = snapshot.why(cluster).unwrap();
    assert_eq!(page.render(false), why);
}

#[test]
fn clusters_say_whom_they_wait_for_and_until_when() {
    check(
        &root(
            &json!({"progressDeadline": "5m"}),
            &canary("Progressing", "11:59:30", "NonCompliant"),
        ),
        "b",
        "\
policy policies/limits   rolling out   ProgressivePerGroup   0 of 3 clusters done, since 60s
▸ canary    a   enforcing, does not comply, times out in 4m30s
  group 1   b   waits for group canary; does not comply
            c   waits for group canary; complies
next: bellwether status policy/limits -n policies -w
",
        "\
b and policy/limits -n policies:
placement everywhere: b waits for group canary: a is in progress until 2026-01-01T12:04:30Z at most
until then the policy only informs there
next: bellwether why a policy/limits -n policies
",
    );
    check(
        &root(
            &json!({"minSuccessTime": "2m"}),
            &canary("Succeeded", "11:59:30", "Compliant"),
        ),
        "a",
        "\
policy policies/limits   rolling out   ProgressivePerGroup   0 of 3 clusters done, since 60s
▸ canary    a   soaking, 90s left
  group 1   b   waits for group canary; does not comply
            c   waits for group canary; complies
next: bellwether status policy/limits -n policies -w
",
        "\
a and policy/limits -n policies:
placement everywhere: a succeeded and soaks until 2026-01-01T12:01:30Z
the policy is enforced there
next: bellwether get plc/policies.limits -n a -o yaml
",
    );
}

#[test]
fn a_paused_rollout_says_how_to_resume() {
    let mut paused = root(&json!({}), &canary("Succeeded", "11:59:30", "Compliant"));
    paused["metadata"]["annotations"] =
        json!({"policy.bellwether.dev/rollout-paused": "2026-01-01T11:59:40Z"});
    check(
        &paused,
        "b",
        "\
policy policies/limits   paused   ProgressivePerGroup   1 of 3 clusters done, since 60s
  canary    a   done, complies
  group 1   b   waits: paused; does not comply
            c   waits: paused; complies
the rollout is paused: no further cluster starts
next: bellwether rollout resume policy/limits -n policies · bellwether status policy/limits -n policies -w
",
        "\
b and policy/limits -n policies:
placement everywhere: b does not start: the rollout is paused
until then the policy only informs there
next: bellwether rollout resume policy/limits -n policies
",
    );
}

#[test]
fn a_policy_that_goes_to_no_cluster_says_why() {
    let root = json!({"metadata": {"name": "limits", "namespace": "policies"},
        "spec": {"disabled": false, "policy-templates": []}});
    let entry = |placement: Option<&str>, rule: Option<&str>| PolicyPlacement {
        placement_binding: Some("all".to_owned()),
        placement: placement.map(ToOwned::to_owned),
        placement_rule: rule.map(ToOwned::to_owned),
        ..PolicyPlacement::default()
    };
    let cases = [
        (
            vec![],
            "no PlacementBinding in namespace policies binds it to a placement\n",
        ),
        (
            vec![entry(Some("everywhere"), None)],
            "placement everywhere: no set is bound\n\
             next: bellwether describe placement/everywhere -n policies\n",
        ),
        (
            vec![entry(None, Some("old"))],
            "PlacementRule old has no decisions\n",
        ),
        (
            vec![entry(None, None)],
            "binding all names a placement that does not exist\n",
        ),
    ];
    for (placements, expected) in cases {
        let mut snapshot = snapshot(&root);
        snapshot.bound = Bound {
            placements,
            ..Bound::default()
        };
        snapshot.report = Report::new(
            &snapshot.root,
            &snapshot.bound,
            &HashMap::new(),
            snapshot.now,
        );
        let message = ("everywhere".to_owned(), "no set is bound".to_owned());
        snapshot.messages = HashMap::from([message]);
        let title =
            "policy policies/limits   goes to no cluster   All   0 of 0 clusters done\n".to_owned();
        assert_eq!(snapshot.status().render(false), title + expected);
    }
}
