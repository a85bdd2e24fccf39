//! When the pods of a job ended, also of those that are gone: what comes next may have to wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::pod::SUCCEEDED;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::Pod;

use super::counting::has_failed;
use super::replica::ended_at;
use crate::kind::uid_of;
use crate::pods;

/// How many failures are remembered: with so many the wait is the longest there is.
const REMEMBERED: usize = 16;

/// When the pods of a job ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Endings {
    /// Failures since the last success, by the uid of the pod.
    failures: BTreeMap<String, Timestamp>,
    last_success: Option<Timestamp>,
}

impl Endings {
    /// Takes note of what can be seen now.
    pub(crate) fn learn(&mut self, spec: &JobSpec, pods: &[Arc<Pod>]) {
        for pod in pods {
            let Some(time) = ended_at(pod) else {
                continue;
            };
            if pods::phase(pod) == SUCCEEDED {
                self.last_success = self.last_success.max(Some(time));
            } else if has_failed(spec, pod) && !self.failures.contains_key(uid_of(pod.as_ref())) {
                self.failures.insert(uid_of(pod.as_ref()).to_owned(), time);
            }
        }
        let success = self.last_success;
        self.failures.retain(|_, time| Some(*time) > success);
        while self.failures.len() > REMEMBERED {
            let oldest = self.failures.iter().min_by_key(|(_, time)| **time);
            let Some(oldest) = oldest.map(|(uid, _)| uid.clone()) else {
                return;
            };
            self.failures.remove(&oldest);
        }
    }

    /// How many failures there were since the last success, and when the last one was.
    pub(super) fn failures(&self) -> Option<(usize, Timestamp)> {
        let last = self.failures.values().max()?;
        Some((self.failures.len(), *last))
    }
}
