//! What keeps pods: deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs.

use serde_json::Value;

use super::page::Page;
use super::pod;
use super::read::{
    capital, controller, flat_labels, go_list, is_controlled_by, items, number, or_none, quantity,
    selector, shown, shown_or, text,
};
use super::subject::Subject;
use bellwether_kinds::human as human_duration;
use jiff::Timestamp;

/// How many characters of a list of indexes are shown at least.
const INDEXES_SHOWN: usize = 50;
const TEMPLATE_HASH: &str = "pod-template-hash";

fn names(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Namespace", text(&subject.metadata()["namespace"]));
}

fn marks(subject: &Subject<'_>, page: &mut Page) {
    page.labels("Labels", &subject.metadata()["labels"]);
    page.annotations("Annotations", &subject.metadata()["annotations"]);
}

fn created(subject: &Subject<'_>, page: &mut Page) {
    let time = subject
        .moment
        .date(&subject.metadata()["creationTimestamp"]);
    page.pair(0, "CreationTimestamp", time);
}

/// How many pods of a controller are in which phase.
fn pods_status(subject: &Subject<'_>) -> String {
    let uid = &subject.metadata()["uid"];
    let own = || {
        let pods = subject.related.pods.iter();
        pods.filter(|pod| is_controlled_by(pod, uid))
    };
    let [running, waiting, succeeded, failed] = ["Running", "Pending", "Succeeded", "Failed"]
        .map(|phase| own().filter(|pod| pod["status"]["phase"] == phase).count());
    format!("{running} Running / {waiting} Waiting / {succeeded} Succeeded / {failed} Failed")
}

/// Describes a deployment.
pub(super) fn deployment(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    names(subject, page);
    created(subject, page);
    marks(subject, page);
    page.pair(0, "Selector", selector(&spec["selector"]));
    let count = |name: &str| number(&status[name]);
    let replicas = format!(
        "{} desired | {} updated | {} total | {} available | {} unavailable",
        number(&spec["replicas"]),
        count("updatedReplicas"),
        count("replicas"),
        count("availableReplicas"),
        count("unavailableReplicas"),
    );
    page.pair(0, "Replicas", replicas);
    page.pair(0, "StrategyType", text(&spec["strategy"]["type"]));
    page.pair(0, "MinReadySeconds", number(&spec["minReadySeconds"]));
    let rolling = &spec["strategy"]["rollingUpdate"];
    if rolling.is_object() {
        let (gone, more) = (
            shown(&rolling["maxUnavailable"]),
            shown(&rolling["maxSurge"]),
        );
        let limits = format!("{gone} max unavailable, {more} max surge");
        page.pair(0, "RollingUpdateStrategy", limits);
    }
    pod::template(page, &spec["template"], subject.moment);
    page.conditions(&status["conditions"]);
    let (old, new) = sets(subject);
    if !old.is_empty() || new.is_some() {
        page.pair(0, "OldReplicaSets", sizes(&old));
        page.pair(0, "NewReplicaSet", sizes(&Vec::from_iter(new)));
    }
}

/// The replica sets of a deployment that are out of date, and the one that is not.
fn sets<'a>(subject: &Subject<'a>) -> (Vec<&'a Value>, Option<&'a Value>) {
    let uid = &subject.metadata()["uid"];
    let sets = subject.related.replica_sets.iter();
    let mut sets: Vec<&Value> = sets.filter(|set| is_controlled_by(set, uid)).collect();
    sets.sort_by_key(|set| {
        let metadata = &set["metadata"];
        (
            text(&metadata["creationTimestamp"]),
            text(&metadata["name"]),
        )
    });
    let plain = |template: &Value| {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(TEMPLATE_HASH);
        }
        template
    };
    let wanted = plain(&subject.spec()["template"]);
    let new = sets
        .iter()
        .position(|set| plain(&set["spec"]["template"]) == wanted);
    let new = new.map(|at| sets.remove(at));
    (sets, new)
}

fn sizes(sets: &[&Value]) -> String {
    let sizes: Vec<String> = sets
        .iter()
        .map(|set| {
            let name = text(&set["metadata"]["name"]);
            let (there, wanted) = (
                number(&set["status"]["replicas"]),
                number(&set["spec"]["replicas"]),
            );
            format!("{name} ({there}/{wanted} replicas created)")
        })
        .collect();
    or_none(&sizes.join(", ")).to_owned()
}

