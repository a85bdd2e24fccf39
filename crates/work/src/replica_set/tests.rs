use bellwether_api::work::WorkSummary;
use serde_json::{Value, json};

use super::*;
use bellwether_api::work::names::annotation;

mod controlled;
mod counted;

const NOW: &str = "2026-01-01T00:10:00Z";

fn set(strategy: Value) -> ManifestWorkReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "apps", "labels": {"team": "a"},
            "finalizers": [finalizer::REPLICA_SET]},
        "spec": {"placementRefs": [{"name": "p", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}}]}}},
    }))
    .unwrap()
}

fn chosen(clusters: &[&str]) -> BTreeMap<String, Chosen> {
    let chosen = Chosen::from(vec![Group::new("", 0, clusters.iter().copied())]);
    BTreeMap::from([("p".to_owned(), chosen)])
}

fn look(
    set: &ManifestWorkReplicaSet,
    placements: &BTreeMap<String, Chosen>,
    works: &[Arc<ManifestWork>],
) -> Plan {
    let observed = Observed {
        set,
        placements,
        works,
        cluster: &|name| {
            let cluster = json!({"metadata": {"name": name, "labels": {"region": format!("r-{name}")}},
                "status": {"conditions": [], "version": {}, "clusterClaims": [{"name": "size", "value": "3"}]}});
            serde_json::from_value(cluster).ok().map(Arc::new)
        },
        now: NOW.parse().unwrap(),
    };
    plan(&observed, &Programs::default())
}

