//! Clusters and their sets: what only some may do, and what only the hub knows.
//!
//! | rule | about |
//! |---|---|
//! | a cluster is accepted by those who may update `managedclusters/accept` | ManagedCluster |
//! | a cluster is moved between sets by those who may create `managedclustersets/join` on both | ManagedCluster |
//! | an agent changes only what it reports of its own cluster | ManagedCluster |
//! | a bootstrap token is good for the cluster, set and labels that its Secret names | ManagedCluster |
//! | a set is bound to a namespace by those who may create `managedclustersets/bind` | ManagedClusterSetBinding |
//! | who acts for a cluster requests certificates of that cluster only | CertificateSigningRequest |

use std::collections::BTreeMap;

use bellwether_api::Kind as _;
use bellwether_api::admission::{Admission, Attributes, Denial, ObjectId, Operation, Review, Rule};
use bellwether_api::cluster::names::{annotation, label, object, registration};
use bellwether_api::cluster::party::{Party, Terms, reserved_for};
use bellwether_api::cluster::{GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use bellwether_json::name::dns_label_problems;
use bellwether_json::time::format_time;
use jiff::Timestamp;
use serde_json::{Value, json};

const CLUSTERS: &str = ManagedCluster::NAMES.plural;
const BINDINGS: &str = ManagedClusterSetBinding::NAMES.plural;
const REQUESTS: &str = "certificatesigningrequests";

/// True for those who act for a cluster: everybody else's certificate requests must not depend on a
/// webhook. A test compares it with [`Party::of`].
const IS_PARTY: &str = "request.userInfo.username.startsWith('system:open-cluster-management:') || \
    (has(request.userInfo.groups) && 'system:bootstrappers:managedcluster' in request.userInfo.groups)";

/// The rules of a fleet: who may join it, accept clusters, and move them.
#[derive(Debug, Clone, Copy)]
pub struct FleetAdmission;

impl Admission for FleetAdmission {
    fn name(&self) -> &'static str {
        "fleet"
    }

    fn rules(&self) -> &'static [Rule] {
        const RULES: &[Rule] = &[
            Rule {
                group: GROUP,
                resources: &[CLUSTERS],
                operations: &[Operation::Create, Operation::Update],
                condition: None,
            },
            Rule {
                group: GROUP,
                resources: &[BINDINGS],
                operations: &[Operation::Create],
                condition: None,
            },
            Rule {
                group: "certificates.k8s.io",
                resources: &[REQUESTS],
                operations: &[Operation::Create],
                condition: Some(IS_PARTY),
            },
        ];
        RULES
    }

    fn mutations(&self) -> &'static [Rule] {
        const MUTATIONS: &[Rule] = &[Rule {
            group: GROUP,
            resources: &[CLUSTERS],
            operations: &[Operation::Create, Operation::Update],
            condition: None,
        }];
        MUTATIONS
    }

    fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), Denial> {
        if review.resource == CLUSTERS {
            complete_cluster(review, object)?;
        }
        Ok(())
    }

    fn validate(&self, review: &Review<'_>, object: &Value) -> Result<(), Denial> {
        match review.resource {
            CLUSTERS => check_cluster(review, object),
            BINDINGS => check_binding(review, object),
            REQUESTS => check_request(review, object),
            _ => Ok(()),
        }
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn party(review: &Review<'_>) -> Option<Party> {
    Party::of(review.user, review.groups, |id| review.facts.get(id))
}

/// Fills in what a token fixes, the default set, and when taints were added.
fn complete_cluster(review: &Review<'_>, object: &mut Value) -> Result<(), Denial> {
    if let (Some(Party::Joiner(terms)), None) = (party(review), review.old) {
        join_terms(&terms, object).map_err(Denial::Forbidden)?;
    }
    put_label(object);
    stamp_taints(review, object)
}

fn check_cluster(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let name = name_of(object);
    let problems = dns_label_problems(name);
    if review.old.is_none() && !problems.is_empty() {
        let problems = problems.join("; ");
        return Err(Denial::BadRequest(format!(
            "the name of a cluster is also that of its namespace: {problems}"
        )));
    }
    check_addresses(object)?;
    check_party(review, object)?;
    check_acceptance(review, name, object)?;
    check_set(review, object)
}

/// Refuses changes beyond what an agent tells about its cluster, and clusters that a token is not for.
fn check_party(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    match (party(review), review.old) {
        (Some(Party::Joiner(terms)), None) => {
            let mut joined = object.clone();
            join_terms(&terms, &mut joined).map_err(Denial::Forbidden)?;
            if joined != *object {
                // Somebody changed it after it was completed.
                let why = "the cluster lacks labels that the token fixes";
                return Err(Denial::Forbidden(why.to_owned()));
            }
            Ok(())
        }
        (Some(Party::Agent { .. }), Some(old)) => {
            let mut completed = old.clone();
            complete_cluster(review, &mut completed)?;
            if is_description(object, &completed) {
                return Ok(());
            }
            Err(Denial::Forbidden(format!(
                "an agent may change client configs and annotations that begin with {} of its cluster, and nothing else",
                annotation::AGENT_PREFIX
            )))
        }
        _ => Ok(()),
    }
}

/// Gives a cluster what the token fixes that it joins with; the error says what it may not say.
fn join_terms(terms: &Terms, object: &mut Value) -> Result<(), String> {
    let name = name_of(object);
    if let Some(cluster) = terms.cluster.as_deref().filter(|cluster| *cluster != name) {
        return Err(format!("the token is for the cluster {cluster} only"));
    }
    let labels: BTreeMap<String, String> =
        serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
    let mut fixed = BTreeMap::new();
    for (key, value) in labels {
        let allowed = match (&terms.set, &terms.labels) {
            (Some(set), _) if key == label::CLUSTER_SET => Some(set),
            (_, Some(_)) if key == label::CLUSTER_SET => Some(&value),
            (_, Some(labels)) => labels.get(&key),
            (_, None) => Some(&value),
        };
        if allowed != Some(&value) {
            return Err(format!("the token does not allow the label {key}={value}"));
        }
        fixed.insert(key, value);
    }
    fixed.extend(terms.labels.clone().unwrap_or_default());
    if let Some(set) = &terms.set {
        fixed.insert(label::CLUSTER_SET.to_owned(), set.clone());
    }
    if !fixed.is_empty()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("labels".to_owned(), json!(fixed));
    }
    Ok(())
}

