//! CronJobs.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::Value;

use crate::batch::{job, schedule};
use crate::check::{self, Errors};
use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, cell, cell_or, column, containers,
    label_selector, name, since, words,
};
use crate::core::pod;
use crate::resource::{ALL, STATUS};
use crate::value::{Fill, at, existing, has, list, text};
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["cj"],
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    default,
    validate,
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

/// Jobs are named after the CronJob and a time, which takes eleven characters of 63.
const NAME_LENGTH: usize = 52;

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let zoned = old.is_some_and(|old| text(old, &["spec", "schedule"]).contains("TZ"));
    validate_schedule(spec, zoned, &path.child("schedule"), errors);
    check::not_negative(errors, spec, &path, "startingDeadlineSeconds");
    let same_zone =
        old.is_some_and(|old| at(old, &["spec", "timeZone"]) == at(spec, &["timeZone"]));
    if has(spec, &["timeZone"]) && !same_zone {
        let zone = text(spec, &["timeZone"]);
        if let Some(problem) = schedule::zone_problem(zone) {
            errors.push(FieldError::invalid(&path.child("timeZone"), zone, problem));
        }
    }
    check::required_choice(
        errors,
        &path.child("concurrencyPolicy"),
        text(spec, &["concurrencyPolicy"]),
        &["Allow", "Forbid", "Replace"],
    );
    job::validate_template(
        at(spec, &["jobTemplate"]),
        &path.child("jobTemplate"),
        errors,
    );
    check::not_negative(errors, spec, &path, "successfulJobsHistoryLimit");
    check::not_negative(errors, spec, &path, "failedJobsHistoryLimit");
    let name = text(new, &["metadata", "name"]);
    if old.is_none() && name.len() > NAME_LENGTH {
        let detail = format!("must be no more than {NAME_LENGTH} characters");
        let path = FieldPath::new("metadata");
        errors.push(FieldError::invalid(&path.child("name"), name, detail));
    }
}

fn validate_schedule(spec: &Value, zoned: bool, path: &FieldPath<'_>, errors: &mut Errors) {
    let schedule = text(spec, &["schedule"]);
    if schedule.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if let Err(problem) = schedule::check(schedule) {
        errors.push(FieldError::invalid(path, schedule, problem));
    }
    if schedule.contains("TZ") {
        let detail = match (zoned, has(spec, &["timeZone"])) {
            (false, _) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            (true, true) => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
            (true, false) => return,
        };
        errors.push(FieldError::invalid(path, schedule, detail));
    }
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
