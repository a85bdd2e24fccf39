//! What is found out about a manifest after it was applied.

use bellwether_api::meta::TRUE;
use bellwether_api::work::names::{condition, label};
use bellwether_api::work::{ConditionRule, ManifestCondition, ManifestResourceMeta, ManifestWork};
use bellwether_apply::pass::{Effect, Outcome, Problem};
use bellwether_apply::{LiveState, Manifest, ObjectId};
use bellwether_runtime::compute;
use bellwether_work::feedback::{
    self, Allowance, Answers, Limits, Query, Structures, Subject, Versions,
};
use bellwether_work::lifecycle::is_true;
use bellwether_work::options::Options;
use bellwether_work::rules::{self, Conclusion, Past, well_known};
use bellwether_work::status::{Availability, Failure, Feedback, Report};
use bellwether_work::work_api::{self, Pace, Turn};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::budget::Verdict;
use super::hub::HubWork;
use super::member::{Member, Memory};
use super::pass::Slot;
use super::{Shared, WorkApi};

/// Whether a replica set made a work, and waits for its rollout.
pub(super) fn is_rolled_out(work: &ManifestWork) -> bool {
    let labels = work.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(label::REPLICA_SET))
}

/// Whether a manifest is done, and nothing about it changes any more.
pub(super) fn is_complete(known: Option<&ManifestCondition>) -> bool {
    known.is_some_and(|known| is_true(&known.conditions, condition::COMPLETE))
}

/// The report on a manifest that is done. The hub may not know it yet.
pub(super) fn of_complete(slot: &Slot, rules: &[&ConditionRule]) -> Report {
    Report {
        is_remembered_complete: slot.is_complete && !is_complete(slot.known.as_ref()),
        ..unchanged(slot.meta.clone(), rules)
    }
}

/// The report on a manifest about which nothing new is known.
pub(super) fn unchanged(meta: ManifestResourceMeta, rules: &[&ConditionRule]) -> Report {
    Report {
        meta,
        applied: Ok(()),
        object_generation: None,
        available: None,
        conclusions: None,
        ruled: ruled(rules),
        unseen: Vec::new(),
        feedback: Feedback::Unchanged,
        is_remembered_complete: false,
    }
}

/// The conditions that rules are about.
fn ruled(rules: &[&ConditionRule]) -> Vec<String> {
    let names = rules.iter().map(|rule| rules::condition_of(rule));
    names.map(str::to_owned).collect()
}

/// The report on a manifest whose kind the cluster does not know, or that must not be applied.
pub(super) fn of_unmapped(
    meta: &ManifestResourceMeta,
    rules: &[&ConditionRule],
    error: &str,
) -> Report {
    Report {
        applied: Err(Failure::Apply(error.to_owned())),
        available: Some(Availability::Incomplete),
        unseen: unseen(meta, rules),
        ..unchanged(meta.clone(), rules)
    }
}

fn unseen(meta: &ManifestResourceMeta, rules: &[&ConditionRule]) -> Vec<Conclusion> {
    let api_version = if meta.group.is_empty() {
        meta.version.clone()
    } else {
        format!("{}/{}", meta.group, meta.version)
    };
    rules::unseen(rules, &api_version, &meta.kind)
}

/// What a report is made of.
pub(super) struct Findings<'a> {
    pub(super) shared: &'a Shared,
    pub(super) member: &'a Member,
    pub(super) work: &'a HubWork,
    pub(super) slot: &'a Slot,
    pub(super) options: &'a Options<'a>,
    pub(super) outcome: &'a Outcome,
    /// Why it is not applied, if so.
    pub(super) failure: Result<(), Failure>,
    /// What the object is called.
    pub(super) id: &'a ObjectId,
}

