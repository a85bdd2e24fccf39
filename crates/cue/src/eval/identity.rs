//! Recognising what is made again.
//!
//! A node that starts again makes the environments, references and groups it made before. If they were
//! new ones, the constraints of its members would differ from those the members have, and everything
//! below would have to start again too. The tables here exist only from the first time on that an
//! evaluation starts part of itself again.

use super::cycle::Reference;
use super::depend::Run;
use super::{Binding, Conjunct, Env, EnvId, Evaluator, NodeId, Source};
use crate::ir::{ComprehensionId, ExprId};
use crate::quick::QuickMap;
use crate::value::Value;

/// What tells environments apart; the last part is the binding.
type EnvKey = (EnvId, NodeId, u64);

/// What tells followed references apart.
pub(super) type ReferenceKey = (NodeId, NodeId, ExprId, u32, u32);

/// The things made so far, by what they are.
#[derive(Debug, Default)]
pub(super) struct Identities {
    environments: QuickMap<EnvKey, EnvId>,
    /// The first environment of the same content, by environment.
    canonical: Vec<EnvId>,
    references: QuickMap<ReferenceKey, u32>,
    references_known: usize,
    runs: QuickMap<(ComprehensionId, EnvId, NodeId), u32>,
    runs_known: usize,
}

impl Evaluator {
    /// Brings the tables up to date.
    pub(super) fn learn(&mut self) {
        let Some(refill) = &mut self.refill else {
            return;
        };
        let known = &mut refill.identities;
        while let Some(env) = self.envs.get(known.canonical.len()) {
            let id = EnvId(u32::try_from(known.canonical.len()).unwrap_or(u32::MAX));
            let first = *known
                .environments
                .entry(env_key(env, &known.canonical))
                .or_insert(id);
            known.canonical.push(first);
        }
        while let Some(reference) = self.refs.get(known.references_known) {
            let id = u32::try_from(known.references_known).unwrap_or(0);
            known.references.entry(reference.key()).or_insert(id);
            known.references_known += 1;
        }
        while let Some(Run {
            node,
            comprehension,
            env,
            ..
        }) = self.reads.runs.get(known.runs_known)
        {
            let id = u32::try_from(known.runs_known).unwrap_or(u32::MAX);
            let env = known.canonical[env.0 as usize];
            // The latest run is the one that counts.
            known.runs.insert((*comprehension, env, *node), id);
            known.runs_known += 1;
        }
    }

    /// An environment of the same content made before.
    pub(super) fn known_env(&mut self, env: &Env) -> Option<EnvId> {
        self.refill.as_ref()?;
        self.learn();
        let known = &self.refill.as_ref()?.identities;
        known
            .environments
            .get(&env_key(env, &known.canonical))
            .copied()
    }

    /// The same step of the same way, taken before.
    pub(super) fn known_reference(&mut self, reference: &Reference) -> Option<u32> {
        self.refill.as_ref()?;
        self.learn();
        let known = &self.refill.as_ref()?.identities;
        known.references.get(&reference.key()).copied()
    }

    /// What a comprehension yielded, if nothing it read has changed since.
    pub(super) fn known_yield(
        &mut self,
        comprehension: ComprehensionId,
        env: EnvId,
    ) -> Option<Vec<EnvId>> {
        self.refill.as_ref()?;
        self.learn();
        let known = &self.refill.as_ref()?.identities;
        let env = known.canonical[env.0 as usize];
        let run = *known.runs.get(&(comprehension, env, self.current))?;
        let (start, end) = self.reads.runs[run as usize].yielded()?;
        Some(self.reads.yielded[start as usize..end as usize].to_vec())
    }

    /// Whether two conjuncts say the same.
    pub(super) fn is_same_conjunct(&self, left: &Conjunct, right: &Conjunct) -> bool {
        if left.info != right.info {
            return false;
        }
        let source = match (left.source, right.source) {
            (Source::Data(left), Source::Data(right)) => {
                let (left, right) = (&self.values[left as usize], &self.values[right as usize]);
                is_same_data(left, right)
            }
            (left, right) => left == right,
        };
        let canonical = |env: EnvId| {
            let known = self.refill.as_ref().map(|refill| &refill.identities);
            known
                .and_then(|known| known.canonical.get(env.0 as usize).copied())
                .unwrap_or(env)
        };
        source && (left.env == right.env || canonical(left.env) == canonical(right.env))
    }
}

fn env_key(env: &Env, canonical: &[EnvId]) -> EnvKey {
    let up = canonical.get(env.up.0 as usize).copied().unwrap_or(env.up);
    // A member of what a loop ranges over has one key only, so that its node stands for both.
    let binding = match &env.binding {
        Binding::Fields(literal) => u64::from(*literal),
        Binding::For { value, .. } => 1 << 32 | u64::from(value.0),
        Binding::Let(node) => 2 << 32 | u64::from(node.0),
        Binding::Label(label) => 3 << 32 | u64::from(label.raw()),
    };
    (up, env.node, binding)
}

fn is_same_data(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Struct(left), Value::Struct(right)) if std::sync::Arc::ptr_eq(left, right) => true,
        (Value::List(left), Value::List(right)) if std::sync::Arc::ptr_eq(left, right) => true,
        _ => left == right,
    }
}
