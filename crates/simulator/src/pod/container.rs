//! Containers of a pod: their statuses and events.

use std::time::Duration;

use bellwether_api::workload::pod::{COMPLETED, POD_INITIALIZING};
use bellwether_json::duration::GoDuration;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, Pod, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::hash::hexadecimal;
use crate::kind::{Reference, uid_of};
use crate::plan::{Event, Plan, Severity};

/// The containers that a pod is there for.
pub(super) fn main(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.iter().flat_map(|spec| &spec.containers)
}

/// The containers that run before, and those that run beside.
pub(super) fn init(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
}

/// The image that a container asks for.
pub(super) fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

/// Why an image cannot be pulled, as containerd says it.
pub(super) fn pull_error(container: &Container) -> String {
    let full = full_image(image(container));
    format!(
        "failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {full}: not found"
    )
}

pub(super) fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        }),
        ..ContainerState::default()
    }
}

pub(super) fn running(since: Timestamp) -> ContainerState {
    ContainerState {
        running: Some(ContainerStateRunning {
            started_at: Some(Time(since)),
        }),
        ..ContainerState::default()
    }
}

pub(super) fn terminated(end: ContainerStateTerminated) -> ContainerState {
    ContainerState {
        terminated: Some(end),
        ..ContainerState::default()
    }
}

/// Gives all containers a state; what they did before is kept.
pub(super) fn set_all(
    pod: &Pod,
    status: &mut PodStatus,
    state: impl Fn(&Container) -> ContainerState,
    ready: bool,
    restarts: i32,
) {
    let before = status.container_statuses.take().unwrap_or_default();
    let statuses = main(pod).map(|container| {
        let last = before.iter().find(|found| found.name == container.name);
        let last = last.and_then(|found| found.last_state.clone());
        container_status(pod, container, state(container), last, ready, restarts)
    });
    status.container_statuses = Some(statuses.collect());
}

/// Remembers how the containers last ended.
pub(super) fn set_last_state(status: &mut PodStatus, ended: &ContainerState) {
    for status in status.container_statuses.iter_mut().flatten() {
        status.last_state = Some(ended.clone());
    }
}

/// Init containers wait, or have ended at that time; sidecars run from then on.
pub(super) fn set_init(pod: &Pod, status: &mut PodStatus, done: Option<Timestamp>) {
    if status.pod_ip.is_some() && done.is_some() && has_initialized(status) {
        return;
    }
    let statuses: Vec<_> = init(pod)
        .map(|container| {
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            let state = match done {
                None => waiting(POD_INITIALIZING, None),
                Some(time) if is_sidecar => running(time),
                Some(time) => terminated(ContainerStateTerminated {
                    reason: Some(COMPLETED.to_owned()),
                    started_at: Some(Time(time)),
                    finished_at: Some(Time(time)),
                    ..ContainerStateTerminated::default()
                }),
            };
            container_status(pod, container, state, None, done.is_some(), 0)
        })
        .collect();
    status.init_container_statuses = (!statuses.is_empty()).then_some(statuses);
}

/// Whether all init containers have done their part.
pub(super) fn has_initialized(status: &PodStatus) -> bool {
    let statuses = status.init_container_statuses.iter().flatten();
    statuses.into_iter().all(|status| status.ready)
}

fn container_status(
    pod: &Pod,
    container: &Container,
    state: ContainerState,
    last: Option<ContainerState>,
    ready: bool,
    restarts: i32,
) -> ContainerStatus {
    let waits = state.waiting.is_some();
    let image = image(container);
    let mut id = None;
    if !waits || restarts > 0 {
        let seed = format!("{}/{}/{restarts}", uid_of(pod), container.name);
        id = Some(format!("containerd://{}", hexadecimal(&seed)));
    }
    let mut state = state;
    if let Some(end) = &mut state.terminated {
        end.container_id.clone_from(&id);
    }
    ContainerStatus {
        name: container.name.clone(),
        image: if waits {
            image.to_owned()
        } else {
            full_image(image)
        },
        image_id: if waits {
            String::new()
        } else {
            format!(
                "{}@sha256:{}",
                repository(&full_image(image)),
                hexadecimal(image)
            )
        },
        container_id: id,
        ready,
        started: Some(state.running.is_some()),
        restart_count: restarts,
        state: Some(state),
        last_state: Some(last.unwrap_or_default()),
        ..ContainerStatus::default()
    }
}

/// An image with its registry and tag spelled out.
fn full_image(image: &str) -> String {
    let (host, rest) = match image.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
            (host, rest.to_owned())
        }
        Some(_) => ("docker.io", image.to_owned()),
        None => ("docker.io", format!("library/{image}")),
    };
    let tagged = rest.contains(':') || rest.contains('@');
    let tag = if tagged { "" } else { ":latest" };
    format!("{host}/{rest}{tag}")
}

/// An image without its tag or digest.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// An event about a container.
pub(super) fn event(
    pod: &Pod,
    container: &Container,
    component: &'static str,
    severity: Severity,
    reason: &'static str,
    message: String,
) -> Event {
    let is_init = init(pod).any(|found| found.name == container.name);
    let list = if is_init {
        "initContainers"
    } else {
        "containers"
    };
    Event {
        subject: Reference::to(pod),
        severity,
        reason,
        message,
        source: super::source(pod, component),
        field_path: Some(format!("spec.{list}{{{}}}", container.name)),
    }
}

/// Tells that the containers have been started.
pub(super) fn record_start(
    pod: &Pod,
    component: &'static str,
    first: bool,
    took: Duration,
    plan: &mut Plan,
) {
    let took = GoDuration::from_nanos(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
    let before = first.then(|| init(pod)).into_iter().flatten();
    for container in before.chain(main(pod)) {
        let image = image(container);
        let mut record_event = |reason, message: String| {
            plan.record_event(event(
                pod,
                container,
                component,
                Severity::Normal,
                reason,
                message,
            ));
        };
        if first {
            record_event("Pulling", format!("Pulling image {image:?}"));
            record_event(
                "Pulled",
                format!(
                    "Successfully pulled image {image:?} in {took} ({took} including waiting). Image size: {IMAGE_SIZE} bytes."
                ),
            );
        } else {
            record_event(
                "Pulled",
                format!(
                    "Container image {image:?} already present on machine and can be accessed by the pod"
                ),
            );
        }
        record_event("Created", "Container created".to_owned());
        record_event("Started", "Container started".to_owned());
    }
}

/// Every image is as large as a small one usually is.
const IMAGE_SIZE: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_spelled_out_as_container_runtimes_do() {
        let cases = [
            (
                "nginx",
                "docker.io/library/nginx:latest",
                "docker.io/library/nginx",
            ),
            (
                "nginx:1.25",
                "docker.io/library/nginx:1.25",
                "docker.io/library/nginx",
            ),
            (
                "team/app",
                "docker.io/team/app:latest",
                "docker.io/team/app",
            ),
            ("ghcr.io/a/b:v1", "ghcr.io/a/b:v1", "ghcr.io/a/b"),
            (
                "localhost:5000/x",
                "localhost:5000/x:latest",
                "localhost:5000/x",
            ),
            ("r.io/x@sha256:ab", "r.io/x@sha256:ab", "r.io/x"),
        ];
        for (image, full, without_tag) in cases {
            assert_eq!(full_image(image), full, "{image}");
            assert_eq!(repository(full), without_tag, "{image}");
        }
    }
}
