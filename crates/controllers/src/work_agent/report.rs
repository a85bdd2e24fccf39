//! What is found out about a manifest after it was applied.

use bellwether_api::meta::TRUE;
use bellwether_api::work::names::{condition, label};
use bellwether_api::work::{ConditionRule, ManifestCondition, ManifestResourceMeta, ManifestWork};
use bellwether_work::feedback::{self, Answers, Structures};
use bellwether_work::lifecycle::is_true;
use bellwether_work::manifest::Manifest;
use bellwether_work::options::Options;
use bellwether_work::rules::{self, Conclusion, Past, well_known};
use bellwether_work::status::{Availability, Failure, Feedback, Report};
use bellwether_work::work_api::{self, Pace, Turn};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::apply_one::{Effect, Outcome};
use super::hub::HubWork;
use super::member::Memory;
use super::pass::Slot;
use super::watches::Known;
use super::{Front, Shared};

/// Whether a replica set made a work, and waits for its rollout.
pub(super) fn is_rolled_out(work: &ManifestWork) -> bool {
    let labels = work.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(label::REPLICA_SET))
}

/// Whether a manifest is done, and nothing about it changes any more.
pub(super) fn is_complete(known: Option<&ManifestCondition>) -> bool {
    known.is_some_and(|known| is_true(&known.conditions, condition::COMPLETE))
}

/// The report on a manifest that is done.
pub(super) fn of_complete(meta: ManifestResourceMeta) -> Report {
    Report {
        meta,
        applied: Ok(()),
        object_generation: None,
        available: None,
        conclusions: None,
        unseen: Vec::new(),
        feedback: Feedback::Unchanged,
    }
}

/// The report on a manifest whose kind the cluster does not know, or that must not be applied.
pub(super) fn of_unmapped(
    meta: &ManifestResourceMeta,
    rules: &[ConditionRule],
    error: &str,
) -> Report {
    Report {
        meta: meta.clone(),
        applied: Err(Failure::Apply(error.to_owned())),
        object_generation: None,
        available: Some(Availability::Incomplete),
        conclusions: None,
        unseen: unseen(meta, rules),
        feedback: Feedback::Unchanged,
    }
}

fn unseen(meta: &ManifestResourceMeta, rules: &[ConditionRule]) -> Vec<Conclusion> {
    let api_version = if meta.group.is_empty() {
        meta.version.clone()
    } else {
        format!("{}/{}", meta.group, meta.version)
    };
    rules::unseen(rules, &api_version, &meta.kind)
}

/// The report on a manifest that was just looked at, and when to look again.
pub(super) fn of_outcome(
    shared: &Shared,
    work: &HubWork,
    slot: &Slot,
    options: &Options<'_>,
    outcome: &Outcome,
    memory: &mut Memory,
) -> (Report, Option<Timestamp>) {
    let mut report = Report {
        meta: slot.meta.clone(),
        applied: outcome.applied.clone(),
        object_generation: None,
        available: Some(Availability::Missing),
        conclusions: None,
        unseen: Vec::new(),
        feedback: Feedback::Unchanged,
    };
    if !matches!(outcome.live, Known::Present(_)) {
        report.unseen = unseen(&slot.meta, options.rules);
    }
    let object = match &outcome.live {
        Known::Present(object) => object,
        Known::Absent => return (report, None),
        Known::Unknown => {
            let why = match &outcome.applied {
                Err(_) => "it has not been read since it could not be applied",
                Ok(()) => "it has not been read",
            };
            report.available = Some(Availability::Unknown(why.to_owned()));
            return (report, None);
        }
    };
    report.object_generation = object["metadata"]["generation"].as_i64();
    report.available = Some(availability(&work.work, object));
    let known = slot.known.as_ref();
    let known = known.map_or(&[][..], |known| &known.conditions);
    let past = Past::of(known, work.generation());
    report.conclusions = Some(conclusions(shared, &work.work, options, object, past));
    let (feedback, again) = match work.front() {
        Front::ManifestWork => (of_rules(shared, options, object), None),
        Front::Work => of_config(shared, work, object, outcome.effect != Effect::Left, memory),
    };
    report.feedback = feedback;
    (report, again)
}

