//! How `kubectl get pods` sums a pod up.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::Column;
use crate::columns::{AGE, NAME, age, cell_or, fraction, human, name, parse, wide, words};
use crate::value::{at, flag, has, int, list, text};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    words("Ready", "Containers that are ready, of all."),
    words("Status", "The state of the pod in one word."),
    words(
        "Restarts",
        "How often containers were restarted, and when last.",
    ),
    AGE,
    wide("IP", "The address of the pod."),
    wide("Node", "The node that runs the pod."),
    wide("Nominated Node", "The node that makes room for the pod."),
    wide("Readiness Gates", "Further conditions that hold, of all."),
];

pub(super) fn row(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let ip = list(pod, &["status", "podIPs"])
        .first()
        .unwrap_or(&Value::Null);
    vec![
        name(pod),
        fraction(summary.ready, summary.total),
        summary.reason.into(),
        summary.restarts.shown(now).into(),
        age(pod, now),
        cell_or(ip, &["ip"], "<none>"),
        cell_or(pod, &["spec", "nodeName"], "<none>"),
        cell_or(pod, &["status", "nominatedNodeName"], "<none>"),
        readiness_gates(pod),
    ]
}

/// Restarts of some containers, and when the last one ended.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += int(container, &["restartCount"]);
        let ended = parse(at(container, &["lastState", "terminated", "finishedAt"]));
        self.last = self.last.max(ended);
    }

    fn shown(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                let ago = human(now.as_second() - last.as_second());
                format!("{} ({ago} ago)", self.count)
            }
            _ => self.count.to_string(),
        }
    }
}

struct Summary {
    ready: i64,
    total: i64,
    reason: String,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let inits = list(pod, &["spec", "initContainers"]);
        let sidecars = inits.iter().filter(|init| is_sidecar(init)).count();
        let mut summary = Summary {
            ready: 0,
            total: count(list(pod, &["spec", "containers"]).len() + sidecars),
            reason: phase(pod),
            restarts: Restarts::default(),
        };
        let mut sidecar_restarts = Restarts::default();
        let initializing = summary.add_inits(pod, inits, &mut sidecar_restarts);
        if !initializing || condition(pod, "Initialized") {
            summary.restarts = sidecar_restarts;
            summary.add_containers(pod);
        }
        if has(pod, &["metadata", "deletionTimestamp"]) {
            if text(pod, &["status", "reason"]) == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Looks at the init containers up to the first that has not done its work; true if there is
    /// one.
    fn add_inits(&mut self, pod: &Value, inits: &[Value], sidecars: &mut Restarts) -> bool {
        let statuses = list(pod, &["status", "initContainerStatuses"]);
        let is_sidecar = |init: &&Value| is_sidecar(init);
        let all_sidecars = inits.iter().filter(is_sidecar);
        let all_sidecars: HashSet<&str> = all_sidecars.map(|init| text(init, &["name"])).collect();
        for (index, status) in statuses.iter().enumerate() {
            let name = text(status, &["name"]);
            let sidecar = all_sidecars.contains(name);
            self.restarts.add(status);
            if sidecar {
                sidecars.add(status);
            }
            let ended = at(status, &["state", "terminated"]);
            if ended.is_object() && int(ended, &["exitCode"]) == 0 {
                continue;
            }
            if sidecar && flag(status, &["started"]) {
                self.ready += i64::from(flag(status, &["ready"]));
                continue;
            }
            let waiting = text(status, &["state", "waiting", "reason"]);
            self.reason = if ended.is_object() {
                format!("Init:{}", ending(ended))
            } else if !matches!(waiting, "" | "PodInitializing") {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", inits.len())
            };
            return true;
        }
        false
    }

    fn add_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in list(pod, &["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, &["state", "waiting", "reason"]);
            let ended = at(status, &["state", "terminated"]);
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if ended.is_object() {
                self.reason = ending(ended);
                if int(ended, &["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag(status, &["ready"]) && has(status, &["state", "running"]) {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition(pod, "Ready") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

fn phase(pod: &Value) -> String {
    let gated = list(pod, &["status", "conditions"])
        .iter()
        .any(|condition| {
            text(condition, &["type"]) == "PodScheduled"
                && text(condition, &["reason"]) == "SchedulingGated"
        });
    if gated {
        return "SchedulingGated".to_owned();
    }
    match text(pod, &["status", "reason"]) {
        "" => text(pod, &["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

/// Why a container ended, in one word.
fn ending(ended: &Value) -> String {
    let reason = text(ended, &["reason"]);
    let signal = int(ended, &["signal"]);
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", int(ended, &["exitCode"]))
    }
}

/// Whether an init container keeps running beside the others.
fn is_sidecar(init: &Value) -> bool {
    text(init, &["restartPolicy"]) == "Always"
}

fn condition(pod: &Value, kind: &str) -> bool {
    list(pod, &["status", "conditions"])
        .iter()
        .any(|found| text(found, &["type"]) == kind && text(found, &["status"]) == "True")
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".into();
    }
    let holding = gates
        .iter()
        .filter(|gate| condition(pod, text(gate, &["conditionType"])))
        .count();
    fraction(count(holding), count(gates.len()))
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