/// The works as a server keeps them, with conditions of the present generation.
fn stored(works: &[ManifestWork], conditions: &[(&str, &str)]) -> Vec<Arc<ManifestWork>> {
    works
        .iter()
        .map(|work| {
            let mut value = serde_json::to_value(work).unwrap();
            value["metadata"]["generation"] = json!(1);
            value["metadata"]["resourceVersion"] = json!("1");
            let list: Vec<Value> = conditions
                .iter()
                .map(|(name, status)| {
                    json!({"type": name, "status": status, "reason": "R", "message": "",
                        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
                })
                .collect();
            value["status"] = json!({ "conditions": list });
            Arc::new(serde_json::from_value(value).unwrap())
        })
        .collect()
}

const WELL: [(&str, &str); 4] = [
    ("Applied", "True"),
    ("Available", "True"),
    ("Progressing", "False"),
    ("Degraded", "False"),
];
const FAILED: [(&str, &str); 4] = [
    ("Applied", "True"),
    ("Available", "True"),
    ("Progressing", "True"),
    ("Degraded", "True"),
];

fn clusters(plan: &Plan) -> Vec<&str> {
    let mut names: Vec<&str> = plan
        .write
        .iter()
        .map(|work| work.metadata.namespace.as_deref().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn said<'a>(plan: &'a Plan, name: &str) -> (&'a str, &'a str, &'a str) {
    let status = plan.status.as_ref().unwrap();
    let found = crate::lifecycle::find(&status.conditions, name).unwrap();
    (&found.status, &found.reason, &found.message)
}

#[test]
fn no_cluster_starts_before_all_decisions_of_the_placement_are_there() {
    let mut placements = chosen(&["a", "b"]);
    let late = placements.get_mut("p").unwrap();
    late.groups[0].key.index = 1;
    (late.selected, late.is_settled) = (3, false);
    let per_group = set(json!({"type": "ProgressivePerGroup"}));
    assert_eq!(clusters(&look(&per_group, &placements, &[])), [""; 0]);
    let at_once = set(json!({"type": "All"}));
    assert_eq!(clusters(&look(&at_once, &placements, &[])), ["a", "b"]);
    let settled = placements.get_mut("p").unwrap();
    settled.groups.insert(0, Group::new("", 0, ["canary"]));
    settled.is_settled = true;
    assert_eq!(clusters(&look(&per_group, &placements, &[])), ["canary"]);
}

#[test]
fn the_finalizer_comes_first() {
    let mut set = set(json!({"type": "All"}));
    set.metadata.finalizers = None;
    let plan = look(&set, &chosen(&["a"]), &[]);
    assert_eq!(
        plan.finalizers,
        Some(vec![finalizer::REPLICA_SET.to_owned()])
    );
    assert!(plan.write.is_empty());
}

#[test]
fn every_chosen_cluster_gets_a_work_with_names_and_labels() {
    let plan = look(&set(json!({"type": "All"})), &chosen(&["b", "a"]), &[]);
    assert_eq!(clusters(&plan), ["a", "b"]);
    let work = &plan.write[0];
    let name = work.metadata.name.as_deref().unwrap();
    assert!(
        name.starts_with("web") && name.len() == "web".len() + 5,
        "{name}"
    );
    assert_eq!(label_of(work, label::REPLICA_SET), Some("apps.web"));
    assert_eq!(label_of(work, label::PLACEMENT_NAME), Some("p"));
    assert_eq!(label_of(work, "team"), Some("a"));
    assert_eq!(work.metadata.owner_references, None);
    assert_eq!(said(&plan, "PlacementVerified").1, "PlacementDecisionEmpty");
    assert_eq!(
        said(&plan, "ManifestworkApplied").1,
        "PlacementDecisionEmpty"
    );
    assert_eq!(said(&plan, "PlacementRolledOut").1, "Progressing");
}

#[test]
fn a_set_whose_clusters_are_well_is_done() {
    let set = set(json!({"type": "All"}));
    let works = stored(&look(&set, &chosen(&["a", "b"]), &[]).write, &WELL);
    let plan = look(&set, &chosen(&["a", "b"]), &works);
    assert!(plan.write.is_empty() && plan.delete.is_empty());
    let status = plan.status.clone().unwrap();
    let expected = WorkSummary {
        total: 2,
        applied: 2,
        available: 2,
        desired_total: 2,
        updated: 2,
        ..WorkSummary::default()
    };
    assert_eq!(status.summary, expected);
    assert_eq!(
        status.placement_summary[0].available_decision_groups,
        "1 (2 / 2 clusters applied)"
    );
    let selected = "2 clusters selected by 1 placement";
    let verified = said(&plan, "PlacementVerified");
    assert_eq!(verified, ("True", "AsExpected", selected));
    let rolled_out = said(&plan, "PlacementRolledOut");
    assert_eq!(
        rolled_out,
        ("True", "Complete", "p: 2 of 2 clusters are done")
    );
    let available = "2 of 2 works available, 0 in progress, 0 degraded";
    let applied = said(&plan, "ManifestworkApplied");
    assert_eq!(applied, ("True", "AsExpected", available));
    let mut done = set;
    done.status = Some(status);
    assert_eq!(look(&done, &chosen(&["a", "b"]), &works), Plan::default());
}

#[test]
fn times_of_conditions_move_only_with_their_status() {
    let mut set = set(json!({"type": "All"}));
    let first = look(&set, &chosen(&["a", "b"]), &[]);
    let works = stored(&first.write, &WELL);
    set.status = look(&set, &chosen(&["a", "b"]), &works[..1]).status;
    let long_ago = bellwether_api::meta::Time("2025-01-01T00:00:00Z".parse().unwrap());
    for condition in &mut set.status.as_mut().unwrap().conditions {
        condition.last_transition_time = long_ago.clone();
    }
    let before = set.status.clone().unwrap().conditions;
    let after = look(&set, &chosen(&["a", "b"]), &works).status.unwrap();
    let mut moved = 0;
    for (old, new) in before.iter().zip(&after.conditions) {
        let is_same = old.status == new.status;
        assert_eq!(
            old.last_transition_time == new.last_transition_time,
            is_same,
            "{}",
            old.type_
        );
        moved += usize::from(!is_same);
    }
    assert_eq!((moved, after.conditions.len()), (1, 3));
}

#[test]
fn a_progressive_rollout_goes_one_by_one_and_stops_at_a_failure() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let set = set(strategy);
    let chosen = chosen(&["a", "b", "c"]);
    let first = look(&set, &chosen, &[]);
    assert_eq!(clusters(&first), ["a"]);
    let reported = stored(&first.write, &[]);
    assert_eq!(
        clusters(&look(&set, &chosen, &reported)),
        Vec::<&str>::new()
    );
    let well = stored(&first.write, &WELL);
    assert_eq!(clusters(&look(&set, &chosen, &well)), ["b"]);
    let failed = look(&set, &chosen, &stored(&first.write, &FAILED));
    assert!(failed.write.is_empty());
    let (status, reason, message) = said(&failed, "PlacementRolledOut");
    assert_eq!((status, reason), ("False", "Progressing"));
    assert_eq!(
        message,
        "p: stopped, the rollout has 1 failure, 0 tolerated; 0 of 3 clusters are done; a failed"
    );
    assert_eq!(said(&failed, "ManifestworkApplied").1, "NotAsExpected");
}

#[test]
fn clusters_that_are_no_longer_chosen_lose_their_works() {
    let set = set(json!({"type": "All"}));
    let works = stored(&look(&set, &chosen(&["a", "b"]), &[]).write, &WELL);
    let plan = look(&set, &chosen(&["a"]), &works);
    assert_eq!(plan.delete.len(), 1);
    assert_eq!(plan.delete[0].0, "b");
    // However long they take to go, the others are all there is to wait for.
    assert_eq!(said(&plan, "PlacementRolledOut").0, "True");
}

#[test]
fn labels_that_the_set_no_longer_has_are_taken_from_its_works() {
    let mut set = set(json!({"type": "All"}));
    let works = stored(&look(&set, &chosen(&["a"]), &[]).write, &WELL);
    set.metadata.labels = None;
    let plan = look(&set, &chosen(&["a"]), &works);
    assert_eq!(plan.write.len(), 1);
    assert_eq!(label_of(&plan.write[0], "team"), None);
    assert_eq!(label_of(&plan.write[0], label::PLACEMENT_NAME), Some("p"));
}

#[test]
fn what_a_template_no_longer_has_is_taken_from_its_works() {
    let mut set = set(json!({"type": "All"}));
    let option = json!({"propagationPolicy": "Foreground", "ttlSecondsAfterFinished": 5});
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.delete_option = serde_json::from_value(option).unwrap();
    let mut works = stored(&look(&set, &chosen(&["a"]), &[]).write, &WELL);
    let known = Arc::make_mut(&mut works[0]);
    known.metadata.finalizers = Some(vec!["agent".to_owned()]);
    let option = json!({"propagationPolicy": "Foreground"});
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.delete_option = serde_json::from_value(option).unwrap();
    let plan = look(&set, &chosen(&["a"]), &works);
    let written = serde_json::to_value(&plan.write[0]).unwrap();
    assert_eq!(
        written["spec"]["deleteOption"],
        json!({"propagationPolicy": "Foreground"})
    );
    assert_eq!(written["metadata"]["finalizers"], json!(["agent"]));
}

#[test]
fn fields_that_are_null_are_no_difference() {
    let mut set = set(json!({"type": "All"}));
    let manifests = |nothing: Value| {
        let claim = json!({"metadata": {"name": "data", "creationTimestamp": nothing}});
        let mut manifest = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "m", "namespace": "n"}, "spec": {"volumeClaimTemplates": [claim]}});
        if nothing != Value::Null {
            let claim = &mut manifest["spec"]["volumeClaimTemplates"][0]["metadata"];
            claim.as_object_mut().unwrap().remove("creationTimestamp");
        }
        vec![manifest]
    };
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests = manifests(json!("absent"));
    let works = stored(&look(&set, &chosen(&["a"]), &[]).write, &WELL);
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests = manifests(Value::Null);
    assert!(look(&set, &chosen(&["a"]), &works).write.is_empty());
}