/// Describes a replica set or a replication controller.
pub(super) fn replica_set(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    names(subject, page);
    let chosen = if subject.kind.group.is_empty() {
        flat_labels(&spec["selector"])
    } else {
        selector(&spec["selector"])
    };
    page.pair(0, "Selector", or_none(&chosen));
    marks(subject, page);
    if let Some(controller) = controller(subject.object)
        && !subject.kind.group.is_empty()
    {
        page.pair(0, "Controlled By", controller);
    }
    let (there, wanted) = (number(&status["replicas"]), number(&spec["replicas"]));
    page.pair(
        0,
        "Replicas",
        format_args!("{there} current / {wanted} desired"),
    );
    page.pair(0, "Pods Status", pods_status(subject));
    pod::template(page, &spec["template"], subject.moment);
    page.conditions(&status["conditions"]);
}

/// Describes a stateful set.
pub(super) fn stateful_set(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    names(subject, page);
    created(subject, page);
    page.pair(0, "Selector", selector(&spec["selector"]));
    marks(subject, page);
    let (wanted, there) = (number(&spec["replicas"]), number(&status["replicas"]));
    page.pair(
        0,
        "Replicas",
        format_args!("{wanted} desired | {there} total"),
    );
    let strategy = &spec["updateStrategy"];
    page.pair(0, "Update Strategy", text(&strategy["type"]));
    let rolling = &strategy["rollingUpdate"];
    if rolling["partition"].is_number() {
        page.pair(1, "Partition", number(&rolling["partition"]));
        if !rolling["maxUnavailable"].is_null() {
            page.pair(1, "MaxUnavailable", shown(&rolling["maxUnavailable"]));
        }
    }
    page.pair(0, "Pods Status", pods_status(subject));
    pod::template(page, &spec["template"], subject.moment);
    let templates = items(&spec["volumeClaimTemplates"]);
    if templates.is_empty() {
        page.pair(0, "Volume Claims", "<none>");
    } else {
        page.line(0, "Volume Claims:");
    }
    for template in templates {
        claim_template(page, template);
    }
}

fn claim_template(page: &mut Page, template: &Value) {
    let (metadata, spec) = (&template["metadata"], &template["spec"]);
    page.pair(1, "Name", text(&metadata["name"]));
    page.pair(1, "StorageClass", text(&spec["storageClassName"]));
    page.labels("  Labels", &metadata["labels"]);
    page.labels("  Annotations", &metadata["annotations"]);
    let capacity = match &spec["resources"]["requests"]["storage"] {
        Value::Null => "<default>".to_owned(),
        size => quantity(size),
    };
    page.pair(1, "Capacity", capacity);
    page.pair(1, "Access Modes", go_list(&spec["accessModes"]));
}

/// Describes a daemon set.
pub(super) fn daemon_set(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    // Without its namespace, as kubectl has it.
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Selector", selector(&spec["selector"]));
    let nodes = flat_labels(&spec["template"]["spec"]["nodeSelector"]);
    page.pair(0, "Node-Selector", nodes);
    marks(subject, page);
    for (label, name) in [
        (
            "Desired Number of Nodes Scheduled",
            "desiredNumberScheduled",
        ),
        (
            "Current Number of Nodes Scheduled",
            "currentNumberScheduled",
        ),
        (
            "Number of Nodes Scheduled with Up-to-date Pods",
            "updatedNumberScheduled",
        ),
        (
            "Number of Nodes Scheduled with Available Pods",
            "numberAvailable",
        ),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ] {
        page.line(0, format_args!("{label}: {}", number(&status[name])));
    }
    page.pair(0, "Pods Status", pods_status(subject));
    pod::template(page, &spec["template"], subject.moment);
}

