//! Answers what an evaluation asks of its member, and writes what it wants written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_apply::{ObjectId, ResourceType};
use bellwether_policy::config_policy::{Verb, Write, WriteError, WriteErrorKind, WriteOutcome};
use bellwether_policy::template::{Answer, Question, Resource};
use bellwether_runtime::{Deleted, RequestError};
use parking_lot::Mutex;
use serde_json::Value;

use super::PolicyKey;
use super::member::{Member, Request, definitions, id_of};

/// What one reconcile of a policy looks at. Whatever it looks at enqueues the policy from then on.
pub(super) struct Answers<'a> {
    pub(super) member: &'a Member,
    pub(super) key: &'a PolicyKey,
    tracked: Mutex<BTreeSet<ObjectId>>,
    /// Kinds of which it looks at objects without knowing their names.
    listed: Mutex<BTreeSet<(String, String)>>,
    parts: Mutex<Parts>,
}

/// What the templates of a policy do to the objects of each other.
#[derive(Default)]
struct Parts {
    /// The template whose turn it is; the policy itself is before all of them.
    current: usize,
    /// Which template looked at an object first.
    looked: BTreeMap<ObjectId, usize>,
    /// Whether an object was written that a template before has looked at.
    is_disturbed: bool,
    /// How many objects evaluations have written.
    repairs: usize,
}

impl<'a> Answers<'a> {
    pub(super) fn new(member: &'a Member, key: &'a PolicyKey) -> Self {
        Self {
            member,
            key,
            tracked: Mutex::default(),
            listed: Mutex::default(),
            parts: Mutex::default(),
        }
    }

    /// Begins with the templates, and forgets what they did to each other before.
    pub(super) fn begin_pass(&self) {
        let mut parts = self.parts.lock();
        parts.looked.clear();
        parts.is_disturbed = false;
    }

    /// Takes what is written from now on as done after all templates.
    pub(super) fn end_pass(&self) {
        let mut parts = self.parts.lock();
        parts.current = usize::MAX;
        parts.is_disturbed = false;
    }

    /// Takes what is looked at and written from now on as done by a template; 0 is the policy itself.
    pub(super) fn begin_part(&self, part: usize) {
        self.parts.lock().current = part;
    }

    /// Returns true if a template wrote what one before it had looked at, so that the latter has to be evaluated again.
    pub(super) fn is_disturbed(&self) -> bool {
        self.parts.lock().is_disturbed
    }

    /// How many objects evaluations have written so far.
    pub(super) fn repairs(&self) -> usize {
        self.parts.lock().repairs
    }

    /// Takes note that an object was written. To other policies that look at it that is news.
    fn wrote(&self, id: &ObjectId) {
        {
            let mut parts = self.parts.lock();
            let first = parts.looked.get(id).copied();
            parts.is_disturbed |= first.is_some_and(|first| first < parts.current);
        }
        self.member.watches.enqueue_others(id, self.key);
    }

    /// Writes an object that others may look at.
    pub(super) async fn put(
        &self,
        request: Request,
        resource: &ResourceType,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let written = self.member.write(request, resource, id, object).await?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        if request == Request::Create || version(&written) != version(object) {
            self.wrote(id);
        }
        Ok(written)
    }

    /// Deletes an object that others may look at, if it is there.
    pub(super) async fn delete(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
        live: &Value,
    ) -> Result<Value, RequestError> {
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        let left = match self.member.objects.delete(resource, id, uid).await? {
            Deleted::Gone => {
                self.member.watches.note_gone(id);
                Value::Null
            }
            Deleted::Waits(object) => {
                self.member.watches.note(id, &object);
                object
            }
        };
        self.wrote(id);
        Ok(left)
    }

    /// Forgets what was looked at before this reconcile, and is not any more.
    pub(super) fn finish(self) {
        let tracked = self.tracked.into_inner();
        let mut memories = self.member.memories.lock();
        let memory = memories.entry(self.key.clone()).or_default();
        let before = std::mem::replace(&mut memory.tracked, tracked);
        let gone: Vec<&ObjectId> = before.difference(&memory.tracked).collect();
        for id in gone {
            self.member.watches.untrack(id, self.key);
        }
        drop(memories);
        self.member
            .lists
            .retain(self.key, &self.listed.into_inner());
    }

