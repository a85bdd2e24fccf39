//! The logs of containers, as a node would answer them.

use std::fmt::Write as _;

use bellwether_json::time;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::answer::{Answer, Reply};
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::kubelet::LogLine;
use crate::status::ApiError;

const TEXT: &str = "text/plain";

/// Answers `GET …/pods/NAME/log`.
pub(crate) fn get(cx: &RequestContext) -> Result<Reply, ApiError> {
    let Some(kubelet) = cx.cluster.kubelet() else {
        return Err(ApiError::bad_request(
            "no logs: this cluster does not run containers, and does not simulate workloads",
        ));
    };
    let entry = cx.cluster.keyspace().get(&cx.key()?);
    let pod = cx.resource.read(&entry.ok_or_else(|| not_found(cx))?.value);
    let wanted = Wanted::parse(cx)?;
    let container = choose(cx.name()?, &pod, cx.query.get("container"))?;
    if pod["spec"]["nodeName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        return Ok(Answer::Text(StatusCode::NO_CONTENT, TEXT, String::new()).into());
    }
    let lines = kubelet.log(&pod, &container, wanted.previous, cx.now);
    let lines = lines.ok_or_else(|| missing(cx, &pod, &container, wanted.previous))?;
    Ok(Answer::Text(StatusCode::OK, TEXT, wanted.write(&lines)).into())
}

/// Which part of a log is wanted.
struct Wanted {
    previous: bool,
    since: Option<Timestamp>,
    timestamps: bool,
    last: Option<usize>,
    bytes: Option<usize>,
}

impl Wanted {
    fn parse(cx: &RequestContext) -> Result<Self, ApiError> {
        let query = &cx.query;
        let count = |name: &str| -> Result<Option<usize>, ApiError> {
            let number = query.number(name)?;
            Ok(number.and_then(|number| usize::try_from(number).ok()))
        };
        let since = match (query.number("sinceSeconds")?, query.get("sinceTime")) {
            (Some(seconds), _) => {
                let ago = SignedDuration::from_secs(seconds);
                Some(cx.now.saturating_sub(ago).unwrap_or(Timestamp::MIN))
            }
            (None, Some(text)) => {
                let parsed = time::parse_time(text);
                Some(parsed.map_err(|error| ApiError::bad_request(error.to_string()))?)
            }
            (None, None) => None,
        };
        Ok(Self {
            previous: query.flag("previous")?.unwrap_or(false),
            timestamps: query.flag("timestamps")?.unwrap_or(false),
            since,
            last: count("tailLines")?,
            bytes: count("limitBytes")?,
        })
    }

    fn write(&self, lines: &[LogLine]) -> String {
        let begin = self.since.map_or(0, |since| {
            lines.iter().take_while(|line| line.time < since).count()
        });
        let lines = &lines[begin..];
        let skipped = lines.len().saturating_sub(self.last.unwrap_or(usize::MAX));
        let mut text = String::new();
        for line in &lines[skipped..] {
            if self.timestamps {
                text.push_str(&time::format_micro_time(line.time));
                text.push(' ');
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        if let Some(most) = self.bytes.filter(|most| *most < text.len()) {
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
        }
        text
    }
}

fn names<'a>(pod: &'a Value, list: &str) -> Vec<&'a str> {
    let containers = pod["spec"][list].as_array().into_iter().flatten();
    let names = containers.map(|container| container["name"].as_str().unwrap_or_default());
    names.collect()
}

/// The container that is meant; a pod with several has to be asked about one.
fn choose(pod_name: &str, pod: &Value, named: Option<&str>) -> Result<String, ApiError> {
    let main = names(pod, "containers");
    let init = names(pod, "initContainers");
    let all = [
        main.clone(),
        init.clone(),
        names(pod, "ephemeralContainers"),
    ]
    .concat();
    match (named, main.as_slice()) {
        (Some(name), _) if all.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(ApiError::bad_request(format!(
            "container {name} is not valid for pod {pod_name}"
        ))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, main) => {
            let mut why = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                main.join(" ")
            );
            if !init.is_empty() {
                let init = init.join(" ");
                let _ = write!(why, " or one of the init containers: [{init}]");
            }
            Err(ApiError::bad_request(why))
        }
    }
}

/// Why a container has no log.
fn missing(cx: &RequestContext, pod: &Value, container: &str, previous: bool) -> ApiError {
    let name = cx.name.as_deref().unwrap_or_default();
    if previous {
        return ApiError::bad_request(format!(
            "previous terminated container \"{container}\" in pod \"{name}\" not found"
        ));
    }
    let statuses = ["containerStatuses", "initContainerStatuses"];
    let reason = statuses
        .iter()
        .flat_map(|list| pod["status"][*list].as_array().into_iter().flatten())
        .find(|status| status["name"] == *container)
        .and_then(|status| status["state"]["waiting"]["reason"].as_str())
        .unwrap_or("ContainerCreating");
    let why = match reason {
        "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    ApiError::bad_request(format!(
        "container \"{container}\" in pod \"{name}\" is waiting to start: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_of_a_log_can_be_asked_for() {
        let lines: Vec<LogLine> = (1..=3)
            .map(|second| LogLine {
                time: Timestamp::from_second(second).unwrap(),
                text: format!("line {second}"),
            })
            .collect();
        let all = Wanted {
            previous: false,
            since: None,
            timestamps: false,
            last: None,
            bytes: None,
        };
        assert_eq!(all.write(&lines), "line 1\nline 2\nline 3\n");
        let last = Wanted {
            last: Some(1),
            ..all
        };
        assert_eq!(last.write(&lines), "line 3\n");
        let recent = Wanted {
            since: Timestamp::from_second(2).ok(),
            last: None,
            timestamps: true,
            ..last
        };
        assert_eq!(
            recent.write(&lines),
            "1970-01-01T00:00:02.000000Z line 2\n1970-01-01T00:00:03.000000Z line 3\n"
        );
        let short = Wanted {
            bytes: Some(4),
            timestamps: false,
            ..recent
        };
        assert_eq!(short.write(&lines), "line");
    }

    #[test]
    fn a_pod_with_several_containers_has_to_be_asked_about_one() {
        let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}});
        assert_eq!(choose("p", &pod, Some("i")).unwrap(), "i");
        assert_eq!(
            choose("p", &pod, None).unwrap_err().message,
            "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
        );
        assert_eq!(
            choose("p", &pod, Some("z")).unwrap_err().message,
            "container z is not valid for pod p"
        );
    }
}
