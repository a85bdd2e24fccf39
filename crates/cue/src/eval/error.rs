//! Errors as values of the evaluation.

use super::scalar::Described;
use super::{Evaluator, NodeId};
use crate::diagnostic::{Code, Diagnostic, Location, Phase};
use crate::label::Label;
use crate::token::Pos;
use crate::value::Kind;

/// Index of an error in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ErrId(pub(crate) u32);

/// What an error says. The frequent kinds are put into words only when someone reads them: most
/// errors of an evaluation are answers to `x != _|_`, or alternatives that do not fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Static(&'static str),
    Text(String),
    UndefinedField(Label),
    OptionalField(Label),
    Conflict(Box<Clash>),
}

/// Two constraints that exclude each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clash {
    pub(crate) left: Described,
    pub(crate) right: Described,
    /// The kinds, if they are what differs.
    pub(crate) kinds: Option<(Kind, Kind)>,
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&'static str> for Message {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

/// One error, or several at one node.
#[derive(Debug, Clone)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) message: Message,
    pub(crate) pos: Pos,
    pub(crate) related: Vec<Pos>,
    pub(crate) node: NodeId,
    /// The errors this one stands for; then it has no message of its own.
    pub(crate) parts: Vec<ErrId>,
    /// Whether it may vanish because some node is still being evaluated.
    pub(crate) pending: bool,
    /// Whether it says that a field is not allowed.
    pub(crate) not_allowed: bool,
}

impl Evaluator {
    pub(crate) fn error_at(&mut self, code: Code, pos: Pos, message: impl Into<Message>) -> ErrId {
        let node = self.current;
        self.push_error(Error {
            code,
            message: message.into(),
            pos,
            related: Vec::new(),
            node,
            parts: Vec::new(),
            pending: false,
            not_allowed: false,
        })
    }

    pub(crate) fn push_error(&mut self, error: Error) -> ErrId {
        let id = ErrId(u32::try_from(self.errors.len()).unwrap_or(u32::MAX));
        self.errors.push(error);
        id
    }

    pub(crate) fn error(&self, id: ErrId) -> &Error {
        &self.errors[id.0 as usize]
    }

    pub(crate) fn error_mut(&mut self, id: ErrId) -> &mut Error {
        &mut self.errors[id.0 as usize]
    }

    /// Marks an error as possibly passing: something it depends on is not finished.
    pub(crate) fn pending_error(
        &mut self,
        code: Code,
        pos: Pos,
        message: impl Into<Message>,
    ) -> ErrId {
        let id = self.error_at(code, pos, message);
        self.error_mut(id).pending = true;
        id
    }

    /// Joins two errors of one node; the worse code wins.
    pub(crate) fn combine(&mut self, left: Option<ErrId>, right: ErrId) -> ErrId {
        let Some(left) = left else { return right };
        if left == right {
            return left;
        }
        let (a, b) = (self.error(left), self.error(right));
        if a.message == b.message && a.pos == b.pos && a.node == b.node && a.parts.is_empty() {
            return left;
        }
        // A final error makes a temporary one beside it uninteresting.
        match (a.code.is_temporary(), b.code.is_temporary()) {
            (true, false) => return right,
            (false, true) => return left,
            _ => {}
        }
        let mut parts = if a.parts.is_empty() {
            vec![left]
        } else {
            a.parts.clone()
        };
        if parts.len() > 64 {
            return left;
        }
        let more = if b.parts.is_empty() {
            vec![right]
        } else {
            b.parts.clone()
        };
        for part in more {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let (code, node, pos) = (a.code.min(b.code), a.node, a.pos);
        let pending = a.pending && b.pending;
        self.push_error(Error {
            code,
            message: Message::Static(""),
            pos,
            related: Vec::new(),
            node,
            parts,
            pending,
            not_allowed: false,
        })
    }

    /// Adds an error to a node.
    pub(crate) fn add_error(&mut self, node: NodeId, error: ErrId) {
        let known = self.node(node).error;
        let combined = self.combine(known, error);
        self.node_mut(node).error = Some(combined);
        self.progress += 1;
    }

    /// The single errors behind one, in order.
    pub(crate) fn leaves(&self, id: ErrId) -> Vec<ErrId> {
        let error = self.error(id);
        if error.parts.is_empty() {
            return vec![id];
        }
        error
            .parts
            .iter()
            .flat_map(|part| self.leaves(*part))
            .collect()
    }

    pub(crate) fn message(&self, id: ErrId) -> String {
        let leaves = self.leaves(id);
        leaves
            .first()
            .map_or_else(String::new, |first| self.words(*first))
    }

    /// The text of a single error.
    fn words(&self, id: ErrId) -> String {
        match &self.error(id).message {
            Message::Static(text) => (*text).to_owned(),
            Message::Text(text) => text.clone(),
            Message::UndefinedField(label) => {
                format!("undefined field: {}", self.labels.show(*label))
            }
            Message::OptionalField(label) => {
                let label = self.labels.show(*label);
                format!("cannot reference optional field: {label}")
            }
            Message::Conflict(clash) => {
                let (left, right) = (self.describe(&clash.left), self.describe(&clash.right));
                let types = clash.kinds.map_or_else(String::new, |(left, right)| {
                    format!(" (mismatched types {left} and {right})")
                });
                format!("conflicting values {left} and {right}{types}")
            }
        }
    }

    pub(crate) fn location(&self, pos: Pos) -> Option<Location> {
        if !pos.is_known() {
            return None;
        }
        let source = self.program.sources.get(usize::from(pos.file.0))?;
        Some(Location {
            file: source.name.clone(),
            at: source.lines.locate(pos.offset),
        })
    }

    /// The error as it is reported.
    pub(crate) fn diagnostic(&self, id: ErrId) -> Diagnostic {
        let error = self.error(id);
        let mut related: Vec<Location> = error
            .related
            .iter()
            .filter_map(|pos| self.location(*pos))
            .collect();
        related.sort();
        related.dedup();
        Diagnostic {
            phase: Phase::Eval,
            code: error.code,
            path: self.path(error.node),
            message: self.words(id),
            location: self.location(error.pos),
            related,
            hint: None,
        }
    }
}
