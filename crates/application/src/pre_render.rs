//! Applications that come from a template: whether one is as rendered, what is written to it, and when to stop.
//!
//! A template renders an Application. Its components and policies are written to the Application that the step belongs to; the
//! workflow never is, since the step would remove itself. Every write restarts the workflow, so a template that renders
//! something else each time would never end: [`compare`] stops it.

use std::collections::BTreeMap;

use bellwether_api::oam::Application;
use bellwether_api::workflow::StepStage;
use bellwether_api::workflow::names::annotation::{PRE_RENDER_HASH, PUBLISH_VERSION};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// How often a template may write the same content within [`WINDOW`].
const MOST_WRITES: usize = 3;
/// How long writes count.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// What is to be done with an Application.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as rendered.
    Settled,
    /// It is as rendered since this execution of the step wrote it: the next one, with the new content, goes on.
    Written,
    /// It is written: a merge patch of the Application.
    Write(Value),
    /// The template never settles; why.
    Unsettled(String),
}

/// What a template wrote last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Written {
    /// A hash of what was rendered from.
    inputs: String,
    /// A hash of what was rendered.
    output: String,
    /// The execution of the step that wrote it.
    session: String,
    /// When it was written, newest last.
    times: Vec<Timestamp>,
}

/// Who compares, and with what.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The name of the step.
    pub step: &'a str,
    /// The execution of the step.
    pub session: &'a str,
    /// A hash of all that was rendered from.
    pub inputs: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// A hash of anything that is JSON.
pub fn hash(value: &Value) -> String {
    let mut digest = format!("{:x}", Sha256::digest(value.to_string()));
    digest.truncate(16);
    digest
}

/// True if an Application has a step before rendering, at the top or in a group, that has this name.
pub fn has_step(application: &Application, name: &str) -> bool {
    pre_render_steps(application).any(|(step, _)| step == name)
}

/// Names and types of the steps that are carried out before rendering. Steps without a name have those that the workflow gives
/// them.
pub fn pre_render_steps(application: &Application) -> impl Iterator<Item = (String, &str)> {
    let steps = application
        .spec
        .workflow
        .iter()
        .flat_map(|workflow| &workflow.steps);
    steps.enumerate().filter_map(|(index, step)| {
        if step.base.stage != Some(StepStage::PreRender) {
            return None;
        }
        let name = if step.base.name.is_empty() {
            format!("step-{index}")
        } else {
            step.base.name.clone()
        };
        Some((name, step.base.step_type.as_str()))
    })
}

/// The Application among rendered objects, without what templates cannot set.
pub fn application_among(objects: &[Value]) -> Result<Value, String> {
    let is_application = |object: &&Value| {
        let group = object["apiVersion"].as_str().unwrap_or_default();
        object["kind"] == "Application" && group.starts_with("core.oam.dev/")
    };
    let mut found = objects.iter().filter(is_application);
    let application = found
        .next()
        .ok_or("the template renders no Application of core.oam.dev")?;
    if found.next().is_some() {
        return Err("the template renders more than one Application".to_owned());
    }
    if !application["spec"]["components"].is_array() {
        return Err("the Application of the template has no components".to_owned());
    }
    Ok(application.clone())
}

/// Components and policies of a spec, as both sides are compared.
fn content(spec: &Value) -> Value {
    let of = |name: &str| match &spec[name] {
        Value::Array(items) => json!(items),
        _ => json!([]),
    };
    json!({"components": of("components"), "policies": of("policies")})
}

/// Compares an Application with what a step rendered.
pub fn compare(application: &Application, rendered: &Value, attempt: Attempt<'_>) -> Verdict {
    let Attempt {
        step,
        session,
        inputs,
        now,
    } = attempt;
    let wanted = content(&rendered["spec"]);
    let mut all = written(application);
    let known = all.remove(step).unwrap_or_default();
    let live = json!({
        "components": application.spec.components,
        "policies": application.spec.policies,
    });
    if live == wanted {
        // A version that is published by name is not carried out again because of what was written.
        let is_published = annotation(application, PUBLISH_VERSION).is_some();
        return if known.session == session && !is_published {
            Verdict::Written
        } else {
            Verdict::Settled
        };
    }
    let output = hash(&wanted);
    let mut times: Vec<Timestamp> = if known.inputs == inputs {
        known.times
    } else {
        Vec::new()
    };
    times.retain(|time| now.duration_since(*time) < WINDOW);
    if known.inputs == inputs && known.output != output {
        return Verdict::Unsettled(
            "the template renders something else each time with the same inputs, so it was stopped; remove what is random \
             or depends on the time"
                .to_owned(),
        );
    }
    if times.len() >= MOST_WRITES {
        let message = format!(
            "the template was written {MOST_WRITES} times within {} minutes, and the Application was changed each time \
             afterwards, so it was stopped; look for another step or program that writes its components or policies",
            WINDOW.as_mins()
        );
        return Verdict::Unsettled(message);
    }
    times.push(now);
    let (inputs, session) = (inputs.to_owned(), session.to_owned());
    all.insert(
        step.to_owned(),
        Written {
            inputs,
            output,
            session,
            times,
        },
    );
    let mut spec = wanted;
    if spec["policies"].as_array().is_some_and(Vec::is_empty) {
        // Removes them.
        spec["policies"] = Value::Null;
    }
    Verdict::Write(json!({
        "metadata": {"annotations": {PRE_RENDER_HASH: json!(all).to_string()}},
        "spec": spec,
    }))
}

