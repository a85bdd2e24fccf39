//! The objects that the templates of a policy are on a member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::policy::names::{POLICY_TYPE_TEMPLATE, label};
use bellwether_api::policy::{Policy, PruneObjectBehavior};
use bellwether_apply::ResourceType;
use bellwether_policy::compliance::{Message, TemplateReport, details, latest};
use bellwether_policy::template_sync::{
    Change, Dependency, Gatekeeper, Parsed, Target, audit_of, change, hub_error, is_own_kind,
    not_served, not_supported, object, pending, refused, state_of, template_error,
};
use bellwether_runtime::{Next, RequestError};
use serde_json::{Value, json};

use super::evaluate::Evaluator;
use super::events;
use super::member::{Request, TemplateObject, definitions, id_of};
use super::removal;

/// What came of one template.
pub(super) struct Synced {
    pub(super) report: TemplateReport,
    pub(super) next: Next,
    /// The object that the template is, if it is one.
    pub(super) object: Option<TemplateObject>,
}

/// Syncs the templates of one policy. `replica` is the policy on the hub.
pub(super) struct TemplateSync<'a> {
    pub(super) evaluator: &'a Evaluator<'a>,
    pub(super) replica: &'a Policy,
}

impl TemplateSync<'_> {
    fn namespace(&self) -> &str {
        &self.evaluator.answers.member.cluster
    }

    /// What is reported without an evaluation. A message that was the last one is not repeated.
    async fn report_message(&self, name: &str, template: &Value, text: String) -> Synced {
        let status = self.replica.status_or_default();
        let mut messages = Vec::new();
        if latest(&status, name) != Some(text.as_str()) {
            let message = Message {
                at: self.evaluator.moment(),
                text,
            };
            let member = self.evaluator.answers.member;
            let mut named = template.clone();
            named["metadata"]["name"] = json!(name);
            events::record(member, self.evaluator.policy, &named, &message).await;
            messages.push(message);
        }
        Synced {
            report: TemplateReport {
                name: name.to_owned(),
                messages,
                is_current: true,
            },
            next: None,
            object: None,
        }
    }

    async fn failed(&self, target: &Target, message: &str) -> Synced {
        let text = template_error(message);
        let synced = self.report_message(&target.name, &json!({}), text).await;
        if !synced.report.messages.is_empty() {
            self.record_event(true, &format!("template-error; {message}"))
                .await;
        }
        synced
    }

    /// Records what happened to the object of a template.
    async fn record_event(&self, is_warning: bool, message: &str) {
        let evaluator = self.evaluator;
        let (member, policy) = (evaluator.answers.member, evaluator.policy);
        events::record_sync(member, policy, evaluator.moment(), is_warning, message).await;
    }

    /// Syncs one template.
    pub(super) async fn sync(&self, template: &Parsed) -> Result<Synced, RequestError> {
        let target = match template {
            Parsed::Target(target) => target,
            Parsed::Error { name, message } => {
                return Ok(self
                    .report_message(name, &json!({}), template_error(message))
                    .await);
            }
        };
        let resource = match self.resource(target).await? {
            Ok(resource) => resource,
            Err(message) => return Ok(self.failed(target, &message).await),
        };
        let answers = self.evaluator.answers;
        let live = answers
            .object(&resource, self.namespace(), &target.name)
            .await?;
        let is_own = |live: &Value| {
            let name = self.evaluator.policy.metadata.name.as_deref();
            live["metadata"]["labels"][label::POLICY].as_str() == name
        };
        if let Some(error) = hub_error(target) {
            if let Some(live) = live.as_ref().filter(|live| is_own(live)) {
                self.delete_but_not_objects(&resource, live).await?;
            }
            return Ok(self.failed(target, error).await);
        }
        let states = self.states(target).await?;
        let state = |dependency: &Dependency| states.get(dependency).cloned().unwrap_or_default();
        if let Some(text) = pending(target, state) {
            if let Some(live) = live.as_ref().filter(|live| is_own(live)) {
                let id = id_of(&resource, self.namespace(), &target.name);
                answers.delete(&resource, &id, live).await?;
            }
            return Ok(self
                .report_message(&target.name, &target.definition, text)
                .await);
        }
        let policy = self.evaluator.policy;
        let desired = object(target, policy, self.namespace(), resource.namespaced);
        let before = live
            .as_ref()
            .map(|live| live["metadata"]["generation"].clone());
        let live = match self.write(&resource, target, &desired, live).await? {
            Ok(live) => live,
            Err(message) => return Ok(self.failed(target, &message).await),
        };
        let mut synced = match Gatekeeper::of(&target.api_version) {
            Some(gatekeeper) => {
                self.audited(target, gatekeeper, &live, before.as_ref())
                    .await
            }
            None => self.evaluated(target, live).await?,
        };
        synced.object = Some((
            target.api_version.clone(),
            target.kind.clone(),
            target.name.clone(),
        ));
        Ok(synced)
    }

    /// How the kind of a template is served; the error is a text for people.
    async fn resource(
        &self,
        target: &Target,
    ) -> Result<Result<Arc<ResourceType>, String>, RequestError> {
        let member = self.evaluator.answers.member;
        let (api_version, kind) = (&target.api_version, &target.kind);
        let is_ours = is_own_kind((api_version, kind));
        if is_ours {
            member.define_template(kind).await?;
        }
        let Some(resource) = member.find(api_version, kind).await? else {
            self.evaluator.answers.track_kind(&definitions()).await;
            return Ok(Err(not_served(api_version, kind)));
        };
        if is_ours || Gatekeeper::of(api_version).is_some() {
            return Ok(Ok(resource));
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let id = id_of(&definitions(), "", &name);
        let definition = member.objects.get(&definitions(), &id).await?;
        let is_template = definition.is_some_and(|definition| {
            definition["metadata"]["labels"][label::POLICY_TYPE] == POLICY_TYPE_TEMPLATE
        });
        Ok(if is_template {
            Ok(resource)
        } else {
            Err(not_supported(api_version, kind))
        })
    }

    /// What is true of each dependency.
    async fn states(&self, target: &Target) -> Result<BTreeMap<Dependency, String>, RequestError> {
        let mut states = BTreeMap::new();
        for dependency in &target.dependencies {
            let member = self.evaluator.answers.member;
            let found = member
                .find(&dependency.api_version, &dependency.kind)
                .await?;
            let Some(resource) = found else {
                self.evaluator.answers.track_kind(&definitions()).await;
                continue;
            };
            let (namespace, name) = (&dependency.namespace, &dependency.name);
            let answers = self.evaluator.answers;
            let object = answers.object(&resource, namespace, name).await?;
            let state = state_of(&dependency.api_version, object.as_ref());
            states.insert(dependency.clone(), state);
        }
        Ok(states)
    }

    /// Creates or updates the object; the error is a text for people.
    async fn write(
        &self,
        resource: &ResourceType,
        target: &Target,
        desired: &Value,
        live: Option<Value>,
    ) -> Result<Result<Value, String>, RequestError> {
        let id = id_of(resource, self.namespace(), &target.name);
        let (request, object) = match (change(desired, live.as_ref()), live) {
            (Change::None, Some(live)) => return Ok(Ok(live)),
            (Change::Taken(message), _) => return Ok(Err(message)),
            (Change::Update(updated), _) => (Request::Replace, *updated),
            (Change::Create | Change::None, _) => (Request::Create, desired.clone()),
        };
        match self
            .evaluator
            .answers
            .put(request, resource, &id, &object)
            .await
        {
            Ok(live) => {
                let what = match request {
                    Request::Create => "created",
                    _ => "was updated",
                };
                let text = format!("Policy template {} {what} successfully", target.name);
                self.record_event(false, &text).await;
                Ok(Ok(live))
            }
            // It was written to meanwhile, or the server is not there: all of it again.
            Err(error)
                if error.is_conflict()
                    || error.is_already_there()
                    || error.is_not_found()
                    || error.status().is_none() =>
            {
                Err(error)
            }
            Err(error) => {
                let is_new = request == Request::Create;
                Ok(Err(refused(is_new, &target.name, &error.to_string())))
            }
        }
    }

    /// Deletes an object, but nothing that it has made.
    async fn delete_but_not_objects(
        &self,
        resource: &ResourceType,
        live: &Value,
    ) -> Result<(), RequestError> {
        let answers = self.evaluator.answers;
        let member = answers.member;
        let name = live["metadata"]["name"].as_str().unwrap_or_default();
        let id = id_of(resource, self.namespace(), name);
        let prunes = live["spec"]["pruneObjectBehavior"].as_str();
        let none = PruneObjectBehavior::None;
        if prunes.is_some_and(|behavior| behavior != none.as_str()) {
            let patch = json!({"spec": {"pruneObjectBehavior": none.as_str()}});
            let written = member.objects.merge(resource, &id, &patch).await?;
            member.watches.note(&id, &written);
        }
        answers.delete(resource, &id, live).await?;
        Ok(())
    }

    /// Says what an object of Gatekeeper reports: a constraint its last audit, a ConstraintTemplate that it is there.
    async fn audited(
        &self,
        target: &Target,
        gatekeeper: Gatekeeper,
        live: &Value,
        before: Option<&Value>,
    ) -> Synced {
        let found = match gatekeeper {
            Gatekeeper::Constraint => audit_of(live),
            Gatekeeper::Template => {
                let was_reported = || {
                    let status = self.replica.status_or_default();
                    let text = latest(&status, &target.name);
                    text.is_some_and(|text| text.starts_with("Compliant;"))
                };
                let what = match before {
                    Some(before) if *before != live["metadata"]["generation"] => "updated",
                    // What was reported is still true.
                    Some(_) if was_reported() => return reported(target, true),
                    _ => "created",
                };
                let (kind, name) = (&target.kind, &target.name);
                Some(format!("Compliant; {kind} {name} was {what} successfully"))
            }
        };
        match found {
            Some(text) => self.report_message(&target.name, live, text).await,
            None => reported(target, false),
        }
    }

    /// Evaluates the object of a template, and says what it reports.
    async fn evaluated(&self, target: &Target, live: Value) -> Result<Synced, RequestError> {
        if live["metadata"]["deletionTimestamp"].is_string() {
            // It comes again when it is gone.
            self.evaluator.release(&live).await?;
            return Ok(reported(target, false));
        }
        let (live, next) = self.evaluator.evaluate_kind(&target.kind, live).await?;
        Ok(Synced {
            report: self.report(&target.name, &live),
            next,
            object: None,
        })
    }

    /// What the status of a template's object says.
    fn report(&self, name: &str, live: &Value) -> TemplateReport {
        let status = &live["status"];
        let history = status["history"].as_array().into_iter().flatten();
        let messages: Vec<Message> = history
            .filter_map(|entry| {
                let at = entry["lastTimestamp"].as_str()?.parse().ok()?;
                let text = entry["message"].as_str()?.to_owned();
                Some(Message { at, text })
            })
            .collect();
        let generation = &live["metadata"]["generation"];
        let evaluated = match live["kind"].as_str() {
            Some("ConfigurationPolicy") => &status["lastEvaluatedGeneration"],
            Some("OperatorPolicy") => &status["observedGeneration"],
            _ => generation,
        };
        let is_current = evaluated == generation && status["compliant"].is_string();
        let mut report = TemplateReport {
            name: name.to_owned(),
            messages,
            is_current,
        };
        // A template that failed before, and has found nothing new since, says again what it found.
        let found = report.messages.first().map(|message| message.text.clone());
        if let Some(text) = found {
            let before = self.replica.status_or_default();
            let policy = self.replica.metadata.name.as_deref().unwrap_or_default();
            let merged = details(policy, std::slice::from_ref(&report), &before.details);
            let newest = merged.first().and_then(|details| details.history.first());
            let newest = newest.and_then(|entry| entry.message.as_deref());
            if newest.is_some_and(|newest| newest != text) {
                report.messages.push(Message {
                    at: self.evaluator.moment(),
                    text,
                });
            }
        }
        report
    }

    /// Deletes objects of templates that the policy does not have any more.
    pub(super) async fn remove_others(
        &self,
        kept: &BTreeSet<TemplateObject>,
    ) -> Result<(), RequestError> {
        let answers = self.evaluator.answers;
        let (member, key) = (answers.member, answers.key);
        let known = {
            let mut memories = member.memories.lock();
            let memory = memories.entry(key.clone()).or_default();
            memory.templates.clone()
        };
        let known = if let Some(known) = known {
            known
        } else {
            removal::objects_of(member, &key.policy, self.evaluator.policy).await?
        };
        let group = |api_version: &str| {
            let group = api_version.split_once('/');
            group.map_or(String::new(), |(group, _)| group.to_owned())
        };
        // Of whatever version: it is the same object.
        let identity = |(api_version, kind, name): &TemplateObject| {
            (group(api_version), kind.clone(), name.clone())
        };
        let staying: BTreeSet<_> = kept.iter().map(identity).collect();
        for other in known.iter().filter(|it| !staying.contains(&identity(it))) {
            let (api_version, kind, name) = other;
            if let Some(resource) = member.find(api_version, kind).await? {
                let id = id_of(&resource, self.namespace(), name);
                if let Some(live) = member.objects.get(&resource, &id).await? {
                    answers.object(&resource, self.namespace(), name).await?;
                    answers.delete(&resource, &id, &live).await?;
                    if kind == "ConfigurationPolicy"
                        && let Some(live) = member.objects.get(&resource, &id).await?
                    {
                        self.evaluator.release(&live).await?;
                    }
                }
            }
        }
        let mut memories = member.memories.lock();
        let memory = memories.entry(key.clone()).or_default();
        memory.templates = Some(kept.clone());
        Ok(())
    }
}

/// A template that reports nothing new.
fn reported(target: &Target, is_current: bool) -> Synced {
    Synced {
        report: TemplateReport {
            name: target.name.clone(),
            messages: Vec::new(),
            is_current,
        },
        next: None,
        object: None,
    }
}
