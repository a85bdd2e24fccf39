//! Nobody gives what they do not have: which of the rules of a role somebody lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::identity::Identity;
use super::rule::{PolicyRule, quoted};

/// A role is compared piece by piece; one with more pieces is refused instead of compared. The
/// largest default role has less than a thousand.
const MOST_PIECES: usize = 20_000;

/// Why somebody who has `own` may not give `wanted`; nothing if they may.
pub(crate) fn refusal(
    identity: &Identity,
    own: &[PolicyRule],
    wanted: &[PolicyRule],
) -> Option<String> {
    let pieces: usize = wanted
        .iter()
        .map(number_of_pieces)
        .fold(0, usize::saturating_add);
    if pieces > MOST_PIECES {
        return Some(format!(
            "the rules have {pieces} combinations of verb, group, resource and name; at most {MOST_PIECES} can be compared with the permissions of user {:?}",
            identity.user
        ));
    }
    let missing = missing(own, wanted);
    if missing.is_empty() {
        return None;
    }
    let lines: BTreeSet<String> = compact(missing).iter().map(PolicyRule::describe).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    Some(format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        identity.user,
        quoted(&identity.groups),
        lines.join("\n")
    ))
}

/// Whether `own` allow everything that `wanted` do.
pub(super) fn is_covered(own: &[PolicyRule], wanted: &[PolicyRule]) -> bool {
    missing(own, wanted).is_empty()
}

/// Whether somebody who has `own` may do everything there is.
pub(crate) fn is_all_powerful(own: &[PolicyRule]) -> bool {
    let star = || vec!["*".to_owned()];
    let everything = [
        PolicyRule {
            verbs: star(),
            api_groups: star(),
            resources: star(),
            ..PolicyRule::default()
        },
        PolicyRule {
            verbs: star(),
            non_resource_urls: star(),
            ..PolicyRule::default()
        },
    ];
    is_covered(own, &everything)
}

fn number_of_pieces(rule: &PolicyRule) -> usize {
    let names = rule.resource_names.len().max(1);
    let resources = [rule.api_groups.len(), rule.resources.len(), names]
        .into_iter()
        .fold(rule.verbs.len(), usize::saturating_mul);
    resources.saturating_add(
        rule.verbs
            .len()
            .saturating_mul(rule.non_resource_urls.len()),
    )
}

/// The pieces of `wanted` that no rule of `own` covers.
fn missing(own: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    wanted
        .iter()
        .flat_map(pieces)
        .filter(|piece| !own.iter().any(|rule| rule.covers(piece)))
        .collect()
}

/// Rules with one verb, group, resource and name each, that together are this one.
fn pieces(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut found = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let piece = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    found.push(piece);
                    continue;
                }
                found.extend(rule.resource_names.iter().map(|name| PolicyRule {
                    resource_names: one(name),
                    ..piece.clone()
                }));
            }
        }
    }
    for path in &rule.non_resource_urls {
        found.extend(rule.verbs.iter().map(|verb| PolicyRule {
            verbs: one(verb),
            non_resource_urls: one(path),
            ..PolicyRule::default()
        }));
    }
    found
}

