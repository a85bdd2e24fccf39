//! What a kubelet does for a pod: start its containers, end and restart them, let it go.
//!
//! All containers of a pod do the same at the same time; what they do is their [`Behaviour`]. The
//! stage that a pod is in can be read from its status, so nothing is lost by a restart.

mod conditions;
mod container;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bellwether_api::simulator::INVALID_ANNOTATION;
use bellwether_api::workload::pod::{
    COMPLETED, CONTAINER_CREATING, CRASH_LOOP_BACK_OFF, ERROR, FAILED, IMAGE_PULL_BACK_OFF,
    IMAGE_PULL_ERROR, PENDING, POD_INITIALIZING, RUNNING, SUCCEEDED,
};
use bellwether_json::duration::GoDuration;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, HostIP, Pod, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::behaviour::{Behaviour, Failure};
use crate::kind::{Reference, is_deleting, key_of, uid_of};
use crate::plan::{Action, Event, Plan, Severity, Source};
use crate::time::after;
use container::{running, terminated, waiting};

const COMPONENT: &str = "kubelet";
/// From the moment a node has a pod until its containers run: short, so that one need not wait, but
/// long enough to be seen.
const START: Duration = Duration::from_millis(150);
/// How long a container takes to end when it is asked to.
const STOP: Duration = Duration::from_millis(100);
/// How long a container lives that is going to crash.
const CRASH: Duration = Duration::from_millis(100);
/// How long a failed pull is shown before the kubelet says that it waits.
const PULL_ERROR: Duration = Duration::from_secs(1);
/// The first wait before something is tried again; doubled each time.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// The longest wait.
const LAST_BACK_OFF: Duration = Duration::from_mins(5);

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) behaviour: &'a Behaviour,
    /// When its status was last changed.
    pub(crate) since: Timestamp,
    /// When its containers were asked to end.
    pub(crate) stopping_since: Option<Timestamp>,
    /// The address that it gets when it starts.
    pub(crate) address: &'a str,
    /// The address of its node.
    pub(crate) host: &'a str,
    pub(crate) now: Timestamp,
}

/// Where a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its node has not looked at it yet.
    New,
    Starting,
    PullFailed,
    PullBackOff,
    Running,
    BackOff,
    /// All containers have ended for good.
    Ended,
}

/// What has to be done for a pod that is on a node.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    if is_deleting(&view.pod.metadata) {
        stop(view, &mut plan);
        return plan;
    }
    match stage(view.pod) {
        Stage::New => accept(view, &mut plan),
        Stage::Starting => at(view, &mut plan, START, |plan| start(view, plan, None)),
        Stage::PullFailed if view.behaviour.failure != Some(Failure::Image) => {
            start(view, &mut plan, None);
        }
        Stage::PullFailed => at(view, &mut plan, PULL_ERROR, |plan| {
            pull_back_off(view, plan);
        }),
        Stage::PullBackOff => pull_again(view, &mut plan),
        Stage::Running => run(view, &mut plan),
        Stage::BackOff => {
            let wait = back_off(restarts(view.pod));
            at(view, &mut plan, wait, |plan| start(view, plan, None));
        }
        Stage::Ended => {}
    }
    plan
}

/// Does something once that much time has passed since the last change.
fn at(view: &View<'_>, plan: &mut Plan, wait: Duration, act: impl FnOnce(&mut Plan)) {
    let due = after(view.since, wait);
    if view.now >= due {
        act(plan);
    } else {
        plan.wake_at(due);
    }
}

fn stage(pod: &Pod) -> Stage {
    let Some(status) = pod
        .status
        .as_ref()
        .filter(|status| status.start_time.is_some())
    else {
        return Stage::New;
    };
    if matches!(status.phase.as_deref(), Some(SUCCEEDED | FAILED)) {
        return Stage::Ended;
    }
    let first = status.container_statuses.iter().flatten().next();
    let Some(state) = first.and_then(|status| status.state.as_ref()) else {
        return Stage::Starting;
    };
    let reason = state
        .waiting
        .as_ref()
        .and_then(|waiting| waiting.reason.as_deref());
    match reason {
        _ if state.running.is_some() => Stage::Running,
        Some(IMAGE_PULL_ERROR) => Stage::PullFailed,
        Some(IMAGE_PULL_BACK_OFF) => Stage::PullBackOff,
        Some(CRASH_LOOP_BACK_OFF) => Stage::BackOff,
        _ => Stage::Starting,
    }
}

