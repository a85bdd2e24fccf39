//! One evaluation of one ConfigurationPolicy on a member.

use bellwether_api::policy::names::{annotation, finalizer};
use bellwether_api::policy::{
    ConfigurationPolicy, EvaluationInterval, Policy, PruneObjectBehavior, RelatedObject,
};
use bellwether_policy::compliance::Message;
use bellwether_policy::config_policy::{
    Conclusion, Evaluation, EvaluationOptions, Facts, Need, Pruning, Report, Step, Trigger,
    WriteErrorKind, WriteOutcome, next_evaluation, prune,
};
use bellwether_policy::template::{Keys, PREFIX, Question};
use bellwether_runtime::{Next, RequestError, compute};
use bellwether_template::{NOWHERE, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answers::Answers;
use super::member::{Request, id_of, resource_of};
use super::replicas::vector;
use super::{Shared, events};
use bellwether_api::Kind as _;

/// How often an evaluation begins again because an object was changed meanwhile.
const MAX_RESTARTS: usize = 5;

/// Rounds after which an evaluation that still asks is given up.
const MAX_ROUNDS: usize = 1000;

/// Time between two evaluations of one policy: each may report several times, microseconds apart.
const SPACING: SignedDuration = SignedDuration::from_millis(1);

/// When something is tried again that the member refused.
pub(super) const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// When an object is looked at again that has to be gone before it is created again.
const RECREATE_RETRY: SignedDuration = SignedDuration::from_secs(1);

/// What an evaluation needs besides its policy.
pub(super) struct Evaluator<'a> {
    pub(super) shared: &'a Shared,
    pub(super) answers: &'a Answers<'a>,
    /// The policy on the member that the template is part of.
    pub(super) policy: &'a Policy,
    pub(super) now: Timestamp,
}