/// True if a change touches only what an agent tells about its cluster.
fn is_description(object: &Value, live: &Value) -> bool {
    let rest = |object: &Value| {
        let metadata = &object["metadata"];
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("managedClusterClientConfigs");
        }
        let annotations = metadata["annotations"].as_object().into_iter().flatten();
        let annotations: BTreeMap<String, Value> = annotations
            .filter(|(key, _)| !key.starts_with(annotation::AGENT_PREFIX))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let kept = ["labels", "finalizers", "ownerReferences"];
        (spec, annotations, kept.map(|field| metadata[field].clone()))
    };
    rest(object) == rest(live)
}

fn check_addresses(object: &Value) -> Result<(), Denial> {
    let configs = object["spec"]["managedClusterClientConfigs"].as_array();
    for config in configs.into_iter().flatten() {
        let url = config["url"].as_str().unwrap_or_default();
        if !url.starts_with("https://") || url.len() <= "https://".len() {
            return Err(Denial::BadRequest(format!(
                "url \"{url}\" is invalid in client configs"
            )));
        }
    }
    Ok(())
}

/// Accepting a cluster gives it rights, so that it takes a right of its own.
fn check_acceptance(review: &Review<'_>, name: &str, object: &Value) -> Result<(), Denial> {
    let accepts = |object: &Value| object["spec"]["hubAcceptsClient"] == true;
    if !accepts(object) || review.old.is_some_and(accepts) {
        return Ok(());
    }
    let namespace = review.facts.get(&ObjectId {
        group: "",
        version: "v1",
        resource: "namespaces",
        namespace: "",
        name,
    });
    if namespace.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string()) {
        return Err(Denial::BadRequest(format!(
            "the namespace {name} of the cluster is terminating: accept it when that is done"
        )));
    }
    let wanted = Attributes {
        verb: "update",
        group: registration::REGISTER_GROUP,
        resource: CLUSTERS,
        subresource: "accept",
        name,
        ..Attributes::default()
    };
    demand(review, &wanted, "accept the cluster")
}