#[test]
fn a_work_that_is_complete_is_done_whatever_its_template_becomes() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let set = set(strategy);
    let complete = [("Applied", "True"), ("Complete", "True")];
    let mut works = stored(&look(&set, &chosen(&["a", "b"]), &[]).write, &complete);
    Arc::make_mut(&mut works[0]).metadata.generation = Some(2);
    assert_eq!(clusters(&look(&set, &chosen(&["a", "b"]), &works)), ["b"]);
}

#[test]
fn a_changed_template_is_rolled_out_under_the_same_names() {
    let old = set(json!({"type": "All"}));
    let works = stored(&look(&old, &chosen(&["a"]), &[]).write, &WELL);
    let mut new = old;
    let template = new.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests[0]["data"] = json!({"k": "v"});
    let plan = look(&new, &chosen(&["a"]), &works);
    assert_eq!(plan.write.len(), 1);
    assert_eq!(plan.write[0].metadata.name, works[0].metadata.name);
    assert_eq!(
        plan.write[0].metadata.resource_version.as_deref(),
        Some("1")
    );
    assert_eq!(plan.status.as_ref().unwrap().summary.total, 0);
}

#[test]
fn a_missing_placement_is_told() {
    let plan = look(&set(json!({"type": "All"})), &BTreeMap::new(), &[]);
    let (status, reason, message) = said(&plan, "PlacementVerified");
    assert_eq!((status, reason), ("False", "PlacementDecisionNotFound"));
    assert_eq!(message, "there is no Placement p in this namespace");
    assert_eq!(said(&plan, "PlacementRolledOut").0, "False");
}

