//! When the workflow of an application is carried out again because an annotation asks for it.

use bellwether_api::meta::Time;
use bellwether_api::oam::names::annotation;
use bellwether_api::oam::{Application, ApplicationStatus};
use bellwether_json::time::format_time;
use bellwether_workflow::{backoff, duration};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What an application says about restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Restart {
    /// When the workflow is carried out again.
    pub(super) at: Option<Timestamp>,
    /// What identifies the restart that is due; empty if none is.
    pub(super) token: String,
    /// Whether the annotation has been taken in, and goes.
    pub(super) is_taken_in: bool,
    /// What is wrong with the annotation.
    pub(super) problem: Option<String>,
}

/// What the annotation of an application asks for, and whether it is time.
pub(super) fn decide(application: &Application, now: Timestamp) -> Restart {
    let asked = asked(application);
    let status = application.status.as_ref();
    let workflow = status.and_then(|status| status.workflow.as_ref());
    let ended = workflow.and_then(|workflow| workflow.end_time.as_ref());
    let ended = ended.map(|time| time.0);
    let mut restart = Restart {
        at: status.and_then(scheduled),
        ..Restart::default()
    };
    match asked {
        None => {}
        Some("true") => {
            restart.at = Some(now);
            restart.is_taken_in = true;
        }
        Some(text) => match (text.parse::<Timestamp>(), duration::parse(text)) {
            (Ok(time), _) => {
                restart.at = Some(time);
                restart.is_taken_in = true;
            }
            (_, Ok(every)) => restart.at = ended.map(|ended| backoff::add(ended, every)),
            _ => {
                restart.problem = Some(format!(
                    "annotation {}: {text:?} is neither true, nor a time such as 2026-01-02T15:04:05Z, nor a duration such as 24h",
                    annotation::RESTART_WORKFLOW
                ));
            }
        },
    }
    let is_finished = workflow.is_some_and(|workflow| workflow.finished);
    let is_later = |at: &Timestamp| ended.is_none_or(|ended| at.as_second() >= ended.as_second());
    if let Some(at) = restart
        .at
        .filter(|at| is_finished && *at <= now && is_later(at))
    {
        restart.token = format!("restart-at-{}", format_time(at));
    }
    restart
}

/// What the annotation says.
fn asked(application: &Application) -> Option<&str> {
    let annotations = application.metadata.annotations.as_ref()?;
    let asked = annotations.get(annotation::RESTART_WORKFLOW);
    asked.map(String::as_str)
}

/// When a workflow with this status is carried out again because the annotation asks for that after each end.
pub(super) fn recurring(
    application: &Application,
    status: &ApplicationStatus,
) -> Option<Timestamp> {
    let every = duration::parse(asked(application)?).ok()?;
    let workflow = status.workflow.as_ref().filter(|it| it.finished)?;
    Some(backoff::add(workflow.end_time.as_ref()?.0, every))
}

fn scheduled(status: &ApplicationStatus) -> Option<Timestamp> {
    let at = status.workflow_restart_scheduled_at.as_ref();
    at.map(|at| at.0)
}

/// A patch of a status that says when the workflow is carried out again.
pub(super) fn scheduled_at(at: Timestamp) -> Value {
    json!({"workflowRestartScheduledAt": format_time(at)})
}

/// Notes in a status when the workflow is carried out again.
pub(super) fn write(restart: &Restart, status: &mut ApplicationStatus) {
    let at = restart.at.filter(|_| restart.token.is_empty());
    // As it is stored: otherwise it would seem to change.
    let whole = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
    status.workflow_restart_scheduled_at = at.map(|at| Time(whole(at)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn application(
        annotation: Option<&str>,
        finished: bool,
        scheduled: Option<i64>,
    ) -> Application {
        let mut status =
            json!({"workflow": {"finished": finished, "endTime": "1970-01-01T00:01:40Z"}});
        if let Some(scheduled) = scheduled {
            status["workflowRestartScheduledAt"] = json!(format_time(at(scheduled)));
        }
        let annotations = annotation.map(|text| json!({annotation::RESTART_WORKFLOW: text}));
        serde_json::from_value(json!({
            "metadata": {"name": "shop", "annotations": annotations},
            "spec": {"components": []},
            "status": status,
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(
        annotation: Option<&str>,
        finished: bool,
        scheduled: Option<i64>,
        due: Option<i64>,
        taken: bool,
    ) {
        let restart = decide(&application(annotation, finished, scheduled), at(200));
        let expected = due.map(|due| format!("restart-at-{}", format_time(at(due))));
        assert_eq!(restart.token, expected.unwrap_or_default());
        assert_eq!(restart.is_taken_in, taken);
    }

    #[test]
    fn a_finished_workflow_restarts_when_it_is_time() {
        check(None, true, None, None, false);
        check(Some("true"), true, None, Some(200), true);
        check(Some("true"), false, None, None, true);
        check(Some("1970-01-01T00:03:00Z"), true, None, Some(180), true);
        check(Some("1970-01-01T00:05:00Z"), true, None, None, true);
        check(None, true, Some(150), Some(150), false);
        // A time before the workflow ended is over.
        check(None, true, Some(50), None, false);
        check(Some("90s"), true, None, Some(190), false);
        check(Some("2m"), true, None, None, false);
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let restart = decide(&application(Some("soon"), true, None), at(200));
        assert!(restart.problem.unwrap().contains("soon"));
        assert_eq!((restart.at, restart.token), (None, String::new()));
    }
}
