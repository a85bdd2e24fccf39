//! What is decided about clusters and their requests.

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::meta::{Time, condition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use super::decide::{Action, Observed, Plan, Remains, Turn, acceptance, decide, failed};
use super::heartbeats::Contact;
use super::request::{AgentRequest, read};
use super::rights::ClusterAccess;

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn cluster(object: Value) -> ManagedCluster {
    let mut cluster: ManagedCluster = serde_json::from_value(object).unwrap();
    cluster.metadata.name = Some("c1".to_owned());
    cluster
}

const HEARD: Contact = Contact {
    is_silent: false,
    is_held: false,
};
const SILENT: Contact = Contact {
    is_silent: true,
    is_held: false,
};
/// One of too many.
const HELD: Contact = Contact {
    is_silent: true,
    is_held: true,
};

fn plan(cluster: &ManagedCluster, has_lease: bool, contact: Contact) -> Plan {
    decide(&Observed {
        cluster,
        has_lease,
        contact,
        skew: None,
        remains: None,
        now: now(),
    })
}

/// A cluster that is as the hub would have it.
fn settled() -> Value {
    let said = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "metadata": {
            "labels": {"cluster.open-cluster-management.io/clusterset": "default"},
            "finalizers": ["cluster.open-cluster-management.io/api-resource-cleanup",
                "cluster.open-cluster-management.io/resource-cleanup"],
        },
        "spec": {"hubAcceptsClient": true},
        "status": {"conditions": [
            said("HubAcceptedManagedCluster", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
            said("ManagedClusterConditionAvailable", "ManagedClusterAvailable", "Managed cluster is available"),
        ]},
    })
}

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    let plan = plan(&cluster(settled()), true, HEARD);
    assert_eq!(plan.actions, [Action::Grant(ClusterAccess::Accepted)]);
    assert_eq!((plan.conditions, plan.patch), (None, None));
    assert_eq!(plan.wake_at, None);
}

#[test]
fn times_of_conditions_move_only_with_their_status() {
    let long_ago = json!("2025-01-01T00:00:00Z");
    let mut object = settled();
    for condition in object["status"]["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = long_ago.clone();
        condition["reason"] = json!("Other");
    }
    let cluster = cluster(object);
    let conditions = plan(&cluster, true, SILENT).conditions.unwrap();
    let since = |kind: &str| json!(condition(&conditions, kind).unwrap().last_transition_time);
    assert_eq!(since("HubAcceptedManagedCluster"), long_ago);
    assert_eq!(
        since("ManagedClusterConditionAvailable"),
        json!(Time(now()))
    );
}

/// What the hub says of a cluster and the taints that it has, by what they were and what arrives.
#[track_caller]
fn check_silence(said: &str, tainted: &[&str], contact: Contact, expected: (&str, &[&str])) {
    let mut object = settled();
    object["status"]["conditions"][1]["status"] = json!(said);
    let full = |key: &&str| format!("cluster.open-cluster-management.io/{key}");
    let taint = |key: &&str| json!({"key": full(key), "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"});
    object["spec"]["taints"] = tainted.iter().map(taint).collect();
    let cluster = cluster(object);
    let plan = plan(&cluster, true, contact);
    let mut conditions = cluster.status.clone().unwrap().conditions;
    conditions = plan.conditions.unwrap_or(conditions);
    let available = condition(&conditions, "ManagedClusterConditionAvailable").unwrap();
    assert_eq!(available.status, expected.0);
    let patch = plan.patch.unwrap_or_default();
    let taints: Vec<String> = match patch["spec"]["taints"].as_array() {
        Some(taints) => taints
            .iter()
            .map(|it| it["key"].as_str().unwrap().to_owned())
            .collect(),
        None => tainted.iter().map(full).collect(),
    };
    assert_eq!(taints, expected.1.iter().map(full).collect::<Vec<_>>());
}