/// The time to the microsecond, as statuses and the names of events have it.
pub(super) fn microseconds(now: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// The time of a message: now, or a little after the last one.
pub(super) fn later(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    let earliest = last.and_then(|last| last.checked_add(SPACING).ok());
    earliest.map_or(now, |earliest| microseconds(earliest).max(now))
}

impl Evaluator<'_> {
    pub(super) fn world(&self) -> World<'_> {
        World {
            facts: NOWHERE.facts,
            now: self.now,
            random: &self.shared.random,
        }
    }

    /// The time of the next message of the policy: now, or a little after the last one.
    pub(super) fn moment(&self) -> Timestamp {
        let mut memories = self.answers.member.memories.lock();
        let memory = memories.entry(self.answers.key.clone()).or_default();
        let moment = later(self.now, memory.latest);
        memory.latest = Some(moment);
        moment
    }

    /// Has all further messages come after this moment: what was reported before is older than what comes now,
    /// whatever the clock says.
    pub(super) fn set_latest(&self, reported: Option<Timestamp>) {
        let mut memories = self.answers.member.memories.lock();
        let memory = memories.entry(self.answers.key.clone()).or_default();
        memory.latest = memory.latest.max(reported);
    }

    /// Until when a template only looks, because it has repaired much of late.
    pub(super) fn rest(&self, template: &str, generation: Option<i64>) -> Option<Timestamp> {
        let mut memories = self.answers.member.memories.lock();
        let memory = memories.entry(self.answers.key.clone()).or_default();
        let repairs = memory.repairs.entry(template.to_owned()).or_default();
        repairs.rest([self.policy.metadata.generation, generation], self.now)
    }

    /// Takes note of what a template has repaired since so many objects were written.
    pub(super) fn note_repairs(&self, template: &str, before: usize) {
        if self.answers.repairs() == before {
            return;
        }
        let mut memories = self.answers.member.memories.lock();
        let memory = memories.entry(self.answers.key.clone()).or_default();
        let repairs = memory.repairs.entry(template.to_owned()).or_default();
        repairs.add(self.now);
    }

    /// Evaluates a ConfigurationPolicy if it is time, and reports. Returns it with its status, and when
    /// it is to be evaluated again.
    pub(super) async fn evaluate(
        &self,
        live: Value,
    ) -> Result<(ConfigurationPolicy, Next), RequestError> {
        let live = self.set_finalizer(live).await?;
        let policy = read(&live)?;
        let name = policy.metadata.name.clone().unwrap_or_default();
        let last = {
            let memories = self.answers.member.memories.lock();
            let memory = memories.get(self.answers.key);
            memory.and_then(|memory| memory.evaluated.get(&name).copied())
        };
        match next_evaluation(&policy, last) {
            Trigger::At(time) if time > self.now => return Ok((policy, Some(time))),
            Trigger::Never => return Ok((policy, None)),
            Trigger::Now | Trigger::Watch | Trigger::At(_) => {}
        }
        let newest = policy.status.as_ref().and_then(|it| it.history.first());
        let newest = newest.and_then(|it| it.last_timestamp.as_ref());
        self.set_latest(newest.map(|time| time.0));
        let rest = self.rest(&name, policy.metadata.generation);
        let repairs = self.answers.repairs();
        let (conclusion, diffs) = self.conclude(&policy, rest.is_some()).await?;
        self.note_repairs(&name, repairs);
        for diff in diffs {
            tracing::info!(cluster = &*self.answers.key.cluster, policy = %name, "difference:\n{diff}");
        }
        let orphans = conclusion.orphans;
        let has_failed = conclusion.error.is_some();
        let policy = self.report(live, policy, conclusion.reports).await?;
        if rest.is_none() {
            self.prune(&policy, &orphans).await?;
        }
        let mut memories = self.answers.member.memories.lock();
        let memory = memories.entry(self.answers.key.clone()).or_default();
        memory.evaluated.insert(name, self.now);
        drop(memories);
        let next = match next_evaluation(&policy, Some(self.now)) {
            Trigger::At(time) => Some(time),
            Trigger::Now => self.now.checked_add(RECREATE_RETRY).ok(),
            Trigger::Watch if has_failed => self.now.checked_add(RETRY).ok(),
            Trigger::Watch | Trigger::Never => None,
        };
        let next = next.into_iter().chain(rest).min();
        Ok((policy, next))
    }

    /// Answers what the evaluation asks until it is over.
    async fn conclude(
        &self,
        policy: &ConfigurationPolicy,
        only_looks: bool,
    ) -> Result<(Conclusion, Vec<String>), RequestError> {
        let mut options = self.options(policy).await?;
        options.is_inform |= only_looks;
        let tracks = uses_watch(policy);
        let start = || {
            let mut evaluation = Evaluation::new(policy.clone(), options.clone());
            move |facts: &mut Facts| match evaluation.step(facts, &self.world()) {
                Step::Needs(needs) => Err(needs),
                Step::Done => Ok(evaluation.clone()),
            }
        };
        let evaluation = self.answered(start, |_| tracks).await?;
        let diffs = evaluation.logged_diffs().to_vec();
        let conclusion = evaluation.conclude(self.moment(), &self.world());
        Ok((conclusion, diffs))
    }

    /// Answers what an evaluation asks until it is over. It begins again where an object was changed
    /// meanwhile. `tracks` says of questions whether the policy is enqueued when the answer changes.
    pub(super) async fn answered<S, T>(
        &self,
        start: impl Fn() -> S,
        tracks: impl Fn(&Question) -> bool,
    ) -> Result<T, RequestError>
    where
        S: FnMut(&mut Facts) -> Result<T, Vec<Need>>,
    {
        let mut restarts = 0;
        'restart: loop {
            let mut step = start();
            let mut facts = Facts::default();
            for _ in 0..MAX_ROUNDS {
                let needs = match compute(|| step(&mut facts)).await {
                    Ok(done) => return Ok(done),
                    Err(needs) => needs,
                };
                for need in needs {
                    match need {
                        Need::Read(question) => {
                            let is_tracked = tracks(&question);
                            let answer = self.answers.answer(&question, is_tracked).await;
                            facts.answer(question, answer);
                        }
                        Need::Write(write) => {
                            let outcome = self.answers.write(&write).await;
                            if is_conflict(&outcome) && restarts < MAX_RESTARTS {
                                restarts += 1;
                                self.refresh(&write).await?;
                                continue 'restart;
                            }
                            facts.outcome(&write, outcome);
                        }
                    }
                }
            }
            let error = format!("the evaluation asks more than {MAX_ROUNDS} times");
            return Err(RequestError::Unreached(error));
        }
    }

    /// Reads an object that was changed meanwhile.
    async fn refresh(
        &self,
        write: &bellwether_policy::config_policy::Write,
    ) -> Result<(), RequestError> {
        let member = self.answers.member;
        let found = member.find(&write.api_version, &write.kind).await?;
        if let Some(resource) = found {
            let id = id_of(&resource, &write.namespace, &write.name);
            match member.objects.get(&resource, &id).await? {
                Some(object) => member.watches.note(&id, &object),
                None => member.watches.note_gone(&id),
            }
        }
        Ok(())
    }

    /// The keys that texts of the policy are decrypted with, if it has any.
    async fn options(
        &self,
        policy: &ConfigurationPolicy,
    ) -> Result<EvaluationOptions, RequestError> {
        let mut options = EvaluationOptions {
            hides_secrets: true,
            ..EvaluationOptions::default()
        };
        let spec = serde_json::to_string(&policy.spec).unwrap_or_default();
        if !spec.contains(PREFIX) {
            return Ok(options);
        }
        let annotation = |annotations: &Option<std::collections::BTreeMap<String, String>>| {
            let annotations = annotations.as_ref();
            vector(annotations.and_then(|all| all.get(annotation::ENCRYPTION_IV)))
        };
        let vector = annotation(&policy.metadata.annotations)
            .or_else(|| annotation(&self.policy.metadata.annotations));
        let cluster = &self.answers.key.cluster;
        let keys = self.shared.replicas.encryption_keys(cluster).await?;
        let (key, previous) = match keys {
            Some((key, previous)) => (Some(key), previous),
            None => (None, None),
        };
        match Keys::new(key, previous, vector.as_deref()) {
            Ok(keys) => options.keys = Some(keys),
            Err(error) => options.keys_error = Some(error.to_string()),
        }
        Ok(options)
    }

    /// Writes reports one after the other; each that is news comes with an event.
    async fn report(
        &self,
        mut live: Value,
        mut policy: ConfigurationPolicy,
        reports: Vec<Report>,
    ) -> Result<ConfigurationPolicy, RequestError> {
        let member = self.answers.member;
        let resource = resource_of(ConfigurationPolicy::NAMES);
        let name = policy.metadata.name.clone().unwrap_or_default();
        let id = id_of(&resource, &member.cluster, &name);
        for report in reports {
            let status = serde_json::to_value(&report.status).unwrap_or(Value::Null);
            if is_same(&live["status"], &status) {
                continue;
            }
            if report.is_news {
                let newest = report.status.history.first();
                let at = newest.and_then(|newest| newest.last_timestamp.clone());
                let message = Message {
                    at: at.map_or(self.now, |at| at.0),
                    text: report.message.clone(),
                };
                events::record(member, self.policy, &live, &message).await;
            }
            live["status"] = status;
            let request = Request::ReplaceStatus;
            live = self.answers.put(request, &resource, &id, &live).await?;
            policy = read(&live)?;
        }
        Ok(policy)
    }

    /// Deletes objects that the policy does not speak of any more, as far as it says so.
    pub(super) async fn prune(
        &self,
        policy: &ConfigurationPolicy,
        objects: &[RelatedObject],
    ) -> Result<Option<String>, RequestError> {
        let mut facts = Facts::default();
        for _ in 0..MAX_ROUNDS {
            match prune(policy, objects, &facts) {
                Pruning::Done => return Ok(None),
                Pruning::Failed(message) => return Ok(Some(message)),
                Pruning::Needs(needs) => {
                    for need in needs {
                        match need {
                            Need::Read(question) => {
                                let answer = self.answers.answer(&question, false).await;
                                facts.answer(question, answer);
                            }
                            Need::Write(write) => {
                                let outcome = self.answers.write(&write).await;
                                facts.outcome(&write, outcome);
                            }
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// A policy that deletes its objects when it goes has a finalizer.
    async fn set_finalizer(&self, live: Value) -> Result<Value, RequestError> {
        let policy = read(&live)?;
        let wants = matches!(
            policy.spec.prune_object_behavior,
            Some(PruneObjectBehavior::DeleteAll | PruneObjectBehavior::DeleteIfCreated)
        );
        let own = finalizer::DELETE_RELATED_OBJECTS;
        let mut finalizers = policy.metadata.finalizers.clone().unwrap_or_default();
        let has = finalizers.iter().any(|name| name == own);
        if wants == has || policy.metadata.deletion_timestamp.is_some() {
            return Ok(live);
        }
        if wants {
            finalizers.push(own.to_owned());
        } else {
            finalizers.retain(|name| name != own);
        }
        self.write_finalizers(&live, &finalizers).await
    }

    async fn write_finalizers(
        &self,
        live: &Value,
        finalizers: &[String],
    ) -> Result<Value, RequestError> {
        let member = self.answers.member;
        let resource = resource_of(ConfigurationPolicy::NAMES);
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        let id = id_of(&resource, &member.cluster, name);
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "resourceVersion": live["metadata"]["resourceVersion"],
        }});
        let written = member.objects.merge(&resource, &id, &patch).await?;
        member.watches.note(&id, &written);
        Ok(written)
    }

    /// Lets a ConfigurationPolicy go that is being deleted, once its objects are gone. Returns what they
    /// wait for.
    pub(super) async fn release(&self, live: &Value) -> Result<Option<String>, RequestError> {
        let policy = read(live)?;
        let own = finalizer::DELETE_RELATED_OBJECTS;
        let mut finalizers = policy.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|name| name == own) {
            return Ok(None);
        }
        let status = policy.status.clone().unwrap_or_default();
        if let Some(message) = self.prune(&policy, &status.related_objects).await? {
            let report = Pruning::report(&message, &policy, self.moment(), &self.world());
            self.report(live.clone(), policy, vec![report]).await?;
            return Ok(Some(message));
        }
        finalizers.retain(|name| name != own);
        match self.write_finalizers(live, &finalizers).await {
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
            Ok(_) => Ok(None),
        }
    }
}

fn read(live: &Value) -> Result<ConfigurationPolicy, RequestError> {
    serde_json::from_value(live.clone())
        .map_err(|error| RequestError::Unreached(format!("unreadable policy: {error}")))
}

fn is_conflict(outcome: &WriteOutcome) -> bool {
    matches!(outcome, WriteOutcome::Failed(error) if error.kind == WriteErrorKind::Conflict)
}

/// Whether a policy is evaluated when objects change.
fn uses_watch(policy: &ConfigurationPolicy) -> bool {
    let is_watch = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        text.is_empty() || text == "watch"
    };
    match &policy.spec.evaluation_interval {
        None => true,
        Some(EvaluationInterval {
            compliant,
            noncompliant,
            ..
        }) => is_watch(compliant) || is_watch(noncompliant),
    }
}

/// Whether statuses differ in nothing but the time of the last evaluation.
fn is_same(left: &Value, right: &Value) -> bool {
    let without_time = |status: &Value| {
        let mut status = status.clone();
        if let Some(status) = status.as_object_mut() {
            status.remove("lastEvaluated");
        }
        status
    };
    without_time(left) == without_time(right)
}