/// The kubelet has seen the pod.
fn accept(view: &View<'_>, plan: &mut Plan) {
    let mut status = view.pod.status.clone().unwrap_or_default();
    status.phase = Some(PENDING.to_owned());
    status.host_ip = Some(view.host.to_owned());
    status.host_ips = Some(vec![HostIP {
        ip: view.host.to_owned(),
    }]);
    status.start_time = Some(Time(view.now));
    let has_init = container::init(view.pod).next().is_some();
    let reason = if has_init {
        POD_INITIALIZING
    } else {
        CONTAINER_CREATING
    };
    container::set_all(view.pod, &mut status, |_| waiting(reason, None), false, 0);
    container::set_init(view.pod, &mut status, None);
    write(view, plan, status);
    for problem in &view.behaviour.problems {
        let subject = Reference::to(view.pod);
        plan.record_event(Event::warning(
            subject,
            COMPONENT,
            INVALID_ANNOTATION,
            problem.as_str(),
        ));
    }
}

/// Containers start, unless their image cannot be had. `ended` is how they ended just before.
fn start(view: &View<'_>, plan: &mut Plan, ended: Option<&ContainerState>) {
    let mut status = view.pod.status.clone().unwrap_or_default();
    if view.behaviour.failure == Some(Failure::Image)
        && stage(view.pod) != Stage::BackOff
        && ended.is_none()
    {
        pull_fails(view, plan, status);
        return;
    }
    let first_start = status.pod_ip.is_none();
    let restarts = if stage(view.pod) == Stage::BackOff || ended.is_some() {
        restarts(view.pod).saturating_add(1)
    } else {
        0
    };
    if first_start {
        status.pod_ip = Some(view.address.to_owned());
        status.pod_ips = Some(vec![PodIP {
            ip: view.address.to_owned(),
        }]);
    }
    status.phase = Some(RUNNING.to_owned());
    let ready =
        view.behaviour.ready_after.is_zero() && view.behaviour.failure != Some(Failure::Crash);
    container::set_all(
        view.pod,
        &mut status,
        |_| running(view.now),
        ready,
        restarts,
    );
    if let Some(ended) = ended {
        container::set_last_state(&mut status, ended);
    }
    container::set_init(view.pod, &mut status, Some(view.now));
    write(view, plan, status);
    container::record_start(view.pod, COMPONENT, first_start, START, plan);
}

fn pull_fails(view: &View<'_>, plan: &mut Plan, mut status: PodStatus) {
    container::set_all(
        view.pod,
        &mut status,
        |container| waiting(IMAGE_PULL_ERROR, Some(container::pull_error(container))),
        false,
        0,
    );
    write(view, plan, status);
    for container in container::main(view.pod) {
        let image = container::image(container);
        let error = container::pull_error(container);
        let mut record_event = |severity, reason, message: String| {
            plan.record_event(container::event(
                view.pod, container, COMPONENT, severity, reason, message,
            ));
        };
        record_event(
            Severity::Normal,
            "Pulling",
            format!("Pulling image {image:?}"),
        );
        record_event(
            Severity::Warning,
            "Failed",
            format!("Failed to pull image {image:?}: {error}"),
        );
        record_event(
            Severity::Warning,
            "Failed",
            format!("Error: {IMAGE_PULL_ERROR}"),
        );
    }
}

