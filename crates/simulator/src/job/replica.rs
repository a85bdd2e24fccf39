//! The pods of a job.

use bellwether_api::workload::job::{COMPLETION_INDEX, TRACKING};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec};

use crate::kind::{Reference, annotation};
use crate::pods;

/// A pod of a job, with that index if it is an indexed one.
pub(super) fn pod(owner: &Reference, spec: &JobSpec, index: Option<u32>) -> Pod {
    let mut pod = pods::from_template(&spec.template, owner);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    finalizers.push(TRACKING.to_owned());
    let Some(index) = index else { return pod };
    let name = &owner.key.name;
    let (key, value) = (COMPLETION_INDEX.to_owned(), index.to_string());
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(key.clone(), value.clone());
    pod.metadata
        .labels
        .get_or_insert_default()
        .insert(key, value);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{name}-{index}"));
    tell_index(spec);
    pod
}

/// Containers learn their index from a variable.
fn tell_index(spec: &mut PodSpec) {
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

/// When the last container of a pod ended.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ends = statuses
        .iter()
        .filter_map(|status| status.state.as_ref()?.terminated.as_ref());
    ends.filter_map(|end| Some(end.finished_at.as_ref()?.0))
        .max()
}
