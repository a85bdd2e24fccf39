//! What is done for steps that were begun in a workflow that ends early.

use bellwether_api::workflow::{StepPhase, WorkflowStepBase};

use super::Pass;
use crate::spec::compensation_name;

impl Pass<'_> {
    /// The steps that make good for others and are to be carried out: those for steps that were begun, the last one first.
    fn compensations(&self) -> Vec<&WorkflowStepBase> {
        if !self.state.terminated || self.spec.compensations.is_empty() {
            return Vec::new();
        }
        let begun = self
            .state
            .steps
            .iter()
            .rev()
            .filter(|step| step.first_execute.is_some() && step.phase != StepPhase::Skipped);
        let names = begun.map(|step| compensation_name(&step.name));
        let spec = self.spec;
        let find = |name: String| spec.compensations.iter().find(|it| it.name == name);
        names.filter_map(find).collect()
    }

    /// Whether everything is made good that has to be.
    pub(super) fn is_compensated(&self) -> bool {
        let mut steps = self.compensations().into_iter();
        steps.all(|step| self.is_finished(&step.name))
    }

    /// Makes good for steps, one after the other, once all of them are finished.
    pub(super) fn compensate(&mut self) {
        let spec = self.spec;
        let mut steps = spec.steps.iter();
        if !self.sessions.is_empty() || !steps.all(|step| self.is_finished(&step.base.name)) {
            return;
        }
        let names: Vec<String> = self
            .compensations()
            .into_iter()
            .map(|step| step.name.clone())
            .collect();
        for name in names {
            let Some((step, _)) = spec.step(&name) else {
                continue;
            };
            if self.is_finished(&name) {
                continue;
            }
            if !self.attempted.contains(&name) {
                if self.is_due(&name) {
                    self.execute(step, None);
                } else {
                    self.attempted.insert(name.clone());
                }
            }
            if !self.is_finished(&name) {
                return;
            }
        }
    }
}