/// Moving a cluster takes a right on both sets; a cluster that was in none may be in the default one.
fn check_set(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let set_of = |object: &Value| {
        let set = object["metadata"]["labels"][label::CLUSTER_SET].as_str();
        set.unwrap_or_default().to_owned()
    };
    let (before, after) = (review.old.map(set_of).unwrap_or_default(), set_of(object));
    if before == after || (before.is_empty() && after == object::DEFAULT_CLUSTER_SET) {
        return Ok(());
    }
    for set in [&before, &after].into_iter().filter(|set| !set.is_empty()) {
        let wanted = set_attributes("join", set);
        demand(review, &wanted, "move the cluster between sets")?;
    }
    Ok(())
}

/// Puts a cluster without a set into the default one.
fn put_label(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let labels = metadata.entry("labels").or_insert(Value::Null);
    if labels.is_null() {
        *labels = json!({});
    }
    let Some(labels) = labels.as_object_mut() else {
        return;
    };
    let set = labels.get(label::CLUSTER_SET).and_then(Value::as_str);
    if set.is_none_or(str::is_empty) {
        let set = object::DEFAULT_CLUSTER_SET;
        labels.insert(label::CLUSTER_SET.to_owned(), set.into());
    }
}

fn set_attributes<'a>(subresource: &'a str, set: &'a str) -> Attributes<'a> {
    Attributes {
        verb: "create",
        group: GROUP,
        resource: ManagedClusterSet::NAMES.plural,
        subresource,
        name: set,
        ..Attributes::default()
    }
}

