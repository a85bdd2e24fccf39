//! What is done for steps that were begun in a workflow that ends early, or that were done in one that goes back.

use bellwether_api::workflow::{StepPhase, WorkflowStepBase};

use super::Pass;
use crate::spec::{Occasion, compensation_name};
use crate::state::StepState;

impl Pass<'_> {
    /// The steps that make good for others and are to be carried out, those for the last step first.
    fn compensations(&self) -> Vec<&WorkflowStepBase> {
        let is_meant = |step: &StepState, occasion: Occasion| match occasion {
            Occasion::Terminate => {
                self.state.terminated
                    && step.first_execute.is_some()
                    && step.phase != StepPhase::Skipped
            }
            Occasion::Rollback => {
                let goes_back = self.state.rolling_back || !self.state.rolled_back_to.is_empty();
                goes_back && step.phase == StepPhase::Succeeded
            }
        };
        let names = self.state.steps.iter().rev().flat_map(|step| {
            let occasions = [Occasion::Terminate, Occasion::Rollback];
            let meant = occasions.into_iter().filter(|it| is_meant(step, *it));
            meant.map(|occasion| compensation_name(&step.name, occasion))
        });
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
