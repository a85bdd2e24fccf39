//! What simulated containers seem to write and use: enough for `kubectl logs` and `kubectl top` to
//! show something that fits the state of the pod. It follows from the pod and the time alone.

use bellwether_apiserver::{Kubelet, LogLine, Usage};
use bellwether_json::quantity::Quantity;
use bellwether_json::time::parse_time;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::hash::fnv32;

/// How often a running container says that it runs.
const INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// How many lines of these a log has at most; older ones are gone, as from a log that is rotated.
const MOST_LINES: i64 = 1_000;

/// What a container uses that asks for nothing.
const MODEST: Usage = Usage {
    millicores: 4,
    bytes: 24 << 20,
};

/// Answers for the nodes of simulated clusters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedKubelet;

impl Kubelet for SimulatedKubelet {
    fn log(
        &self,
        pod: &Value,
        container: &str,
        previous: bool,
        now: Timestamp,
    ) -> Option<Vec<LogLine>> {
        let status = status(pod, container)?;
        let state = if previous { "lastState" } else { "state" };
        let life = Life::of(&status[state]).or_else(|| {
            // One that waits to be restarted shows what it wrote before.
            let waits = !previous && status["state"]["waiting"].is_object();
            waits.then(|| Life::of(&status["lastState"])).flatten()
        })?;
        let image = status["image"].as_str().unwrap_or_default();
        Some(life.lines(container, image, now))
    }

    fn usage(&self, pod: &Value, container: &str, now: Timestamp) -> Option<Usage> {
        let status = status(pod, container)?;
        if !status["state"]["running"].is_object() {
            return None;
        }
        let containers = pod["spec"]["containers"].as_array()?;
        let spec = containers.iter().find(|it| it["name"] == *container)?;
        let asked = |name: &str| -> Option<Quantity> {
            let amount = &spec["resources"]["requests"][name];
            amount.as_str()?.parse().ok()
        };
        // Somewhat less than it asks for, and a little different every minute.
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let minute = now.as_second().div_euclid(60);
        let seed = uid.bytes().chain(container.bytes());
        let wobble = u64::from(fnv32(seed.chain(minute.to_le_bytes())) % 21);
        let part = |amount: i64| u64::try_from(amount).unwrap_or(0) / 100 * (50 + wobble);
        let modest = |amount: u64| amount * (90 + wobble) / 100;
        Some(Usage {
            millicores: asked("cpu").map_or(modest(MODEST.millicores), |it| {
                (part(it.milli_value().saturating_mul(100)) / 100).max(1)
            }),
            bytes: asked("memory").map_or(modest(MODEST.bytes), |it| part(it.value())),
        })
    }
}

/// The status of a container, wherever it is.
fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ]
    .iter()
    .flat_map(|list| pod["status"][*list].as_array().into_iter().flatten())
    .find(|status| status["name"] == *container)
}

/// When a container ran.
struct Life {
    began: Timestamp,
    /// When it ended, and with which code.
    end: Option<(Timestamp, i64)>,
}

impl Life {
    fn of(state: &Value) -> Option<Self> {
        let time = |value: &Value| parse_time(value.as_str()?).ok();
        if let Some(began) = time(&state["running"]["startedAt"]) {
            return Some(Self { began, end: None });
        }
        let ended = &state["terminated"];
        let finished = time(&ended["finishedAt"])?;
        Some(Self {
            began: time(&ended["startedAt"]).unwrap_or(finished),
            end: Some((finished, ended["exitCode"].as_i64().unwrap_or(0))),
        })
    }

    fn lines(&self, container: &str, image: &str, now: Timestamp) -> Vec<LogLine> {
        let line = |time: Timestamp, text: String| LogLine { time, text };
        let last = self.end.map_or(now, |(time, _)| time);
        let mut lines = vec![
            line(
                self.began,
                format!("{container}: simulated from image {image}"),
            ),
            line(self.began, format!("{container}: started")),
        ];
        let passed = last.duration_since(self.began).as_secs() / INTERVAL.as_secs();
        for count in (passed - MOST_LINES).max(0)..passed {
            let minutes = count + 1;
            let since = SignedDuration::from_mins(minutes);
            let Ok(time) = self.began.saturating_add(since) else {
                break;
            };
            lines.push(line(time, format!("{container}: running for {minutes}m")));
        }
        if let Some((time, code)) = self.end {
            let level = if code == 0 { "done" } else { "error" };
            lines.push(line(
                time,
                format!("{container}: {level}, exit code {code}"),
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:03:30Z".parse().unwrap()
    }

    fn pod(state: Value, last: Value) -> Value {
        json!({
            "metadata": {"uid": "u"},
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}]},
            "status": {"containerStatuses": [{"name": "a", "image": "i", "state": state, "lastState": last}]},
        })
    }

    #[track_caller]
    fn check(pod: &Value, previous: bool, expected: Option<&[&str]>) {
        let lines = SimulatedKubelet.log(pod, "a", previous, now());
        let texts: Option<Vec<&str>> = lines
            .as_ref()
            .map(|lines| lines.iter().map(|line| line.text.as_str()).collect());
        assert_eq!(texts.as_deref(), expected);
    }

    #[test]
    fn a_log_tells_what_became_of_the_container() {
        let running = json!({"running": {"startedAt": "2026-01-01T00:01:00Z"}});
        let crashed = json!({"terminated": {
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z", "exitCode": 3,
        }});
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let begin = ["a: simulated from image i", "a: started"];
        let alive = [begin[0], begin[1], "a: running for 1m", "a: running for 2m"];
        let ended = [begin[0], begin[1], "a: error, exit code 3"];
        check(&pod(running.clone(), json!({})), false, Some(&alive));
        check(&pod(running.clone(), crashed.clone()), true, Some(&ended));
        check(&pod(running, json!({})), true, None);
        check(&pod(waiting.clone(), crashed), false, Some(&ended));
        check(&pod(waiting, json!({})), false, None);
    }

    #[test]
    fn a_container_uses_part_of_what_it_asks_for() {
        let running = json!({"running": {"startedAt": "2026-01-01T00:01:00Z"}});
        let used = SimulatedKubelet
            .usage(&pod(running, json!({})), "a", now())
            .unwrap();
        assert!((500..=710).contains(&used.millicores), "{used:?}");
        assert!((50 << 20..=71 << 20).contains(&used.bytes), "{used:?}");
        let waiting = json!({"waiting": {}});
        assert_eq!(
            SimulatedKubelet.usage(&pod(waiting, json!({})), "a", now()),
            None
        );
    }
}
