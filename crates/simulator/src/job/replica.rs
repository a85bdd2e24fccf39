//! The pods of a job.

use bellwether_api::workload::job::{
    COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, TRACKING,
};
use bellwether_api::workload::pod::READY;
use bellwether_api::workload::status::FALSE;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec};

use crate::kind::{Reference, annotation};
use crate::pods;
use crate::time::seconds_after;

/// What a pod of an indexed job is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u32,
    /// How often the index has failed; only if each index has a limit of its own.
    pub(super) failures: Option<Failures>,
}

impl Place {
    /// A place in a job whose failures are counted together.
    pub(super) fn plain(index: u32) -> Self {
        Self {
            index,
            failures: None,
        }
    }
}

/// How often an index has failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) counted: i32,
    /// Those that the pod failure policy ignores.
    pub(super) ignored: i32,
}

impl Failures {
    pub(super) fn total(self) -> i32 {
        self.counted.saturating_add(self.ignored)
    }
}

/// A pod of a job, at its place if it is an indexed one.
pub(super) fn pod(owner: &Reference, spec: &JobSpec, place: Option<Place>) -> Pod {
    let mut pod = pods::from_template(&spec.template, owner);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    finalizers.push(TRACKING.to_owned());
    let Some(Place { index, failures }) = place else {
        return pod;
    };
    let name = &owner.key.name;
    let (key, value) = (COMPLETION_INDEX.to_owned(), index.to_string());
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(key.clone(), value.clone());
    if let Some(failures) = failures {
        let mut note = |name: &str, count: i32| {
            annotations.insert(name.to_owned(), count.to_string());
        };
        note(INDEX_FAILURE_COUNT, failures.counted);
        if failures.ignored > 0 {
            note(INDEX_IGNORED_FAILURE_COUNT, failures.ignored);
        }
    }
    pod.metadata
        .labels
        .get_or_insert_default()
        .insert(key, value);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{name}-{index}"));
    set_index_variable(spec);
    pod
}

/// Containers learn their index from a variable.
fn set_index_variable(spec: &mut PodSpec) {
    let variable = EnvVar {
        name: "JOB_COMPLETION_INDEX".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: None,
                field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
            }),
            ..EnvVarSource::default()
        }),
        value: None,
    };
    let before = spec.init_containers.iter_mut().flatten();
    for container in before.chain(&mut spec.containers) {
        let environment = container.env.get_or_insert_default();
        if !environment.iter().any(|known| known.name == variable.name) {
            environment.push(variable.clone());
        }
    }
}

/// The index of a pod of an indexed job.
pub(super) fn index_of(pod: &Pod) -> Option<u32> {
    annotation(&pod.metadata, COMPLETION_INDEX)?.parse().ok()
}

/// When a pod ended: when its last container did, or when it was no longer ready, or when it was asked
/// to end.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let containers = || {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let ends = statuses.iter().map(|status| {
            let end = status.state.as_ref()?.terminated.as_ref()?;
            Some(end.finished_at.as_ref()?.0)
        });
        // One that still runs has no end, and neither has the pod.
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    let unready = || {
        let condition = pods::condition(pod, READY).filter(|found| found.status == FALSE)?;
        Some(condition.last_transition_time.as_ref()?.0)
    };
    let deletion = || {
        let end = pod.metadata.deletion_timestamp.as_ref()?.0;
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        Some(seconds_after(end, -grace))
    };
    containers().or_else(unready).or_else(deletion)
}