#[test]
fn silence_makes_a_cluster_unknown_and_unreachable() {
    check_silence("True", &[], HEARD, ("True", &[]));
    check_silence("True", &[], SILENT, ("Unknown", &["unreachable"]));
    check_silence(
        "False",
        &["unavailable"],
        SILENT,
        ("Unknown", &["unreachable"]),
    );
    check_silence(
        "Unknown",
        &["unreachable"],
        SILENT,
        ("Unknown", &["unreachable"]),
    );
    // Its agent says when it is available again; until then it stays what it was.
    check_silence(
        "Unknown",
        &["unreachable"],
        HEARD,
        ("Unknown", &["unreachable"]),
    );
    check_silence("True", &["unreachable"], HEARD, ("True", &[]));
}

#[test]
fn taints_wait_while_too_many_are_silent() {
    check_silence("True", &[], HELD, ("Unknown", &[]));
    check_silence("Unknown", &[], HELD, ("Unknown", &[]));
    check_silence(
        "False",
        &["unavailable"],
        HELD,
        ("Unknown", &["unavailable"]),
    );
    check_silence(
        "Unknown",
        &["unreachable"],
        HELD,
        ("Unknown", &["unreachable"]),
    );
    // A hub that comes back after a loss has not noticed any silence itself.
    check_silence("Unknown", &[], HEARD, ("Unknown", &[]));
}

#[test]
fn taints_of_others_stay_and_get_their_time() {
    let mut object = settled();
    object["spec"]["taints"] = json!([
        {"key": "mine", "effect": "NoSelect"},
        {"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect",
            "timeAdded": "2026-01-01T00:00:00Z"},
    ]);
    let plan = plan(&cluster(object), true, HEARD);
    let taints = plan.patch.unwrap()["spec"]["taints"].clone();
    assert_eq!(
        taints,
        json!([{"key": "mine", "effect": "NoSelect",
        "timeAdded": json!(Time(now()))}])
    );
}

#[test]
fn clocks_that_differ_are_reported_unless_nobody_cares() {
    let check = |skew: i64, skipped: bool, expected: &str| {
        let mut object = settled();
        if skipped {
            let key = "registration.open-cluster-management.io/skip-clock-sync-check";
            object["metadata"]["annotations"] = json!({key: "true"});
        }
        let plan = decide(&Observed {
            cluster: &cluster(object),
            has_lease: true,
            contact: HEARD,
            skew: Some(SignedDuration::from_secs(skew)),
            remains: None,
            now: now(),
        });
        let conditions = plan.conditions.unwrap();
        let found = condition(&conditions, "ManagedClusterConditionClockSynced").unwrap();
        assert_eq!(found.status, expected, "{skew}");
    };
    check(0, false, "True");
    check(-299, false, "True");
    check(300, false, "False");
    check(-300, false, "False");
    check(300, true, "True");
}

#[test]
fn a_cluster_leaves_when_nothing_is_left_of_it() {
    let mut object = settled();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:09:00Z");
    let cluster = cluster(object);
    let leave = |works: usize| {
        decide(&Observed {
            cluster: &cluster,
            has_lease: true,
            contact: HEARD,
            skew: None,
            remains: Some(Remains {
                works,
                turn: (works > 0).then_some(Turn {
                    resource: "works",
                    count: works,
                    pending: 1,
                }),
            }),
            now: now(),
        })
    };
    let plan = leave(2);
    assert_eq!(plan.actions, [Action::CleanUp]);
    assert_eq!(plan.patch, None);
    assert!(plan.wake_at.is_some());
    let conditions = plan.conditions.unwrap();
    let deleting = condition(&conditions, "Deleting").unwrap();
    assert_eq!(deleting.reason, "ResourceRemaining");
    assert_eq!(
        deleting.message,
        "The resource works is remaning, the remaining count is 2, the finalizer pending count is 1"
    );
    let plan = leave(0);
    assert_eq!(plan.actions, [Action::Remove]);
    assert_eq!(plan.patch, Some(json!({"metadata": {"finalizers": []}})));
}