    /// Reads an object that is looked at from now on.
    pub(super) async fn object(
        &self,
        resource: &Arc<ResourceType>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, RequestError> {
        let id = id_of(resource, namespace, name);
        {
            let mut parts = self.parts.lock();
            let part = parts.current;
            parts.looked.entry(id.clone()).or_insert(part);
        }
        if self.tracked.lock().insert(id.clone()) {
            self.member.track(resource, &id, self.key).await;
        }
        self.member.read(resource, &id).await
    }

    /// Looks at all objects of a kind from now on.
    pub(super) async fn track_kind(&self, resource: &ResourceType) {
        let kind = (resource.group.clone(), resource.plural.clone());
        if self.listed.lock().insert(kind) {
            self.member.lists.track(resource, self.key).await;
        }
    }

    /// Answers a question. With `tracks`, the policy is enqueued when the answer may change.
    pub(super) async fn answer(&self, question: &Question, tracks: bool) -> Answer {
        let answer = match question {
            Question::Resource { api_version, kind } => self.resource(api_version, kind).await,
            Question::Object {
                api_version,
                kind,
                namespace,
                name,
            } => self.read(api_version, kind, namespace, name, tracks).await,
            Question::List {
                api_version,
                kind,
                namespace,
                selector,
            } => {
                self.list(api_version, kind, namespace, selector, tracks)
                    .await
            }
        };
        answer.unwrap_or_else(|error| Answer::Failed(error.to_string()))
    }

    async fn resource(&self, api_version: &str, kind: &str) -> Result<Answer, RequestError> {
        let Some(resource) = self.member.find(api_version, kind).await? else {
            // The kind may be defined later.
            self.track_kind(&definitions()).await;
            return Ok(Answer::Nothing);
        };
        let name = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        Ok(Answer::Resource(Resource {
            name,
            is_namespaced: resource.namespaced,
        }))
    }

    async fn read(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        tracks: bool,
    ) -> Result<Answer, RequestError> {
        let Some(resource) = self.member.find(api_version, kind).await? else {
            return Ok(Answer::Nothing);
        };
        let found = if tracks {
            self.object(&resource, namespace, name).await?
        } else {
            let id = id_of(&resource, namespace, name);
            self.member.objects.get(&resource, &id).await?
        };
        Ok(found.map_or(Answer::Nothing, Answer::Object))
    }

    async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
        tracks: bool,
    ) -> Result<Answer, RequestError> {
        let Some(resource) = self.member.find(api_version, kind).await? else {
            return Ok(Answer::Nothing);
        };
        if tracks {
            self.track_kind(&resource).await;
        }
        let found = self.member.list(&resource, namespace, selector).await?;
        Ok(Answer::Objects(found))
    }

    /// Writes an object, or tries to.
    pub(super) async fn write(&self, write: &Write) -> WriteOutcome {
        match self.written(write).await {
            Ok(object) => WriteOutcome::Done(object),
            Err(error) => WriteOutcome::Failed(refusal(&error)),
        }
    }

    async fn written(&self, write: &Write) -> Result<Value, RequestError> {
        let member = self.member;
        let found = member.find(&write.api_version, &write.kind).await?;
        let Some(resource) = found else {
            return Err(RequestError::refused(
                404,
                "NotFound",
                "the kind is not served",
            ));
        };
        let id = id_of(&resource, &write.namespace, &write.name);
        if write.verb != Verb::DryRun {
            self.parts.lock().repairs += 1;
        }
        match write.verb {
            Verb::DryRun => {
                member
                    .objects
                    .try_replace(&resource, &id, &write.object)
                    .await
            }
            Verb::Create => {
                let request = Request::Create;
                self.put(request, &resource, &id, &write.object).await
            }
            Verb::Update => {
                let request = Request::Replace;
                self.put(request, &resource, &id, &write.object).await
            }
            Verb::UpdateStatus => {
                let request = Request::ReplaceStatus;
                self.put(request, &resource, &id, &write.object).await
            }
            Verb::Delete => self.delete(&resource, &id, &write.object).await,
            Verb::Recreate => {
                if let Some(live) = member.objects.get(&resource, &id).await? {
                    self.delete(&resource, &id, &live).await?;
                }
                let request = Request::Create;
                self.put(request, &resource, &id, &write.object).await
            }
        }
    }
}

/// What an evaluation has to know of an error.
fn refusal(error: &RequestError) -> WriteError {
    let kind = if error.is_namespace_missing() {
        // The object is not what is missing.
        WriteErrorKind::Other
    } else if error.is_not_found() {
        WriteErrorKind::NotFound
    } else if error.is_already_there() {
        WriteErrorKind::AlreadyExists
    } else if error.is_conflict() {
        WriteErrorKind::Conflict
    } else if error.is_invalid() {
        WriteErrorKind::Invalid
    } else {
        WriteErrorKind::Other
    };
    WriteError {
        kind,
        message: error.to_string(),
    }
}