/// When a taint was added is the server's to say: tolerations count from then.
fn stamp_taints(review: &Review<'_>, object: &mut Value) -> Result<(), Denial> {
    let live = review.old;
    let same = |one: &Value, other: &Value| {
        let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or("").to_owned();
        let field = |field: &str| text(one, field) == text(other, field);
        field("key") && field("value") && field("effect")
    };
    let Some(taints) = object.pointer_mut("/spec/taints") else {
        return Ok(());
    };
    let taints = taints.as_array_mut().into_iter().flatten();
    let before = live.and_then(|live| live["spec"]["taints"].as_array());
    let mut wrong = Vec::new();
    for taint in taints {
        let known = before.into_iter().flatten().find(|it| same(it, taint));
        let time = known.map_or(&Value::Null, |it| &it["timeAdded"]);
        let is_told = !taint["timeAdded"].is_null();
        // An embedded server with a webhook server asks twice: what was stamped a moment ago stays.
        if is_told && known.is_none() && is_stamped_now(&taint["timeAdded"], review.now) {
            continue;
        }
        if is_told && live.is_some() && taint["timeAdded"] != *time {
            wrong.push(taint["key"].as_str().unwrap_or_default().to_owned());
            continue;
        }
        let time = match time {
            Value::Null => json!(format_time(review.now)),
            known => known.clone(),
        };
        if let Some(taint) = taint.as_object_mut() {
            taint.insert("timeAdded".to_owned(), time);
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let keys = wrong.join(",");
    Err(Denial::BadRequest(format!(
        "It is not allowed to set TimeAdded of Taint \"{keys}\"."
    )))
}

/// How long ago another of our rules may have stamped a taint of the same write, in seconds.
const SAME_WRITE: i64 = 10;

/// True if a time is that of this very write.
fn is_stamped_now(time: &Value, now: Timestamp) -> bool {
    let time: Option<Timestamp> = time.as_str().and_then(|text| text.parse().ok());
    time.is_some_and(|time| (0..=SAME_WRITE).contains(&(now.as_second() - time.as_second())))
}

fn check_binding(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let name = name_of(object);
    let set = object["spec"]["clusterSet"].as_str().unwrap_or_default();
    if name != set {
        return Err(Denial::BadRequest(
            "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"
                .to_owned(),
        ));
    }
    demand(review, &set_attributes("bind", set), "bind the set")
}

/// Those who act for one cluster of a fleet ask for that one, and under no name of another's.
fn check_request(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let Some(party) = party(review) else {
        return Ok(());
    };
    let agent_of = |cluster: &str| Party::Agent {
        cluster: cluster.to_owned(),
    };
    if let Some(owner) = reserved_for(name_of(object)).filter(|owner| party != agent_of(owner)) {
        return Err(Denial::Forbidden(format!(
            "the name is reserved for the agent of the cluster {owner}"
        )));
    }
    let asked = object["metadata"]["labels"][label::CLUSTER_NAME].as_str();
    match (asked, party.cluster()) {
        (Some(asked), Some(own)) if asked != own => Err(Denial::Forbidden(format!(
            "{} may ask for certificates of the cluster {own} only",
            review.user
        ))),
        _ => Ok(()),
    }
}

fn demand(review: &Review<'_>, wanted: &Attributes<'_>, what: &str) -> Result<(), Denial> {
    if review.facts.allows(wanted) {
        return Ok(());
    }
    let refusal = wanted.refusal(review.user);
    Err(Denial::Forbidden(format!(
        "not permitted to {what}: {refusal}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(terms: &Terms, labels: &Value, expected: Result<Value, &str>) {
        let mut cluster = json!({"metadata": {"name": "c1", "labels": labels}});
        let joined = join_terms(terms, &mut cluster);
        let found = joined.map(|()| cluster["metadata"]["labels"].clone());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    /// A server that calls our rules itself and our webhook as well has them both stamp one write.
    #[test]
    fn a_taint_is_stamped_once_in_a_write() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        for (time, expected) in [
            (json!("2026-01-01T00:01:00Z"), true),
            (json!("2026-01-01T00:00:55Z"), true),
            (json!("2026-01-01T00:00:30Z"), false),
            (json!("2026-01-01T00:02:00Z"), false),
            (json!("soon"), false),
            (Value::Null, false),
        ] {
            assert_eq!(is_stamped_now(&time, now), expected, "{time}");
        }
    }

    #[test]
    fn a_token_fixes_what_its_cluster_says() {
        let anything = Terms::default();
        check(&anything, &json!({"a": "b"}), Ok(json!({"a": "b"})));
        let labels = [("region".to_owned(), "emea".to_owned())];
        let fixed = Terms {
            cluster: Some("c1".into()),
            set: Some("prod".into()),
            labels: Some(labels.into()),
        };
        let set = label::CLUSTER_SET;
        let all = json!({"region": "emea", set: "prod"});
        check(&fixed, &Value::Null, Ok(all.clone()));
        check(&fixed, &all, Ok(all.clone()));
        let refused = "the token does not allow the label region=moon";
        check(&fixed, &json!({"region": "moon"}), Err(refused));
        let refused = "the token does not allow the label a=b";
        check(&fixed, &json!({"a": "b"}), Err(refused));
        let other =
            "the token does not allow the label cluster.open-cluster-management.io/clusterset=dev";
        check(&fixed, &json!({set: "dev"}), Err(other));
        let elsewhere = Terms {
            cluster: Some("c2".into()),
            ..Terms::default()
        };
        let refused = "the token is for the cluster c2 only";
        check(&elsewhere, &Value::Null, Err(refused));
    }

    #[test]
    fn the_condition_of_webhooks_holds_for_everybody_who_acts_for_a_cluster() {
        assert!(IS_PARTY.contains(&format!("'{}'", registration::USER_PREFIX)));
        assert!(IS_PARTY.contains(&format!("'{}'", registration::BOOTSTRAP_GROUP)));
    }

    #[test]
    fn an_agent_describes_its_cluster_and_no_more() {
        let live = json!({
            "metadata": {"name": "c1", "labels": {"a": "b"}, "annotations": {"x": "y"}},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
        });
        for (path, value, expected) in [
            (
                "/metadata/annotations/agent.open-cluster-management.io~1a",
                json!("1"),
                true,
            ),
            (
                "/spec/managedClusterClientConfigs",
                json!([{"url": "https://c1"}]),
                true,
            ),
            ("/metadata/annotations/x", json!("z"), false),
            ("/metadata/labels/a", json!("c"), false),
            ("/metadata/finalizers", json!(["x/y"]), false),
            ("/spec/leaseDurationSeconds", json!(1), false),
            ("/spec/taints", json!([]), false),
        ] {
            let mut changed = live.clone();
            let (parent, key) = path.rsplit_once('/').unwrap();
            let key = key.replace("~1", "/");
            changed.pointer_mut(parent).unwrap()[key] = value;
            assert_eq!(is_description(&changed, &live), expected, "{path}");
        }
    }
}