#[test]
fn a_placement_that_goes_leaves_its_works_and_what_is_known_of_them() {
    let mut set = set(json!({"type": "All"}));
    let placements = chosen(&["a", "b"]);
    let works = stored(&look(&set, &placements, &[]).write, &WELL);
    set.status = look(&set, &placements, &works).status;
    let plan = look(&set, &BTreeMap::new(), &works);
    assert!(plan.delete.is_empty() && plan.write.is_empty());
    assert_eq!(plan.status.as_ref().unwrap().summary.total, 2);
    assert_eq!(said(&plan, "PlacementRolledOut").0, "False");
    assert_eq!(
        said(&plan, "PlacementVerified").1,
        "PlacementDecisionNotFound"
    );
}

#[test]
fn a_missing_placement_does_not_hold_up_the_others() {
    let mut set = set(json!({"type": "All"}));
    let missing = serde_json::from_value(json!({"name": "missing"})).unwrap();
    set.spec.placement_refs.insert(0, missing);
    let plan = look(&set, &chosen(&["a"]), &[]);
    assert_eq!(clusters(&plan), ["a"]);
    let plan = look(&set, &chosen(&["a"]), &stored(&plan.write, &WELL));
    assert_eq!(plan.status.as_ref().unwrap().summary.total, 1);
    assert_eq!(
        said(&plan, "PlacementVerified").2,
        "there is no Placement missing in this namespace"
    );
}

#[test]
fn a_placement_that_is_named_twice_counts_once() {
    let mut set = set(json!({"type": "All"}));
    set.spec
        .placement_refs
        .push(set.spec.placement_refs[0].clone());
    let first = look(&set, &chosen(&["a"]), &[]);
    assert_eq!(first.write.len(), 1);
    let plan = look(&set, &chosen(&["a"]), &stored(&first.write, &WELL));
    assert_eq!(plan.status.as_ref().unwrap().summary.total, 1);
    assert_eq!(said(&plan, "PlacementRolledOut").0, "True");
}

#[test]
fn a_name_that_fits_into_no_label_is_told() {
    let mut set = set(json!({"type": "All"}));
    set.metadata.name = Some("x".repeat(70));
    let plan = look(&set, &chosen(&["a"]), &[]);
    assert!(plan.write.is_empty());
    let (status, reason, message) = said(&plan, "ManifestworkApplied");
    assert_eq!((status, reason), ("False", "InvalidManifestWorkName"));
    assert!(message.contains("apps.xxx"), "{message}");
}

#[test]
fn deletion_takes_the_works_along() {
    let mut set = set(json!({"type": "All"}));
    let works = stored(&look(&set, &chosen(&["a"]), &[]).write, &WELL);
    set.metadata.deletion_timestamp = Some(bellwether_api::meta::Time(NOW.parse().unwrap()));
    let plan = look(&set, &chosen(&["a"]), &works);
    assert_eq!((plan.delete.len(), plan.finalizers), (1, Some(vec![])));
    set.spec.cascade_deletion_policy = CascadeDeletionPolicy::Foreground;
    let plan = look(&set, &chosen(&["a"]), &works);
    assert_eq!((plan.delete.len(), plan.finalizers), (1, None));
    let plan = look(&set, &chosen(&["a"]), &[]);
    assert_eq!((plan.delete.len(), plan.finalizers), (0, Some(vec![])));
}