#[test]
fn what_cannot_be_done_is_told() {
    let check = |object: Value, action: Action, expected: Option<[&str; 3]>| {
        let conditions = failed(&cluster(object), action, "no room", now());
        let told = conditions.as_ref().and_then(|it| it.last());
        let told = told.map(|it| [it.type_.as_str(), it.status.as_str(), it.reason.as_str()]);
        assert_eq!(told, expected, "{action:?}");
        assert!(conditions.is_none_or(|it| it.last().unwrap().message == "no room"));
    };
    let grant = Action::Grant(ClusterAccess::Accepted);
    let error = Some(["HubAcceptedManagedCluster", "False", "Error"]);
    check(json!({"metadata": {}}), grant, error);
    check(settled(), grant, None);
    let error = Some(["Deleting", "False", "DeletingError"]);
    check(settled(), Action::CleanUp, error);
    check(settled(), Action::Remove, error);
    check(settled(), Action::CreateLease, None);
}

#[test]
fn who_was_never_accepted_gets_nothing() {
    let plan = plan(&cluster(json!({"metadata": {}})), false, HEARD);
    assert_eq!(plan.actions, []);
    assert_eq!(plan.conditions, None);
}

#[test]
fn a_cluster_that_is_accepted_needs_no_second_write() {
    let new = cluster(json!({"metadata": {"labels": {"region": "emea"}}, "spec": {}}));
    let accepted = cluster(acceptance(&new, now()));
    assert!(accepted.spec.hub_accepts_client);
    let Plan { patch, .. } = plan(&accepted, false, HEARD);
    // The server says since when a taint is there; here nobody does.
    assert_eq!(patch.map(|it| it["metadata"].clone()), Some(Value::Null));
    assert_eq!(
        accepted.spec.taints[0].key,
        "cluster.open-cluster-management.io/unreachable"
    );
}

fn request(label: &str, user: &str, groups: [&str; 2]) -> CertificateSigningRequest {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, groups[0]);
    name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), groups[1]);
    name.push(DnType::CommonName, user);
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = k8s_openapi::ByteString(pem.into_bytes());
    serde_json::from_value(json!({
        "metadata": {"labels": {"open-cluster-management.io/cluster-name": label}},
        "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "request": request},
    }))
    .unwrap()
}

#[test]
fn a_request_is_for_exactly_one_cluster() {
    const ALL: &str = "system:open-cluster-management:managed-clusters";
    const OWN: &str = "system:open-cluster-management:c1";
    let check = |label: &str, user: &str, groups: [&str; 2], expected: Result<(), &str>| {
        let found = read(&request(label, user, groups));
        match (found, expected) {
            (Ok(AgentRequest { cluster, .. }), Ok(())) => assert_eq!(cluster, "c1"),
            (Err(problem), Err(wanted)) => assert!(problem.contains(wanted), "{problem}"),
            (found, wanted) => panic!("{label} {user} {groups:?}: {found:?}, not {wanted:?}"),
        }
    };
    let user = "system:open-cluster-management:c1:agent";
    check("c1", user, [OWN, ALL], Ok(()));
    check("", user, [OWN, ALL], Err("no label"));
    check("c10", user, [OWN, ALL], Err("groups"));
    check("c1", user, [OWN, "system:masters"], Err("groups"));
    check("c1", user, [ALL, ALL], Err("groups"));
    let wrong = "it asks for the user";
    check(
        "c1",
        "system:open-cluster-management:c10:agent",
        [OWN, ALL],
        Err(wrong),
    );
    check(
        "c1",
        "system:open-cluster-management:c1:",
        [OWN, ALL],
        Err(wrong),
    );
    check(
        "c1",
        "system:open-cluster-management:c1:a:b",
        [OWN, ALL],
        Err(wrong),
    );
    check(
        "c1",
        "system:open-cluster-management:c1",
        [OWN, ALL],
        Err(wrong),
    );
    check("c1", "admin", [OWN, ALL], Err(wrong));
}
