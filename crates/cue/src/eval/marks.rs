//! Which alternatives are defaults, once several disjunctions meet.
//!
//! Disjunctions of a node are taken one after the other; each combines the marks of what is left so far
//! with its own. A side whose defaults were all eliminated counts as unmarked. An alternative that is a
//! disjunction itself is resolved first, and brings the marks of what is left of it. The rules are those
//! of the reference (cue: internal/core/adt/disjunct2.go). Two plain disjunctions combine in any order
//! alike; nested ones, and three or more, may not, here as there.

/// Whether an alternative is a default. The order is that of combination: the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Maybe,
    Default,
    Not,
}

/// The mark of a term, in a disjunction that is marked or not.
pub(super) fn mode(marked: bool, default: bool) -> Mode {
    match (marked, default) {
        (false, _) => Mode::Maybe,
        (true, true) => Mode::Default,
        (true, false) => Mode::Not,
    }
}

/// What is left of the disjunctions taken so far, and how it is marked.
#[derive(Debug, Clone)]
pub(super) struct Branch<T> {
    pub(super) value: T,
    /// The mark by now.
    pub(super) mode: Mode,
    /// The mark of the term that was taken last.
    pub(super) own: Mode,
}

/// A term of a disjunction that could be combined with a branch.
pub(super) enum Outcome<T> {
    One(Branch<T>),
    /// The term was a disjunction, of which several alternatives are left.
    Several {
        mode: Mode,
        own: Mode,
        branches: Vec<Branch<T>>,
    },
}

/// One disjunction, combined with all branches there are.
pub(super) struct Stage<T> {
    outcomes: Vec<Outcome<T>>,
    left_drops: bool,
    right_drops: bool,
}

impl<T> Stage<T> {
    pub(super) fn new() -> Self {
        Self {
            outcomes: Vec::new(),
            left_drops: true,
            right_drops: true,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// A plain term that goes with a branch.
    pub(super) fn plain(&mut self, before: &Branch<impl Sized>, value: T, term: Mode) {
        self.count(before, term);
        self.outcomes.push(Outcome::One(Branch {
            value,
            mode: before.mode,
            own: term,
        }));
    }

    /// A term that is a disjunction itself, with what is left of it; nothing if nothing is.
    pub(super) fn nested(
        &mut self,
        before: &Branch<impl Sized>,
        mut left: Vec<Branch<T>>,
        term: Mode,
    ) {
        if left.len() > 1 {
            self.count(before, term);
            self.outcomes.push(Outcome::Several {
                mode: before.mode,
                own: term,
                branches: left,
            });
        } else if let Some(only) = left.pop() {
            self.count(before, term);
            self.outcomes
                .push(Outcome::One(Branch { own: term, ..only }));
        }
    }

    fn count(&mut self, before: &Branch<impl Sized>, term: Mode) {
        self.left_drops &= before.mode != Mode::Default && before.own != Mode::Default;
        self.right_drops &= term != Mode::Default;
    }

    /// The branches after the disjunction. `add` puts one to those before it, or merges it with an
    /// equal one.
    pub(super) fn finish(
        self,
        mut add: impl FnMut(&mut Vec<Branch<T>>, Branch<T>),
    ) -> Vec<Branch<T>> {
        let unless = |drops: bool, mode: Mode| if drops { Mode::Maybe } else { mode };
        let mut result = Vec::with_capacity(self.outcomes.len());
        let mut marked = false;
        for outcome in self.outcomes {
            match outcome {
                Outcome::One(mut branch) => {
                    let left = unless(self.left_drops, branch.mode);
                    let right = unless(self.right_drops, branch.own);
                    branch.mode = left.max(right);
                    add(&mut result, branch);
                }
                Outcome::Several {
                    mode,
                    own,
                    branches,
                } => {
                    for mut branch in branches {
                        let left = unless(self.left_drops, mode);
                        branch.mode = left.max(own.max(branch.mode));
                        marked |= branch.mode != Mode::Maybe;
                        add(&mut result, branch);
                    }
                }
            }
        }
        if marked {
            for branch in &mut result {
                if branch.mode == Mode::Maybe {
                    branch.mode = Mode::Not;
                }
            }
        }
        result
    }
}
