//! Who read what: recorded while evaluating, so that later data starts again only what it changes.
//!
//! A reader is a node whose task or validator is running, or a comprehension whose clauses are. Each
//! read is linked to the node that was read, with what the reader [`Need`]s of it. Values outside the
//! tree, those of expressions and of alternatives tried, are read by anyone who made them. What is
//! recorded may be more than the truth, and is never less.

use super::{EnvId, Evaluator, NodeId};
use crate::ir::ComprehensionId;

/// What a reader relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The constraints: they were copied.
    Conjuncts,
    /// That it is a struct or list, or whatever else it is; not its members.
    Nature,
    /// Which members there are.
    Members,
    /// Everything at and below it.
    Whole,
}

/// Who reads: a node, or a comprehension by its index in [`Reads::runs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Nobody,
    Node(NodeId),
    Run(u32),
}

/// One read, in the list of the node that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) reader: Reader,
    /// How often the reader had been started again by then; later it has forgotten the read.
    pub(crate) epoch: u32,
    pub(crate) need: Need,
    next: u32,
}

/// A comprehension whose clauses were evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The node it adds to.
    pub(crate) node: NodeId,
    pub(crate) comprehension: ComprehensionId,
    pub(crate) env: EnvId,
    outcome: Outcome,
}

/// What is known of a [`Run`].
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// Its clauses are being evaluated, or something kept them from that.
    Open,
    /// Where in [`Reads::yielded`] its environments are.
    Yielded(u32, u32),
    /// Something that it read has changed, perhaps while its clauses were still being evaluated.
    Outdated,
}

impl Run {
    /// Where in [`Reads::yielded`] its environments are, if nothing it read has changed since.
    pub(super) fn yielded(&self) -> Option<(u32, u32)> {
        match self.outcome {
            Outcome::Yielded(start, end) => Some((start, end)),
            Outcome::Open | Outcome::Outdated => None,
        }
    }

    /// Notes that something it read has changed; false if that is known already.
    pub(super) fn invalidate(&mut self) -> bool {
        !matches!(
            std::mem::replace(&mut self.outcome, Outcome::Outdated),
            Outcome::Outdated
        )
    }
}

/// All reads of an evaluation.
#[derive(Debug)]
pub(crate) struct Reads {
    list: Vec<Read>,
    pub(crate) runs: Vec<Run>,
    pub(crate) yielded: Vec<EnvId>,
    /// Who reads at the moment.
    pub(crate) reader: Reader,
}

impl Reads {
    /// No reads yet, and room for so many.
    pub(super) fn with_capacity(size: usize) -> Self {
        let nothing = Read {
            reader: Reader::Nobody,
            epoch: 0,
            need: Need::Conjuncts,
            next: 0,
        };
        Self {
            // Zero ends a list.
            list: super::with_first(nothing, size),
            runs: Vec::with_capacity(size / 8),
            yielded: Vec::with_capacity(size / 8),
            reader: Reader::Nobody,
        }
    }
}

impl Evaluator {
    /// Records that anyone who reads at the moment relies on a node.
    pub(crate) fn note(&mut self, target: NodeId, need: Need) {
        self.note_for(self.reads.reader, target, need);
    }

    /// Records that a reader relies on a node.
    pub(crate) fn note_for(&mut self, reader: Reader, target: NodeId, need: Need) {
        let epoch = match reader {
            Reader::Nobody => return,
            Reader::Node(node) => self.node(node).epoch,
            Reader::Run(_) => 0,
        };
        let next = self.node(target).readers;
        let last = self.reads.list[next as usize];
        if last.reader == reader && last.need >= need && last.epoch == epoch {
            return;
        }
        let read = Read {
            reader,
            epoch,
            need,
            next,
        };
        self.node_mut(target).readers = u32::try_from(self.reads.list.len()).unwrap_or(0);
        self.reads.list.push(read);
    }

    /// Takes the reads of a node that `wanted` selects off its list.
    pub(super) fn take_reads(&mut self, node: NodeId, wanted: impl Fn(Need) -> bool) -> Vec<Read> {
        let mut taken = Vec::new();
        let mut kept = 0;
        let mut cursor = self.node(node).readers;
        while cursor != 0 {
            let read = self.reads.list[cursor as usize];
            if wanted(read.need) {
                taken.push(read);
            } else {
                self.reads.list[cursor as usize].next = kept;
                kept = cursor;
            }
            cursor = read.next;
        }
        self.node_mut(node).readers = kept;
        taken
    }

    /// Runs `body` on behalf of a node.
    pub(crate) fn reading_as<T>(&mut self, reader: Reader, body: impl FnOnce(&mut Self) -> T) -> T {
        let saved = std::mem::replace(&mut self.reads.reader, reader);
        let result = body(self);
        self.reads.reader = saved;
        result
    }

    /// Notes that a comprehension begins; its clauses are evaluated as the reader returned.
    pub(super) fn begin_run(&mut self, comprehension: ComprehensionId, env: EnvId) -> u32 {
        let run = u32::try_from(self.reads.runs.len()).unwrap_or(u32::MAX);
        self.reads.runs.push(Run {
            node: self.current,
            comprehension,
            env,
            outcome: Outcome::Open,
        });
        run
    }

    /// Notes what a comprehension yielded. The reads of a run that is outdated by the time it ends are
    /// forgotten, so that nothing would say when its yield no longer counts.
    pub(super) fn end_run(&mut self, run: u32, envs: &[EnvId]) {
        let start = u32::try_from(self.reads.yielded.len()).unwrap_or(u32::MAX);
        self.reads.yielded.extend_from_slice(envs);
        let end = u32::try_from(self.reads.yielded.len()).unwrap_or(u32::MAX);
        if let Some(run) = self.reads.runs.get_mut(run as usize)
            && matches!(run.outcome, Outcome::Open)
        {
            run.outcome = Outcome::Yielded(start, end);
        }
    }
}