/// Describes a job.
pub(super) fn job(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    names(subject, page);
    page.pair(0, "Selector", selector(&spec["selector"]));
    marks(subject, page);
    if let Some(controller) = controller(subject.object) {
        page.pair(0, "Controlled By", controller);
    }
    let mut given = |label: &str, name: &str| {
        if !spec[name].is_null() {
            page.pair(0, label, shown(&spec[name]));
        }
    };
    given("Parallelism", "parallelism");
    page.pair(0, "Completions", shown_or(&spec["completions"], "<unset>"));
    let mut given = |label: &str, name: &str| {
        if !spec[name].is_null() {
            page.pair(0, label, shown(&spec[name]));
        }
    };
    given("Completion Mode", "completionMode");
    given("Suspend", "suspend");
    given("Backoff Limit", "backoffLimit");
    given("TTL Seconds After Finished", "ttlSecondsAfterFinished");
    for (label, name) in [
        ("Start Time", "startTime"),
        ("Completed At", "completionTime"),
    ] {
        if status[name].is_string() {
            page.pair(0, label, subject.moment.date(&status[name]));
        }
    }
    let time = |name: &str| text(&status[name]).parse::<Timestamp>();
    if let (Ok(start), Ok(end)) = (time("startTime"), time("completionTime")) {
        let took = human_duration(end.as_second() - start.as_second());
        page.pair(0, "Duration", took);
    }
    if spec["activeDeadlineSeconds"].is_number() {
        let seconds = number(&spec["activeDeadlineSeconds"]);
        page.pair(0, "Active Deadline Seconds", format_args!("{seconds}s"));
    }
    let ready = match &status["ready"] {
        Value::Null => String::new(),
        ready => format!(" ({} Ready)", number(ready)),
    };
    let [active, succeeded, failed] =
        ["active", "succeeded", "failed"].map(|name| number(&status[name]));
    let counts = format!("{active} Active{ready} / {succeeded} Succeeded / {failed} Failed");
    page.pair(0, "Pods Statuses", counts);
    if spec["completionMode"] == "Indexed" {
        let indexes = shortened(text(&status["completedIndexes"]));
        page.pair(0, "Completed Indexes", indexes);
    }
    pod::template(page, &spec["template"], subject.moment);
}

/// A list of indexes, cut after a comma if it is long.
fn shortened(indexes: &str) -> String {
    let rest = indexes.get(INDEXES_SHOWN..).unwrap_or_default();
    match rest.find(',') {
        Some(at) => format!("{}...", &indexes[..=INDEXES_SHOWN + at]),
        None => or_none(indexes).to_owned(),
    }
}

/// Describes a cron job.
pub(super) fn cron_job(subject: &Subject<'_>, page: &mut Page) {
    let (spec, status) = (subject.spec(), subject.status());
    names(subject, page);
    marks(subject, page);
    page.pair(0, "Schedule", text(&spec["schedule"]));
    page.pair(0, "Concurrency Policy", text(&spec["concurrencyPolicy"]));
    let suspend = spec["suspend"].as_bool().map_or("<unset>", capital);
    page.pair(0, "Suspend", suspend);
    for (label, name) in [
        ("Successful Job History Limit", "successfulJobsHistoryLimit"),
        ("Failed Job History Limit", "failedJobsHistoryLimit"),
    ] {
        page.pair(0, label, shown_or(&spec[name], "<unset>"));
    }
    let seconds = |value: &Value| match value {
        Value::Null => "<unset>".to_owned(),
        value => format!("{value}s"),
    };
    let deadline = seconds(&spec["startingDeadlineSeconds"]);
    page.pair(0, "Starting Deadline Seconds", deadline);
    let job = &spec["jobTemplate"]["spec"];
    let chosen = match &job["selector"] {
        Value::Null => "<unset>".to_owned(),
        given => selector(given),
    };
    page.pair(0, "Selector", chosen);
    page.pair(0, "Parallelism", shown_or(&job["parallelism"], "<unset>"));
    page.pair(0, "Completions", shown_or(&job["completions"], "<unset>"));
    if job["activeDeadlineSeconds"].is_number() {
        let deadline = seconds(&job["activeDeadlineSeconds"]);
        page.pair(0, "Active Deadline Seconds", deadline);
    }
    pod::template(page, &job["template"], subject.moment);
    let last = match &status["lastScheduleTime"] {
        Value::Null => "<unset>".to_owned(),
        time => subject.moment.date(time),
    };
    page.pair(0, "Last Schedule Time", last);
    let active: Vec<&str> = items(&status["active"])
        .iter()
        .map(|job| text(&job["name"]))
        .collect();
    page.pair(0, "Active Jobs", or_none(&active.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_indexes_are_cut_after_a_comma() {
        assert_eq!(shortened(""), "<none>");
        assert_eq!(shortened("1,3-5"), "1,3-5");
        let long = "100,".repeat(20);
        assert_eq!(shortened(&long), format!("{}...", "100,".repeat(13)));
    }
}