#[test]
fn values_of_clusters_are_filled_in_where_they_are_asked_for() {
    let mut set = set(json!({"type": "All"}));
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
        "data": {"region": "${cluster.labels.region}", "text": "on ${cluster.name}: $${HOME}",
            "size": "${int(cluster.claims.size) + 1}", "map": "${{'a': 'b}'}['a']}"}});
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests = vec![manifest];
    let data =
        |plan: &Plan| plan.write[0].spec.workload.as_ref().unwrap().manifests[0]["data"].clone();
    let plain = look(&set, &chosen(&["a"]), &[]);
    assert_eq!(data(&plain)["region"], "${cluster.labels.region}");
    let annotation = (annotation::TEMPLATE_VALUES.to_owned(), "cel".to_owned());
    set.metadata.annotations = Some(BTreeMap::from([annotation]));
    let filled = look(&set, &chosen(&["a"]), &[]);
    assert_eq!(
        data(&filled),
        json!({"region": "r-a", "text": "on a: ${HOME}", "size": 4, "map": "b}"})
    );
}

#[test]
fn values_are_filled_in_all_over_the_template() {
    let mut set = set(json!({"type": "All"}));
    let annotation = (annotation::TEMPLATE_VALUES.to_owned(), "cel".to_owned());
    set.metadata.annotations = Some(BTreeMap::from([annotation]));
    let spec = json!({
        "workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "on-${cluster.name}"}}]},
        "manifestConfigs": [{"resourceIdentifier": {"resource": "configmaps",
            "name": "on-${cluster.name}"}}]});
    set.spec.manifest_work_template = serde_json::from_value(spec).unwrap();
    let plan = look(&set, &chosen(&["a"]), &[]);
    let config = &plan.write[0].spec.manifest_configs[0];
    assert_eq!(config.resource_identifier.name, "on-a");
}

#[track_caller]
fn cannot_have(manifests: Value, expected: &str) {
    let mut set = set(json!({"type": "All"}));
    let annotation = (annotation::TEMPLATE_VALUES.to_owned(), "cel".to_owned());
    set.metadata.annotations = Some(BTreeMap::from([annotation]));
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests = serde_json::from_value(manifests).unwrap();
    let plan = look(&set, &chosen(&["a", "b"]), &[]);
    assert_eq!(clusters(&plan), ["b"], "{expected}");
    let plan = look(&set, &chosen(&["a", "b"]), &stored(&plan.write, &WELL));
    assert!(plan.write.is_empty() && plan.delete.is_empty());
    let problem = format!("p: {expected}");
    let applied = said(&plan, "ManifestworkApplied");
    assert_eq!(applied, ("False", "NotAsExpected", &*problem));
    let progress = format!("p: 1 of 2 clusters are done; a failed: {expected}");
    let rolled_out = said(&plan, "PlacementRolledOut");
    assert_eq!(rolled_out, ("False", "Progressing", &*progress));
    assert_eq!(said(&plan, "PlacementVerified").1, "AsExpected");
}

#[test]
fn a_cluster_that_can_have_no_work_is_told_and_holds_up_nothing_but_itself() {
    let named = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
    cannot_have(
        json!([named(
            "${cluster.name == 'a' ? cluster.labels.missing : 'm'}"
        )]),
        "for a: cluster.name == 'a' ? cluster.labels.missing : 'm': no such key: missing",
    );
    cannot_have(
        json!([named("x"), named("${cluster.name == 'a' ? 'x' : 'm'}")]),
        "for a: duplicate manifest for resource n/x with resource type v1.ConfigMap",
    );
}

#[test]
fn a_manifest_that_is_too_large_by_itself_is_told() {
    let mut set = set(json!({"type": "All"}));
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests[0]["data"] = json!("x".repeat(600_000));
    let plan = look(&set, &chosen(&["a"]), &[]);
    assert!(plan.write.is_empty());
    let (status, reason, message) = said(&plan, "ManifestworkApplied");
    assert_eq!((status, reason), ("False", "NotAsExpected"));
    assert!(message.contains("exceeds the 512000 limit"), "{message}");
}

