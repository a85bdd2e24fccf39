//! What an evaluation knows of its cluster, and what it asks for.

use std::collections::BTreeMap;

use serde_json::Value;

use super::secrets::Secrets;
use crate::template::{Answer, Cluster, Question};

/// Something that an evaluation cannot go on without.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Something to be known.
    Read(Question),
    /// Something to be written, or to be tried.
    Write(Write),
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// An update that changes nothing: what would it become?
    DryRun,
    /// Create it.
    Create,
    /// Replace it.
    Update,
    /// Replace its status.
    UpdateStatus,
    /// Delete it. The outcome is the object if it is still there, for example because of finalizers.
    Delete,
    /// Delete it, and create it as given.
    Recreate,
}

/// One write. Unknown and duplicate fields are refused by the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// What is done.
    pub verb: Verb,
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for kinds without one.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The object, with the resource version that an update is based on.
    pub object: Value,
}

/// What came of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteOutcome {
    /// The object as the server has it now; null if it is gone.
    Done(Value),
    /// It was refused.
    Failed(WriteError),
}

/// Why a write was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WriteError {
    /// What an evaluation tells apart.
    pub kind: WriteErrorKind,
    /// The text of the server.
    pub message: String,
}

/// What an evaluation tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// There is no such object.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// It was changed since it was read: read it again, and evaluate again.
    Conflict,
    /// The server refuses the change, for example because fields are immutable.
    Invalid,
    /// Anything else.
    Other,
}

/// Answers to what was asked in one evaluation.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    answers: BTreeMap<Question, Answer>,
    outcomes: BTreeMap<WriteKey, WriteOutcome>,
    secrets: Secrets,
}

/// Which write of one object template.
type WriteKey = (Verb, String, String, String, String);

fn key_of(write: &Write) -> WriteKey {
    (
        write.verb,
        write.api_version.clone(),
        write.kind.clone(),
        write.namespace.clone(),
        write.name.clone(),
    )
}

impl Facts {
    /// Notes an answer.
    pub fn answer(&mut self, question: Question, answer: Answer) {
        match &answer {
            Answer::Object(object) => self.secrets.add_object(object),
            Answer::Objects(objects) => {
                for object in objects {
                    self.secrets.add_object(object);
                }
            }
            _ => {}
        }
        self.answers.insert(question, answer);
    }

    /// Notes what came of a write.
    pub fn outcome(&mut self, write: &Write, outcome: WriteOutcome) {
        self.secrets.add_object(&write.object);
        self.outcomes.insert(key_of(write), outcome);
    }

    /// Forgets objects, after something was written, or to look at them again.
    pub fn forget(&mut self) {
        self.answers
            .retain(|question, _| matches!(question, Question::Resource { .. }));
        self.outcomes.clear();
    }

    /// Whether something was written, and not only tried.
    pub fn has_written(&self) -> bool {
        self.outcomes.keys().any(|(verb, ..)| *verb != Verb::DryRun)
    }

    /// What errors must not show of what is known.
    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Everything that was asked about.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.answers.keys()
    }

    pub(crate) fn get(&self, question: &Question) -> Option<&Answer> {
        self.answers.get(question)
    }

    pub(crate) fn written(&self, write: &Write) -> Option<&WriteOutcome> {
        self.outcomes.get(&key_of(write))
    }
}

impl Cluster for Facts {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.answers.get(question).cloned()
    }
}