/// To rollouts, a workload is available when it serves; to all others, when it is there.
fn availability(work: &ManifestWork, object: &Value) -> Availability {
    let serves = well_known::conclude(condition::AVAILABLE, object, Past::default());
    match serves.filter(|_| is_rolled_out(work)) {
        Some(serves) if serves.status != TRUE => Availability::NotReady,
        _ => Availability::Available,
    }
}

fn conclusions(
    shared: &Shared,
    work: &ManifestWork,
    options: &Options<'_>,
    object: &Value,
    past: Past,
) -> Vec<Conclusion> {
    let mut found = rules::conclude(options.rules, object, &shared.programs, past);
    if is_rolled_out(work) {
        for name in well_known::OF_ROLLOUTS {
            if !found.iter().any(|known| known.condition == name) {
                found.extend(well_known::conclude(name, object, past));
            }
        }
    }
    found
}

fn of_rules(shared: &Shared, options: &Options<'_>, object: &Value) -> Feedback {
    if options.feedback.is_empty() {
        return Feedback::Unwanted;
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let queries = feedback::of_manifest_work(options.feedback, text("apiVersion"), text("kind"));
    let structures = if shared.options.raw_feedback {
        Structures::Json {
            limit: shared.options.max_json_raw,
            several: true,
        }
    } else {
        Structures::Refused
    };
    Feedback::Answers(feedback::answer(
        &queries,
        object,
        &shared.programs,
        structures,
    ))
}

/// How often a WorkManifestConfig asks for values of an object, if one does.
pub(super) fn period(
    shared: &Shared,
    work: &HubWork,
    manifest: &Manifest,
) -> Option<SignedDuration> {
    work.small.as_ref()?;
    let configs = shared.hub.configs();
    let configs = configs.iter().map(AsRef::as_ref);
    let (group, version) = (&manifest.group, &manifest.version);
    let config = work_api::config_for(configs, group, version, &manifest.kind)?;
    config.spec.resource_status_sync.as_ref()?;
    Some(work_api::period(config))
}

/// Values that a WorkManifestConfig asks for, at the pace that it asks for.
fn of_config(
    shared: &Shared,
    work: &HubWork,
    object: &Value,
    wrote: bool,
    memory: &mut Memory,
) -> (Feedback, Option<Timestamp>) {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let configs = shared.hub.configs();
    let config = work_api::config_for(configs.iter().map(AsRef::as_ref), group, version, kind);
    let (Some(config), Some(small)) = (config, &work.small) else {
        memory.pace = None;
        return (Feedback::Unwanted, None);
    };
    let Some(sync) = &config.spec.resource_status_sync else {
        return (Feedback::Unwanted, None);
    };
    let now = shared.clock.now();
    let queries = feedback::of_config(&sync.rules);
    let structures = Structures::Json {
        limit: feedback::MAX_BYTE_ARRAY,
        several: true,
    };
    let answer = || feedback::answer(&queries, object, &shared.programs, structures);
    if let Some(pace) = memory.pace.as_mut().filter(|_| wrote) {
        pace.restart(now);
    }
    let known = memory.pace.as_deref();
    let told = |pace: Option<&Pace>| match pace {
        Some(pace) => Feedback::Answers(pace.answers().clone()),
        None => Feedback::Answers(Answers::default()),
    };
    let answers = match Pace::turn(known, small, config, now) {
        Turn::Stopped => return (told(known), None),
        Turn::At(time) => {
            let answers = answer();
            if !known.is_none_or(|pace| pace.is_outgrown_by(&answers)) {
                let is_news = known.is_some_and(|pace| *pace.answers() != answers);
                return (told(known), is_news.then_some(time));
            }
            answers
        }
        Turn::Now => answer(),
    };
    let pace = Pace::after(known, small, config, &answers, now);
    memory.pace = Some(Box::new(pace));
    (Feedback::Answers(answers), None)
}