/// Works that an agent has begun with, and seen as they are or not.
fn applied(works: &[ManifestWork], is_seen: bool) -> Vec<Arc<ManifestWork>> {
    let conditions: &[(&str, &str)] = if is_seen { &WELL } else { &[] };
    let mut works = stored(works, conditions);
    for work in &mut works {
        let work = Arc::make_mut(work);
        work.metadata.finalizers = Some(vec![finalizer::MANIFEST_WORK.to_owned()]);
    }
    works
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.write.iter().map(part_of).collect()
}

#[test]
fn an_object_leaves_one_work_only_after_another_has_it() {
    let mut set = set(json!({"type": "All"}));
    let large = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"x": "x".repeat(200_000)}})
    };
    let mut fill = |names: &[&str]| {
        let template = set.spec.manifest_work_template.as_mut().unwrap();
        let manifests = names.iter().map(|name| large(name)).collect();
        template.workload.as_mut().unwrap().manifests = manifests;
        set.clone()
    };
    let (small, grown) = (fill(&["b", "c"]), fill(&["a", "b", "c"]));
    let at = chosen(&["a"]);
    let one = applied(&look(&small, &at, &[]).write, true);
    // It grows: c moves to a new part, which has to come first.
    let plan = look(&grown, &at, &one);
    assert_eq!(names(&plan), ["1"]);
    let unseen = [one.clone(), applied(&plan.write, false)].concat();
    assert_eq!(look(&grown, &at, &unseen).write, []);
    let second = applied(&plan.write, true);
    let seen = [one.clone(), second.clone()].concat();
    let plan = look(&grown, &at, &seen);
    assert_eq!(names(&plan), ["0"]);
    // It shrinks: c moves back, and the second part goes when the first has been seen with it.
    let first = applied(&plan.write, true);
    let plan = look(&small, &at, &[first, second.clone()].concat());
    assert_eq!((names(&plan), plan.delete.len()), (vec!["0"], 0));
    let unseen = [applied(&plan.write, false), second.clone()].concat();
    assert_eq!(look(&small, &at, &unseen).delete, []);
    let seen = [applied(&plan.write, true), second].concat();
    assert_eq!(look(&small, &at, &seen).delete.len(), 1);
}

fn placements(all: &[(&str, &[&str])]) -> BTreeMap<String, Chosen> {
    let one =
        |(name, clusters): &(&str, &[&str])| ((*name).to_owned(), chosen(clusters)["p"].clone());
    all.iter().map(one).collect()
}

/// The replica set, with these placements in this order.
fn with_references(mut set: ManifestWorkReplicaSet, names: &[&str]) -> ManifestWorkReplicaSet {
    let first = set.spec.placement_refs[0].clone();
    let reference = |name: &&str| PlacementReference {
        name: (*name).to_owned(),
        ..first.clone()
    };
    set.spec.placement_refs = names.iter().map(reference).collect();
    set
}

