//! Steps that consist of an object: it is applied, and says itself when the step is done.

use bellwether_api::workflow::names::{annotation, condition};
use bellwether_api::workflow::{StepReason, StepResource, WorkflowStepBase};
use serde_json::{Value, json};

use super::finish::Outcome;
use super::{Pass, Request};
use crate::event::Event;
use crate::session::{Call, Session};

impl Pass<'_> {
    /// Asks for the object of a step to be applied.
    pub(super) fn begin_object(
        &mut self,
        step: &WorkflowStepBase,
        session: Session,
        mut object: Value,
    ) {
        let id = self.id_of(&step.name);
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().unwrap_or_default().is_empty() {
            metadata["name"] = json!(format!("{}-{}", self.spec.name, step.name));
        }
        if metadata["namespace"]
            .as_str()
            .unwrap_or_default()
            .is_empty()
        {
            metadata["namespace"] = json!(self.spec.namespace);
        }
        let of_run = |key: &str| self.spec.context.get(key).cloned().unwrap_or_default();
        let known = json!({
            "appName": of_run("appName"),
            "namespace": self.spec.namespace,
            "appRevision": of_run("appRevision"),
            "workflowName": of_run("workflowName"),
            "stepName": step.name,
            "stepSessionID": id,
            // Everything that a revision is rendered to is in a ConfigMap of its name.
            "resourcesConfigMap": of_run("appRevision"),
            "vars": self.state.vars,
        });
        metadata["annotations"][annotation::WORKFLOW_CONTEXT] = json!(known.to_string());
        let call = Call::object(&object);
        self.requests.push(Request {
            memory: self.memory_of(&id),
            step: step.name.clone(),
            id,
            call: call.clone(),
            is_ambiguous: false,
        });
        self.sessions
            .insert(step.name.clone(), (session, Some(call)));
    }

    /// Takes in what the object of a step says.
    pub(super) fn complete_object(
        &mut self,
        step: &WorkflowStepBase,
        mut session: Session,
        live: &Value,
    ) {
        session.fill_object(live);
        let outcome = progress(live);
        self.finish(step, Some(session), outcome);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = StepResource {
            api_version: text(&live["apiVersion"]),
            kind: text(&live["kind"]),
            name: text(&live["metadata"]["name"]),
            namespace: text(&live["metadata"]["namespace"]),
            ..StepResource::default()
        };
        let known = self
            .state
            .step(&step.name)
            .and_then(|it| it.resource.as_ref());
        if known != Some(&resource) {
            self.push(Event::ResourceRecorded {
                step: step.name.clone(),
                resource,
            });
        }
    }
}

/// What an object says about its step.
fn progress(live: &Value) -> Outcome {
    let conditions = live["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|known| known["type"] == condition::WORKFLOW_PROGRESS);
    let generation = &live["metadata"]["generation"];
    let is_observed = generation.is_null() || live["status"]["observedGeneration"] == *generation;
    let message = found
        .and_then(|found| found["message"].as_str())
        .unwrap_or_default();
    match found.filter(|_| is_observed) {
        Some(found) if found["status"] == "True" && found["reason"] == condition::SUCCEEDED => {
            Outcome::Succeeded
        }
        Some(found) if found["status"] == "False" && found["reason"] == condition::FAILED => {
            Outcome::failed(StepReason::Action, message.to_owned())
        }
        _ if message.is_empty() => Outcome::Waiting(format!(
            "waiting for {} {}",
            live["kind"].as_str().unwrap_or_default(),
            live["metadata"]["name"].as_str().unwrap_or_default()
        )),
        _ => Outcome::Waiting(message.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(observed: i64, status: &str, reason: &str, expected: &str) {
        let live = json!({
            "kind": "Report", "metadata": {"name": "r", "generation": 2},
            "status": {"observedGeneration": observed, "conditions": [
                {"type": condition::WORKFLOW_PROGRESS, "status": status, "reason": reason, "message": "half"}]},
        });
        assert_eq!(format!("{:?}", progress(&live)), expected);
    }

    #[test]
    fn an_object_says_when_its_step_is_done() {
        check(2, "True", condition::SUCCEEDED, "Succeeded");
        check(1, "True", condition::SUCCEEDED, "Waiting(\"half\")");
        check(
            2,
            "False",
            condition::FAILED,
            "Failed { reason: Action, message: \"half\" }",
        );
        check(2, "False", "Running", "Waiting(\"half\")");
        let silent = json!({"kind": "Report", "metadata": {"name": "r", "generation": 1}});
        assert_eq!(
            format!("{:?}", progress(&silent)),
            "Waiting(\"waiting for Report r\")"
        );
    }
}