fn pull_back_off(view: &View<'_>, plan: &mut Plan) {
    let mut status = view.pod.status.clone().unwrap_or_default();
    let message = |image: &str| format!("Back-off pulling image {image:?}");
    container::set_all(
        view.pod,
        &mut status,
        |container| {
            let error = container::pull_error(container);
            let text = format!(
                "{}: {IMAGE_PULL_ERROR}: {error}",
                message(container::image(container))
            );
            waiting(IMAGE_PULL_BACK_OFF, Some(text))
        },
        false,
        0,
    );
    write(view, plan, status);
    for container in container::main(view.pod) {
        let mut record_event = |severity, reason, message: String| {
            plan.record_event(container::event(
                view.pod, container, COMPONENT, severity, reason, message,
            ));
        };
        record_event(
            Severity::Normal,
            "BackOff",
            message(container::image(container)),
        );
        record_event(
            Severity::Warning,
            "Failed",
            format!("Error: {IMAGE_PULL_BACK_OFF}"),
        );
    }
}

/// A kubelet tries again after 10, 30, 70, … seconds; once nothing is wrong any more we do so at
/// once, since somebody is waiting for it.
fn pull_again(view: &View<'_>, plan: &mut Plan) {
    if view.behaviour.failure != Some(Failure::Image) {
        start(view, plan, None);
        return;
    }
    let started = view
        .pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref());
    let mut next = started.map_or(view.since, |time| time.0);
    let mut wait = FIRST_BACK_OFF;
    while next <= view.since {
        next = after(next, wait);
        wait = wait.saturating_mul(2).min(LAST_BACK_OFF);
    }
    if view.now >= next {
        start(view, plan, None);
    } else {
        plan.wake_at(next);
    }
}

/// Containers run: they become ready, and may end.
fn run(view: &View<'_>, plan: &mut Plan) {
    let started = started_at(view);
    let crashes = view.behaviour.failure == Some(Failure::Crash);
    let life = if crashes {
        Some(view.behaviour.run_for.unwrap_or(CRASH))
    } else {
        view.behaviour.run_for
    };
    if let Some(end) = life.map(|life| after(started, life)) {
        if view.now >= end {
            end_containers(view, plan, started);
            return;
        }
        plan.wake_at(end);
    }
    let ready_at = after(started, view.behaviour.ready_after);
    let mut status = view.pod.status.clone().unwrap_or_default();
    if !crashes && view.now >= ready_at {
        for status in status.container_statuses.iter_mut().flatten() {
            status.ready = true;
        }
    } else if !crashes {
        plan.wake_at(ready_at);
    }
    // Readiness gates are set by others, and have to be taken note of.
    write(view, plan, status);
}

/// When the containers started, as precisely as is known.
fn started_at(view: &View<'_>) -> Timestamp {
    let status = view.pod.status.as_ref();
    let first = status.and_then(|status| status.container_statuses.iter().flatten().next());
    let running = first.and_then(|first| first.state.as_ref()?.running.as_ref());
    let written = running.and_then(|running| Some(running.started_at.as_ref()?.0));
    match written {
        // What is written is a whole second; the last change may have been a later one.
        Some(written) if view.since >= after(written, Duration::from_secs(1)) => written,
        _ => view.since,
    }
}

fn end_containers(view: &View<'_>, plan: &mut Plan, started: Timestamp) {
    let failed = matches!(view.behaviour.failure, Some(Failure::Crash | Failure::Job));
    let end = ContainerStateTerminated {
        exit_code: if failed {
            view.behaviour.exit_code.unwrap_or(1)
        } else {
            0
        },
        reason: Some(if failed { ERROR } else { COMPLETED }.to_owned()),
        started_at: Some(Time(started)),
        finished_at: Some(Time(view.now)),
        ..ContainerStateTerminated::default()
    };
    let spec = view.pod.spec.as_ref();
    let policy = spec
        .and_then(|spec| spec.restart_policy.as_deref())
        .unwrap_or("Always");
    let restart = match policy {
        "Never" => false,
        "OnFailure" => failed,
        _ => true,
    };
    let ended = terminated(end);
    let count = restarts(view.pod);
    if restart && count == 0 {
        // The first time a kubelet does not wait.
        start(view, plan, Some(&ended));
        return;
    }
    if restart {
        wait_to_restart(view, plan, &ended, count);
        return;
    }
    let mut status = view.pod.status.clone().unwrap_or_default();
    let phase = if failed { FAILED } else { SUCCEEDED };
    status.phase = Some(phase.to_owned());
    container::set_all(view.pod, &mut status, |_| ended.clone(), false, count);
    write(view, plan, status);
}

