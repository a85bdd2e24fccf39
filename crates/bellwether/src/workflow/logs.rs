//! The logs of a step: what it logged itself, those of pods, and those at an address.

use std::collections::BTreeMap;

use anyhow::Context as _;
use bellwether_api::workflow::names::context;
use bellwether_controllers::workflow::HttpPolicy;
use bellwether_controllers::workflow::providers::http::{Extras, HostPattern, HttpClient};
use clap::ValueEnum;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::subject::Subject;
use crate::cli::say;

/// How logs are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Each log below its name.
    #[default]
    Default,
    /// The logs alone.
    Raw,
    /// A line of JSON for each log.
    Json,
}

/// A log and what it is of.
#[derive(Debug, PartialEq, Eq)]
struct Log {
    source: String,
    text: String,
}

/// Prints the logs of a step: where they are is in the context of the workflow.
pub(super) async fn print(
    client: &Client,
    namespace: &str,
    subject: &Subject,
    step: Option<&str>,
    format: LogFormat,
) -> anyhow::Result<()> {
    let name = subject.backend().map_or_else(
        || context::config_map(subject.name()),
        |backend| backend.name,
    );
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = maps.get_opt(&name).await?.unwrap_or_default();
    let data = map.data.unwrap_or_default();
    let config = data.get(context::LOG_CONFIG).map_or("", String::as_str);
    let config: Value = serde_json::from_str(config).unwrap_or_default();
    let first = || config.as_object().and_then(|steps| steps.keys().next());
    let step = step.or_else(|| first().map(String::as_str));
    let step = step.with_context(|| format!("no step of {} has logs", subject.name()))?;
    let config = &config[step];
    anyhow::ensure!(
        config["data"] == true || config["source"].is_object(),
        "no log config found for step {step}"
    );
    let mut logs: Vec<Log> = logged(subject, &data, step).into_iter().collect();
    let source = &config["source"];
    if let Some(url) = source["url"].as_str() {
        logs.push(fetched(url).await?);
    }
    for resource in source["resources"].as_array().into_iter().flatten() {
        logs.extend(of_pods(client, namespace, resource).await?);
    }
    for log in &logs {
        say(&printed(log, format));
    }
    Ok(())
}

fn printed(log: &Log, format: LogFormat) -> String {
    let text = log.text.trim_end();
    match format {
        LogFormat::Default => format!("=== {}\n{text}", log.source),
        LogFormat::Raw => text.to_owned(),
        LogFormat::Json => json!({"source": log.source, "log": text}).to_string(),
    }
}

/// What a step logged itself.
fn logged(subject: &Subject, data: &BTreeMap<String, String>, step: &str) -> Option<Log> {
    let status = subject.status();
    let all = status.steps.iter().flat_map(|step| {
        let own = std::iter::once(&step.status);
        own.chain(&step.sub_steps)
    });
    let mut all = all.filter(|status| status.name == step);
    let text = data.get(&context::step_log(&all.next()?.id))?;
    Some(Log {
        source: format!("step {step}"),
        text: text.clone(),
    })
}

/// What is at an address. The person who asks may reach any.
async fn fetched(url: &str) -> anyhow::Result<Log> {
    let client = HttpClient::new(&HttpPolicy {
        allowed: vec![HostPattern::Any, HostPattern::Loopback],
    });
    let request = json!({"method": "GET", "url": url, "request": {"timeout": "30s"}});
    let answer = client.send(&request, &Extras::default()).await;
    let answer = answer.map_err(anyhow::Error::msg)?;
    let status = &answer["statusCode"];
    anyhow::ensure!(*status == 200, "{url} answers with status {status}");
    Ok(Log {
        source: url.to_owned(),
        text: answer["body"].as_str().unwrap_or_default().to_owned(),
    })
}

async fn of_pods(client: &Client, namespace: &str, resource: &Value) -> anyhow::Result<Vec<Log>> {
    let namespace = resource["namespace"].as_str().unwrap_or(namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let labels = resource["labelSelector"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let found = if let Some(name) = resource["name"].as_str() {
        pods.get_opt(name).await?.into_iter().collect()
    } else {
        let selected = ListParams::default().labels(&labels.join(","));
        pods.list(&selected).await?.items
    };
    let mut logs = Vec::new();
    for pod in found {
        let source = pod.name_any();
        let text = pods.logs(&source, &LogParams::default()).await?;
        logs.push(Log { source, text });
    }
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_printed_as_asked_for() {
        let log = Log {
            source: "step a".to_owned(),
            text: "one\ntwo\n".to_owned(),
        };
        let table = [
            (LogFormat::Default, "=== step a\none\ntwo"),
            (LogFormat::Raw, "one\ntwo"),
            (LogFormat::Json, r#"{"log":"one\ntwo","source":"step a"}"#),
        ];
        for (format, expected) in table {
            let shown = printed(&log, format);
            let is_same = match format {
                LogFormat::Json => {
                    serde_json::from_str::<Value>(&shown).unwrap()
                        == serde_json::from_str::<Value>(expected).unwrap()
                }
                _ => shown == expected,
            };
            assert!(is_same, "{format:?}: {shown}");
        }
    }

    #[test]
    fn a_step_of_a_group_has_a_log_of_its_own() {
        let run = json!({"metadata": {"name": "r"}, "spec": {}, "status": {"status": "executing", "mode": {}, "suspend": false,
            "terminated": false, "finished": false, "steps": [{"id": "g1", "name": "group",
                "subSteps": [{"id": "s1", "name": "say"}]}]}});
        let subject = Subject::Run(serde_json::from_value(run).unwrap());
        let data = BTreeMap::from([(context::step_log("s1"), "hello".to_owned())]);
        let log = logged(&subject, &data, "say").unwrap();
        assert_eq!(log.text, "hello");
        assert_eq!(logged(&subject, &data, "group"), None);
    }
}