#[test]
fn a_cluster_belongs_to_the_placement_that_is_named_first() {
    let set = with_references(set(json!({"type": "All"})), &["q", "p"]);
    let both = placements(&[("p", &["a", "b", "c"]), ("q", &["b", "d"])]);
    let first = look(&set, &both, &[]);
    assert_eq!(clusters(&first), ["a", "b", "c", "d"]);
    let owner = |plan: &Plan, cluster: &str| {
        let is_there = |work: &&ManifestWork| work.metadata.namespace.as_deref() == Some(cluster);
        let work = plan.write.iter().find(is_there).unwrap();
        label_of(work, label::PLACEMENT_NAME).unwrap().to_owned()
    };
    assert_eq!(owner(&first, "b"), "q");
    assert_eq!(owner(&first, "a"), "p");
    let works = applied(&first.write, true);
    let plan = look(&set, &both, &works);
    assert!(plan.write.is_empty() && plan.delete.is_empty());
    assert_eq!(
        said(&plan, "PlacementVerified"),
        (
            "True",
            "AsExpected",
            "4 clusters selected by 2 placements; p: the cluster b belongs to the placement q, which is named \
             before"
        )
    );
    let status = plan.status.clone().unwrap();
    assert_eq!(status.summary.total, 4);
    let groups = |name: &str| {
        let found = status.placement_summary.iter().find(|it| it.name == name);
        found.unwrap().available_decision_groups.clone()
    };
    assert_eq!(groups("p"), "1 (2 / 2 clusters applied)");
    assert_eq!(groups("q"), "1 (2 / 2 clusters applied)");
    assert_eq!(said(&plan, "PlacementRolledOut").0, "True");
    // The first one gives the cluster up: the work stays and changes its label.
    let other = placements(&[("p", &["a", "b", "c"]), ("q", &["d"])]);
    let plan = look(&set, &other, &works);
    assert_eq!((clusters(&plan), plan.delete.len()), (vec!["b"], 0));
    assert_eq!(owner(&plan, "b"), "p");
    let before = works
        .iter()
        .find(|it| it.metadata.namespace.as_deref() == Some("b"));
    assert_eq!(plan.write[0].metadata.name, before.unwrap().metadata.name);
    assert_eq!(
        plan.write[0].metadata.annotations,
        before.unwrap().metadata.annotations
    );
}

#[test]
fn two_works_that_overlapping_placements_left_become_one() {
    let alone = |name: &str| with_references(set(json!({"type": "All"})), &[name]);
    let of = |name: &str| look(&alone(name), &placements(&[(name, &["a"])]), &[]).write;
    let works = applied(&[of("p"), of("q")].concat(), true);
    let both = with_references(set(json!({"type": "All"})), &["q", "p"]);
    let chosen = placements(&[("p", &["a"]), ("q", &["a"])]);
    let plan = look(&both, &chosen, &works);
    assert!(plan.write.is_empty());
    assert_eq!(plan.delete, [key_of(&works[0].metadata)]);
    assert!(look(&both, &chosen, &works[1..]).delete.is_empty());
}

#[test]
fn works_stay_when_another_placement_chooses_their_clusters() {
    let old = set(json!({"type": "All"}));
    let works = applied(&look(&old, &chosen(&["a", "b"]), &[]).write, true);
    let new = with_references(old.clone(), &["q"]);
    let plan = look(&new, &placements(&[("q", &["a"])]), &works);
    let gone: Vec<&str> = plan.delete.iter().map(|(cluster, _)| &**cluster).collect();
    assert_eq!((clusters(&plan), gone), (vec!["a"], vec!["b"]));
    assert_eq!(plan.write[0].metadata.name, works[0].metadata.name);
    // Also those of a placement that is gone, as soon as another one chooses the cluster.
    let both = with_references(old, &["p", "q"]);
    let plan = look(&both, &placements(&[("q", &["a"])]), &works);
    assert_eq!((clusters(&plan), plan.delete.len()), (vec!["a"], 0));
    assert_eq!(label_of(&plan.write[0], label::PLACEMENT_NAME), Some("q"));
}