/// Containers that ended wait before they are started again.
fn wait_to_restart(view: &View<'_>, plan: &mut Plan, ended: &ContainerState, count: i32) {
    let seconds = i64::try_from(back_off(count).as_secs()).unwrap_or(i64::MAX);
    let wait = GoDuration::from_secs(seconds);
    let pod = full_name(view.pod);
    let mut status = view.pod.status.clone().unwrap_or_default();
    let state = |container: &Container| {
        let name = &container.name;
        let message = format!("back-off {wait} restarting failed container={name} pod={pod}");
        waiting(CRASH_LOOP_BACK_OFF, Some(message))
    };
    container::set_all(view.pod, &mut status, state, false, count);
    container::set_last_state(&mut status, ended);
    write(view, plan, status);
    for container in container::main(view.pod) {
        let name = &container.name;
        let message = format!("Back-off restarting failed container {name} in pod {pod}");
        plan.record_event(container::event(
            view.pod,
            container,
            COMPONENT,
            Severity::Warning,
            "BackOff",
            message,
        ));
    }
}

/// Containers are asked to end; when they have, the pod may go.
fn stop(view: &View<'_>, plan: &mut Plan) {
    let Some(since) = view.stopping_since else {
        if stage(view.pod) == Stage::Running {
            for container in container::main(view.pod) {
                let message = format!("Stopping container {}", container.name);
                plan.record_event(container::event(
                    view.pod,
                    container,
                    COMPONENT,
                    Severity::Normal,
                    "Killing",
                    message,
                ));
            }
        }
        plan.wake_at(after(view.now, STOP));
        return;
    };
    let grace = view.pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let end = after(since, STOP.min(grace));
    if view.now < end {
        plan.wake_at(end);
        return;
    }
    let held = view
        .pod
        .metadata
        .finalizers
        .as_ref()
        .is_some_and(|list| !list.is_empty());
    if held && stage(view.pod) != Stage::Ended {
        // Somebody wants to see how it ended before it goes.
        let mut status = view.pod.status.clone().unwrap_or_default();
        status.phase = Some(FAILED.to_owned());
        let end = ContainerStateTerminated {
            // Ended by SIGTERM.
            exit_code: 143,
            reason: Some(ERROR.to_owned()),
            started_at: Some(Time(started_at(view))),
            finished_at: Some(Time(view.now)),
            ..ContainerStateTerminated::default()
        };
        container::set_all(
            view.pod,
            &mut status,
            |_| terminated(end.clone()),
            false,
            restarts(view.pod),
        );
        write(view, plan, status);
    }
    if view.pod.metadata.deletion_grace_period_seconds != Some(0) || !held {
        plan.actions.push(Action::Delete {
            subject: Reference::to(view.pod),
            grace: Some(0),
        });
    }
}

/// Writes a status with the conditions that go with it, if it differs.
fn write(view: &View<'_>, plan: &mut Plan, mut status: PodStatus) {
    status.observed_generation = view.pod.metadata.generation;
    conditions::set(view.pod, &mut status, view.now);
    let old = view.pod.status.clone().unwrap_or_default();
    plan.status(view.pod, &old, &status);
}

fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let first = status.and_then(|status| status.container_statuses.iter().flatten().next());
    first.map_or(0, |first| first.restart_count)
}

/// How long a container waits before it is started again.
fn back_off(restarts: i32) -> Duration {
    let doublings = u32::try_from(restarts.saturating_sub(1))
        .unwrap_or(0)
        .min(16);
    FIRST_BACK_OFF
        .saturating_mul(1 << doublings)
        .min(LAST_BACK_OFF)
}

/// A pod in a kubelet's messages: `name_namespace(uid)`.
fn full_name(pod: &Pod) -> String {
    let key = key_of(pod);
    format!("{}_{}({})", key.name, key.namespace, uid_of(pod))
}

/// The component of an event, on the node of a pod.
fn source(pod: &Pod, component: &'static str) -> Source {
    Source {
        component,
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
    }
}
