//! CronJobs.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::Value;

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, cell, cell_or, column, containers,
    label_selector, name, since, words,
};
use crate::core::pod;
use crate::resource::{ALL, STATUS};
use crate::value::{Fill, at, existing, has, list};
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["cj"],
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    default,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<CronJob>("batch", "v1", "CronJob", "cronjobs")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill_zero("concurrencyPolicy", "Allow");
        spec.fill("suspend", false);
        spec.fill("successfulJobsHistoryLimit", 3);
        spec.fill("failedJobsHistoryLimit", 1);
    }
    // Of the job, only the pod is filled in now: the rest follows when it is created.
    pod::template(object, &["spec", "jobTemplate", "spec", "template"]);
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Schedule", "When jobs start."),
    words("Timezone", "The time zone of the schedule."),
    column("Suspend", "boolean", "Whether no further jobs start."),
    column("Active", "integer", "Jobs that are running."),
    words("Last Schedule", "Time since the last job started."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let job = at(object, &["spec", "jobTemplate", "spec"]);
    let [names, images] = containers(at(job, &["template", "spec"]));
    let suspended = match at(object, &["spec", "suspend"]).as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = if has(object, &["status", "lastScheduleTime"]) {
        since(at(object, &["status", "lastScheduleTime"]), now)
    } else {
        "<none>".to_owned()
    };
    vec![
        name(object),
        cell(object, &["spec", "schedule"]),
        cell_or(object, &["spec", "timeZone"], "<none>"),
        suspended.into(),
        list(object, &["status", "active"]).len().into(),
        last.into(),
        age(object, now),
        names,
        images,
        label_selector(at(job, &["selector"])),
    ]
}