/// Puts pieces together that differ only by verb.
fn compact(pieces: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut by_resource: BTreeMap<[Vec<String>; 3], PolicyRule> = BTreeMap::new();
    let mut others = Vec::new();
    for piece in pieces {
        if !piece.non_resource_urls.is_empty() {
            others.push(piece);
            continue;
        }
        let key = [&piece.api_groups, &piece.resources, &piece.resource_names].map(Clone::clone);
        by_resource
            .entry(key)
            .and_modify(|known| known.verbs.extend(piece.verbs.iter().cloned()))
            .or_insert(piece);
    }
    others.extend(by_resource.into_values());
    others
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use serde_json::{Value, json};

    use super::*;
    use bellwether_api::admission::Attributes;

    #[track_caller]
    fn check(own: &Value, wanted: &Value, missing: &[&str]) {
        let (own, wanted) = (PolicyRule::list(own), PolicyRule::list(wanted));
        let bob = Identity::authenticated("bob", ["devs".to_owned()]);
        let found = refusal(&bob, &own, &wanted);
        let expected = (!missing.is_empty()).then(|| {
            format!(
                "user \"bob\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{}",
                missing.join("\n")
            )
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_held_may_be_given() {
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
        check(&all, &all, &[]);
        let some =
            json!([{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]}]);
        check(&all, &some, &[]);
        check(&some, &some, &[]);
        check(
            &json!([{"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]}]),
            &json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"], "resourceNames": ["a"]}]),
            &[],
        );
        check(
            &json!([{"nonResourceURLs": ["/logs/*"], "verbs": ["get"]}]),
            &json!([{"nonResourceURLs": ["/logs/a", "/logs/*"], "verbs": ["get"]}]),
            &[],
        );
    }

    #[test]
    fn what_is_not_held_is_named() {
        check(
            &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            &json!([{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]}]),
            &[
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#,
            ],
        );
        // One name is less than all, and a list of everything known is less than everything.
        check(
            &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}]),
            &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        );
        check(
            &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
            &[r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#],
        );
        check(
            &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
            &json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            &[r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#],
        );
    }

    fn rule() -> impl Strategy<Value = PolicyRule> {
        let some = |words: &'static [&'static str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let most = words.len();
            subsequence(words, 0..=most)
        };
        let resources = (
            some(&["", "apps", "*"]),
            some(&["pods", "pods/log", "*/log", "*"]),
            some(&["a", "b"]),
        );
        let verbs = some(&["get", "list", "*"]);
        (verbs, resources, any::<bool>(), some(&["/a", "/a/*", "*"])).prop_map(
            |(verbs, (api_groups, resources, resource_names), is_path, paths)| {
                if is_path {
                    return PolicyRule {
                        verbs,
                        non_resource_urls: paths,
                        ..PolicyRule::default()
                    };
                }
                PolicyRule {
                    verbs,
                    api_groups,
                    resources,
                    resource_names,
                    ..PolicyRule::default()
                }
            },
        )
    }

    /// Every question that the rules above can tell apart.
    fn questions() -> Vec<Attributes<'static>> {
        let mut found = Vec::new();
        for verb in ["get", "list", "delete"] {
            for path in ["/a", "/a/b", "/c"] {
                found.push(Attributes {
                    verb,
                    path,
                    ..Attributes::default()
                });
            }
            for group in ["", "apps", "batch"] {
                for (resource, subresource) in [("pods", ""), ("pods", "log"), ("jobs", "log")] {
                    for name in ["", "a", "c"] {
                        found.push(Attributes {
                            verb,
                            group,
                            resource,
                            subresource,
                            name,
                            ..Attributes::default()
                        });
                    }
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn who_may_grant_rules_has_all_that_they_allow(
            own in proptest::collection::vec(rule(), 0..4),
            wanted in proptest::collection::vec(rule(), 0..3),
        ) {
            let bob = Identity::authenticated("bob", []);
            if refusal(&bob, &own, &wanted).is_none() {
                for question in questions() {
                    let full = question.full_resource();
                    let allows = |rules: &[PolicyRule]| {
                        rules.iter().any(|rule| rule.allows(&question, &full))
                    };
                    prop_assert!(allows(&own) || !allows(&wanted), "{question:?}");
                }
            }
        }
    }

    #[test]
    fn a_role_that_would_take_for_ever_to_compare_is_refused() {
        let many: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let wanted = PolicyRule::list(
            &json!([{"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many}]),
        );
        let refused = refusal(&Identity::authenticated("bob", []), &[], &wanted).unwrap();
        assert!(refused.contains("1000000000000 combinations"), "{refused}");
    }
}