/// What templates wrote last, by step. An annotation that somebody else changed counts for nothing.
fn written(application: &Application) -> BTreeMap<String, Written> {
    let text = annotation(application, PRE_RENDER_HASH);
    let read = text.and_then(|text| serde_json::from_str(text).ok());
    read.unwrap_or_default()
}

fn annotation<'a>(application: &'a Application, key: &str) -> Option<&'a String> {
    let annotations = application.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(key))
}

/// A hash of what a template was rendered from.
pub fn inputs(
    source: &str,
    digest: &str,
    path: &str,
    parameters: Option<&Map<String, Value>>,
) -> String {
    hash(&json!([source, digest, path, parameters]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(value: Value) -> Application {
        let mut object = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "metadata": {"name": "a"}});
        object["spec"] = value;
        serde_json::from_value(object).unwrap()
    }

    fn rendered(image: &str) -> Value {
        json!({"spec": {
            "components": [{"name": "web", "type": "webservice", "properties": {"image": image}}],
            "workflow": {"steps": []},
        }})
    }

    /// An Application after a merge patch of [`compare`].
    fn after(application: &Application, patch: &Value) -> Application {
        let mut object = serde_json::to_value(application).unwrap();
        object["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
        object["spec"]["components"] = patch["spec"]["components"].clone();
        assert!(patch["spec"]["policies"].is_null());
        serde_json::from_value(object).unwrap()
    }

    fn time(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minutes * 60).unwrap()
    }

    fn look(
        application: &Application,
        image: &str,
        step: &str,
        inputs: &str,
        minutes: i64,
    ) -> Verdict {
        let attempt = Attempt {
            step,
            session: "another",
            inputs,
            now: time(minutes),
        };
        compare(application, &rendered(image), attempt)
    }

    #[track_caller]
    fn write(application: &Application, image: &str, inputs: &str, minutes: i64) -> Application {
        match look(application, image, "step-0", inputs, minutes) {
            Verdict::Write(patch) => after(application, &patch),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_settled_and_the_workflow_stays() {
        let workflow = json!({"steps": [{"type": "helm-template", "stage": "pre-render"}]});
        let before = application(json!({"components": [], "workflow": workflow}));
        let written = write(&before, "one", "i", 0);
        assert_eq!(written.spec.workflow, before.spec.workflow);
        // The execution that wrote it leaves the rest to the next one.
        assert_eq!(look(&written, "one", "step-0", "i", 1), Verdict::Written);
        let next = Attempt {
            step: "step-0",
            session: "next",
            inputs: "i",
            now: time(1),
        };
        assert_eq!(compare(&written, &rendered("one"), next), Verdict::Settled);
        assert!(has_step(&written, "step-0") && !has_step(&written, "step-1"));
    }

    #[test]
    fn a_template_that_renders_something_else_each_time_is_stopped() {
        let written = write(&application(json!({"components": []})), "one", "i", 0);
        let verdict = look(&written, "two", "step-0", "i", 0);
        assert!(matches!(verdict, Verdict::Unsettled(message) if message.contains("random")));
        // With other inputs it may.
        write(&written, "two", "j", 0);
    }

    #[test]
    fn what_others_change_is_written_again_but_not_for_long() {
        let empty = application(json!({"components": []}));
        let mut current = write(&empty, "one", "i", 0);
        for minute in 1..3 {
            current.spec.components.clear();
            current = write(&current, "one", "i", minute);
        }
        current.spec.components.clear();
        let verdict = look(&current, "one", "step-0", "i", 3);
        assert!(matches!(verdict, Verdict::Unsettled(message) if message.contains("3 times")));
        // Later it may again.
        write(&current, "one", "i", 20);
    }

    #[test]
    fn steps_that_undo_each_other_are_stopped() {
        let mut current = application(json!({"components": []}));
        let mut writes = 0;
        let stopped = (0..20).any(|round| {
            let (step, image) = if round % 2 == 0 {
                ("a", "one")
            } else {
                ("b", "two")
            };
            match look(&current, image, step, "i", 0) {
                Verdict::Write(patch) => {
                    writes += 1;
                    current = after(&current, &patch);
                    false
                }
                Verdict::Settled | Verdict::Written => false,
                Verdict::Unsettled(_) => true,
            }
        });
        assert!(stopped && writes == 6, "{writes}");
    }

    #[test]
    fn one_application_is_taken_from_what_is_rendered() {
        let object = |name: &str, spec: Value| json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "metadata": {"name": name}, "spec": spec});
        let good = object("a", json!({"components": []}));
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(
            application_among(&[other.clone(), good.clone()]),
            Ok(good.clone())
        );
        assert!(
            application_among(&[other])
                .unwrap_err()
                .contains("no Application")
        );
        assert!(
            application_among(&[good.clone(), good])
                .unwrap_err()
                .contains("more than one")
        );
        assert!(
            application_among(&[object("a", json!({}))])
                .unwrap_err()
                .contains("no components")
        );
    }
}