/// The report on a manifest that was just reconciled, and when to reconcile again.
pub(super) async fn of_outcome(
    findings: &Findings<'_>,
    allowance: &mut Allowance,
    memory: &mut Memory,
) -> (Report, Option<Timestamp>) {
    let Findings {
        work,
        slot,
        options,
        outcome,
        ..
    } = findings;
    let mut report = Report {
        applied: findings.failure.clone(),
        available: Some(Availability::Missing),
        ..unchanged(slot.meta.clone(), &options.rules)
    };
    let is_denied = matches!(outcome.result, Err(Problem::Denied(_)));
    if is_denied || !matches!(outcome.live, LiveState::Present(_)) {
        report.unseen = unseen(&slot.meta, &options.rules);
    }
    let object = match &outcome.live {
        // Who may not apply an object learns nothing of it, not even whether it is there.
        _ if is_denied => return (report, None),
        LiveState::Present(object) => object,
        LiveState::Absent => return (report, None),
        LiveState::Unknown => {
            let why = match &outcome.result {
                Err(_) => "it has not been read since it could not be applied",
                Ok(_) => "it has not been read",
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
    let (found, stands_until) = conclusions(findings, object, past, memory).await;
    report.conclusions = Some(found);
    let (feedback, again) = match work.work_api() {
        WorkApi::ManifestWork => (of_rules(findings, object, allowance), None),
        WorkApi::Work => of_config(findings, object, allowance, memory).await,
    };
    report.feedback = feedback;
    (report, [again, stands_until].into_iter().flatten().min())
}

/// To rollouts, a workload is available when it serves; to all others, when it is there.
fn availability(work: &ManifestWork, object: &Value) -> Availability {
    let serves = well_known::conclude(condition::AVAILABLE, object, Past::default());
    match serves.filter(|_| is_rolled_out(work)) {
        Some(serves) if serves.status != TRUE => Availability::NotReady,
        _ => Availability::Available,
    }
}

/// What rules conclude from an object, and until when that stands whatever becomes of it.
async fn conclusions(
    findings: &Findings<'_>,
    object: &Value,
    past: Past,
    memory: &mut Memory,
) -> (Vec<Conclusion>, Option<Timestamp>) {
    let Findings { shared, work, .. } = findings;
    let rules = &findings.options.rules;
    let (generation, now) = (work.generation(), shared.clock.now());
    let known = memory.exhausted.as_ref().and_then(|it| it.rules.as_ref());
    let judge = || rules::conclude(rules, object, &shared.programs, past);
    let (mut found, until) = match known.and_then(|it| it.standing(generation, now)) {
        Some((found, until)) => (found, Some(until)),
        None if rules::have_programs(rules) => (compute(judge).await, None),
        None => (judge(), None),
    };
    if until.is_none() && found.iter().any(|it| it.is_over_budget) {
        let verdict = Verdict::new(found.clone(), generation, now);
        memory.exhausted.get_or_insert_default().rules = Some(verdict);
    }
    if is_rolled_out(&work.work) {
        for name in well_known::OF_ROLLOUTS {
            if !found.iter().any(|known| known.condition == name) {
                found.extend(well_known::conclude(name, object, past));
            }
        }
    }
    (found, until)
}

fn of_rules(findings: &Findings<'_>, object: &Value, allowance: &mut Allowance) -> Feedback {
    let (shared, options) = (findings.shared, findings.options);
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
    let limits = Limits {
        text: feedback::MAX_TEXT,
        structures,
    };
    let subject = Subject {
        object,
        versions: None,
    };
    Feedback::Answers(feedback::answer(
        &queries,
        &subject,
        &shared.programs,
        limits,
        allowance,
    ))
}

/// How often a WorkManifestConfig asks for values of an object, if one does.
pub(super) fn period(
    shared: &Shared,
    work: &HubWork,
    manifest: &Manifest,
) -> Option<SignedDuration> {
    work.as_work.as_ref()?;
    let configs = shared.hub.configs();
    let configs = configs.iter().map(AsRef::as_ref);
    let (group, version) = (&manifest.group, &manifest.version);
    let config = work_api::config_for(configs, group, version, &manifest.kind)?;
    config.spec.resource_status_sync.as_ref()?;
    Some(work_api::period(config))
}

/// Values that a WorkManifestConfig asks for, at the pace that it asks for.
async fn of_config(
    findings: &Findings<'_>,
    object: &Value,
    allowance: &mut Allowance,
    memory: &mut Memory,
) -> (Feedback, Option<Timestamp>) {
    let Findings { shared, work, .. } = findings;
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let configs = shared.hub.configs();
    let config = work_api::config_for(configs.iter().map(AsRef::as_ref), group, version, kind);
    let (Some(config), Some(as_work)) = (config, &work.as_work) else {
        memory.pace = None;
        return (Feedback::Unwanted, None);
    };
    let Some(sync) = &config.spec.resource_status_sync else {
        return (Feedback::Unwanted, None);
    };
    let now = shared.clock.now();
    let was_written = matches!(
        findings.outcome.result,
        Ok(Effect::Wrote | Effect::Repaired)
    );
    if let Some(pace) = memory.pace.as_mut().filter(|_| was_written) {
        pace.restart(now);
    }
    let told = |pace: Option<&Pace>| match pace {
        Some(pace) => Feedback::Answers(pace.answers().clone()),
        None => Feedback::Answers(Answers::default()),
    };
    let turn = Pace::turn(memory.pace.as_deref(), as_work, config, now);
    if turn == Turn::Stopped {
        return (told(memory.pace.as_deref()), None);
    }
    let queries = feedback::of_config(&sync.rules);
    let answers = answers(findings, &queries, object, allowance, memory).await;
    let known = memory.pace.as_deref();
    if let Turn::At(time) = turn
        && !known.is_none_or(|pace| pace.is_outgrown_by(&answers))
    {
        let is_news = known.is_some_and(|pace| *pace.answers() != answers);
        return (told(known), is_news.then_some(time));
    }
    let pace = Pace::after(known, as_work, config, &answers, now);
    memory.pace = Some(Box::new(pace));
    (Feedback::Answers(answers), None)
}

/// Answers the questions of a WorkManifestConfig about an object.
async fn answers(
    findings: &Findings<'_>,
    queries: &[Query],
    object: &Value,
    allowance: &mut Allowance,
    memory: &mut Memory,
) -> Answers {
    let Findings { shared, work, .. } = findings;
    let (generation, now) = (work.generation(), shared.clock.now());
    let exhausted = memory.exhausted.as_ref().and_then(|it| it.values.as_ref());
    if let Some((answers, _)) = exhausted.and_then(|it| it.standing(generation, now)) {
        return answers;
    }
    let versions = versions(findings, queries, object).await;
    let limits = Limits {
        text: feedback::MAX_BYTE_ARRAY,
        structures: Structures::Json {
            limit: feedback::MAX_BYTE_ARRAY,
            several: true,
        },
    };
    let subject = Subject {
        object,
        versions: Some(&versions),
    };
    let mut answer = || feedback::answer(queries, &subject, &shared.programs, limits, allowance);
    let has_scripts = queries.iter().any(|it| matches!(it, Query::Script { .. }));
    let answers = if has_scripts {
        compute(answer).await
    } else {
        answer()
    };
    if answers.is_over_budget {
        let verdict = Verdict::new(answers.clone(), generation, now);
        memory.exhausted.get_or_insert_default().values = Some(verdict);
    }
    answers
}

/// Reads an object in the versions that paths ask for, if there are others than that of its manifest.
async fn versions(findings: &Findings<'_>, queries: &[Query], object: &Value) -> Versions {
    let Findings { member, id, .. } = findings;
    let delivery = &member.delivery;
    let kind = object["kind"].as_str().unwrap_or_default();
    let latest = delivery
        .discovery
        .find_latest(&delivery.objects, &id.group, kind)
        .await;
    let mut found = Versions {
        // Who cannot ask for versions has the one of the manifest.
        latest: latest.ok().flatten().map(|it| it.version.clone()),
        ..Versions::default()
    };
    for version in feedback::versions_asked_for(queries, object, found.latest.as_deref()) {
        let resource = delivery
            .discovery
            .find(&delivery.objects, &id.group, &version, kind)
            .await;
        let read = match resource {
            Ok(Some(resource)) => delivery.objects.get(&resource, id).await,
            // A version that is not served is named as such.
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        let read = match read {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err("it is gone".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        found.objects.insert(version, read);
    }
    found
}