/// One manifest that is complete or degraded, in a work that says otherwise as a whole.
fn with_manifest(
    works: &[ManifestWork],
    of_work: &[(&str, &str)],
    name: &str,
) -> Vec<Arc<ManifestWork>> {
    let mut works = stored(works, of_work);
    for work in &mut works {
        let condition = json!({"type": name, "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status =
            json!({"manifests": [{"resourceMeta": {"ordinal": 0}, "conditions": [condition]}]});
        let work = Arc::make_mut(work);
        work.status.as_mut().unwrap().resource_status = serde_json::from_value(status).unwrap();
    }
    works
}

#[test]
fn what_failed_has_failed_even_if_it_is_complete() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let set = set(strategy);
    let first = look(&set, &chosen(&["a", "b"]), &[]);
    let check = |works: &[Arc<ManifestWork>], is_failure: bool| {
        let plan = look(&set, &chosen(&["a", "b"]), works);
        let (_, _, message) = said(&plan, "PlacementRolledOut");
        if is_failure {
            assert_eq!(clusters(&plan), [""; 0]);
            assert!(message.contains("1 failure, 0 tolerated"), "{message}");
        } else {
            assert_eq!(clusters(&plan), ["b"]);
        }
    };
    let complete = [("Applied", "True"), ("Complete", "True")];
    check(&stored(&first.write, &complete), false);
    // A Job that failed is complete and degraded.
    let failed = [("Complete", "True"), ("Degraded", "True")];
    check(&stored(&first.write, &failed), true);
    check(&with_manifest(&first.write, &complete, "Degraded"), true);
    // One manifest of several is enough.
    let progressing = [("Applied", "True"), ("Progressing", "True")];
    check(&with_manifest(&first.write, &progressing, "Degraded"), true);
}

#[test]
fn a_tolerated_failure_makes_room_for_the_next_cluster() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "maxFailures": 1}});
    let set = set(strategy);
    let first = look(&set, &chosen(&["a", "b", "c"]), &[]);
    let mut works = stored(&first.write, &FAILED);
    let second = look(&set, &chosen(&["a", "b", "c"]), &works);
    assert_eq!(clusters(&second), ["b"]);
    works.extend(stored(&second.write, &WELL));
    assert_eq!(
        clusters(&look(&set, &chosen(&["a", "b", "c"]), &works)),
        ["c"]
    );
    works[1] = stored(&second.write, &FAILED)[0].clone();
    assert_eq!(
        clusters(&look(&set, &chosen(&["a", "b", "c"]), &works)),
        [""; 0]
    );
}

#[test]
fn content_is_compared_again_only_where_it_may_have_changed() {
    let mut set = set(json!({"type": "All"}));
    set.metadata.uid = Some("set".to_owned());
    set.metadata.generation = Some(1);
    let names: Vec<String> = (0..300).map(|number| format!("c{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = chosen(&names);
    let memo = Memo::default();
    let look = |set: &ManifestWorkReplicaSet, works: &[Arc<ManifestWork>]| {
        let observed = Observed {
            set,
            placements: &chosen,
            works,
            cluster: &|_| None,
            now: NOW.parse().unwrap(),
        };
        let before = memo.compared();
        let plan = plan_and_report(&observed, &Programs::default(), &memo).0;
        (plan, memo.compared() - before)
    };
    let (first, compared) = look(&set, &[]);
    assert_eq!((first.write.len(), compared), (300, 0));
    let mut works = stored(&first.write, &WELL);
    for work in &mut works {
        let work = Arc::make_mut(work);
        work.metadata.uid = work.metadata.namespace.clone();
    }
    assert_eq!(look(&set, &works).1, 300);
    // One work reports something.
    Arc::make_mut(&mut works[7]).status = stored(&first.write[7..8], &FAILED)[0].status.clone();
    let (plan, compared) = look(&set, &works);
    assert_eq!((plan.status.unwrap().summary.degraded, compared), (1, 0));
    // Somebody changes another one.
    let changed = Arc::make_mut(&mut works[8]);
    changed.metadata.generation = Some(2);
    changed.spec.workload = None;
    let (plan, compared) = look(&set, &works);
    assert_eq!((clusters(&plan), compared), (vec!["c008"], 1));
    // The template changes.
    set.metadata.generation = Some(2);
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests[0]["data"] = json!({"a": "b"});
    let (plan, compared) = look(&set, &works);
    assert_eq!((plan.write.len(), compared), (300, 300));
    look(&set, &works[..10]);
    assert_eq!(look(&set, &works).1, 290, "what is gone is forgotten");
}

#[test]
fn works_that_are_too_large_are_split() {
    let mut set = set(json!({"type": "All"}));
    let large = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"x": "x".repeat(300_000)}})
    };
    let template = set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests = vec![large("a"), large("b"), large("c")];
    let plan = look(&set, &chosen(&["a"]), &[]);
    let parts: Vec<_> = plan.write.iter().map(part_of).collect();
    assert_eq!(parts, ["0", "1", "2"]);
    let works = stored(&plan.write, &WELL);
    let plan = look(&set, &chosen(&["a"]), &works);
    assert!(plan.write.is_empty());
    assert_eq!(plan.status.unwrap().summary.total, 1);
}
